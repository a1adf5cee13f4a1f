"""Families of workloads: totals, ranges, marginals, and the three of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import scipy.sparse as sp

from lrm.domain import Domain
from lrm.errors import WorkloadError
from lrm.maps.linear import AllRanges, Prefix, SparseMap
from lrm.workload.core import Workload

__all__ = [
    "all_ranges",
    "identity",
    "marginals",
    "prefix",
    "ranges",
    "stack",
    "total",
    "wdiscrete",
    "width_ranges",
    "wrange",
    "wrelated",
]


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise WorkloadError(f"{name} must be at least 1, but {size} came")


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
    """Sums over given ranges; both ends belong to the range.

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
            f"each range needs 0 ≤ first ≤ last < {cells}, but one of the pairs is outside"
        )
    lengths = last - first + 1
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - first, lengths)
    matrix = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(ends), cells))
    names = [f"[{a}, {b}]" for a, b in ends]
    return Workload(matrix, names=names if len(set(names)) == len(names) else None)


def width_ranges(cells: int, width: int) -> Workload:
    """Every range of exactly ``width`` cells."""
    if not 1 <= width <= cells:
        raise WorkloadError(f"width must lie between 1 and {cells} cells, but {width} came")
    return ranges(cells, [(start, start + width - 1) for start in range(cells - width + 1)])


def marginals(domain: Domain, ways: int | Sequence[Sequence[str]]) -> Workload:
    """Cross-tabs: one query for every combination of values of some attributes.

    Parameters
    ----------
    domain
        The public domain.
    ways
        A number k for all k-way marginals, or the attribute names of each.
    """
    names = [attribute.name for attribute in domain.attributes]
    if isinstance(ways, int):
        if not 0 <= ways <= len(names):
            raise WorkloadError(
                f"{ways}-way marginals need {ways} attributes, but the domain has {len(names)}"
            )
        chosen: list[tuple[str, ...]] = list(combinations(names, ways))
    else:
        chosen = [tuple(way) for way in ways]
    blocks, labels = [], []
    for way in chosen:
        unknown = [name for name in way if name not in names]
        if unknown:
            raise WorkloadError(
                f"marginal over unknown attribute {unknown[0]!r}; the domain has {', '.join(names)}"
            )
        blocks.append(_marginal_matrix(domain.shape, [name in way for name in names]))
        labels += _marginal_labels(domain, [name for name in names if name in way])
    return Workload(sp.csr_array(sp.vstack(blocks)), names=labels, domain=domain)


def _marginal_matrix(shape: tuple[int, ...], kept: list[bool]) -> sp.csr_array:
    matrix = sp.csr_array(np.ones((1, 1)))
    for size, keep in zip(shape, kept, strict=True):
        part = sp.eye_array(size, format="csr") if keep else sp.csr_array(np.ones((1, size)))
        matrix = sp.csr_array(sp.kron(matrix, part, format="csr"))
    return matrix


def _marginal_labels(domain: Domain, names: list[str]) -> list[str]:
    labels = [""]
    for name in names:
        values = [str(value) for value in domain.labels(name)]
        labels = [f"{left}, {name}={value}" for left in labels for value in values]
    return [label.removeprefix(", ") or "total" for label in labels]


def stack(workloads: Sequence[Workload]) -> Workload:
    """All queries of several workloads over the same cells, as one batch."""
    if not workloads:
        raise WorkloadError("stack needs at least one workload")
    sizes = {workload.shape[1] for workload in workloads}
    if len(sizes) > 1:
        raise WorkloadError(f"stacked workloads must cover the same cells, but came with {sizes}")
    parts = [
        part.queries.matrix if isinstance(part.queries, SparseMap) else part.queries.dense()
        for part in workloads
    ]
    names = [name for part in workloads for name in part.names]
    weights = [
        np.ones(part.shape[0]) if part.importance is None else part.importance for part in workloads
    ]
    return Workload(
        sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts])),
        names=names if len(set(names)) == len(names) else None,
        importance=np.concatenate(weights),
        domain=workloads[0].domain,
    )


def wdiscrete(queries: int, cells: int, *, seed: int) -> Workload:
    """The paper's WDiscrete: each weight is 1 with probability 0.02, else −1."""
    _positive(queries=queries, cells=cells)
    rng = np.random.default_rng(seed)
    return Workload(np.where(rng.random((queries, cells)) < 0.02, 1.0, -1.0))


def wrange(queries: int, cells: int, *, seed: int) -> Workload:
    """The paper's WRange: ranges whose two ends are uniform on the cells."""
    _positive(queries=queries, cells=cells)
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
