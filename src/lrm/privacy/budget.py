"""What a release guarantees, and how one guarantee converts into another.

Where a logarithm makes an exact conversion impossible, the result is rounded
towards more privacy: a guaranteed epsilon up, an allowed rho down.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar, Literal

from lrm.errors import BudgetError
from lrm.privacy.amounts import (
    LEAST_AMOUNT,
    MOST_AMOUNT,
    Amount,
    check_exact,
    decimal_of,
    equation,
    format_amount,
    parse_amount,
    spell,
    spell_amount,
)
from lrm.privacy.gaussian_profile import largest_rho
from lrm.privacy.unit import PrivacyUnit

LEAST_DELTA = Fraction(1, 10**60)
LEAST_RHO = LEAST_AMOUNT**2 / 2
MOST_RHO = MOST_AMOUNT**2 / 2

_CONTEXT = Context(prec=60)
_SLACK = Decimal("1e-40")
_KEPT_DIGITS = 15
_STEP = Fraction(1, 10**_KEPT_DIGITS)


EXAMPLE_DELTA = Fraction(1, 10**9)
"""The δ at which a ρ is translated for people who think in ε."""

ABSURD = 20
"""An ε above which a release may be e^20, 500 million, times as likely with a person as without.

A release at ρ has a privacy loss of about ρ on average, so that the same limit holds for ρ.
"""

_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


class Guarantee(ABC):
    """What all guarantees say about themselves: to people, to programs, in formulas."""

    __slots__ = ()

    key: ClassVar[str]
    """What files call it."""
    short: ClassVar[str]
    variant: ClassVar[str]
    """The kind of differential privacy, in full."""

    @property
    def amounts(self) -> dict[str, Fraction]:
        """Its parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """The parameters as people write them; one with many digits is marked as rounded.

        >>> PureDP(Fraction(1, 8)), PureDP(Fraction(29946115347177, 2 * 10**15))
        (PureDP(epsilon=0.125), PureDP(epsilon=≈0.0149731))
        """
        listed = ", ".join(f"{name}={spell_amount(value)}" for name, value in self.amounts.items())
        return f"{type(self).__name__}({listed})"

    @property
    def symbols(self) -> str:
        """The parameters as formulas are written.

        >>> ZCDP(Fraction(1, 8)).symbols, ApproxDP(Fraction(1), Fraction(1, 10**9)).symbols
        ('ρ = 0.125', 'ε = 1, δ = 1e-09')
        """
        return ", ".join(equation(_SIGNS[name], amount) for name, amount in self.amounts.items())

    @property
    def described(self) -> str:
        """The parameters with the kind of the guarantee: ρ is not ε, and a δ makes it weaker.

        >>> PureDP(Fraction(1)).described
        'ε = 1 (pure DP)'
        """
        return f"{self.symbols} ({self.short})"

    @property
    def facts(self) -> dict[str, str]:
        """Its kind and its exact amounts, as JSON holds them.

        >>> PureDP(Fraction(1, 10)).facts
        {'guarantee': 'pure', 'epsilon': '0.1'}
        """
        amounts = {name: format_amount(amount) for name, amount in self.amounts.items()}
        return {"guarantee": self.key, **amounts}

    @property
    def concern(self) -> str | None:
        """A warning where the amount protects nobody.

        >>> PureDP(Fraction(10_000)).concern
        'epsilon 10,000 protects nobody; amounts of 1 or less are usual'
        >>> PureDP(Fraction(1)).concern is None
        True
        """
        name, amount = next(iter(self.amounts.items()))
        if amount <= ABSURD:
            return None
        return f"{name} {float(amount):,.6g} protects nobody; amounts of 1 or less are usual"

    def sentences(self, unit: PrivacyUnit) -> list[str]:
        """The guarantee for people who have never heard of differential privacy.

        >>> PureDP(Fraction(1)).sentences(PrivacyUnit())[1]
        'No result is more than 2.72 times as likely from one as from the other (ε = 1).'
        """
        return [f"Take any two tables that differ in {unit.words}.", *self._meaning()]

    def words(self, unit: PrivacyUnit) -> str:
        """The guarantee in a few words: which, how strong, and for whom.

        >>> PureDP(Fraction(1, 10)).words(PrivacyUnit())
        'pure differential privacy, epsilon 0.1, for one row, added or removed'
        """
        facts = self.facts
        amounts = ", ".join(f"{name} {facts[name]}" for name in self.amounts)
        return f"{self.key} differential privacy, {amounts}, for {unit.words}"

    @abstractmethod
    def _meaning(self) -> list[str]:
        """What holds for two such tables."""


NOT_PROMISED = (
    (
        "Intervals and standard errors cover the noise alone: not rows that a rule of the domain "
        "dropped, not rows beyond the limit for one person, not errors of the table itself."
    ),
    (
        "Domain, queries, budget and the number of answers are public; they must not have been "
        "chosen by looking at the table."
    ),
    "How long the computation took, and what the machine's owner can see, is not hidden.",
    "Releases add up: another release of the same people is not covered by this guarantee alone.",
    "What is true of a whole group can be learned, whether or not a particular member takes part.",
)
"""What readers might take for guaranteed by any guarantee, and is not."""


@dataclass(frozen=True, slots=True, repr=False)
class PureDP(Guarantee):
    """The guarantee of pure differential privacy with parameter ``epsilon``."""

    epsilon: Fraction
    key = "pure"
    short = "pure DP"
    variant = "pure differential privacy"

    def __post_init__(self) -> None:
        check_exact(self.epsilon, "epsilon", LEAST_AMOUNT, MOST_AMOUNT)

    def _meaning(self) -> list[str]:
        exponent = min(float(self.epsilon), 700.0)
        times = (
            f"No result is more than {_factor(exponent)} times as likely from one as from the "
            f"other ({self.symbols})."
        )
        certainty = 100 / (1 + math.exp(-exponent))
        if certainty > 99:
            weak = (
                "That is a weak guarantee: someone who thought both equally likely before may be "
                "more than 99 % sure of one of them after reading everything here."
            )
            return [times, weak]
        # Rounded up: a bound may only be stated too large.
        sure = (
            "Someone who thought both equally likely before is, after reading everything here, at "
            f"most {math.ceil(certainty - 1e-9)} % sure of either."
        )
        return [times, sure]


@dataclass(frozen=True, slots=True, repr=False)
class ZCDP(Guarantee):
    """The guarantee of zero-concentrated differential privacy with parameter ``rho``.

    The range is that of rho for every allowed pure epsilon, so that
    :func:`rho_of_pure` never leaves it.
    """

    rho: Fraction
    key = "zCDP"
    short = "zero-concentrated DP"
    variant = "zero-concentrated differential privacy (zCDP)"

    def __post_init__(self) -> None:
        check_exact(self.rho, "rho", LEAST_RHO, MOST_RHO)

    def _meaning(self) -> list[str]:
        epsilon = epsilon_for(self.rho, EXAMPLE_DELTA)
        alike = (
            "Results from both are alike in the sense of zero-concentrated differential privacy "
            f"with {self.symbols}; among others this implies ε = {float(epsilon):.3g} with "
            f"{equation('δ', EXAMPLE_DELTA)}."
        )
        return [alike]


@dataclass(frozen=True, slots=True, repr=False)
class ApproxDP(Guarantee):
    """The guarantee of (``epsilon``, ``delta``)-differential privacy."""

    epsilon: Fraction
    delta: Fraction
    key = "approximate"
    short = "approximate DP"
    variant = "approximate differential privacy"

    def __post_init__(self) -> None:
        check_exact(self.epsilon, "epsilon", LEAST_AMOUNT, MOST_AMOUNT)
        check_exact(self.delta, "delta", LEAST_DELTA, Fraction(1))
        if self.delta == 1:
            raise BudgetError(
                "delta must be below 1, since 1 guarantees nothing; a common choice is 1e-9"
            )

    def _meaning(self) -> list[str]:
        factor = _factor(min(float(self.epsilon), 700.0))
        times = (
            f"No set of results is more than {factor} times as likely from one as from the other, "
            f"plus {spell_amount(self.delta)} ({self.symbols})."
        )
        within = zcdp_of(self).symbols
        return [times, f"The noise also keeps zCDP with {within}, which adds up over releases."]


@dataclass(frozen=True, slots=True, repr=False)
class ApproxZCDP(Guarantee):
    """The guarantee of ``delta``-approximate ``rho``-zCDP, which adds up in both.

    With probability 1 − δ zCDP holds: Bun and Steinke, *Concentrated Differential Privacy* (2016),
    section 8.
    """

    rho: Fraction
    delta: Fraction
    key = "approximate zCDP"
    short = "approximate zCDP"
    variant = "approximate zero-concentrated differential privacy"

    def __post_init__(self) -> None:
        check_exact(self.rho, "rho", LEAST_RHO, MOST_RHO)
        check_exact(self.delta, "delta", LEAST_DELTA, Fraction(1, 2))

    def _meaning(self) -> list[str]:
        (alike,) = ZCDP(self.rho)._meaning()  # noqa: SLF001 - of the same kind
        return [alike, f"That fails with a probability of at most {spell_amount(self.delta)} (δ)."]


def _factor(exponent: float) -> str:
    """Spell e to a power, never below its value."""
    value = math.exp(exponent)
    if value >= 1e6:
        return f"{value:.1e}"
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    scale = 10**decimals
    return f"{math.ceil(value * scale - 1e-9) / scale:,.{decimals}f}"


Privacy = PureDP | ZCDP | ApproxDP

Noise = Literal["laplace", "gaussian", "shaped"]
"""Laplace and shaped noise keep pure guarantees, Gaussian noise the other two."""


def parse_delta(value: Amount) -> Fraction:
    """Read a failure probability exactly: at least 1e-60, and below 1.

    >>> parse_delta("1e-9")
    Fraction(1, 1000000000)
    """
    delta = parse_amount(value, "delta", least=LEAST_DELTA, most=Fraction(1))
    return ApproxDP(Fraction(1), delta).delta


def rho_of_pure(pure: PureDP) -> ZCDP:
    """Return what a pure release costs in rho, exactly: epsilon²/2.

    Bun and Steinke, *Concentrated Differential Privacy* (2016), proposition 1.4.

    >>> rho_of_pure(PureDP(Fraction(1, 10)))
    ZCDP(rho=0.005)
    """
    return ZCDP(pure.epsilon**2 / 2)


def epsilon_for(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    ::

        epsilon = min over alpha > 1 of
                  rho alpha + log(1/(alpha delta))/(alpha - 1) + log(1 - 1/alpha)

    (Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy*,
    2020, section 2.3). Each alpha gives a valid epsilon, so the search may be
    inexact and only the last evaluation must err upwards. The derivative by alpha
    is ``rho - log(1/(alpha delta))/(alpha - 1)**2``, which has one zero.

    >>> float(epsilon_for(Fraction(1, 200), Fraction(1, 10**6)))
    0.4299...
    """
    check_exact(rho, "rho", LEAST_RHO, MOST_RHO)
    log_delta = math.log(parse_delta(delta))
    slope = float(rho)
    excess = _root(lambda t: t * t * slope + math.log1p(t) + log_delta)
    alpha, rest, size = _terms(excess, delta)
    with localcontext(_CONTEXT):
        paid = decimal_of(rho, _CONTEXT) * alpha
        epsilon = paid + rest + (paid + size) * _SLACK
    return max(_rounded(epsilon, ROUND_CEILING), LEAST_AMOUNT)


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho for which rho-zCDP implies (epsilon, delta)-DP, rounded down.

    The inverse of :func:`epsilon_for`, and checked against it before it is returned:
    ``epsilon_for(rho_for(epsilon, delta), delta) <= epsilon``.

    >>> float(rho_for(Fraction(1), Fraction(1, 10**6)))
    0.02...
    """
    check_exact(epsilon, "epsilon", LEAST_AMOUNT, MOST_AMOUNT)
    log_delta = math.log(parse_delta(delta))

    def too_private(t: float) -> float:
        # epsilon_for's minimum, with rho put in terms of the alpha that attains it
        log_ratio = -log_delta - math.log1p(t)
        reached = log_ratio * (2 * t + 1) / (t * t) - math.log1p(1 / t)
        return float(epsilon) - reached

    alpha, rest, size = _terms(_root(too_private), delta)
    with localcontext(_CONTEXT):
        amount = decimal_of(epsilon, _CONTEXT)
        paid = amount - rest - (amount + size) * _SLACK
        rho = _rounded(paid / alpha, ROUND_FLOOR)
    while rho >= LEAST_RHO and epsilon_for(rho, delta) > epsilon:
        rho = _rounded(decimal_of(rho * (1 - _STEP), _CONTEXT), ROUND_FLOOR)
    if rho < LEAST_RHO:
        raise BudgetError(
            f"epsilon {spell(epsilon)} with delta {spell(delta)} allows less rho than can be "
            f"used ({float(LEAST_RHO):.3g}); raise epsilon or delta"
        )
    return rho


def zcdp_of(privacy: Privacy) -> ZCDP:
    """The rho that Gaussian noise is scaled by, for the guarantee asked for.

    For (ε, δ) that is more than the rho which implies it: Gaussian noise keeps more than its
    zCDP says. See `lrm.privacy.gaussian_profile`.

    >>> rho = zcdp_of(ApproxDP(Fraction(1), Fraction(1, 10**6))).rho
    >>> round(float(rho / rho_for(Fraction(1), Fraction(1, 10**6))), 3)
    1.15
    """
    if isinstance(privacy, ApproxDP):
        implied = rho_for(privacy.epsilon, privacy.delta)
        return ZCDP(largest_rho(privacy.epsilon, privacy.delta, implied, MOST_RHO))
    if isinstance(privacy, ZCDP):
        return privacy
    raise BudgetError("Gaussian noise is not pure differential privacy; give rho, or delta")


def _terms(excess: float, delta: Fraction) -> tuple[Decimal, Decimal, Decimal]:
    """Return alpha, the terms of epsilon without rho, and a bound on their size.

    Decimal's logarithm is correctly rounded, so at 60 digits the error is below
    1e-40 of the size for every alpha that :func:`_root` can return.
    """
    with localcontext(_CONTEXT):
        alpha = 1 + Decimal(excess)
        over = alpha - 1
        tail = -(alpha * decimal_of(delta, _CONTEXT)).ln() / over
        bonus = (over / alpha).ln()
        return alpha, tail + bonus, abs(tail) + abs(bonus)


def _rounded(value: Decimal, direction: str) -> Fraction:
    """Round to 15 significant digits in ``direction``."""
    return Fraction(Context(prec=_KEPT_DIGITS, rounding=direction).plus(value))


def _root(increasing: Callable[[float], float]) -> float:
    """Bisect an increasing function on a logarithmic scale; the result need not be exact.

    The best alpha is at most ``1 + sqrt(log(1/delta)/rho)``, which is below 1e14
    for every allowed delta and rho.
    """
    low, high = -36.0, 36.0
    for _ in range(64):
        middle = (low + high) / 2
        if increasing(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)
