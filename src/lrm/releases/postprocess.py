"""Optional repairs of released answers: consistent without negative counts, whole numbers.

Nothing here looks at more than a release, so no privacy is spent. The raw answers are the
unbiased ones and stay in the record; intervals and standard errors belong to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Domain, Numbers
from lrm.errors import UsageError
from lrm.planning.plan.levels import LevelsPlan
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.workload.frames import AnswerFrame
from lrm.releases.changes import MANY_NEGATIVE, negative_share, statement_changes
from lrm.releases.consistent import consistent_answers
from lrm.releases.known import KnownTable, known_counts, known_words
from lrm.releases.synthetic import whole_counts

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from lrm.releases.core import Release

MOST_MOVED = 20
"""Statements whose distance a note lists."""

STEPS = {
    "consistent": (
        "The answers of tables without negative counts that are nearest to the released answers: "
        "totals are the sums of their parts. The sum of squared errors over the batch does not "
        "grow; that of one statement may. Biased: small counts come out too large on average, "
        "large ones a little too small."
    ),
    "integer": (
        "Each answer of a query with whole weights is rounded to the nearest whole number. Moves "
        "an answer by at most one half; a rounded total may differ from the sum of its "
        "rounded parts, unless the answers are made consistent, too."
    ),
}
"""What each step does and what bias it causes, in the order in which they are applied."""

WHOLE_ROWS = (
    "The answers are counts of whole rows, those that `lrm synthesize --seed 0` makes up: whole "
    "numbers that add up exactly, about as near to the released answers as their noise allows. The "
    "sum of squared errors may be a little above that of consistent answers that are not whole."
)
"""What "integer" does after "consistent"."""

ALIASES = {"non-negative": "consistent"}
"""Former names of steps."""

INTERVALS = "Intervals and standard errors are those of the raw answers, not of processed ones."


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
    known
        What was known from elsewhere, with its source, as a sentence; empty for nothing.
    """

    release: Release
    steps: tuple[str, ...]
    answers: Floats
    known: str = ""

    @property
    def raw_answers(self) -> Floats:
        """The unbiased answers that the steps began with."""
        return self.release.answers

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Each step with what it does and what bias it causes."""
        words = STEPS | ({"integer": WHOLE_ROWS} if self.steps == tuple(STEPS) else {})
        return [(step, words[step]) for step in self.steps]

    @property
    def moved_words(self) -> str:
        """How far the answers of each statement were moved, as a sentence."""
        parts = [f"{name} {value:.2g}" for name, value in self.moved.items()]
        more = f" and {len(parts) - MOST_MOVED:,} more" if len(parts) > MOST_MOVED else ""
        return (
            "Root mean square of (processed − released answer) / standard error, by statement: "
            f"{', '.join(parts[:MOST_MOVED])}{more}."
        )

    @cached_property
    def moved(self) -> dict[str, float]:
        """How far the answers of each statement were moved, in standard errors.

        The root mean square over its answers, averages and other derived ones included.
        """
        values = self.release.shown_values(self.answers)
        return {each.name: each.distance for each in statement_changes(self.release, values)}

    @property
    def sentences(self) -> list[str]:
        """What a reader must know: whose the intervals are, how far answers moved, their bias."""
        sentences = [INTERVALS, self.moved_words, *([self.known] if self.known else [])]
        if "consistent" in self.steps:
            sentences += [*different_rows(self.release)]
            if self.negative_share >= MANY_NEGATIVE:
                sentences.append(
                    f"{self.negative_share:.0%} of the released answers are negative: the "
                    "processed ones are biased, small counts upwards and large ones a little "
                    "downwards."
                )
        return sentences

    @cached_property
    def stated(self) -> dict[str, str]:
        """What tables of both answers say of them: that of the release, and ``processed``."""
        words = [*(f"{step}: {effect}" for step, effect in self.notes), *self.sentences]
        return {**self.release.stated, "processed": " ".join(words)}

    @property
    def negative_share(self) -> float:
        """The share of negative released answers: where it is large, so is the bias."""
        return negative_share(self.release)

    def to_arrow(self, confidence: float = 0.95) -> pa.Table:
        """The columns of ``release.to_arrow``, and ``processed``, as a ``pyarrow.Table``."""
        return self._table(confidence).to_arrow()

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """The columns of ``release.to_pandas``, and ``processed``, as a ``pandas.DataFrame``."""
        return self._table(confidence).to_pandas()

    def to_polars(self, confidence: float = 0.95) -> pl.DataFrame:
        """The columns of ``release.to_polars``, and ``processed``, as a ``polars.DataFrame``."""
        return self._table(confidence).to_polars()

    def _table(self, confidence: float) -> AnswerFrame:
        return self.release.table(confidence, processed=self)


def different_rows(release: Release) -> Iterator[str]:
    """That statements count different rows, where rules of the domain drop some, as a sentence.

    A total of all rows is above the sum of the months by the rows that have no month.
    """
    for level in release.levels:
        batch = level.plan.workload
        dropping = [batch.dropping(statement) for statement in batch.tables]
        columns = () if batch.domain is None else batch.domain.dropping
        counted = [sum(name in names for names in dropping) for name in columns]
        some = [
            name for name, count in zip(columns, counted, strict=True) if 0 < count < len(dropping)
        ]
        if some:
            names = ", ".join(some)
            yield (
                f"Statements that use {names} leave out rows without a declared value there, and "
                "others count them, so a total may be above the sum of its parts. Where it is "
                "public that there are none, declare `null: never` and `outside: never`."
            )


def process(
    release: Release,
    steps: Iterable[str],
    total: float | None = None,
    source: str | None = None,
    known: Sequence[KnownTable] = (),
) -> Processed:
    """Repair the answers of a release. A function of the release alone.

    Parameters
    ----------
    release
        What was published.
    steps
        ``"consistent"`` (its former name ``"non-negative"`` means the same) and ``"integer"``.
        They are applied in this order, however they are given. Both together are counts of whole
        rows: whole numbers that add up.
    total
        A number of rows that was published exactly elsewhere, for ``"consistent"``.
    source
        Where the total was published, for the metadata.
    known
        Tables that were published exactly elsewhere, for ``"consistent"``.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0], [0, 1]], "noise-on-results")
    >>> release = lrm.release(plan, [10, 20], epsilon=1)
    >>> total, one, other = process(release, ["consistent"]).answers
    >>> bool(abs(total - one - other) < 1e-9)
    True
    """
    step_set = {ALIASES.get(step, step) for step in steps}
    unknown = sorted(step_set - set(STEPS))
    if unknown or not step_set:
        shown_value = repr(unknown[0]) if unknown else "an empty list"
        raise UsageError(
            f"steps of post-processing must be among {', '.join(STEPS)}, not {shown_value}"
        )
    if (total is not None or known) and "consistent" not in step_set:
        raise UsageError("a known total or table is for consistent answers: ask for 'consistent'")
    if source is not None and total is None:
        raise UsageError("a source is that of a known total: give total= too")
    ordered = tuple(step for step in STEPS if step in step_set)
    answers = release.answers.copy()
    if ordered == tuple(STEPS):
        answers = _whole_rows(release, total, known)
    elif "consistent" in step_set:
        facts = known_counts(release.plan.workload, known)
        answers = consistent_answers(release.plan.workload, answers, total, facts)
    else:
        is_integer = whole_queries(release)
        answers[is_integer] = np.rint(answers[is_integer]) + 0.0  # no negative zeros
    answers.flags.writeable = False
    words = known_words(release.plan.workload, known)
    if total is not None:
        stated = f"The total of {total:,.10g} rows is known from: {source or 'no source stated'}."
        words = f"{stated} {words}".rstrip()
    return Processed(release, ordered, answers, words)


def _whole_rows(release: Release, total: float | None, known: Sequence[KnownTable]) -> Floats:
    """Counts of whole rows, those of each level of a people by themselves."""
    levels = release.levels
    if known or (total is not None and len(levels) > 1):
        raise UsageError(
            "whole rows have known tables nearly, not exactly, and a known total of one table "
            "alone: leave 'integer' out"
        )
    counts = [whole_counts(level, total) for level in levels]
    if not isinstance(release.plan, LevelsPlan):
        return counts[0]
    places = release.plan.places
    pieces = places.pieces(0, len(places))
    return np.concatenate([counts[level][first:last] for level, first, last in pieces])


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
            if not factor.is_integer():
                rows = np.all(factor.dense() == np.rint(factor.dense()), axis=1)
            if place in knots and factor.kind != "total":
                count = knots[place]
                known = factor.dense()
                rows &= np.all(known[:, :count] == known[:, :1], axis=1)
            part = np.logical_and.outer(part, rows)
        is_integer = np.logical_and(is_integer, part)
    return np.asarray(is_integer).reshape(-1)
