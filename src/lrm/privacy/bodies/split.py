r"""Hulls of points in more dimensions than their facets can be listed: exact rejection by parts.

    K = conv(±points).   Noise of density ∝ exp(−‖z‖_K) is z = T·u, where u is uniform in K and
    T is the sum of k + 1 exponential variables, independent of u.

The coordinates are divided into leaves, and a tree joins the leaves. The projection of K on the
coordinates of a node is the hull K_n of the projected points. A uniform point of K_n is
drawn by rejection: a uniform point of the product of the bodies of its children contains K_n, and
what lies in K_n is kept. A leaf has a body with listed facets, or a cross-polytope, that contains
the projected points: there u = Σ E_i·v_i / (E_0 + Σ E_i) for the vertices v of a facet that is
chosen by its volume, since E_i/(E_0 + Σ E) is uniform in a simplex.

All decisions are exact. The first digits of the exponential variables of many proposals are drawn
at a time, so u is a box. That it lies in K_n, or outside, is proved in float64 with bounds on all
errors (`decide`). Where that is open, digits are added (`Exponentials`) and the norm is computed in
whole numbers. The result is a function of the infinite sequence of digits, so the law is exact. See
docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import sub
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lrm.errors import ConvergenceError, WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import (
    EXPONENTIAL_ERROR,
    LEAST_WORD,
    SYSTEM,
    Bits,
    Exponentials,
    Words,
    exponentials,
    words,
)
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.bodies.gauges import ROUNDING, decide, exact_norm, solve_exactly
from lrm.privacy.bodies.sampling import Sample, sample_hull
from lrm.privacy.bodies.tables import Tables

Tree = int | tuple["Tree", ...]
"""The number of a leaf, or the trees that are joined."""

MOST_DIMENSIONS = 32
MOST_POINTS = 1 << 12
MOST_LEAVES = 8
LARGEST_POINT = 1 << 53
"""Coordinates below it are exact in float64."""

FLATTEST = 2.0**16
"""Norms of unit vectors, times the largest size of their coordinates: below 100 for plans. Hulls
that are much flatter are decided in whole numbers every time, and have no covariance in float64."""

WIDTH = 2.0**-50
"""Intervals of variables whose first 64 digits are not enough are made as narrow as this."""

LEAST_SUM = 2.0**-20
"""Sums of exponential variables below it, which are rare, are decided in whole numbers."""

BATCH = 1024
"""The most proposals that are decided at a time."""

VARIABLE_SECONDS, PRODUCT_SECONDS = 5e-7, 2e-9
"""Seconds per exponential variable of a proposal, and per point and squared dimension of a norm."""

MOST_SECONDS = 120.0
"""Counted work of a draw after which it ends with an error.

Plans are made where a draw takes a fortieth of it in the mean. The point that is accepted does not
depend on how many were rejected before it, so the law of draws that do not end so is the same; nor
does the count depend on data, which no draw looks at."""


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


class _Points:
    """Uniform points of a leaf: facets, and exponential variables by their first digits.

    Parameters
    ----------
    leaf
        The body.
    facets
        The number of a facet for each point.
    digits
        The first 64 digits of the uniform variables, one row per point.
    values
        The exponential variables in float64, each to `EXPONENTIAL_ERROR`.
    exact
        The same points with as many digits as were needed so far, where more were drawn.
    """

    def __init__(
        self,
        leaf: Facets | Tables,
        facets: Integers,
        digits: Words,
        values: Floats,
        exact: NDArray[np.object_],
    ) -> None:
        self.leaf, self.facets, self.digits = leaf, facets, digits
        self.values, self.exact = values, exact

    @classmethod
    def drawn(cls, leaf: Body, count: int, bits: Bits) -> _Points:
        assert isinstance(leaf, Facets | Tables)  # noqa: S101 - checked by the body
        facets = leaf.draw_facets(count, bits)
        digits = words(count * (leaf.size + 1), bits).reshape(count, -1)
        values = exponentials(np.maximum(digits, np.uint64(LEAST_WORD)))
        points = cls(leaf, facets, digits, values, np.full(count, None, dtype=object))
        for row in np.flatnonzero((digits < LEAST_WORD).any(axis=1)).tolist():
            values[row] = points.point(row, bits).floats()
        return points

    def take(self, rows: Integers) -> _Points:
        return _Points(
            self.leaf, self.facets[rows], self.digits[rows], self.values[rows], self.exact[rows]
        )

    @classmethod
    def joined(cls, parts: Sequence[_Points]) -> _Points:
        columns = zip(*((p.facets, p.digits, p.values, p.exact) for p in parts), strict=True)
        return cls(parts[0].leaf, *map(np.concatenate, columns))

    def point(self, row: int, bits: Bits) -> _Point:
        """The exact point, which is the same whenever it is asked for."""
        if self.exact[row] is None:
            (corners,) = self.leaf.corners(self.facets[row : row + 1])
            self.exact[row] = _Point(corners, self.digits[row].tolist(), bits)
        point: _Point = self.exact[row]
        return point


class _Point:
    """A uniform point of a leaf: vertices of a facet, and exponential variables as intervals."""

    def __init__(self, corners: Floats, digits: list[int], bits: Bits) -> None:
        self._columns = [[(i + 1, int(x)) for i, x in enumerate(column)] for column in corners.T]
        self.variables = Exponentials(len(digits), bits, digits)

    def floats(self) -> list[float]:
        """The variables, each to `EXPONENTIAL_ERROR`."""
        variables = self.variables
        while max(map(sub, variables.high, variables.low)) > variables.unit * WIDTH:
            variables.refine()
        return [float(Fraction(low, variables.unit)) for low in variables.low]

    def bounds(self) -> tuple[list[tuple[int, int]], tuple[int, int]]:
        """Intervals around ``Σ E_i·v_i`` and ``Σ E``, in units of 2^−precision."""
        intervals = [self.variables.bounds(column) for column in self._columns]
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
    simulated: ClassVar = True

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
        """Whether every column has norm at most 1; False where too many are no points."""
        known = {tuple(point) for point in self.points.tolist()}
        known |= {tuple(-x for x in point) for point in known}
        left = {tuple(column) for column in columns.T.tolist()} - known
        # Plans have no columns but their points; a norm in whole numbers takes 20 ms.
        return len(left) <= MOST_POINTS and all(self.gauge(x) <= 1 for x in sorted(left))

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        point = [part.point(0, bits) for part in self._uniform(self.tree, 1, bits, _Work())]
        radius = Exponentials(self.size + 1, bits)
        while True:
            rounded = _rounded(point, radius, scale)
            if rounded is not None:
                return rounded
            for variables in [radius, *(part.variables for part in point)]:
                variables.refine()

    def _uniform(self, tree: Tree, count: int, bits: Bits, work: _Work) -> list[_Points]:
        """Uniform points of a node, leaf by leaf: of the proposals in its hull, the first."""
        if isinstance(tree, int):
            work.spend(count * self.proposal_seconds([tree]))
            return [_Points.drawn(self.leaves[tree], count, bits)]
        leaves = leaves_of(tree)
        accepted: list[list[_Points]] = []
        missing, batch = count, min(BATCH, max(2, count))
        while missing > 0:
            proposals = [p for child in tree for p in self._uniform(child, batch, bits, work)]
            work.spend(batch * self.proposal_seconds(leaves))
            rows = np.flatnonzero(self._inside(leaves, proposals, bits))[:missing]
            accepted.append([points.take(rows) for points in proposals])
            missing -= len(rows)
            batch = min(BATCH, 2 * batch)
        return [_Points.joined(parts) for parts in zip(*accepted, strict=True)]

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

    def _inside(
        self, leaves: Sequence[int], proposals: Sequence[_Points], bits: Bits
    ) -> NDArray[np.bool_]:
        """Whether each proposal lies in the hull of the points projected on some leaves: exact."""
        coordinates, unit, points, norms = self._projection(leaves)
        places, errors, sums = [], [], []
        for part in proposals:
            corners = part.leaf.corners(part.facets) / unit
            variables, total = part.values[:, 1:], part.values.sum(axis=1)
            tops = np.einsum("mi,mic->mc", variables, corners)
            sizes = np.einsum("mi,mic->mc", variables, np.abs(corners))
            places.append(tops / total[:, None])
            # Rounding, and the error of each variable in the numerator and in the denominator.
            loose = np.abs(corners).sum(axis=1) + part.values.shape[1] * np.abs(places[-1])
            errors.append(4 * (ROUNDING * sizes + EXPONENTIAL_ERROR * loose) / total[:, None])
            sums.append(total)
        marks = decide(points, np.hstack(places), np.hstack(errors), norms)
        marks[np.min(sums, axis=0) < LEAST_SUM] = 0
        for row in np.flatnonzero(marks == 0).tolist():
            exact = [part.point(row, bits) for part in proposals]
            marks[row] = 1 if self._inside_exactly(coordinates, exact) else -1
        return np.asarray(marks == 1)

    def _inside_exactly(self, coordinates: slice, proposal: list[_Point]) -> bool:
        """Whether a proposal is inside, in whole numbers with as many digits as it takes."""
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
    if isinstance(leaf, Tables):  # whose unit must be exact in float64
        return len(leaf.sizes) == 1 and not leaf.has_total and leaf.unit < LARGEST_POINT
    return isinstance(leaf, Facets)


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
