"""Strategies for Gaussian noise to proven optimality, and the bound that proves it.

See ``docs/explanation/gaussian.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal, lapack, solve, svd, svdvals

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver, UsageError
from lrm.planning.design.cells import numerical_rank
from lrm.queries.maps.linear import TINY, Floats, LinearMap

EPS = float(np.finfo(np.float64).eps)


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
    k = numerical_rank(singular, W.shape)
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


def optimise_gaussian_map(
    queries: LinearMap,
    rows: Callable[[], Floats],
    *,
    tolerance: float = 1e-3,
    max_rounds: int = 1000,
    clock: Clock = UNLIMITED,
) -> GaussianResult:
    """Solve ``optimise_gaussian`` for a map, as a chain where it has closed forms.

    Else for ``rows``: the map as an array, or any other matrix with its Gram. Matrices whose Gram
    is a chain's are solved as others: at 0.08 % more error, and in 3 s in place of 1 for 1,024
    prefix sums.

    Examples
    --------
    >>> from lrm.queries.maps.words import Prefix
    >>> found = optimise_gaussian_map(Prefix(8), lambda: np.tri(8))
    >>> bool(found.upper <= 1.001 * found.lower)
    True
    """
    chain = queries.gram_chain() if queries.has_closed_forms and queries.shape[1] > 1 else None
    if chain is None:
        return optimise_gaussian(rows(), tolerance=tolerance, max_rounds=max_rounds, clock=clock)
    return optimise_chain(*chain, tolerance=tolerance, max_rounds=max_rounds, clock=clock)


@dataclass(frozen=True, slots=True)
class Chain:
    """The tridiagonal inverse T of a Gram, and the diagonal of the Gram itself."""

    diagonal: Floats
    beside: Floats
    squares: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats) -> Chain:
        """The chain of ``G_ij = left_i·right_j`` for i ≤ j, with at least two cells.

        T is the sum of the inverses of the 2×2 blocks along the diagonal of G, less ``1/G_jj``
        where blocks overlap. Entries of whole numbers below 2^26 are off by some eps, relatively.

        >>> Chain.of(np.ones(4), np.array([4.0, 3.0, 2.0, 1.0])).diagonal
        array([1., 2., 2., 2.])
        """
        minors = left[1:] * right[:-1] - left[:-1] * right[1:]
        diagonal = np.zeros(len(left))
        diagonal[0] = left[1] / (left[0] * minors[0])
        diagonal[-1] = right[-2] / (right[-1] * minors[-1])
        outer = left[2:] * right[:-2] - left[:-2] * right[2:]
        diagonal[1:-1] = outer / (minors[1:] * minors[:-1])
        return cls(diagonal, -1.0 / minors, left * right)


def optimise_chain(
    left: Floats,
    right: Floats,
    *,
    tolerance: float = 1e-3,
    max_rounds: int = 1000,
    clock: Clock = UNLIMITED,
) -> GaussianResult:
    """Solve the program of ``optimise_gaussian`` where ``(WᵀW)_ij = left_i·right_j`` for i ≤ j.

    Prefix sums and all ranges are such chains (`LinearMap.gram_chain`). The inverse T of their Gram
    is tridiagonal, so with ``D = diag(v)`` the slopes are

        ``d_j = [(D^-½·T·D^-½)^-½]_jj / v_j = 2/π·∫₀^∞ [(T + t²D)⁻¹]_jj dt``,

    where each inverse is tridiagonal: its diagonal takes O(n). A hundred points of the
    trapezoidal rule in log t give 8 digits. B and L come in the basis in which B is diagonal.

    Cost: O(n) a round (0.1 s for n = 4,096), and one tridiagonal eigendecomposition,
    O(n²), in the end.

    Examples
    --------
    >>> found = optimise_chain(np.ones(64), np.arange(64.0, 0.0, -1.0))
    >>> 282.1 < found.lower <= found.upper < 282.5, found.converged
    (True, True)
    """
    chain = Chain.of(left, right)
    ascent = _ChainAscent.of(chain.squares, chain=chain)
    # Rounds are cheap, so the end is nearer to the optimum than was asked for.
    # The largest final distance of both bounds of a chain, whatever tolerance is allowed.
    nearer = min(0.25, 1e-5 / tolerance)
    certified = ascent.run(tolerance, max_rounds, nearer, 1.0, clock)
    v = ascent.spread
    root = np.sqrt(v)
    values, basis = eigh_tridiagonal(chain.diagonal / v, chain.beside / (root[1:] * root[:-1]))
    fourth = values**-0.25
    L = basis.T
    L *= fourth[:, np.newaxis]
    L /= root
    # Shrunk by the rounding of the norms, so that no column is outside its ball.
    stretch = float(np.sqrt(np.einsum("ij,ij->j", L, L).max())) * (1.0 + 4 * EPS)
    L /= stretch
    B = np.diag(fourth * stretch)
    upper = float(np.vdot(B, B))
    lower = min(certified * (1.0 - 8 * EPS), upper)
    converged = upper <= (1.0 + tolerance) * lower * (1.0 + 1e-9)
    return GaussianResult(L, B, upper, lower, ascent.weights, ascent.rounds, converged)


@dataclass(slots=True, kw_only=True)
class _ChainAscent(WeightAscent):
    chain: Chain
    spread: Floats = field(default_factory=lambda: np.zeros(0))
    """The weights of the least upper bound."""

    def evaluate(self, v: Floats) -> tuple[float, Floats]:
        """Integrate the slopes; the eigenvalues of ``D^-½·T·D^-½`` say where."""
        chain = self.chain
        least = 1.0 / float(v @ chain.squares)
        most = 4.0 * float((chain.diagonal / np.maximum(v, 1e-26)).max())
        # 1/√x = 2/π·∫ e^s/(e^2s + x) ds: poles at distance π/2 make the error of steps of ½
        # e^(-2π²) = 3e-9; what is beyond ±20 is e^-20 of the whole.
        points = np.exp(np.arange(0.5 * np.log(least) - 20, 0.5 * np.log(most) + 20, 0.5))
        d = _inverse_diagonals(chain, v, points**2) @ (points / np.pi)
        phi = float(v @ d)
        if phi * float(d.max()) < self.upper:
            self.spread = v
        return phi, d

    def certified(self, tolerance: float) -> float:
        """Bound ``tr S^½`` by eigenvalues that are known to relative accuracy.

        Entries of T and of ``D^-½·T·D^-½`` are off by some eps each, so the eigenvalues of the
        latter, relatively, by as much over the least eigenvalue of T scaled to a unit diagonal,
        whatever D; and dpteqr adds n·eps to each, relatively.
        """
        del tolerance
        chain, v = self.chain, np.maximum(self.weights, 1e-26)
        root = np.sqrt(chain.diagonal)
        links = chain.beside / (root[1:] * root[:-1])
        eigenvalues = eigh_tridiagonal(
            np.ones(len(root)), links, eigvals_only=True, select="i", select_range=(0, 0)
        )
        least = float(eigenvalues[0]) - 8 * len(root) * EPS
        if not least > 0:
            return 0.0
        root = np.sqrt(v)
        values, _, _, failed = lapack.dpteqr(
            chain.diagonal / v, chain.beside / (root[1:] * root[:-1]), np.zeros((1, 1)), compute_z=0
        )
        if failed or not np.all(values > 0):
            return 0.0
        margin = (64.0 / least + 16.0 * len(v)) * EPS
        total = float((values**-0.5).sum()) ** 2 / float(v.sum())
        return total * max(0.0, 1.0 - margin)


def _inverse_diagonals(chain: Chain, v: Floats, shifts: Floats) -> Floats:
    """Return the diagonal of ``(T + p·diag(v))⁻¹``, one column for each p.

    By elimination from both ends: what is left at j, of both, is the inverse of the entry.
    """
    middle = chain.diagonal[:, np.newaxis] + v[:, np.newaxis] * shifts
    squares = chain.beside**2
    left = middle.copy()
    for j in range(1, len(v)):
        left[j] -= squares[j - 1] / left[j - 1]
    pivot = middle[-1].copy()
    for j in range(len(v) - 2, -1, -1):
        taken = squares[j] / pivot
        left[j] -= taken
        pivot = middle[j] - taken
    return np.asarray(1.0 / left)
