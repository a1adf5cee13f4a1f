"""Records in a notebook: tables and one drawing each, as a part of somebody else's page.

The module is what `lrm.showing` asks for; all text is escaped in ``elements``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lrm.domain import Domain
from lrm.ledger import Budget
from lrm.plans import Plan
from lrm.plans.comparison import Comparison
from lrm.plans.comparison_table import comparison_columns, comparison_rows, reasons
from lrm.releases import Release
from lrm.report.batches import domain_table, query_table
from lrm.report.elements import Markup, facts, figure, items, paragraph, table
from lrm.report.errors import bound_words
from lrm.report.figures import draw_answers, draw_comparison, draw_errors
from lrm.report.plan_page import plan_page
from lrm.report.release_page import release_page
from lrm.report.rivals import Rival, rivals_of
from lrm.report.style import SNIPPET_CSS
from lrm.showing.spelling import many, number, parameter_words, spell_amount
from lrm.workload import EXPLICIT_QUERIES, AnswerTable, Workload

__all__ = ["page", "snippet"]

DRAWN = 20
"""Answers in the drawing of a release."""


def snippet(record: Any) -> str:
    """The record as HTML that leaves the page around it alone."""
    for kind, draw in _DRAWN.items():
        if isinstance(record, kind):
            return f'<div class="lrm"><style>{SNIPPET_CSS}</style>\n{draw(record)}\n</div>'
    raise TypeError(f"nothing draws a {type(record).__name__}")


def page(record: Any, **choices: Any) -> str:
    """The page of a plan (at ``privacy``) or of a release."""
    return (
        plan_page(record, **choices)
        if isinstance(record, Plan)
        else release_page(record, **choices)
    )


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
    privacy = plan.privacy(1) if plan.noise == "laplace" else plan.privacy(rho=1)
    accuracy = plan.accuracy(privacy)
    typical = number(accuracy.root_mean_squared_error)
    queries, cells = plan.workload.shape
    amount = parameter_words(privacy)
    told = facts(
        [
            ("queries", f"{queries:,} over {many(cells, 'cell', 'cells')}"),
            (
                "mechanism",
                f"{plan.mechanism}, {many(plan.measurement_count, 'measurement', 'measurements')}",
            ),
            (f"error at {amount}", f"{typical} for a typical query"),
            ("protects", plan.unit.words),
            ("plan", plan.digest[:16]),
        ]
    )
    if queries > EXPLICIT_QUERIES:
        return told
    others = sorted(rivals_of(plan, accuracy, trees=False), key=lambda rival: rival.total)
    drawing = draw_errors(Rival(plan.mechanism, accuracy.standard_errors), others, amount)
    caption = "Standard error of every query, sorted for each mechanism by itself; lower is better."
    return Markup(told + paragraph(bound_words(plan)) + figure(drawing, caption))


def _release(release: Release) -> Markup:
    drawn = min(DRAWN, len(release.names))
    caption = (
        f"{many(drawn, 'answer', 'answers')} with 95 % intervals, which cover the noise alone."
    )
    kind = "SIMULATED: it promises nothing. " if release.simulated else ""
    words = f"{kind}{parameter_words(release.privacy)}, for {release.unit.words}."
    return Markup(
        paragraph(words)
        + _answers(release.table())
        + figure(draw_answers(release, 0.95, drawn), caption)
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
    words, amounts = result.unit_words, result.unit_amounts
    best = result.best
    listed = table(
        "Mechanisms on one batch",
        comparison_columns(words),
        comparison_rows(result, amounts),
        ours=None if best is None else best.mechanism,
    )
    without = items(reasons(result)) if reasons(result) else Markup("")
    if best is None or best.plan is None:
        return Markup(listed + without)
    planned = [(one.mechanism, one.plan) for one in result.outcomes if one.plan is not None]
    errors = [(name, plan.expected_squared_error(**amounts)) for name, plan in planned]
    label = f"expected total squared error at {words}"
    drawing = draw_comparison(errors, best.plan.lower_bound(**amounts), label, "comparison")
    return Markup(listed + without + figure(drawing, "Shorter is better; the axis is logarithmic."))


def _budget(budget: Budget) -> Markup:
    return facts(
        [
            ("table", budget.table),
            ("limit", f"{spell_amount(budget.limit)} {budget.accounting.value}"),
            ("spent", spell_amount(budget.spent, "up")),
            ("left", spell_amount(budget.remaining, "down")),
            ("protects", budget.unit.words),
        ]
    )


_DRAWN: dict[type, Callable[[Any], Markup]] = {
    AnswerTable: _answers,
    Budget: _budget,
    Comparison: _comparison,
    Domain: _domain,
    Plan: _plan,
    Release: _release,
    Workload: _workload,
}
