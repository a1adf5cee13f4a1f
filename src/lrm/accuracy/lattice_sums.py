r"""Half-widths for sums of discrete Laplace noise whose steps are coarse.

``S = Σ a_j·k_j`` with ``P(k_j = k) ∝ exp(−|k|·x_j)``, where x_j is the step of a measurement
relative to the scale of its noise. Two bounds are computed, and the smaller one holds:

1. A Laplace variable of scale 1/x is k + F with F independent of k and symmetric, since an
   exponential variable has independent whole and fractional parts. So S + T is a sum of Laplace
   variables with an independent and symmetric T, and ``½·P(|S| > h) ≤ P(|S + T| > h)``.
2. With any V in [−c, c], ``P(|S| > h + c) ≤ P(|S + V| > h)``. The law of S + V follows from its
   characteristic function ``ψ(u) = χ(c·u)·Π_j 1/(1 + sin²(a_j·u/2) / sinh²(x_j/2))``,

       P(|S + V| ≤ h) = 2h/L + (2/π)·Σ_{k≥1} ψ(2πk/L)·sin(2πkh/L)/k,

   but for what lies beyond L/2. V has the Kaiser density, whose χ falls below 1e-5 quickest.

See ``docs/explanation/accuracy.md``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.fft import dst, next_fast_len

from lrm.accuracy.noise_sums import laplace_sum_half_widths
from lrm.maps.linear import Floats

__all__ = ["lattice_half_widths"]

WIDTH = 0.02
"""c in standard deviations of the sum: intervals at 95 % are up to 2 % too wide."""

BETA, REACH = 13.0, 16.0
"""Shape of the Kaiser density, and c·u beyond which its characteristic function is 0 to 1e-6."""

SPREAD = 10.0
"""L/2 in standard deviations of Laplace noise: beyond it lies 1.5e-6 of any sum."""

SLACK = 2e-5
"""Bounds the error of the series, and is added to the confidence."""

LEAST_TAIL = 1e-3
"""Probability outside the interval from which on the series is exact enough."""

MOST_ROWS, MOST_TERMS = 2048, 32
"""Different rows whose law is computed, and their terms where those that are left matter little."""

NEGLIGIBLE, ROUNDING = 1e-9, 1e-6
"""Terms and values of ψ that are left out, and what is added to whole steps for rounding errors."""

DIGITS = 12
"""Digits in which terms are compared."""


def lattice_half_widths(
    weights: Floats,
    scale: float,
    steps: Floats,
    confidence: float,
    counts: Floats | None = None,
) -> Floats:
    """For each row b an h with ``P(|Σ b_j·η_j| ≤ h) ≥ confidence``.

    Parameters
    ----------
    weights
        One row per sum.
    scale
        Of the noise, the same for all terms.
    steps
        The noise of each term is a multiple of its step; one number where all are the same.
    counts
        How often each weight occurs, where that is not once.

    Examples
    --------
    >>> lattice_half_widths(np.ones((1, 1)), 1.0, np.ones(1), 0.95).round(4).tolist()
    [3.0]
    """
    tail = 1.0 - confidence
    widths = scale * laplace_sum_half_widths(weights, 1.0 - tail / 2.0, counts)
    if tail < LEAST_TAIL:
        return np.asarray(widths)
    sizes = np.abs(weights) * scale
    shares = np.broadcast_to(steps / scale, sizes.shape)
    often = np.ones(sizes.shape) if counts is None else counts
    known: dict[bytes, float] = {}
    for row in np.flatnonzero(widths > 0):
        terms = _terms(sizes[row], shares[row], often[row])
        key = terms.tobytes()
        if key not in known:
            if len(known) == MOST_ROWS:
                continue
            known[key] = _half_width(terms, confidence)
        widths[row] = min(widths[row], known[key])
    return np.asarray(widths)


def _terms(sizes: Floats, shares: Floats, often: Floats) -> Floats:
    """Different terms, the largest first: their scale, x and how often they occur."""
    some = sizes > NEGLIGIBLE * sizes.max()
    rounded = np.round(sizes[some] / sizes.max(), DIGITS) * sizes.max()
    pairs, place = np.unique(np.stack([-rounded, shares[some]]), axis=1, return_inverse=True)
    times = np.bincount(place.ravel(), often[some])
    return np.vstack([-pairs[:1], pairs[1:], times])


def _half_width(terms: Floats, confidence: float) -> float:
    """The half-width of the smoothed sum, and c; where S has one lattice, the value below."""
    scales, shares, times = terms
    sizes = scales * shares  # the steps of the sum, of fine terms far below their scale
    peaks = np.sinh(np.minimum(shares / 2.0, 300.0)) ** -2
    variance = float((times * sizes**2 * peaks).sum()) / 2.0
    laplace = math.sqrt(2.0 * float((times * scales**2).sum()))
    # Nearly all of a sum of very coarse terms is 0: c must not be small compared with the steps.
    c: float = WIDTH * max(math.sqrt(variance), 0.25 * laplace)
    period: float = 2.0 * SPREAD * laplace
    # A sine transform has the series at all h = m/M·L/2; between these the law is smooth.
    count = next_fast_len(math.ceil(REACH / c * period / (2.0 * math.pi)) + 1, real=True)
    k = np.arange(1.0, count)
    angles = (2.0 * math.pi / period) * k
    values = _kaiser(c * angles)
    alive = np.arange(len(k))
    for start in range(0, len(sizes), MOST_TERMS):
        for size, peak, count_of in zip(
            *(part[start : start + MOST_TERMS] for part in (sizes, peaks, times)), strict=True
        ):
            factors = 1.0 + peak * np.sin(0.5 * size * angles[alive]) ** 2
            with np.errstate(over="ignore"):  # there the sum has no part
                values[alive] /= factors if count_of == 1 else factors**count_of
        alive = alive[np.abs(values[alive]) > NEGLIGIBLE]
    covered = dst(values / k, type=1) / math.pi + k / count
    wanted = min(confidence + SLACK, 1.0 - SLACK)
    place = int(np.argmax(covered >= wanted))
    before = float(covered[place - 1]) if place else 0.0
    part = (wanted - before) / (float(covered[place]) - before)
    high = float((place + part) * 0.5 * period / count)
    if len(sizes) == 1:  # S is a multiple of a; answers from it have rounding errors
        step = float(sizes[0])
        return step * (math.floor((high + c) / step) + ROUNDING)
    return high + c


def _kaiser(u: Floats) -> Floats:
    """The characteristic function of the density ∝ I₀(β·√(1 − v²)) on [−1, 1]."""
    root = np.sqrt(np.abs(BETA**2 - u**2))
    root = np.maximum(root, 1e-9)
    near = np.where(u < BETA, np.sinh(np.where(u < BETA, root, 0.0)), np.sin(root))
    return np.asarray(near / root * (BETA / math.sinh(BETA)))
