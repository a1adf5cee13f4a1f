"""The facts of a comparison of mechanisms, as text and as JSON."""

from typing import TYPE_CHECKING, Any

from lrm.cli.output import echo, number, print_table
from lrm.cli.plan_facts import certificate

if TYPE_CHECKING:
    from lrm.cli.promises import Promise
    from lrm.plans.comparison import Comparison

__all__ = ["comparison_fields", "print_comparison", "print_without_plan"]


def comparison_fields(result: "Comparison", promise: "Promise") -> dict[str, Any]:
    """A comparison as plain values."""
    rows: list[dict[str, Any]] = []
    for outcome in result.outcomes:
        plan = outcome.plan
        if plan is None:
            rows.append({"mechanism": outcome.mechanism, "reason": outcome.reason})
            continue
        rows.append(
            {
                "mechanism": outcome.mechanism,
                "expected_squared_error": promise.accuracy(plan).squared_error,
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
        **promise.fields,
        "noise": planned.noise if planned else None,
        "queries": planned.workload.shape[0] if planned else None,
        "cells": planned.workload.shape[1] if planned else None,
        "rank": planned.workload_rank if planned else None,
        "lower_bound": promise.accuracy(planned).lower_bound if planned else None,
        "best": result.best.mechanism if result.best else None,
        "mechanisms": rows,
    }


def print_comparison(result: "Comparison", promise: "Promise") -> None:
    """A comparison as a table, and what it comes to."""
    from lrm.plans.comparison_table import comparison_columns, comparison_rows

    columns = comparison_columns(promise.words)
    rows = comparison_rows(result, promise.amounts)
    print_table(columns, rows, words=("mechanism",))
    print_without_plan(result)
    if any(row[4].endswith("*") for row in rows):
        echo("* stopped early, with the best so far")
    if result.best is not None and result.best.plan is not None:
        least = result.best.plan
        bound = number(promise.accuracy(least).lower_bound, 5)
        echo(
            f"no strategy has an error below {bound}:\n"
            f"{result.best.mechanism} is {certificate(least)}"
        )


def print_without_plan(result: "Comparison") -> None:
    """Say why mechanisms have no plan."""
    from lrm.plans.comparison_table import reasons

    for reason in reasons(result):
        echo(reason)
