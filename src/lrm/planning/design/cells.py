"""Lossless reductions: merging of cells that no query distinguishes, and of rows.

Cells that every query treats alike are one cell; so are cells that differ by sign, or by a
whole-number ratio. The strategy then lives on the merged cells and the counts are merged with
whole-number factors, so that they stay integers. The error of a strategy depends on W only through
WᵀW, so rows are reduced to any factor R with RᵀR = WᵀW that has as many rows as W has rank.

See ``docs/explanation/reductions.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import ConvergenceError, WorkloadError
from lrm.planning.limits import MEMORY
from lrm.queries.maps.linear import Floats, Integers, LinearMap

LARGEST_FACTOR = 1 << 13
"""Columns in whole-number ratios are merged up to this factor.

A factor f costs log2(f) bits of the integers that carry the counts; 13 bits are affordable, and
sums of ages, minutes or amounts in thousands stay below it.
"""

SECONDS_PER_STEP = 0.9e-9
"""Seconds per step of a singular value decomposition with vectors, on one core."""


@dataclass(frozen=True, eq=False)
class CellMap:
    """How n cells become fewer merged ones: ``merged[index[j]] += factor[j]·counts[j]``.

    A cell that no query looks at has factor 0.

    >>> cells = CellMap(2, np.array([0, 1, 1]), np.array([1, 1, -1]))
    >>> (cells.matrix() @ np.array([5, 3, 2])).tolist()
    [5.0, 1.0]
    """

    merged_size: int
    index: Integers
    factor: Integers

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

    def classes(self) -> tuple[Integers, Integers]:
        """Number the cells that count alike, and give the first cell of each class.

        Cells of factor 0 have the number −1.

        >>> CellMap(2, np.array([0, 1, 1, 0]), np.array([1, 1, 0, 1])).classes()[0].tolist()
        [0, 1, -1, 0]
        """
        if self.is_trivial():
            return self.index, self.index
        used = np.flatnonzero(self.factor)
        least = int(self.factor.min())
        treatment = self.index * (int(self.factor.max()) - least + 1) + (self.factor - least)
        _, first, number = np.unique(treatment[used], return_index=True, return_inverse=True)
        labels = np.full(self.size, -1, dtype=np.int64)
        labels[used] = number.reshape(-1)
        return labels, used[first]

    def largest_factors(self) -> Integers:
        """The largest |factor| that reaches each merged cell."""
        largest = np.zeros(self.merged_size, dtype=np.int64)
        np.maximum.at(largest, self.index, np.abs(self.factor))
        return largest

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
    representatives: Integers
    """For each merged cell, one original cell with the largest factor."""


def merge_cells(queries: LinearMap) -> MergedWorkload:
    """Merge the cells that the queries cannot distinguish (up to sign and ratio).

    Which columns are multiples of each other the map knows (`LinearMap.proportional_columns`).
    Cost: O(non-zeros) from the sparse form, O(queries + cells) of ranges.

    >>> from lrm.queries.maps.matrices import DenseMap
    >>> merged = merge_cells(DenseMap(np.array([[1.0, 1.0, 0.0, -2.0], [0.0, 0.0, 0.0, 0.0]])))
    >>> merged.cell_map.merged_size, merged.cell_map.factor
    (1, array([-1, -1,  0,  2]))
    """
    n = queries.shape[1]
    if queries.has_distinct_columns:
        return MergedWorkload(queries, CellMap.trivial(n), np.arange(n))
    group, lead = queries.proportional_columns()
    cells, representatives = _integer_factors(group, lead, lead != 0)
    if cells.is_trivial():
        return MergedWorkload(queries, cells, representatives)
    factors = np.maximum(cells.largest_factors(), 1).astype(np.float64)
    cell_queries = queries.columns(representatives)
    if np.any(factors != 1.0):
        cell_queries = cell_queries.scale_columns(1.0 / factors)
    return MergedWorkload(cell_queries, cells, representatives)


def over_merged(queries: LinearMap, cells: CellMap) -> LinearMap | None:
    """The queries over merged cells, or None where they distinguish merged cells.

    ``W = over_merged(W, cells) · cells.matrix()``, checked weight by weight.

    >>> from lrm.queries.maps.matrices import DenseMap
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
    # Largest relative difference of two weights that are the same but for rounding.
    alike = queries.is_expansion_of(merged, cells.index, cells.factor, 1e-12)
    return merged if alike else None


def _integer_factors(
    group: Integers, lead: Floats, used: NDArray[np.bool_]
) -> tuple[CellMap, Integers]:
    """Give each cell a whole-number factor within its class, splitting where there is none."""
    cells = np.flatnonzero(used)
    if not len(cells):  # no query looks at any cell: keep one, so that nothing is empty
        nothing = np.zeros(len(group), dtype=np.int64)
        return CellMap(1, nothing, nothing), np.zeros(1, dtype=np.int64)
    order = cells[np.lexsort((cells, -np.abs(lead[cells]), group[cells]))]
    size = np.abs(lead[order])
    begins_class = np.diff(group[order], prepend=-2) != 0
    multiple = _whole_ratios(size, np.flatnonzero(begins_class))
    # The largest column of a class stands for all; without ratios, for those of its own size.
    begins = begins_class | ((multiple == 0) & (np.diff(size, prepend=0.0) != 0))
    cell_heads = order[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    factor = np.zeros(len(group), dtype=np.int64)
    sign = np.sign(lead[order] * lead[cell_heads]).astype(np.int64)
    factor[order] = sign * np.maximum(multiple, 1)
    # Classes are numbered by their representatives, so that the order of the cells survives.
    representatives, index = np.unique(cell_heads, return_inverse=True)
    everywhere = np.zeros(len(group), dtype=np.int64)
    everywhere[order] = index.reshape(-1)
    return CellMap(len(representatives), everywhere, factor), representatives


def _whole_ratios(sizes: Floats, begins: Integers) -> Integers:
    """Whole numbers in proportion to the sizes of each class; 0 where there are none that fit.

    ``begins`` holds the place of the first size of each class.

    >>> _whole_ratios(np.array([6.0, 4.0, 7.5, 2.5, 1.0, np.pi]), np.array([0, 2, 4])).tolist()
    [3, 2, 3, 1, 0, 0]
    """
    lengths = np.diff(begins, append=len(sizes))
    # Ratios are found of weights that are whole in units of 1/1,024 and exact in float64 in these;
    # of other weights, only where the least of a class divides them all.
    sizes = sizes * 1024.0
    is_integer = (sizes == np.rint(sizes)) & (sizes < 2.0**53)
    unit = np.gcd.reduceat(np.where(is_integer, sizes, 1.0).astype(np.int64), begins).astype(
        np.float64
    )
    least = np.minimum.reduceat(sizes, begins)
    unit = np.repeat(np.where(np.logical_and.reduceat(is_integer, begins), unit, least), lengths)
    ratio = np.rint(sizes / unit)
    fits = (ratio * unit == sizes) & (ratio <= LARGEST_FACTOR)
    fits = np.repeat(np.logical_and.reduceat(fits, begins), lengths)
    return np.where(fits, ratio, 0).astype(np.int64)


def reduce_rows(queries: LinearMap) -> Floats:
    """A factor R (k×n, k = rank) with RᵀR = WᵀW: all that a solver needs to know of W.

    >>> from lrm.queries.maps.matrices import DenseMap
    >>> reduce_rows(DenseMap(np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))).shape
    (1, 2)
    """
    if queries.is_known_by_gram:
        cells = queries.shape[1]
        if cells**2 > MEMORY:
            raise ConvergenceError(
                f"{queries.kind} over {cells:,} cells is too large for a strategy of this form; "
                "choose a tree"
            )
        gram = queries.gram()
        if _has_full_rank(queries):
            return np.asarray(la.cholesky(gram, check_finite=False))
        values, vectors = la.eigh(gram, check_finite=False)
        top = np.flatnonzero(values > values[-1] * cells * np.finfo(float).eps)[::-1]
        return np.asarray(np.sqrt(values[top])[:, None] * vectors[:, top].T)
    if queries.shape[0] <= queries.shape[1] and _has_full_rank(queries):
        return queries.dense()
    _, values, basis = la.svd(_few_rows(queries), full_matrices=False, check_finite=False)
    rank = max(1, numerical_rank(values, queries.shape))
    return np.asarray(values[:rank, None] * basis[:rank])


def _has_full_rank(queries: LinearMap) -> bool:
    """Whether known singular values show that the rank is the smaller side, with room."""
    values = queries.known_singular_values()
    # Smallest ratio of singular values that are known in closed form for which a Gram matrix has a
    # Cholesky factor, with digits to spare.
    return values is not None and bool(values[-1] > 1e-6 * values[0])


def reduction_seconds(queries: LinearMap) -> float:
    """About how long ``reduce_rows`` takes on one core: it is one call that cannot be stopped.

    Measured from 256×1,024 to 2,048×2,048: 0.6 to 0.9 ns for each of the k²·n steps of a
    decomposition with k = min(m, n), and a tenth of that for the m·n² of the triangle before it.

    >>> from lrm.queries.maps.matrices import DenseMap
    >>> reduction_seconds(DenseMap(np.zeros((1000, 1000)))) < 1.0
    True
    """
    m, n = queries.shape
    if _has_full_rank(queries):
        return SECONDS_PER_STEP * (0.1 * n**3 if queries.is_known_by_gram or m > n else 0.0)
    if queries.is_known_by_gram:
        return SECONDS_PER_STEP * n**3
    k = min(m, n)
    triangle = 0.1 * m * n * n if m > n else 0.0
    return SECONDS_PER_STEP * (k * k * n + triangle)


def singular_values(queries: LinearMap) -> Floats:
    """The singular values of W above rounding, largest first.

    >>> from lrm.queries.maps.matrices import DenseMap
    >>> singular_values(DenseMap(np.array([[3.0, 0.0], [4.0, 0.0]]))).round(6).tolist()
    [5.0]
    """
    values = la.svdvals(_few_rows(queries), check_finite=False)
    return np.asarray(values[: max(1, numerical_rank(values, queries.shape))])


def _few_rows(queries: LinearMap) -> Floats:
    """A matrix with the same ``WᵀW`` and at most n rows: the triangle of a QR factorisation."""
    m, n = queries.shape
    matrix = queries.dense()
    return matrix if m <= n else la.qr(matrix, mode="r", check_finite=False)[0][:n]


def numerical_rank(values: Floats, shape: tuple[int, ...]) -> int:
    """How many singular values are above ``max(m, n)·2⁻⁵²·λ_1``: those of zeros have rank 0.

    That is the size of the error with which float64 arithmetic finds them, and the rule of
    ``numpy.linalg.matrix_rank`` and of MATLAB [1]_.

    References
    ----------
    .. [1] Golub, Van Loan, "Matrix Computations", 4th ed. 2013, Section 5.4.

    Examples
    --------
    >>> numerical_rank(np.array([3.0, 1.0, 1e-17]), (5, 3)), numerical_rank(np.zeros(1), (1, 9))
    (2, 0)
    """
    least = max(shape) * np.finfo(np.float64).eps * values.max(initial=0.0)
    return int(np.count_nonzero(values > least))
