r"""Quantiles from noisy running totals.

Let ``C_k`` count the rows up to cell k, and ``T_k = C_k − q·n`` with the level q and the number n
of rows. The quantile is in the first cell with ``T_k ≥ 0``. The answer is read from running totals
that are made monotone (isotonic regression); within a cell that holds several values it is
interpolated.

The interval has all cells that the noise does not rule out. Cell k is ruled out where ``T_{k−1}``
is above, or ``T_k`` below, the interval of its own noise around 0. The true cell can only be ruled
out by its own two totals, one on each side, so that all others may be looked at without any loss:
the interval holds it at least as often as stated, whatever cells it was read from.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from lrm.derived.noise import JointNoise, Noisy
from lrm.maps.linear import Floats
from lrm.workload import Quantile

__all__ = ["quantile_half_widths", "quantile_numbers", "quantile_values"]


def quantile_values(one: Quantile, start: int, stop: int, noisy: Noisy) -> Floats:
    """Values of the groups ``start:stop``."""
    return _read(one, noisy.answers(*_places(one, start, stop)))


def quantile_numbers(
    one: Quantile, start: int, stop: int, noisy: Noisy, confidence: float
) -> dict[str, Floats]:
    """Answer and interval of the groups ``start:stop``; a quantile has no standard error."""
    index, scales = _places(one, start, stop)
    totals = noisy.answers(index, scales)
    above = totals - one.level * totals[:, -1:]
    halves = quantile_half_widths(one, start, stop, noisy, confidence)
    # The last total is n itself: T is (1 − q)·n there, and no cell comes after it.
    ruled_out: NDArray[np.bool_] = np.zeros(totals.shape, dtype=bool)
    ruled_out[:, :-1] |= above[:, :-1] < -halves[:, :-1]
    ruled_out[:, 1:] |= above[:, :-1] > halves[:, :-1]
    kept: NDArray[np.bool_] = ~ruled_out
    kept[~kept.any(axis=1)] = True
    first = np.argmax(kept, axis=1)
    last = totals.shape[1] - 1 - np.argmax(kept[:, ::-1], axis=1)
    return {
        "answer": _read(one, totals),
        "standard_error": np.full(len(totals), math.nan),
        "low": np.array(one.lows)[first],
        "high": np.array(one.highs)[last],
    }


def _places(one: Quantile, start: int, stop: int) -> tuple[NDArray[np.int64], Floats]:
    """The queries of the running totals (groups × cells), and their scales."""
    cells = len(one.lows)
    index = one.totals.rows((*one.shape, cells)).reshape(-1, cells)[start:stop]
    return index, np.full(cells, one.totals.scale)


def quantile_half_widths(
    one: Quantile, start: int, stop: int, noisy: Noisy, confidence: float
) -> Floats:
    """Half-widths of the noise in ``C_k − q·n``, for groups × cells."""
    index, scales = _places(one, start, stop)
    noise = noisy.joint(index, scales)
    if noise is None:
        each = noisy.half_widths(index, scales, (1.0 + confidence) / 2.0)
        return each + one.level * each[:, -1:]
    moved = noise.weights - one.level * noise.weights[:, -1:]
    flat = JointNoise(moved.reshape(-1, 1, moved.shape[2]), noise.accuracy)
    found = flat.half_widths(np.ones((len(flat.weights), 1)), confidence)
    return found.reshape(moved.shape[:2])


def _read(one: Quantile, totals: Floats) -> Floats:
    """The value at which monotone running totals pass the level."""
    lows, highs = np.array(one.lows), np.array(one.highs)
    found = np.empty(len(totals))
    for group, own in enumerate(totals):
        rising = _monotone(own)
        if rising[-1] <= 0:  # no rows, as far as can be seen
            found[group] = math.nan
            continue
        wanted = one.level * rising[-1]
        cell = int(np.argmax(rising >= wanted))
        before = rising[cell - 1] if cell else 0.0
        inside = rising[cell] - before
        share = (wanted - before) / inside if inside > 0 else 0.5
        low, high = lows[cell], highs[cell]
        if math.isinf(low) or math.isinf(high):  # the end that the cell has
            found[group] = high if math.isinf(low) else low
        else:
            found[group] = low + share * (high - low)
    return found


def _monotone(totals: Floats) -> Floats:
    """The nearest running totals that start at 0 or above and never fall."""
    nearest: Floats = isotonic_regression(totals).x
    return np.maximum(nearest, 0.0)
