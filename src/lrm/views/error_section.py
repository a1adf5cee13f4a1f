"""Errors of a batch, query by query and against baselines, as a section of a page."""

from __future__ import annotations

from lrm.accuracy import Accuracy
from lrm.plans import Plan
from lrm.spelling import number
from lrm.views.baselines import BASELINE_COLUMNS, baseline_rows, errors_by_mechanism
from lrm.views.batches import query_label
from lrm.views.elements import Markup, details, figure, paragraph, section, table
from lrm.views.figures import ON_PAGE, errors_drawing
from lrm.views.plans import bound_words, worst_queries
from lrm.workload import EXPLICIT_QUERIES

__all__ = ["error_figure", "error_section"]


def error_section(
    plan: Plan,
    accuracy: Accuracy,
    *,
    confidence: float = 0.95,
    limit: int = 0,
    drawn: bool = True,
) -> Markup:
    """The error of each query, sorted, compared with those of simpler mechanisms.

    Of a batch with too many answers to draw, the bound alone.

    Parameters
    ----------
    plan
        The plan whose errors these are.
    accuracy
        Of the plan, or of a release of it.
    confidence
        Confidence level of the intervals.
    limit
        How many queries are listed with their intervals, largest errors first.
    drawn
        Whether the errors are drawn as well, which takes about a second.
    """
    if plan.workload.shape[0] > EXPLICIT_QUERIES:
        return section("How large the errors are", _bound(plan))
    errors = errors_by_mechanism(plan, accuracy)
    at = accuracy.privacy.symbols
    caption = (
        "Standard error of every query, sorted for each mechanism by itself; lower is better. "
        "A standard error is how far an answer typically lies from the truth."
    )
    curves = Markup("")
    if drawn:
        curves = figure(errors_drawing(errors, at, ON_PAGE).inline("errors"), caption)
    totals = f"Mechanisms on this batch at {at}; typical is the root mean square"
    return section(
        "How large the errors are",
        curves,
        table(totals, BASELINE_COLUMNS, baseline_rows(errors), ours=plan.mechanism),
        _worst(plan, accuracy, confidence, limit),
        _bound(plan),
    )


def _bound(plan: Plan) -> Markup:
    """How near the plan is to the best possible, for those who ask."""
    title = "How near to the least possible error"
    return details(title, "", paragraph(bound_words(plan)), folded=True)


def error_figure(plan: Plan, accuracy: Accuracy) -> Markup:
    """The drawing alone, without baselines that take long."""
    errors = errors_by_mechanism(plan, accuracy, trees=False)
    drawing = errors_drawing(errors, accuracy.privacy.symbols, ON_PAGE)
    caption = "Standard error of every query, sorted for each mechanism by itself; lower is better."
    return figure(drawing.inline("errors"), caption)


def _worst(plan: Plan, accuracy: Accuracy, confidence: float, limit: int) -> Markup:
    if limit == 0:
        return Markup("")
    rows = [
        (query_label(label), number(error), f"± {number(half)}")
        for label, error, half in worst_queries(plan, accuracy, confidence, limit)
    ]
    total = plan.workload.shape[0]
    every = "Every query" if len(rows) == total else f"{len(rows):,} of {total:,} queries"
    columns = ("query", "standard error", f"{100 * confidence:.4g} % interval")
    return table(f"{every}, largest error first", columns, rows)
