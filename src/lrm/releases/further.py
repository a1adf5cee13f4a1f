"""Further queries from a release, at no further cost.

The noisy measurements are public. Any query that is a combination of the strategy's rows
follows from them, with a known error; any other one is refused.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.errors import ConvergenceError, UnsupportedQuery, WorkloadError
from lrm.queries.files import as_batch
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.workload import Workload

if TYPE_CHECKING:  # a release answers further queries through this module
    from lrm.releases.core import Release

_COMBINED = 1 << 22
"""Most weights of planned and of further queries between which combinations are looked for."""

_ROUNDING = 8
"""Roundings of a planned weight by which a combination computed in float64 may be off."""

_SHOWN = 5
"""Queries that are named where a release does not determine them."""


def answer_further(release: Release, queries: Any) -> Release:
    """Answer other queries over the same cells from what was released.

    Costs no privacy: it looks at nothing but the release. The result is a release of
    the same measurements, with answers and errors of the new queries. They are about the rows that
    the release counts: those that an attribute drops from all of its statements are in none.

    Parameters
    ----------
    release
        What was published.
    queries
        SQL over the release's domain, a ``Workload``, or a matrix with one row per query.

    Raises
    ------
    UnsupportedQuery
        Where the measurements do not determine a query; it is named.

    Examples
    --------
    >>> import lrm
    >>> plan = lrm.plan([[1, 1, 1], [1, 0, 0]], "noise-on-data")
    >>> release = lrm.release(plan, [10, 20, 30], epsilon=1)
    >>> len(answer_further(release, [[0, 1, 0], [0, 0, 1]]).answers)
    2
    """
    domain = release.plan.workload.domain
    declared = further_batch = as_batch(queries, domain)
    if domain is not None:
        further_batch = further_batch.over_all_rows(domain.rest_axes)
    try:
        return release.further(further_batch)
    except UnsupportedQuery as error:
        if domain is None or not domain.rest_axes or declared.uses is not None:
            raise
        names = ", ".join(domain.names[axis] for axis in domain.rest_axes)
        sentence = (
            "a matrix over the declared cells is about rows that have a declared value of every "
            f"attribute, and planned queries count others, too ({names}); ask in SQL or with "
            "builders such as lrm.marginals, which know the attributes that a query uses"
        )
        raise UnsupportedQuery(f"{error}; {sentence}") from None


def answer_batch(release: Release, further_batch: Workload) -> Release:
    """Answer a batch over the same cells from what was released."""
    covered = release.plan.workload.shape[1]
    if further_batch.shape[1] != covered:
        raise WorkloadError(
            f"the release covers {covered} cells but the queries cover {further_batch.shape[1]}; "
            "were they written for another domain?"
        )
    try:
        return _answered(release, further_batch)
    except UnsupportedQuery as reason:
        nearest = _without_rounding(release.plan.workload, further_batch)
        if nearest is not None:
            with suppress(UnsupportedQuery):
                return _answered(release, nearest)
        places = _unsupported(release, further_batch)
        if not places:  # each alone would pass, so the error is about all of them
            raise
        raise _refusal(places) from reason


def _answered(release: Release, further_batch: Workload) -> Release:
    plan = release.plan
    reconstruction = plan.measured.reconstruction_of(further_batch.queries)
    if reconstruction is None:
        raise UnsupportedQuery(
            "these queries distinguish cells that were measured as one; "
            "plan a new release that includes them"
        )
    try:
        further = replace(
            plan,
            workload=further_batch,
            reconstruction_map=reconstruction,
            exact=True,
            objective="total",
            even_split=None,
        )
        return replace(release, plan=further)
    except ConvergenceError:
        raise UnsupportedQuery(
            "the measurements of this release do not determine these queries; ask for sums "
            "of what was measured, or plan a new release that includes them"
        ) from None


def _without_rounding(planned: Workload, further_batch: Workload) -> Workload | None:
    """The nearest combinations of planned queries; None where one is farther than rounding is.

    A difference of queries that almost cancel is as inexact as float64 is beside those queries,
    which may be more than the part 10⁻⁹ of itself by which it may differ from what is measured.
    """
    cells = planned.shape[1]
    sizes = [planned.shape[0] * cells, further_batch.shape[0] * cells]
    if max(sizes) > _COMBINED or further_batch.products is not None:
        return None
    known, asked = planned.queries.dense(), further_batch.queries.dense()
    combination = np.linalg.lstsq(known.T, asked.T, rcond=None)[0].T
    nearest = combination @ known
    rounding = _ROUNDING * np.finfo(np.float64).eps * np.abs(known).max(axis=0, initial=0.0)
    if np.any(np.abs(nearest - asked) > rounding):
        return None
    return replace(further_batch, queries=DenseMap(nearest))


def _unsupported(release: Release, further_batch: Workload) -> list[str]:
    """Name, and line where it has one, of every query that the measurements do not determine."""
    # An input of a derived answer is known by the name of that.
    known_as = {
        further_batch.labels[int(rows[0])].query: derived_answer.label.query
        for derived_answer in further_batch.derived
        for rows in derived_answer.input_rows()
        if further_batch.labels.is_hidden(int(rows[0]))
    }
    places = []
    for (line, query), query_batch in _by_query(further_batch).items():
        try:
            _answered(release, query_batch)
        except UnsupportedQuery:
            name = known_as.get(query, query)
            places.append(repr(name) if line is None else f"{name!r} (line {line})")
    return list(dict.fromkeys(places))


def _by_query(further_batch: Workload) -> dict[tuple[int | None, str], Workload]:
    """The queries of each name and line by themselves."""
    products = further_batch.products
    rows: dict[tuple[int | None, str], list[int]] = {}
    if products is not None:
        for term, query_rows in products.term_slices():
            label = further_batch.labels[query_rows.start]
            rows.setdefault((label.line, label.query), []).append(term)
        return {
            key: Workload(ProductMap(products.batch.take(terms)), domain=further_batch.domain)
            for key, terms in rows.items()
        }
    for row, label in enumerate(further_batch.labels):
        rows.setdefault((label.line, label.query), []).append(row)
    matrix = further_batch.queries.sparse()
    return {
        key: Workload(matrix[query_rows], domain=further_batch.domain)
        for key, query_rows in rows.items()
    }


def _refusal(places: list[str]) -> UnsupportedQuery:
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return UnsupportedQuery(
        f"what was measured does not determine {', '.join(places[:_SHOWN])}{more}; ask for sums "
        "of what was measured, or plan a new release that includes it"
    )
