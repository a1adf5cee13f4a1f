"""L⁺ of the identity and thousands of rows that each meet only a few of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.maps.linear import BLOCK_ENTRIES, CANCELLED, Floats, LeftInverse, LinearMap

__all__ = ["DiagonalPlusLocal", "diagonal_plus_local", "inverse_band"]

LEAST_SIZE = 32
"""Rows of a block: smaller blocks take no less time."""

LEAST_ROWS = 128
"""Fewer rows are inverted as an array."""

MOST_SIZE = 2048
"""Larger blocks take too much memory."""

MOST_WEIGHTS = 1 << 28
"""Weights of queries that are multiplied with the rows one by one."""

NARROW = 4
"""How many times more rows there must be than the bandwidth of their products."""


@dataclass(frozen=True, eq=False)
class DiagonalPlusLocal(LeftInverse):
    """L = [D; Θ] with D diagonal and ``M = I + Θ·D⁻²·Θᵀ`` banded, by the Woodbury identity.

    Parameters
    ----------
    order
        Rows of L that form D, in the order of the cells, then the rows of Θ.
    diagonal, extra
        D and Θ.
    inner
        M.
    factor
        Its Cholesky factor in the band form of LAPACK, upper.
    """

    order: NDArray[np.int64]
    diagonal: Floats
    extra: sp.csr_array
    inner: sp.csr_array
    factor: Floats

    def row_squared_norms(self, queries: LinearMap) -> Floats | None:
        """``wᵀD⁻²w − vᵀM⁻¹v`` with ``v = ΘD⁻²w``; what counts of M⁻¹ is near its diagonal."""
        if queries.entry_count > MOST_WEIGHTS:
            return None
        whole = queries.squared().apply(self.diagonal**-2)
        V = sp.csr_array(queries.sparse() @ (self.extra * self.diagonal**-2).T)
        V.sort_indices()
        busy = np.flatnonzero(np.diff(V.indptr))
        spans = V.indices[V.indptr[busy + 1] - 1] - V.indices[V.indptr[busy]]
        size = max(LEAST_SIZE, len(self.factor), int(spans.max(initial=0)) + 1)
        if size > MOST_SIZE:
            return None
        near = inverse_band(self.inner, size)
        block = V.indices[V.indptr[busy]] // size
        norms = whole.copy()
        step = max(1, BLOCK_ENTRIES // (2 * size))
        for number in np.unique(block):
            asked = busy[block == number]
            for start in range(0, len(asked), step):
                some = asked[start : start + step]
                part = V[some][:, number * size : (number + 2) * size].toarray()
                inverse = near[number, : part.shape[1], : part.shape[1]]
                norms[some] -= np.einsum("ij,ij->i", part @ inverse, part)
        return None if np.any(norms < CANCELLED * whole) else norms

    def _solve_gram(self, right: Floats) -> Floats:
        scaled = right / self.diagonal[:, None] ** 2
        inner = la.cho_solve_banded((self.factor, False), self.extra @ scaled, check_finite=False)
        return np.asarray(scaled - (self.extra.T @ inner) / self.diagonal[:, None] ** 2)

    def _transposed(self, placed: Floats) -> Floats:
        """``Lᵀ`` times measurements in the order of D and Θ."""
        n = len(self.diagonal)
        return np.asarray(placed[:n] * self.diagonal[:, None] + self.extra.T @ placed[n:])

    def _times(self, right: Floats) -> Floats:
        inner = self._solve_gram(right)
        return np.vstack([inner * self.diagonal[:, None], self.extra @ inner])

    def rows_times(self, rows: Floats) -> Floats:
        right = np.ascontiguousarray(rows.T)
        placed = self._times(right)
        placed += self._times(right - self._transposed(placed))
        result = np.empty((len(rows), len(self.order)))
        result[:, self.order] = placed.T
        return result

    def estimate(self, measurements: Floats) -> Floats:
        return self._solve_gram(self._transposed(measurements[self.order][:, None]))[:, 0]


def diagonal_plus_local(
    matrix: sp.csr_array, owner: NDArray[np.int64], others: NDArray[np.int64]
) -> DiagonalPlusLocal | None:
    """The form for a strategy with a row for each cell alone, where the others are local.

    Parameters
    ----------
    matrix
        L.
    owner
        For each cell a row that holds this cell alone.
    others
        All other rows.
    """
    extra = sp.csr_array(matrix[others])
    # Rows that share a cell are neighbours in any order: a bound on the bandwidth.
    if len(others) < LEAST_ROWS or NARROW * np.bincount(extra.indices, minlength=1).max() > len(
        others
    ):
        return None
    lengths = np.diff(extra.indptr)
    row = np.repeat(np.arange(len(others)), lengths)
    middle = np.bincount(row, extra.indices, minlength=len(others)) / np.maximum(lengths, 1)
    order = np.argsort(middle, kind="stable")
    extra, others = sp.csr_array(extra[order]), others[order]
    diagonal = np.asarray(matrix[owner].sum(axis=1)).ravel()
    inner = sp.csr_array((extra * diagonal**-2) @ extra.T + sp.eye_array(len(others)))
    entries = sp.coo_array(sp.triu(inner))
    band = int((entries.col - entries.row).max())
    if NARROW * band > len(others):
        return None
    upper = np.zeros((band + 1, len(others)))
    upper[band + entries.row - entries.col, entries.col] = entries.data
    factor = la.cholesky_banded(upper, check_finite=False)
    return DiagonalPlusLocal(np.concatenate([owner, others]), diagonal, extra, inner, factor)


def inverse_band(matrix: sp.csr_array, size: int) -> Floats:
    """The entries of ``matrix⁻¹`` near the diagonal: of each block of rows and the next one.

    The matrix must be symmetric and positive definite, and its bandwidth at most ``size``, the
    number of rows of a block. The result is blocks × 2·size × 2·size, the identity past the end.
    By block elimination forth and back, in O(rows × size²).

    >>> M = sp.diags_array([[1.0, 1.0], [3.0, 3.0, 3.0], [1.0, 1.0]], offsets=[-1, 0, 1])
    >>> near = inverse_band(sp.csr_array(M), 2)[0, :3, :3]
    >>> bool(np.allclose(near, np.linalg.inv(M.toarray())))
    True
    """
    rows = matrix.shape[0]
    count = -(-rows // size)
    entries = sp.coo_array(matrix)
    block = entries.row // size
    upper = entries.col >= block * size
    block, row, col = block[upper], entries.row[upper] % size, entries.col[upper]
    given = np.zeros((count + 1, size, 2 * size))  # each with the one on its right
    given[block, row, col - block * size] = entries.data[upper]
    tail = np.arange(rows, (count + 1) * size)
    given[tail // size, tail % size, tail % size] = 1.0
    mixed, schur = np.zeros((count, size, size)), given[:, :, :size]
    for i in range(count):
        mixed[i] = np.linalg.solve(schur[i], given[i, :, size:])
        schur[i + 1] -= given[i, :, size:].T @ mixed[i]
    own = np.linalg.inv(schur)
    near = np.empty((count, 2 * size, 2 * size))
    for i in range(count - 1, -1, -1):
        beside = -mixed[i] @ own[i + 1]
        own[i] -= beside @ mixed[i].T
        near[i] = np.block([[own[i], beside], [beside.T, own[i + 1]]])
    return near
