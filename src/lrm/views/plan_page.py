"""The page of a plan: what it will answer, how well, and what it will guarantee."""

from __future__ import annotations

from collections.abc import Sequence

from lrm.plans import Plan
from lrm.privacy.budget import Privacy
from lrm.spelling import number
from lrm.views.batches import MOST_LISTED, batch_section
from lrm.views.elements import (
    Markup,
    facts,
    items,
    key_numbers,
    paragraph,
    promise,
    render_block,
    section,
)
from lrm.views.error_section import error_section
from lrm.views.page import page
from lrm.views.plans import title
from lrm.views.promises import NOT_PROMISED
from lrm.views.statement_errors import (
    StatementError,
    StatementErrors,
    error_table,
    typical_count,
    usable_figure,
    usable_sentence,
)
from lrm.views.verdicts import USABLE

__all__ = ["plan_page"]


def plan_page(plan: Plan, privacy: Privacy, confidence: float = 0.95, limit: int = 100) -> str:
    """The page of a plan at a guarantee that it could keep.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> "not guaranteed" in plan_page(plan, plan.privacy(epsilon=1))
    True
    """
    expected = plan.accuracy(privacy)
    queries, cells = plan.workload.shape
    errors = StatementErrors(plan).at(expected, confidence)
    numbers = [
        ("queries", f"{queries:,}", f"over {cells:,} cells"),
        ("would cost", privacy.symbols, privacy.variant),
    ]
    typical = typical_count(errors)
    if typical is not None:
        numbers.append(("error of a count", number(typical), "root mean square"))
    judged = [error for error in errors if error.relative is not None]
    if judged:
        usable = sum(error.verdict == "usable" for error in judged)
        within = f"within ±{100 * USABLE:.0f} % of their expected size"
        numbers.append(("usable tables", f"{usable} of {len(judged)}", within))
    listed = error_table(errors[:MOST_LISTED], confidence, "Tables, with the error of each")
    words = privacy.sentences(plan.unit)
    sections = [
        key_numbers(numbers),
        batch_section(plan.workload, listed if errors else None),
        _usable(errors, privacy),
        error_section(plan, expected, confidence=confidence, limit=limit),
        section("What would be guaranteed", promise(words)),
        section("What is not guaranteed", items(NOT_PROMISED)),
        section("The plan", _details(plan)),
    ]
    lead = "How a batch of counting queries will be answered. Made without data; costs no privacy."
    heading = title(plan.workload, "query", "queries")
    return page("Plan", heading, lead, sections, f"plan {plan.digest[:16]}")


def _usable(errors: Sequence[StatementError], privacy: Privacy) -> Markup:
    """How many tables are usable, at this guarantee and at others."""
    sentence, drawing = usable_sentence(errors, privacy), usable_figure(errors, privacy)
    if not sentence:
        return Markup("")
    body = [paragraph(f"{sentence[0].upper()}{sentence[1:]}.")]
    body += [] if drawing is None else [render_block(drawing)]
    return section("How many tables are usable", *body)


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
