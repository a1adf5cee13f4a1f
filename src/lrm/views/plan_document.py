"""The document of a plan, in the detail that a page, a notebook or a command has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lrm.files.spelling import many, number, sentence
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.planning.plan.tolerances import Met
from lrm.privacy.budget import NOT_PROMISED, Privacy
from lrm.privacy.norms import unit_privacy
from lrm.queries.workload import EXPLICIT_QUERIES
from lrm.views.baselines import baseline_table, errors_by_mechanism
from lrm.views.batches import MOST_LISTED, batch_section
from lrm.views.blocks import Block, Document, Facts, Numbers, Prose, apart, said
from lrm.views.choices import met_blocks
from lrm.views.derived import expected_blocks
from lrm.views.html import page
from lrm.views.plans import (
    bound_lines,
    bound_words,
    cell_words,
    error_lines,
    plan_lines,
    title,
    worst_blocks,
)
from lrm.views.statement_errors import (
    StatementError,
    StatementErrors,
    error_table,
    kind_lines,
    typical_count,
    usable_figure,
    usable_sentence,
)
from lrm.views.verdicts import WITHIN


@dataclass(frozen=True)
class PlanDetail:
    """How much of a plan a document has, and for whom."""

    # Everything; what a notebook shows; how it was made; or its errors at a guarantee.
    kind: Literal["page", "notebook", "facts", "errors"] = "page"
    queries: int = 100  # that are listed one by one, the largest errors first
    bound: bool = False  # whether errors are compared with the least that is possible
    expect: float | None = None  # rows of a denominator, where statements do not state them


PAGE = PlanDetail()


def plan_document(  # noqa: PLR0913 - what may be asked for
    plan: Plan,
    detail: PlanDetail = PAGE,
    accuracy: Accuracy | None = None,
    confidence: float = 0.95,
    *,
    met: Met | None = None,
    more: Sequence[Block] = (),
) -> Document:
    """A plan in some detail, with its errors at a guarantee: at ε = 1 or ρ = 1 by default.

    ``accuracy`` is that at another guarantee, ``met`` are its tolerances and how they are met,
    and ``more`` stands at the end.
    """
    tolerances = [] if met is None else met_blocks(met)
    warned = said(plan.warnings, "warning")
    if detail.kind == "facts":
        digest = ("digest", plan.digest[:16])
        return apart([Facts((*plan_lines(plan), digest)), *warned], tolerances, more)
    if accuracy is None:
        accuracy = plan.accuracy(unit_privacy(plan.noise)).nominal
    privacy = accuracy.privacy
    ratios = plan.statement_ratios if detail.kind == "errors" else None
    errors = StatementErrors(plan, ratios).at(accuracy, confidence, detail.expect)
    if detail.kind == "notebook":
        return apart(_in_short(plan, errors, privacy))
    usable = usable_sentence(errors, privacy)
    worst = worst_blocks(plan, accuracy, confidence, detail.queries)
    if detail.kind == "errors":
        bounds = bound_lines(plan, accuracy) if detail.bound else []
        return apart(
            [Facts((*error_lines(plan, accuracy), *kind_lines(errors), *bounds))],
            tolerances,
            [error_table(errors, confidence)] if len(errors) > 1 else [],
            said([usable]),
            worst,
            expected_blocks(plan, accuracy, confidence, detail.expect),
        )
    listed = error_table(errors[:MOST_LISTED], confidence, "Tables, with the error of each")
    guarantee = Prose(tuple(privacy.sentences(plan.unit)), "promise")
    figure = usable_figure(errors, privacy)
    usable_blocks = (*said([sentence(usable)]), *([figure] if figure else []))
    return Document(
        title(plan.workload, "query", "queries"),
        (_key(plan, errors, privacy), *warned),
        "How a batch of counting queries will be answered. Made without data; costs no privacy.",
        (
            batch_section(plan, listed if errors else None),
            *([Document("How many tables are usable", usable_blocks)] if usable else []),
            _error_section(plan, accuracy, worst),
            Document("What would be guaranteed", (guarantee,)),
            Document("What is not guaranteed", (Prose(NOT_PROMISED, "list"),)),
            Document("The plan", _details(plan)),
        ),
    )


def plan_page(plan: Plan, privacy: Privacy, confidence: float = 0.95, limit: int = 100) -> str:
    """The page of a plan at a guarantee that it could keep.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> "not guaranteed" in plan_page(plan, plan.privacy(epsilon=1))
    True
    """
    document = plan_document(plan, PlanDetail(queries=limit), plan.accuracy(privacy), confidence)
    return page(document, "Plan", f"plan {plan.digest[:16]}")


def _in_short(plan: Plan, errors: Sequence[StatementError], privacy: Privacy) -> list[Block]:
    """What the plan is of, and its errors at a guarantee where they are not long to read."""
    queries, at = plan.workload.shape[0], privacy.symbols
    measurements = many(plan.measurement_count, "measurement", "measurements")
    lines = (
        ("queries", f"{queries:,} over {cell_words(plan)}"),
        ("mechanism", f"{plan.mechanism}, {measurements}"),
        *((f"{name}, {at}", value) for name, value in kind_lines(errors)),
        ("protects", plan.unit.words),
        ("plan", plan.digest[:16]),
    )
    if len(errors) < 2 or queries > EXPLICIT_QUERIES:
        return [Facts(lines)]
    return [Facts(lines), error_table(errors, 0.95, f"Tables, with the error of each at {at}")]


def _error_section(plan: Plan, accuracy: Accuracy, listed: Sequence[Block]) -> Document:
    """Errors compared with those of simpler mechanisms, and with the least possible.

    Of a batch with too many answers to hold all errors, the bound alone.
    """
    bound = Document(
        "How near to the least possible error", (Prose((bound_words(plan),)),), folded=True
    )
    blocks: list[Block] = []
    if plan.workload.shape[0] <= EXPLICIT_QUERIES:
        errors = errors_by_mechanism(plan, accuracy)
        blocks = [baseline_table(plan, errors, accuracy.privacy.symbols), *listed]
    return Document("How large the errors are", tuple(blocks), parts=(bound,))


def _key(plan: Plan, errors: Sequence[StatementError], privacy: Privacy) -> Numbers:
    numbers = [
        ("queries", f"{plan.workload.shape[0]:,}", f"over {cell_words(plan)}"),
        ("would cost", privacy.symbols, privacy.variant),
    ]
    typical = typical_count(errors)
    if typical is not None:
        numbers.append(("error of a count", number(typical), "root mean square"))
    judged = [error for error in errors if error.relative is not None]
    if judged:
        usable = sum(error.verdict == "usable" for error in judged)
        entry = f"{usable} of {len(judged)}", f"{WITHIN} of their expected size"
        numbers.append(("usable tables", *entry))
    return Numbers(tuple(numbers))


def _details(plan: Plan) -> tuple[Block, ...]:
    how = (
        "The measurements are combinations of cells, chosen so that the answers can be computed "
        "from few of them with little noise."
    )
    if plan.measured.body is not None:
        how += (
            " The noise is shaped to the batch: small in directions in which no record can move "
            "the measurements far."
        )
    return (Prose((how,)), Facts((*plan_lines(plan), ("digest", plan.digest))))
