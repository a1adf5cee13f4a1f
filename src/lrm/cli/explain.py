"""``lrm explain``: a plan's error at an epsilon, or the epsilon for an error."""

from typing import TYPE_CHECKING, Any

import click

from lrm.cli.inputs import check_apart, check_output
from lrm.cli.options import (
    amount_options,
    confidence_option,
    force_option,
    json_option,
    limit_option,
    plot_option,
    read_amounts,
)
from lrm.cli.progress import waiting
from lrm.cli.terminal import echo, print_document, print_json

if TYPE_CHECKING:
    from lrm.planning.plan import Plan
    from lrm.privacy.budget import Privacy


@click.command()
@click.argument("plan")
@amount_options
@click.option(
    "--error", type=float, metavar="X", help="Find the least amount for this total squared error."
)
@click.option(
    "--rmse",
    type=float,
    metavar="X",
    help="Find the least amount for this root mean squared error of a count.",
)
@click.option(
    "--meet",
    is_flag=True,
    help="Find the least amount at which answers are within the tolerances of their statements.",
)
@click.option(
    "--expect",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Rows in the denominator of a rate or average; errors are stated as …/n without it.",
)
@click.option(
    "--bound", is_flag=True, help="Also the total error, and how near it is to the least possible."
)
@confidence_option
@limit_option("Number of queries to list, largest error first (10; all with --json).")
@plot_option
@force_option
@json_option
def explain(plan: str, **choices: Any) -> None:
    r"""Show how accurate the answers of PLAN will be, before any data is read.

    Give --epsilon to see the error of every query, or --error or --rmse to find the least
    epsilon with that error. A plan for Gaussian noise takes --rho, or --epsilon
    with --delta, and finds the least rho. Intervals are those of the noise that is drawn,
    and have at least the stated coverage.

    \b
    Example:
      lrm explain plan.lrm --epsilon 0.1
      lrm explain plan.lrm --rmse 50
      lrm explain plan.lrm --meet
      lrm explain plan.lrm --epsilon 0.1 --bound
      lrm explain plan.lrm --epsilon 0.1 --expect 5000
      lrm explain gaussian.lrm --epsilon 1 --delta 1e-9
      lrm explain plan.lrm --epsilon 0.1 --confidence 0.99 --plot errors.svg
    """
    from lrm.planning.plan.file import load_plan
    from lrm.views.choices import met_facts
    from lrm.views.figures import KINDS, errors_drawing
    from lrm.views.plan_document import PlanDetail, plan_document
    from lrm.views.plans import explanation_facts

    plot, limit, confidence = choices["plot"], choices["limit"], choices["confidence"]
    expect = choices["expect"]
    _check_asked(choices)
    check_apart({"--plot": plot}, {"PLAN": plan})
    check_output(plot, force=choices["force"], kinds=KINDS)
    with waiting("reading the plan"):
        loaded = load_plan(plan)
    met = loaded.meets(confidence) if choices["meet"] else None
    privacy = _privacy(loaded, choices) if met is None else met.privacy
    expected = loaded.accuracy(privacy)
    if plot is not None:
        errors_drawing(loaded, expected).save(plot)
    if choices["as_json"]:
        with waiting("errors"):
            facts = explanation_facts(loaded, expected, confidence, limit, expect)
        print_json({"plan": plan, **facts, **({} if met is None else {"meets": met_facts(met)})})
        return
    with waiting("errors"):
        listed = 10 if limit is None else limit
        detail = PlanDetail("errors", listed, choices["bound"], expect)
        document = plan_document(loaded, detail, expected, confidence, met=met)
    print_document(document)
    if plot is not None:
        echo(f"drawn in {plot}")


def _check_asked(choices: dict[str, Any]) -> None:
    amount_names = [
        name for name in ("epsilon", "rho", "error", "rmse") if choices[name] is not None
    ]
    amount_names += ["meet"] if choices["meet"] else []
    if len(amount_names) != 1:
        raise click.UsageError(
            "give one of --epsilon, --error, --rmse or --meet (--rho for Gaussian)"
        )
    if choices["delta"] is not None and amount_names != ["epsilon"]:
        raise click.UsageError("--delta belongs to --epsilon; give both, or --rho alone")


def _privacy(plan: "Plan", choices: dict[str, Any]) -> "Privacy":
    """The guarantee asked for, or the least one with the wanted error."""
    amounts = read_amounts(choices)
    if amounts:
        return plan.privacy(**amounts)
    return plan.privacy_for(choices["error"], rmse=choices["rmse"])
