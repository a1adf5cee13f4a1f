"""What a domain states of values that were discovered in a private table."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from fractions import Fraction

from lrm.errors import BudgetError, DomainError
from lrm.privacy.amounts import format_amount, parse_amount
from lrm.privacy.budget import LEAST_DELTA, LEAST_RHO, MOST_RHO, ApproxZCDP

LONGEST = 1_000
"""Characters of a discovered value."""

_HEAD = re.compile(r"[0-9]{1,18}:[0-9a-f]{64}")


@dataclass(frozen=True)
class Discovery:
    """How values of a categorical attribute were discovered.

    Parameters
    ----------
    count
        How many values it added: the last ones of the attribute, or those before a later discovery.
    rho, delta
        Its guarantee.
    most
        The most values of a person that counted.
    least
        The noisy number of persons with which a value was published.
    scale
        The scale of the noise on that number.
    length
        Longer values were left out.
    pattern
        Values that do not match it as a whole were left out; None for all.
    edition
        The edition, or editions, whose rows were read; None without editions.
    head
        The head of the ledger right after it was charged; None without a ledger.

    Examples
    --------
    >>> Discovery(2, "0.01", "1e-8", most=4, least=85, scale=14.2, length=40).guarantee
    ApproxZCDP(rho=0.01, delta=1e-08)
    """

    count: int
    rho: Fraction | str
    delta: Fraction | str
    most: int
    least: int
    scale: float
    length: int
    pattern: str | None = None
    edition: str | None = None
    head: str | None = None

    def __post_init__(self) -> None:
        try:
            rho = parse_amount(self.rho, "rho", least=LEAST_RHO, most=MOST_RHO)
            delta = parse_amount(self.delta, "delta", least=LEAST_DELTA, most=Fraction(1, 2))
        except BudgetError as error:
            raise DomainError(f"discovered: {error}") from None
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "delta", delta)
        wholes = {"count": self.count, "most": self.most, "least": self.least}
        for name, value in (wholes | {"length": self.length}).items():
            low = 0 if name == "count" else 1
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**62:
                raise DomainError(f"discovered: {name} must be a whole number, not {value!r}")
        if not (isinstance(self.scale, float) and 0 < self.scale < 2**62):
            raise DomainError(f"discovered: scale must be a positive number, not {self.scale!r}")
        for name in ("pattern", "edition", "head"):
            if not isinstance(getattr(self, name), str | None):
                raise DomainError(f"discovered: {name} must be a text")
        if self.head is not None and not _HEAD.fullmatch(self.head):
            raise DomainError("discovered: head must be the head of a ledger, such as 3:9f86…")

    @property
    def guarantee(self) -> ApproxZCDP:
        """The guarantee of the discovery by itself."""
        assert isinstance(self.rho, Fraction) and isinstance(self.delta, Fraction)  # noqa: S101, PT018
        return ApproxZCDP(self.rho, self.delta)

    @property
    def facts(self) -> dict[str, object]:
        """As a domain file states it."""
        facts = {item.name: getattr(self, item.name) for item in fields(self)}
        amounts = {name: format_amount(facts[name]) for name in ("rho", "delta")}
        return {name: value for name, value in (facts | amounts).items() if value is not None}
