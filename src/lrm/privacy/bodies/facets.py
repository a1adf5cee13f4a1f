r"""Bodies with simplicial boundary, given by integer vertices and the list of all facets.

    K = conv(±V)·2^shift.   Choose a facet F with probability |det V_F| / Σ|det|, then
    z = scale·Σ_{i∈F} E_i·v_i with independent exponential variables E_i.

On the cone over F the norm of Σ g_i·v_i is Σ g_i, so that the density of z there is
proportional to exp(−‖z‖/scale), with the same factor for all cones: the choice of F by its volume
makes up for the determinant of the map. The cones over all facets cover the space.

The determinants are known in float64 with error bounds. F is therefore chosen by upper bounds
w_F ≥ |det V_F| and kept with probability |det V_F| / w_F, in whole numbers: a determinant is
computed exactly where its bounds do not decide, and the law is exact.

Nothing is believed of a list of facets. `Facets` verifies, with error bounds and with exact
integers where these leave a doubt, that

1. the vertices of each listed facet are linearly independent,
2. the plane through them has all other vertices ±v strictly on the inner side, so that each of
   the simplices is a whole facet of K,
3. every ridge (all vertices of a facet but one) lies in exactly two listed facets or their
   negatives, and no facet is listed twice.

Any two facets of a polytope are joined by a chain of facets with common ridges, and a ridge lies in
two facets; so by 3 a list that is not empty has all facets.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import SYSTEM, WORD_BITS, Bits, round_sums, words
from lrm.privacy.bodies.gauges import solve_exactly

MOST_DIMENSIONS = 12
MOST_FACETS = 120_000
"""Facets, of each pair ±F one: verified at some 0.02 ms each."""

MOST_VERTICES = 1 << 14
LARGEST_VERTEX = 1 << 31
MOST_SHIFT = 40

BLOCK = 1 << 11
"""Facets that are verified at a time."""

CERTAIN = 1.0 - 1e-9
"""A product h·v computed in float64 below this, with its rounding error, is below 1."""

PRECISE = 1e-6
"""Relative error of a determinant above which the facet is solved in exact integers."""

CHANCE_BITS = 58
"""Digits of the sum of all determinants that are drawn at once."""

ROUNDING = 2.0**-50
"""More than the relative error of three operations in float64."""


@dataclass(frozen=True, eq=False)
class Facets(Body):
    """conv(±vertices)·2^shift by the list of its facets.

    Parameters
    ----------
    vertices
        Whole numbers, one row per pair ±v.
    facets
        One row per pair ±F: the numbers of its vertices, where v_i has the number i + 1 and
        −v_i the number −(i + 1).
    shift
        Binary exponent of the vertices.

    Examples
    --------
    >>> square = Facets(np.array([[1, 1], [1, -1]]), np.array([[1, 2], [1, -2]]), 0)
    >>> square.gauge([3, 0]), square.covariance.tolist()
    (Fraction(3, 1), [[4.0, 0.0], [0.0, 4.0]])
    """

    vertices: Integers
    facets: Integers
    shift: int
    _solved: _Normals = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("vertices", "facets"):
            values = np.array(getattr(self, name), dtype=np.int64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        self._check_shapes()
        self._check_closed()
        self._solve()

    def _check_shapes(self) -> None:
        if self.vertices.ndim != 2 or self.facets.ndim != 2:
            raise WorkloadError("a body by facets needs a table of vertices and one of facets")
        count, k = self.vertices.shape
        if not 2 <= k <= MOST_DIMENSIONS or not k <= count <= MOST_VERTICES:
            raise WorkloadError(
                f"a body by facets has 2 to {MOST_DIMENSIONS} dimensions and at most "
                f"{MOST_VERTICES:,} vertices, not {k} and {count:,}"
            )
        if self.facets.shape[1] != k or not 1 <= len(self.facets) <= MOST_FACETS:
            raise WorkloadError(f"a body by facets has 1 to {MOST_FACETS:,} facets of {k} vertices")
        if not 0 <= self.shift <= MOST_SHIFT:
            raise WorkloadError(f"the shift of a body by facets is at most {MOST_SHIFT}")
        if self.vertices.min() <= -LARGEST_VERTEX or self.vertices.max() >= LARGEST_VERTEX:
            raise WorkloadError("the vertices of a body by facets have at most 31 bits")
        low, high = self.facets.min(), self.facets.max()
        if low < -count or high > count or not self.facets.all():
            raise WorkloadError("a facet names a vertex that is not there")

    def _check_closed(self) -> None:
        """Check 3: every ridge lies in exactly two of the facets and their negatives."""
        order = np.argsort(np.abs(self.facets), axis=1)
        rows = np.take_along_axis(self.facets, order, axis=1)
        if np.any(np.diff(np.abs(rows), axis=1) == 0):
            raise WorkloadError("a facet names a vertex twice")
        if np.unique(_keys(rows, len(self.vertices))).size != len(rows):
            raise WorkloadError("a facet is listed twice")
        ridges = (np.delete(rows, place, axis=1) for place in range(rows.shape[1]))
        keys = np.concatenate([_keys(part, len(self.vertices)) for part in ridges])
        _, often = np.unique(keys, return_counts=True)
        if np.any(often != 2):
            raise WorkloadError("the list of facets has gaps: a ridge is not in exactly two facets")

    def _solve(self) -> None:
        """Checks 1 and 2; determinants and normal vectors of all facets, with error bounds."""
        solved = []
        for start in range(0, len(self.facets), BLOCK):
            block = self.facets[start : start + BLOCK]
            normals = _solve_facets(self._corners(block))
            self._check_outermost(block, normals)
            solved.append(normals)
        together = (np.concatenate(parts) for parts in zip(*solved, strict=True))
        object.__setattr__(self, "_solved", _Normals(*together))

    def _corners(self, facets: Integers) -> Integers:
        """Vertices of some facets: facets × vertices × coordinates."""
        signs = np.sign(facets)[:, :, None]
        return np.asarray(self.vertices[np.abs(facets) - 1] * signs)

    def _check_outermost(self, facets: Integers, normals: _Normals) -> None:
        """Check 2: |h·v| < 1 for all vertices but the facet's own."""
        products, errors = normals.products(self.vertices)
        is_own_vertex = np.zeros(products.shape, dtype=bool)
        np.put_along_axis(is_own_vertex, np.abs(facets) - 1, values=True, axis=1)
        doubtful = ~is_own_vertex & ~(products + errors < CERTAIN)
        for f in np.flatnonzero(doubtful.any(axis=1)).tolist():
            det, top = self._exact_normal(facets[f])
            vertices = self.vertices[doubtful[f]].astype(object)
            if np.any(np.abs(vertices @ top) >= det):
                raise WorkloadError(
                    "a listed facet is not one of the body: a vertex lies beyond it"
                )

    def _exact_normal(self, facet: Integers) -> tuple[int, NDArray[Any]]:
        """The number d = |det V_F| and whole numbers t, up to one sign, with h = t/d."""
        dets, numerators = _exact_normals(self._corners(facet[None]))
        return abs(int(dets[0])), numerators[0]

    @property
    def size(self) -> int:
        return int(self.vertices.shape[1])

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume 2·Σ|det|/k!."""
        determinants = self._solved.determinants
        largest = float(determinants.max())
        logs = math.log(2 * largest) + math.log(float((determinants / largest).sum()))
        return logs - math.lgamma(self.size + 1) + self.shift * self.size * math.log(2)

    def norms(self, vectors: Floats) -> Floats:
        normals = self._solved.vectors * 2.0**-self.shift
        height = max(1, (1 << 22) // len(normals))
        blocks = (vectors[start : start + height] for start in range(0, len(vectors), height))
        return np.concatenate([np.abs(block @ normals.T).max(axis=1) for block in blocks])

    def gauge(self, vector: Sequence[int]) -> Fraction:
        point = np.array([int(x) for x in vector], dtype=object)
        products, errors = self._solved.products(point[None])
        possible = products + errors >= (products - errors).max()
        largest = Fraction(0)
        for f in np.flatnonzero(possible[:, 0]).tolist():
            det, top = self._exact_normal(self.facets[f])
            largest = max(largest, Fraction(abs(int(top @ point)), det))
        return Fraction(largest, 2**self.shift)

    def holds(self, columns: Integers) -> bool:
        """Whether |h·p| ≤ 1 for all facets and columns: in float64 where that is certain."""
        points = columns.T
        height = max(1, (1 << 22) // len(self.facets))
        for start in range(0, len(points), height):
            block = points[start : start + height]
            products, errors = self._solved.products(block)
            certain = (products + errors < CERTAIN * 2.0**self.shift).all(axis=0)
            if any(self.gauge(point.tolist()) > 1 for point in block[~certain]):
                return False
        return True

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        (corners,) = self.corners(self.draw_facets(1, bits))
        sums = [[(i, int(x)) for i, x in enumerate(column)] for column in corners.T]
        return round_sums(sums, self.size, scale, bits)

    def draw_facets(self, count: int, bits: Bits = SYSTEM) -> Integers:
        """Facets, each chosen by the volume of the cone over it: numbers from 1, negative for −F.

        A whole number below Σ w_F·2^t has as many high digits as words have, and t low ones, which
        are only drawn where the high ones do not decide whether F is kept.
        """
        chances = self._chances
        width = int(chances.ends[-1]).bit_length()
        chosen: list[Integers] = []
        missing = count
        while missing > 0:
            drawn = words(2 * missing, bits)
            levels = (drawn >> np.uint64(WORD_BITS - width)).astype(np.int64)
            signs = 1 - 2 * (drawn & np.uint64(1)).astype(np.int64)
            in_range = levels < chances.ends[-1]
            levels, signs = levels[in_range], signs[in_range]
            places = np.searchsorted(chances.ends, levels, side="right")
            levels -= chances.ends[places] - chances.widths[places]
            is_kept = levels < chances.certain[places]
            for row in np.flatnonzero(~is_kept).tolist():
                low_digits = bits(chances.low_digits) if chances.low_digits else 0
                level = (int(levels[row]) << chances.low_digits) | low_digits
                is_kept[row] = level < self._exact_normal(self.facets[places[row]])[0]
            chosen.append((signs * (places + 1))[is_kept][:missing])
            missing -= len(chosen[-1])
        return np.concatenate(chosen)

    def corners(self, numbers: Integers) -> Floats:
        """The vertices of facets by their numbers, which are exact in float64."""
        signs = np.sign(numbers) * 2.0**self.shift
        return np.asarray(self._corners(self.facets[np.abs(numbers) - 1]) * signs[:, None, None])

    @cached_property
    def _chances(self) -> _Chances:
        solved = self._solved
        upper = (solved.determinants + solved.errors) * (1 + ROUNDING)
        lower = (solved.determinants - solved.errors) * (1 - ROUNDING)
        low_digits = max(0, math.ceil(math.log2(float(upper.sum()))) - CHANCE_BITS)
        unit = 2.0**-low_digits  # by which products are exact
        widths = np.floor(upper * unit).astype(np.int64) + 1
        return _Chances(
            low_digits, widths, np.cumsum(widths), np.floor(lower * unit).astype(np.int64)
        )

    @cached_property
    def probabilities(self) -> Floats:
        """Of each pair of facets ±F, in float64."""
        determinants = self._solved.determinants / self._solved.determinants.max()
        return np.asarray(determinants / determinants.sum())

    @cached_property
    def covariance(self) -> Floats:
        matrix = np.zeros((self.size, self.size))
        for start in range(0, len(self.facets), BLOCK):
            part = slice(start, start + BLOCK)
            corners = self._corners(self.facets[part]).astype(np.float64)
            weighted = corners * self.probabilities[part, None, None]
            matrix += np.einsum("fic,fid->cd", weighted, corners)
            sums = corners.sum(axis=1)
            matrix += (sums * self.probabilities[part, None]).T @ sums
        matrix *= 4.0**self.shift
        matrix.flags.writeable = False
        return matrix

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        drawn_facets = self.facets[rng.choice(len(self.facets), count, p=self.probabilities)]
        parts = rng.standard_exponential((count, self.size))
        signs = rng.choice([-1.0, 1.0], count)
        values = np.einsum("ni,nic->nc", parts, self._corners(drawn_facets).astype(np.float64))
        return values * (signs * 2.0**self.shift)[:, None], parts.sum(axis=1)

    @property
    def words(self) -> str:
        return f"hull of {len(self.vertices):,} points"

    def pack(self, arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
        arrays[f"{prefix}-vertices"] = self.vertices
        arrays[f"{prefix}-facets"] = self.facets
        return {"kind": "facets", "shift": self.shift, "dimensions": self.size}

    @property
    def digest(self) -> str:
        seal = hashlib.sha256(f"facets {self.vertices.shape} {self.shift}".encode())
        for array in (self.vertices, self.facets):
            seal.update(np.ascontiguousarray(array).tobytes())
        return seal.hexdigest()


def _keys(rows: Integers, vertices: int) -> NDArray[Any]:
    """One value per row, the same for a row and its negative and for no other row."""
    rows = rows * np.sign(rows[:, :1])
    base = 2 * vertices + 1
    if base ** rows.shape[1] < 2**62:
        powers = np.array([base**place for place in range(rows.shape[1])])
        return np.asarray((rows + vertices) @ powers)
    rows = np.ascontiguousarray(rows.astype(np.int32))
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


class _Chances(NamedTuple):
    """Whole numbers by which facets are chosen: ``det V_F ≤ widths·2^low_digits``.

    Where a number below ``widths`` is below ``certain`` too, the facet is kept.
    """

    low_digits: int
    widths: Integers
    ends: Integers
    certain: Integers


class _Normals(NamedTuple):
    """Determinants and normal vectors of facets, with bounds on their errors."""

    determinants: Floats
    errors: Floats
    vectors: Floats
    vector_errors: Floats

    def products(self, points: NDArray[Any]) -> tuple[Floats, Floats]:
        """Values |h·p| for all facets and points, with bounds on the errors."""
        places = points.T.astype(np.float64)
        sizes = np.abs(places)
        eps = 4 * (self.vectors.shape[1] + 4) * np.finfo(np.float64).eps
        errors = np.abs(self.vectors) @ sizes * eps + self.vector_errors @ sizes * (1 + eps)
        return np.abs(self.vectors @ places), errors


def _solve_facets(corners: Integers) -> _Normals:
    """Determinants and h with V_F·h = 1 by elimination, with bounds on the errors.

    Every number is a middle and a radius. Where a pivot may be 0 or a determinant is not
    precise, the facet is solved again in exact integers.
    """
    count, k, _ = corners.shape
    middle = np.concatenate([corners, np.ones((count, k, 1))], axis=2, dtype=np.float64)
    radius = np.zeros_like(middle)
    determinants, errors = np.ones(count), np.zeros(count)
    every = np.arange(count)
    with np.errstate(all="ignore"):  # what becomes infinite or NaN is solved again
        for step in range(k):
            pivot = step + np.abs(middle[:, step:, step]).argmax(axis=1)
            for table in (middle, radius):
                table[every, step], table[every, pivot] = table[every, pivot], table[every, step]
            p, p_radius = middle[:, step, step].copy(), radius[:, step, step].copy()
            errors = errors * (np.abs(p) + p_radius) + determinants * p_radius
            determinants = determinants * np.abs(p)
            errors = (errors + ROUNDING * determinants) * (1 + ROUNDING)
            row = middle[:, step] / p[:, None]
            least = np.abs(p) - p_radius
            wide = radius[:, step] + np.abs(row) * p_radius[:, None]
            row_radius = wide / least[:, None] * (1 + ROUNDING) + ROUNDING * np.abs(row)
            row_radius[least <= 0] = np.inf
            factor, factor_radius = middle[:, :, step, None].copy(), radius[:, :, step, None].copy()
            product = factor * row[:, None]
            radius += np.abs(factor) * row_radius[:, None]
            radius += factor_radius * (np.abs(row) + row_radius)[:, None]
            middle -= product
            radius += ROUNDING * (np.abs(product) + np.abs(middle))
            radius *= 1 + ROUNDING
            middle[:, step], radius[:, step] = row, row_radius
        doubtful = np.flatnonzero(~(errors < PRECISE * determinants))
    normals = _Normals(determinants, errors, middle[:, :, k], radius[:, :, k])
    if doubtful.size:
        dets, numerators = _exact_normals(corners[doubtful])
        if not np.all(dets != 0):
            raise WorkloadError("the vertices of a facet are linearly dependent")
        exact = np.abs(dets).astype(np.float64), (numerators / dets[:, None]).astype(np.float64)
        normals.determinants[doubtful], normals.vectors[doubtful] = exact
        normals.errors[doubtful] = ROUNDING * exact[0]
        normals.vector_errors[doubtful] = ROUNDING * np.abs(exact[1])
    return normals


def _exact_normals(corners: Integers) -> tuple[NDArray[Any], NDArray[Any]]:
    """Determinants d, up to their signs, and whole numbers t with ``V_F·(t/d) = 1``."""
    dets, numerators = solve_exactly(corners, np.ones((*corners.shape[:2], 1), dtype=np.int64))
    return dets, numerators[:, :, 0]
