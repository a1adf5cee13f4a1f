r"""Quantiles from noisy running totals.

Let ``C_k`` count the rows up to cell k, and ``T_k = C_k − q·n`` with the level q and the number n
of rows. The quantile of QUANTILE_DISC is in the first cell with ``T_k ≥ 0``. That of QUANTILE_CONT
lies between the rows ``⌊q(n − 1)⌋`` and ``⌈q(n − 1)⌉``, counted from 0: the first is in the first
cell with ``T_k > −q``, and the second in a cell L with ``T_{L−1} < 1 − q``. The answer is read from
running totals that are made monotone (isotonic regression); within a cell that holds several values
it is interpolated.

The interval begins with the first cell whose ``T_k`` the noise allows to be at least ``−q`` (0 for
QUANTILE_DISC), and ends with the last one whose ``T_{k−1}`` it allows to be at most ``1 − q`` (0).
The true cells can only be left out by one total on each side, so that all others may be looked at
without any loss: the interval holds the quantile at least as often as stated.

Of numbers by knots, ``C_k`` adds up shares: at least the rows up to knot k, and at most those below
knot k + 1. So the same holds with cells from the knot before to the knot after each knot. The
answer is read as if each two knots' shares were cut at their middle.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lrm.planning.accuracy.intervals import sum_half_widths, widest_half_widths
from lrm.planning.derived.noise import Noisy
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Quantile

ROWS_OFF = 1e-9
"""Rows by which totals may be off where they are computed."""


def quantile_values(quantile: Quantile, start: int, stop: int, noisy: Noisy) -> Floats:
    """Values of the groups ``start:stop``."""
    return _read(quantile, noisy.answers(*_places(quantile, start, stop)))


def quantile_numbers(
    quantile: Quantile, start: int, stop: int, noisy: Noisy, confidence: float
) -> dict[str, Floats]:
    """Answer and interval of the groups ``start:stop``; a quantile has no standard error."""
    index, scales = _places(quantile, start, stop)
    totals = noisy.answers(index, scales)
    above = totals - quantile.level * totals[:, -1:]
    noise = _TotalNoise(quantile, start, stop, noisy, confidence)
    # Totals further from 0 than the bound of their noise rule a cell out in any case.
    near: NDArray[np.bool_] = np.abs(above) <= noise.bounds
    halves = noise.half_widths(near)
    least, most = (
        (-quantile.level, 1.0 - quantile.level) if quantile.method == "continuous" else (0.0, 0.0)
    )
    # The last total is n itself: T is (1 − q)·n there, and no cell comes after it.
    from_below: NDArray[np.bool_] = np.ones(totals.shape, dtype=bool)
    from_above: NDArray[np.bool_] = np.ones(totals.shape, dtype=bool)
    from_below[:, :-1] = above[:, :-1] >= least - halves[:, :-1]
    from_above[:, 1:] = above[:, :-1] <= most + halves[:, :-1]
    ends = (
        np.argmax(from_below, axis=1),
        totals.shape[1] - 1 - np.argmax(from_above[:, ::-1], axis=1),
    )
    first, last = np.minimum(*ends), np.maximum(*ends)
    return {
        "answer": _read(quantile, totals),
        "standard_error": np.full(len(totals), math.nan),
        "low": np.array(quantile.lows)[first],
        "high": np.array(quantile.highs)[last],
    }


def _places(quantile: Quantile, start: int, stop: int) -> tuple[NDArray[np.int64], Floats]:
    """The queries of the running totals (groups × cells), and their scales."""
    cells = len(quantile.lows)
    index = quantile.totals.rows((*quantile.shape, cells)).reshape(-1, cells)[start:stop]
    return index, np.full(cells, quantile.totals.scale)


def quantile_half_widths(
    quantile: Quantile, start: int, stop: int, noisy: Noisy, confidence: float
) -> Floats:
    """The half-width of the noise in ``C_k − q·n`` where it varies most, for each group."""
    noise = _TotalNoise(quantile, start, stop, noisy, confidence)
    widest = noise.bounds == noise.bounds.max(axis=1, keepdims=True)
    widest &= np.cumsum(widest, axis=1) == 1
    return np.asarray(noise.half_widths(widest)[widest])


class _TotalNoise:
    """The noise of ``C_k − q·n``, for groups × cells.

    ``bounds`` are half-widths that follow from the deviations alone, at most 10 % wider than
    those from the law of the noise.
    """

    def __init__(
        self, quantile: Quantile, start: int, stop: int, noisy: Noisy, confidence: float
    ) -> None:
        self._confidence = confidence
        index, scales = _places(quantile, start, stop)
        noise = noisy.joint(index, scales)
        self._weights: Floats | None = None
        if noise is None:
            each = noisy.half_widths(index, scales, (1.0 + confidence) / 2.0)
            self.bounds = each + quantile.level * each[:, -1:]
            return
        self._weights = noise.weights - quantile.level * noise.weights[:, -1:]
        self._counts, self._law = noise.counts, noise.accuracy.law  # of the level that has the rows
        self.bounds = widest_half_widths(self._weights, self._law, confidence, self._counts)

    def half_widths(self, needed: NDArray[np.bool_]) -> Floats:
        """The half-widths, from the law of the noise where they are needed."""
        widths = self.bounds.copy()
        if self._weights is not None and needed.any():
            counts = self._counts[np.nonzero(needed)[0]]
            weights = self._weights[needed]
            widths[needed] = sum_half_widths(weights, self._law, self._confidence, counts)
        return widths


def _read(quantile: Quantile, totals: Floats) -> Floats:
    """The value at which monotone running totals pass the level."""
    lows, highs = np.array(quantile.lows), np.array(quantile.highs)
    overlap = highs[:-1] > lows[1:]
    highs[:-1][overlap] = lows[1:][overlap] = ((lows[1:] + highs[:-1]) / 2)[overlap]
    group_values = np.empty(len(totals))
    for group, group_totals in enumerate(totals):
        rising = monotone(group_totals)
        if rising[-1] <= 0:  # no rows, as far as can be seen
            group_values[group] = math.nan
            continue
        count = rising[-1]
        if quantile.method == "continuous":
            place = max(quantile.level * (count - 1.0), 0.0)
            before = math.floor(place + ROWS_OFF)
            ranks = [before, min(before + 1, max(count - 1.0, 0.0))]
            ends = [_at_rank(rank + 1.0, rank + 0.5, rising, lows, highs) for rank in ranks]
            group_values[group] = ends[0] + max(place - before, 0.0) * (ends[1] - ends[0])
            continue
        target_rank = quantile.level * count
        if quantile.method == "upper":  # beyond a share of the rows, not at its end
            target_rank = min(math.nextafter(target_rank, math.inf) + 2 * ROWS_OFF, count)
        group_values[group] = _at_rank(target_rank, target_rank, rising, lows, highs)
    return group_values


def _at_rank(
    target_rank: float, inner: float, rising: Floats, lows: Floats, highs: Floats
) -> float:
    """The value of the row with a rank, counted from 1; ``inner`` is its place within a cell."""
    cell = int(np.argmax(rising >= min(target_rank - ROWS_OFF, rising[-1])))
    before = float(rising[cell - 1]) if cell else 0.0
    inside = float(rising[cell]) - before
    share = min(max((inner - before) / inside, 0.0), 1.0) if inside > 0 else 0.5
    low, high = float(lows[cell]), float(highs[cell])
    if math.isinf(low) or math.isinf(high):  # the end that the cell has
        return high if math.isinf(low) else low
    return low + share * (high - low)


def monotone(totals: Floats) -> Floats:
    """The nearest running totals that start at 0 or above and never fall."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - 0.3 s, for quantiles alone

    nearest: Floats = isotonic_regression(totals).x
    return np.maximum(nearest, 0.0)
