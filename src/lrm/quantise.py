"""From a strategy in real numbers to one in integers, whose sensitivity is exact.

The strategy is normalised to sensitivity 1, multiplied by 2^q and rounded, and from then on
it *is* the rounded one: sensitivity is measured on its integers and the reconstruction
is computed from them. Rounding must not break ``W = B·L``:

1. A strategy of full column rank has nothing to lose: ``B = W·L⁺`` is exact for any rounding.
2. Where W is integer and ``L = X·W``, X is rounded instead: ``L = X_q·W`` keeps the row
   space exactly.
3. Otherwise q is made large, and how far one record can move an answer through the residual
   is measured and stated with the plan; where no q is large enough, every cell is
   measured a little besides, which is way 1 again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import CountsError, WorkloadError
from lrm.maps.inverses import LeftInverse, Spectral, left_inverse
from lrm.maps.levels import LevelMap
from lrm.maps.linear import DenseMap, Floats, LinearMap, SparseMap
from lrm.maps.whole import LARGEST_WHOLE
from lrm.privacy.budget import Noise
from lrm.reduce import CellMap
from lrm.strategies.base import Strategy

__all__ = ["DEFAULT_MAX_RECORDS", "IntegerStrategy", "quantise", "unit_strategy"]

CARRIER_BITS = 62
"""Every true measurement must stay below 2^62: half of what a signed 64-bit integer holds."""

DEFAULT_MAX_RECORDS = 1 << 32
"""Records that a plan admits by default (4.3 billion): leaves 30 bits for the strategy."""

FINE_MAX_RECORDS = 1 << 27
"""The same where exactness rests on the number of bits (134 million): leaves 35 bits."""

FINEST_MAX_RECORDS = 1 << 22
"""The same for badly conditioned strategies (4 million): leaves 40 bits."""

ANCHOR = 2.0**-10
"""Share of the sensitivity that measures cells, where nothing else makes a strategy exact."""

RESIDUAL_WANTED = 5e-10
"""Relative residual above which more bits are spent on exactness."""

SPARSE_BELOW = 0.25
"""A strategy with a smaller share of non-zeros is kept sparse."""


@dataclass(frozen=True, eq=False)
class IntegerStrategy:
    """What is really measured: integers on merged integer counts.

    Sensitivity and the largest number of records are read off the integers themselves,
    here and nowhere else, whether they were just rounded or come from a file.

    Parameters
    ----------
    matrix
        L·2^bits as whole numbers below 2^52 in size, r × merged cells.
    cells
        How counts are merged before they are measured.
    bits
        The binary exponent of the scale.
    row_rank
        The rank of the matrix, where it is known and below its number of columns.
    """

    matrix: LinearMap
    cells: CellMap
    bits: int
    row_rank: int | None = None

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        if columns != self.cells.merged_size:
            raise WorkloadError(
                f"the strategy covers {columns} merged cells, but there are "
                f"{self.cells.merged_size}"
            )
        if not 0 <= self.bits <= CARRIER_BITS:
            raise WorkloadError(f"bits must lie between 0 and {CARRIER_BITS}, not {self.bits}")
        if self.row_rank is not None and not 1 <= self.row_rank <= min(rows, columns):
            raise WorkloadError(f"a strategy of shape {rows}×{columns} has no rank {self.row_rank}")
        if self.sensitivity < 1:
            raise WorkloadError("the strategy measures nothing: all its weights are 0")

    @property
    def cell_count(self) -> int:
        """Number of original cells, which counts are given for."""
        return self.cells.size

    def sensitivity_for(self, noise: str) -> float:
        """Sensitivity in the norm that ``noise`` asks for, on the integers."""
        if noise == "laplace":
            return float(self.sensitivity)
        return math.sqrt(self.squared_l2_sensitivity)

    @cached_property
    def sensitivity(self) -> int:
        """Largest L1 norm of a column over the original cells: an exact integer."""
        return self._largest_column(1)

    @cached_property
    def squared_l2_sensitivity(self) -> int:
        """Largest squared L2 norm of a column over the original cells: an exact integer."""
        return self._largest_column(2)

    def _largest_column(self, power: int) -> int:
        """The most that one record moves ``Σ |measurement|^power`` by, factors included."""
        factors = self.cells.largest_factors()
        return self.matrix.integer_column_sums(power).largest(factors**power)

    @cached_property
    def max_records(self) -> int:
        """With at most this many records no measurement leaves 62 bits."""
        factors = self.cells.largest_factors()
        # Below 2^52·2^10: merged counts themselves count too, where nothing measures them.
        largest = int((np.maximum(self.matrix.integer_column_peaks(), 1) * factors).max())
        return (1 << CARRIER_BITS) // max(largest, 1)

    def measure(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true measurements, in exact 64-bit integers (see ``max_records``)."""
        return self.matrix.apply_exactly(self.cells.merge_counts(counts))

    def measure_clamped(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same with integers of any size, each clamped to 62 bits: slow, and safe."""
        merged = [0] * self.cells.merged_size
        for index, factor, count in zip(self.cells.index, self.cells.factor, counts, strict=True):
            merged[int(index)] += int(factor) * int(count)
        rows = self.matrix.sparse()
        limit = 1 << CARRIER_BITS
        clamped = []
        for start, stop in pairwise(rows.indptr.tolist()):
            entries = zip(rows.data[start:stop], rows.indices[start:stop], strict=True)
            exact = sum(int(weight) * merged[int(cell)] for weight, cell in entries)
            clamped.append(max(-limit, min(limit, exact)))
        return np.array(clamped, dtype=np.int64)

    def real_matrix(self) -> Floats | sp.csr_array:
        """L over the original cells, in units where a record counts 1: L_q·M / 2^bits."""
        whole = self.matrix.sparse() @ self.cells.matrix()
        scaled = whole * 2.0**-self.bits
        small = scaled.shape[0] * scaled.shape[1] <= 1 << 24
        return np.asarray(scaled.toarray()) if small else sp.csr_array(scaled)


@dataclass(frozen=True, eq=False)
class Quantised:
    """An integer strategy, and its left inverse where B is ``W·L⁺``."""

    strategy: IntegerStrategy
    inverse: LeftInverse | None
    reconstruction: LinearMap | None

    def residual(self, queries: LinearMap) -> float:
        """``|W − W·L⁺·L|`` beside the largest weight of the same query, at its worst."""
        assert self.inverse is not None  # noqa: S101 - asked of least-squares routes only
        rows = queries.dense()
        unit = unit_strategy(self.strategy.matrix, self.strategy.bits)
        gap = rows - unit.apply_transpose(self.inverse.rows_times(rows).T).T
        sizes = np.abs(rows).max(axis=1, keepdims=True)
        return float((np.abs(gap) / np.where(sizes, sizes, 1)).max())


def quantise(
    strategy: Strategy,
    queries: LinearMap,
    max_records: int | None = None,
    noise: Noise = "laplace",
) -> Quantised:
    """Round ``strategy`` to integers without losing what it can reconstruct.

    Parameters
    ----------
    strategy
        L in real numbers, over merged cells.
    queries
        The workload over the same merged cells.
    max_records
        The declared largest number of records of a table that the plan will meet.
    noise
        Which norm of the columns is 1 before rounding: L1 (Laplace) or L2 (Gaussian).
    """
    norm = _column_norm(strategy.matrix, strategy.cells, noise)
    if not norm > 0:  # a workload of zeros: measure one cell, which no answer will look at
        one_cell = SparseMap(sp.eye_array(1, strategy.matrix.shape[1], format="csr"))
        cells = CellMap.trivial(strategy.cells.size)
        if strategy.cells.merged_size < cells.size:
            cells = CellMap(strategy.cells.merged_size, strategy.cells.index, cells.factor)
        final = _measured(_round(one_cell, 2.0**30), cells, 30, max_records)
        return Quantised(final, inverse_of(final), None)
    matrix = _compact(strategy.matrix, drop_idle=strategy.reconstruction is None)
    if strategy.reconstruction is not None:
        fine = _most_bits(max_records or FINE_MAX_RECORDS)
        factor = 2.0**fine / norm
        if queries.is_integer():  # a power of two keeps whole numbers whole: nothing is rounded
            factor = 2.0 ** np.floor(np.log2(factor))
        final = _measured(_round(matrix, factor), strategy.cells, fine, max_records)
        return Quantised(final, None, _scale(strategy.reconstruction, 2.0**fine / factor))
    coarse = min(30, _most_bits(max_records or DEFAULT_MAX_RECORDS))
    final = _measured(_round(matrix, 2.0**coarse / norm), strategy.cells, coarse, max_records)
    if _determines_cells(matrix):
        inverse = inverse_of(final)
        if not isinstance(inverse, Spectral):
            return Quantised(final, inverse, None)
    return _row_space_route(strategy, matrix, norm, queries, max_records)


def _determines_cells(matrix: LinearMap) -> bool:
    """Whether the strategy has enough rows to determine every merged cell."""
    return isinstance(matrix, LevelMap) or matrix.shape[0] >= matrix.shape[1]


def _row_space_route(
    strategy: Strategy, matrix: LinearMap, norm: float, queries: LinearMap, max_records: int | None
) -> Quantised:
    """Ways 2 and 3: strategies that do not determine every merged cell."""
    dense = matrix.dense() / norm
    combination = _integer_combination(dense, queries)
    if combination is not None:
        base, mix, rank = combination
        bits = _most_bits(max_records or DEFAULT_MAX_RECORDS)
        whole = np.rint(mix * 2.0**bits) @ base
        if np.abs(whole).max() < LARGEST_WHOLE:
            final = _measured(DenseMap(whole), strategy.cells, bits, max_records, rank)
            return Quantised(final, inverse_of(final), None)
    for most in (max_records,) if max_records else (FINE_MAX_RECORDS, FINEST_MAX_RECORDS):
        bits = _most_bits(most)
        final = _measured(_round(matrix, 2.0**bits / norm), strategy.cells, bits, max_records)
        result = Quantised(final, inverse_of(final), None)
        if result.residual(queries) < RESIDUAL_WANTED:
            return result
    return _anchored(strategy, dense, max_records)


def _anchored(strategy: Strategy, dense: Floats, max_records: int | None) -> Quantised:
    """Way 4: every cell measured a little, so that the strategy determines all of them.

    For batches whose queries differ by many orders of magnitude: the smallest would be
    rebuilt from the last bits of the largest. Costs 2·ANCHOR of the error, and loses nothing.
    """
    cells = sp.eye_array(dense.shape[1], format="csr")
    matrix = SparseMap(sp.csr_array(sp.vstack([(1 - ANCHOR) * dense, ANCHOR * cells])))
    bits = min(30, _most_bits(max_records or DEFAULT_MAX_RECORDS))
    final = _measured(_round(matrix, 2.0**bits), strategy.cells, bits, max_records)
    return Quantised(final, inverse_of(final), None)


def inverse_of(final: IntegerStrategy) -> LeftInverse:
    """The left inverse of the final integers, in units where a record counts about 1."""
    matrix = unit_strategy(final.matrix, final.bits)
    return left_inverse(matrix, rounding=2.0**-final.bits, rank=final.row_rank)


def _integer_combination(strategy: Floats, queries: LinearMap) -> tuple[Floats, Floats, int] | None:
    """Integer rows ``base`` of W and ``mix`` with ``strategy = mix·base``, where there are."""
    if not queries.is_integer():
        return None
    rows = queries.dense()
    _, corner, order = la.qr(rows.T, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(np.diag(corner))
    rank = int(np.sum(size > size[0] * 1e-10))
    # Independent rows are enough, and round less than all of them where there are many.
    base = rows[np.sort(order[:rank])] if len(rows) > rows.shape[1] else rows
    mix = la.lstsq(base.T, strategy.T, check_finite=False)[0].T
    gap = np.abs(mix @ base - strategy).max()
    return (base, mix, rank) if gap < 1e-9 else None


def _compact(matrix: LinearMap, *, drop_idle: bool) -> LinearMap:
    """Keep what is mostly zeros sparse, and drop rows of zeros where nobody counts on them."""
    if isinstance(matrix, LevelMap):
        return matrix
    compact = matrix.sparse()
    busy = np.flatnonzero(np.diff(compact.indptr))
    if drop_idle and len(busy) < compact.shape[0]:
        compact = compact[busy]
    if compact.nnz < SPARSE_BELOW * compact.shape[0] * compact.shape[1]:
        return SparseMap(compact)
    return DenseMap(compact.toarray())


def _column_norm(matrix: LinearMap, cells: CellMap, noise: Noise) -> float:
    factors = cells.largest_factors().astype(np.float64)
    if noise == "laplace":
        norms = matrix.column_absolute_sums()
    else:
        norms = np.sqrt(matrix.column_squared_sums())
    return float((norms * factors).max(initial=0.0))


def _round(matrix: LinearMap, factor: float) -> LinearMap:
    """``factor`` times the matrix, rounded to whole numbers."""
    if isinstance(matrix, LevelMap):
        return matrix.with_weights(tuple(float(np.rint(w * factor)) for w in matrix.weights))
    if isinstance(matrix, SparseMap):
        data = sp.csr_array(matrix.matrix, copy=True)
        data.data = np.rint(data.data * factor)
        return SparseMap(data)
    return DenseMap(np.rint(matrix.dense() * factor))


def _scale(matrix: LinearMap, factor: float) -> LinearMap:
    if isinstance(matrix, SparseMap):
        return SparseMap(sp.csr_array(matrix.matrix * factor))
    return DenseMap(matrix.dense() * factor)


def unit_strategy(rounded: LinearMap, bits: int) -> LinearMap:
    """The rounded strategy back in units where a record counts about 1."""
    if isinstance(rounded, LevelMap):
        return rounded.with_weights(tuple(weight * 2.0**-bits for weight in rounded.weights))
    return _scale(rounded, 2.0**-bits)


def _most_bits(max_records: int) -> int:
    """The binary exponent that leaves room for so many records, and for float64's digits."""
    room = CARRIER_BITS - max(0, int(max_records - 1).bit_length())
    return min(room, LARGEST_WHOLE.bit_length() - 2)


def _measured(
    rounded: LinearMap,
    cells: CellMap,
    bits: int,
    max_records: int | None,
    row_rank: int | None = None,
) -> IntegerStrategy:
    """The final integers, if they admit as many records as were declared."""
    final = IntegerStrategy(rounded, cells, bits, row_rank)
    if max_records is not None and final.max_records < max_records:
        raise CountsError(
            f"a table of up to {max_records:,} records needs more than 62 bits with this strategy, "
            f"which admits {final.max_records:,}; declare a smaller max_records"
        )
    return final
