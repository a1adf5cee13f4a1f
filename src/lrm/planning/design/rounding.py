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

See ``docs/explanation/exact-noise.md``.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from lrm.errors import CountsError
from lrm.planning.design.cells import CellMap
from lrm.planning.design.integers import CARRIER_BITS
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import FlatReconstruction, Reconstruction
from lrm.privacy.norms import L1, Norm
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.whole import LARGEST_WHOLE

DEFAULT_MAX_RECORDS = 1 << 32
"""Records that a plan admits by default (4.3 billion): leaves 30 bits for the strategy."""

FINE_MAX_RECORDS = 1 << 27
"""Records where exactness rests on the number of bits (134 million): leaves 35 bits."""

FINEST_MAX_RECORDS = 1 << 22
"""Records of badly conditioned strategies (4 million): leaves 40 bits."""

RESIDUAL_WANTED = 5e-10
"""Relative residual above which more bits are spent on exactness."""


def quantise(  # noqa: PLR0913 - what a strategy is, and what it is for
    strategy: LinearMap,
    cell_map: CellMap,
    queries: LinearMap,
    *,
    reconstruction: LinearMap | None = None,
    max_records: int | None = None,
    norm: Norm | None = None,
) -> tuple[Measured, Reconstruction]:
    """Round a strategy to integers without losing what it can reconstruct; and how it is.

    Parameters
    ----------
    strategy
        L in real numbers, over merged cells.
    cell_map
        How cells are merged before they are measured.
    queries
        The workload over the same merged cells.
    reconstruction
        B, where it is not the least-squares one ``W·L⁺``.
    max_records
        The declared largest number of records of a table that the plan will meet.
    norm
        Which norm of the columns is 1 before rounding: L1 by default.
    """
    norm = norm or L1()
    size = _column_norm(strategy, cell_map, norm)
    if not size > 0:
        return _nothing(cell_map, queries, max_records, norm)
    matrix = strategy.compact(drop_idle=reconstruction is None)
    if reconstruction is not None:
        fine = most_bits(max_records or FINE_MAX_RECORDS)
        factor = 2.0**fine / size
        if queries.is_integer():  # a power of two keeps whole numbers whole: nothing is rounded
            factor = 2.0 ** np.floor(np.log2(factor))
        final = _admitting(matrix.rounded(factor), cell_map, fine, max_records, norm)
        given = reconstruction.scaled(2.0**fine / factor)
        return final, FlatReconstruction(queries, final.real_map, None, given)
    coarse = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
    # An entry that is rounded up must leave room for the records, too, in the largest merged cell.
    factor = 2.0**coarse
    if max_records is not None:
        factor -= float(cell_map.largest_factors().max(initial=0)) / 2
    final = _admitting(matrix.rounded(factor / size), cell_map, coarse, max_records, norm)
    if matrix.shape[0] >= matrix.shape[1]:
        inverse = final.left_inverse()
        if inverse.determines_cells:
            return final, FlatReconstruction(queries, final.real_map, inverse)
    return _row_space_route(matrix, size, cell_map, queries, max_records, norm)


def _nothing(
    cell_map: CellMap, queries: LinearMap, max_records: int | None, norm: Norm
) -> tuple[Measured, Reconstruction]:
    """For a workload of zeros: one cell is measured, which no answer looks at."""
    one_cell = SparseMap(sp.eye_array(1, cell_map.merged_size, format="csr"))
    every = CellMap.trivial(cell_map.size)
    if cell_map.merged_size < cell_map.size:
        every = CellMap(cell_map.merged_size, cell_map.index, every.factor)
    final = _admitting(one_cell.rounded(2.0**30), every, 30, max_records, norm)
    return final, final.reconstruct(queries)


def _row_space_route(  # noqa: PLR0913, PLR0917 - a strategy, what it is for, and its norm
    matrix: LinearMap,
    size: float,
    cell_map: CellMap,
    queries: LinearMap,
    max_records: int | None,
    norm: Norm,
) -> tuple[Measured, Reconstruction]:
    """Ways 2 and 3: strategies that do not determine every merged cell."""
    dense = matrix.dense() / size
    combination = integer_combination(dense, queries)
    if combination is not None:
        base, mix, rank = combination
        bits = most_bits(max_records or DEFAULT_MAX_RECORDS)
        rounded = np.rint(mix * 2.0**bits) @ base
        if np.abs(rounded).max() > 2.0**bits:  # rounded up, and then there is no room for records
            most_added = np.abs(base).sum(axis=0).max() / 2
            rounded = np.rint(mix * (2.0**bits - most_added)) @ base
        if np.abs(rounded).max() < LARGEST_WHOLE:
            final = _admitting(DenseMap(rounded), cell_map, bits, max_records, norm, rank)
            return final, final.reconstruct(queries)
    for most in (max_records,) if max_records else (FINE_MAX_RECORDS, FINEST_MAX_RECORDS):
        bits = most_bits(most)
        final = _admitting(matrix.rounded(2.0**bits / size), cell_map, bits, max_records, norm)
        reconstruction = final.reconstruct(queries)
        if reconstruction.relative_residual < RESIDUAL_WANTED:
            return final, reconstruction
    return anchored(dense, cell_map, queries, max_records, norm)


def anchored(
    dense: Floats, cell_map: CellMap, queries: LinearMap, max_records: int | None, norm: Norm
) -> tuple[Measured, Reconstruction]:
    """Way 4: every cell measured a little, so that the strategy determines all of them.

    For batches whose queries differ by many orders of magnitude: the smallest would be
    rebuilt from the last bits of the largest. Costs twice the anchor of the error; of several
    anchors, the smallest is taken that float64 can invert.
    """
    each = sp.eye_array(dense.shape[1], format="csr")
    bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
    # Shares of the sensitivity that measure cells.
    for anchor in (2.0**-14, 2.0**-12, 2.0**-10):
        matrix = SparseMap(sp.csr_array(sp.vstack([(1 - anchor) * dense, anchor * each])))
        final = _admitting(matrix.rounded(2.0**bits), cell_map, bits, max_records, norm)
        reconstruction = final.reconstruct(queries)
        if reconstruction.relative_residual < RESIDUAL_WANTED:
            break
    return final, reconstruction


def integer_combination(strategy: Floats, queries: LinearMap) -> tuple[Floats, Floats, int] | None:
    """Integer rows ``base`` of W and ``mix`` with ``strategy = mix·base``, where there are."""
    if not queries.is_integer():
        return None
    rows = queries.dense()
    independent = independent_rows(rows)
    # Independent rows are enough, and round less than all of them where there are many.
    base = rows[independent] if len(rows) > rows.shape[1] else rows
    mix = la.lstsq(base.T, strategy.T, check_finite=False)[0].T
    gap = np.abs(mix @ base - strategy).max()
    return (base, mix, len(independent)) if gap < 1e-9 else None


def independent_rows(rows: Floats) -> Integers:
    """The numbers of linearly independent rows that span all of them."""
    _, corner, order = la.qr(rows.T, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(np.diag(corner))
    return np.sort(order[: int(np.sum(size > size[0] * 1e-10))])


def _column_norm(matrix: LinearMap, cell_map: CellMap, norm: Norm) -> float:
    factors = cell_map.largest_factors().astype(np.float64)
    sums = matrix.column_power_sums(norm.order)
    norms = np.sqrt(sums) if norm.order == 2 else sums
    return float((norms * factors).max(initial=0.0))


def most_bits(max_records: int) -> int:
    """The binary exponent that leaves room for this number of records, and for noise.

    Noise is as fine as the strategy: fewer records than the least that plans declare would leave
    no room for that of small ε.
    """
    return CARRIER_BITS - int(max(max_records, FINEST_MAX_RECORDS) - 1).bit_length()


def _admitting(  # noqa: PLR0913, PLR0917 - a strategy and what it must admit
    rounded: LinearMap,
    cell_map: CellMap,
    bits: int,
    max_records: int | None,
    norm: Norm,
    row_rank: int | None = None,
) -> Measured:
    """The final integers, if they admit as many records as were declared."""
    final = Measured.of_cells(rounded, cell_map, bits, row_rank, norm)
    if max_records is not None and final.max_records < max_records:
        raise CountsError(
            f"a table of up to {max_records:,} records needs more than 62 bits with this strategy, "
            f"which admits {final.max_records:,}; declare a smaller max_records"
        )
    return final
