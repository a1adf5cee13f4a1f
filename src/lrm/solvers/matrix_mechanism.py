"""The matrix mechanism [1]_ in the implementation of [2]_, Appendix B: a smoothed L2 program.

See ``docs/explanation/mechanism.md``.

References
----------
.. [1] Li, Hay, Rastogi, Miklau, McGregor, "Optimizing linear counting queries under differential
   privacy", PODS 2010, arXiv:0912.4742.
.. [2] Yuan, Zhang, Winslett, Xiao, Yang, Hao, "Low-rank mechanism: optimizing batch queries under
   differential privacy", VLDB 2012, arXiv:1208.0094.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver, UsageError
from lrm.solvers import settings

__all__ = ["MatrixResult", "optimise_gram", "smoothed_maximum"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: Least eigenvalue of M over its largest diagonal entry. A = M^½ then has a condition number
#: of about 1e4 at most, so that ``W·A⁻¹`` is exact to 1e-12.
FLOOR = 1e-8
#: Window of the non-monotone line search, and its sufficient decrease, of Birgin et al.
WINDOW, DECREASE = 10, 1e-4
#: Rounds in all, and the relative gain of ten of them that ends a stage.
MOST_ROUNDS, TOLERANCE = 150, 1e-3


@dataclass(frozen=True, slots=True)
class MatrixResult:
    """A strategy ``A = M^½`` (n x n, symmetric, its columns in the unit L2 ball).

    ``objective`` is ``max diag(M)·tr(WᵀW M⁻¹)`` of it: ``‖B‖²·Δ²`` with Δ in L2.
    """

    strategy: Matrix
    objective: float
    rounds: int
    converged: bool

    def __post_init__(self) -> None:
        """Make the strategy read-only."""
        self.strategy.setflags(write=False)


def smoothed_maximum(values: Vector, mu: float) -> tuple[float, Vector]:
    """Return ``f_μ(v) = μ·log Σ exp(v_i/μ)`` and its gradient.

    ``max v ≤ f_μ(v) ≤ max v + μ·log n``. Computed from differences to the maximum, as in
    the paper, so that nothing overflows.

    Examples
    --------
    >>> value, slope = smoothed_maximum(np.array([1.0, 1.0]), 0.1)
    >>> round(value, 6), slope.tolist()
    (1.069315, [0.5, 0.5])
    """
    top = float(values.max())
    powers = np.exp((values - top) / mu)
    total = float(powers.sum())
    return top + mu * float(np.log(total)), powers / total


def optimise_gram(W: Matrix, *, clock: Clock = UNLIMITED) -> MatrixResult:
    """Minimise ``max diag(M)·tr(WᵀW M⁻¹)`` over M ≻ 0, and return ``A = M^½``.

    The maximum is replaced by ``f_μ`` (see ``smoothed_maximum``), μ = ε/log n, sharpened in
    three stages. Method: the non-monotone spectral projected gradient of Birgin, Martínez and
    Raydan [1]_ on the logarithm of the product, which has the same minimisers and does
    not change its scale with W:

        ``∇ = diag(∇f_μ)/f_μ - M⁻¹ G M⁻¹/tr(G M⁻¹)``,  ``G = WᵀW``.

    The projection onto ``{M ⪰ c·I}``, nearest in Frobenius norm, clips eigenvalues. The
    start is the better one of I (noise on data) and ``G^½``. A stage ends when ten rounds
    lower the objective by less than 0.1 %.

    Cost: one n x n eigendecomposition and a few products a round; 0.6 s at n = 1,024. On
    ``StopSolver`` the best so far is returned, which the objective of the
    unsmoothed program decides.

    References
    ----------
    .. [1] Birgin, Martínez, Raydan, "Nonmonotone spectral projected gradient methods on convex
       sets", SIAM J. Optim. 10(4), 2000.

    Examples
    --------
    >>> found = optimise_gram(np.tril(np.ones((8, 8))))
    >>> found.objective < 36, bool(np.linalg.norm(found.strategy, axis=0).max() <= 1 + 1e-12)
    (True, True)
    """
    if W.ndim != 2 or not W.size or not np.isfinite(W).all():
        raise UsageError(
            f"expected a finite matrix with rows and columns, got shape {W.shape}; "
            "remove infinite and missing values"
        )
    n, largest = W.shape[1], float(np.abs(W).max())
    if not largest > 0:
        return MatrixResult(np.eye(n), 0.0, 0, converged=True)
    scaled = W / largest
    gram = scaled.T @ scaled
    size = float(np.trace(gram))
    descent = _Descent(gram / size)
    stage = 0
    try:
        descent.start(settings.MATRIX_SMOOTHINGS[0])
        while stage < len(settings.MATRIX_SMOOTHINGS) and descent.rounds < MOST_ROUNDS:
            progress = descent.advance()
            clock.tick(Step("matrix", descent.rounds, descent.best * size * largest**2))
            if progress < TOLERANCE:
                stage += 1
                if stage < len(settings.MATRIX_SMOOTHINGS):
                    descent.start(settings.MATRIX_SMOOTHINGS[stage])
    except StopSolver:
        pass
    values, basis = eigh(descent.best_at, driver="evr", check_finite=False)
    A = (basis * np.sqrt(np.maximum(values, 0.0))) @ basis.T
    A = 0.5 * (A + A.T)
    A /= float(np.linalg.norm(A, axis=0).max())
    return MatrixResult(
        A,
        descent.best * size * largest**2,
        descent.rounds,
        converged=stage == len(settings.MATRIX_SMOOTHINGS),
    )


@dataclass(slots=True)
class _Descent:
    """Spectral projected gradient for a Gram matrix of trace 1."""

    gram: Matrix
    M: Matrix = field(init=False)
    best_at: Matrix = field(init=False)
    best: float = field(init=False)
    rounds: int = 0
    mu: float = 0.0
    value: float = 0.0
    step: float = 1.0
    gradient: Matrix = field(init=False)
    history: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    bests: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def __post_init__(self) -> None:
        """Begin with the better one of I and G^½."""
        n = len(self.gram)
        self.best_at, self.best = np.eye(n), float(np.trace(self.gram))
        values, basis = eigh(self.gram, driver="evr", check_finite=False)
        root = np.sqrt(np.maximum(values, 0.0))
        root = np.maximum(root, 1e-3 * root[-1])
        self._keep((basis * root) @ basis.T, float(np.sum(np.maximum(values, 0.0) / root)))

    def start(self, epsilon: float) -> None:
        """Begin a stage of smoothing ``epsilon`` at the best M so far."""
        self.M = self.best_at / float(np.diagonal(self.best_at).max())
        self.mu = epsilon / max(float(np.log(len(self.M))), 1.0)
        self.value, self.gradient = self._evaluate(self.M)
        self.step = 1.0 / max(float(np.abs(self._towards(1.0)).max()), 1e-12)
        self.history.clear()
        self.bests.clear()
        self.history.append(self.value)

    def advance(self) -> float:
        """Do one round; return by how much the last ``WINDOW`` rounds lowered the best."""
        direction = self._towards(self.step)
        slope = float(np.vdot(self.gradient, direction))
        share, reference = 1.0, max(self.history)
        self.rounds += 1
        while True:
            M = self.M + share * direction
            value, gradient = self._evaluate(M)
            if value <= reference + DECREASE * share * slope or share < 1e-8:
                break
            # The minimum of the parabola through both values, within [0.1, 0.5] of the share.
            drop = 2.0 * (value - self.value - share * slope)
            guess = -slope * share**2 / drop if np.isfinite(drop) and drop > 0 else 0.0
            share = min(max(guess, 0.1 * share), 0.5 * share)
        moved, turned = M - self.M, gradient - self.gradient
        bend = float(np.vdot(moved, turned))
        longest = float(np.vdot(moved, moved))
        self.step = min(max(longest / bend, 1e-10), 1e10) if bend > 0 else 2.0 * self.step
        self.M, self.value, self.gradient = M, value, gradient
        self.history.append(value)
        self.bests.append(self.best)
        full = len(self.bests) == WINDOW
        return 1.0 - self.best / self.bests[0] if full else float("inf")

    def _towards(self, step: float) -> Matrix:
        """Return the way from M to the projection of ``M - step·gradient``."""
        aim = self.M - step * self.gradient
        values, basis = eigh(aim, driver="evr", check_finite=False)
        low = np.flatnonzero(values < FLOOR)
        if low.size:
            # Clipping adds to few or to nearly all eigenvalues: take the cheaper product.
            part = basis[:, low]
            aim += (part * (FLOOR - values[low])) @ part.T
        return aim - self.M

    def _evaluate(self, M: Matrix) -> tuple[float, Matrix]:
        """Return the logarithm of the smoothed product and its gradient; keep the best M."""
        try:
            factor = cho_factor(M, lower=True, check_finite=False)
        except LinAlgError:
            return float("inf"), np.zeros_like(M)
        half = cho_solve(factor, self.gram, check_finite=False)
        trace = float(np.trace(half))
        self._keep(M, trace)
        top, slopes = smoothed_maximum(np.diagonal(M), self.mu)
        inner = cho_solve(factor, half.T, check_finite=False)
        gradient = (inner + inner.T) * (-0.5 / trace)
        gradient[np.diag_indices_from(gradient)] += slopes / top
        return float(np.log(top) + np.log(trace)), gradient

    def _keep(self, M: Matrix, trace: float) -> None:
        objective = float(np.diagonal(M).max()) * trace
        if objective < self.best:
            self.best, self.best_at = objective, M
