r"""Values that nobody knows in advance: published where enough persons have them.

Each person counts in at most κ values. Discrete Gaussian noise with ``σ² ≥ κ/(2ρ)`` is added to the
number of persons of every value that occurs, and the values whose noisy number is at least τ are
published, where τ is the least whole number with ``P(1 + N ≥ τ) ≤ 1 − (1 − δ)^{1/κ}``. That is
δ-approximate ρ-zCDP for one person added or removed: of the at most κ values that this person alone
has, none is published with probability ``(1 − P(1 + N ≥ τ))^κ ≥ 1 − δ``. Given that, both tables
publish from the same values, and the numbers of persons of at most κ of them differ by 1: by √κ in
L2. Where a person is replaced, 2κ numbers differ.

References
----------
Bun and Steinke, *Concentrated Differential Privacy* (2016), section 8; Korolova et al., *Releasing
Search Queries and Clicks Privately* (2009).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from lrm.errors import BudgetError
from lrm.privacy.amounts import check_exact, decimal_of
from lrm.privacy.budget import LEAST_DELTA, ZCDP, ApproxZCDP
from lrm.privacy.mechanism import OccurringValues, publish_values
from lrm.privacy.noise import Calibrated, calibrate_gaussian

MOST_VALUES = 1_000
"""Distinct values of a person that may count."""

LARGEST_SCALE = 2e4
"""Noise up to which thresholds are computed: its tail has some 200,000 terms."""

DIGITS = 50
"""Digits of the sums; each of the products adds an error of one in the last."""


@dataclass(frozen=True)
class Threshold:
    """Noise and threshold of a discovery, before any value is looked at.

    Parameters
    ----------
    most
        κ, the most values of a person that count.
    guarantee
        ρ and δ.
    noise
        The noise on each number of persons.
    least
        τ, the least noisy number of persons with which a value is published.
    """

    most: int
    guarantee: ApproxZCDP
    noise: Calibrated
    least: int

    @classmethod
    def of(cls, guarantee: ApproxZCDP, most: int, *, replaced: bool = False) -> Threshold:
        """The threshold for a guarantee; ``replaced`` where neighbours replace a person.

        >>> threshold = Threshold.of(ApproxZCDP(Fraction(1, 100), Fraction(1, 10**8)), 4)
        >>> round(threshold.noise.scale, 3), threshold.least
        (14.142, 85)
        """
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_VALUES:
            raise BudgetError(
                f"most must be a whole number from 1 to {MOST_VALUES:,}: the most values of a "
                "person that count"
            )
        noise = calibrate_gaussian(most * (2 if replaced else 1), ZCDP(guarantee.rho))
        if noise.scale > LARGEST_SCALE:
            raise BudgetError(
                f"rho is too small: the noise would have a scale of {noise.scale:,.0f} persons, "
                f"and {LARGEST_SCALE:,.0f} is the most; spend a larger rho, or count fewer values "
                "of a person"
            )
        return cls(most, guarantee, noise, least_threshold(noise.scale, guarantee.delta, most))

    def published(self, values: OccurringValues) -> dict[str, int]:
        """The values that pass, with their noisy numbers of persons, in alphabetical order."""
        return publish_values(values, self.noise, self.least)


def least_threshold(scale: float, delta: Fraction, most: int) -> int:
    """The least whole τ that is proved to keep ``P(1 + N ≥ τ) ≤ 1 − (1 − δ)^{1/κ}``.

    ``P(N ≥ t) = Σ_{k≥t} g(k) / Σ_k g(k)`` with ``g(k) = exp(−k²/2σ²)``. The sum above is rounded
    up, with a geometric series for its end, and the one below is rounded down.

    >>> least_threshold(1.0, Fraction(1, 10**6), 1), least_threshold(1.0, Fraction(1, 10**6), 16)
    (7, 7)
    """
    check_exact(delta, "delta", LEAST_DELTA, Fraction(1, 2))
    allowed = _share(delta, most)
    last = math.ceil(scale * math.sqrt(2.0 * (46.0 - float(allowed.ln())))) + 2
    above, below = _weights(scale, last, ROUND_CEILING), _weights(scale, last, ROUND_FLOOR)
    up, down = Context(DIGITS, rounding=ROUND_CEILING), Context(DIGITS, rounding=ROUND_FLOOR)
    whole = Decimal(1)
    for weight in below[1:]:
        whole = down.add(whole, down.multiply(2, weight))
    limit = down.multiply(allowed, whole)
    # Beyond the last term each one is at most exp(−last/σ²) times the one before.
    ratio = up.divide(above[last], below[last - 1])
    tail = up.divide(up.multiply(above[last], ratio), down.subtract(1, ratio))
    place = last + 1
    while place > 0:
        tail = up.add(tail, above[place - 1])
        if tail > limit:
            break
        place -= 1
    return place + 1


def _share(delta: Fraction, most: int) -> Decimal:
    """``1 − (1 − δ)^{1/κ}``, rounded down: so much may pass of a value that one person has."""
    wide = Context(prec=200)  # δ may be 1e-60, whose root is near 1
    root = wide.exp(wide.divide(wide.ln(decimal_of(1 - delta, wide)), Decimal(most)))
    share = wide.subtract(Decimal(1), root)
    return Context(DIGITS, rounding=ROUND_FLOOR).multiply(share, Decimal(1) - Decimal("1e-40"))


def _weights(scale: float, last: int, rounding: str) -> list[Decimal]:
    """``exp(−k²/2σ²)`` for k from 0 to ``last``, each rounded in one direction.

    From one to the next by ``g(k+1) = g(k)·q·r^k`` with ``q = exp(−1/2σ²)`` and ``r = q²``.
    """
    context = Context(DIGITS, rounding=rounding)
    exponent = decimal_of(-1 / (2 * Fraction(scale) ** 2), context)
    # The exponential is rounded to nearest: one step further in the direction.
    step: Callable[[Decimal], Decimal] = (
        context.next_plus if rounding == ROUND_CEILING else context.next_minus
    )
    factor = step(context.exp(exponent))
    square = context.multiply(factor, factor)
    weights = [Decimal(1)]
    for _ in range(last):
        weights.append(context.multiply(weights[-1], factor))
        factor = context.multiply(factor, square)
    return weights
