r"""Symmetric hulls of points: their facets, the error of their noise, and points that lower it.

For K = conv(±points) with simplicial facets F, vertex matrices V_F and d_F = |det V_F|, noise of
density ∝ exp(−‖z‖_K) has

    E|z|² = Σ_F d_F·q_F / Σ_F d_F,   q_F = Σ_i |v_i|² + |Σ_i v_i|².

Points that are free to move may lower it below that of the hull of the columns alone, which every
K must contain. All in float64: the body that results is verified elsewhere, in exact integers.

See ``docs/explanation/shaped-noise.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg as la
from scipy.spatial import ConvexHull, QhullError

from lrm.errors import StopSolver
from lrm.queries.maps.linear import Floats, Integers


class MetFacets(Protocol):
    """The facets of a hull that some directions meet, and the norms of the directions."""

    @property
    def members(self) -> Integers:
        """Numbers of the corners of each facet."""

    @property
    def signs(self) -> Floats:
        """The signs of these."""

    @property
    def norms(self) -> Floats:
        """The norm of each direction."""


def list_facets(points: Floats) -> Integers | None:
    """The facets of conv(±points), one of each pair ±F; None where they cannot be listed.

    A facet is a row of numbers: i + 1 for the point i, −(i + 1) for its negative.

    >>> len(list_facets(np.eye(3)))
    4
    """
    try:
        hull = ConvexHull(np.vstack([points, -points]), qhull_options="Q0 Pp")
    except (QhullError, ValueError):
        return None
    n = len(points)
    facets = hull.simplices.astype(np.int64)
    facets = np.where(facets < n, facets + 1, n - 1 - facets)
    facets = np.take_along_axis(facets, np.argsort(np.abs(facets), axis=1), axis=1)
    return np.unique(facets * np.sign(facets[:, :1]), axis=0)


@dataclass(frozen=True, eq=False)
class Hull:
    """A symmetric hull of points, one per row, with its facets as `list_facets` returns them.

    ``error`` is half of E|z|² of its noise.
    """

    points: Floats
    facets: Integers
    error: float
    volume: float

    @classmethod
    def of(cls, points: Floats) -> Hull | None:
        """The hull of ±points; None where its facets cannot be listed."""
        facets = list_facets(points)
        if facets is None:
            return None
        corners = points[np.abs(facets) - 1] * np.sign(facets)[:, :, None]
        dets = np.abs(np.linalg.det(corners))
        # Facets whose determinant is a smaller share of the largest are left out.
        some = dets > 1e-10 * dets.max()
        if not some.any():
            return None
        corners, dets, facets = corners[some], dets[some], facets[some]
        total = float(dets.sum())
        sums = corners.sum(axis=1)
        squares = (corners**2).sum(axis=(1, 2)) + (sums**2).sum(axis=1)
        mean = float(dets @ squares) / total
        k = points.shape[1]
        volume = 2.0 * total / math.factorial(k)
        return cls(points, facets, mean / 2.0, volume)


def short_points(directions: Floats, weights: Floats, moment: Floats, count: int) -> Floats:
    """Points to begin with: directions in which the hull is short, made as long as is usual.

    ``directions`` and ``weights`` are points of its boundary by the law of its noise, whose E z·zᵀ
    is ``moment``. What a point adds lowers the error if its mean |u|² is below that of the body.
    """
    lengths = np.linalg.norm(directions, axis=1)
    usual = math.sqrt(float(weights @ lengths**2))
    frame = la.cholesky(moment, lower=True)
    white = la.solve_triangular(frame, directions.T, lower=True).T
    white /= np.linalg.norm(white, axis=1)[:, None]
    indices: list[int] = []
    for i in np.argsort(lengths).tolist():
        # Cosine, where the body is about round, below which two short directions are different.
        if np.all(np.abs(white[indices] @ white[i]) < 0.8):
            indices.append(i)
        if len(indices) == count:
            break
    longer = np.maximum(usual / lengths[indices], 1.02)
    return np.asarray(directions[indices] * longer[:, None])


class MeanSquare(NamedTuple):
    """E|z|² of the noise of a hull by facets that directions have met, and what follows from these.

    Parameters
    ----------
    mean
        E|z|².
    gradient
        Its derivatives by the coordinates of the generators.
    second_moment
        E z·zᵀ.
    effective
        The number of equally weighted facets that are as good.
    """

    mean: float
    gradient: Floats
    second_moment: Floats
    effective: float


def mean_square(generators: Floats, met: MetFacets) -> MeanSquare:
    """Moments by facets that random directions of an ellipsoid have met.

    A direction x meets each facet F, with the weight ``‖x‖_K^−k``, in proportion to d_F, so that

        ∂E|z|²/∂v_i = Σ_F d_F·((q_F − E|z|²)·(V_F⁻¹)_i + 2·v_i + 2·Σ_j v_j) / Σ_F d_F

    is a mean over the facets that are met. It varies less than a gradient by the directions
    themselves: on 16 prefix sums a quarter of the directions do.
    """
    k = generators.shape[1]
    logarithms = -k * np.log(met.norms)
    weights = np.exp(logarithms - logarithms.max())
    weights /= weights.sum()
    corners = generators[met.members] * met.signs[:, :, None]
    sums = corners.sum(axis=1)
    squares = (corners**2).sum(axis=(1, 2)) + (sums**2).sum(axis=1)
    mean = float(weights @ squares)
    slopes = 2.0 * (corners + sums[:, None, :])
    inverses = np.linalg.inv(corners).transpose(0, 2, 1)
    slopes += (squares - mean)[:, None, None] * inverses
    gradient = np.zeros_like(generators)
    np.add.at(gradient, met.members, (weights[:, None] * met.signs)[:, :, None] * slopes)
    flat = (corners * np.sqrt(weights)[:, None, None]).reshape(-1, k)
    second_moment = flat.T @ flat + (sums * weights[:, None]).T @ sums
    return MeanSquare(mean, gradient, second_moment, 1.0 / float(weights @ weights))


def lower_error(  # noqa: PLR0913, PLR0917 - a problem, its start and its size
    columns: Floats,
    points: Floats,
    moment: Floats,
    rounds: int,
    meet: Callable[[Floats, Floats], MetFacets],
    on_round: Callable[[float], None],
) -> Floats:
    """Move free points by gradients over random facets: for hulls of any dimension.

    Every round has directions of its own, of an ellipsoid that follows the covariance of K; its
    step has the size of the mean gradient beside that of its mean square (Adam), and the result is
    the mean of the last points.

    K must contain the ``columns``; ``points`` are the free ones to begin with, one per row, and
    ``moment`` is about the covariance of noise of their hull. ``meet`` draws the directions of a
    round, of an ellipsoid with some covariance, and returns the facets of the hull of some points
    that these meet. ``on_round`` is called with an estimate of the error, and may raise
    ``StopSolver`` to end with what there is.
    """
    k, fixed = columns.shape[1], len(columns)
    # The first step relative to the size of the points, and how much of the mean gradient and of
    # its mean square is kept.
    size = 0.25 * math.sqrt(float((points**2).mean()))
    momentum, squares = 0.7, 0.9
    mean, square = np.zeros_like(points), np.zeros((len(points), 1))
    # The points of the last three tenths of the rounds are averaged.
    averaged, first = points, round(0.7 * rounds)
    for step in range(1, rounds + 1):
        generators = np.vstack([columns, points])
        seen = mean_square(generators, meet(generators, moment))
        slope = seen.gradient[fixed:]
        mean = momentum * mean + (1.0 - momentum) * slope
        square = squares * square + (1.0 - squares) * (slope**2).sum(axis=1, keepdims=True)
        typical = np.sqrt(square / (1.0 - squares**step)) + 1e-300
        rate = size * math.sqrt(1.0 - step / (rounds + 1)) / (1.0 - momentum**step)
        points = points - rate * mean / typical
        averaged = points if step <= first else averaged + (points - averaged) / (step - first)
        if seen.effective > 4 * k:
            moment = 0.8 * moment + 0.2 * seen.second_moment
        try:
            on_round(seen.mean / 2)
        except StopSolver:
            break
    return averaged
