r"""Hulls of points in more dimensions than their facets can be listed: exact rejection by parts.

    K = conv(±points).   Noise of density ∝ exp(−‖z‖_K) is z = T·u, where u is uniform in K and
    T is the sum of k + 1 exponential variables, independent of u.

The coordinates are divided into leaves, and a tree joins the leaves. The projection of K on the
coordinates of a node is the hull K_n of the projected points. A uniform point of K_n is
drawn by rejection: a uniform point of the product of the bodies of its children contains K_n, and
what lies in K_n is kept. A leaf has a body with listed facets, or a cross-polytope, that contains
the projected points: there u = Σ E_i·v_i / (E_0 + Σ E_i) for the vertices v of a facet that is
chosen by its volume, since E_i/(E_0 + Σ E) is uniform in a simplex.

All decisions are exact. Exponential variables are intervals (`Exponentials`), so u is a box. That
it lies in K_n, or outside, is proved in float64 with bounds on all errors (`decide`). Where that is
open, digits are added and the norm is computed in whole numbers. The result is a function of the
infinite sequence of digits, so the law is exact. See docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lrm.errors import ConvergenceError, WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import SYSTEM, Bits, Exponentials
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.bodies.gauges import ROUNDING, decide, exact_norm, solve_exactly
from lrm.privacy.bodies.sampling import Sample, sample_hull
from lrm.privacy.bodies.tables import Tables

Tree = int | tuple["Tree", ...]
"""The number of a leaf, or the trees that are joined."""

MOST_DIMENSIONS = 24
MOST_POINTS = 1 << 12
MOST_LEAVES = 8
LARGEST_POINT = 1 << 53
"""Coordinates below it are exact in float64."""

FLATTEST = 2.0**16
"""Norms of unit vectors, times the largest size of their coordinates: below 100 for plans. Hulls
that are much flatter are decided in whole numbers every time, and have no covariance in float64."""

FIRST_BITS = 64
"""Digits of the variables of a proposal: more are drawn for what is kept, or hard to decide."""

WIDTH = 2.0**-50
"""Wider intervals, of one variable in 2^14, are made narrower before float64 looks at them."""

LEAST_SUM = 2.0**-20
"""Sums of exponential variables below it, which are rare, are decided in whole numbers."""

BATCH = 256
"""The most proposals that are decided at a time."""

VARIABLE_SECONDS, PRODUCT_SECONDS = 3e-5, 2e-9
"""Seconds per exponential variable of a proposal, and per point and squared dimension of a norm."""

MOST_SECONDS = 120.0
"""Counted work of a draw after which it ends with an error.

Plans are made where a draw takes a twelfth of it in the mean, so one in 10⁵ ends so at most. The
point that is accepted does not depend on how many were rejected before it, so the law of draws that
do not end so is the same; nor does the count depend on data, which no draw looks at."""


class _Work:
    """Counted seconds of one draw."""

    def __init__(self) -> None:
        self._left = MOST_SECONDS

    def spend(self, seconds: float) -> None:
        self._left -= seconds
        if self._left < 0:
            raise ConvergenceError(
                "noise for this plan takes too long to draw: its hull is too small a part of the "
                'product of its leaves; make the plan again, or one with noise="laplace"'
            )


class _Point:
    """A uniform point of a leaf: vertices of a facet, and exponential variables."""

    def __init__(self, leaf: Body, bits: Bits) -> None:
        assert isinstance(leaf, Facets | Tables)  # noqa: S101 - checked by the body
        self.corners = leaf.draw_facet(bits)
        self.variables = Exponentials(len(self.corners) + 1, bits, FIRST_BITS)
        while max(self._widths()) > WIDTH or not any(self.variables.low):
            self.variables.refine()

    def _widths(self) -> list[float]:
        variables = self.variables
        scale = 2.0**-variables.precision
        return [
            (high - low) * scale for low, high in zip(variables.low, variables.high, strict=True)
        ]

    def floats(self) -> list[float]:
        """The variables, each to WIDTH and 2^−53 of it."""
        variables = self.variables
        return [float(Fraction(low, 1 << variables.precision)) for low in variables.low]

    def bounds(self) -> tuple[list[tuple[int, int]], tuple[int, int]]:
        """Intervals around ``Σ E_i·v_i`` and ``Σ E``, in units of 2^−precision."""
        columns = zip(*self.corners, strict=True)
        intervals = [self.variables.bounds(list(enumerate(w, start=1))) for w in columns]
        return intervals, (sum(self.variables.low), sum(self.variables.high))


@dataclass(frozen=True, eq=False)
class SplitHull(Body):
    """conv(±points), sampled by rejection from bodies of parts of the coordinates.

    Parameters
    ----------
    points
        Whole numbers, one row per pair ±p.
    leaves
        Bodies by facets, or one open table, of consecutive coordinates.
    tree
        How the leaves, numbered from 0 in order, are joined.

    Examples
    --------
    >>> side = Tables((1,), (False,), 4)
    >>> hull = SplitHull(np.array([[4, 0], [0, 4], [3, 3]]), (side, side), (0, 1))
    >>> hull.gauge([3, 3]), hull.gauge([4, -4]), len(hull.draw(Fraction(10)))
    (Fraction(1, 1), Fraction(2, 1), 2)
    """

    points: Integers
    leaves: tuple[Body, ...]
    tree: Tree

    def __post_init__(self) -> None:
        points = np.array(self.points, dtype=np.int64)
        points.flags.writeable = False
        object.__setattr__(self, "points", points)
        if points.ndim != 2:
            raise WorkloadError("a split hull needs a table of points")
        count, k = points.shape
        if not 2 <= k <= MOST_DIMENSIONS or not k <= count <= MOST_POINTS:
            raise WorkloadError(
                f"a split hull has 2 to {MOST_DIMENSIONS} dimensions and at most "
                f"{MOST_POINTS:,} points, not {k} and {count:,}"
            )
        if points.min() <= -LARGEST_POINT or points.max() >= LARGEST_POINT:
            raise WorkloadError("the points of a split hull have at most 53 bits")
        if not 2 <= len(self.leaves) <= MOST_LEAVES or leaves_of(self.tree) != list(
            range(len(self.leaves))
        ):
            raise WorkloadError("the tree of a split hull must have every leaf once, in order")
        if not all(map(_is_simplicial, self.leaves)):
            raise WorkloadError("a leaf of a split hull has listed facets, or is one open table")
        if sum(leaf.size for leaf in self.leaves) != k:
            raise WorkloadError("the leaves of a split hull must have all coordinates once")
        for leaf, coordinates in zip(self.leaves, self._places, strict=True):
            if not leaf.holds(distinct(points[:, coordinates]).T):
                raise WorkloadError("a leaf of a split hull does not contain its points")
        self._check_spread()

    def _check_spread(self) -> None:
        """Refuse points that lie in a plane, or nearly so."""
        if not all(self._unit_norms):
            raise WorkloadError("the points of a split hull do not span the space")
        if np.any(self._unit_norms * np.abs(self.points).max(axis=0) > FLATTEST):
            raise WorkloadError("the points of a split hull are too near to a plane")

    @cached_property
    def _places(self) -> list[slice]:
        ends = accumulate(leaf.size for leaf in self.leaves)
        return [slice(end - leaf.size, end) for end, leaf in zip(ends, self.leaves, strict=True)]

    @property
    def size(self) -> int:
        return int(self.points.shape[1])

    @cached_property
    def _unit_norms(self) -> list[float]:
        """At least the norm of each unit vector: by the exact inverse of some of the points."""
        scaled = self.points / max(1.0, float(np.abs(self.points).max()))
        if np.linalg.matrix_rank(scaled) < self.size:
            return [0.0]
        pivots = la.qr(scaled.T, mode="r", pivoting=True, check_finite=False)[1][: self.size]
        unit = np.eye(self.size, dtype=np.int64)
        (d,), (inverse,) = solve_exactly(self.points[pivots].T[None], unit[None])
        if not d:
            return [0.0]
        sums = [sum(abs(int(x)) for x in column) for column in inverse.T]
        return [float(Fraction(total, abs(d))) * (1 + 2.0**-40) for total in sums]

    def gauge(self, vector: Sequence[int]) -> Fraction:
        return exact_norm(self.points, [int(x) for x in vector])

    def holds(self, columns: Integers) -> bool:
        known = {tuple(point) for point in self.points.tolist()}
        known |= {tuple(-x for x in point) for point in known}
        left = {tuple(column) for column in columns.T.tolist()} - known
        return all(self.gauge(column) <= 1 for column in sorted(left))

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        (point,) = self._uniform(self.tree, 1, bits, _Work())
        radius = Exponentials(self.size + 1, bits)
        while True:
            rounded = _rounded(point, radius, scale)
            if rounded is not None:
                return rounded
            for exponentials in [radius, *(part.variables for part in point)]:
                exponentials.refine()

    def _uniform(self, tree: Tree, count: int, bits: Bits, work: _Work) -> list[list[_Point]]:
        """Uniform points of a node: of the proposals that lie in its hull, the first."""
        if isinstance(tree, int):
            work.spend(count * self.proposal_seconds([tree]))
            return [[_Point(self.leaves[tree], bits)] for _ in range(count)]
        leaves = leaves_of(tree)
        accepted: list[list[_Point]] = []
        batch = min(BATCH, max(2, count))
        while len(accepted) < count:
            parts = [self._uniform(child, batch, bits, work) for child in tree]
            proposals = [
                [p for part in combination for p in part]
                for combination in zip(*parts, strict=True)
            ]
            work.spend(batch * self.proposal_seconds(leaves))
            inside = self._inside(leaves, proposals)
            accepted += [
                proposal for proposal, is_in in zip(proposals, inside, strict=True) if is_in
            ]
            batch = min(BATCH, 2 * batch)
        return accepted[:count]

    def proposal_seconds(self, leaves: Sequence[int]) -> float:
        """About how long a point of a leaf takes to draw, or that of some leaves to decide."""
        size = sum(self.leaves[leaf].size for leaf in leaves)
        if len(leaves) == 1:
            return VARIABLE_SECONDS * (size + 2)
        return PRODUCT_SECONDS * len(self.points) * size**2

    def _projection(self, leaves: Sequence[int]) -> tuple[slice, float, Floats, Floats]:
        """The coordinates of leaves, a power of 2, and by it the points and norms of units."""
        coordinates = slice(self._places[leaves[0]].start, self._places[leaves[-1]].stop)
        key = coordinates.start, coordinates.stop
        if key not in self._projections:
            points = distinct(self.points[:, coordinates])
            unit = 2.0 ** int(np.abs(points).max()).bit_length()
            self._projections[key] = (
                points / unit,
                np.array(self._unit_norms[coordinates]) * unit,
                unit,
            )
        scaled, norms, unit = self._projections[key]
        return coordinates, unit, scaled, norms

    @cached_property
    def _projections(self) -> dict[tuple[int, int], tuple[Floats, Floats, float]]:
        return {}

    def _inside(self, leaves: Sequence[int], proposals: list[list[_Point]]) -> list[bool]:
        """Whether each proposal lies in the hull of the points projected on some leaves: exact."""
        coordinates, unit, points, norms = self._projection(leaves)
        values, errors, sums = [], [], []
        for place in range(len(leaves)):
            parts = [proposal[place] for proposal in proposals]
            variables = np.array([part.floats() for part in parts])
            corners = np.array([part.corners for part in parts], dtype=np.float64) / unit
            total = variables.sum(axis=1)
            tops = np.einsum("mi,mic->mc", variables[:, 1:], corners)
            sizes = np.einsum("mi,mic->mc", variables[:, 1:], np.abs(corners))
            values.append(tops / total[:, None])
            # Rounding, and WIDTH of each variable in the numerator and in the denominator.
            loose = np.abs(corners).sum(axis=1) + (len(corners[0]) + 1) * np.abs(values[-1])
            errors.append(4 * (ROUNDING * sizes + WIDTH * loose) / total[:, None])
            sums.append(total)
        marks = decide(points, np.hstack(values), np.hstack(errors), norms)
        marks[np.min(sums, axis=0) < LEAST_SUM] = 0
        return [
            bool(mark == 1) if mark else self._inside_exactly(coordinates, proposal)
            for mark, proposal in zip(marks.tolist(), proposals, strict=True)
        ]

    def _inside_exactly(self, coordinates: slice, proposal: list[_Point]) -> bool:
        """The same in whole numbers, with as many digits as it takes."""
        points = distinct(self.points[:, coordinates])
        reach = [Fraction(norm) for norm in self._unit_norms[coordinates]]
        while True:
            centres, radii = [], []
            for part in proposal:
                tops, (least, most) = part.bounds()
                for low, high in tops:
                    ends = [Fraction(x, y) for x in (low, high) for y in (least, most)]
                    centres.append((min(ends) + max(ends)) / 2)
                    radii.append((max(ends) - min(ends)) / 2)
            common = 1 << (2 * max(part.variables.precision for part in proposal))
            vector = [round(centre * common) for centre in centres]
            margins = [
                radius + abs(centre - Fraction(x, common))
                for radius, centre, x in zip(radii, centres, vector, strict=True)
            ]
            norm = exact_norm(points, vector) / common
            open_by = sum((a * r for a, r in zip(margins, reach, strict=True)), Fraction(0))
            if norm + open_by <= 1 or norm - open_by > 1:
                return norm <= 1
            for part in proposal:
                part.variables.refine()

    # --- errors and intervals -------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SplitHull) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def _sample(self) -> Sample:
        return _sample_of(self)

    @property
    def directions(self) -> Floats:
        """Points of the boundary, which `direction_weights` go with."""
        return self._sample.directions

    @property
    def direction_weights(self) -> Floats:
        return self._sample.weights

    @cached_property
    def covariance(self) -> Floats:
        matrix = self._sample.second_moment
        matrix.flags.writeable = False
        return matrix

    @property
    def standard_error(self) -> float:
        return self._sample.standard_error

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Directions of the sample, chosen by their weights, times fresh radii."""
        indices = rng.choice(len(self.directions), count, p=self.direction_weights)
        totals = rng.standard_gamma(self.size, count)
        signs = rng.choice([-1.0, 1.0], count)
        return self.directions[indices] * (signs * totals)[:, None], totals

    @property
    def words(self) -> str:
        return (
            f"hull of {len(self.points):,} points; "
            f"variances known to {100 * self.standard_error:.1f} %"
        )

    def pack(self, arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
        arrays[f"{prefix}-points"] = self.points
        return {
            "kind": "split",
            "dimensions": self.size,
            "tree": _listed(self.tree),
            "leaves": [leaf.pack(arrays, f"{prefix}-{g}") for g, leaf in enumerate(self.leaves)],
        }

    @cached_property
    def digest(self) -> str:
        parts = [_listed(self.tree), [leaf.digest for leaf in self.leaves], self.points.shape]
        seal = hashlib.sha256(json.dumps(parts).encode())
        seal.update(np.ascontiguousarray(self.points).tobytes())
        return seal.hexdigest()


@lru_cache(maxsize=8)
def _sample_of(body: SplitHull) -> Sample:
    """The sample that errors are stated by, which takes seconds: once for all equal bodies."""
    with threadpool_limits(1):
        return sample_hull(body.points, body.leaves, np.random.default_rng(25))


def distinct(points: Integers) -> Integers:
    """The points without those that are 0, or equal to another or its negative."""
    rows = np.arange(len(points))
    first = np.argmax(points != 0, axis=1)
    signs = np.sign(points[rows, first])
    return np.unique((points * signs[:, None])[signs != 0], axis=0)


def leaves_of(tree: Tree) -> list[int]:
    """The numbers of the leaves of a tree, in order."""
    if isinstance(tree, int):
        return [tree]
    return [leaf for child in tree for leaf in leaves_of(child)]


def _listed(tree: Tree) -> Any:
    return tree if isinstance(tree, int) else [_listed(child) for child in tree]


def _is_simplicial(leaf: Body) -> bool:
    one_table = isinstance(leaf, Tables) and len(leaf.sizes) == 1 and not leaf.has_total
    return isinstance(leaf, Facets) or one_table


def _rounded(point: Sequence[_Point], radius: Exponentials, scale: Fraction) -> list[int] | None:
    """``scale·T·u`` to whole numbers; None where an interval has a boundary between two."""
    low, high = sum(radius.low), sum(radius.high)
    top, bottom = 2 * scale.numerator, 2 * scale.denominator << radius.precision
    coordinates = []
    for part in point:
        tops, (least, most) = part.bounds()
        for first, last in tops:
            # T and the denominator are positive: the ends follow from the signs of the numerator.
            small = (low * first, most) if first > 0 else (high * first, least)
            large = (high * last, least) if last > 0 else (low * last, most)
            ends = [(2 * top * x + bottom * y) // (2 * bottom * y) for x, y in (small, large)]
            if ends[0] != ends[1]:
                return None
            coordinates.append(ends[0])
    return coordinates
