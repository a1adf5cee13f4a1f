"""The best public optimiser, as a baseline: p-Identity strategies by L-BFGS-B.

Strategies ``L = [I; Θ]·D`` with p rows Θ ≥ 0 and D scaling every column to L1 norm 1, over all
cells as they come (McKenna, Miklau, Hay, Machanavajjhala, VLDB 2018). Written from the paper's
formulas: error ``tr(WᵀW (LᵀL)⁻¹)`` with the inverse by Woodbury, O(k·n·p) an evaluation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

__all__ = ["p_identity"]

Matrix = NDArray[np.float64]


def _objective(flat: Matrix, factor: Matrix) -> tuple[float, Matrix]:
    """Error of [I; Θ]·D for a workload with WᵀW = FᵀF, and its gradient by Θ."""
    rows = flat.reshape(-1, factor.shape[1])
    scale = 1.0 + rows.sum(axis=0)
    # (LᵀL)⁻¹ = D⁻¹ (I + ΘᵀΘ)⁻¹ D⁻¹ with D⁻¹ = diag(scale), by Woodbury
    scaled = factor * scale
    inner = cho_factor(np.eye(len(rows)) + rows @ rows.T, lower=True)
    solved = scaled - (scaled @ rows.T) @ cho_solve(inner, rows)  # F·D⁻¹·(I + ΘᵀΘ)⁻¹
    by_cell = np.einsum("ij,ij->j", scaled, solved)
    gradient = 2 * by_cell / scale - 2 * (rows @ solved.T) @ solved
    return float(by_cell.sum()), gradient.ravel()


def p_identity(factor: Matrix, p: int, *, restarts: int, seed: int) -> tuple[float, Matrix]:
    """The least error over ``restarts`` random starts, and its rows Θ."""
    rng = np.random.default_rng(seed)
    cells, unit = factor.shape[1], float(np.linalg.norm(factor))
    best, best_rows = np.inf, np.zeros((p, cells))
    for _ in range(restarts):
        start = rng.random(p * cells)
        found = minimize(
            _objective,
            start,
            args=(factor / unit,),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * start.size,
            options={"maxiter": 1000, "maxfun": 2000},
        )
        if found.fun * unit**2 < best:
            best, best_rows = float(found.fun) * unit**2, found.x.reshape(p, -1)
    return best, best_rows
