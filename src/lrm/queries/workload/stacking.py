"""Several batches over the same cells as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from lrm.errors import WorkloadError
from lrm.files.spelling import how_many
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.products.combine import stacked
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.ranges import RangeMap
from lrm.queries.workload.core import EXPLICIT_QUERIES, Workload
from lrm.queries.workload.derived import Derived
from lrm.queries.workload.labels import Labels
from lrm.queries.workload.statements import Statement, distinct_names, shift
from lrm.queries.workload.uses import Uses


def stack(workloads: Sequence[Workload]) -> Workload:
    """Join the queries of several workloads over the same cells into one batch.

    Queries without names are numbered consecutively; otherwise all names must differ. Batches over
    the same attributes stay products; joined with a matrix, they are written out, which raises an
    error where that is too large.
    """
    if not workloads:
        raise WorkloadError("a batch needs at least one query")
    sizes = {workload.shape[1] for workload in workloads}
    if len(sizes) > 1:
        raise WorkloadError(
            "stacked workloads must cover the same cells, but have "
            f"{' and '.join(map(how_many, sorted(sizes)))} of them"
        )
    domains = [workload.domain for workload in workloads if workload.domain is not None]
    if any(domain != domains[0] for domain in domains):
        raise WorkloadError("batches over different domains cannot be joined")
    return Workload(
        _queries(workloads),
        labels=Labels.joined([part.labels for part in workloads]),
        importance=_importance(workloads),
        domain=domains[0] if domains else None,
        derived=_derived(workloads),
        display=[display for part in workloads for display in part.display],
        statements=_statements(workloads),
        uses=_uses(workloads, len(domains[0].attributes)) if domains else None,
    )


def _uses(workloads: Sequence[Workload], attributes: int) -> Uses | None:
    """The attributes that the queries of all parts use; a part that does not say uses all."""
    if all(part.uses is None for part in workloads):
        return None
    every = range(attributes)
    return Uses.joined(
        [part.uses or Uses.alike(part.shape[0], attributes, every) for part in workloads]
    )


def _statements(workloads: Sequence[Workload]) -> list[Statement]:
    """The tables of all parts, where any of them has statements; else labels say as much."""
    if not any(part.statements for part in workloads):
        return []
    statements: list[Statement] = []
    queries = derived = displays = 0
    for part in workloads:
        statements += shift(part.tables, queries, derived, displays)
        queries += part.shape[0]
        derived += len(part.derived)
        displays += len(part.display)
    return distinct_names(statements)


def _derived(workloads: Sequence[Workload]) -> Iterator[Derived]:
    before = 0
    for workload in workloads:
        yield from (derived_answer.shifted(before) for derived_answer in workload.derived)
        before += workload.shape[0]


def _queries(workloads: Sequence[Workload]) -> LinearMap | sp.csr_array:
    maps = [linear_map.queries for linear_map in workloads]
    if len(maps) == 1:
        return maps[0]
    products = [linear_map.products for linear_map in workloads if linear_map.products is not None]
    if len(products) == len(maps) and len({linear_map.sizes for linear_map in products}) == 1:
        return ProductMap(stacked([linear_map.batch for linear_map in products]))
    if not all(linear_map.is_flat for linear_map in products):
        raise WorkloadError(
            f"a batch over the product of attributes ({how_many(maps[0].shape[1])} cells) is too "
            "large to be joined with a matrix; build both from the same attributes"
        )
    if any(isinstance(linear_map, RangeMap) for linear_map in maps):
        joined = _joined_ranges(maps)
        if joined is not None:
            return joined
    return sp.csr_array(sp.vstack([linear_map.sparse() for linear_map in maps], format="csr"))


def _joined_ranges(maps: Sequence[LinearMap]) -> RangeMap | None:
    """All queries as ranges, where each of them is one."""
    if sum(linear_map.shape[0] for linear_map in maps) > EXPLICIT_QUERIES:
        return None
    parts = [linear_map.weighted_ranges() for linear_map in maps]
    ranges = [part for part in parts if part is not None]
    if len(ranges) < len(parts):
        return None
    return RangeMap(
        maps[0].shape[1],
        np.concatenate([part.first for part in ranges]),
        np.concatenate([part.last + 1 for part in ranges]),
        np.concatenate([part.weights for part in ranges]),
    )


def _importance(workloads: Sequence[Workload]) -> Floats | None:
    if all(part.importance is None for part in workloads):
        return None
    return np.concatenate(
        [
            np.ones(part.shape[0]) if part.importance is None else part.importance
            for part in workloads
        ]
    )
