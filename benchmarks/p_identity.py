"""The best public optimiser, as a baseline: p-Identity strategies by L-BFGS-B.

Strategies ``L = [I; Θ]·D`` with p rows Θ ≥ 0 and D scaling every column to L1 norm 1, over all
cells as they come (McKenna, Miklau, Hay, Machanavajjhala, VLDB 2018). Written from the paper's
formulas: error ``tr(WᵀW (LᵀL)⁻¹)`` with the inverse by Woodbury, O(n²p) with the Gram matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

__all__ = ["p_identity"]

Matrix = NDArray[np.float64]


def _objective(flat: Matrix, gram: Matrix) -> tuple[float, Matrix]:
    """Error of [I; Θ]·D and its gradient by Θ."""
    n = len(gram)
    rows = flat.reshape(-1, n)
    scale = 1.0 + rows.sum(axis=0)
    # (LᵀL)⁻¹ = D⁻¹ (I + ΘᵀΘ)⁻¹ D⁻¹ with D⁻¹ = diag(scale)
    factor = cho_factor(np.eye(len(rows)) + rows @ rows.T, lower=True)
    half = cho_solve(factor, rows)  # (I + ΘΘᵀ)⁻¹Θ
    scaled = gram * np.outer(scale, scale)
    left = scaled - (scaled @ rows.T) @ half  # S (I + ΘᵀΘ)⁻¹
    inner = left - half.T @ (rows @ left)  # (I + ΘᵀΘ)⁻¹ S (I + ΘᵀΘ)⁻¹
    value = float(np.trace(left))
    by_scale = 2 * np.diag(left) / scale
    return value, (by_scale - 2 * rows @ inner).ravel()


def p_identity(gram: Matrix, p: int, *, restarts: int, seed: int) -> tuple[float, Matrix]:
    """The least error over ``restarts`` random starts, and its rows Θ."""
    rng = np.random.default_rng(seed)
    unit = float(np.trace(gram))
    best, best_rows = np.inf, np.zeros((p, len(gram)))
    for _ in range(restarts):
        start = rng.random(p * len(gram))
        found = minimize(
            _objective,
            start,
            args=(gram / unit,),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * start.size,
            options={"maxiter": 2000, "maxfun": 4000},
        )
        if found.fun * unit < best:
            best, best_rows = float(found.fun) * unit, found.x.reshape(p, -1)
    return best, best_rows
