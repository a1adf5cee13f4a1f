"""Many whole tables that agree, by residual coordinates: nothing has the size of the domain.

Unknowns are the coordinates of every set of attributes below a table, in an orthonormal basis of
each attribute whose first vector is constant [1]_: all tables of given coordinates agree. The
squared distance to released tables is diagonal in them, so that each round of ADMM takes a few
operations per cell.

References
----------
.. [1] "GReM: ReM and marginals from noisy residuals", https://arxiv.org/abs/2410.01091.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.queries.maps.linear import Floats, Integers
from lrm.releases.cell_tables import Axes, QueryTerm

MOST_ROUNDS = 4000
"""Rounds of ADMM; batches of tables take 50 to 1,000."""

CLOSE = 1e-8
"""Relative change of the tables below which ADMM ends."""

RELAXATION = 1.6
"""Over-relaxation of ADMM, as usual in the literature."""

FIRST_PENALTY = 3.0
"""The first penalty, relative to the median weight of a coordinate in the distance."""

LARGE = 1 << 15
"""Cells from which on a table is transformed by itself: an index per cell takes memory."""


class Coordinates:
    """Where the coordinates of each set of axes below some tables are."""

    def __init__(self, sizes: Sequence[int], sets: Sequence[Axes]) -> None:
        self.sizes = tuple(sizes)
        below = {subset for axes in sets for subset in subsets(axes)}
        self.subsets = sorted(below, key=lambda subset: (len(subset), subset))
        lengths = [math.prod(self.sizes[i] - 1 for i in subset) for subset in self.subsets]
        starts = [0, *np.cumsum(lengths).tolist()]
        self.slices = {
            subset: slice(*ends)
            for subset, ends in zip(self.subsets, itertools.pairwise(starts), strict=True)
        }
        self.count = starts[-1]


def subsets(axes: Axes) -> list[Axes]:
    """All subsets of a set of axes, the smaller ones first.

    >>> subsets((1, 2))
    [(), (1,), (2,), (1, 2)]
    """
    return [a for k in range(len(axes) + 1) for a in itertools.combinations(axes, k)]


class ResidualTables:
    """Some tables as linear functions of coordinates, their cells in one array."""

    def __init__(self, coordinates: Coordinates, sets: Sequence[Axes]) -> None:
        self.coordinates = coordinates
        sizes = coordinates.sizes
        self.shapes = {axes: tuple(sizes[i] for i in axes) for axes in sets}
        small = [axes for axes in sets if math.prod(self.shapes[axes]) < LARGE]
        large = [axes for axes in sets if math.prod(self.shapes[axes]) >= LARGE]
        self.sets = [*small, *large]
        ends = np.cumsum([0, *(math.prod(self.shapes[axes]) for axes in self.sets)]).tolist()
        self.slices = {
            axes: slice(*pair)
            for axes, pair in zip(self.sets, itertools.pairwise(ends), strict=True)
        }
        self.cells = int(ends[-1])
        self._small = _SmallTables(coordinates, [(axes, self.shapes[axes]) for axes in small])
        self._large = large

    def tables(self, values: Floats) -> Floats:
        """The cells of all tables of given coordinates."""
        cells = np.empty(self.cells)
        cells[: self._small.cells] = self._small.tables(values)
        for axes in self._large:
            table = np.zeros(self.shapes[axes])
            for subset, place, scale in self._parts(axes):
                block = values[self.coordinates.slices[subset]]
                table[place] = block.reshape(table[place].shape) * scale
            cells[self.slices[axes]] = _reflected(table).reshape(-1)
        return cells

    def transpose(self, cells: Floats) -> Floats:
        """The transposed map of `tables`."""
        values = self._small.transpose(cells[: self._small.cells])
        for axes in self._large:
            table = _reflected(cells[self.slices[axes]].reshape(self.shapes[axes]))
            for subset, place, scale in self._parts(axes):
                values[self.coordinates.slices[subset]] += table[place].reshape(-1) * scale
        return values

    def diagonal(self, weights: Sequence[float]) -> Floats:
        """Σ weight·‖table‖² as one weight per squared coordinate, in the order of `sets`."""
        total = np.zeros(self.coordinates.count)
        for axes, weight in zip(self.sets, weights, strict=True):
            for subset, _, scale in self._parts(axes):
                total[self.coordinates.slices[subset]] += weight * scale**2
        return total

    def _parts(self, axes: Axes) -> Iterator[tuple[Axes, tuple[slice, ...], float]]:
        sizes = self.coordinates.sizes
        for subset in subsets(axes):
            place = tuple(slice(1, None) if i in subset else slice(0, 1) for i in axes)
            yield subset, place, _scale(sizes, axes, subset)


def _scale(sizes: Sequence[int], axes: Axes, subset: Axes) -> float:
    return 1.0 / math.sqrt(math.prod(sizes[i] for i in axes if i not in subset))


def _reflection(size: int) -> Floats:
    """The unit vector of the Householder reflection that makes the constant vector the first."""
    vector = np.full(size, -(size**-0.5))
    vector[0] += 1.0
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector


def _reflected(table: Floats) -> Floats:
    """A table in the orthonormal basis of each axis; the map is its own inverse."""
    for k, size in enumerate(table.shape):
        shape = [1] * table.ndim
        shape[k] = size
        wide = _reflection(size).reshape(shape)
        table = table - 2.0 * wide * (table * wide).sum(axis=k, keepdims=True)
    return table


class _SmallTables:
    """Tables that are transformed all at once: a gather and a sum by segments per axis."""

    def __init__(
        self, coordinates: Coordinates, tables: Sequence[tuple[Axes, tuple[int, ...]]]
    ) -> None:
        self.count = coordinates.count
        indices, scales = [np.empty(0, np.intp)], [np.empty(0)]
        depth = max((len(axes) for axes, _ in tables), default=0)
        # Of each place of an axis in its table: one segment of cells per line along that axis.
        segments: list[list[Integers]] = [[] for _ in range(depth)]
        vectors: list[list[Floats]] = [[] for _ in range(depth)]
        lines = [1] * depth  # segment 0 takes the cells of tables with fewer axes
        for axes, shape in tables:
            index, scale = np.empty(shape, np.intp), np.empty(shape)
            for subset in subsets(axes):
                place = tuple(slice(1, None) if i in subset else slice(0, 1) for i in axes)
                own = coordinates.slices[subset]
                index[place] = np.arange(own.start, own.stop).reshape(index[place].shape)
                scale[place] = _scale(coordinates.sizes, axes, subset)
            indices.append(index.reshape(-1))
            scales.append(scale.reshape(-1))
            for k in range(depth):
                if k >= len(axes):
                    segments[k].append(np.zeros(index.size, np.intp))
                    vectors[k].append(np.zeros(index.size))
                    continue
                others = [n if j != k else 1 for j, n in enumerate(shape)]
                number = lines[k] + np.arange(math.prod(others)).reshape(others)
                lines[k] += math.prod(others)
                along_axis = [n if j == k else 1 for j, n in enumerate(shape)]
                segments[k].append(np.broadcast_to(number, shape).reshape(-1))
                vector = _reflection(shape[k]).reshape(along_axis)
                vectors[k].append(np.broadcast_to(vector, shape).reshape(-1))
        self.index, self.scale = np.concatenate(indices), np.concatenate(scales)
        self.cells = len(self.index)
        self.axes = [
            (np.concatenate(segments[k]), np.concatenate(vectors[k]), lines[k])
            for k in range(depth)
        ]

    def _reflected(self, cells: Floats) -> Floats:
        for segment, vector, count in self.axes:
            sums = np.bincount(segment, weights=vector * cells, minlength=count)
            cells = cells - 2.0 * vector * sums[segment]
        return cells

    def tables(self, values: Floats) -> Floats:
        return self._reflected(values[self.index] * self.scale)

    def transpose(self, cells: Floats) -> Floats:
        turned = self._reflected(cells) * self.scale
        return np.bincount(self.index, weights=turned, minlength=self.count).astype(np.float64)


@dataclass(frozen=True, eq=False)
class WholeTables:
    """Tables nearest to released answers that agree and have no negative counts.

    Parameters
    ----------
    sizes
        Number of merged values of each attribute.
    terms
        Queries over the tables of some axes, with their answers.
    sets
        Axes of the tables that must not have negative counts; the axes of every term lie in one.
    fixed
        Coordinates that are known, and their values.
    impossible
        Cells of tables and of the tables of terms that are known to be empty, by table.
    """

    sizes: tuple[int, ...]
    terms: Sequence[QueryTerm]
    sets: Sequence[Axes]
    fixed: tuple[Integers, Floats]
    impossible: dict[Axes, NDArray[np.bool_]]

    @cached_property
    def coordinates(self) -> Coordinates:
        """The coordinates of all sets of axes below the tables."""
        return Coordinates(self.sizes, self.sets)

    def nearest(self) -> tuple[list[Floats], dict[Axes, Floats]]:
        """The answers of each term, and the tables that terms are about."""
        tables = ResidualTables(self.coordinates, self.sets)
        values = self._solve(tables, self._empty(tables))
        asked = ResidualTables(self.coordinates, list({term.axes: None for term in self.terms}))
        cells = np.maximum(asked.tables(self._inside(asked, values)), 0.0)
        cells[self._empty(asked)] = 0.0  # from about 1e-9 of the total
        counts = {
            axes: cells[asked.slices[axes]].reshape(asked.shapes[axes]) for axes in asked.sets
        }
        return [term.apply(counts[term.axes]) for term in self.terms], counts

    def _empty(self, tables: ResidualTables) -> NDArray[np.bool_]:
        """The cells that are known to be empty."""
        empty = np.zeros(tables.cells, dtype=bool)
        for axes in tables.sets:
            if axes in self.impossible:
                empty[tables.slices[axes]] = self.impossible[axes].reshape(-1)
        return empty

    def _solve(self, tables: ResidualTables, empty: NDArray[np.bool_]) -> Floats:
        """Coordinates of the nearest tables, by ADMM."""
        step = _Quadratic(self, tables)
        values = step.solve(np.zeros(self.coordinates.count), 0.0, None)
        counts = np.maximum(tables.tables(values), 0.0)
        counts[empty] = 0.0
        duals = np.zeros(tables.cells)
        penalty = FIRST_PENALTY * step.usual_ratio
        for round_number in range(MOST_ROUNDS):
            values = step.solve(tables.transpose(counts - duals), penalty, values)
            cells = tables.tables(values)
            relaxed = RELAXATION * cells + (1.0 - RELAXATION) * counts
            projected = np.maximum(relaxed + duals, 0.0)
            projected[empty] = 0.0
            duals += relaxed - projected
            primal = float(np.sum((cells - projected) ** 2))
            change = float(np.sum((projected - counts) ** 2))
            counts = projected
            if max(primal, change) <= CLOSE**2 * max(float(counts @ counts), 1.0):
                break
            if round_number % 50 == 49:
                ratio = math.sqrt((primal + 1e-300) / (change + 1e-300))
                if not 0.1 < ratio < 10.0:
                    factor = min(max(math.sqrt(ratio), 0.2), 5.0)
                    penalty *= factor
                    duals /= factor
        return values

    def _inside(self, tables: ResidualTables, values: Floats) -> Floats:
        """Coordinates moved so little towards equal counts that no asked count is negative."""
        total = max(float(values[0]), 0.0)
        even = np.zeros_like(values)
        even[0] = total
        share, cells = 0.0, tables.tables(values)
        for axes in tables.sets:
            table = cells[tables.slices[axes]]
            least, middle = float(table.min()), total / table.size
            margin = 1e-13 * total
            if least < margin and middle > least:
                share = max(share, min(1.0, (margin - least) / (middle - least)))
        return (1.0 - share) * values + share * even


class _Quadratic:
    """The quadratic steps of ADMM: diagonal for whole tables, else by conjugate gradients."""

    def __init__(self, problem: WholeTables, tables: ResidualTables) -> None:
        coordinates = problem.coordinates
        self.fixed, self.known = problem.fixed
        self.penalised = tables.diagonal([1.0] * len(tables.sets))
        whole = [term for term in problem.terms if term.is_table]
        self.others = [term for term in problem.terms if not term.is_table]
        self.asked = ResidualTables(coordinates, list({term.axes: None for term in problem.terms}))
        weights = dict.fromkeys(self.asked.sets, 0.0)
        usual = dict.fromkeys(self.asked.sets, 0.0)
        pull = np.zeros(self.asked.cells)
        for term in problem.terms:
            cells = self.asked.slices[term.axes]
            shape = self.asked.shapes[term.axes]
            pull[cells] += term.transpose(term.weights * term.answers, shape).reshape(-1)
            usual[term.axes] += float(term.weights.sum()) / math.prod(shape)
        for term in whole:
            weights[term.axes] += float(term.weights[0])
        self.diagonal = self.asked.diagonal(list(weights.values()))
        self.estimate = np.maximum(self.asked.diagonal(list(usual.values())), self.diagonal)
        self.right = self.asked.transpose(pull)
        ratios = self.estimate / self.penalised
        self.usual_ratio = float(np.median(ratios[ratios > 0])) if np.any(ratios > 0) else 1.0

    def solve(self, pull: Floats, penalty: float, start: Floats | None) -> Floats:
        """Coordinates that minimise the distance to the answers plus the penalty."""
        right = self.right + penalty * pull
        direct = self.diagonal + penalty * self.penalised
        if self.others:
            return self._conjugate(right, direct, penalty, start)
        values = np.divide(right, direct, out=np.zeros_like(right), where=direct > 0)
        values[self.fixed] = self.known
        return values

    def _times(self, direct: Floats, values: Floats) -> Floats:
        cells = self.asked.tables(values)
        pulled = np.zeros_like(cells)
        for term in self.others:
            place, shape = self.asked.slices[term.axes], self.asked.shapes[term.axes]
            answers = term.weights * term.apply(cells[place].reshape(shape))
            pulled[place] += term.transpose(answers, shape).reshape(-1)
        return direct * values + self.asked.transpose(pulled)

    def _conjugate(
        self, right: Floats, direct: Floats, penalty: float, start: Floats | None
    ) -> Floats:
        values = np.zeros_like(right) if start is None else start.copy()
        free = np.ones_like(right)
        values[self.fixed], free[self.fixed] = self.known, 0.0
        usual = self.estimate + penalty * self.penalised
        scale = free / np.where(usual > 0, usual, 1.0)
        residual = (right - self._times(direct, values)) * free
        target = 1e-9 * float(np.linalg.norm(right * np.sqrt(scale))) + 1e-300
        moved = scale * residual
        direction, inner = moved, float(residual @ moved)
        for _ in range(200):
            if math.sqrt(max(inner, 0.0)) <= target:
                break
            product = self._times(direct, direction) * free
            curvature = float(direction @ product)
            if curvature <= 0:
                break
            length = inner / curvature
            values = values + length * direction
            residual = residual - length * product
            moved = scale * residual
            inner, before = float(residual @ moved), inner
            direction = moved + (inner / before) * direction
        return values
