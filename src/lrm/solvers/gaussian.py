"""Strategies for Gaussian noise to proven optimality, and the bound that proves it.

See ``docs/explanation/gaussian.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh, lapack, solve, svd, svdvals

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver, UsageError
from lrm.maps.linear import TINY, Floats


@dataclass(frozen=True, slots=True)
class GaussianResult:
    """A strategy L (k x n) with columns in the unit L2 ball, and how far from optimal it can be.

    ``W = B·L``, and ``upper`` is ``‖B‖_F²``. No pair of any rank has ``‖B‖_F²·Δ(L)²`` below
    ``lower``, be Δ the largest L2 or L1 norm of a column; it is proved by ``weights`` of the cells,
    which add up to 1 (see ``nuclear_bound``). ``rounds`` is how many weights were tried.
    """

    L: Floats
    B: Floats
    upper: float
    lower: float
    weights: Floats
    rounds: int
    converged: bool

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.L, self.B, self.weights):
            array.setflags(write=False)


@dataclass(slots=True)
class WeightAscent(ABC):
    """The ascent of ``φ(v) = tr S^½`` in x = log v, and the best of both bounds.

    With ``d_j = ‖X w_j‖²``, whose mean under v is φ, ``v_j ← v_j·(d_j/φ)^δ`` is a
    fixed-point map. δ = 1 never lowers φ; δ = 2 is exact for orthogonal columns and halves
    the rounds; Anderson's mixing of the last six steps in log v, weighted by v
    (columns that are about to vanish have no say), takes 3 to 40 rounds where δ = 1 takes
    6 to 200. A step that lowers φ is replaced by one with δ = 1 from the best weights.
    """

    x: Floats
    rounds: int = 0
    lower: float = 0.0
    upper: float = float("inf")
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    points: list[Floats] = field(default_factory=list)
    moves: list[Floats] = field(default_factory=list)

    @classmethod
    def of(cls, squares: Floats, **facts: Any) -> Self:
        """An ascent from weights between equal ones and those of the columns' squared lengths."""
        return cls(np.log(0.5 * squares / squares.sum() + 0.5 / len(squares)), **facts)

    @abstractmethod
    def evaluate(self, v: Floats) -> tuple[float, Floats]:
        """Return φ and the slopes d at v. Sees each v before ``lower`` and ``upper`` do."""

    @abstractmethod
    def certified(self, tolerance: float) -> float:
        """Return a lower bound, from ``weights``, that rounding cannot have raised."""

    def run(
        self, tolerance: float, max_rounds: int, margin: float, scale: float, clock: Clock
    ) -> float:
        """Advance until both bounds meet; return the certified one.

        φ itself overstates by rounding: the certificate is asked for when the bounds are within
        ``margin`` of the tolerance.
        """
        try:
            while self.rounds < max_rounds:
                self._advance()
                clock.tick(Step("gaussian", self.rounds, self.upper * scale**2))
                if self.upper <= (1.0 + margin * tolerance) * self.lower:
                    certified = self.certified(tolerance)
                    if self.upper <= (1.0 + tolerance) * certified:
                        return certified
        except StopSolver:
            pass
        return self.certified(tolerance)

    def _advance(self) -> None:
        """Evaluate both bounds at x, then choose the next x."""
        v = np.exp(self.x - self.x.max())
        v /= v.sum()
        phi, d = self.evaluate(v)
        self.rounds += 1
        fell = phi**2 < self.lower * (1.0 - 1e-9)
        if phi**2 > self.lower:
            self.lower, self.weights = phi**2, v
        self.upper = min(self.upper, phi * float(d.max()))
        if fell and self.points:
            self.x = self.points[-1] + 0.5 * self.moves[-1]
            self.points, self.moves = [], []
            return
        # Logarithms below -60 are weights of nothing, and would only upset the mixing.
        point = np.log(np.maximum(v, 1e-26))
        move = 2.0 * np.log(np.maximum(d / phi, 1e-26))
        self.points = [*self.points[-6:], point]
        self.moves = [*self.moves[-6:], move]
        self.x = point + np.clip(self._mixed(v), -2.0, 2.0)

    def _mixed(self, v: Floats) -> Floats:
        """Return the last move, less what a combination of earlier ones explains of it."""
        if len(self.points) < 2:
            return self.moves[-1]
        turns = np.diff(np.array(self.moves), axis=0)
        steps = np.diff(np.array(self.points), axis=0)
        weighted = turns * v
        normal = weighted @ turns.T
        normal[np.diag_indices_from(normal)] += 1e-10 * np.trace(normal) + TINY
        share = solve(normal, weighted @ self.moves[-1], assume_a="pos")
        return np.asarray(self.moves[-1] - share @ (steps + turns))


EPS = float(np.finfo(np.float64).eps)


def nuclear_bound(W: Floats, weights: Floats) -> float:
    """Return a number that ``‖B‖_F²·Δ(L)²`` is below for no B, L with ``W = B·L``.

    It is ``‖W·D‖_*² / Σv`` with ``D = diag(√v)``, for any weights v ≥ 0. Proof: ``WD = B·(LD)``,
    so by the Cauchy-Schwarz inequality for the nuclear norm

        ``‖WD‖_* ≤ ‖B‖_F·‖LD‖_F = ‖B‖_F·(Σ_j v_j‖l_j‖₂²)^½ ≤ ‖B‖_F·Δ₂(L)·(Σv)^½``,

    and ``Δ₂ ≤ Δ₁``, so it holds for Laplace noise too. With ``S = W·diag(v)·Wᵀ`` it is
    ``(tr S^½)²/Σv``. It is taken from singular values, not from the eigenvalues of S, of which
    the small ones would be lost; and lowered by more than rounding can have added: each
    of the k values is off by at most a modest multiple of ``(k + n)·eps·σ₁``.

    Examples
    --------
    >>> W = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> round(nuclear_bound(W, np.ones(3) / 3), 6)
    2.488034
    """
    values = svdvals(W * np.sqrt(weights), check_finite=False)
    rounding = sum(W.shape) * EPS * float(values[0])
    total = float(np.maximum(values - rounding, 0.0).sum())
    return total**2 / (float(weights.sum()) * (1.0 + weights.size * EPS))


def optimise_gaussian(
    W: Floats,
    *,
    tolerance: float = 1e-3,
    max_rounds: int = 1000,
    clock: Clock = UNLIMITED,
) -> GaussianResult:
    """Minimise ``‖B‖_F²`` over ``W = BL`` with every column of L in the unit L2 ball.

    The program is convex in LᵀL. Its dual is to maximise ``φ(v) = tr S^½``, where
    ``S = Σ v_j w_j w_jᵀ``, over weights v of sum 1 (see ``nuclear_bound``); from any v,
    ``X = S^(-1/4)``, ``L = X·W``, ``B = X⁻¹`` is a strategy of error ``max_j‖X w_j‖²·tr S^½``
    (returned in the eigenbasis of S: a rotation of L changes neither norm).
    Both meet at the optimum, and the run ends when ``upper ≤ (1 + tolerance)·lower``.

    Method: a fixed-point map for v with Anderson's mixing [1]_, see ``WeightAscent``.

    Cost: O(k²n) a round, for k = rank(W). W may be rank-deficient or badly scaled, with zero
    and equal columns: directions in which S is below rounding keep a floor, and both bounds are
    measured, not derived. On ``StopSolver`` the best so far is returned; the first
    round is always done.

    References
    ----------
    .. [1] Walker, Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer.
       Anal. 49(4), 2011.

    Examples
    --------
    >>> found = optimise_gaussian(np.tril(np.ones((64, 64))))
    >>> 282.1 < found.lower <= found.upper < 282.5, found.converged
    (True, True)
    """
    if W.ndim != 2 or not W.size or not np.isfinite(W).all():
        raise UsageError(
            f"expected a finite matrix with rows and columns, got shape {W.shape}; "
            "remove infinite and missing values"
        )
    if not tolerance > 0:
        raise UsageError(f"expected a tolerance above 0, got {tolerance}; the default is 0.001")
    weights = np.zeros(W.shape[1])
    cells = np.flatnonzero(W.any(axis=0))
    if not cells.size:
        nothing = np.zeros((0, W.shape[1])), np.zeros((W.shape[0], 0))
        return GaussianResult(*nothing, 0.0, 0.0, weights, 0, converged=True)
    scale = float(np.abs(W).max())
    columns, back = _full_row_rank(W[:, cells] / scale)
    ascent = _DenseAscent.of(np.einsum("ij,ij->j", columns, columns), columns=columns)
    certified = ascent.run(tolerance, max_rounds, 0.95, scale, clock)
    weights[cells] = ascent.weights
    L = np.zeros((len(columns), W.shape[1]))
    L[:, cells] = ascent.strategy
    # Shrunk by the rounding of the norms, so that no column is outside its ball.
    stretch = float(np.sqrt(np.einsum("ij,ij->j", L, L).max())) * (1.0 + 4 * EPS)
    B = ascent.reconstruction * (stretch * scale)
    B = B if back is None else back @ B
    upper = float(np.vdot(B, B))
    lower = min(certified * scale**2 * (1.0 - 8 * EPS), upper)
    return GaussianResult(
        L / stretch,
        B,
        upper,
        lower,
        weights,
        ascent.rounds,
        converged=upper <= (1.0 + tolerance) * lower * (1.0 + 1e-9),
    )


def _full_row_rank(W: Floats) -> tuple[Floats, Floats | None]:
    """Return R and U (None for the identity) with ``W = U·R``, R of full row rank."""
    m, n = W.shape
    if m <= n:
        gram = W @ W.T
        factor, failed = lapack.dpotrf(gram)
        # Far from singular, by the cheapest test; else singular values decide, which see
        # twice as many digits.
        if not failed and lapack.dpocon(factor, float(np.abs(gram).sum(axis=0).max()))[0] > 1e-10:
            return W, None
    U, singular, Vt = svd(W, full_matrices=False)
    k = int(np.count_nonzero(singular > singular[0] * max(m, n) * EPS))
    return singular[:k, np.newaxis] * Vt[:k], U[:, :k]


@dataclass(slots=True, kw_only=True)
class _DenseAscent(WeightAscent):
    columns: Floats
    sure: float = 0.0
    strategy: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    reconstruction: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def evaluate(self, v: Floats) -> tuple[float, Floats]:
        """Decompose S, and keep the strategy that is best so far."""
        half = self.columns * np.sqrt(v)
        values, basis = eigh(half @ half.T, driver="evr", check_finite=False)
        del half
        # What forming S and its decomposition can have added to any eigenvalue.
        rounding = sum(self.columns.shape) * EPS * float(values.sum())
        sure = float(np.sqrt(np.maximum(values - rounding, 0.0)).sum())
        values = np.maximum(values, values[-1] * EPS)
        phi = float(np.sqrt(values).sum())
        root = np.sqrt(np.sqrt(values))
        Y = (basis / root).T @ self.columns
        d: Floats = np.einsum("ij,ij->j", Y, Y)
        if phi**2 > self.lower:
            self.sure = sure**2
        if phi * d.max() < self.upper:
            basis *= root
            self.strategy, self.reconstruction = Y, basis
        return phi, d

    def certified(self, tolerance: float) -> float:
        """Take the eigenvalues of S, or singular values where those are not enough."""
        if self.upper <= (1.0 + tolerance) * self.sure:
            return self.sure
        # Costs as much as several rounds, and sees singular values down to eps, not √eps.
        return max(self.sure, nuclear_bound(self.columns, self.weights))
