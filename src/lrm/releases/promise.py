"""The promise of a release in plain words, and what it does not cover."""

from __future__ import annotations

import math
from fractions import Fraction

from lrm.privacy.budget import ZCDP, Privacy, PureDP, epsilon_for, zcdp_of
from lrm.privacy.unit import PrivacyUnit
from lrm.showing.spelling import parameter_words, spell_amount

__all__ = [
    "NOT_PROMISED",
    "concern",
    "promise_sentences",
    "variant_name",
]

EXAMPLE_DELTA = Fraction(1, 10**9)
"""The δ at which a ρ is translated for people who think in ε."""

ABSURD = 20
"""An ε above which a release may be e^20, 500 million, times as likely with a person as without.

A release at ρ has a privacy loss of about ρ on average, so that the same limit holds for ρ.
"""

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
    "Releases add up: another release of the same people is not covered by this promise alone.",
    "What is true of a whole group can be learned, whether or not a particular member takes part.",
)
"""What readers might take for promised, and is not."""


def variant_name(privacy: Privacy) -> str:
    """The kind of differential privacy.

    >>> variant_name(PureDP(Fraction(1, 2)))
    'pure differential privacy'
    """
    if isinstance(privacy, PureDP):
        return "pure differential privacy"
    if isinstance(privacy, ZCDP):
        return "zero-concentrated differential privacy (zCDP)"
    return "approximate differential privacy"


def concern(privacy: Privacy) -> str | None:
    """A warning about a promise that protects nobody; None for others.

    >>> concern(PureDP(Fraction(10_000)))
    'epsilon 10,000 protects nobody; amounts of 1 or less are usual'
    >>> concern(PureDP(Fraction(1))) is None
    True
    """
    name, amount = (
        ("rho", privacy.rho) if isinstance(privacy, ZCDP) else ("epsilon", privacy.epsilon)
    )
    if amount <= ABSURD:
        return None
    return f"{name} {float(amount):,.6g} protects nobody; amounts of 1 or less are usual"


def promise_sentences(privacy: Privacy, unit: PrivacyUnit) -> list[str]:
    """The promise for people who have never heard of differential privacy.

    >>> promise_sentences(PureDP(Fraction(1)), PrivacyUnit())[1]
    'No result is more than 2.72 times as likely from one as from the other (ε = 1).'
    """
    sentences = [f"Take any two tables that differ in {unit.words}."]
    if isinstance(privacy, PureDP):
        return sentences + _pure_sentences(float(privacy.epsilon), parameter_words(privacy))
    if isinstance(privacy, ZCDP):
        epsilon = epsilon_for(privacy.rho, EXAMPLE_DELTA)
        sentences.append(
            f"Results from both are alike in the sense of zero-concentrated differential privacy "
            f"with {parameter_words(privacy)}; among others this implies ε = {float(epsilon):.3g} "
            f"with δ = {spell_amount(EXAMPLE_DELTA)}."
        )
        return sentences
    factor = _number(math.exp(min(float(privacy.epsilon), 700.0)))
    sentences.append(
        f"No set of results is more than {factor} times as likely from one as from the other, "
        f"plus {spell_amount(privacy.delta)} ({parameter_words(privacy)})."
    )
    within = parameter_words(zcdp_of(privacy))
    sentences.append(f"The noise itself keeps the stronger promise of zCDP with {within}.")
    return sentences


def _pure_sentences(epsilon: float, shown: str) -> list[str]:
    exponent = min(epsilon, 700.0)
    factor = _number(math.exp(exponent))
    times = f"No result is more than {factor} times as likely from one as from the other ({shown})."
    certainty = 100 / (1 + math.exp(-exponent))
    if certainty > 99:
        weak = (
            "That is a weak promise: someone who thought both equally likely before may be more "
            "than 99 % sure of one of them after reading everything here."
        )
        return [times, weak]
    # Rounded up: a bound may only be stated too large.
    sure = (
        "Someone who thought both equally likely before is, after reading everything here, at most "
        f"{math.ceil(certainty - 1e-9)} % sure of either."
    )
    return [times, sure]


def _number(value: float) -> str:
    """Spell a factor, never below its value."""
    if value >= 1e6:
        return f"{value:.1e}"
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    scale = 10**decimals
    return f"{math.ceil(value * scale - 1e-9) / scale:,.{decimals}f}"
