"""Records as text and in notebooks: each has one document, which is laid out in either form."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from lrm.domain import Domain
from lrm.files.spelling import many
from lrm.files.writing import write_text
from lrm.ledger import Budget
from lrm.planning.plan import Plan
from lrm.planning.plan.comparison import Comparison
from lrm.privacy.budget import unit_privacy
from lrm.queries.workload import EXPLICIT_QUERIES, AnswerTable, Workload
from lrm.queries.workload.frames import AnswerFrame
from lrm.releases import Release
from lrm.releases.synthetic import SyntheticRows
from lrm.views import html
from lrm.views.answers import StatementTable, frame_table, statement_table
from lrm.views.batches import domain_blocks, query_table
from lrm.views.blocks import Block, Document, Facts, Prose, plain_table
from lrm.views.budgets import budget_lines
from lrm.views.comparisons import comparison_blocks, comparison_facts
from lrm.views.figures import Drawing, frame_drawing, table_drawing
from lrm.views.outputs import write_export
from lrm.views.outputs.export import Export
from lrm.views.plan_page import plan_page
from lrm.views.release_page import answers_section, write_release_page
from lrm.views.rows_page import write_rows_page
from lrm.views.shapes import statement_blocks
from lrm.views.statement_errors import StatementErrors, error_table, kind_lines
from lrm.views.text import to_text

MOST_TABLES, MOST_ANSWERS = 6, 200
"""Tables of a release that a notebook shows, and answers of each."""

COLUMNS = 120
"""Characters of a line of text."""


def text(record: Any) -> str:
    """The record as plain text."""
    return to_text(_document(record), COLUMNS)


def snippet(record: Any) -> str:
    """The record as HTML that leaves the page around it alone."""
    return html.snippet(_document(record))


def _document(record: Any) -> Document:
    for kind, document_of in _DOCUMENTS.items():
        if isinstance(record, kind):
            return document_of(record)
    raise TypeError(f"cannot show a {type(record).__name__}")


def drawing(record: AnswerTable | AnswerFrame, ax: Any = None) -> Drawing:
    """The answers with their intervals, on new axes or on those that are given."""
    if isinstance(record, AnswerFrame):
        return frame_drawing(record, ax)
    return table_drawing(record, ax=ax)


def write(record: Any, path: str | os.PathLike[str], **choices: Any) -> None:
    """Write the page of a plan (at ``privacy``) or of a release."""
    if isinstance(record, Plan):
        write_text(path, plan_page(record, **choices))
    else:
        write_release_page(record, path, **choices)


def write_answers(
    release: Release, path: str | os.PathLike[str], statement: str | None, **choices: Any
) -> None:
    """Write the answers of a release, or one of its statements, in the format of the file."""
    write_export(Export(release, statement, **choices), path)


def write_rows(rows: SyntheticRows, path: str | os.PathLike[str]) -> None:
    """Write the page of synthetic rows."""
    write_rows_page(rows, path)


def _domain(domain: Domain) -> Document:
    cells = many(domain.declared.size, "cell", "cells")
    words = f"{cells}; protects {domain.unit.words}"
    return Document("", (*domain_blocks(domain), Prose((words,))))


def _workload(workload: Workload) -> Document:
    queries, cells = workload.shape
    words = f"{many(queries, 'query', 'queries')} over {many(cells, 'cell', 'cells')}."
    if workload.importance is not None:
        words += " Some count for more than others."
    blocks = (Prose((words,)), *query_table(workload), *domain_blocks(workload.domain))
    return Document("", blocks)


def _plan(plan: Plan) -> Document:
    accuracy = plan.accuracy(unit_privacy(plan.noise)).nominal
    queries, cells = plan.workload.shape
    errors = StatementErrors(plan).at(accuracy)
    at = accuracy.privacy.symbols
    measurements = many(plan.measurement_count, "measurement", "measurements")
    pairs = (
        ("queries", f"{queries:,} over {many(cells, 'cell', 'cells')}"),
        ("mechanism", f"{plan.mechanism}, {measurements}"),
        *((f"{name}, {at}", value) for name, value in kind_lines(errors)),
        ("protects", plan.unit.words),
        ("plan", plan.digest[:16]),
    )
    blocks: tuple[Block, ...] = (Facts(pairs),)
    if len(errors) > 1 and queries <= EXPLICIT_QUERIES:
        blocks += (error_table(errors, 0.95, f"Tables, with the error of each at {at}"),)
    return Document("", blocks)


def _release(release: Release) -> Document:
    listed = release.plan.workload.tables[:MOST_TABLES]
    tables = [statement_table(release, entry, most=MOST_ANSWERS) for entry in listed]
    section = answers_section(release, tables)
    return Document(
        "",
        (Prose(tuple(f"{sentence}." for sentence in release.stated.values())),),
        parts=section.parts,
    )


def _answers(answers: AnswerTable) -> Document:
    rows = answers.rows()
    more = len(answers) - len(rows)
    note = f"… and {more:,} more" if more else ""
    table = plain_table(answers.caption, answers.columns, rows, words=answers.words, note=note)
    return Document("", (table,))


def _frame(frame: AnswerFrame) -> Document:
    blocks = [*statement_blocks(frame_table(frame))] if len(frame) <= MOST_ANSWERS else []
    if not blocks:
        head = StatementTable(frame.taken(range(MOST_ANSWERS)), frame.count, None)
        blocks = [head.table(), Prose((f"… the first {MOST_ANSWERS:,} of {len(frame):,} rows.",))]
    caveats = tuple(entry.sentence for entry in frame.caveats if entry.kind != "display")
    return Document("", (*blocks, *([Prose(caveats, "note")] if caveats else [])))


def _comparison(result: Comparison) -> Document:
    return Document("", tuple(comparison_blocks(comparison_facts(result))))


def _budget(budget: Budget) -> Document:
    return Document("", (Facts(tuple(budget_lines(budget))),))


_DOCUMENTS: dict[type, Callable[[Any], Document]] = {
    AnswerFrame: _frame,
    AnswerTable: _answers,
    Budget: _budget,
    Comparison: _comparison,
    Domain: _domain,
    Plan: _plan,
    Release: _release,
    Workload: _workload,
}
