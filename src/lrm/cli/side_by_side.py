"""Laplace and Gaussian noise at equal (ε, δ): which to take."""

import textwrap
from typing import TYPE_CHECKING, Any

from lrm.cli.output import echo, number, print_table, ratio
from lrm.cli.promises import Promise

if TYPE_CHECKING:
    from lrm.plans.comparison import SideBySide

__all__ = ["print_side_by_side", "side_by_side_fields"]


def side_by_side_fields(both: "SideBySide", promise: Promise) -> dict[str, Any]:
    """Both comparisons as plain values, and the noise of less error."""
    from lrm.cli.comparison_facts import comparison_fields

    pure = Promise(epsilon=promise.epsilon)
    least = _least(both, promise)
    return {
        **promise.fields,
        "laplace": {"guarantee": "pure", **comparison_fields(both.laplace, pure)},
        "gaussian": {
            "guarantee": "approximate",
            **comparison_fields(both.gaussian, promise),
            "charged_rho": str(promise.cost_in_rho()),
        },
        "less_error": None if least is None else _less(least),
    }


def print_side_by_side(both: "SideBySide", promise: Promise) -> None:
    """A row for each mechanism, and which noise to take."""
    from lrm.cli.comparison_facts import print_without_plan

    rows = []
    for mechanism, laplace, gaussian in _errors(both, promise):
        shown = ["—" if error is None else number(error, 5) for error in (laplace, gaussian)]
        known = laplace is not None and gaussian is not None and laplace > 0
        share = ratio(gaussian / laplace) if known and gaussian and laplace else "—"
        rows.append((mechanism, *shown, share))
    columns = ("mechanism", "Laplace error", "Gaussian error", "Gaussian/Laplace")
    print_table(columns, rows, words=("mechanism",))
    for result in (both.laplace, both.gaussian):
        print_without_plan(result)
    echo(textwrap.fill(_advice(both, promise), 80))


def _errors(both: "SideBySide", promise: Promise) -> list[tuple[str, float | None, float | None]]:
    """For each mechanism its total squared error with Laplace and with Gaussian noise."""
    pure = Promise(epsilon=promise.epsilon)
    pairs = zip(both.laplace.outcomes, both.gaussian.outcomes, strict=True)
    return [
        (
            one.mechanism,
            None if one.plan is None else pure.accuracy(one.plan).squared_error,
            None if other.plan is None else promise.accuracy(other.plan).squared_error,
        )
        for one, other in pairs
    ]


def _least(both: "SideBySide", promise: Promise) -> tuple[float, float] | None:
    """The least error with Laplace and with Gaussian noise, where both have a plan."""
    rows = _errors(both, promise)
    laplace = [error for _, error, _ in rows if error is not None]
    gaussian = [error for _, _, error in rows if error is not None]
    return (min(laplace), min(gaussian)) if laplace and gaussian else None


def _less(least: tuple[float, float]) -> str:
    return "laplace" if least[0] <= least[1] else "gaussian"


def _advice(both: "SideBySide", promise: Promise) -> str:
    """What each noise promises at these amounts, and what the weaker promise would buy."""
    pure = Promise(epsilon=promise.epsilon).words
    delta = Promise(delta=promise.delta).words
    promises = (
        f"Laplace noise promises pure {pure}, which is stronger: Gaussian noise may break it "
        f"with probability {delta}."
    )
    least = _least(both, promise)
    if least is None or min(least) <= 0:
        return promises
    laplace, gaussian = least
    if laplace <= gaussian:
        return (
            f"{promises} Here Laplace has less error too: Gaussian noise has "
            f"{ratio(gaussian / laplace)} times as much. Take Laplace."
        )
    return (
        f"{promises} It buys {ratio(laplace / gaussian)} times less error here: take Gaussian "
        "where that is worth the weaker promise, else Laplace."
    )
