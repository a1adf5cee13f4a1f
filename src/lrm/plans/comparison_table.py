"""A comparison of mechanisms as a table of text, for terminals, sessions and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lrm.privacy.budget import Amount
from lrm.showing.spelling import number, ratio, seconds, text_table

if TYPE_CHECKING:
    from lrm.plans.comparison import Comparison

__all__ = ["comparison_columns", "comparison_rows", "comparison_text", "reasons"]


def comparison_columns(amounts: str) -> tuple[str, ...]:
    """Titles of the columns, for errors at amounts such as ``ε = 1``."""
    return ("mechanism", f"error at {amounts}", "ratio to best", "measurements", "time")


def comparison_rows(result: Comparison, amounts: Mapping[str, Amount]) -> list[tuple[str, ...]]:
    """One row per mechanism, a search that was stopped early marked by a star."""
    rows: list[tuple[str, ...]] = []
    for outcome in result.outcomes:
        plan = outcome.plan
        if plan is None:
            rows.append((outcome.mechanism, "—", "—", "—", "—"))
            continue
        stopped = "*" if plan.details.get("interrupted") else ""
        error = plan.accuracy(plan.privacy(**amounts)).squared_error
        rows.append(
            (
                outcome.mechanism,
                number(error, 5),
                ratio(result.ratio_to_best(outcome)),
                f"{plan.measurement_count:,}",
                seconds(plan.details["seconds"]) + stopped,
            )
        )
    return rows


def reasons(result: Comparison) -> list[str]:
    """Why mechanisms have no plan."""
    return [
        f"{outcome.mechanism} has no plan: {outcome.reason}"
        for outcome in result.outcomes
        if outcome.plan is None
    ]


def comparison_text(result: Comparison) -> str:
    """The table of a comparison in plain text, at ε = 1 or ρ = 1."""
    columns = comparison_columns(result.unit_words)
    rows = comparison_rows(result, result.unit_amounts)
    return "\n".join([text_table(columns, rows, words=("mechanism",)), *reasons(result)])
