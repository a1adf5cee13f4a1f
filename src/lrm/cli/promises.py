"""Amounts of privacy on the command line: epsilon, epsilon with delta, or rho."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lrm.showing.spelling import spell_amount

if TYPE_CHECKING:
    from lrm.accuracy import Accuracy
    from lrm.plans import Plan
    from lrm.privacy.unit import PrivacyUnit

__all__ = ["Promise", "amount_options", "spell_amount"]

Command = TypeVar("Command", bound=Callable[..., Any])


def amount_options(command: Command) -> Command:
    """Add ``--epsilon``, ``--delta`` and ``--rho`` (a decorator)."""
    rho = click.option(
        "--rho", metavar="AMOUNT", help="Gaussian plans: promise this zero-concentrated DP."
    )
    delta = click.option(
        "--delta", metavar="AMOUNT", help="Gaussian plans: with --epsilon, such as 1e-9."
    )
    epsilon = click.option("--epsilon", metavar="AMOUNT", help="Exact, such as 0.1 or 1/3.")
    return epsilon(delta(rho(command)))


@dataclass(frozen=True)
class Promise:
    """What someone asks for, before a plan's noise says what it can keep."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    @classmethod
    def read(cls, choices: dict[str, Any]) -> "Promise":
        """Read the amounts that were given, exactly."""
        from lrm.privacy.amounts import parse_amount
        from lrm.privacy.budget import LEAST_RHO, MOST_RHO, parse_delta

        epsilon, delta, rho = (choices[name] for name in ("epsilon", "delta", "rho"))
        return cls(
            None if epsilon is None else parse_amount(epsilon, "epsilon"),
            None if delta is None else parse_delta(delta),
            None if rho is None else parse_amount(rho, "rho", least=LEAST_RHO, most=MOST_RHO),
        )

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The amounts by name, as the methods of a plan take them."""
        named = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def words(self) -> str:
        """The amounts as people write them: ``ε = 1, δ = 1e-09``."""
        letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
        return ", ".join(
            f"{letters[name]} = {spell_amount(value)}" for name, value in self.amounts.items()
        )

    @property
    def fields(self) -> dict[str, str]:
        """The exact amounts for machines."""
        from lrm.privacy.amounts import format_amount

        return {name: format_amount(value) for name, value in self.amounts.items()}

    def cost_in_rho(self) -> Fraction | None:
        """The ρ behind an (ε, δ) promise; None for others, which are what they cost."""
        from lrm.privacy.budget import rho_for

        if self.epsilon is None or self.delta is None:
            return None
        return rho_for(self.epsilon, self.delta)

    def accuracy(self, plan: "Plan", unit: "PrivacyUnit | None" = None) -> "Accuracy":
        """What a release of a plan with these amounts will be like."""
        return plan.accuracy(plan.privacy(**self.amounts), unit)

    def check(self, plan: "Plan") -> None:
        """Refuse amounts that the plan's noise cannot promise."""
        plan.privacy(**self.amounts)
