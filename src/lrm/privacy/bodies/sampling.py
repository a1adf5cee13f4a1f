r"""Moments of hulls whose facets are too many to be listed: facets met by random directions.

A direction x meets the boundary of K in a facet F. If directions have a known density q, those that
are weighted by ‖x‖_K^−k/q meet each facet in proportion to the volume p_F of the cone over it.
Given F, noise of density ∝ exp(−‖z‖_K) is a sum of its vertices times exponential variables, so

    E z·zᵀ = Σ_F p_F·(Σ_i v_i·v_iᵀ + s_F·s_Fᵀ),  s_F = Σ_i v_i,

and the weighted mean over the facets that were met has a small part of the variance of one over the
directions themselves. Points are moved by 10⁻⁶, so that all facets are simplices. Half of the
directions come from an ellipsoid with the covariance of K, half from uniform points of the product
of the leaves of a split hull, q the mean of the two densities. All in float64, and always the same:
for errors and intervals, never for the noise of a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la

from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.gauges import minimise

PILOT, MOST_PILOT, FIRST, MOST = 1 << 10, 1 << 13, 1 << 13, 1 << 16
"""Directions for a first covariance, for the last of several that use the one before, for a first
estimate with the product of the leaves, and in all."""

PILOT_EFFECTIVE = 20
"""Effective directions per dimension at which a covariance is good enough for an ellipsoid."""

PILOT_WORK, MOST_WORK = 5e8, 5e9
"""Directions times dimensions times generators of the hull, times dimensions: about 3 seconds in
all; the first two covariances may take more."""

PRECISE = 0.005
"""Relative standard error of the variance along one axis at which sampling ends: that of the total
of all axes is an eighth of it."""

GROWTH = 3.0
"""How many times as many directions are met at most before the error is estimated again."""

ENOUGH = 4
"""Effective directions per condition from which on weights are calibrated."""

MOVED = 1e-6
"""How far points are moved, so that no more than k lie in one facet."""

BLOCK = 1 << 18
"""Coordinates of vertices that are held at a time."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Facets that directions have met, with weights that sum to 1.

    Parameters
    ----------
    directions, weights
        A point of the boundary for each facet, by the law of the noise, and its weight.
    second_moment
        E z·zᵀ of the noise at scale 1.
    standard_error
        Of the variance along one axis as a share of it: the root mean square over the axes in
        whose coordinates the moment is the identity.
    effective
        The number of equally weighted facets that are as good.
    """

    directions: Floats
    weights: Floats
    second_moment: Floats
    standard_error: float
    effective: float


class _Met(NamedTuple):
    """Facets by the signed numbers of their vertices (from 1), planes, logarithms of weights."""

    facets: Integers
    planes: Floats
    logarithms: Floats

    def and_more(self, more: _Met) -> _Met:
        together: Any = map(np.concatenate, zip(self, more, strict=True))
        return _Met(*together)

    def sample(self, points: Floats, rng: np.random.Generator) -> Sample:
        """Moments, and a direction for each facet."""
        weights = np.exp(self.logarithms - self.logarithms.max())
        weights /= weights.sum()
        effective = 1.0 / float((weights**2).sum())
        k = points.shape[1]
        directions, sums = np.empty((len(weights), k)), np.empty((len(weights), k))
        for part, corners in self._blocks(points):
            shares = rng.standard_exponential((len(corners), k))
            shares /= shares.sum(axis=1)[:, None]
            directions[part] = np.einsum("ni,nic->nc", shares, corners)
            sums[part] = corners.sum(axis=1)
        moment = self._moment(points, sums, weights)
        try:
            lower = la.cholesky(moment, lower=True)
        except la.LinAlgError:
            return Sample(directions, weights, moment, math.inf, effective)
        inverse = la.inv(lower, check_finite=False)
        white_sums = sums @ inverse.T
        # How far the variance along each axis is from its mean, given the facet.
        excess = white_sums**2 - 1.0
        for part, corners in self._blocks(points):
            excess[part] += ((corners @ inverse.T) ** 2).sum(axis=1)
        if effective > ENOUGH * k * (k + 1) / 2:
            weights, excess = _calibrated(weights, white_sums, self.planes @ lower, excess)
            moment = self._moment(points, sums, weights)
        error = math.sqrt(float(weights**2 @ (excess**2).sum(axis=1)) / k)
        return Sample(directions, weights, moment, error, effective)

    def _moment(self, points: Floats, sums: Floats, weights: Floats) -> Floats:
        moment = (sums * weights[:, None]).T @ sums
        for part, corners in self._blocks(points):
            scaled = (corners * np.sqrt(weights[part])[:, None, None]).reshape(-1, points.shape[1])
            moment += scaled.T @ scaled
        return moment

    def _blocks(self, points: Floats) -> Iterator[tuple[slice, Floats]]:
        """Vertices of some facets at a time."""
        height = max(1, BLOCK // points.shape[1] ** 2)
        for start in range(0, len(self.facets), height):
            part = slice(start, start + height)
            facets = self.facets[part]
            yield part, points[np.abs(facets) - 1] * np.sign(facets)[:, :, None]


def _calibrated(
    weights: Floats, sums: Floats, planes: Floats, excess: Floats
) -> tuple[Floats, Floats]:
    """Weights, little changed, for which ``Σ_F p_F·s_F·h_Fᵀ`` is the identity, as it should be.

    By partial integration ``E z_a·h_b`` is 1 where a = b and else 0, h the plane of the facet that
    z points to, and ``E z`` is s_F given F. The smallest change in squares relative to the
    weights is linear in these products (generalised regression). So means of the columns of
    ``excess`` have the errors of what the products do not explain of them, which is returned too.
    """
    row, column = np.triu_indices(sums.shape[1])
    roots = np.sqrt(weights)[:, None]
    values = np.hstack([roots, roots * excess])
    gram, right = np.zeros((len(row), len(row))), np.zeros((len(row), values.shape[1]))
    height = max(1, BLOCK // len(row))
    parts = [slice(start, start + height) for start in range(0, len(sums), height)]

    def known(part: slice) -> Floats:
        products = sums[part][:, row] * planes[part][:, column]
        products += sums[part][:, column] * planes[part][:, row]
        products -= 2.0 * (row == column)
        return np.asarray(products)

    for part in parts:
        scaled = known(part) * roots[part]
        gram += scaled.T @ scaled
        right += scaled.T @ values[part]
    right[:, 0] *= -1.0
    gram[np.diag_indices_from(gram)] += 1e-9 * np.trace(gram) / len(gram)
    slopes = la.solve(gram, right, assume_a="pos", check_finite=False)
    explained = np.vstack([known(part) @ slopes for part in parts])
    changed = np.maximum(weights * (1.0 + explained[:, 0]), 0.0)
    return np.asarray(changed / changed.sum()), np.asarray(excess - explained[:, 1:])


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
        Number of directions at most; 0 for a rough estimate, better if there are leaves.
    """
    scale = float(np.abs(points).max())
    scaled = points / scale * (1.0 + MOVED * rng.random((len(points), 1)))
    k = scaled.shape[1]
    round_body = Ellipsoid(la.cholesky(scaled.T @ scaled / len(scaled), lower=True))
    count = PILOT
    while True:
        pilot = _meet(scaled, [round_body], count, rng).sample(scaled, rng)
        round_body = Ellipsoid(la.cholesky(pilot.second_moment, lower=True))
        is_good = pilot.effective >= PILOT_EFFECTIVE * k and count > PILOT
        if is_good or 2 * count > max(2 * PILOT, min(MOST_PILOT, PILOT_WORK / scaled.size / k)):
            break
        count *= 2
    proposals: list[Ellipsoid | _Product] = [round_body]
    if leaves:
        proposals.append(_Product(leaves, scale))
    most = int(min(most, MOST_WORK / (len(points) * k * k)))
    best = pilot
    if most > 0 or leaves:
        met = _meet(scaled, proposals, FIRST, rng)
        best = met.sample(scaled, rng)
    # Calibration, which few directions do not allow, makes the error much smaller: not all at once.
    while best.standard_error > PRECISE and (done := len(best.weights)) < most:
        wanted = done * min(1.2 * (best.standard_error / PRECISE) ** 2, GROWTH)
        met = met.and_more(_meet(scaled, proposals, round(min(wanted, most)) - done, rng))
        best = met.sample(scaled, rng)
    return replace(
        best,
        directions=best.directions * scale,
        second_moment=best.second_moment * scale**2,
    )


def _meet(
    points: Floats,
    proposals: Sequence[Ellipsoid | _Product],
    count: int,
    rng: np.random.Generator,
) -> _Met:
    """Facets of random directions: each proposal draws an equal part of them."""
    vectors = np.vstack([proposal.draw(-(-count // len(proposals)), rng) for proposal in proposals])
    bases = minimise(points, vectors)
    density = np.logaddexp.reduce([proposal.log_density(vectors) for proposal in proposals])
    logarithms = -points.shape[1] * np.log(bases.norms) - density
    facets = (bases.members + 1) * bases.signs.astype(np.int64)
    return _Met(facets, bases.planes, logarithms)


class Ellipsoid:
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
