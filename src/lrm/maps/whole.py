"""Whole numbers that arrive as floats, and sums of them that cannot wrap around."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError

__all__ = ["LARGEST_WHOLE", "exact_totals", "whole_numbers"]

LARGEST_WHOLE = 1 << 52
"""Weights of an integer strategy lie below this: float64 holds them, and their sums of two."""

_HALF = 26
_MASK = (1 << _HALF) - 1


def whole_numbers(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same numbers as 64-bit integers; anything fractional, infinite or large is refused.

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


def exact_totals(
    sizes: NDArray[np.int64], cells: NDArray[np.integer[Any]], count: int, power: int
) -> NDArray[np.object_]:
    """``Σ sizes**power`` of the entries of each cell, in Python's integers.

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

    >>> exact_totals(np.array([2**51] * 5000), np.zeros(5000, dtype=int), 1, 2)[0] == 5000 * 4**51
    True
    """

    def total(values: NDArray[np.int64]) -> NDArray[np.object_]:
        halves = []
        for half in (values >> _HALF, values & _MASK):
            sums = np.zeros(count, dtype=np.int64)
            np.add.at(sums, cells, half)
            halves.append(sums.astype(object))
        return np.asarray((halves[0] << _HALF) + halves[1])

    if power == 1:
        return total(sizes)
    high, low = sizes >> _HALF, sizes & _MASK
    return np.asarray(
        (total(high * high) << 2 * _HALF) + (total(high * low) << _HALF + 1) + total(low * low)
    )
