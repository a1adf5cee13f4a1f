"""Strategies for Gaussian noise to proven optimality, and the bound that proves it.

See ``docs/explanation/gaussian.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, lapack, svd, svdvals

from lrm.clock import UNLIMITED, Clock
from lrm.errors import UsageError
from lrm.solvers.gaussian_ascent import GaussianResult, Matrix, Vector, WeightAscent
from lrm.solvers.gaussian_chain import find_chain, optimise_chain

__all__ = ["GaussianResult", "nuclear_bound", "optimise_gaussian", "optimise_gaussian_gram"]

EPS = float(np.finfo(np.float64).eps)


def nuclear_bound(W: Matrix, weights: Vector) -> float:
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
    W: Matrix,
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
    Many-celled workloads of nearly full column rank start from the weights of every other cell.

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
    ascent = _DenseAscent(np.log(_first_weights(columns, clock)), columns=columns)
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


def optimise_gaussian_gram(
    gram: Matrix,
    *,
    tolerance: float = 1e-3,
    max_rounds: int = 1000,
    clock: Clock = UNLIMITED,
) -> GaussianResult:
    """Solve ``optimise_gaussian`` from ``G = WᵀW`` alone, for workloads too tall to write.

    Nothing but G matters for L, for the error and for the bound. B belongs to a factor R with
    ``G = RᵀR``; the reconstruction of W itself is ``W·L⁺``. Cost: O(n²) in all where G has a
    tridiagonal inverse (prefix sums, all ranges), else O(n³) more.

    Examples
    --------
    >>> n = np.arange(8)
    >>> ranges = (np.minimum.outer(n, n) + 1.0) * (8 - np.maximum.outer(n, n))
    >>> found = optimise_gaussian_gram(ranges)
    >>> bool(found.upper <= 1.001 * found.lower)
    True
    """
    chain = find_chain(gram)
    if chain is not None:
        optimum = optimise_chain(chain, tolerance=tolerance, max_rounds=max_rounds, clock=clock)
        if optimum.converged or clock.must_end():
            return optimum
    try:
        factor = cholesky(gram, check_finite=False)
    except LinAlgError:
        values, basis = eigh(gram, check_finite=False)
        significant = values > values[-1] * gram.shape[0] * EPS
        factor = np.sqrt(np.maximum(values, 0.0) * significant)[:, np.newaxis] * basis.T
    return optimise_gaussian(factor, tolerance=tolerance, max_rounds=max_rounds, clock=clock)


def _full_row_rank(W: Matrix) -> tuple[Matrix, Matrix | None]:
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


def _first_weights(columns: Matrix, clock: Clock) -> Vector:
    """Return weights to start from: those of every other cell, or of the columns' lengths."""
    k, n = columns.shape
    if n < 512 or 2 * k <= n:
        squares: Vector = np.einsum("ij,ij->j", columns, columns)
        return np.asarray(0.5 * squares / squares.sum() + 0.5 / n)
    # Cells in order have neighbours with nearly their own weight: 512 prefix sums then take 5
    # rounds, not 7, and 4,096 take 6. Out of order it is a start like any other.
    some = columns[:, ::2]
    coarse = optimise_gaussian_gram(some.T @ some, tolerance=3e-3, clock=clock).weights
    floor = 1e-3 / coarse.size
    spread = np.exp(np.interp(np.arange(n), np.arange(0, n, 2), np.log(coarse + floor)))
    return np.asarray(spread / spread.sum())


@dataclass(slots=True, kw_only=True)
class _DenseAscent(WeightAscent):
    columns: Matrix
    sure: float = 0.0
    strategy: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    reconstruction: Matrix = field(default_factory=lambda: np.zeros((0, 0)))

    def evaluate(self, v: Vector) -> tuple[float, Vector]:
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
        d: Vector = np.einsum("ij,ij->j", Y, Y)
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
