"""Strategies made of the identity and a few extra signed rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_solve, cholesky

from lrm.clock import UNLIMITED, Clock, Step, work_of
from lrm.solvers.quasi_newton import descend, descend_orthantwise

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AugmentedResult", "assemble", "augmented_error", "optimise_augmented", "round_work"]

Matrix = NDArray[np.float64]

#: Widths of the rounded kink of |θ|, from wide to narrow.
SMOOTHING = (0.1, 0.03, 0.01)

#: A smaller share of the terms that it is the difference of is no error but rounding.
LOST = 1e-10


@dataclass(frozen=True, slots=True)
class AugmentedResult:
    """Extra rows Θ (p x n) of a strategy ``L = [I; Θ]·D`` and what they cost.

    ``error`` is ``‖B‖²·Δ(L)²`` of the exact reconstruction of W from L.
    """

    extra_rows: Matrix
    error: float
    iterations: int
    converged: bool


def assemble(W: Matrix, extra_rows: Matrix) -> tuple[Matrix, sparse.csr_array]:
    """Return the reconstruction B (k x (n+p)) and the strategy ``L = [I; Θ]·D``.

    D gives every column the L1 norm 1. ``B = W·L⁺ = R·[I, Θᵀ]`` with
    ``R = W·D⁻¹·(I + ΘᵀΘ)⁻¹``, by Woodbury in O(n·p·(k + p)).

    Examples
    --------
    >>> B, L = assemble(np.tri(4), np.array([[1.0, 1.0, 0.0, 0.0]]))
    >>> float(np.abs(B @ L - np.tri(4)).max()) < 1e-12
    True
    """
    scale = 1.0 + np.abs(extra_rows).sum(axis=0)
    V = W * scale
    inner = extra_rows @ extra_rows.T
    inner[np.diag_indices_from(inner)] += 1.0
    Z = cho_solve((cholesky(inner, lower=True), True), extra_rows @ V.T)
    B = np.hstack([V - Z.T @ extra_rows, Z.T])
    stacked = sparse.vstack([sparse.eye_array(W.shape[1]), sparse.csr_array(extra_rows)])
    return B, sparse.csr_array(stacked @ sparse.diags_array(1.0 / scale))


def augmented_error(W: Matrix, extra_rows: Matrix) -> float:
    """Return ``‖W·L⁺‖²`` for ``L = [I; Θ]·D``, without forming L.

    Examples
    --------
    >>> round(augmented_error(np.ones((1, 3)), np.ones((1, 3))), 12)
    3.0
    """
    return _value(extra_rows, W, np.einsum("ij,ij->j", W, W))[0]


def _factors(T: Matrix, scale: Matrix, W: Matrix, squares: Matrix) -> tuple[float, Matrix]:
    """Return the error and ``Z = (I + ΘΘᵀ)⁻¹·Θ·(W·D⁻¹)ᵀ``; ``scale`` is the diagonal of D⁻¹.

    The error is a difference. Where the rows are so long that float64 loses it, it is infinite:
    no line search goes there.
    """
    inner = T @ T.T
    inner[np.diag_indices_from(inner)] += 1.0
    C = (T * scale) @ W.T
    try:
        low = cholesky(inner, lower=True, check_finite=False, overwrite_a=True)
    except LinAlgError:
        return np.inf, np.zeros_like(C)
    Z = cho_solve((low, True), C, check_finite=False)
    whole = float((scale * scale) @ squares)
    error = whole - float(np.vdot(C, Z))
    return error if error > LOST * whole else np.inf, Z


def _value(T: Matrix, W: Matrix, squares: Matrix) -> tuple[float, Matrix]:
    return _factors(T, 1.0 + np.abs(T).sum(axis=0), W, squares)


def _partials(T: Matrix, scale: Matrix, W: Matrix, squares: Matrix) -> tuple[float, Matrix, Matrix]:
    """Return the error, its derivative by Θ at fixed D, and its derivative by D⁻¹.

    Two products of k·n·p and three of p·p·n: no k x n array is written.
    """
    value, Z = _factors(T, scale, W, squares)
    A = Z @ W
    by_scale = 2.0 * (scale * squares - np.einsum("ij,ij->j", A, T))
    A *= scale
    by_rows = (Z @ Z.T) @ T
    by_rows -= A
    by_rows *= 2.0
    return value, by_rows, by_scale


def _kinked(T: Matrix, *, W: Matrix, squares: Matrix) -> tuple[float, Matrix, Matrix]:
    """Return the error and its derivatives by Θ and by |Θ|."""
    return _partials(T, 1.0 + np.abs(T).sum(axis=0), W, squares)


def _rounded(T: Matrix, *, W: Matrix, squares: Matrix, width: float) -> tuple[float, Matrix]:
    """Return the error with ``sqrt(θ² + width²) - width`` in place of |θ|, and its gradient."""
    root = np.sqrt(T * T + width * width)
    scale = 1.0 + root.sum(axis=0) - width * len(T)
    value, gradient, by_scale = _partials(T, scale, W, squares)
    np.divide(T, root, out=root)
    root *= by_scale
    gradient += root
    return value, gradient


def round_work(W: Matrix, rows: int) -> float:
    """Counted work of a round of `optimise_augmented` with this number of extra rows."""
    k, n = W.shape
    return work_of(2.0 * n * rows * k + 3.0 * n * rows * rows, 3.0 * n * rows)


def optimise_augmented(  # noqa: PLR0913 - each is a choice of the caller
    W: Matrix,
    extra_rows: Matrix,
    *,
    nonnegative: bool = False,
    smoothing: Sequence[float] = SMOOTHING,
    tolerance: float = 1e-7,
    max_rounds: int = 5_000,
    clock: Clock = UNLIMITED,
    stage: str = "augmented",
) -> AugmentedResult:
    """Optimise the extra rows of an augmented identity, from a start.

    Minimises ``tr(W·(LᵀL)⁻¹·Wᵀ)`` over ``L = [I; Θ]·D``, where Θ is p x n of any sign and D
    scales every column to L1 norm 1. L has full column rank, so W = BL holds exactly at
    every step. With ``nonnegative`` this is the p-Identity family of [1]_.

    At Θ = 0 the kink of |θ| outweighs every gradient: rows that come near it die and cannot
    return. So the kink is first rounded, widely and then less and less, which lets the rows
    find their place (over four random starts on 256 ranges the spread falls from 1 % to
    0.3 %, and where p is small several per cent of the error are gained); an orthant-wise
    descent on the true function then finishes.

    Cost: O(n·p·(k + p)) per round, memory O(n·p) beside W.

    References
    ----------
    .. [1] McKenna, Miklau, Hay, Machanavajjhala, "Optimizing error of high-dimensional
       statistical queries under differential privacy", VLDB 2018.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((4, 32)) / 5
    >>> found = optimise_augmented(np.tri(32), rows)
    >>> bool(found.error < 0.6 * np.sum(np.tri(32) ** 2)), found.converged
    (True, True)
    """
    unit = float(np.linalg.norm(W))
    if not unit > 0:
        return AugmentedResult(extra_rows[:0], 0.0, 0, converged=True)
    V = W / unit
    squares = np.einsum("ij,ij->j", V, V)
    best, T, rounds = np.inf, extra_rows, 0
    best_rows = extra_rows[:0]

    def offer(rows: Matrix) -> None:
        nonlocal best, best_rows
        error = _value(rows, V, squares)[0]
        if error < best:
            best, best_rows = error, rows

    def report(iteration: int, value: float) -> None:
        clock.tick(Step(stage, rounds + iteration, min(best, value) * unit**2))

    offer(best_rows)
    offer(extra_rows)
    for width in () if nonnegative else smoothing:
        run = descend(
            partial(_rounded, W=V, squares=squares, width=width),
            T,
            # A rounded error is below the true one: report only what is exact.
            on_round=lambda iteration, _: report(iteration, np.inf),
            # Only the narrowest must be exact: a fifth less time for the same results.
            tolerance=max(1e-5 if width == smoothing[-1] else 1e-4, tolerance),
            max_rounds=max_rounds,
        )
        T, rounds = run.point, rounds + run.rounds
        T = np.where(np.abs(T) < width, 0.0, T) if width == smoothing[-1] else T
        offer(T)
        if run.interrupted:
            break
    else:
        run = descend_orthantwise(
            partial(_kinked, W=V, squares=squares),
            T,
            nonnegative=nonnegative,
            on_round=report,
            tolerance=tolerance,
            max_rounds=max_rounds,
        )
        rounds += run.rounds
        offer(run.point)
    kept = best_rows[np.any(best_rows != 0, axis=1)]
    # The descent's own value is a difference, which long rows leave few digits of.
    B = assemble(W, kept)[0]
    return AugmentedResult(kept, float(np.vdot(B, B)), rounds, run.converged)
