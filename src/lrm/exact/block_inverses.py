"""L⁺ of strategies with many narrow rows, each within a block of 16 cells, and few wide ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.maps.linear import BLOCK_ENTRIES, CANCELLED, Floats, LeftInverse, LinearMap
from lrm.maps.ranges import chain_blocks

__all__ = ["BLOCK", "BlocksPlusFew", "blocks_plus_few"]

Places = NDArray[np.int64]

BLOCK = 16
"""Cells of a block."""

MOST_WIDE = 4096
"""Largest number of rows that reach beyond one block."""

MOST_ENTRIES = 1 << 26
"""Wide rows × cells up to which they are written out as an array (512 MB)."""


@dataclass(frozen=True, eq=False)
class BlocksPlusFew(LeftInverse):
    """L = [narrow; wide]: ``LᵀL`` is block diagonal plus few rows, by the Woodbury identity.

    Parameters
    ----------
    narrow, wide
        Rows of L, and ``order`` their numbers: first those of the narrow ones.
    inverse
        The inverse blocks K⁻¹ of ``narrowᵀ·narrow``, blocks × 16 × 16.
    factor
        Lower Cholesky factor of ``I + wide·K⁻¹·wideᵀ``.
    """

    narrow: sp.csr_array
    wide: sp.csr_array
    order: Places
    inverse: Floats
    factor: Floats

    def _by_blocks(self, right: Floats) -> Floats:
        """``K⁻¹ @ right``."""
        shape = (len(self.inverse), BLOCK, right.shape[1])
        return np.asarray((self.inverse @ right.reshape(shape)).reshape(right.shape))

    def _solve_gram(self, right: Floats) -> Floats:
        scaled = self._by_blocks(right)
        inner = la.cho_solve((self.factor, True), self.wide @ scaled, check_finite=False)
        return scaled - self._by_blocks(np.asarray(self.wide.T @ inner))

    def _times(self, rows: Floats) -> Floats:
        inner = self._solve_gram(np.ascontiguousarray(rows.T))
        result = np.empty((len(rows), len(self.order)))
        result[:, self.order] = np.vstack([self.narrow @ inner, self.wide @ inner]).T
        return result

    def rows_times(self, rows: Floats) -> Floats:
        first = self._times(rows)
        return first + self._times(rows - self._transposed(first.T).T)

    def _transposed(self, measurements: Floats) -> Floats:
        """``Lᵀ @ measurements``."""
        placed = measurements[self.order]
        count = self.narrow.shape[0]
        return np.asarray(self.narrow.T @ placed[:count] + self.wide.T @ placed[count:])

    def estimate(self, measurements: Floats) -> Floats:
        return self._solve_gram(self._transposed(measurements[:, None]))[:, 0]

    @cached_property
    def _whitened(self) -> Floats:
        """``C⁻¹·wide·K⁻¹`` (wide rows × cells), C the Cholesky factor."""
        scaled = self._by_blocks(np.asarray(self.wide.T.toarray()))
        return np.asarray(
            la.solve_triangular(self.factor, scaled.T, lower=True, check_finite=False)
        )

    def squared_norm(self, queries: LinearMap) -> float | None:
        chain = queries.gram_chain()
        if chain is None:
            return None
        whole = norm = float(np.vdot(chain_blocks(*chain, BLOCK), self.inverse))
        step = max(1, BLOCK_ENTRIES // self.wide.shape[1])
        for start in range(0, self.wide.shape[0], step):
            columns = self._whitened[start : start + step].T
            norm -= float(np.vdot(columns, queries.gram_times(columns)))
        return None if not norm > CANCELLED * whole else norm

    def row_squared_norms(self, queries: LinearMap) -> Floats | None:
        ends = queries.range_ends()
        if ends is None:
            return None
        whole = self._range_energies(*ends)
        norms = whole.copy()
        step = max(1, BLOCK_ENTRIES // max(queries.shape))
        for start in range(0, self.wide.shape[0], step):
            norms -= (queries.apply(self._whitened[start : start + step].T) ** 2).sum(axis=1)
        return norms if np.all(norms > CANCELLED * whole) else None

    def _range_energies(self, first: Places, last: Places) -> Floats:
        """``wᵀK⁻¹w`` for the ranges [first, last]: whole blocks, and the two ends."""
        corner = np.zeros((len(self.inverse), BLOCK + 1, BLOCK + 1))
        corner[:, 1:, 1:] = self.inverse.cumsum(axis=1).cumsum(axis=2)
        whole = np.concatenate([[0.0], np.cumsum(corner[:, -1, -1])])

        def part(block: Places, start: Places, stop: Places) -> Floats:
            both = corner[block, stop, stop] + corner[block, start, start]
            return np.asarray(both - corner[block, start, stop] - corner[block, stop, start])

        low, high = first // BLOCK, last // BLOCK
        start, stop = first % BLOCK, last % BLOCK + 1
        inside = part(low, start, stop)
        full, none = np.full_like(start, BLOCK), np.zeros_like(start)
        across = part(low, start, full) + part(high, none, stop) + whole[high] - whole[low + 1]
        return np.asarray(np.where(low == high, inside, across), dtype=np.float64)


def blocks_plus_few(matrix: sp.csr_array) -> BlocksPlusFew | None:
    """The form for a strategy whose rows are nearly all within one block of 16 cells."""
    cells = matrix.shape[1]
    busy = np.flatnonzero(np.diff(matrix.indptr))
    if cells % BLOCK or not len(busy):
        return None
    block = matrix.indices // BLOCK
    starts = matrix.indptr[busy]
    is_wide = np.zeros(matrix.shape[0], dtype=bool)
    is_wide[busy] = np.minimum.reduceat(block, starts) != np.maximum.reduceat(block, starts)
    wide = np.flatnonzero(is_wide)
    if not 0 < len(wide) <= MOST_WIDE or len(wide) * cells > MOST_ENTRIES:
        return None
    narrow = np.flatnonzero(~is_wide)
    local, few = sp.csr_array(matrix[narrow]), sp.csr_array(matrix[wide])
    gram = sp.coo_array(local.T @ local)
    blocks = np.zeros((cells // BLOCK, BLOCK, BLOCK))
    blocks[gram.row // BLOCK, gram.row % BLOCK, gram.col % BLOCK] = gram.data
    inverse = np.linalg.inv(blocks)
    scaled = (inverse @ few.T.toarray().reshape(len(inverse), BLOCK, -1)).reshape(cells, -1)
    inner = np.eye(len(wide)) + few @ scaled
    factor = la.cholesky(inner, lower=True, check_finite=False)
    return BlocksPlusFew(local, few, np.concatenate([narrow, wide]), inverse, factor)
