"""Options that several commands share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lrm.planning.strategies import MECHANISMS

if TYPE_CHECKING:
    from fractions import Fraction

Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def whole_option(
    name: str, text: str, *, least: int = 1, default: int | None = None
) -> Callable[[Command], Command]:
    """An option that takes a whole number."""
    limits, shown = click.IntRange(min=least), default is not None
    return click.option(
        name, type=limits, metavar="N", default=default, show_default=shown, help=text
    )


def choice_option(
    name: str, words: str, text: str, default: str | None = None
) -> Callable[[Command], Command]:
    """An option that takes one of some words, which are separated by blanks."""
    choices = click.Choice(words.split())
    return click.option(
        name, type=choices, default=default, show_default=default is not None, help=text
    )


def time_limit_option(text: str) -> Callable[[Command], Command]:
    """After how many seconds a search ends with the best so far."""
    positive = click.FloatRange(min=0, min_open=True)
    return click.option("--time-limit", type=positive, metavar="SECONDS", help=text)


EFFORTS = "quick normal thorough"
NEIGHBOURS = "add-remove substitute"

confidence_option = click.option(
    "--confidence",
    type=float,
    metavar="X",
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)

seed_option = whole_option(
    "--seed",
    "Seed of the random starts of solvers; the noise of a release has none.",
    least=0,
    default=0,
)

domain_option = click.option(
    "--domain", metavar="FILE", help="Domain file whose attributes the queries are about."
)

edition_option = click.option(
    "--edition",
    metavar="PERIOD",
    help="Of a report with editions: the one to read, such as 2025-03, or 2025-01..2025-03.",
)

plot_option = click.option(
    "--plot", metavar="FILE", help="Also draw a plot into FILE (.svg or .png)."
)

force_option = click.option("--force", is_flag=True, help="Replace files that exist.")


def limit_option(text: str, default: int | None = None) -> Callable[[Command], Command]:
    """How many lines a command prints at most; ``text`` says of what."""
    limit = click.IntRange(min=0)
    return click.option("--limit", type=limit, metavar="N", default=default, help=text)


def chosen_mechanisms(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[str, ...]:
    """Read ``a,b,c`` (a click callback): empty, which means all, where nothing is given."""
    if value is None:
        return ()
    names = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    unknown = [name for name in names if name not in MECHANISMS]
    if unknown or not names:
        shown_value = repr(unknown[0] if unknown else value)
        raise click.BadParameter(
            f"no mechanism is called {shown_value}; mechanisms are {', '.join(MECHANISMS)}",
            ctx,
            param,
        )
    return names


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


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval has."""
    from lrm.errors import BudgetError

    if not 0 < confidence < 1:
        raise BudgetError(f"confidence must be between 0 and 1, not {confidence}; 0.95 is usual")
