"""Ranges of neighbouring cells as differences of running totals, without their matrix.

With the running totals ``P_j = x_0 + … + x_{j−1}`` the sum over the cells ``start ≤ j < stop`` is
``P_stop − P_start``: m ranges over n cells take O(m) of memory, and O(m + n) of time for a product.
Two cells have the same column where the same ranges cover them. There are at most 2m + 1 pieces of
neighbouring cells between the ends of m ranges, and merging equal pieces keeps ranges ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.queries.maps.linear import (
    Floats,
    Integers,
    LinearMap,
    StoredMap,
    WeightedRanges,
    is_whole,
)
from lrm.queries.maps.matrices import SparseMap, check_weights

MOST_WRITTEN = 1 << 27
"""Weights of ranges that are written out as a sparse matrix: 2 GB."""


@dataclass(frozen=True, eq=False)
class RangeMap(LinearMap):
    """Sums over ranges of neighbouring cells, each with one weight.

    Parameters
    ----------
    cells
        Number of cells n.
    starts, stops
        Query i sums the cells ``starts[i] ≤ j < stops[i]``: none where the two are equal.
    weights
        What each sum is multiplied by.

    Examples
    --------
    >>> halves = RangeMap(4, np.array([0, 1]), np.array([2, 4]), np.array([1.0, 0.5]))
    >>> halves.apply(np.array([1.0, 2.0, 3.0, 4.0]))
    array([3. , 4.5])
    >>> halves.dense()
    array([[1. , 1. , 0. , 0. ],
           [0. , 0.5, 0.5, 0.5]])
    """

    cells: int
    starts: Integers
    stops: Integers
    weights: Floats
    kind: ClassVar[str] = "ranges"
    file_values: ClassVar[tuple[str, ...]] = ("cells",)

    def __post_init__(self) -> None:
        for name, kind in (("starts", np.int64), ("stops", np.int64), ("weights", np.float64)):
            values = np.asarray(getattr(self, name))
            if values.ndim != 1 or (kind is np.int64 and values.dtype.kind != "i"):
                raise WorkloadError(f"the {name} of ranges must be a list of numbers")
            values = np.array(values, dtype=kind)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        if not len(self.starts) == len(self.stops) == len(self.weights) >= 1:
            raise WorkloadError("ranges need a start, a stop and a weight each")
        if self.starts.min() < 0 or self.stops.max() > self.cells:
            raise WorkloadError(f"a range is outside the cells 0 to {self.cells - 1}")
        if np.any(self.starts > self.stops):
            raise WorkloadError("a range stops before it starts")
        check_weights(self.weights)
        object.__setattr__(self, "shape", (len(self.starts), self.cells))

    @classmethod
    def over(cls, cells: int, first: Integers, last: Integers) -> RangeMap:
        """Ranges of weight 1 by their first and last cells."""
        return cls(cells, first, last + 1, np.ones(len(first)))

    def _with_weights(self, weights: Floats) -> RangeMap:
        return RangeMap(self.cells, self.starts, self.stops, weights)

    # ---- the matrix, where it is asked for

    def rows(self, start: int, stop: int) -> Floats:
        cell, part = np.arange(self.cells), slice(start, stop)
        inside = (cell >= self.starts[part, None]) & (cell < self.stops[part, None])
        return inside * self.weights[part, None]

    def sparse(self) -> sp.csr_array:
        if self.entry_count > MOST_WRITTEN:
            raise WorkloadError(
                f"{self.shape[0]:,} ranges over {self.cells:,} cells have {self.entry_count:,} "
                f"weights, and at most {MOST_WRITTEN:,} are written out as a matrix; choose best"
            )
        lengths = self.stops - self.starts
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        column = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - self.starts, lengths)
        data = np.repeat(self.weights, lengths)
        return sp.csr_array((data, column, indptr), shape=self.shape)

    def written_out(self) -> SparseMap:
        return SparseMap(self.sparse())

    @property
    def entry_count(self) -> int:
        return int((self.stops - self.starts).sum())

    # ---- products

    def apply(self, x: Floats) -> Floats:
        totals = np.zeros((self.cells + 1, *x.shape[1:]))
        np.cumsum(x, axis=0, out=totals[1:])
        sums = totals[self.stops] - totals[self.starts]
        return np.asarray(sums * self.weights.reshape(-1, *[1] * (x.ndim - 1)))

    def apply_transpose(self, y: Floats) -> Floats:
        steps = self._steps(y * self.weights.reshape(-1, *[1] * (y.ndim - 1)))
        return np.asarray(np.cumsum(steps[:-1], axis=0))

    def _steps(self, values: Floats) -> Floats:
        """What changes from each cell to the next where each range adds a value: cells + 1."""
        shape = (self.cells + 1, self.shape[0])
        query, every = np.arange(self.shape[0]), np.ones(self.shape[0])
        begins = sp.csr_array((every, (self.starts, query)), shape=shape)
        ends = sp.csr_array((every, (self.stops, query)), shape=shape)
        return np.asarray((begins - ends) @ values)

    def _covering(self, values: Floats) -> Floats:
        """The sum of the values of the ranges that cover each cell; whole values exactly."""
        steps = np.bincount(self.starts, values, self.cells + 1)
        steps -= np.bincount(self.stops, values, self.cells + 1)
        return np.asarray(np.cumsum(steps[:-1]))

    def gram(self) -> Floats:
        # Cells i ≤ j are both covered by the ranges with start ≤ i and j < stop.
        size = self.cells + 1
        place = self.starts * size + self.stops
        ends = np.bincount(place, self.weights**2, size * size).reshape(size, size)
        both = ends.cumsum(axis=0)[:-1, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
        return np.asarray(np.triu(both) + np.triu(both, 1).T)

    def entrywise_apply(self, other: LinearMap, x: Floats) -> Floats:
        if other is self:
            return self.squared().apply(x)
        if not isinstance(other, RangeMap):
            return super().entrywise_apply(other, x)
        starts = np.maximum(self.starts, other.starts)
        stops = np.maximum(np.minimum(self.stops, other.stops), starts)
        return RangeMap(self.cells, starts, stops, self.weights * other.weights).apply(x)

    def column_absolute_sums(self) -> Floats:
        return np.maximum(self._covering(np.abs(self.weights)), 0.0)

    def column_squared_sums(self) -> Floats:
        return np.maximum(self._covering(self.weights**2), 0.0)

    # ---- cells

    def columns(self, indices: NDArray[np.intp]) -> LinearMap:
        if np.any(indices[1:] <= indices[:-1]):
            return super().columns(indices)
        starts, stops = np.searchsorted(indices, self.starts), np.searchsorted(indices, self.stops)
        return RangeMap(len(indices), starts, stops, self.weights)

    @cached_property
    def _busy(self) -> tuple[Integers, Integers]:
        """Starts and stops of the ranges that count something."""
        busy = (self.stops > self.starts) & (self.weights != 0)
        return self.starts[busy], self.stops[busy]

    @cached_property
    def column_labels(self) -> Integers:
        starts, stops = self._busy
        pieces = np.unique(np.concatenate([[0, self.cells], starts, stops]))
        places = np.searchsorted(pieces, starts), np.searchsorted(pieces, stops)
        labels = np.repeat(equally_covered(len(pieces) - 1, *places), np.diff(pieces))
        labels.flags.writeable = False
        return labels

    def proportional_columns(self) -> tuple[Integers, Floats]:
        starts, stops = self._busy
        steps = np.bincount(starts, minlength=self.cells + 1)
        steps -= np.bincount(stops, minlength=self.cells + 1)
        # Ranges have one weight each: columns in proportion are equal, and any number leads them.
        return self.column_labels, (np.cumsum(steps[:-1]) > 0).astype(np.float64)

    def is_expansion_of(
        self, merged: LinearMap, index: Integers, factor: Integers, most: float
    ) -> bool:
        plain = bool(np.all((factor == 0) | (factor == 1)))
        if not (isinstance(merged, RangeMap) and plain):
            return super().is_expansion_of(merged, index, factor, most)
        sizes = np.abs(self.weights)
        if np.any(np.abs(self.weights - merged.weights) > most * sizes):
            return False
        # A cell of factor 0 is in no merged cell, so a range that covers it is not rebuilt.
        place = np.where(factor == 1, index, -1)
        lowest = range_minima(place, self.starts, self.stops)
        highest = -range_minima(-place, self.starts, self.stops)
        inside = (lowest >= merged.starts) & (highest < merged.stops)
        cells = np.bincount(index[factor == 1], minlength=merged.cells)
        before = np.concatenate([[0], np.cumsum(cells)])
        reached = before[merged.stops] - before[merged.starts]
        lengths = self.stops - self.starts
        return bool(np.all(inside | (lengths == 0)) and np.all(reached == lengths))

    # ---- what is known of the weights

    def weighted_ranges(self, start: int = 0, stop: int | None = None) -> WeightedRanges | None:
        if np.any(self.starts == self.stops):
            return None
        ranges = WeightedRanges(self.starts, self.stops - 1, self.weights)
        return ranges.part(slice(start, stop))

    @cached_property
    def total_factor(self) -> float | None:
        starts, stops = self._busy
        if np.any(stops - starts < self.cells):
            return None
        return float(self.column_squared_sums()[0])

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        sizes = np.abs(self.weights[(self.stops > self.starts) & (self.weights != 0)])
        return (float(sizes.min()), float(sizes.max())) if len(sizes) else (1.0, 1.0)

    def is_integer(self) -> bool:
        return is_whole(self.weights)

    def is_nonnegative(self) -> bool:
        return bool(np.all(self.weights >= 0))

    def scaled(self, factor: float) -> RangeMap:
        return self._with_weights(self.weights * factor)

    def scale_rows(self, factors: Floats) -> RangeMap:
        return self._with_weights(self.weights * factors)

    def absolute(self) -> RangeMap:
        return self._with_weights(np.abs(self.weights))

    def squared(self) -> RangeMap:
        return self._with_weights(self.weights**2)

    # ---- files

    def contents(self) -> dict[str, Any]:
        return {
            "cells": self.cells,
            "starts": self.starts,
            "stops": self.stops,
            "weights": self.weights,
        }

    @classmethod
    def from_file(cls, stored: StoredMap) -> RangeMap:
        starts = stored.array("starts", "i8", (None,))
        stops = stored.array("stops", "i8", starts.shape)
        weights = stored.array("weights", "f8", starts.shape)
        return RangeMap(stored.cells(), starts, stops, weights)


def equally_covered(cells: int, starts: Integers, stops: Integers) -> Integers:
    """Equal numbers for cells that the same ranges cover, from 0.

    Each range adds a random 64-bit number to its cells, modulo 2^64. Of the cells with one sum,
    each is compared with the next: the same ranges cover cells i < j where none that starts after
    i, up to j, reaches j, and none that covers i stops before j. O((n + m)·log n).

    >>> labels = equally_covered(5, np.array([0, 1]), np.array([4, 3]))
    >>> bool(labels[0] == labels[3] != labels[1] == labels[2] != labels[4])
    True
    """
    keys = np.random.default_rng(20120827).integers(0, 1 << 63, len(starts), dtype=np.uint64)
    steps = np.zeros(cells + 1, dtype=np.uint64)
    np.add.at(steps, starts, keys)
    np.subtract.at(steps, stops, keys)
    sums = np.cumsum(steps[:-1], dtype=np.uint64)
    farthest = np.zeros(cells, dtype=np.int64)  # last cell of the ranges that start at each
    nearest = np.full(cells, cells, dtype=np.int64)  # first cell of the ranges that end at each
    np.maximum.at(farthest, starts, stops - 1)
    np.minimum.at(nearest, stops - 1, starts)
    order = np.argsort(sums, kind="stable")
    left, right = order[:-1], order[1:]
    alike = sums[left] == sums[right]
    left, right = left[alike], right[alike]
    reached = -range_minima(-farthest, left + 1, right + 1)
    begun = range_minima(nearest, left, right)
    alike[alike] = (reached < right) & (begun > left)
    labels = np.empty(cells, dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(~alike)])
    return labels


def range_minima(values: Integers, starts: Integers, stops: Integers) -> Integers:
    """The least of ``values[start:stop]`` for each range; the largest integer for none.

    Two overlapping windows of 2^k values cover a range of 2^k to 2^(k+1): O((n + m)·log n).

    >>> range_minima(np.array([3, 1, 2]), np.array([0, 1, 2]), np.array([1, 3, 2])).tolist()[:2]
    [3, 1]
    """
    lengths = np.maximum(stops - starts, 0)
    result = np.full(len(starts), np.iinfo(np.int64).max)
    power, windows = 1, values
    while len(windows) and power <= lengths.max(initial=0):
        fitting = np.flatnonzero((lengths >= power) & (lengths < 2 * power))
        result[fitting] = np.minimum(windows[starts[fitting]], windows[stops[fitting] - power])
        windows = np.minimum(windows[:-power], windows[power:])
        power *= 2
    return result
