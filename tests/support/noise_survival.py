"""Probabilities of large noise sums: the inverse of `lrm.planning.accuracy.noise_sums`."""

import numpy as np

from lrm.planning.accuracy.laplace_cgf import bisect, integrate, row_blocks

UNDERFLOW = 750.0
"""Beyond this exponent a probability is 0 in floating point."""


def laplace_sum_survival(weights, half_widths):
    """``P(|Σ_j a_j Z_j| > h)`` for each row a of ``weights`` and its h ≥ 0."""
    widths = np.asarray(half_widths, dtype=np.float64)
    survival = np.zeros(len(widths))
    for rows, sums in row_blocks(weights):
        scaled = widths[rows] / sums.scale
        # P(S > h) ≤ exp(K(1/2) − h/2) for every row.
        furthest = 2.0 * (sums.cumulants(np.full(len(rows), 0.5))[0] + UNDERFLOW)
        h = np.minimum(scaled, furthest)
        # K'(c) ≥ 2c/(1 − c²), so the saddle point of h is below 1 − 1/(h + 3).
        saddle = bisect(sums, np.log(h + 2.0), lambda at, h=h: at.half_width < h)
        _, log_tail = integrate(sums, saddle, None, lambda _, h=h: h)
        probability = np.minimum(2.0 * np.exp(log_tail), 1.0)
        survival[rows] = np.where(scaled <= furthest, probability, 0.0)
    return survival
