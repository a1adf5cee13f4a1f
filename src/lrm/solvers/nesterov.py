"""The paper's Algorithm 2: the best strategy for a given reconstruction, and L1 projections.

See ``docs/explanation/mechanism.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Iterate:
    """A point of the method, and the step length that the next call begins with.

    Parameters
    ----------
    L
        The point, r x n; columns in the unit L1 ball, except perhaps those of a first start.
    lipschitz
        The last accepted ω. The paper starts at 1.
    evaluations
        Projections done to get here.
    """

    L: Matrix
    lipschitz: float = 1.0
    evaluations: int = 0


def minimise_over_l1_balls(
    gram: Matrix, target: Matrix, start: Iterate, *, iterations: int, norm: int = 1
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


def _project_columns_l2(matrix: Matrix) -> Matrix:
    """Shorten each column to the unit L2 ball."""
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=0), 1.0))


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
