"""What a guarantee does not cover."""

from __future__ import annotations

__all__ = ["NOT_PROMISED"]

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
