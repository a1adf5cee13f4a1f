"""Left inverses of strategies: from measurements back to queries, B = W·L⁺.

Where the strategy has no closed form of its own (`LinearMap.known_inverse`), one of three forms
is chosen by its shape: a weighted identity plus rows, normal equations, or singular values.

See ``docs/explanation/mechanism.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from lrm.errors import ConvergenceError
from lrm.planning.design.plus_rows import PlusRowsInverse, blocks_plus_rows, diagonal_plus_rows
from lrm.planning.limits import MEMORY, SIDE
from lrm.queries.maps.linear import Floats, LeftInverse, LinearMap


@dataclass(frozen=True, eq=False)
class Pseudoinverse(LeftInverse):
    """L⁺ as an array, n×r."""

    matrix: Floats
    determines_cells: bool

    def rows_times(self, rows: Floats) -> Floats:
        return np.asarray(rows @ self.matrix)

    def estimate(self, measurements: Floats) -> Floats:
        return np.asarray(self.matrix @ measurements)


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
    known = strategy.known_inverse() or _plus_rows(strategy)
    if known is not None:
        return known
    if (n > SIDE and r > SIDE) or r * n > MEMORY:
        raise ConvergenceError(
            f"a general strategy of {r:,} measurements over {n:,} cells is too large to invert; "
            f"at most {SIDE:,} of either and {MEMORY:,} entries are supported"
        )
    matrix = strategy.dense()
    if r >= n:
        factor = _cholesky(matrix.T @ matrix)
        if factor is not None:
            inverse = la.cho_solve(factor, matrix.T, check_finite=False)
            # One step of refinement: the condition of normal equations is that of L, squared.
            return Pseudoinverse(
                inverse + (np.eye(n) - inverse @ matrix) @ inverse, determines_cells=True
            )
    left, values, right = la.svd(matrix, full_matrices=False, check_finite=False)
    floor = max(values[0] * max(r, n) * 2.3e-16, 4 * rounding * np.sqrt(max(r, n)))
    significant = np.arange(len(values)) < rank if rank else values > floor
    significant &= values > 0
    inverse = (right[significant].T / values[significant]) @ left[:, significant].T
    return Pseudoinverse(inverse, determines_cells=False)


def _cholesky(gram: Floats) -> tuple[Floats, bool] | None:
    try:
        factor = la.cho_factor(gram, lower=True, check_finite=False)
    except la.LinAlgError:
        return None
    condition, _ = la.lapack.dpocon(factor[0], float(np.abs(gram).sum(axis=0).max()), uplo="L")
    # Smallest reciprocal condition of LᵀL for which normal equations are trusted.
    # With one step of refinement the residual is then about 1e-6² of W or less.
    return factor if condition > 1e-10 else None


def _plus_rows(strategy: LinearMap) -> PlusRowsInverse | None:
    """The Woodbury form, where every cell has a row of its own and few or local rows remain.

    Where cells are too many for arrays, small blocks of them do in place of cells.
    """
    owner = strategy.single_cell_rows()
    if owner is None:
        return None
    matrix = strategy.sparse()
    inverse = diagonal_plus_rows(matrix, owner) if matrix.nnz <= MEMORY else None
    return blocks_plus_rows(matrix) if inverse is None and len(owner) > SIDE else inverse
