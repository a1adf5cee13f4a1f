r"""Noise on whole numbers for the hull of yes/no patterns, H_k = conv(±{0, 1}^k).

Its norm is ``‖w‖ = max(0, w_1, …, w_k) − min(0, w_1, …, w_k)``, a whole number for whole w. The
noise has ``P(w) ∝ q^‖w‖`` with q = e^−x. Draw n with weight ``n^(k+1)·q^n`` and u_0, …, u_k
independently and uniformly from {0, …, n − 1}; then ``w_i = u_i − u_0``. For a given w there are
``n − ‖w‖`` such u, so that ``P(w) ∝ Σ_n q^n·max(n − ‖w‖, 0) ∝ q^‖w‖``. Hence

    Cov w = (E n² − 1)/12 · (I + J).

Since ``Σ_n n^(k+1)·q^n = q·Σ_j A(k+1, j)·q^j / (1 − q)^(k+2)`` with the Eulerian numbers A, n is
1 + j plus k + 2 geometric variables, where j has weight ``A(k+1, j)·q^j``. The distribution
function of j falls as q grows, so that bounds on q bound it; digits of q and of a uniform variable
are added until one j is left. See docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lrm.privacy.bodies.drawing import SYSTEM, Bits, below

Floats = NDArray[np.float64]

MOST_RATE = 64
"""Rates above it are not drawn: e^−64 of the noise is not 0."""

FIRST_DIGITS, BITS_PER_DIGIT = 20, 3
"""Decimal digits of q at first: enough but for one draw in 10^16; and digits of a uniform variable
that go with each of them."""


def draw_pattern(k: int, rate: Fraction, bits: Bits = SYSTEM) -> list[int]:
    """Whole numbers w with ``P(w) ∝ exp(−rate·‖w‖)``: exact.

    >>> len(draw_pattern(3, Fraction(1, 2)))
    3
    """
    n = 1 + _draw_first(k, rate, bits) + sum(_geometric(rate, bits) for _ in range(k + 2))
    start, *ends = (below(n, bits) for _ in range(k + 1))
    return [end - start for end in ends]


def _draw_first(k: int, rate: Fraction, bits: Bits) -> int:
    """J with weight ``A(k+1, j)·exp(−rate·j)``."""
    digits, uniform, known = FIRST_DIGITS, 0, 0
    while True:
        more = BITS_PER_DIGIT * digits - known
        uniform, known = (uniform << more) | bits(more), known + more
        for j, (low, high) in enumerate(_distribution(k, rate, digits)):
            if uniform + 1 <= low:
                return j
            if uniform < high:
                break  # not known yet on which side of it
        digits *= 2


@lru_cache(maxsize=64)
def _distribution(k: int, rate: Fraction, digits: int) -> list[tuple[int, int]]:
    """Bounds on the distribution function of j, from bounds on q = exp(−rate).

    They are whole numbers in units of 2^−(`BITS_PER_DIGIT`·digits), rounded outwards. Sums are in
    whole numbers too: with fractions, 800 counts take 40 times as long.
    """
    context = Context(prec=digits + 8)
    middle = context.exp(context.divide(Decimal(-rate.numerator), Decimal(rate.denominator)))
    # Both are correctly rounded; rates up to `MOST_RATE` lose two digits.
    width = Fraction(1, 10**digits)
    above, below = (_cumulative(k, Fraction(middle) * (1 + side)) for side in (width, -width))
    shift = BITS_PER_DIGIT * digits
    lows = ((x << shift) // above[-1] for x in above)
    highs = (-((-x << shift) // below[-1]) for x in below)
    return list(zip(lows, highs, strict=True))


def _cumulative(k: int, q: Fraction) -> list[int]:
    """Sums of ``A(k+1, j)·q^j``, all times the same whole number."""
    weights, power = [], q.denominator**k
    for a in _eulerian(k + 1):
        weights.append(a * power)
        power = power // q.denominator * q.numerator
    return list(accumulate(weights))


@lru_cache(maxsize=64)
def _eulerian(n: int) -> tuple[int, ...]:
    """The Eulerian numbers A(n, j), j = 0, …, n − 1."""
    row = [1]
    for m in range(2, n + 1):
        row = [
            (j + 1) * (row[j] if j < m - 1 else 0) + (m - j) * (row[j - 1] if j else 0)
            for j in range(m)
        ]
    return tuple(row)


def _happens(x: Fraction, bits: Bits) -> bool:
    """True with probability e^−x, for x ≥ 0 (Canonne, Kamath and Steinke, 2020, algorithm 1)."""
    while x > 1:
        if not _happens(Fraction(1), bits):
            return False
        x -= 1
    k = 1
    while below(x.denominator * k, bits) < x.numerator:
        k += 1
    return k % 2 == 1


def _geometric(rate: Fraction, bits: Bits) -> int:
    """How often an event of probability e^−rate happens before it first does not."""
    count = 0
    while _happens(rate, bits):
        count += 1
    return count


def _sizes(k: int, rate: float) -> tuple[Floats, Floats]:
    """The n that matter with their probabilities."""
    n = np.arange(1.0, math.ceil((k + 40.0 + 12.0 * math.sqrt(k + 2.0)) / rate) + 3.0)
    logs = (k + 1.0) * np.log(n) - rate * n
    weights = np.exp(logs - logs.max())
    return n, weights / weights.sum()


def pattern_variance(k: int, rate: float) -> float:
    """The variance of each of the numbers.

    >>> round(pattern_variance(4, 2.0) / ((4 + 2) * (4 + 3) / 6 / 2.0**2), 3)
    0.904
    """
    n, chances = _sizes(k, rate)
    return float(chances @ (n * n - 1.0)) / 6.0


def simulate_patterns(k: int, rate: float, count: int, rng: np.random.Generator) -> Floats:
    """Such numbers in floating point, count × k, for intervals; never for a release."""
    n, chances = _sizes(k, rate)
    drawn = rng.choice(n, count, p=chances)[:, None]
    u = np.floor(rng.random((count, k + 1)) * drawn)
    return np.asarray(u[:, 1:] - u[:, :1])
