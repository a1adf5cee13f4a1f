"""What a guarantee says, in words, and what it does not cover."""

from __future__ import annotations

from lrm.privacy.budget import Privacy
from lrm.privacy.unit import PrivacyUnit

__all__ = ["NOT_PROMISED", "guarantee_words"]


def guarantee_words(privacy: Privacy, unit: PrivacyUnit, *, simulated: bool = False) -> str:
    """A guarantee in a few words: which, how strong, and for whom.

    >>> from fractions import Fraction
    >>> from lrm.privacy.budget import PureDP
    >>> guarantee_words(PureDP(Fraction(1, 10)), PrivacyUnit())
    'pure differential privacy, epsilon 0.1, for one row, added or removed'
    """
    if simulated:
        return "SIMULATED: it guarantees nothing"
    facts = privacy.facts
    amounts = ", ".join(f"{name} {facts[name]}" for name in facts if name != "guarantee")
    return f"{facts['guarantee']} differential privacy, {amounts}, for {unit.words}"


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
"""What readers might take for guaranteed, and is not."""
