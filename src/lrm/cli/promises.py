"""Amounts of privacy on the command line: epsilon, epsilon with delta, or rho."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["amount_options", "read_amounts"]

Command = TypeVar("Command", bound=Callable[..., Any])


def amount_options(command: Command) -> Command:
    """Add ``--epsilon``, ``--delta`` and ``--rho`` (a decorator)."""
    rho = click.option(
        "--rho", metavar="AMOUNT", help="Gaussian plans: guarantee this zero-concentrated DP."
    )
    delta = click.option(
        "--delta", metavar="AMOUNT", help="Gaussian plans: with --epsilon, such as 1e-9."
    )
    epsilon = click.option("--epsilon", metavar="AMOUNT", help="Exact amount, such as 0.1 or 1/3.")
    return epsilon(delta(rho(command)))


def read_amounts(choices: dict[str, Any]) -> "dict[str, Fraction]":
    """The amounts that were given, exact and by name, as the methods of a plan take them."""
    from lrm.privacy.amounts import parse_amount
    from lrm.privacy.budget import LEAST_RHO, MOST_RHO, parse_delta

    read: dict[str, Callable[[Any], Fraction]] = {
        "epsilon": lambda amount_text: parse_amount(amount_text, "epsilon"),
        "delta": parse_delta,
        "rho": lambda amount_text: parse_amount(amount_text, "rho", least=LEAST_RHO, most=MOST_RHO),
    }
    return {name: parse(choices[name]) for name, parse in read.items() if choices[name] is not None}
