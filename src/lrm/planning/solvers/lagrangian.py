"""The paper's algorithms: 1 decomposes a workload, by way of 2, the best L for a given B.

See ``docs/explanation/mechanism.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, svd

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver, UsageError
from lrm.planning.design.cells import numerical_rank
from lrm.queries.maps.linear import Floats


@dataclass(frozen=True, slots=True)
class Iterate:
    """A point L (r x n) of the method, and the step length that the next call begins with.

    Columns are in the unit L1 ball, except perhaps those of a first start. ``lipschitz`` is the
    last accepted ω (the paper starts at 1), ``evaluations`` the projections done to get here.
    """

    L: Floats
    lipschitz: float = 1.0
    evaluations: int = 0


def minimise_over_l1_balls(
    gram: Floats, target: Floats, start: Iterate, *, iterations: int, norm: int = 1
) -> Iterate:
    """Run the accelerated projected gradient method on a quadratic over L1 (or L2) balls.

    Minimises ``G(L) = ½ tr(LᵀHL) - tr(TᵀL)`` over matrices whose columns are in the unit L1
    ball, where H is ``gram`` (r x r, positive semidefinite) and T is ``target`` (r x n). The
    paper's G is this with ``H = β BᵀB`` and ``T = Bᵀ(βW + π)``, which do not change while L
    does: an evaluation costs O(r²n), whatever the number of queries.

    Method: Nesterov's gradient scheme [1]_ with backtracking on the Lipschitz parameter ω,
    Algorithm 2 of the paper, which is read as follows where its indices cannot be meant:

    - ``α = (δ(t-2) - 1)/δ(t-1)`` is -1 in the first step, where it multiplies a difference
      that is zero: there is no momentum before there are two points;
    - the model of the gradient step is compared at the *projected* point L, not at U, and
      its gradient is the one at S, or else the test would not bound the progress;
    - L(t) is overwritten by the candidates of the line search only after S is formed.

    G is quadratic, so the test ``G(L) ≤ model(L)`` is ``⟨D, HD⟩ ≤ ω‖D‖²`` with ``D = L - S``,
    free of the cancellation in a difference of values; and its product HD also moves the
    gradient along, so that a step costs one product.

    References
    ----------
    .. [1] Nesterov, "Introductory lectures on convex optimization", Kluwer 2003.

    Examples
    --------
    >>> start = Iterate(np.zeros((2, 1)))
    >>> found = minimise_over_l1_balls(np.eye(2), np.array([[3.0], [0.0]]), start, iterations=50)
    >>> found.L.tolist()
    [[1.0], [0.0]]
    """
    project = project_columns_l1 if norm == 1 else _project_columns_l2
    # χ of the paper: a step so short that no further progress is possible.
    shortest = start.L.size * 1e-12
    omega, evaluations = start.lipschitz, 0
    L, gradient = start.L, gram @ start.L - target
    last_L, last_gradient = L, gradient
    delta_before, delta = 0.0, 1.0
    for step in range(iterations):
        momentum = (delta_before - 1.0) / delta if step else 0.0
        # The gradient is affine, so it extrapolates as the points do.
        S = L + momentum * (L - last_L)
        gradient_S = gradient + momentum * (gradient - last_gradient)
        while True:
            candidate = project(S - gradient_S / omega)
            evaluations += 1
            D = candidate - S
            squared = float(np.vdot(D, D))
            if squared < shortest**2:
                return Iterate(candidate, omega, evaluations)
            HD = gram @ D
            curvature = float(np.vdot(D, HD))
            if curvature <= omega * squared:
                break
            # At least doubled, as in the paper; at once to what this direction needs.
            omega = max(2.0 * omega, curvature / squared)
        last_L, last_gradient = L, gradient
        L, gradient = candidate, gradient_S + HD
        delta_before, delta = delta, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * delta**2))
    return Iterate(L, omega, evaluations)


def _project_columns_l2(matrix: Floats) -> Floats:
    """Shorten each column to the unit L2 ball."""
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=0), 1.0))


def project_columns_l1(matrix: Floats, radius: float = 1.0) -> Floats:
    """Project each column of ``matrix`` onto the L1 ball of ``radius``.

    Solves ``min ‖x_j - a_j‖₂`` subject to ``‖x_j‖₁ ≤ radius`` for every column j. The
    answer is soft thresholding, ``x = sign(a)·max(|a| - θ_j, 0)``, where θ_j follows from
    the largest entries of the column [1]_. Few entries survive where the optimum is sparse,
    so only the largest 16 of a column are sorted, and four times as many for the columns in
    which all of them survived.

    Cost: O(r·n) for the selection; at r = 300, n = 1,000 about 7 ms, against 10 to
    15 ms for sorting whole columns and 16 ms for Newton's method on θ.

    References
    ----------
    .. [1] Duchi, Shalev-Shwartz, Singer, Chandra, "Efficient projections onto the l1-ball
       for learning in high dimensions", ICML 2008.

    Examples
    --------
    >>> project_columns_l1(np.array([[3.0, 0.25], [-1.0, 0.5]])).tolist()
    [[1.0, 0.25], [0.0, 0.5]]
    """
    if not radius > 0:
        raise ValueError(f"expected a positive radius, got {radius}; use a radius above 0")
    projected = np.array(matrix, dtype=np.float64)
    if not projected.size:
        return projected
    size = np.abs(projected)
    outside = np.flatnonzero(size.sum(axis=0) > radius)
    if not outside.size:
        return projected
    top = size.max(axis=0)
    if top.max() > 8 * radius:
        # θ is above top - radius, so this takes nothing that survives; and it keeps the
        # digits: beside 1e20, a radius of 1 is lost in the rounding of θ.
        far = np.flatnonzero(top > radius)
        near = np.maximum(size[:, far] - top[far] + radius, 0.0)
        size[:, far] = near
        projected[:, far] = np.copysign(near, projected[:, far])
    everything = outside.size == size.shape[1]
    theta = np.zeros(size.shape[1])
    theta[outside] = _thresholds((size if everything else size[:, outside]).T, radius)
    # a - clip(a, -θ, θ) is soft thresholding without a sign; θ = 0 leaves a column as it is.
    np.maximum(projected, -theta, out=size)
    np.minimum(size, theta, out=size)
    return np.subtract(projected, size, out=projected)


def _thresholds(size: Floats, radius: float, most: int = 16) -> Floats:
    """Return θ_j with ``Σ_i max(size_ji - θ_j, 0) = radius``, for rows that sum to more."""
    width = size.shape[1]
    if most < width:
        largest = np.partition(size, width - most, axis=1)[:, width - most :]
    else:
        largest, most = size, width
    falling = -np.sort(-largest, axis=1)
    thetas = np.cumsum(falling, axis=1)
    thetas -= radius
    thetas /= np.arange(1, most + 1)
    survivors = np.count_nonzero(falling > thetas, axis=1)
    # Rounding may leave none of several equal entries above their average.
    theta: Floats = thetas[np.arange(len(size)), np.maximum(survivors, 1) - 1]
    if most < width:
        full = np.flatnonzero(survivors == most)
        if full.size:
            theta[full] = _thresholds(size[full], radius, 4 * most)
    return np.maximum(theta, 0.0)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the penalty grows and how well each subproblem is solved.

    Parameters
    ----------
    beta_growth, growth_every
        The penalty β starts at 1 and is multiplied by ``beta_growth`` after every
        ``growth_every`` rounds: the paper's 2 and 10.
    max_beta
        "β is sufficiently large": the end of a run that does not reach its residual.
    alternations, inner_iterations
        The subproblem of a round is solved inexactly: a few calls of Algorithm 2 with a few
        steps each, then B in closed form. Solving for L to the end with a B that is not final
        pushes columns of L to corners of their balls, all of them the same few: 1 x 20 ended
        a hundred times higher. Medians of 3 seeds of 5 x 5 and 10 x 5: 1022 and 960 on 64
        prefix sums, 2680 and 2519 on WDiscrete 64 x 128.
    perturbation
        Once a round, zeros of L are moved by noise of this times the relative residual (see
        ``decompose``). Medians of 3 seeds at 0, 0.001, 0.01 and 0.1: no convergence, 1208,
        997, 960 on 64 prefix sums; none, 2612, 2601, 2519 on WDiscrete 64 x 128.
    perturbed_rows
        With more rows than this the noise is less in proportion, so that a column's share of it
        stays. Otherwise it fills the ball, pushes the signal out and keeps the residual up:
        WDiscrete 256 x 512 (308 rows) ended at 324,214, and ends at 77,930.
    slack
        Rounds go on after the residual reached gamma until making ``W = BL`` exact moves the
        sensitivity to at most 1 + slack; ``None`` stops at gamma, as the paper does.
    norm
        1 for columns of L in the L1 ball (Laplace noise), 2 for the L2 ball (Gaussian).
    """

    beta_growth: float = 2.0
    growth_every: int = 10
    max_beta: float = 2.0**20
    alternations: int = 10
    inner_iterations: int = 5
    perturbation: float = 0.1
    perturbed_rows: int = 77
    slack: float | None = 0.02
    norm: int = 1

    def __post_init__(self) -> None:
        """Refuse schedules that would never end."""
        if not self.beta_growth > 1 or self.growth_every < 1:
            raise UsageError(
                f"expected a penalty that grows, got a factor of {self.beta_growth} every "
                f"{self.growth_every} rounds; use a factor above 1 and at least 1 round"
            )
        if self.alternations < 1 or self.inner_iterations < 1:
            raise UsageError("expected at least one alternation of at least one iteration")

    def noise(self, rows: int, residual: float) -> float:
        """Return the size of the noise on the zeros of L for a number of rows.

        Examples
        --------
        >>> Schedule().noise(50, 0.5), round(200 * Schedule().noise(200, 0.5), 9)
        (0.05, 3.85)
        """
        return self.perturbation * min(1.0, self.perturbed_rows / rows) * residual


@dataclass(frozen=True, slots=True)
class Round:
    """One round of Algorithm 1.

    ``objective`` is ``‖B‖²``, ``residual`` is ``‖W - BL‖_F``, ``error`` is an upper bound on
    ``‖B‖²·Δ²`` after this iterate is made exact, and ``evaluations`` counts the gradients
    of Algorithm 2.
    """

    objective: float
    residual: float
    beta: float
    evaluations: int
    error: float


@dataclass(frozen=True, slots=True)
class Decomposition:
    """``W ≈ B·L`` with every column of L in the unit L1 ball.

    ``residual`` is ``‖W - BL‖_F`` of these arrays; ``converged`` says that it is at most
    gamma (and the slack kept).
    """

    B: Floats
    L: Floats
    residual: float
    rounds: tuple[Round, ...]
    converged: bool

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self.B.setflags(write=False)
        self.L.setflags(write=False)


@dataclass(slots=True)
class _Run:
    """The state of a run on the reduced workload R (k x n, of norm 1)."""

    R: Floats
    B: Floats
    point: Iterate
    multiplier: Floats
    beta: float = 1.0
    #: Error once exact, and residual; the error decides where it is finite.
    best_score: tuple[float, float] = (float("inf"), float("inf"))
    best: tuple[Floats, Floats] | None = None
    rounds: list[Round] = field(default_factory=list)


def decompose(  # noqa: PLR0913 - each is a choice of the caller
    W: Floats,
    rank: int,
    *,
    gamma: float = 0.01,
    rng: np.random.Generator,
    schedule: Schedule | None = None,
    clock: Clock = UNLIMITED,
) -> Decomposition:
    """Minimise ``‖B‖²`` over ``‖W - BL‖_F ≤ gamma`` with columns of L in the unit L1 ball.

    B is m x rank and L is rank x n. The method is Algorithm 1 of the paper: for a penalty β
    and a multiplier π, alternate between ``B = (βWLᵀ + πLᵀ)(βLLᵀ + I)⁻¹`` and Algorithm 2 for
    L; then ``π ← π + β(W - BL)``; β doubles every ten rounds. What the paper leaves open:

    - *Rows.* The problem is solved for ``ΣVᵀ`` (k x n) in place of ``W = UΣVᵀ``: norms do not
      change under U, and neither B nor W costs more than k rows.
    - *Scale.* The Lagrangian of (sW, sB, sπ) is s² times that of (W, B, π) at the same
      β, so ``β = 1`` means the same on every scale. W is divided by its norm, and gamma with
      it: gamma stays an absolute residual on the workload as given.
    - *Start.* The factorisation behind the paper's Lemma upper, ``B = √r UΣ``, ``L = Vᵀ/√r``,
      which has no residual, and L is updated first: B is then never fitted to a poor L.
    - *Lost rows.* A row of L that becomes zero makes its column of B zero, and then both stay
      zero: a saddle point from which neither update leaves. L then loses rank for good
      and the residual never vanishes (seen in every run, for every start). So once a round
      zeros of L are moved by Gaussian noise in proportion to the relative residual, and
      columns shortened into their balls again. The noise ends as the residual does, as in
      annealing; it also finds better minima.

    Cost: O(r²n + krn) a gradient. The start is seeded by ``rng``: equal seeds, equal results.
    On ``StopSolver`` from the clock the best so far is returned: the iterate
    whose exact version has the least error.

    Raises ``UsageError`` for a rank below 1, gamma not above 0 or a workload with no cells or
    values that are not finite.

    References
    ----------
    .. [1] Yuan, Zhang, Winslett, Xiao, Yang, Hao, "Low-rank mechanism: optimizing batch queries
       under differential privacy", VLDB 2012, Algorithm 1, arXiv:1208.0094.

    Examples
    --------
    >>> W = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> found = decompose(W, 3, rng=np.random.default_rng(0))
    >>> found.converged, bool(np.linalg.norm(W - found.B @ found.L) <= 0.01)
    (True, True)
    """
    _check(W, rank, gamma)
    plan = schedule or Schedule()
    U, singular, Vt = svd(W, full_matrices=False)
    k = numerical_rank(singular, W.shape)
    if not k:
        empty = np.zeros((W.shape[0], rank)), np.zeros((rank, W.shape[1]))
        return Decomposition(*empty, 0.0, (), converged=True)
    scale = float(np.linalg.norm(singular[:k]))
    run = _start(singular[:k] / scale, Vt[:k], rank, plan.norm, rng)
    converged = False
    try:
        while not converged and run.beta <= plan.max_beta:
            converged = _round(run, plan, gamma / scale, rng, clock)
            last = run.rounds[-1]
            run.rounds[-1] = replace(
                last,
                objective=last.objective * scale**2,
                residual=last.residual * scale,
                error=last.error * scale**2,
            )
            error = run.best_score[0] * scale**2
            clock.tick(Step("lowrank", len(run.rounds), error, last.residual))
    except StopSolver:
        pass
    B, L = (run.B, run.point.L) if converged or run.best is None else run.best
    B = (U[:, :k] * scale) @ B
    residual = float(np.linalg.norm(W - B @ L))
    return Decomposition(B, L, residual, tuple(run.rounds), converged)


def _check(W: Floats, rank: int, gamma: float) -> None:
    if W.ndim != 2 or not W.size or not np.isfinite(W).all():
        raise UsageError(
            f"expected a finite matrix with rows and columns, got shape {W.shape}; "
            "remove infinite and missing values"
        )
    if rank < 1:
        raise UsageError(f"expected a rank of at least 1, got {rank}; use 1.2 times rank(W)")
    if not gamma > 0:
        raise UsageError(f"expected a residual gamma above 0, got {gamma}; the default is 0.01")


def _start(singular: Floats, Vt: Floats, rank: int, norm: int, rng: np.random.Generator) -> _Run:
    """Return the start of Lemma upper, padded to ``rank`` rows."""
    k, n = Vt.shape
    start_rank = min(k, rank)
    B, L = np.zeros((k, rank)), np.zeros((rank, n))
    B[np.arange(start_rank), np.arange(start_rank)] = singular[:start_rank] * np.sqrt(rank)
    L[:start_rank] = Vt[:start_rank] / np.sqrt(rank)
    R = singular[:, np.newaxis] * Vt
    # Far below the noise of the rounds: only to distinguish the spare rows.
    perturbed = Iterate(L + 1e-8 * rng.standard_normal(L.shape))
    shaken = B + 1e-8 * singular[0] * rng.standard_normal(B.shape)
    run = _Run(R, shaken, perturbed, np.zeros_like(R))
    if rank >= k:
        # An exact pair from the beginning: an early interrupt still has a strategy.
        sensitivity = float(np.linalg.norm(L, ord=norm, axis=0).max())
        run.best = B * sensitivity, L / sensitivity
        run.best_score = float(np.vdot(run.best[0], run.best[0])), 0.0
    return run


def _round(
    run: _Run,
    plan: Schedule,
    gamma: float,
    rng: np.random.Generator,
    clock: Clock,
) -> bool:
    """Do one round of Algorithm 1; return whether the residual is small enough."""
    if run.rounds:
        if len(run.rounds) % plan.growth_every == 0:
            run.beta *= plan.beta_growth
        run.multiplier += run.beta * (run.R - run.B @ run.point.L)
    residual = float(np.linalg.norm(run.R - run.B @ run.point.L)) if run.rounds else 1.0
    evaluations = 0
    pulled = run.beta * run.R + run.multiplier
    for alternation in range(plan.alternations):
        clock.check()
        # Half of the last ω lets it fall again where the curvature does.
        start = replace(run.point, lipschitz=0.5 * run.point.lipschitz)
        run.point = minimise_over_l1_balls(
            run.beta * (run.B.T @ run.B),
            run.B.T @ pulled,
            start,
            iterations=plan.inner_iterations,
            norm=plan.norm,
        )
        evaluations += run.point.evaluations
        if alternation == 0:
            size = plan.noise(len(run.point.L), residual)
            L = _moved_off_zero(run.point.L, size, plan.norm, rng)
            run.point = replace(run.point, L=L)
        run.B = best_reconstruction(run.point.L, pulled, run.beta)
    gap = run.R - run.B @ run.point.L
    residual = float(np.linalg.norm(gap))
    objective = float(np.vdot(run.B, run.B))
    sensitivity = _exact_sensitivity(run.B, run.point.L, gap, plan.norm)
    error = objective * sensitivity**2
    run.rounds.append(Round(objective, residual, run.beta, evaluations, error))
    if (error, residual) < run.best_score:
        run.best_score, run.best = (error, residual), (run.B, run.point.L)
    return residual <= gamma and (plan.slack is None or sensitivity <= 1.0 + plan.slack)


def best_reconstruction(L: Floats, pulled: Floats, beta: float) -> Floats:
    """Return ``B = (βW + π)Lᵀ(βLLᵀ + I)⁻¹``, the paper's Eq. (UpdateB)."""
    system = beta * (L @ L.T)
    system[np.diag_indices_from(system)] += 1.0
    factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    B: Floats = cho_solve(factor, L @ pulled.T, overwrite_b=True, check_finite=False).T
    return B


def _moved_off_zero(L: Floats, size: float, norm: int, rng: np.random.Generator) -> Floats:
    """Return L with noise of ``size`` on its zeros, its columns still in their balls."""
    noise = rng.standard_normal(L.shape)
    noise *= size
    noise *= np.abs(L) < size
    noise += L
    noise /= np.maximum(np.linalg.norm(noise, ord=norm, axis=0), 1.0)
    return noise


def _exact_sensitivity(B: Floats, L: Floats, gap: Floats, norm: int) -> float:
    """Return Δ(L + B⁺gap), infinite while B does not have full row rank.

    Multiplying by ``‖B‖²`` bounds the error after exactness: the best B for that L is shorter.
    """
    try:
        low = cho_factor(B @ B.T, lower=True, check_finite=False)
    except LinAlgError:
        return float("inf")
    moved = B.T @ cho_solve(low, gap, check_finite=False)
    # A singular B can pass the factorisation by rounding, but then moves L nowhere useful.
    if not np.linalg.norm(B @ moved - gap) <= 1e-10:
        return float("inf")
    return float(np.linalg.norm(L + moved, ord=norm, axis=0).max())
