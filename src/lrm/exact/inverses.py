"""Left inverses of strategies: from measurements back to queries, B = W·L⁺.

Where the strategy has no closed form of its own (`LinearMap.known_inverse`), one of three forms
is chosen by its shape: a diagonal and few rows, normal equations, or singular values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import ConvergenceError
from lrm.exact.block_inverses import BlocksPlusFew, blocks_plus_few
from lrm.exact.local_inverses import DiagonalPlusLocal, diagonal_plus_local
from lrm.maps.linear import BLOCK_ENTRIES, CANCELLED, Floats, LeftInverse, LinearMap

__all__ = ["DiagonalPlusFew", "NormalEquations", "Spectral", "left_inverse"]

DENSE_CELLS = 4096
"""Largest n for which an n×n array may be factored."""

DENSE_ENTRIES = 1 << 27
"""Largest r·n of a strategy that is inverted as an array (1 GiB)."""

SPARSE_SHARE = 0.1
"""Rows with a smaller share of entries are kept sparse."""

WELL_CONDITIONED = 1e-10
"""Smallest reciprocal condition of LᵀL for which normal equations are trusted.

With one step of refinement the residual is then about 1e-6² of W or less.
"""


@dataclass(frozen=True, eq=False)
class NormalEquations(LeftInverse):
    """``(LᵀL)⁻¹Lᵀ`` by Cholesky, for L of full column rank."""

    matrix: Floats
    factor: tuple[Floats, bool]

    def _once(self, rows: Floats) -> Floats:
        return np.asarray(la.cho_solve(self.factor, rows.T, check_finite=False).T @ self.matrix.T)

    def rows_times(self, rows: Floats) -> Floats:
        result = self._once(rows)
        return result + self._once(rows - result @ self.matrix)

    def estimate(self, measurements: Floats) -> Floats:
        def solve(right: Floats) -> Floats:
            return np.asarray(la.cho_solve(self.factor, self.matrix.T @ right, check_finite=False))

        first = solve(measurements)
        return first + solve(measurements - self.matrix @ first)


@dataclass(frozen=True, eq=False)
class DiagonalPlusFew(LeftInverse):
    """L = [D; Θ] with D diagonal and few rows Θ, by the Woodbury identity."""

    order: NDArray[np.int64]
    """Rows of L that form D, in the order of the cells, then the rows of Θ."""
    diagonal: Floats
    extra: Floats | sp.csr_array
    """Θ, sparse where few of its entries are not 0."""
    factor: tuple[Floats, bool]
    """Cholesky factor of I + Θ D⁻² Θᵀ."""

    @property
    def is_closed_form(self) -> bool:
        """Whether every cell is measured alone, and nothing else is."""
        return not self.extra.shape[0]

    def row_squared_norms(self, queries: LinearMap) -> Floats | None:
        """``wᵀD⁻²w − ‖C⁻¹ΘD⁻²w‖²`` of each query w, C the Cholesky factor: O(m·p) at least."""
        whole = queries.squared().apply(self.diagonal**-2)
        norms = whole.copy()
        few = self.extra.shape[0]
        if queries.shape[0] * few <= BLOCK_ENTRIES:
            norms -= (self._whitened_by(queries) ** 2).sum(axis=0)
        else:
            step = max(1, BLOCK_ENTRIES // max(queries.shape))
            for start in range(0, few, step):
                norms -= (queries.apply(self._whitened[start : start + step].T) ** 2).sum(axis=1)
        return None if np.any(norms < CANCELLED * whole) else norms

    def squared_norm(self, queries: LinearMap) -> float | None:
        """The sum of ``row_squared_norms``, through ``WᵀW`` applied to p columns."""
        whole = norm = float(np.dot(queries.column_squared_sums(), self.diagonal**-2))
        few, cells = self.extra.shape
        if queries.shape[0] * few <= BLOCK_ENTRIES:
            norm -= float((self._whitened_by(queries) ** 2).sum())
        else:
            step = max(1, BLOCK_ENTRIES // cells)
            for start in range(0, few, step):
                columns = self._whitened[start : start + step].T
                norm -= float(np.vdot(columns, queries.gram_times(columns)))
        return None if norm < CANCELLED * whole else norm

    def _whitened_by(self, queries: LinearMap) -> Floats:
        """``C⁻¹ΘD⁻²Wᵀ`` (p × m), a few columns of Θᵀ at a time."""
        few, cells = self.extra.shape
        image = np.empty((few, queries.shape[0]))
        step = max(1, BLOCK_ENTRIES // max(cells, 1))
        for start in range(0, few, step):
            part = slice(start, start + step)
            rows = self.extra[part]
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
            image[part] = queries.apply((dense * self.diagonal**-2).T).T
        return np.asarray(
            la.solve_triangular(self.factor[0], image, lower=True, check_finite=False)
        )

    @cached_property
    def _whitened(self) -> Floats:
        """``C⁻¹ΘD⁻²`` (p × n)."""
        scaled = self.extra * self.diagonal**-2
        dense = scaled if isinstance(scaled, np.ndarray) else scaled.toarray()
        return np.asarray(
            la.solve_triangular(self.factor[0], dense, lower=True, check_finite=False)
        )

    def _solve_gram(self, right: Floats) -> Floats:
        scaled = right / self.diagonal[:, None] ** 2
        if self.is_closed_form:
            return scaled
        inner = la.cho_solve(self.factor, self.extra @ scaled, check_finite=False)
        return np.asarray(scaled - (self.extra.T @ inner) / self.diagonal[:, None] ** 2)

    def _times(self, rows: Floats) -> Floats:
        inner = self._solve_gram(rows.T).T
        result = np.empty((len(rows), len(self.order)))
        result[:, self.order] = np.hstack([inner * self.diagonal, (self.extra @ inner.T).T])
        return result

    def rows_times(self, rows: Floats) -> Floats:
        first = self._times(rows)
        placed = first[:, self.order]
        n = len(self.diagonal)
        residual = rows - placed[:, :n] * self.diagonal - (self.extra.T @ placed[:, n:].T).T
        return first + self._times(residual)

    def estimate(self, measurements: Floats) -> Floats:
        n = len(self.diagonal)
        placed = measurements[self.order]
        right = placed[:n] * self.diagonal + self.extra.T @ placed[n:]
        return self._solve_gram(right[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class Spectral(LeftInverse):
    """L⁺ by the singular value decomposition, for L without full column rank."""

    pseudoinverse: Floats
    determines_cells: ClassVar[bool] = False

    def rows_times(self, rows: Floats) -> Floats:
        return np.asarray(rows @ self.pseudoinverse)

    def estimate(self, measurements: Floats) -> Floats:
        return np.asarray(self.pseudoinverse @ measurements)


def left_inverse(
    strategy: LinearMap, *, rounding: float = 0.0, rank: int | None = None
) -> LeftInverse:
    """Choose the form of L⁺ that fits ``strategy``.

    Parameters
    ----------
    strategy
        L, r×n.
    rounding
        Largest size of a rounding error of an entry of L: singular values that such
        errors explain are taken for 0.
    rank
        The rank of L, where it is known: no other singular values count.
    """
    try:
        return _fitting(strategy, rounding, rank)
    except la.LinAlgError:
        raise ConvergenceError("the strategy cannot be inverted in float64") from None


def _fitting(strategy: LinearMap, rounding: float, rank: int | None) -> LeftInverse:
    r, n = strategy.shape
    known = strategy.known_inverse() or _diagonal_plus_few(strategy) or _blocks_plus_few(strategy)
    if known is not None:
        return known
    if (n > DENSE_CELLS and r > DENSE_CELLS) or r * n > DENSE_ENTRIES:
        raise ConvergenceError(
            f"a general strategy of {r:,} measurements over {n:,} cells is too large to invert; "
            f"at most {DENSE_CELLS:,} of either and {DENSE_ENTRIES:,} entries are supported"
        )
    matrix = strategy.dense()
    if r >= n:
        factor = _cholesky(matrix.T @ matrix)
        if factor is not None:
            return NormalEquations(matrix, factor)
    left, values, right = la.svd(matrix, full_matrices=False, check_finite=False)
    floor = max(values[0] * max(r, n) * 2.3e-16, 4 * rounding * np.sqrt(max(r, n)))
    kept = np.arange(len(values)) < rank if rank else values > floor
    kept &= values > 0
    return Spectral((right[kept].T / values[kept]) @ left[:, kept].T)


def _cholesky(gram: Floats) -> tuple[Floats, bool] | None:
    try:
        factor = la.cho_factor(gram, lower=True, check_finite=False)
    except la.LinAlgError:
        return None
    condition, _ = la.lapack.dpocon(factor[0], float(np.abs(gram).sum(axis=0).max()), uplo="L")
    return factor if condition > WELL_CONDITIONED else None


def _blocks_plus_few(strategy: LinearMap) -> BlocksPlusFew | None:
    """The same for small blocks in place of cells, where cells are too many for arrays."""
    if strategy.shape[1] <= DENSE_CELLS or strategy.single_cell_rows() is None:
        return None
    return blocks_plus_few(strategy.sparse())


def _diagonal_plus_few(strategy: LinearMap) -> DiagonalPlusFew | DiagonalPlusLocal | None:
    """The Woodbury form, where every cell has a row of its own and few or local rows remain."""
    owner = strategy.single_cell_rows()
    if owner is None:
        return None
    n = len(owner)
    others = np.setdiff1d(np.arange(strategy.shape[0]), owner)
    matrix = strategy.sparse()
    if matrix.nnz > DENSE_ENTRIES:
        return None
    local = diagonal_plus_local(matrix, owner, others)
    if local is not None or len(others) > min(n // 2, DENSE_CELLS):
        return local
    diagonal = np.asarray(matrix[owner].sum(axis=1)).ravel()
    few = sp.csr_array(matrix[others]) if len(others) else sp.csr_array((0, n))
    inner = (few * diagonal**-2) @ few.T
    inner = np.eye(len(others)) + inner.toarray()
    factor = la.cho_factor(inner, lower=True, check_finite=False) if len(others) else (inner, True)
    extra = few if few.nnz < SPARSE_SHARE * len(others) * n else np.asarray(few.toarray())
    return DiagonalPlusFew(np.concatenate([owner, others]), diagonal, extra, factor)
