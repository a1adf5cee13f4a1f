"""Families of workloads over numbered cells: totals, ranges, products, those of the paper."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

from lrm.errors import WorkloadError
from lrm.queries.maps.ranges import RangeMap
from lrm.queries.maps.words import AllRanges, Prefix
from lrm.queries.workload.core import Workload
from lrm.queries.workload.products import marginals, products
from lrm.queries.workload.stacking import stack

__all__ = [
    "all_ranges",
    "identity",
    "marginals",
    "prefix",
    "products",
    "ranges",
    "stack",
    "total",
    "wdiscrete",
    "width_ranges",
    "wrange",
    "wrelated",
]


MOST_RANGES = 1 << 22
"""Ranges that are listed, each with its name: about a gigabyte."""


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise WorkloadError(f"{name} must be at least 1, not {size}")


def identity(cells: int) -> Workload:
    """Every cell's own count."""
    _positive(cells=cells)
    return Workload(sp.eye_array(cells, format="csr"))


def total(cells: int) -> Workload:
    """One query: the number of all records."""
    _positive(cells=cells)
    return Workload(sp.csr_array(np.ones((1, cells))), names=["total"])


def prefix(cells: int) -> Workload:
    """Running totals 0…i for every i. Never builds its matrix."""
    _positive(cells=cells)
    return Workload(Prefix(cells))


def all_ranges(cells: int) -> Workload:
    """Every range of neighbouring cells. Never builds its matrix.

    >>> all_ranges(65_536)
    <Workload: 2,147,516,416 queries over 65,536 cells (all-ranges)>
    """
    _positive(cells=cells)
    return Workload(AllRanges(cells))


def ranges(cells: int, bounds: Iterable[tuple[int, int]]) -> Workload:
    """Sums over given ranges; both ends belong to the range. Never builds its matrix.

    >>> ranges(4, [(0, 1), (1, 3)]).queries.dense()
    array([[1., 1., 0., 0.],
           [0., 1., 1., 1.]])
    """
    _positive(cells=cells)
    ends = np.array(list(bounds), dtype=np.int64).reshape(-1, 2)
    if not len(ends):
        raise WorkloadError("ranges needs at least one (first, last) pair")
    first, last = ends[:, 0], ends[:, 1]
    if first.min() < 0 or last.max() >= cells or np.any(first > last):
        raise WorkloadError(
            f"each range must satisfy 0 ≤ first ≤ last < {cells}, but one pair does not"
        )
    names = [f"[{a}, {b}]" for a, b in ends.tolist()]
    queries = RangeMap.over(cells, first, last)
    return Workload(queries, names=names if len(set(names)) == len(names) else None)


def width_ranges(cells: int, width: int) -> Workload:
    """Every range of exactly ``width`` cells."""
    if not 1 <= width <= cells:
        raise WorkloadError(f"width must be between 1 and {cells} cells, not {width}")
    _check_listed(cells - width + 1)
    return ranges(cells, [(start, start + width - 1) for start in range(cells - width + 1)])


def _check_listed(count: int) -> None:
    """Refuse more ranges than are listed, each with its name."""
    if count > MOST_RANGES:
        raise WorkloadError(
            f"there would be {count:,} ranges, and at most {MOST_RANGES:,} are listed; "
            "prefix and all-ranges need no list"
        )


def wdiscrete(queries: int, cells: int, *, seed: int) -> Workload:
    """The paper's WDiscrete: each weight is 1 with probability 0.02, else −1."""
    _positive(queries=queries, cells=cells)
    rng = np.random.default_rng(seed)
    return Workload(np.where(rng.random((queries, cells)) < 0.02, 1.0, -1.0))


def wrange(queries: int, cells: int, *, seed: int) -> Workload:
    """The paper's WRange: ranges whose two ends are uniform on the cells."""
    _positive(queries=queries, cells=cells)
    _check_listed(queries)
    ends = np.sort(np.random.default_rng(seed).integers(0, cells, size=(queries, 2)), axis=1)
    return ranges(cells, [(int(first), int(last)) for first, last in ends])


def wrelated(queries: int, cells: int, *, seed: int, s: int | None = None) -> Workload:
    """The paper's WRelated: C·A with standard normal C (queries×s) and A (s×cells).

    ``s``, the rank, is half of the smaller side by default, as in the paper.
    """
    _positive(queries=queries, cells=cells)
    rank = max(1, round(0.5 * min(queries, cells))) if s is None else s
    _positive(s=rank)
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((queries, rank))
    return Workload(left @ rng.standard_normal((rank, cells)))
