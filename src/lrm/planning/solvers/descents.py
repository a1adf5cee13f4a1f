"""Descents over strategies: of any form, and in the row space of the workload.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import lapack

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import ConvergenceError
from lrm.planning.solvers import settings
from lrm.planning.solvers.exact import ExactPair, factorise, make_exact
from lrm.planning.solvers.quasi_newton import descend, descend_orthantwise, log_power_mean
from lrm.queries.maps.linear import Floats


@dataclass(frozen=True, slots=True)
class GeneralResult:
    """The exact pair that a descent ended with, and how it ended.

    ``relaxed`` is the error of the last iterate without the residual that was forgiven, ``moved``
    the share of the entries that were variables.
    """

    pair: ExactPair
    relaxed: float
    moved: float
    iterations: int

    @property
    def error(self) -> float:
        """``‖B‖²`` of the exact pair, whose strategy has sensitivity 1."""
        return self.pair.error


def penalised_error(W: Floats, L: Floats, beta: float) -> tuple[float, Floats, Floats]:
    """Return ``J = min_B ‖B‖² + β‖W - BL‖²``, its gradient by L, and the best B.

    ``J = tr(W·(I/β + LᵀL)⁻¹·Wᵀ)`` with gradient ``-2β·Bᵀ(W - BL)``. One Cholesky factor of
    the smaller of the two Gram matrices: O(r·n·(k + min(r, n))). J is infinite where float64
    cannot factor that matrix.

    Examples
    --------
    >>> value, _, B = penalised_error(np.ones((1, 2)), np.ones((1, 2)), 1e9)
    >>> round(value, 6), B.round(6).tolist()
    (1.0, [[1.0]])
    """
    r, n = L.shape
    gram = L.T @ L if r >= n else L @ L.T
    gram[np.diag_indices_from(gram)] += 1.0 / beta
    low, failed = lapack.dpotrf(gram, lower=1)  # without what SciPy checks around it
    if failed:
        return np.inf, np.zeros_like(L), np.zeros((len(W), r))
    if r >= n:
        scaled_residual = lapack.dpotrs(low, W.T, lower=1)[0].T
        B = scaled_residual @ L.T
    else:
        B = lapack.dpotrs(low, L @ W.T, lower=1)[0].T
        scaled_residual = beta * (W - B @ L)
    return float(np.vdot(scaled_residual, W)), -2.0 * B.T @ scaled_residual, B


class _Relaxed:
    """``log J_β`` of ``L = Θ·D``, where D scales the columns of Θ to L1 norm 1 or less.

    The last row of Θ is no measurement but what a column leaves unused of its norm: a column may
    have to be short so that L answers W. Only entries in ``support`` are variables: those that are
    not zero and those that steepest descent opens, a few per cent of a good strategy.
    """

    def __init__(self, W: Floats, T: Floats, relaxation: float) -> None:
        self.W, self.shape = W, T.shape
        L = T[:-1] / np.abs(T).sum(axis=0)
        self.beta = len(L) / (relaxation * float(np.vdot(L, L)))
        _, by_rows, by_size = self._partials(T)
        self.support = np.flatnonzero((T != 0) | (np.abs(by_rows) > by_size))
        self.start = T.ravel()[self.support]

    def full(self, x: Floats) -> Floats:
        T = np.zeros(self.shape)
        T.ravel()[self.support] = x
        return T

    def __call__(self, x: Floats) -> tuple[float, Floats, Floats]:
        value, by_rows, by_size = self._partials(self.full(x))
        return value, by_rows.ravel()[self.support], by_size.ravel()[self.support]

    def _partials(self, T: Floats) -> tuple[float, Floats, Floats]:
        """The value, its derivatives by the entries at fixed D, and those by their sizes."""
        size = np.abs(T).sum(axis=0)
        if not size.all():
            return np.inf, np.zeros_like(T), np.zeros_like(T)
        L = T[:-1] / size
        value, gradient, _ = penalised_error(self.W, L, self.beta)
        by_size = np.einsum("ij,ij->j", gradient, L) / (-size * value)
        gradient /= size * value
        # What is unused has no sign, so it is held at zero by a positive derivative alone.
        by_rows = np.vstack([gradient, np.minimum(by_size, 0.0)])
        return float(np.log(value)), by_rows, np.broadcast_to(np.maximum(by_size, 0.0), T.shape)


def general_stages(
    W: Floats,
    strategy: Floats,
    *,
    schedule: Sequence[tuple[float, int]] = settings.GENERAL_SCHEDULE,
    clock: Clock = UNLIMITED,
) -> Iterator[GeneralResult]:
    """Improve any exact strategy L (r x n): which rows it has, and which cells they touch.

    Minimises ``J_β(L) = tr(W·(I/β + LᵀL)⁻¹·Wᵀ)`` over all L whose columns lie in the L1 ball, by an
    orthant-wise quasi-Newton descent, β growing stage by stage; after each stage the pair is made
    exact, measured and yielded. Unlike the structured solvers this may give up a cell's own row.

    Never worse than the start, which must answer W (``ConvergenceError`` if it does not).
    Cost: O(r·n·(k + min(r, n))) per round.
    """
    unit = float(np.linalg.norm(W)) or 1.0
    V = W / unit
    best = factorise(W, strategy)
    L = best.strategy.toarray()
    T = np.vstack([L, 1.0 - np.abs(L).sum(axis=0)])
    T[-1, T[-1] < 1e-9] = 0.0
    for relaxation, max_rounds in schedule:
        function = _Relaxed(V, T, relaxation)
        run = descend_orthantwise(
            function,
            function.start,
            on_round=lambda i, _: clock.tick(Step("general form", i, best.error)),  # noqa: B023
            tolerance=1e-5,
            max_rounds=max_rounds,
        )
        T = function.full(run.point)
        used = np.append(np.any(T[:-1] != 0, axis=1), True)
        T = T[used] / np.abs(T).sum(axis=0)
        best = _better(best, W, V, T[:-1], function.beta)
        relaxed = float(np.exp(run.value)) * unit**2
        moved = len(function.support) / math.prod(function.shape)
        yield GeneralResult(best, relaxed, moved, run.rounds)
        if run.interrupted:
            return


def _better(best: ExactPair, W: Floats, V: Floats, L: Floats, beta: float) -> ExactPair:
    """Return the exact form of L if there is one and it is lower than ``best``."""
    B = penalised_error(V, L, beta)[2] * np.linalg.norm(W)
    try:
        pair = make_exact(W, B, L)
    except ConvergenceError:
        return best
    return pair if pair.error < best.error else best


def rotation(W: Floats, rows: int, rng: np.random.Generator) -> Floats:
    """Return a mixing X (rows x k) for ``L = X·W``: a random rotation of ``Σ^(-1/2)·Uᵀ``.

    With ``W = UΣVᵀ`` that X balances ‖X⁺‖ against ‖X·W‖; every rotation of it does, and
    which one is good under an L1 norm is found out by trying.

    Examples
    --------
    >>> rotation(np.eye(3), 4, np.random.default_rng(0)).shape
    (4, 3)
    """
    # Squaring halves the digits of small singular values: no matter for a start, and
    # eight to ten times cheaper than an SVD (k = 256 and 512, n = 8k).
    squares, U = np.linalg.eigh(W @ W.T)
    safe = np.maximum(squares, 1e-14 * max(float(squares[-1]), np.finfo(np.float64).tiny))
    Q = np.linalg.qr(rng.standard_normal((rows, W.shape[0])))[0]
    return np.asarray(Q @ (U * safe**-0.25).T, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class RowSpaceResult:
    """The mixing X (r x k) of a strategy ``L = X·W`` and what it costs."""

    mixing: Floats
    error: float
    iterations: int


def row_space_error(W: Floats, X: Floats) -> float:
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


def _log_error(X: Floats, *, W: Floats, power: float, width: float) -> tuple[float, Floats]:
    """Return the logarithm of the error, both norms rounded, and its gradient.

    ``log tr (XᵀX)⁻¹ + (2/power)·log Σ_j s_j^power`` with ``s_j = Σ_i sqrt(l_ij² + width²)``.
    """
    low, failed = lapack.dpotrf(X.T @ X, lower=1)
    if failed:
        return float("inf"), np.zeros_like(X)
    inverse = lapack.dpotrs(low, np.eye(X.shape[1]), lower=1)[0]
    trace = float(np.trace(inverse))
    gradient = X @ (inverse @ inverse)
    gradient *= -2.0 / trace
    L = X @ W
    root = np.sqrt(L * L + width * width)
    loads = root.sum(axis=0)
    largest, slopes = log_power_mean(loads, power)
    np.divide(L, root, out=root)
    root *= 2.0 * slopes / loads
    gradient += root @ W.T
    return float(np.log(trace)) + 2.0 * largest, gradient


def optimise_row_space(  # noqa: PLR0913 - each is a choice of the caller
    W: Floats,
    mixing: Floats,
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
    X = mixing
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
        error = row_space_error(W, X)
        if error < best:
            best, best_mixing = error, X
        if run.interrupted:
            break
    return RowSpaceResult(best_mixing, best, rounds)
