"""Strategies in the row space of the workload: the regime n ≫ k².

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from lrm.clock import UNLIMITED, Clock, Step
from lrm.solvers import settings
from lrm.solvers.quasi_newton import descend

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RowSpaceResult", "optimise_row_space", "row_space_error"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RowSpaceResult:
    """The mixing X (r x k) of a strategy ``L = X·W`` and what it costs."""

    mixing: Matrix
    error: float
    iterations: int
    converged: bool


def row_space_error(W: Matrix, X: Matrix) -> float:
    """Return ``‖X⁺‖²·max_j‖X w_j‖₁²``, the error of ``L = X·W``; infinite if X is singular.

    Examples
    --------
    >>> row_space_error(np.ones((1, 4)), np.array([[3.0]]))
    1.0
    """
    singular = np.linalg.svd(X, compute_uv=False)
    if not singular[-1] > 1e-12 * singular[0]:
        return float("inf")
    return float(np.sum(singular**-2.0) * np.abs(X @ W).sum(axis=0).max() ** 2)


def _log_error(X: Matrix, *, W: Matrix, power: float, width: float) -> tuple[float, Matrix]:
    """Return the logarithm of the error, both norms rounded, and its gradient.

    ``log tr (XᵀX)⁻¹ + (2/power)·log Σ_j s_j^power`` with ``s_j = Σ_i sqrt(l_ij² + width²)``.
    """
    try:
        low = cholesky(X.T @ X, lower=True, check_finite=False)
    except LinAlgError:
        return float("inf"), np.zeros_like(X)
    inverse = cho_solve((low, True), np.eye(X.shape[1]), check_finite=False)
    trace = float(np.trace(inverse))
    gradient = X @ (inverse @ inverse)
    gradient *= -2.0 / trace
    L = X @ W
    root = np.sqrt(L * L + width * width)
    loads = root.sum(axis=0)
    top = float(loads.max())
    shares = (loads / top) ** power
    total = float(shares.sum())
    np.divide(L, root, out=root)
    root *= 2.0 * shares / (total * loads)
    gradient += root @ W.T
    return float(np.log(trace) + 2.0 * (np.log(top) + np.log(total) / power)), gradient


def optimise_row_space(  # noqa: PLR0913 - each is a choice of the caller
    W: Matrix,
    mixing: Matrix,
    *,
    stages: Sequence[tuple[float, float]] = settings.ROW_SPACE_STAGES,
    tolerance: float = 1e-6,
    max_rounds: int = 1_000,
    clock: Clock = UNLIMITED,
) -> RowSpaceResult:
    """Optimise ``L = X·W`` from a start X of full column rank.

    Minimises ``‖X⁺‖²·max_j‖X w_j‖₁²``. W = X⁺·L holds exactly at every step, so there is no
    penalty and no residual. The maximum is replaced by a power mean and the kinks of the L1
    norm are rounded; both are tightened stage by stage (L-BFGS on the logarithm, which
    makes the scale of W and of X irrelevant).

    Cost: O(r·k·n) a round. Pays where n ≫ k²: for random columns it costs about k³ against
    the k·n of noise on data.

    Examples
    --------
    >>> W = np.random.default_rng(0).standard_normal((2, 64))
    >>> found = optimise_row_space(W, np.eye(2))
    >>> found.error <= row_space_error(W, np.eye(2))
    True
    """
    best, best_mixing, rounds = row_space_error(W, mixing), mixing, 0
    X, converged = mixing, False
    V = W / (float(np.linalg.norm(W)) or 1.0)
    for power, width in stages:
        done = rounds
        X = X / np.abs(X @ V).sum(axis=0).max()
        run = descend(
            partial(_log_error, W=V, power=power, width=width / len(X)),
            X,
            on_round=lambda i, _: clock.tick(Step("row space", done + i, best)),  # noqa: B023
            tolerance=tolerance,
            memory=20,
            max_rounds=max_rounds,
        )
        X, rounds = run.point, rounds + run.rounds
        converged = run.converged
        error = row_space_error(W, X)
        if error < best:
            best, best_mixing = error, X
        if run.interrupted:
            break
    return RowSpaceResult(best_mixing, best, rounds, converged)
