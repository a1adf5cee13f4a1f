r"""The norm of a symmetric hull that is given by its points alone: ‖u‖ = min Σ|λ|, Σ λ_i·p_i = u.

Any k independent points ±p, with signs such that λ ≥ 0, are a feasible basis of this linear
program: there is no first phase. A basis has the plane h through its points, h·u = Σλ, and
the points beyond that plane, |h·p| > 1, lower Σλ. So at every step

    h·u / max_j |h·p_j|  ≤  ‖u‖  ≤  Σλ

and a decision whether ‖u‖ ≤ 1 may end long before the optimum. Many points u are solved at a time.

Decisions are proved, in float64 with bounds on all rounding errors: `decide` leaves open what
is too near to call, and `exact_norm` has no errors at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OPTIMAL = 1e-9
"""Points that lie beyond a plane by less are on it, for float64."""

PIVOT = 1e-11
"""Smaller entries of a column leave no point out of a basis."""

BLOCK = 1 << 18
"""Numbers of inverses, and of products of planes and points, that are held at a time: 2 MB, which
stay in the cache of a processor."""

ROUNDING = 2.0**-44
"""Relative error of a sum of at most 64 products in float64, with room: 70·2^−53 < 2^−46."""

SLACK = 1.0 + 2.0**-40
"""For the rounding errors of bounds themselves."""


class Bases(NamedTuple):
    """Bases for many vectors u, in float64: of least Σλ, or good enough for a decision.

    Parameters
    ----------
    members
        Numbers of the points of each basis, one row per vector.
    weights
        λ ≥ 0 for the points with their signs.
    signs
        Signs of the points.
    planes
        h of each basis.
    """

    members: Integers
    weights: Floats
    signs: Floats
    planes: Floats

    @property
    def norms(self) -> Floats:
        """Σλ: the norm of each vector, where its basis is optimal."""
        return np.asarray(self.weights.sum(axis=1))


def minimise(points: Floats, vectors: Floats, *, undecided_only: bool = False) -> Bases:
    """Bases of least Σλ for the vectors (rows), from one start for all.

    Parameters
    ----------
    points
        Generators of the hull, one per row.
    vectors
        One per row.
    undecided_only
        Stop where the basis shows that the norm is at most 1, or above 1.
    """
    size = max(1, BLOCK // (len(points) + points.shape[1] ** 2))
    parts = [
        _minimise(points, vectors[start : start + size], undecided_only=undecided_only)
        for start in range(0, len(vectors), size)
    ]
    return Bases(*map(np.concatenate, zip(*parts, strict=True)))


def _minimise(points: Floats, vectors: Floats, *, undecided_only: bool) -> Bases:
    count, k = vectors.shape
    first = la.qr(points.T, mode="r", pivoting=True, check_finite=False)[1][:k]
    start = la.inv(points[first].T, check_finite=False)
    result = Bases(
        np.empty((count, k), dtype=np.int64),
        np.empty((count, k)),
        np.empty((count, k)),
        np.empty((count, k)),
    )
    place = np.arange(count)  # of the vectors that are still open
    weights = vectors @ start.T
    signs = np.where(weights < 0, -1.0, 1.0)
    weights = np.abs(weights)
    inverse = start * signs[:, :, None]
    normals = inverse.sum(axis=1)
    members = np.tile(first, (count, 1))
    for _ in range(60 * k):
        products = normals @ points.T
        sizes = np.abs(products)
        enter = sizes.argmax(axis=1)
        rows = np.arange(len(place))
        beyond = sizes[rows, enter]
        done = beyond <= 1.0 + OPTIMAL
        if undecided_only:
            done |= weights.sum(axis=1) <= 1.0 - OPTIMAL
            done |= np.einsum("ij,ij->i", normals, vectors[place]) > beyond * (1.0 + OPTIMAL)
        side = np.sign(products[rows, enter])
        column = np.einsum("mij,mj->mi", inverse, points[enter] * side[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(column > PIVOT, weights / column, np.inf)
        leave = ratios.argmin(axis=1)
        step = ratios[rows, leave]
        done |= ~np.isfinite(step)
        if done.any():
            done_places = place[done]
            result.members[done_places], result.weights[done_places] = members[done], weights[done]
            result.signs[done_places], result.planes[done_places] = signs[done], normals[done]
            left = ~done
            place, members, weights, signs = place[left], members[left], weights[left], signs[left]
            inverse, normals = inverse[left], normals[left]
            enter, side, column = enter[left], side[left], column[left]
            leave, step = leave[left], step[left]
            rows = np.arange(len(place))
        if not len(place):
            break
        weights -= step[:, None] * column
        np.maximum(weights, 0.0, out=weights)
        weights[rows, leave] = step
        row = inverse[rows, leave] / column[rows, leave][:, None]
        inverse -= column[:, :, None] * row[:, None, :]
        inverse[rows, leave] = row
        normals -= (column.sum(axis=1) - 1.0)[:, None] * row
        members[rows, leave], signs[rows, leave] = enter, side
    result.members[place], result.weights[place] = members, weights
    result.signs[place], result.planes[place] = signs, normals
    return result


def decide(points: Floats, vectors: Floats, errors: Floats, unit_norms: Floats) -> Integers:
    """Whether vectors are in the hull: 1 if they certainly are, −1 if not, 0 if that is open.

    Parameters
    ----------
    points
        Generators of the hull, exact in float64.
    vectors, errors
        Rows u, and how far each coordinate of the true vector may be from that of u.
    unit_norms
        At least the norm of each unit vector.
    """
    bases = minimise(points, vectors, undecided_only=True)
    marks = np.zeros(len(vectors), dtype=np.int64)
    # Inside: Σλ plus the norm of what Σ λ·p leaves over, of rounding errors and of unknown digits.
    corners = points[bases.members] * bases.signs[:, :, None]
    rebuilt = np.einsum("mi,mic->mc", bases.weights, corners)
    sizes = np.einsum("mi,mic->mc", bases.weights, np.abs(corners)) + np.abs(vectors)
    left = np.abs(vectors - rebuilt) + ROUNDING * sizes + errors
    marks[(bases.norms + left @ unit_norms) * SLACK <= 1.0] = 1
    # Outside: h, made so small that no point is beyond its plane, has h·u > 1.
    absolute = np.abs(bases.planes)
    height = max(1, BLOCK // len(points))
    for start in range(0, len(vectors), height):
        part = slice(start, start + height)
        reach = np.abs(bases.planes[part] @ points.T) + ROUNDING * (
            absolute[part] @ np.abs(points).T
        )
        least = np.einsum("ij,ij->i", bases.planes[part], vectors[part]) - np.einsum(
            "ij,ij->i", absolute[part], errors[part] + ROUNDING * np.abs(vectors[part])
        )
        marks[part][least > reach.max(axis=1) * SLACK] = -1
    return marks


def solve_exactly(
    matrices: NDArray[Any], rights: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Whole numbers d and X with ``matrix·(X/d) = right``, for many at a time.

    Where a matrix is singular, d is 0. Otherwise |d| is its determinant.

    Elimination without fractions (Bareiss): every division is exact. Where a pivot is 0, the rows
    of that matrix alone are exchanged, which changes the sign of its d and X together.
    """
    count, k, _ = matrices.shape
    table = np.concatenate([matrices, rights], axis=2).astype(object)
    before, regular = np.ones(count, dtype=object), np.ones(count, dtype=np.int64)
    for step in range(k):
        for f in np.flatnonzero(table[:, step, step] == 0).tolist():
            other = next((r for r in range(step + 1, k) if table[f, r, step] != 0), None)
            if other is None:
                table[f], regular[f] = np.eye(k, table.shape[2], dtype=object) * before[f], 0
            else:
                table[f, [step, other]] = table[f, [other, step]]
        pivots = table[:, step, step].copy()
        for row in range(k):
            if row != step:
                left = table[:, row, step].copy()
                table[:, row, step:] = (
                    pivots[:, None] * table[:, row, step:] - left[:, None] * table[:, step, step:]
                ) // before[:, None]
                if row < step:
                    table[:, row, row] = pivots
        before = pivots
    # Gauss and Jordan: every diagonal entry is the determinant now.
    return before * regular, table[:, :, k:]


def exact_norm(points: Integers, vector: Sequence[int]) -> Fraction:
    """The norm of an integer vector, exactly: from the basis of float64 on, in whole numbers.

    >>> exact_norm(np.array([[1, 0], [0, 1], [1, 1]]), [3, -1])
    Fraction(4, 1)
    """
    if not any(vector):
        return Fraction(0)
    size = float(np.abs(points).max())
    start = np.array([[float(Fraction(x, max(map(abs, vector)))) for x in vector]])
    members = minimise(points / size, start).members[0]
    exact_points = points.astype(object)
    if not _solution(exact_points[members], [0] * len(vector)):
        members = _independent(exact_points)  # float64 took dependent points
    signs = dict.fromkeys(members.tolist(), 1)
    while True:
        members = sorted(signs)
        corners = np.array([exact_points[i] * signs[i] for i in members])
        weights = _solution(corners.T, vector)
        wrong = [i for i, weight in zip(members, weights, strict=True) if weight < 0]
        if wrong:
            signs |= {i: -signs[i] for i in wrong}
            continue
        (d,), (normal,) = solve_exactly(corners[None], np.ones((1, len(corners), 1), dtype=int))
        products = exact_points @ normal[:, 0]
        # The first point beyond the plane enters, and of equal ratios the first leaves (Bland):
        # so no basis comes twice.
        enter = next((j for j, x in enumerate(products) if abs(x) > abs(d)), None)
        if enter is None:
            return sum(weights, Fraction(0))
        side = 1 if (products[enter] > 0) == (d > 0) else -1
        column = _solution(corners.T, side * exact_points[enter])
        leave = min(
            (weight / rate, i)
            for i, weight, rate in zip(members, weights, column, strict=True)
            if rate > 0
        )[1]
        del signs[leave]
        signs[enter] = side


def _independent(points: NDArray[Any]) -> Integers:
    """The first points that are independent of those before them."""
    indices: list[int] = []
    rows: list[tuple[int, NDArray[Any]]] = []  # a coordinate that is 0 in all later ones, and it
    for i, point in enumerate(points):
        left = point
        for place, row in rows:
            left = left * row[place] - row * left[place]
            left //= math.gcd(*left) or 1
        if left.any():
            rows.append((int(np.flatnonzero(left)[0]), left))
            indices.append(i)
        if len(indices) == points.shape[1]:
            break
    return np.array(indices)


def _solution(matrix: NDArray[Any], right: Sequence[int] | NDArray[Any]) -> list[Fraction]:
    """The x with ``matrix·x = right``; empty if the matrix is singular."""
    (d,), solutions = solve_exactly(matrix[None], np.array(right, dtype=object)[None, :, None])
    return [Fraction(int(x), int(d)) for x in solutions[0, :, 0]] if d else []
