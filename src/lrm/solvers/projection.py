"""Variable projection: any strategy at all, polished by accelerated projected gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky

from lrm.errors import ConvergenceError, StopSolver
from lrm.solvers.exact import ExactPair, factorise, make_exact
from lrm.solvers.l1ball import project_columns_l1
from lrm.solvers.progress import OnStep, Step, ignore_step

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ProjectionResult", "optimise_projection", "penalised_error"]

Matrix = NDArray[np.float64]

#: Weights β of the residual, for a workload of Frobenius norm 1.
PENALTIES = (1e4, 1e5, 1e6, 1e7)


@dataclass(frozen=True, slots=True)
class ProjectionResult:
    """The exact pair that a polish ended with, and how it ended."""

    pair: ExactPair
    iterations: int
    converged: bool
    interrupted: bool

    @property
    def error(self) -> float:
        """``‖B‖²`` of the exact pair, whose strategy has sensitivity 1."""
        return self.pair.error


def penalised_error(W: Matrix, L: Matrix, beta: float) -> tuple[float, Matrix, Matrix]:
    """Return ``J = min_B ‖B‖² + β‖W - BL‖²``, its gradient by L, and the best B.

    ``J = tr(W·(I/β + LᵀL)⁻¹·Wᵀ)`` with gradient ``-2β·Bᵀ(W - BL)``. One Cholesky factor of
    the smaller of the two Gram matrices: O(r·n·(k + min(r, n))).

    Examples
    --------
    >>> value, _, B = penalised_error(np.ones((1, 2)), np.ones((1, 2)), 1e9)
    >>> round(value, 6), B.round(6).tolist()
    (1.0, [[1.0]])
    """
    r, n = L.shape
    gram = L.T @ L if r >= n else L @ L.T
    gram[np.diag_indices_from(gram)] += 1.0 / beta
    low = cholesky(gram, lower=True, check_finite=False, overwrite_a=True), True
    if r >= n:
        scaled_residual = cho_solve(low, W.T, check_finite=False).T
        B = scaled_residual @ L.T
    else:
        B = cho_solve(low, L @ W.T, check_finite=False).T
        scaled_residual = beta * (W - B @ L)
    return float(np.vdot(scaled_residual, W)), -2.0 * B.T @ scaled_residual, B


class _Accelerated:
    """FISTA on J_β over the product of L1 balls, with restarts and a step that adapts [1]_.

    References
    ----------
    .. [1] Beck, Teboulle, "A fast iterative shrinkage-thresholding algorithm", 2009;
       O'Donoghue, Candès, "Adaptive restart for accelerated gradient schemes", 2015.
    """

    def __init__(self, W: Matrix, L: Matrix, beta: float) -> None:
        self._W, self._beta = W, beta
        self.L = project_columns_l1(L)
        self.value = penalised_error(W, self.L, beta)[0]
        self._ahead, self._momentum, self._step = self.L, 1.0, 1e-3

    def advance(self) -> None:
        """Take one step, or drop the momentum if it led uphill."""
        value, gradient, _ = penalised_error(self._W, self._ahead, self._beta)
        while True:
            trial = project_columns_l1(self._ahead - self._step * gradient)
            move = trial - self._ahead
            tried = penalised_error(self._W, trial, self._beta)[0]
            model = value + float(np.vdot(gradient, move))
            model += float(np.vdot(move, move)) / (2.0 * self._step)
            if tried <= model + 1e-13 * abs(value) or self._step < 1e-15:
                break
            self._step *= 0.5
        if tried > self.value:
            if self._momentum == 1.0:
                self._step *= 0.5
            self._ahead, self._momentum = self.L, 1.0
            return
        following = 0.5 + np.sqrt(0.25 + self._momentum**2)
        inertia = (self._momentum - 1.0) / following
        self._ahead = trial + inertia * (trial - self.L)
        self.L, self.value, self._momentum = trial, tried, following
        self._step *= 1.1


def optimise_projection(  # noqa: PLR0913 - each is a choice of the caller
    W: Matrix,
    strategy: Matrix,
    *,
    penalties: Sequence[float] = PENALTIES,
    tolerance: float = 1e-6,
    max_rounds: int = 5_000,
    on_step: OnStep = ignore_step,
    stage: str = "polish",
) -> ProjectionResult:
    """Polish any exact strategy L (r x n) in the general form.

    Minimises ``J_β(L) = tr(W·(I/β + LᵀL)⁻¹·Wᵀ)`` over all L whose columns lie in the L1 ball,
    β growing stage by stage; after each stage the pair is made exact and measured. Unlike
    the structured solvers this may give up a cell's own row, and may share it.

    Never worse than the start, which must answer W (``ConvergenceError`` if it does not).
    Cost: O(r·n·(k + min(r, n))) a round, two evaluations each.

    Examples
    --------
    >>> W = np.array([[0.0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]])
    >>> round(optimise_projection(W, np.eye(4)).error, 4)
    19.0
    """
    size = float(np.linalg.norm(W)) or 1.0
    V, rounds, converged, interrupted = W / size, 0, True, False
    best = factorise(W, strategy)
    L = best.strategy.toarray()
    try:
        for beta in penalties:
            method = _Accelerated(V, L, beta)
            for _ in range(0, max_rounds, 25):
                before = method.value
                for _ in range(25):
                    rounds += 1
                    on_step(Step(stage, rounds, best.error))
                    method.advance()
                if before - method.value <= 25 * tolerance * method.value:
                    break
            else:
                converged = False
            L = method.L
            best = _better(best, W, V, L, beta)
    except StopSolver:
        interrupted = True
    return ProjectionResult(best, rounds, converged and not interrupted, interrupted)


def _better(best: ExactPair, W: Matrix, V: Matrix, L: Matrix, beta: float) -> ExactPair:
    """Return the exact form of L if there is one and it is lower than ``best``."""
    B = penalised_error(V, L, beta)[2] * np.linalg.norm(W)
    try:
        pair = make_exact(W, B, L)
    except ConvergenceError:
        return best
    return pair if pair.error < best.error else best
