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

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError

from lrm.errors import StopSolver, WorkloadError
from lrm.privacy.bodies.facets import Facets

__all__ = ["Hull", "free_points", "list_facets", "verified_body"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FLAT = 1e-10
"""Facets whose determinant is a smaller share of the largest are left out of gradients."""

VERTEX_BITS = 24
"""Binary digits of the largest coordinate of a vertex."""

MOST_ROUNDS = 100
"""Rounds of one descent."""


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
    """A symmetric hull with its facets, and the error of its noise.

    Parameters
    ----------
    points
        Generators, one per row.
    facets
        As `list_facets` returns them.
    error
        Half of E|z|².
    gradient
        Of the error, by the coordinates of the points.
    volume
        Of the hull.
    """

    points: Floats
    facets: Integers
    error: float
    gradient: Floats
    volume: float

    @classmethod
    def of(cls, points: Floats) -> Hull | None:
        """The hull of ±points; None where its facets cannot be listed."""
        facets = list_facets(points)
        if facets is None:
            return None
        corners = points[np.abs(facets) - 1] * np.sign(facets)[:, :, None]
        dets = np.abs(np.linalg.det(corners))
        some = dets > FLAT * dets.max()
        if not some.any():
            return None
        corners, dets, facets = corners[some], dets[some], facets[some]
        total = float(dets.sum())
        sums = corners.sum(axis=1)
        squares = (corners**2).sum(axis=(1, 2)) + (sums**2).sum(axis=1)
        mean = float(dets @ squares) / total
        inverse = np.linalg.inv(corners).transpose(0, 2, 1)
        slope = inverse * (dets * (squares - mean))[:, None, None]
        slope += (2.0 * dets)[:, None, None] * (corners + sums[:, None, :])
        slope *= np.sign(facets)[:, :, None] / total
        gradient = np.zeros_like(points)
        np.add.at(gradient, np.abs(facets) - 1, slope)
        k = points.shape[1]
        volume = 2.0 * total / math.factorial(k)
        return cls(points, facets, mean / 2.0, gradient / 2.0, volume)


def verified_body(points: Floats, margin: float) -> Facets | None:
    """The body of points in the units of the integers, moved outwards and verified."""
    rng = np.random.default_rng(0)
    moved = points * (1 + margin * (1 + rng.random(len(points))))[:, None]
    shift = max(0, math.ceil(math.log2(np.abs(moved).max())) - VERTEX_BITS)
    vertices = np.rint(moved * 2.0**-shift)
    # Facets are listed in coordinates in which the body is about as wide in all directions.
    values, axes = la.eigh(vertices.T @ vertices)
    if not values[0] > 0:
        return None
    facets = list_facets(vertices @ axes / np.sqrt(values))
    if facets is None:
        return None
    used = np.unique(np.abs(facets)) - 1
    number = np.zeros(len(vertices) + 1, dtype=np.int64)
    number[used + 1] = np.arange(1, len(used) + 1)
    try:
        return Facets(
            vertices[used].astype(np.int64), np.sign(facets) * number[np.abs(facets)], shift
        )
    except WorkloadError:
        return None


class _SpentError(Exception):
    """The work that was allowed is done."""


def free_points(
    columns: Floats,
    starts: list[Floats],
    work: float,
    on_round: Callable[[float], None],
) -> Hull | None:
    """Add points to the hull of ±columns that lower its error, by descents from several starts.

    Parameters
    ----------
    columns
        What K must contain, one per row.
    starts
        Points to begin with.
    work
        Facets that may be listed in all, each with its determinant and inverse.
    on_round
        Called with the least error so far; may raise ``StopSolver`` to end with that.
    """
    best = Hull.of(columns)
    if best is None:
        return None
    left = work
    fixed = len(columns)

    def value(flat: Floats) -> tuple[float, Floats]:
        nonlocal best, left
        assert best is not None  # noqa: S101 - set above
        hull = Hull.of(np.vstack([columns, flat.reshape(-1, columns.shape[1])]))
        if hull is None:
            return math.inf, np.zeros_like(flat)
        left -= len(hull.facets)
        if hull.error < best.error:
            best = hull
        on_round(best.error)
        if left < 0:
            raise _SpentError
        return hull.error, hull.gradient[fixed:].ravel()

    for start in starts:
        try:
            minimize(
                value,
                start.ravel(),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": MOST_ROUNDS, "maxcor": 20},
            )
        except (_SpentError, StopSolver):
            break
    return best
