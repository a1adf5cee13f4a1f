"""Merging of cells that no query tells apart: exact, and with a way back.

Cells that every query treats alike are one cell; so are cells that differ by sign, or by a
whole-number ratio. The strategy then lives on the merged cells and the counts are merged with
whole-number factors, so that they stay integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.maps.linear import Floats, LinearMap

__all__ = [
    "CellMap",
    "MergedWorkload",
    "merge_cells",
    "over_merged",
]

LARGEST_FACTOR = 1 << 10
"""Ratios p/q of columns are merged while the common denominator stays below this.

A factor f costs log2(f) bits of the integers that carry the counts; 10 bits are
affordable, and ratios of real batches (halves, tenths, percents) stay below it.
"""

SAME = 1e-12
"""Largest relative difference of two weights that are the same but for rounding."""

CHECKED_AT_ONCE = 1 << 18
"""Entries of the matrix that are compared in one piece."""


@dataclass(frozen=True, eq=False)
class CellMap:
    """How n cells become fewer merged ones: ``merged[index[j]] += factor[j]·counts[j]``.

    A cell that no query looks at has factor 0.

    >>> cells = CellMap(2, np.array([0, 1, 1]), np.array([1, 1, -1]))
    >>> cells.merge_counts(np.array([5, 3, 2]))
    array([5, 1])
    """

    merged_size: int
    index: NDArray[np.int64]
    factor: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("index", "factor"):
            values = np.asarray(getattr(self, name))
            if values.ndim != 1 or values.dtype.kind != "i":
                raise WorkloadError(f"the {name} of merged cells must be a list of integers")
            values = np.array(values, dtype=np.int64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        if len(self.index) != len(self.factor) or not 1 <= self.merged_size <= len(self.index):
            raise WorkloadError("merged cells need one index and one factor for each cell")
        if self.index.min() < 0 or self.index.max() >= self.merged_size:
            raise WorkloadError(f"an index of merged cells is outside 0 to {self.merged_size}")
        if self.factor.min() < -LARGEST_FACTOR or self.factor.max() > LARGEST_FACTOR:
            raise WorkloadError(f"factors of merged cells must not exceed {LARGEST_FACTOR} in size")

    @classmethod
    def trivial(cls, cells: int) -> CellMap:
        """The map that merges nothing."""
        return cls(cells, np.arange(cells), np.ones(cells, dtype=np.int64))

    @property
    def size(self) -> int:
        """Number of original cells."""
        return len(self.index)

    def is_trivial(self) -> bool:
        """Whether nothing is merged, and no cell has moved."""
        return (
            self.merged_size == self.size
            and bool(np.all(self.factor == 1))
            and bool(np.all(self.index == np.arange(self.size)))
        )

    def largest_factors(self) -> NDArray[np.int64]:
        """The largest |factor| that reaches each merged cell."""
        largest = np.zeros(self.merged_size, dtype=np.int64)
        np.maximum.at(largest, self.index, np.abs(self.factor))
        return largest

    def merge_counts(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts of the merged cells, in exact integers."""
        merged = np.zeros(self.merged_size, dtype=np.int64)
        np.add.at(merged, self.index, self.factor * counts)
        return merged

    def matrix(self) -> sp.csr_array:
        """The map as a sparse matrix (merged × original)."""
        used = self.factor != 0
        cells = np.flatnonzero(used)
        return sp.csr_array(
            (self.factor[used].astype(np.float64), (self.index[used], cells)),
            shape=(self.merged_size, self.size),
        )


@dataclass(frozen=True, eq=False)
class MergedWorkload:
    """A workload over merged cells: ``W = queries · cell_map.matrix()`` exactly."""

    queries: LinearMap
    cell_map: CellMap
    representatives: NDArray[np.int64]
    """For each merged cell, one original cell with the largest factor."""


def merge_cells(queries: LinearMap) -> MergedWorkload:
    """Merge the cells that the queries cannot tell apart (up to sign and ratio).

    Method: divide each column by its first non-zero entry, so that columns that are
    multiples of each other become equal to the last bit; group by two random
    projections of the result; verify each group entry by entry. Cost: O(non-zeros),
    from the sparse form.

    >>> from lrm.maps.matrices import DenseMap
    >>> merged = merge_cells(DenseMap(np.array([[1.0, 1.0, 0.0, -2.0], [0.0, 0.0, 0.0, 0.0]])))
    >>> merged.cell_map.merged_size, merged.cell_map.factor
    (1, array([-1, -1,  0,  2]))
    """
    n = queries.shape[1]
    if queries.has_distinct_columns:
        return MergedWorkload(queries, CellMap.trivial(n), np.arange(n))
    columns = queries.sparse_columns()
    columns.eliminate_zeros()
    columns.sort_indices()
    lengths = np.diff(columns.indptr)
    used = lengths > 0
    lead = np.zeros(n)
    lead[used] = columns.data[columns.indptr[:-1][used]]
    scaled = columns.copy()
    scaled.data = scaled.data / np.repeat(lead, lengths)
    group = _equal_columns(scaled, used)
    cells, representatives = _integer_factors(group, lead, used)
    if cells.is_trivial():
        return MergedWorkload(queries, cells, representatives)
    factors = np.maximum(cells.largest_factors(), 1).astype(np.float64)
    kept = queries.columns(representatives)
    if np.any(factors != 1.0):
        kept = kept.scale_columns(1.0 / factors)
    return MergedWorkload(kept, cells, representatives)


def over_merged(queries: LinearMap, cells: CellMap) -> LinearMap | None:
    """The queries over merged cells, or None where they tell merged cells apart.

    ``W = over_merged(W, cells) · cells.matrix()``, checked weight by weight.

    >>> from lrm.maps.matrices import DenseMap
    >>> pair = CellMap(1, np.array([0, 0]), np.array([1, 2]))
    >>> over_merged(DenseMap(np.array([[3.0, 6.0]])), pair).dense()
    array([[3.]])
    >>> over_merged(DenseMap(np.array([[3.0, 5.0]])), pair) is None
    True
    """
    if cells.is_trivial():
        return queries
    largest = cells.largest_factors()
    leads = np.flatnonzero((np.abs(cells.factor) == largest[cells.index]) & (cells.factor != 0))
    lead = np.zeros(cells.merged_size, dtype=np.intp)
    lead[cells.index[leads[::-1]]] = leads[::-1]  # the first of each class, as in merge_cells
    merged = queries.columns(lead)
    # A merged cell that no cell reaches counts nothing.
    shares = np.where(largest, 1.0 / np.where(largest, cells.factor[lead], 1), 0.0)
    if np.any(shares != 1.0):
        merged = merged.scale_columns(shares)
    alike = queries.is_expansion_of(merged, cells.index, cells.factor, SAME)
    return merged if alike else None


def _equal_columns(columns: sp.csc_array, used: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the classes of equal columns; −1 for columns without an entry."""
    rng = np.random.default_rng(20120827)  # any fixed seed: groups are verified below
    keys = columns.T @ rng.random((columns.shape[0], 2))
    # ``columns.T @ …`` adds in the order of the rows, so equal columns get equal sums.
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.ravel().astype(np.int64)
    strangers = np.flatnonzero(~_same_as(columns, first[group]))
    group[strangers] = len(first) + np.arange(len(strangers))  # a collision: keep it apart
    group[~used] = -1
    return group


def _same_as(columns: sp.csc_array, model: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each column j equals column ``model[j]``, entry by entry."""
    lengths = np.diff(columns.indptr)
    same: NDArray[np.bool_] = lengths == lengths[model]
    checked = np.flatnonzero(same & (model != np.arange(len(model))) & (lengths > 0))
    # In pieces that fit the cache: 20 million entries at once took four times as long.
    pieces = 1 + int(lengths[checked].sum()) // CHECKED_AT_ONCE
    for part in np.array_split(checked, pieces):
        if not len(part):
            continue
        sizes = lengths[part]
        start = np.cumsum(sizes) - sizes
        place = np.arange(sizes.sum())
        own = place + np.repeat(columns.indptr[part] - start, sizes)
        other = place + np.repeat(columns.indptr[model[part]] - start, sizes)
        equal = columns.indices[own] == columns.indices[other]
        equal &= columns.data[own] == columns.data[other]
        same[part] = np.logical_and.reduceat(equal, start)
    return same


def _integer_factors(
    group: NDArray[np.int64], lead: Floats, used: NDArray[np.bool_]
) -> tuple[CellMap, NDArray[np.int64]]:
    """Give each cell a whole-number factor within its class, splitting where there is none."""
    cells = np.flatnonzero(used)
    if not len(cells):  # no query looks at any cell: keep one, so that nothing is empty
        nothing = np.zeros(len(group), dtype=np.int64)
        return CellMap(1, nothing, nothing), np.zeros(1, dtype=np.int64)
    order = cells[np.lexsort((cells, -np.abs(lead[cells]), group[cells]))]
    starts = np.flatnonzero(np.diff(group[order], prepend=-2))
    ends = np.append(starts[1:], len(order))
    merged = np.repeat(np.arange(len(starts)), ends - starts)
    classes = _Classes(len(group), lead, list(order[starts]))
    classes.index[order] = merged
    # Equal columns up to sign; the representative counts +1, whatever its sign.
    classes.factor[order] = np.sign(lead[order] * lead[order[starts]][merged]).astype(np.int64)
    # Few classes hold columns of different size: only they need a look at ratios.
    size = np.abs(lead[order])
    for number in np.flatnonzero(size[ends - 1] != size[starts]):
        classes.split(order[starts[number] : ends[number]])
    return classes.numbered()


class _Classes:
    """Classes of proportional columns while whole-number factors are found for them."""

    def __init__(self, cells: int, lead: Floats, representatives: list[np.int64]) -> None:
        self.index = np.zeros(cells, dtype=np.int64)
        self.factor = np.zeros(cells, dtype=np.int64)
        self.lead = lead
        self.representatives = representatives

    def split(self, members: NDArray[np.int64]) -> None:
        """Merge members whose size is p/q of the largest; the others form classes of their own."""
        top = self.lead[members[0]]
        denominator, together, apart = 1, [], []
        for cell in members:
            p, q = _small_ratio(self.lead[cell] / top)
            joint = lcm(denominator, q)
            if 0 < joint <= LARGEST_FACTOR:
                denominator = joint
                together.append((cell, p, q))
            else:
                apart.append(cell)
        for cell, p, q in together:
            self.factor[cell] = p * (denominator // q)
        if apart:  # the first is the largest, as in ``members``
            rest = np.array(apart)
            self.representatives.append(rest[0])
            self.index[rest] = len(self.representatives) - 1
            self.split(rest)

    def numbered(self) -> tuple[CellMap, NDArray[np.int64]]:
        """Number classes by their representatives, so that the order of the cells survives."""
        kept = np.array(self.representatives, dtype=np.int64)
        number = np.argsort(np.argsort(kept))
        return CellMap(len(kept), number[self.index], self.factor), np.sort(kept)


def _small_ratio(value: float) -> tuple[int, int]:
    """``(p, q)`` with p/q == value to the last bit and q small, or ``(0, 0)``."""
    for q in range(1, 129):
        p = round(value * q)
        if p and p / q == value:
            return p, q
    return 0, 0
