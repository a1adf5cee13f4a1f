"""Errors of a batch, query by query and against rivals, as a section of a page."""

from __future__ import annotations

import numpy as np

from lrm.accuracy import Accuracy
from lrm.plans import Plan
from lrm.report.batches import query_label
from lrm.report.elements import Markup, figure, paragraph, section, table
from lrm.report.figures import draw_errors
from lrm.report.rivals import Rival, rivals_of
from lrm.showing.spelling import number, ratio

__all__ = ["bound_words", "error_section"]


def error_section(
    plan: Plan,
    accuracy: Accuracy,
    amount: str,
    *,
    confidence: float = 0.95,
    limit: int = 0,
) -> Markup:
    """The error of each query, sorted, compared with those of simpler mechanisms.

    Parameters
    ----------
    plan
        The plan whose errors these are.
    accuracy
        Of the plan, or of a release of it.
    amount
        The privacy spent, in words.
    confidence
        Confidence level of the intervals.
    limit
        How many queries are listed with their intervals, largest errors first.
    """
    ours = Rival(plan.mechanism, accuracy.standard_errors)
    others = sorted(rivals_of(plan, accuracy), key=lambda rival: rival.total)
    caption = (
        "Standard error of every query, sorted for each mechanism by itself; lower is better. "
        "A standard error is how far an answer typically lies from the truth."
    )
    return section(
        "How large the errors are",
        paragraph(bound_words(plan)),
        figure(draw_errors(ours, others, amount), caption),
        _totals(ours, others, amount),
        _worst(plan, accuracy, confidence, limit),
    )


def bound_words(plan: Plan) -> str:
    """How near a plan is to the best possible, in a sentence."""
    if not plan.exact:
        return "The plan is relaxed: its answers have a bias that is not counted here."
    most = plan.at_most_above_best
    if not np.isfinite(most):
        return "How near this is to the best possible is not known."
    if most <= 1.0005:
        return "No strategy of this kind can have a smaller total error: that is proved."
    return (
        f"The total error is at most {ratio(most)} times the least that any strategy of this kind "
        "can have: that is proved, not estimated."
    )


def _totals(ours: Rival, others: list[Rival], amount: str) -> Markup:
    rows = []
    for rival in [ours, *others]:
        typical = float(np.sqrt(np.mean(rival.errors**2)))
        against = rival.total / ours.total if ours.total > 0 else float("nan")
        worst = float(rival.errors.max())
        rows.append((rival.mechanism, number(typical), number(worst), f"{ratio(against)}×"))
    columns = ("mechanism", "typical error", "largest error", "total squared error")
    caption = f"Mechanisms on this batch at {amount}; typical is the root mean square"
    return table(caption, columns, rows, ours=ours.mechanism)


def _worst(plan: Plan, accuracy: Accuracy, confidence: float, limit: int) -> Markup:
    if limit == 0:
        return Markup("")
    errors = accuracy.standard_errors
    order = np.argsort(-errors, kind="stable")[:limit]
    workload = plan.workload
    rows = [
        (
            query_label(workload.labels[int(i)]),
            number(float(errors[i])),
            f"± {number(float(half))}",
        )
        for i, half in zip(order, accuracy.half_widths(confidence, order.tolist()), strict=True)
    ]
    every = (
        "Every query" if len(order) == len(errors) else f"{len(order):,} of {len(errors):,} queries"
    )
    columns = ("query", "standard error", f"{100 * confidence:.4g} % interval")
    return table(f"{every}, largest error first", columns, rows)
