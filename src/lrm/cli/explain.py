"""``lrm explain``: a plan's error at an epsilon, or the epsilon for an error."""

import math
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import json_option, plot_option
from lrm.cli.output import echo
from lrm.cli.promises import Promise, amount_options, spell_amount

if TYPE_CHECKING:
    from lrm.accuracy import Accuracy
    from lrm.plans import Plan
    from lrm.workload import Label


@click.command(short_help="The error of a plan, or the epsilon for an error.")
@click.argument("plan")
@amount_options
@click.option(
    "--error", type=float, metavar="X", help="Find the amount for this total squared error."
)
@click.option(
    "--rmse", type=float, metavar="X", help="Find the amount for this error of a typical query."
)
@click.option(
    "--confidence", type=float, metavar="X", default=0.95, show_default=True, help="Of intervals."
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Queries shown, largest error first (10; with --json all).",
)
@plot_option
@json_option
def explain(plan: str, **choices: Any) -> None:
    r"""Tell how accurate the answers of PLAN will be, before any data is touched.

    Give --epsilon to see the error of every query, or --error or --rmse for the least
    epsilon whose error is as wanted. A plan for Gaussian noise takes --rho, or --epsilon
    with --delta, and finds the least rho. Intervals hold the noise at least as
    often as they say: it is a weighted sum of discrete Laplace (or Gaussian) variables.

    \b
    Example:
      lrm explain plan.lrm --epsilon 0.1
      lrm explain plan.lrm --rmse 50
      lrm explain gaussian.lrm --epsilon 1 --delta 1e-9
      lrm explain plan.lrm --epsilon 0.1 --confidence 0.99 --plot errors.svg
    """
    from lrm.cli.output import print_json
    from lrm.cli.output_files import check_apart, check_output
    from lrm.plans.file import load_plan
    from lrm.report.plots import KINDS, plot_query_errors

    plot, limit = choices["plot"], choices["limit"]
    _check_asked(choices)
    check_apart({"--plot": plot}, {"PLAN": plan})
    check_output(plot, kinds=KINDS)
    loaded = load_plan(plan)
    promise = _promise(loaded, choices)
    if plot is not None:
        plot_query_errors(loaded, loaded.privacy(**promise.amounts), plot)
    if choices["as_json"]:
        print_json({"plan": plan, **_fields(loaded, promise, choices["confidence"], limit)})
        return
    _print(loaded, promise, choices["confidence"], 10 if limit is None else limit)
    if plot is not None:
        echo(f"drawn in {plot}")


def _check_asked(choices: dict[str, Any]) -> None:
    given = [name for name in ("epsilon", "rho", "error", "rmse") if choices[name] is not None]
    if len(given) != 1:
        raise click.UsageError("give one of --epsilon, --error or --rmse (--rho for Gaussian)")
    if choices["delta"] is not None and given != ["epsilon"]:
        raise click.UsageError("--delta belongs to --epsilon; give both, or --rho alone")


def _promise(plan: "Plan", choices: dict[str, Any]) -> Promise:
    """The amounts asked for, or the least one whose error is as wanted."""
    from lrm.errors import BudgetError
    from lrm.privacy.budget import PureDP

    asked = Promise.read(choices)
    if asked.amounts:
        asked.check(plan)
        return asked
    wanted = choices["error"]
    if wanted is None:
        rmse = choices["rmse"]
        if not (math.isfinite(rmse) and rmse > 0):
            raise BudgetError(f"a wanted error must be a number above 0, but {rmse} came")
        wanted = rmse**2 * plan.workload.shape[0]
    least = plan.privacy_for(wanted)
    return Promise(least.epsilon) if isinstance(least, PureDP) else Promise(rho=least.rho)


def _bounds(plan: "Plan", promise: Promise) -> dict[str, float]:
    """The bounds at these amounts; those of the paper, with its C and r, for Laplace noise."""
    spectrum = plan.spectrum
    if spectrum is None:
        return {"lower_bound": promise.accuracy(plan).lower_bound}
    bounds = {
        "rank": spectrum.rank,
        "condition": spectrum.condition,
        "lower_bound": promise.accuracy(plan).lower_bound,
    }
    if plan.noise == "gaussian" or promise.epsilon is None:
        return bounds
    scale = (float(promise.epsilon) / plan.unit.factor) ** 2
    return {
        **bounds,
        "svd_lower_bound": spectrum.lower_bound / scale,
        "any_mechanism_lower_bound": spectrum.any_mechanism_lower_bound / scale,
        "paper_upper_bound": spectrum.upper_bound / scale,
        "paper_volume_bound_as_printed": spectrum.volume_bound_as_printed / scale,
    }


def worst_queries(
    plan: "Plan", expected: "Accuracy", confidence: float, limit: int | None
) -> list[tuple["Label", float, float]]:
    """The queries of largest error: label, standard error, half-width of the interval.

    Empty where there are too many queries to hold a number for each.
    """
    import numpy as np

    from lrm.workload import EXPLICIT_QUERIES

    labels = plan.workload.labels
    if len(labels) > EXPLICIT_QUERIES:
        return []
    errors = expected.standard_errors
    # Rounding errors do not decide the order of queries with the same error.
    order = [int(i) for i in np.argsort(-errors.round(9), kind="stable")[:limit]]
    half = expected.half_widths(confidence, order)
    return [
        (labels[i], float(errors[i]), float(width)) for i, width in zip(order, half, strict=True)
    ]


def _fields(plan: "Plan", promise: Promise, confidence: float, limit: int | None) -> dict[str, Any]:

    expected = promise.accuracy(plan)
    return {
        "mechanism": plan.mechanism,
        "noise": plan.noise,
        **promise.fields,
        "confidence": confidence,
        "expected_squared_error": expected.squared_error,
        "root_mean_squared_error": expected.root_mean_squared_error,
        "at_most_above_best": plan.at_most_above_best,
        "bounds": _bounds(plan, promise),
        "queries": [
            {**label.facts, "standard_error": deviation, "half_width": half}
            for label, deviation, half in worst_queries(plan, expected, confidence, limit)
        ],
    }


def _print(plan: "Plan", promise: Promise, confidence: float, limit: int) -> None:
    from lrm.cli.output import print_facts

    facts = _fields(plan, promise, confidence, 0)
    print_facts([*_promise_lines(plan, promise), *_error_lines(plan, facts)])
    print_worst(plan, promise.accuracy(plan), confidence, limit)


def print_worst(plan: "Plan", expected: "Accuracy", confidence: float, limit: int) -> None:
    """Print the queries of largest error with their intervals."""
    from lrm.cli.output import number, print_table

    queries = plan.workload.shape[0]
    rows = [
        (label.name, number(error), f"±{number(half)}")
        for label, error, half in worst_queries(plan, expected, confidence, limit)
    ]
    if not rows:
        echo(f"none of {queries:,} queries listed")
        return
    columns = ("query", "standard error", f"{100 * confidence:.4g} % interval")
    print_table(columns, rows, words=("query",))
    if len(rows) < queries:
        echo(f"{len(rows):,} of {queries:,} queries shown, the largest errors first")


def _promise_lines(plan: "Plan", promise: Promise) -> list[tuple[str, str]]:
    """What is promised; an (ε, δ) promise with the ρ that a ledger is charged for it."""
    lines = [("plan", f"{plan.workload.shape[0]:,} queries by {plan.mechanism}")]
    lines += [(name, spell_amount(value)) for name, value in promise.amounts.items()]
    rho = promise.cost_in_rho()
    if rho is not None:
        lines.append(
            ("", f"by Gaussian noise for rho {spell_amount(rho, 'up')}, which a ledger pays")
        )
    return lines


def _error_lines(plan: "Plan", facts: dict[str, Any]) -> list[tuple[str, str]]:
    from lrm.cli.output import number
    from lrm.cli.plan_facts import certificate

    total, typical = facts["expected_squared_error"], facts["root_mean_squared_error"]
    bounds = facts["bounds"]
    lines = [
        ("total error", f"{number(total, 6)} (expected, squared)"),
        ("a query's error", f"{number(typical)} (root mean square)"),
        ("best possible", f"{number(bounds['lower_bound'], 6)} or more for any strategy, so"),
        ("", f"this plan is {certificate(plan)}"),
    ]
    if plan.noise == "gaussian" or "svd_lower_bound" not in bounds:
        return lines
    volume, svd = bounds["any_mechanism_lower_bound"], bounds["svd_lower_bound"]
    paper, shape = bounds["paper_upper_bound"], (bounds["rank"], number(bounds["condition"]))
    return [
        *lines,
        ("SVD bound", f"{number(svd, 6)} or more for any strategy"),
        ("volume bound", f"{number(volume, 6)} or more for any private mechanism"),
        ("paper's bound", f"{number(paper, 6)} or less for the best strategy"),
        ("", "from rank r = {} and condition C = {} of the workload".format(*shape)),
    ]
