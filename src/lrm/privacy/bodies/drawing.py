r"""Exact draws: whole numbers below a bound, and rounded sums of exponential variables.

Every noise law here is a mixture of linear images of independent exponential variables: a
structure is chosen with probabilities that are ratios of integers, and then

    z_c = scale · Σ_i w_ci · E_i,   E_i = −ln U_i,  U_i uniform on (0, 1),

with whole numbers w. What is returned is z rounded to the nearest integers. Binary digits of the
U_i are drawn until intervals that contain all possible values round to one integer in every
coordinate. An infinite sequence of digits determines z, and a coordinate that is exactly between
two integers has probability 0; so the result has exactly the law of the rounded z.

Logarithms are those of `decimal`, which are correctly rounded; the intervals are wider than their
error on either side. `exponentials` has many at a time in float64, with a bound on the error. No
data are involved, so that the running time reveals nothing about them.
"""

from __future__ import annotations

import math
import secrets
from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""Whole numbers of 64 random bits."""

Bits = Callable[[int], int]
"""Returns that many random bits as a whole number."""

Terms = Sequence[tuple[int, int]]
"""The exponential variables of one coordinate: number of the variable and its weight."""

SYSTEM: Bits = secrets.randbits
"""The operating system's source of randomness."""

FIRST_BITS = 128
"""Digits of each uniform variable that are drawn at first: enough but for one draw in 2^40."""


WORD_BITS = 64

LEAST_WORD = 1 << 50
"""Smaller words (one in 2^14) have too few digits for `exponentials`."""

EXPONENTIAL_ERROR = 2.0**-46
"""How far numbers of `exponentials` are from the variables at most."""


def words(count: int, bits: Bits = SYSTEM) -> Words:
    """Independent words of 64 random bits."""
    size = 8 * count
    return np.frombuffer(bits(8 * size).to_bytes(size, "little") if size else b"", dtype="<u8")


def exponentials(uniforms: Words) -> NDArray[np.float64]:
    r"""−ln U for the uniform variables U whose first 64 digits are words of at least 2^50.

    With u = m·2^e and m between √½ and √2, ln m = 2·Σ s^(2j+1)/(2j+1) for s = (m − 1)/(m + 1),
    |s| < 0.172: thirteen terms leave out less than 2^−65. Only operations that IEEE 754 rounds
    correctly are used. Rounding u changes ln u by 2^−52 at most, and further digits by 2^−50; m − 1
    is exact, so the sum has a relative error below 2^−49 and an absolute one below 2^−50; the
    product (64 − e)·ln 2 < 11 and the difference have errors below 2^−48. All of them are less than
    `EXPONENTIAL_ERROR` together.

    >>> exponentials(np.array([1 << 63], dtype=np.uint64)).round(12).tolist()
    [0.69314718056]
    """
    mantissa, exponent = np.frexp(uniforms.astype(np.float64))
    is_low = mantissa < math.sqrt(0.5)
    mantissa = np.where(is_low, 2.0 * mantissa, mantissa)
    exponent = exponent - is_low
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.full(ratio.shape, 1.0 / 25.0)
    for odd in range(23, 0, -2):
        series = series * square + 1.0 / odd
    return np.asarray((WORD_BITS - exponent) * math.log(2.0) - 2.0 * ratio * series)


def below(bound: int, bits: Bits = SYSTEM) -> int:
    """A whole number from 0 to ``bound − 1``, each with the same probability.

    >>> below(1)
    0
    """
    width = (bound - 1).bit_length()
    while True:
        value = bits(width) if width else 0
        if value < bound:
            return value


def choose(cumulative: Sequence[int], bits: Bits = SYSTEM) -> int:
    """An index with probability proportional to its step in ``cumulative`` sums.

    >>> choose([0, 0, 5, 5])
    2
    """
    return bisect_right(cumulative, below(cumulative[-1], bits))


def shuffle(items: list[int], bits: Bits = SYSTEM) -> None:
    """Put the items in a random order, each with the same probability (Fisher and Yates)."""
    for last in range(len(items) - 1, 0, -1):
        other = below(last + 1, bits)
        items[last], items[other] = items[other], items[last]


class Exponentials:
    """Intervals around independent exponential variables, made narrower on demand.

    Parameters
    ----------
    count
        Number of variables.
    bits
        Where random bits come from.
    first
        The first 64 digits of each uniform variable, where they have been drawn.

    Attributes
    ----------
    precision
        The ends of the intervals are multiples of 2^−precision.
    low, high
        The ends, as multiples.
    """

    def __init__(self, count: int, bits: Bits = SYSTEM, first: Sequence[int] | None = None) -> None:
        self._bits = bits
        self.precision = FIRST_BITS if first is None else WORD_BITS
        self._uniforms = list(first or (bits(FIRST_BITS) for _ in range(count)))
        self._refine_zeros()
        self._bound()

    @property
    def unit(self) -> int:
        """2^precision: the ends of the intervals are whole numbers of its inverse."""
        return 1 << self.precision

    def refine(self) -> None:
        """Double the number of digits."""
        more = self.precision
        self._uniforms = [(u << more) | self._bits(more) for u in self._uniforms]
        self.precision += more
        self._refine_zeros()
        self._bound()

    def bounds(self, terms: Terms) -> tuple[int, int]:
        """The ends of the interval of ``Σ w·E``, as multiples of 2^−precision."""
        low, high = self.low, self.high
        least = sum(w * (low[i] if w > 0 else high[i]) for i, w in terms)
        most = sum(w * (high[i] if w > 0 else low[i]) for i, w in terms)
        return least, most

    def _refine_zeros(self) -> None:
        """Draw more digits while all of those of a variable are 0: its logarithm has no bound."""
        while not all(self._uniforms):
            more = self.precision
            self._uniforms = [(u << more) | self._bits(more) for u in self._uniforms]
            self.precision += more

    def _bound(self) -> None:
        p = self.precision
        scaled_ln2 = _scaled_logarithm(2, p, p)
        self.low, self.high = [], []
        for u in self._uniforms:
            lower = _scaled_logarithm(u, 1, p)
            # −ln(U) is between p·ln 2 − ln(u) − 1/u and p·ln 2 − ln(u), since ln(1 + 1/u) < 1/u;
            # each floor is within 2 units.
            self.low.append(max(0, scaled_ln2 - lower - 5 - (1 << p) // u))
            self.high.append(scaled_ln2 - lower + 4)


def _scaled_logarithm(number: int, times: int, p: int) -> int:
    """⌊times·ln(number)·2^p⌋, or one less or more, for numbers up to 2^p."""
    digits, context, wide, power = _contexts(p)
    scaled = int(context.ln(Decimal(number)).scaleb(digits, wide))
    return int(((scaled * times) << p) // power)


@cache
def _contexts(p: int) -> tuple[int, Context, Context, int]:
    """Digits of logarithms, the contexts that compute and scale them, and 10 to the digits.

    A logarithm is below p < 10^L, L the number of digits of p. It is correctly rounded to
    0.302·p + 8 + L digits, so that its error is below 10^(−0.302·p − 7) < 2^−p.
    """
    digits = p * 302 // 1000 + 8 + len(str(p))
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    return digits, context, Context(prec=2 * digits), 10**digits


def round_sums(
    sums: Sequence[Terms], count: int, scale: Fraction, bits: Bits = SYSTEM
) -> list[int]:
    """Draw ``count`` exponential variables and round ``scale·Σ w·E`` of each list of terms.

    >>> len(round_sums([[(0, 3), (1, -1)], [(1, 5)]], 2, Fraction(7, 2)))
    2
    """
    variables = Exponentials(count, bits)
    while True:
        rounded = _rounded(sums, variables, scale)
        if rounded is not None:
            return rounded
        variables.refine()


def _rounded(sums: Sequence[Terms], variables: Exponentials, scale: Fraction) -> list[int] | None:
    """The rounded sums; None where an interval contains a boundary between two integers."""
    top, bottom = 2 * scale.numerator, 2 * scale.denominator << variables.precision
    half = bottom // 2
    rounded_sums = []
    for terms in sums:
        least, most = variables.bounds(terms)
        first = (top * least + half) // bottom
        if first != (top * most + half) // bottom:
            return None
        rounded_sums.append(first)
    return rounded_sums
