"""The place of numbers among many edges: exact, and several times faster than bisection.

A grid is laid over the edges: its cells have equal widths, or about equal ratios. As the grid keeps
the order of numbers, an edge in an earlier grid cell is below the number, an edge in a later one is
above it, and only the edges of its own grid cell, at most a few, are compared. No rounding can
therefore put a number on the wrong side of an edge. Counting three million rows among 1,025 edges
took 0.05 CPU s so, and 0.22 by ``np.searchsorted``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lrm.queries.maps.linear import Floats, Integers

CELLS_PER_EDGE = 8
MOST_EDGES_PER_CELL = 3
"""Beyond it the edges are too uneven for a grid, and bisection takes over."""

Locate = Callable[[Floats], Integers]


def locator(edges: Floats) -> Locate:
    """Return a function that counts, for each number that is not NaN, the edges at or below it.

    Examples
    --------
    >>> locator(np.array([0.0, 0.1, 0.2]))(np.array([-1.0, 0.0, 0.1, np.inf]))
    array([0, 1, 2, 3])
    """
    padded = np.append(edges, np.nan)  # for numbers above all edges: never reached
    least, best = MOST_EDGES_PER_CELL + 1, None
    for size, cells in _grids(edges):
        place, every = cells(edges), np.arange(size)
        before = np.searchsorted(place, every, side="left")
        rounds = int(np.max(np.searchsorted(place, every, side="right") - before))
        if rounds < least:
            least, best = rounds, (cells, before)

    def located(values: Floats) -> Integers:
        if best is None:
            return np.searchsorted(edges, values, side="right")
        cells, before = best
        position: Integers = before[cells(values)]
        for _ in range(least):
            position += values >= padded[position]
        return position

    return located


def _grids(edges: Floats) -> Iterator[tuple[int, Locate]]:
    """Grids over all edges, and over all but the outermost, which are often far away.

    Each is a number of cells, and the cell of each number: never a smaller one of a larger number.
    """
    finite = edges[np.isfinite(edges)]
    for covered in (finite, finite[1:-1]):
        if len(covered) < 2:
            continue
        size, origin = CELLS_PER_EDGE * len(edges), float(covered[0])
        with np.errstate(over="ignore"):
            slope = size / (float(covered[-1]) - origin)
        if np.isfinite(slope) and slope > 0:
            yield size, _even(origin, slope, size)
        first, last = ordered_bits(covered[[0, -1]]).tolist()
        shift = max(0, (last - first).bit_length() - size.bit_length())
        size = ((last - first) >> shift) + 1
        yield size, _logarithmic(first, shift, size)


def _even(origin: float, slope: float, size: int) -> Locate:
    """Cells of equal width. Subtraction, product and rounding all keep the order of numbers."""

    def cells(values: Floats) -> Integers:
        with np.errstate(over="ignore"):
            place = values - origin
            place *= slope
        np.clip(place, 0, size - 1, out=place)
        return place.astype(np.int64)

    return cells


def _logarithmic(origin: int, shift: int, size: int) -> Locate:
    """Cells of about equal ratio: the bits of a float64, read as an integer, keep its order."""

    def cells(values: Floats) -> Integers:
        place = ordered_bits(values)
        place -= origin
        place >>= shift
        return np.clip(place, 0, size - 1, out=place)

    return cells


def ordered_bits(values: Floats) -> Integers:
    """Return integers in the order of the numbers, of 63 bits so that differences fit 64."""
    bits = (values + 0.0).view(np.int64)  # adding zero makes -0.0 into 0.0
    bits ^= (bits >> 63) & np.int64(2**63 - 1)
    bits >>= 1
    return bits
