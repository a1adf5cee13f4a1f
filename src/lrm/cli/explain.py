"""``lrm explain``: a plan's error at an epsilon, or the epsilon for an error."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import json_option, plot_option

if TYPE_CHECKING:
    from lrm.plans import Plan


@click.command(short_help="The error of a plan, or the epsilon for an error.")
@click.argument("plan")
@click.option("--epsilon", metavar="AMOUNT", help="Exact, such as 0.1 or 1/3.")
@click.option(
    "--error", type=float, metavar="X", help="Find the epsilon for this total squared error."
)
@click.option(
    "--rmse", type=float, metavar="X", help="Find the epsilon for this error of a typical query."
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
    epsilon whose error is as wanted. Intervals are exact for the noise, which is a weighted
    sum of Laplace variables.

    \b
    Example:
      lrm explain plan.lrm --epsilon 0.1
      lrm explain plan.lrm --rmse 50
      lrm explain plan.lrm --epsilon 0.1 --confidence 0.99 --plot errors.svg
    """
    from lrm.cli.output import print_json
    from lrm.cli.output_files import check_apart, check_output
    from lrm.plan_file import load_plan
    from lrm.plots import KINDS, plot_query_errors

    plot, limit = choices["plot"], choices["limit"]
    given = [name for name in ("epsilon", "error", "rmse") if choices[name] is not None]
    if len(given) != 1:
        raise click.UsageError("give one of --epsilon, --error or --rmse")
    check_apart({"--plot": plot}, {"PLAN": plan})
    check_output(plot, kinds=KINDS)
    loaded = load_plan(plan)
    epsilon = _epsilon(loaded, choices)
    if plot is not None:
        plot_query_errors(loaded, epsilon, plot)
    if choices["as_json"]:
        print_json({"plan": plan, **_fields(loaded, epsilon, choices["confidence"], limit)})
        return
    _print(loaded, epsilon, choices["confidence"], 10 if limit is None else limit)
    if plot is not None:
        click.echo(f"drawn in {plot}")


def _epsilon(plan: "Plan", choices: dict[str, Any]) -> Fraction:
    from lrm.amounts import parse_amount
    from lrm.errors import BudgetError

    if choices["epsilon"] is not None:
        return parse_amount(choices["epsilon"], "epsilon")
    wanted = choices["error"]
    if wanted is None:
        rmse = choices["rmse"]
        if not (math.isfinite(rmse) and rmse > 0):
            raise BudgetError(f"a wanted error must be a number above 0, but {rmse} came")
        wanted = rmse**2 * plan.workload.shape[0]
    return plan.epsilon_for(wanted)


def _bounds(plan: "Plan", epsilon: Fraction) -> dict[str, float]:
    """The bounds of the paper at an epsilon, with its C and r."""
    scale = float(epsilon) ** 2
    spectrum = plan.spectrum
    return {
        "rank": spectrum.rank,
        "condition": spectrum.condition,
        "lower_bound": plan.lower_bound(epsilon),
        "svd_lower_bound": spectrum.lower_bound / scale,
        "any_mechanism_lower_bound": spectrum.any_mechanism_lower_bound / scale,
        "paper_upper_bound": spectrum.upper_bound / scale,
        "paper_volume_bound_as_printed": spectrum.volume_bound_as_printed / scale,
    }


def _worst(plan: "Plan", epsilon: Fraction, confidence: float, limit: int | None) -> list[Any]:
    """The queries of largest error: name, standard error, half-width of the interval.

    Empty where there are too many queries to hold a number for each.
    """
    import numpy as np

    from lrm.noise_sums import laplace_sum_half_widths
    from lrm.workload import EXPLICIT_QUERIES

    if plan.workload.shape[0] > EXPLICIT_QUERIES:
        return []
    errors = plan.standard_errors(epsilon)
    order = np.argsort(-errors, kind="stable")[:limit]
    if limit is None or len(order) == len(errors):
        half = plan.half_widths(epsilon, confidence)[order]
    else:  # quantiles cost time: those shown are enough
        rows = np.vstack([plan.rebuild.rows(i, i + 1) for i in order]) if len(order) else None
        scale = plan.sensitivity / float(epsilon)
        half = np.zeros(0) if rows is None else scale * laplace_sum_half_widths(rows, confidence)
    names = plan.workload.names
    return [
        (names[int(i)], float(errors[i]), float(width))
        for i, width in zip(order, half, strict=True)
    ]


def _fields(
    plan: "Plan", epsilon: Fraction, confidence: float, limit: int | None
) -> dict[str, Any]:
    from lrm.amounts import format_amount

    error = plan.expected_squared_error(epsilon)
    queries = plan.workload.shape[0]
    return {
        "mechanism": plan.mechanism,
        "epsilon": format_amount(epsilon),
        "confidence": confidence,
        "expected_squared_error": error,
        "root_mean_squared_error": math.sqrt(error / queries),
        "at_most_above_best": plan.at_most_above_best,
        "bounds": _bounds(plan, epsilon),
        "queries": [
            {"query": name, "standard_error": deviation, "half_width": half}
            for name, deviation, half in _worst(plan, epsilon, confidence, limit)
        ],
    }


def _print(plan: "Plan", epsilon: Fraction, confidence: float, limit: int) -> None:
    from lrm.cli.output import number, print_facts, print_table, ratio

    facts = _fields(plan, epsilon, confidence, limit)
    bounds = facts["bounds"]
    queries = plan.workload.shape[0]
    total, typical = facts["expected_squared_error"], facts["root_mean_squared_error"]
    volume, svd = bounds["any_mechanism_lower_bound"], bounds["svd_lower_bound"]
    paper, shape = bounds["paper_upper_bound"], (bounds["rank"], number(bounds["condition"]))
    print_facts(
        [
            ("plan", f"{queries:,} queries by {plan.mechanism}"),
            ("epsilon", facts["epsilon"]),
            ("total error", f"{number(total, 6)} (expected, squared)"),
            ("a query's error", f"{number(typical)} (root mean square)"),
            ("best possible", f"{number(bounds['lower_bound'], 6)} or more for any strategy, so"),
            ("", f"this plan is at most {ratio(plan.at_most_above_best)}× above the best possible"),
            ("SVD bound", f"{number(svd, 6)} or more for any strategy"),
            ("volume bound", f"{number(volume, 6)} or more for any private mechanism"),
            ("paper's bound", f"{number(paper, 6)} or less for the best strategy"),
            ("", "from rank r = {} and condition C = {} of the workload".format(*shape)),
        ]
    )
    rows = [(name, number(error), f"±{number(half)}") for name, error, half in _rows(facts)]
    if rows:
        columns = ("query", "standard error", f"{100 * confidence:.4g} % interval")
        print_table(columns, rows, words=("query",))
    if not rows:
        click.echo(f"none of {queries:,} queries listed")
    elif len(rows) < queries:
        click.echo(f"{len(rows):,} of {queries:,} queries shown, the largest errors first")


def _rows(facts: dict[str, Any]) -> list[tuple[str, float, float]]:
    return [(row["query"], row["standard_error"], row["half_width"]) for row in facts["queries"]]
