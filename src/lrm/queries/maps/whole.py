"""Whole numbers that arrive as floats, and sums of them that cannot wrap around."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError

LARGEST_WHOLE = 1 << 52
"""Weights of an integer strategy lie below this: float64 holds them, and their sums of two."""

_HALF = 26
_MASK = (1 << _HALF) - 1
_AT_ONCE = 1 << 16


def whole_numbers(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Floats as 64-bit integers; anything fractional, infinite or large is refused.

    >>> whole_numbers(np.array([3.0, -4.0]))
    array([ 3, -4])
    """
    # A comparison with NaN is false, so NaN fails here as infinity does.
    if not np.all(np.abs(values) < LARGEST_WHOLE) or np.any(values != np.rint(values)):
        raise WorkloadError(
            "an integer strategy needs whole numbers below 2^52 in size; "
            "round it with lrm.plan, which measures its sensitivity"
        )
    return values.astype(np.int64)


@dataclass(frozen=True, eq=False)
class WholeSums:
    """One exact integer per cell, held as 64-bit parts: ``Σ_k parts[k][1]·2^parts[k][0]``.

    Python's integers for each of a million cells would take a hundred times the memory.

    >>> WholeSums(((26, np.array([1, 0])), (0, np.array([5, 7])))).exact()
    [67108869, 7]
    """

    parts: tuple[tuple[int, NDArray[np.int64]], ...]

    def exact(self, cells: slice = slice(None)) -> list[int]:
        """The integers of some cells, as Python's."""
        pieces = [[value << shift for value in part[cells].tolist()] for shift, part in self.parts]
        return [sum(values) for values in zip(*pieces, strict=True)]

    def largest(self, factors: NDArray[np.int64]) -> int:
        """The largest of the integers, each multiplied by its cell's factor: exactly.

        Floats find the few that may be the largest; Python's integers decide among them.
        """
        best, scales = 0, np.array([2.0**shift for shift, _ in self.parts])
        for start in range(0, len(factors), _AT_ONCE):
            cells = slice(start, start + _AT_ONCE)
            columns = np.stack([*(part[cells] for _, part in self.parts), factors[cells]])
            rough = (scales @ columns[:-1]) * columns[-1]
            near = columns[:, rough >= max(float(rough.max()), float(best)) * (1 - 2.0**-40)]
            if near.size and np.all(near == near[:, :1]):
                near = near[:, :1]
            for *pieces, factor in np.unique(near, axis=1).T.tolist():
                exact = sum(p << shift for (shift, _), p in zip(self.parts, pieces, strict=True))
                best = max(best, exact * factor)
        return best


def exact_totals(
    sizes: NDArray[np.int64], cells: NDArray[np.integer[Any]], count: int, power: int
) -> WholeSums:
    """``Σ sizes**power`` of the entries of each cell, exactly.

    Parameters
    ----------
    sizes
        Whole numbers from 0 to 2^52.
    cells
        The cell of each of them.
    count
        Number of cells.
    power
        1 for sums, 2 for sums of squares.

    Notes
    -----
    Each number is split into halves of 26 bits, whose sums (of products, for squares) stay
    below 2^63 for fewer than 2^36 entries, so that 64-bit arithmetic is exact.

    >>> rows = np.zeros(5000, dtype=int)
    >>> exact_totals(np.array([2**51] * 5000), rows, 1, 2).exact() == [5000 * 4**51]
    True
    """

    def parts(values: NDArray[np.int64], shift: int) -> list[tuple[int, NDArray[np.int64]]]:
        halves = []
        for half, offset in ((values >> _HALF, _HALF), (values & _MASK, 0)):
            sums = np.zeros(count, dtype=np.int64)
            np.add.at(sums, cells, half)
            halves.append((shift + offset, sums))
        return halves

    if power == 1:
        return WholeSums(tuple(parts(sizes, 0)))
    high, low = sizes >> _HALF, sizes & _MASK
    return WholeSums(
        (
            *parts(high * high, 2 * _HALF),
            *parts(high * low, _HALF + 1),
            *parts(low * low, 0),
        )
    )


def equal_totals(total: int, count: int) -> WholeSums:
    """One integer for each of ``count`` cells, which takes no memory.

    >>> equal_totals(2**100 + 3, 2).exact() == [2**100 + 3] * 2
    True
    """
    limbs = range(0, max(total.bit_length(), 1), _HALF)
    return WholeSums(
        tuple(
            (shift, np.broadcast_to(np.int64((total >> shift) & _MASK), (count,)))
            for shift in limbs
        )
    )
