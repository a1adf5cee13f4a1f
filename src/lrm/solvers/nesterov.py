"""The paper's Algorithm 2: the best strategy for a given reconstruction, and L1 projections.

See ``docs/explanation/mechanism.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Iterate", "Workspace", "minimise_over_l1_balls", "product", "project_columns_l1"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Iterate:
    """A point of the method, and what makes the next call on a similar problem cheap.

    Parameters
    ----------
    L
        The point, r x n; columns in the unit L1 ball, except perhaps those of a first start.
    lipschitz
        The last accepted ω. The paper starts at 1.
    duals
        Soft threshold of each column in the last projection, times ω: the multiplier of the
        column's constraint, which unlike the threshold does not follow the step length.
    evaluations
        Projections done to get here.
    """

    L: Matrix
    lipschitz: float = 1.0
    duals: Vector | None = None
    evaluations: int = 0


class Workspace:
    """Arrays of one shape that every step overwrites.

    Most of the time of fresh arrays goes into their page faults: with them a projection at
    308 x 1,024 took 11 ms, and takes 2 ms without.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.points = [np.empty(shape) for _ in range(3)]
        self.gradients = [np.empty(shape) for _ in range(3)]
        self.S, self.gradient_S = np.empty(shape), np.empty(shape)
        self.U, self.size, self.above = np.empty(shape), np.empty(shape), np.empty(shape)
        self.mask = np.empty(shape, dtype=np.bool_)


def minimise_over_l1_balls(  # noqa: PLR0913 - the problem, the start, and how to go on
    gram: Matrix,
    target: Matrix,
    start: Iterate,
    *,
    iterations: int,
    workspace: Workspace | None = None,
    norm: int = 1,
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
    work = workspace or Workspace(start.L.shape)
    project = _project if norm == 1 else _project_l2
    # χ of the paper: a step so short that no further progress is possible.
    shortest = start.L.size * 1e-12
    omega, duals, evaluations = start.lipschitz, start.duals, 0
    L, gradient = start.L, product(gram, start.L, work.gradients[0])
    gradient -= target
    last_L, last_gradient = L, gradient
    delta_before, delta = 0.0, 1.0
    for step in range(iterations):
        momentum = (delta_before - 1.0) / delta if step else 0.0
        S, gradient_S = L, gradient
        if momentum:
            # The gradient is affine, so it extrapolates as the points do.
            S = _ahead(L, last_L, momentum, work.S)
            gradient_S = _ahead(gradient, last_gradient, momentum, work.gradient_S)
        candidate, HD = work.points[step % 3], work.gradients[(step + 1) % 3]
        while True:
            np.divide(gradient_S, -omega, out=work.U)
            work.U += S
            theta = project(work.U, None if duals is None else duals / omega, candidate, work)
            duals = theta * omega
            evaluations += 1
            D = np.subtract(candidate, S, out=work.U)
            squared = float(np.vdot(D, D))
            if squared < shortest**2:
                return Iterate(candidate.copy(), omega, duals, evaluations)
            product(gram, D, HD)
            curvature = float(np.vdot(D, HD))
            if curvature <= omega * squared:
                break
            # At least doubled, as in the paper; at once to what this direction needs.
            omega = max(2.0 * omega, curvature / squared)
        HD += gradient_S
        last_L, last_gradient = L, gradient
        L, gradient = candidate, HD
        delta_before, delta = delta, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * delta**2))
    return Iterate(L.copy(), omega, duals, evaluations)


def product(left: Matrix, right: Matrix, out: Matrix | None = None) -> Matrix:
    """Return ``left·right``: a function of its own so that profiles show its share."""
    return np.matmul(left, right, out=out)


def _ahead(point: Matrix, before: Matrix, momentum: float, out: Matrix) -> Matrix:
    """Write ``point + momentum·(point - before)`` into ``out``."""
    np.subtract(point, before, out=out)
    out *= momentum
    out += point
    return out


def _project_l2(matrix: Matrix, near: Vector | None, out: Matrix, work: Workspace) -> Vector:
    """Project onto L2 balls: a column is shortened, and there is no threshold."""
    del near
    lengths: Vector = np.sqrt(np.square(matrix, out=work.size).sum(axis=0))
    np.divide(matrix, np.maximum(lengths, 1.0), out=out)
    return np.zeros_like(lengths)


def _project(matrix: Matrix, near: Vector | None, out: Matrix, work: Workspace) -> Vector:
    """Write the projection onto L1 balls into ``out`` and return its thresholds θ.

    They solve ``Σ_i max(|a_i| - θ, 0) = 1``. In a run of gradient steps they change little, so
    Newton's method from the last ones (``near``), on all columns at once, ends after two or three
    steps: the sum is convex and piecewise linear in θ, so that after one step every θ is from below
    and the steps end at the root itself. Columns that take long are projected anew.

    Cost: 2 ms at 308 x 1,024, where the projection from nothing takes 6 ms and a product with
    a 308 x 308 matrix 7 ms.
    """
    size = np.abs(matrix, out=work.size)
    if near is None:
        out[:] = project_columns_l1(matrix)
        # Soft thresholding lowers the largest entry of a column, which survives, by θ.
        return np.asarray(size.max(axis=0) - np.abs(out).max(axis=0))
    theta, late = _newton(size, near, work)
    if late.any():
        top = np.abs(project_columns_l1(matrix[:, late])).max(axis=0)
        theta[late] = size[:, late].max(axis=0) - top
    np.minimum(np.maximum(matrix, -theta, out=size), theta, out=size)
    np.subtract(matrix, size, out=out)
    return theta


def _newton(size: Matrix, near: Vector, work: Workspace) -> tuple[Vector, NDArray[np.bool_]]:
    """Return θ per column, and which columns are not done after eight steps."""
    r = size.shape[0]
    total = size.sum(axis=0)
    outside = total > 1.0
    theta = np.where(outside, near, 0.0)
    late = outside
    for step in range(8):
        excess = np.maximum(size, theta, out=work.above).sum(axis=0) - r * theta - 1.0
        # Only the first step can come from above the root.
        late = outside & ((np.abs(excess) if step == 0 else excess) > 1e-13 * r)
        if not late.any():
            break
        np.greater(size, theta, out=work.mask)
        count = np.add.reduce(work.mask.view(np.int8), axis=0, dtype=np.int32)
        theta = np.where(count > 0, theta + excess / np.maximum(count, 1), (total - 1.0) / r)
        theta = np.where(outside, np.maximum(theta, 0.0), 0.0)
    return theta, late


def project_columns_l1(matrix: Matrix, radius: float = 1.0) -> Matrix:
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


def _thresholds(size: Matrix, radius: float, most: int = 16) -> Matrix:
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
    theta: Matrix = thetas[np.arange(len(size)), np.maximum(survivors, 1) - 1]
    if most < width:
        full = np.flatnonzero(survivors == most)
        if full.size:
            theta[full] = _thresholds(size[full], radius, 4 * most)
    return np.maximum(theta, 0.0)
