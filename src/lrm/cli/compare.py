"""``lrm compare``: every mechanism on one workload."""

from typing import TYPE_CHECKING, Any

import click

from lrm.cli.options import chosen_mechanisms, json_option, plot_option, seed_option

if TYPE_CHECKING:
    from fractions import Fraction

    from lrm.comparison import Comparison
    from lrm.workload import Workload


@click.command(short_help="All mechanisms on one workload, side by side.")
@click.argument("workload")
@click.option(
    "--epsilon", metavar="AMOUNT", default="1", show_default=True, help="At which to state errors."
)
@click.option(
    "--mechanisms",
    metavar="A,B,…",
    callback=chosen_mechanisms,
    help="Which, separated by commas; all by default.",
)
@seed_option
@click.option(
    "--effort",
    type=click.Choice(["quick", "normal", "thorough"]),
    default="normal",
    show_default=True,
    help="How long best looks.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End each solver with the best so far.",
)
@plot_option
@json_option
def compare(workload: str, epsilon: str, plot: str | None, **choices: Any) -> None:
    r"""Plan WORKLOAD (a file or a family, see `lrm plan`) with every mechanism.

    Tells the expected total squared error of each, its ratio to the least of them, the
    number of measurements, and how long it took. A mechanism that cannot run on a workload of
    this size is listed with its reason.

    \b
    Example:
      lrm compare wrange:64x128
      lrm compare workload.csv --epsilon 0.1 --plot comparison.svg
      lrm compare prefix:1024 --mechanisms best,wavelet,hierarchical --json
    """
    from lrm.amounts import parse_amount
    from lrm.cli.output import print_json
    from lrm.cli.output_files import check_apart, check_output
    from lrm.plots import KINDS, plot_comparison
    from lrm.workload_file import read_workload

    amount = parse_amount(epsilon, "epsilon")
    check_apart({"--plot": plot}, {"WORKLOAD": workload})
    check_output(plot, kinds=KINDS)
    batch = read_workload(workload)
    result = run_contest(batch, **{name: choices[name] for name in _SOLVING})
    if plot is not None:
        plot_comparison(result, amount, plot)
    if choices["as_json"]:
        print_json({"workload": workload, **comparison_fields(result, amount), "plot": plot})
        return
    queries, cells = batch.shape
    click.echo(f"{workload}: {queries:,} queries over {cells:,} cells")
    print_comparison(result, amount)
    if plot is not None:
        click.echo(f"drawn in {plot}")


_SOLVING = ("mechanisms", "seed", "effort", "time_limit")


def run_contest(
    batch: "Workload",
    *,
    mechanisms: tuple[str, ...],
    seed: int = 0,
    effort: str = "normal",
    time_limit: float | None = None,
) -> "Comparison":
    """Try the mechanisms one after the other, each under its own bar."""
    from lrm.cli.progress import Watch
    from lrm.comparison import Comparison, Contest

    contest = Contest(batch)
    outcomes = []
    for name in mechanisms:
        options = {"effort": effort} if name == "best" else {}
        with Watch(name, time_limit) as on_step:
            outcomes.append(contest.enter(name, seed=seed, on_step=on_step, options=options))
    return Comparison(tuple(outcomes))


def comparison_fields(result: "Comparison", epsilon: "Fraction") -> dict[str, Any]:
    """A comparison as plain values."""
    from lrm.amounts import format_amount

    rows: list[dict[str, Any]] = []
    for outcome in result.outcomes:
        plan = outcome.plan
        if plan is None:
            rows.append({"mechanism": outcome.mechanism, "reason": outcome.reason})
            continue
        rows.append(
            {
                "mechanism": outcome.mechanism,
                "expected_squared_error": plan.expected_squared_error(epsilon),
                "ratio_to_best": result.ratio_to_best(outcome),
                "measurements": plan.rank,
                "sensitivity": plan.sensitivity,
                "seconds": plan.details["seconds"],
                "converged": plan.details.get("converged"),
                "interrupted": plan.details.get("interrupted"),
            }
        )
    planned = result.best.plan if result.best else None
    return {
        "epsilon": format_amount(epsilon),
        "queries": planned.workload.shape[0] if planned else None,
        "cells": planned.workload.shape[1] if planned else None,
        "rank": planned.spectrum.rank if planned else None,
        "lower_bound": planned.lower_bound(epsilon) if planned else None,
        "best": result.best.mechanism if result.best else None,
        "mechanisms": rows,
    }


def print_comparison(result: "Comparison", epsilon: "Fraction") -> None:
    """A comparison as a table, and what it comes to."""
    from lrm.amounts import format_amount
    from lrm.cli.output import number, print_table, ratio, seconds

    shown = format_amount(epsilon)
    columns = ("mechanism", f"error at ε = {shown}", "ratio to best", "measurements", "time")
    rows = []
    for outcome in result.outcomes:
        plan = outcome.plan
        if plan is None:
            rows.append((outcome.mechanism, "—", "—", "—", "—"))
            continue
        stopped = "*" if plan.details.get("interrupted") else ""
        rows.append(
            (
                outcome.mechanism,
                number(plan.expected_squared_error(epsilon), 5),
                ratio(result.ratio_to_best(outcome)),
                f"{plan.rank:,}",
                seconds(plan.details["seconds"]) + stopped,
            )
        )
    print_table(columns, rows, words=("mechanism",))
    for outcome in result.outcomes:
        if outcome.plan is None:
            click.echo(f"{outcome.mechanism} has no plan: {outcome.reason}")
    if any(row[4].endswith("*") for row in rows):
        click.echo("* stopped early, with the best so far")
    if result.best is not None and result.best.plan is not None:
        least = result.best.plan
        click.echo(
            f"no strategy has an error below {number(least.lower_bound(epsilon), 5)}:\n"
            f"{result.best.mechanism} is at most {ratio(least.at_most_above_best)}× above the "
            "best possible"
        )
