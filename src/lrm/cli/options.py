"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = [
    "MECHANISMS",
    "chosen_mechanisms",
    "confidence_option",
    "domain_option",
    "json_option",
    "limit_option",
    "plot_option",
    "seed_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])

# The names that ``lrm.strategies`` has, which would load NumPy; a test compares them.
MECHANISMS = (
    "best",
    "lowrank",
    "noise-on-data",
    "noise-on-results",
    "wavelet",
    "hierarchical",
    "matrix",
    "marginals",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

confidence_option = click.option(
    "--confidence",
    type=float,
    metavar="X",
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Seed of the random starts of solvers; the noise of a release has none.",
)

domain_option = click.option(
    "--domain", metavar="FILE", help="Domain file whose attributes the queries are about."
)

plot_option = click.option(
    "--plot", metavar="FILE", help="Also draw a plot into FILE (.svg or .png), which is replaced."
)


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
