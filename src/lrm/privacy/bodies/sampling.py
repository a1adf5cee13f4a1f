r"""Moments of hulls whose facets are too many to be listed: weighted points of the boundary.

For z of density ∝ exp(−‖z‖_K), z = S·d with S ~ Gamma(k) and d on the boundary of K, independent of
S; so E z·zᵀ = k(k + 1)·E d·dᵀ. Directions of uniform points x of a body E have the density
∝ ‖x‖_E^−k, so that d = x/‖x‖_K has the weight (‖x‖_E/‖x‖_K)^k. Half of the points come from an
ellipsoid with the covariance of K, half from the product of the leaves of a split hull, and
weights are relative to the mean of the two densities. All in float64, and always the same: for
errors and intervals, never for the noise of a release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.gauges import minimise

__all__ = ["Sample", "sample_hull"]

PILOT, FIRST, MOST = 1 << 11, 1 << 13, 1 << 15
"""Points for the covariance and the quality of weights, for a first estimate, and in all."""

MOST_WORK = 3e10
"""Points times dimensions times generators of the hull, times dimensions: about 10 seconds."""

PRECISE = 0.0048
"""Relative standard error of the trace of the covariance at which sampling ends."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Points d of the boundary with weights that sum to 1.

    Parameters
    ----------
    directions, weights
        One row per point, and the weight of each.
    second_moment
        E d·dᵀ.
    standard_error
        Of its trace, in coordinates in which it is the identity, as a share of it.
    effective
        The number of equally weighted points that are as good.
    """

    directions: Floats
    weights: Floats
    second_moment: Floats
    standard_error: float
    effective: float

    @classmethod
    def of(cls, directions: Floats, logarithms: Floats) -> Sample:
        """Points, and the logarithms of their weights up to a constant."""
        weights = np.exp(logarithms - logarithms.max())
        weights /= weights.sum()
        effective = 1.0 / float((weights**2).sum())
        moment = (directions * weights[:, None]).T @ directions
        k = directions.shape[1]
        try:
            lower = la.cholesky(moment, lower=True)
        except la.LinAlgError:
            return cls(directions, weights, moment, math.inf, effective)
        white = la.solve_triangular(lower, directions.T, lower=True)
        excess = (white**2).sum(axis=0) - k
        error = math.sqrt(float((weights**2 * excess**2).sum())) / k
        return cls(directions, weights, moment, error, effective)


def sample_hull(
    points: Integers | Floats,
    leaves: Sequence[Body],
    rng: np.random.Generator,
    most: float = MOST,
) -> Sample:
    """A sample of conv(±points), precise enough or as large as there is time for.

    Parameters
    ----------
    points
        Generators, one row each.
    leaves
        Bodies of consecutive coordinates that contain the projected points; may be empty.
    rng
        Where the points come from.
    most
        Number of points at most.
    """
    scale = float(np.abs(points).max())
    scaled = points / scale
    k = scaled.shape[1]
    round_body = _Ellipsoid(la.cholesky(scaled.T @ scaled / len(scaled), lower=True))
    for count in (PILOT, 2 * PILOT):
        best = Sample.of(*_draw(scaled, [round_body], count, rng))
        moment = (best.directions * best.weights[:, None]).T @ best.directions
        round_body = _Ellipsoid(la.cholesky(moment, lower=True))
    proposals: list[_Ellipsoid | _Product] = [round_body]
    if leaves:
        proposals.append(_Product(leaves, scale))
    most = min(most, MOST_WORK / (len(points) * k * k))
    drawn = _draw(scaled, proposals, FIRST, rng)
    best = Sample.of(*drawn)
    if best.standard_error > PRECISE and most > FIRST:
        share = min(best.standard_error, 1.0) / PRECISE
        count = round(min(FIRST * 1.2 * share**2, most)) - FIRST
        more = _draw(scaled, proposals, count, rng)
        best = Sample.of(*map(np.concatenate, zip(drawn, more, strict=True)))
    return Sample(
        best.directions * scale,
        best.weights,
        best.second_moment * scale**2,
        best.standard_error,
        best.effective,
    )


def _draw(
    points: Floats,
    proposals: Sequence[_Ellipsoid | _Product],
    count: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Points of the boundary, and the logarithms of their weights.

    Each proposal draws an equal part, and weights are relative to the common density.
    """
    vectors = np.vstack([proposal.draw(-(-count // len(proposals)), rng) for proposal in proposals])
    norms = minimise(points, vectors).norms
    density = np.logaddexp.reduce([proposal.log_density(vectors) for proposal in proposals])
    logarithms = -points.shape[1] * np.log(norms) - density
    return vectors / norms[:, None], logarithms


class _Ellipsoid:
    """Directions in orthogonal frames, in coordinates in which a body is about round."""

    def __init__(self, frame: Floats) -> None:
        self._frame = frame

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        k = len(self._frame)
        normal = rng.standard_normal((-(-count // k), k, k))
        frames = np.linalg.qr(normal)[0].reshape(-1, k)[:count]
        return np.asarray(frames @ self._frame.T)

    def log_density(self, vectors: Floats) -> Floats:
        """Of directions: the power −k of the norm, by the volume."""
        k = len(self._frame)
        inner = la.solve_triangular(self._frame, vectors.T, lower=True)
        volume = k / 2 * math.log(math.pi) - math.lgamma(k / 2 + 1)
        volume += float(np.log(np.diag(self._frame)).sum())
        return np.asarray(-k / 2 * np.log((inner**2).sum(axis=0)) - volume)


class _Product:
    """Uniform points of a product of bodies.

    Its norm is the largest of theirs, and at most that of a hull inside: weights have a bound.
    """

    def __init__(self, leaves: Sequence[Body], scale: float) -> None:
        self._leaves, self._scale = leaves, scale

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        parts = []
        for leaf in self._leaves:
            values, _ = leaf.simulate(count, rng)
            radius = leaf.norms(values) + rng.standard_exponential(count)
            parts.append(values / radius[:, None])
        return np.hstack(parts) / self._scale

    def log_density(self, vectors: Floats) -> Floats:
        """Of directions: the power −k of the norm, by the volume."""
        ends = np.cumsum([leaf.size for leaf in self._leaves])
        parts = np.split(vectors * self._scale, ends[:-1], axis=1)
        norms = [leaf.norms(part) for leaf, part in zip(self._leaves, parts, strict=True)]
        k = vectors.shape[1]
        volume = sum(leaf.log_volume for leaf in self._leaves) - k * math.log(self._scale)
        return np.asarray(-k * np.log(np.max(norms, axis=0)) - volume)
