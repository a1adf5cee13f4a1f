"""The page of a comparison, from what ``lrm compare --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lrm.spelling import number
from lrm.views.comparisons import (
    amount_words,
    comparison_rows,
    comparisons_in,
    planned_rows,
    reasons,
)
from lrm.views.elements import Markup, figure, items, key_numbers, paragraph, section, table
from lrm.views.figures import ON_PAGE, comparison_drawing
from lrm.views.page import page

__all__ = ["comparison_page", "comparison_parts"]


def comparison_page(facts: Mapping[str, Any]) -> str:
    """The page of a comparison, or of Laplace beside Gaussian noise."""
    parts = comparisons_in(facts)
    workload = str(facts.get("workload") or "a batch")
    sections = [
        _key(facts, parts),
        *(_section(title, part) for title, part in parts),
        section("How to read this", items(_READING)),
    ]
    lead = "Several mechanisms on one batch of queries. Made without data; costs no privacy."
    return page("Comparison", f"Mechanisms for {workload}", lead, sections)


_READING = (
    "The error is the expected squared error, summed over the batch.",
    "With Laplace noise it falls with the square of ε, with Gaussian noise in proportion to ρ.",
    "Ratios between mechanisms of one noise do not depend on the budget.",
    "The bound holds for every strategy that measures combinations of cells with such noise.",
)


def _key(facts: Mapping[str, Any], parts: Sequence[tuple[str, dict[str, Any]]]) -> Markup:
    less = facts.get("less_error")
    title, part = parts[1] if less == "gaussian" and len(parts) > 1 else parts[0]
    best = next(iter(planned_rows(part)), None)
    cells = f"over {part['cells']:,} cells" if isinstance(part.get("cells"), int) else ""
    numbers = []
    if isinstance(part.get("queries"), int):
        numbers.append(("queries", f"{part['queries']:,}", cells))
    if best is not None:
        error = number(float(best["expected_squared_error"]), 5)
        numbers.append(("least error", error, f"{best['mechanism']}, at {amount_words(part)}"))
    if part.get("lower_bound"):
        bound = number(float(part["lower_bound"]), 5)
        numbers.append(("best possible", bound, "or more, for any strategy"))
    if less is not None and len(parts) > 1:
        numbers.append(("less error with", title, "at equal ε"))
    return key_numbers(numbers)


def _section(title: str, part: Mapping[str, Any]) -> Markup:
    words = f"Expected total squared error at {amount_words(part)}."
    name = title.split(maxsplit=1)[0].lower()
    return section(title, paragraph(words), *comparison_parts(part, name))


def comparison_parts(part: Mapping[str, Any], name: str) -> list[Markup]:
    """The drawing and the table of a comparison, and why some mechanisms have no plan."""
    planned = planned_rows(part)
    body = [] if planned else [paragraph("No mechanism has a plan for this batch.")]
    if planned:
        caption = "Shorter is better; the axis is logarithmic. Beside each bar: times the least."
        drawing = comparison_drawing(part, ON_PAGE)
        stopped = "; * stopped early" if any(row.get("interrupted") for row in planned) else ""
        columns, rows = comparison_rows(part, planned)
        listed = f"Mechanisms, least error first{stopped}"
        body += [
            figure(drawing.inline(name), caption),
            table(listed, columns, rows, ours=rows[0][0]),
        ]
    if len(planned) < len(part["mechanisms"]):
        body += [Markup("<h3>Without a plan</h3>"), items(reasons(part))]
    return body
