"""Optional repairs of released answers: consistent, non-negative, whole numbers.

Nothing here looks at more than a release, so no privacy is spent. The raw answers are the
unbiased ones and stay in the record; intervals and standard errors belong to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Domain, Numbers
from lrm.errors import ConvergenceError, UsageError
from lrm.files.spelling import how_many
from lrm.planning.design.cone import cone
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.products.batch import ProductBatch
from lrm.releases.core import Release

STEPS = {
    "consistent": (
        "All answers are computed from one least-squares estimate of the cells, so that totals "
        "are the sums of their parts. Not biased; for independent noise of one scale no answer's "
        "standard error becomes larger."
    ),
    "non-negative": (
        "The nearest table (by least squares on the noisy measurements) without negative counts "
        "takes the place of the estimate; answers are consistent with each other. Biased: "
        "small counts come out too large on average, and sums of many small counts far too "
        "large where noise is larger than they are."
    ),
    "integer": (
        "Each answer of a query with whole weights is rounded to the nearest whole number. Moves "
        "an answer by at most one half; a rounded total may differ from the sum of its "
        "rounded parts."
    ),
}
"""What each step does and what bias it causes, in the order in which they are applied."""

INTERVALS = "Intervals and standard errors are those of the raw answers, not of processed ones."

MOST_CELLS = 2_000
"""Merged cells up to which the nearest non-negative table is looked for (some seconds)."""


@dataclass(frozen=True, eq=False)
class Processed:
    """Answers after some steps, in addition to the raw ones of the release.

    Parameters
    ----------
    release
        Where the raw answers, their errors and intervals are.
    steps
        Names of the steps, in the order in which they were applied.
    answers
        One processed answer per query.
    """

    release: Release
    steps: tuple[str, ...]
    answers: Floats

    @property
    def raw_answers(self) -> Floats:
        """The unbiased answers that the steps began with."""
        return self.release.answers

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Each step with what it does and what bias it causes."""
        return [(step, STEPS[step]) for step in self.steps]


def process(release: Release, steps: Iterable[str]) -> Processed:
    """Repair the answers of a release. A function of the release alone.

    Parameters
    ----------
    release
        What was published.
    steps
        Any of ``"consistent"``, ``"non-negative"`` (consistent too) and ``"integer"``. They
        are applied in this order, however they are given.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0], [0, 1]], "noise-on-results")
    >>> release = lrm.release(plan, [10, 20], epsilon=1)
    >>> total, one, other = process(release, ["consistent"]).answers
    >>> bool(abs(total - one - other) < 1e-9)
    True
    """
    step_set = set(steps)
    unknown = sorted(step_set - set(STEPS))
    if unknown or not step_set:
        shown_value = repr(unknown[0]) if unknown else "an empty list"
        raise UsageError(
            f"steps of post-processing must be among {', '.join(STEPS)}, not {shown_value}"
        )
    ordered = tuple(step for step in STEPS if step in step_set)
    answers = release.answers.copy()
    if "non-negative" in step_set:
        answers = _non_negative(release)
    elif "consistent" in step_set:
        answers = _consistent(release)
    if "integer" in step_set:
        is_integer = whole_queries(release)
        answers[is_integer] = np.rint(answers[is_integer]) + 0.0  # no negative zeros
    answers.flags.writeable = False
    return Processed(release, ordered, answers)


def _measurements(release: Release) -> Floats:
    return release.noisy_measurements.astype(np.float64) * 2.0**-release.plan.bits


def _consistent(release: Release) -> Floats:
    """``W·L⁺·y``: by Gauss and Markov the best linear unbiased answers from measurements y."""
    plan = release.plan
    _check_exact(release)
    if len(plan.measured.groups) > 1:
        raise UsageError(
            "the answers of this release follow from several groups of measurements, each with an "
            "estimate of its own, and cannot be made consistent; use the answers as they are"
        )
    if plan.reconstruction_map.given is None:
        return release.answers.copy()  # they follow from one estimate already
    fitted = plan.measured.reconstruction_of(plan.workload.queries)
    assert fitted is not None  # noqa: S101 - the plan does not merge what its own queries distinguish
    return fitted.apply(_measurements(release))


def _non_negative(release: Release) -> Floats:
    """``W·x`` with the x ≥ 0 of least ``‖L·x − y‖``.

    x itself need not be unique, but L·x is (the projection onto a convex cone), and with it
    every answer ``W·x = B·L·x``.
    """
    _check_exact(release)
    plan = release.plan
    _check_cells(plan.measured.merged_cell_count)
    columns, answers = cone(plan.measured, plan.workload.queries)
    solution = _nearest(columns, _measurements(release)) if columns.size else np.zeros(0)
    return answers(solution)


def _check_cells(merged: int) -> None:
    if merged > MOST_CELLS:
        raise UsageError(
            f"the nearest non-negative table is looked for among at most {MOST_CELLS:,} cells, "
            f"but the queries of this release distinguish {how_many(merged)}; ask for "
            "'consistent' instead, or process the answers yourself"
        )


def _nearest(parts: Floats, measurements: Floats) -> Floats:
    """The x ≥ 0 with ``parts·x`` nearest to the measurements, by an active-set method."""
    from scipy.optimize import nnls  # noqa: PLC0415 - 0.1 s, for those who repair answers

    try:
        solution, _ = nnls(parts, measurements, maxiter=50 * parts.shape[1])
    except RuntimeError:
        raise ConvergenceError(
            "the search for the nearest non-negative table did not end; ask for 'consistent'"
        ) from None
    return np.asarray(solution)


def _check_exact(release: Release) -> None:
    if not release.plan.exact:
        raise UsageError(
            "the plan of this release is relaxed: its queries do not follow from its "
            "measurements exactly, and answers cannot be made consistent; plan without --relaxed"
        )


def whole_queries(release: Release) -> NDArray[np.bool_]:
    """Which queries have whole weights only, as an array of truth values."""
    queries, domain = release.plan.workload.queries, release.plan.workload.domain
    shape = (queries.shape[1],) if domain is None else domain.shape
    knots = {} if domain is None else _knots(domain)
    if (products := release.plan.workload.products) is not None:
        batch = products.batch
        return np.concatenate([_whole_term(batch, term, knots) for term in range(batch.terms)])
    blocks = []
    for _, block in queries.row_blocks():
        is_integer = np.all(block == np.rint(block), axis=1)
        for place, count in knots.items():
            cells = np.moveaxis(block.reshape(len(block), *shape), place + 1, 1)
            is_integer &= np.all(cells[:, :count] == cells[:, :1], axis=tuple(range(1, cells.ndim)))
        blocks.append(is_integer)
    return np.concatenate(blocks)


def _knots(domain: Domain) -> dict[int, int]:
    """The number of knots of each attribute between whose cells records are divided."""
    return {
        place: attribute.regular
        for place, attribute in enumerate(domain.attributes)
        if isinstance(attribute, Numbers)
    }


def _whole_term(batch: ProductBatch, term: int, knots: Mapping[int, int]) -> NDArray[np.bool_]:
    """Which queries of a term are made of whole weights in every attribute.

    The sum of a number over divided records is not whole, whatever its knots are.
    """
    is_integer: NDArray[np.bool_] | bool = True
    for coefficient, factors in batch.summands(term):
        part = np.array(coefficient == round(coefficient))
        for place, factor in enumerate(factors):
            rows = np.ones(len(factor), dtype=bool)
            if not factor.is_word:
                rows = np.all(factor.dense() == np.rint(factor.dense()), axis=1)
            if place in knots and factor.kind != "total":
                count = knots[place]
                known = factor.dense()
                rows &= np.all(known[:, :count] == known[:, :1], axis=1)
            part = np.logical_and.outer(part, rows)
        is_integer = np.logical_and(is_integer, part)
    return np.asarray(is_integer).reshape(-1)
