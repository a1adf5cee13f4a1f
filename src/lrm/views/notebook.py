"""Records as text and in notebooks: each has one document, which is laid out in either form."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lrm.domain import Domain
from lrm.files.spelling import beside, many, number
from lrm.files.writing import write_text
from lrm.ledger import Budget
from lrm.planning.plan import Plan
from lrm.planning.plan.comparison import Comparison
from lrm.queries.workload import Workload
from lrm.queries.workload.frames import AnswerFrame
from lrm.releases import Release
from lrm.releases.series import Series
from lrm.releases.synthetic import SyntheticRows
from lrm.views import html
from lrm.views.answers import StatementTable, frame_table
from lrm.views.batches import domain_blocks, query_table
from lrm.views.blocks import Document, Facts, Prose, plain_table
from lrm.views.budgets import budget_lines
from lrm.views.comparisons import comparison_blocks, comparison_facts
from lrm.views.figures import Drawing, answers_drawing, frame_drawing
from lrm.views.outputs import write_export
from lrm.views.outputs.export import Export
from lrm.views.outputs.series_files import write_series_files
from lrm.views.plan_document import PlanDetail, plan_document, plan_page
from lrm.views.release_document import NOTEBOOK, release_document
from lrm.views.release_page import write_release_page
from lrm.views.rows_page import write_rows_page
from lrm.views.series_page import answers_document, write_series_page
from lrm.views.shapes import statement_blocks
from lrm.views.text import to_text

MOST_ANSWERS = NOTEBOOK.each
"""Rows of a table that a notebook shows."""

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


def drawing(record: AnswerFrame | Release, ax: Any = None) -> Drawing:
    """Answers with their intervals, on new axes or on those that are given."""
    if isinstance(record, Release):
        return answers_drawing(record, ax=ax)
    return frame_drawing(record, ax)


def write(record: Any, path: str | os.PathLike[str], **choices: Any) -> None:
    """Write the page of a plan (at ``privacy``), of a series, or of a release."""
    if isinstance(record, Plan):
        write_text(path, plan_page(record, **choices))
    elif isinstance(record, Series):
        write_series_page(record, path, **choices)
    else:
        write_release_page(record, path, **choices)


def write_answers(
    release: Release, path: str | os.PathLike[str], statement: str | None, **choices: Any
) -> None:
    """Write the answers of a release, or one of its statements, in the format of the file."""
    write_export(Export(release, statement, **choices), path)


def write_series(
    series: Series, path: str | os.PathLike[str], confidence: float, statement: str | None
) -> None:
    """Write a series, or one of its statements, in the format of the file."""
    write_series_files(series, path, confidence, statement)


def write_rows(rows: SyntheticRows, path: str | os.PathLike[str]) -> None:
    """Write the page of synthetic rows."""
    write_rows_page(rows, path)


def _domain(domain: Domain) -> Document:
    cells = many(domain.declared.size, "cell", "cells")
    words = f"{cells}; protects {domain.unit.words}"
    return Document("", (*domain_blocks(domain), Prose((words,))))


def _workload(workload: Workload) -> Document:
    words = f"{workload.extent}."
    if workload.importance is not None:
        words += " Some count for more than others."
    blocks = (Prose((words,)), *query_table(workload), *domain_blocks(workload.domain))
    return Document("", blocks)


SHOWN = 20
"""Rows of the long form that are printed or shown in a notebook."""


def _answers(frame: AnswerFrame) -> Document:
    """The first rows of the long form, numbers rounded to the digits that their error leaves."""
    head = frame.taken(range(min(SHOWN, len(frame))))
    numbers = head.number_columns()
    errors = numbers.get("standard_error", np.zeros(len(head)))
    titles, words = head.header[1:], head.group_titles()[1:]
    rows = []
    for row, codes in enumerate(head.codes[:, 1:].tolist()):
        cells = [
            "" if code < 0 else column.labels[code]
            for column, code in zip(head.columns[1:], codes, strict=True)
        ]
        for name, column in numbers.items():
            value = float(column[row])
            is_error = name in {"standard_error", "half_width"}
            cells.append(number(value) if is_error else beside(value, float(errors[row])))
        rows.append(cells)
    more = len(frame) - len(head)
    note = f"… and {more:,} more" if more else ""
    return Document("", (plain_table(frame.caption, titles, rows, words=words, note=note),))


def _frame(frame: AnswerFrame) -> Document:
    if frame.statement is None:
        return _answers(frame)
    blocks = [*statement_blocks(frame_table(frame))] if len(frame) <= MOST_ANSWERS else []
    if not blocks:
        head = StatementTable(frame.taken(range(MOST_ANSWERS)), frame.count, None)
        blocks = [head.table(), Prose((f"… the first {MOST_ANSWERS:,} of {len(frame):,} rows.",))]
    caveats = tuple(frame.caveat_sentences)
    return Document("", (*blocks, *([Prose(caveats, "note")] if caveats else [])))


def _comparison(result: Comparison) -> Document:
    return Document("", tuple(comparison_blocks(comparison_facts(result))))


def _budget(budget: Budget) -> Document:
    return Document("", (Facts(tuple(budget_lines(budget))),))


_DOCUMENTS: dict[type, Callable[[Any], Document]] = {
    AnswerFrame: _frame,
    Budget: _budget,
    Comparison: _comparison,
    Domain: _domain,
    Plan: partial(plan_document, detail=PlanDetail("notebook")),
    Release: partial(release_document, detail=NOTEBOOK),
    Series: answers_document,
    Workload: _workload,
}
