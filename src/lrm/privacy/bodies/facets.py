r"""Bodies with simplicial boundary, given by integer vertices and the list of all facets.

    K = conv(±V)·2^shift.   Choose a facet F with probability |det V_F| / Σ|det|, then
    z = scale·Σ_{i∈F} E_i·v_i with independent exponential variables E_i.

On the cone over F the norm of Σ g_i·v_i is Σ g_i, so that the density of z there is
proportional to exp(−‖z‖/scale), with the same factor for all cones: the choice of F by its volume
makes up for the determinant of the map. The cones over all facets cover the space.

Nothing is believed of a list of facets. `Facets` verifies with exact integers that

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
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import SYSTEM, Bits, below, choose, round_sums

__all__ = ["MOST_DIMENSIONS", "MOST_FACETS", "Facets"]

MOST_DIMENSIONS = 12
MOST_FACETS = 120_000
"""Facets, of each pair ±F one: verified at some 0.1 ms each."""

MOST_VERTICES = 1 << 14
LARGEST_VERTEX = 1 << 31
MOST_SHIFT = 40

BLOCK = 1 << 11
"""Facets that are verified at a time."""

CERTAIN = 1.0 - 1e-9
"""A product h·v computed in float64 below this, with its rounding error, is below 1."""


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
        every = np.sort(np.vstack([self.facets, -self.facets]), axis=1)
        if np.any(np.diff(every, axis=1) == 0):
            raise WorkloadError("a facet names a vertex twice")
        if np.unique(_keys(every)).size != len(every):
            raise WorkloadError("a facet is listed twice")
        k = every.shape[1]
        ridges = np.vstack([np.delete(every, place, axis=1) for place in range(k)])
        _, often = np.unique(_keys(ridges), return_counts=True)
        if np.any(often != 2):
            raise WorkloadError("the list of facets has gaps: a ridge is not in exactly two facets")

    def _solve(self) -> None:
        """Checks 1 and 2; determinants and normal vectors of all facets."""
        determinants: list[int] = []
        normals: list[Floats] = []
        for start in range(0, len(self.facets), BLOCK):
            block = self.facets[start : start + BLOCK]
            dets, numerators = _exact_normals(self._corners(block))
            if not np.all(dets != 0):
                raise WorkloadError("the vertices of a facet are linearly dependent")
            normals.append((numerators / dets[:, None]).astype(np.float64))
            self._check_outermost(block, dets, numerators, normals[-1])
            determinants += [abs(int(det)) for det in dets]
        object.__setattr__(self, "_determinants", determinants)
        object.__setattr__(self, "_normals", np.vstack(normals))

    def _corners(self, facets: Integers) -> Integers:
        """Vertices of some facets: facets × vertices × coordinates."""
        signs = np.sign(facets)[:, :, None]
        return np.asarray(self.vertices[np.abs(facets) - 1] * signs)

    def _check_outermost(
        self, facets: Integers, dets: NDArray[Any], numerators: NDArray[Any], normals: Floats
    ) -> None:
        """Check 2: |h·v| < 1 for all vertices but the facet's own."""
        products = np.abs(normals @ self.vertices.T.astype(np.float64))
        rounding = _rounding(normals, self.vertices)
        is_own_vertex = np.zeros(products.shape, dtype=bool)
        np.put_along_axis(is_own_vertex, np.abs(facets) - 1, values=True, axis=1)
        doubtful = ~is_own_vertex & ~(products + rounding < CERTAIN)
        for f, v in np.argwhere(doubtful).tolist():
            exact = sum(
                int(n) * int(x) for n, x in zip(numerators[f], self.vertices[v], strict=True)
            )
            if abs(exact) >= abs(int(dets[f])):
                raise WorkloadError(
                    "a listed facet is not one of the body: a vertex lies beyond it"
                )

    @property
    def size(self) -> int:
        return int(self.vertices.shape[1])

    @property
    def dimension(self) -> int:
        return self.size

    @property
    def variables(self) -> int:
        return self.size

    @property
    def determinants(self) -> list[int]:
        """|det| of each listed facet."""
        stored_values: list[int] = self._determinants  # type: ignore[attr-defined]
        return stored_values

    @property
    def volume(self) -> float:
        """Volume of the body."""
        exact_volume = Fraction(2 * sum(self.determinants), math.factorial(self.size))
        return float(exact_volume * 2 ** (self.shift * self.size))

    @property
    def log_volume(self) -> float:
        parts = math.log(2 * sum(self.determinants)) - math.lgamma(self.size + 1)
        return parts + self.shift * self.size * math.log(2)

    def norms(self, vectors: Floats) -> Floats:
        normals: Floats = self._normals * 2.0**-self.shift  # type: ignore[attr-defined]
        height = max(1, (1 << 22) // len(normals))
        blocks = (vectors[start : start + height] for start in range(0, len(vectors), height))
        return np.concatenate([np.abs(block @ normals.T).max(axis=1) for block in blocks])

    def gauge(self, vector: Sequence[int]) -> Fraction:
        largest = Fraction(0)
        point = np.array([int(x) for x in vector], dtype=object)
        for start in range(0, len(self.facets), BLOCK):
            corners = self._corners(self.facets[start : start + BLOCK])
            dets, numerators = _exact_normals(corners)
            for det, top in zip(dets, numerators @ point, strict=True):
                largest = max(largest, abs(Fraction(int(top), int(det))))
        return Fraction(largest, 2**self.shift)

    def holds(self, columns: Integers) -> bool:
        """Whether |h·p| ≤ 1 for all facets and columns: in float64 where that is certain."""
        normals: Floats = self._normals * 2.0**-self.shift  # type: ignore[attr-defined]
        points = columns.T
        step = max(1, (1 << 24) // max(1, len(points)))
        doubtful: set[int] = set()
        for start in range(0, len(normals), step):
            part = normals[start : start + step]
            products = np.abs(part @ points.T.astype(np.float64))
            certain = products + _rounding(part, points) < CERTAIN
            doubtful.update(np.flatnonzero(~certain.all(axis=0)).tolist())
        return all(self.gauge(points[j].tolist()) <= 1 for j in sorted(doubtful))

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        corners = self.draw_facet(bits)
        sums = [[(i, corner[c]) for i, corner in enumerate(corners)] for c in range(self.size)]
        return round_sums(sums, self.size, scale, bits)

    def draw_facet(self, bits: Bits = SYSTEM) -> list[list[int]]:
        """The vertices of a facet, chosen by the volume of the cone over it."""
        facet = self.facets[choose(self._cumulative, bits)]
        factor = (1 - 2 * below(2, bits)) << self.shift
        return [[factor * x for x in v] for v in self._corners(facet[None])[0].tolist()]

    @cached_property
    def _cumulative(self) -> list[int]:
        return list(accumulate(self.determinants))

    @cached_property
    def _probabilities(self) -> Floats:
        total = sum(self.determinants)
        return np.array([det / total for det in self.determinants])

    @cached_property
    def covariance(self) -> Floats:
        matrix = np.zeros((self.size, self.size))
        for start in range(0, len(self.facets), BLOCK):
            part = slice(start, start + BLOCK)
            corners = self._corners(self.facets[part]).astype(np.float64)
            weighted = corners * self._probabilities[part, None, None]
            matrix += np.einsum("fic,fid->cd", weighted, corners)
            sums = corners.sum(axis=1)
            matrix += (sums * self._probabilities[part, None]).T @ sums
        matrix *= 4.0**self.shift
        matrix.flags.writeable = False
        return matrix

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        chances = self._probabilities / self._probabilities.sum()
        drawn_facets = self.facets[rng.choice(len(chances), count, p=chances)]
        parts = rng.standard_exponential((count, self.size))
        signs = rng.choice([-1.0, 1.0], count)
        values = np.einsum("ni,nic->nc", parts, self._corners(drawn_facets).astype(np.float64))
        return values * (signs * 2.0**self.shift)[:, None], parts.sum(axis=1)

    @property
    def words(self) -> str:
        return f"a body of {2 * len(self.facets):,} facets in {self.size} dimensions"

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


def _keys(rows: Integers) -> NDArray[Any]:
    """One value per row that is the same for the same rows."""
    rows = np.ascontiguousarray(rows.astype(np.int32))
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def _rounding(normals: Floats, points: Integers) -> Floats:
    """Bounds on the rounding error of ``normals @ points.T``, with room for that of the entries."""
    sizes = np.abs(normals) @ np.abs(points.T.astype(np.float64))
    return np.asarray(sizes * (4 * (normals.shape[1] + 4) * np.finfo(np.float64).eps))


def _exact_normals(corners: Integers) -> tuple[NDArray[Any], NDArray[Any]]:
    """Determinants d and whole numbers t with ``V_F·(t/d) = 1``, for many facets at a time.

    Elimination without fractions (Bareiss): every division is exact. Where a pivot is 0, the rows
    of that facet alone are exchanged, which changes the sign of its d and t together.
    """
    count, k, _ = corners.shape
    table = np.empty((count, k, k + 1), dtype=object)
    table[:, :, :k] = corners
    table[:, :, k] = 1
    before = np.ones(count, dtype=object)
    for step in range(k):
        pivots = table[:, step, step]
        for f in np.flatnonzero(pivots == 0).tolist():
            other = next((r for r in range(step + 1, k) if table[f, r, step] != 0), None)
            if other is None:
                return np.zeros(count, dtype=object), np.zeros((count, k), dtype=object)
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
    return before, table[:, :, k]
