"""Records in a notebook: tables and one drawing each, as part of a larger page.

The module is what `lrm.rendering` asks for; all text is escaped in ``elements``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from lrm.domain import Domain
from lrm.files.writing import write_text
from lrm.ledger import Budget
from lrm.plans import Plan
from lrm.plans.comparison import Comparison, beside_plan
from lrm.privacy.budget import unit_privacy
from lrm.releases import Release
from lrm.spelling import many
from lrm.views.batches import domain_table, query_table
from lrm.views.budgets import BUDGET_COLUMNS, budget_row
from lrm.views.comparison_page import comparison_parts
from lrm.views.comparisons import comparison_facts, comparison_text
from lrm.views.elements import Markup, facts, paragraph, table
from lrm.views.elements import figure as drawn_figure
from lrm.views.error_section import error_figure
from lrm.views.figures import answers_drawing, table_drawing
from lrm.views.plan_page import plan_page
from lrm.views.release_page import write_release_page
from lrm.views.releases import promise_line
from lrm.views.statement_errors import StatementErrors, kind_lines
from lrm.views.style import SNIPPET_CSS
from lrm.workload import EXPLICIT_QUERIES, AnswerTable, Workload

__all__ = ["compare", "figure", "snippet", "text", "write"]

DRAWN = 20
"""Answers in the drawing of a release."""


def text(record: Comparison) -> str:
    """The record as plain text."""
    return comparison_text(record)


def snippet(record: Any) -> str:
    """The record as HTML that leaves the page around it alone."""
    for kind, draw in _DRAWN.items():
        if isinstance(record, kind):
            return f'<div class="lrm"><style>{SNIPPET_CSS}</style>\n{draw(record)}\n</div>'
    raise TypeError(f"cannot draw a {type(record).__name__}")


def compare(record: Plan, mechanisms: Sequence[str] | None, limit: float | None) -> Comparison:
    """Other mechanisms compared with a plan."""
    return beside_plan(record, mechanisms, limit)


def figure(record: AnswerTable) -> Any:
    """The answers of a table with their intervals, as a figure of Matplotlib."""
    return table_drawing(record).figure


def write(record: Any, path: str | os.PathLike[str], **choices: Any) -> None:
    """Write the page of a plan (at ``privacy``) or of a release."""
    if isinstance(record, Plan):
        write_text(path, plan_page(record, **choices))
    else:
        write_release_page(record, path, **choices)


def _domain(domain: Domain) -> Markup:
    words = f"{many(domain.size, 'cell', 'cells')}; protects {domain.unit.words}."
    return Markup(domain_table(domain) + paragraph(words))


def _workload(workload: Workload) -> Markup:
    queries, cells = workload.shape
    words = f"{many(queries, 'query', 'queries')} over {many(cells, 'cell', 'cells')}."
    if workload.importance is not None:
        words += " Some count for more than others."
    return Markup(paragraph(words) + query_table(workload) + domain_table(workload.domain))


def _plan(plan: Plan) -> Markup:
    accuracy = plan.accuracy(unit_privacy(plan.noise))
    queries, cells = plan.workload.shape
    errors = StatementErrors(plan).at(accuracy)
    fact_list = facts(
        [
            ("queries", f"{queries:,} over {many(cells, 'cell', 'cells')}"),
            (
                "mechanism",
                f"{plan.mechanism}, {many(plan.measurement_count, 'measurement', 'measurements')}",
            ),
            *((f"{name}, {accuracy.privacy.symbols}", value) for name, value in kind_lines(errors)),
            ("protects", plan.unit.words),
            ("plan", plan.digest[:16]),
        ]
    )
    if queries > EXPLICIT_QUERIES:
        return fact_list
    return Markup(fact_list + error_figure(plan, accuracy))


def _release(release: Release) -> Markup:
    drawn = min(DRAWN, len(release.plan.workload.shown))
    caption = (
        f"{many(drawn, 'answer', 'answers')} with 95 % intervals, which cover the noise alone."
    )
    words = f"{promise_line(release)}."
    return Markup(
        paragraph(words)
        + _answers(release.table())
        + drawn_figure(answers_drawing(release, 0.95, drawn).inline("answers"), caption)
    )


def _answers(answers: AnswerTable) -> Markup:
    rows = answers.rows()
    more = len(answers) - len(rows)
    caption = answers.caption + (f"; the first {len(rows)} are shown" if more else "")
    titles = [
        name.replace("_", " ") if name in answers.numbers else name for name in answers.columns
    ]
    return table(caption, titles, rows, words=answers.words)


def _comparison(result: Comparison) -> Markup:
    return Markup("".join(comparison_parts(comparison_facts(result), "comparison")))


def _budget(budget: Budget) -> Markup:
    lines = zip(BUDGET_COLUMNS, budget_row(budget), strict=True)
    return facts([*lines, ("protects", budget.unit.words)])


_DRAWN: dict[type, Callable[[Any], Markup]] = {
    AnswerTable: _answers,
    Budget: _budget,
    Comparison: _comparison,
    Domain: _domain,
    Plan: _plan,
    Release: _release,
    Workload: _workload,
}
