"""The page of a plan: what it will answer, how well, and what it will promise."""

from __future__ import annotations

from lrm.plans import Plan
from lrm.privacy.budget import Privacy
from lrm.spelling import number
from lrm.views.batches import batch_section
from lrm.views.elements import Markup, facts, items, key_numbers, paragraph, promise, section
from lrm.views.error_section import error_section
from lrm.views.page import page
from lrm.views.plans import title
from lrm.views.promises import NOT_PROMISED
from lrm.workload import EXPLICIT_QUERIES

__all__ = ["plan_page"]


def plan_page(plan: Plan, privacy: Privacy, confidence: float = 0.95, limit: int = 100) -> str:
    """The page of a plan at a promise that it could keep.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> "not promised" in plan_page(plan, plan.privacy(epsilon=1))
    True
    """
    expected = plan.accuracy(privacy)
    amount = privacy.symbols
    queries, cells = plan.workload.shape
    # Of too many queries to list, no error is computed for each.
    errors = None if queries > EXPLICIT_QUERIES else expected.standard_errors
    typical = number(expected.root_mean_squared_error)
    numbers = [
        ("queries", f"{queries:,}", f"over {cells:,} cells"),
        ("would cost", amount, privacy.variant),
        ("typical error", typical, "root mean square of a query"),
    ]
    if errors is not None:
        numbers.append(("largest error", number(float(errors.max())), "standard error of a query"))
    words = privacy.sentences(plan.unit)
    sections = [
        key_numbers(numbers),
        batch_section(plan.workload, errors),
        error_section(plan, expected, confidence=confidence, limit=limit),
        section("What would be promised", promise(words)),
        section("What is not promised", items(NOT_PROMISED)),
        section("The plan", _details(plan)),
    ]
    lead = "How a batch of counting queries will be answered. Made without data; costs no privacy."
    heading = title(plan.workload, "query", "queries")
    return page("Plan", heading, lead, sections, f"plan {plan.digest[:16]}")


def _details(plan: Plan) -> Markup:
    measured = plan.measured
    noise = "with discrete Laplace noise on each"
    if plan.noise == "gaussian":
        noise = "with discrete Gaussian noise on each"
    elif measured.body is not None:
        noise = f"with noise shaped by {measured.body.words}"
    pairs = [
        ("mechanism", plan.mechanism),
        ("measurements", f"{plan.measurement_count:,}, {noise}"),
        ("cells distinguished", f"{measured.merged_cell_count:,} of {measured.cell_count:,}"),
        ("sensitivity", number(plan.sensitivity)),
        ("records", f"at most {plan.max_records:,} in a table"),
        ("digest", plan.digest),
    ]
    how = (
        "The measurements are combinations of cells, chosen so that the answers can be computed "
        "from few of them with little noise."
    )
    return Markup(paragraph(how) + facts(pairs))
