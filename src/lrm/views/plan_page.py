"""The page of a plan: what it will answer, how well, and what it will guarantee."""

from __future__ import annotations

from collections.abc import Sequence

from lrm.files.spelling import number
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.privacy.budget import NOT_PROMISED, Privacy
from lrm.queries.workload import EXPLICIT_QUERIES
from lrm.views.baselines import baseline_table, errors_by_mechanism
from lrm.views.batches import MOST_LISTED, batch_section
from lrm.views.blocks import Block, Document, Facts, Numbers, Prose
from lrm.views.html import page
from lrm.views.plans import bound_words, noise_words, title, worst_blocks
from lrm.views.statement_errors import (
    StatementError,
    StatementErrors,
    error_table,
    typical_count,
    usable_figure,
    usable_sentence,
)
from lrm.views.verdicts import USABLE


def plan_page(plan: Plan, privacy: Privacy, confidence: float = 0.95, limit: int = 100) -> str:
    """The page of a plan at a guarantee that it could keep.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> "not guaranteed" in plan_page(plan, plan.privacy(epsilon=1))
    True
    """
    expected = plan.accuracy(privacy)
    errors = StatementErrors(plan).at(expected, confidence)
    listed = error_table(errors[:MOST_LISTED], confidence, "Tables, with the error of each")
    worst = worst_blocks(plan, expected, confidence, limit)
    document = Document(
        title(plan.workload, "query", "queries"),
        (_key(plan, errors, privacy),),
        "How a batch of counting queries will be answered. Made without data; costs no privacy.",
        (
            batch_section(plan, listed if errors else None),
            *_usable(errors, privacy),
            error_section(plan, expected, worst),
            Document(
                "What would be guaranteed", (Prose(tuple(privacy.sentences(plan.unit)), "promise"),)
            ),
            Document("What is not guaranteed", (Prose(NOT_PROMISED, "list"),)),
            Document("The plan", _details(plan)),
        ),
    )
    return page(document, "Plan", f"plan {plan.digest[:16]}")


def error_section(plan: Plan, accuracy: Accuracy, listed: Sequence[Block] = ()) -> Document:
    """Errors compared with those of simpler mechanisms, and with the least possible.

    Of a batch with too many answers to hold all errors, the bound alone.

    ``accuracy`` is of the plan, or of a release of it; ``listed`` are errors query by query.
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
    queries, cells = plan.workload.shape
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
    return Numbers(tuple(numbers))


def _usable(errors: Sequence[StatementError], privacy: Privacy) -> list[Document]:
    """How many tables are usable, at this guarantee and at others."""
    sentence, drawing = usable_sentence(errors, privacy), usable_figure(errors, privacy)
    if not sentence:
        return []
    drawn = () if drawing is None else (drawing,)
    words = Prose((f"{sentence[0].upper()}{sentence[1:]}.",))
    return [Document("How many tables are usable", (words, *drawn))]


def _details(plan: Plan) -> tuple[Block, ...]:
    measured = plan.measured
    how = (
        "The measurements are combinations of cells, chosen so that the answers can be computed "
        "from few of them with little noise."
    )
    if measured.body is not None:
        how += (
            " The noise is shaped to the batch: small in directions in which no record can move "
            "the measurements far."
        )
    pairs = (
        ("mechanism", plan.mechanism),
        ("measurements", f"{plan.measurement_count:,}"),
        ("noise", noise_words(plan)),
        ("cells distinguished", f"{measured.merged_cell_count:,} of {measured.cell_count:,}"),
        ("sensitivity", number(plan.sensitivity)),
        ("records", f"at most {plan.max_records:,} in a table"),
        ("digest", plan.digest),
    )
    return (Prose((how,)), Facts(pairs))
