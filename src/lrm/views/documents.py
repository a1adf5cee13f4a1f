"""The output of commands about plans, comparisons, budgets and releases, each as one document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from lrm.files.spelling import many, number
from lrm.ledger import Budget, Entry
from lrm.planning.accuracy import Accuracy
from lrm.planning.plan import Plan
from lrm.planning.plan.tolerances import Met
from lrm.queries.workload.layout import find_statement
from lrm.releases import Preview, Release
from lrm.releases.core import shown_values
from lrm.releases.postprocess import Processed
from lrm.views.answers import grouped_tables, single_numbers, statement_table, usable_words
from lrm.views.blocks import Block, Document, Facts, Prose, plain_table
from lrm.views.budgets import BUDGET_COLUMNS, ENTRY_COLUMNS, budget_row, entry_row, preview_lines
from lrm.views.choices import met_blocks
from lrm.views.derived import derived_notes, expected_rows
from lrm.views.plans import bound_lines, error_lines, plan_lines, worst_blocks
from lrm.views.releases import release_lines
from lrm.views.statement_errors import StatementErrors, error_table, kind_lines, usable_sentence

MOST_STATEMENTS = 40
"""Statements that are listed without being named."""

MOST_COLUMNS = 12
"""Groups that stand side by side."""


def _apart(*groups: Iterable[Block]) -> Document:
    """Groups of blocks with an empty line between them; those without blocks are left out."""
    first, *rest = [tuple(group) for group in groups if group] or [()]
    return Document("", first, parts=tuple(Document("", blocks) for blocks in rest))


def _said(sentences: Iterable[str], kind: Literal["plain", "warning"] = "plain") -> list[Block]:
    texts = tuple(sentences)
    return [Prose(texts, kind)] if texts else []


def facts_document(pairs: Iterable[tuple[str, str]]) -> Document:
    """Names and values."""
    return _apart([Facts(tuple(pairs))])


def plan_document(plan: Plan, met: Met | None = None, more: Iterable[Block] = ()) -> Document:
    """A plan, with errors at ε = 1 or ρ = 1, and the amount at which it meets its tolerances."""
    lines = [Facts(tuple(plan_lines(plan))), *_said(plan.warnings, "warning")]
    return _apart(lines, [] if met is None else met_blocks(met), tuple(more))


def explanation_document(  # noqa: PLR0913 - what may be asked for
    plan: Plan,
    expected: Accuracy,
    confidence: float,
    limit: int,
    *,
    expect: float | None = None,
    bound: bool = False,
    met: Met | None = None,
) -> Document:
    """The errors of a plan: by statement, the largest query by query, and of derived answers."""
    errors = StatementErrors(plan, plan.statement_ratios).at(expected, confidence, expect)
    bounds = bound_lines(plan, expected) if bound else []
    lines = Facts((*error_lines(plan, expected), *kind_lines(errors), *bounds))
    sentence = usable_sentence(errors, expected.privacy)
    return _apart(
        [lines],
        [] if met is None else met_blocks(met),
        [error_table(errors, confidence)] if len(errors) > 1 else [],
        _said([sentence] if sentence else []),
        worst_blocks(plan, expected, confidence, limit),
        _derived(plan, expected, confidence, expect),
    )


def _derived(
    plan: Plan, expected: Accuracy, confidence: float, expect: float | None
) -> list[Block]:
    """The errors of derived answers, where there are some."""
    rows = expected_rows(plan, expected, confidence, expect)
    if not rows:
        return []
    columns = ("derived answer", "standard error", f"{100 * confidence:.4g} % interval")
    rows_text = (
        "n is that number; `lrm explain --expect` takes one"
        if expect is None
        else f"{number(expect)} rows"
    )
    note = f"largest errors for the rows in a denominator ({rows_text})"
    return [
        plain_table("", columns, rows, words=columns[:1]),
        Prose((note, *derived_notes(plan.workload.derived))),
    ]


def preview_document(preview: Preview, confidence: float, limit: int) -> Document:
    """What a release would cost, and its errors: by statement, or the largest query by query."""
    plan, accuracy = preview.plan, preview.accuracy
    errors = StatementErrors(plan).at(accuracy, confidence)
    several = len(errors) > 1
    return _apart(
        [Facts(tuple(preview_lines(preview)))],
        [error_table(errors, confidence)] if several and limit else [],
        [] if several else worst_blocks(plan, accuracy, confidence, limit),
        _derived(plan, accuracy, confidence, None),
        [
            *_said(preview.plan.warnings, "warning"),
            Prose(("a dry run: nothing was spent, and no row was read",)),
        ],
    )


def release_document(
    release: Release, confidence: float, limit: int, processed: Processed | None = None
) -> Document:
    """What a release guarantees, and its answers."""
    answers = answers_document(release, confidence, limit, processed=processed)
    lines = Facts(tuple(release_lines(release)))
    return Document("", (lines,), parts=(Document("", answers.blocks), *answers.parts))


def answers_document(
    release: Release,
    confidence: float,
    limit: int,
    name: str | None = None,
    processed: Processed | None = None,
) -> Document:
    """One grid per statement, of at most ``limit`` rows each; or the one called ``name``."""
    batch = release.plan.workload
    statements = batch.tables if name is None else (find_statement(batch, name),)
    listed = statements[:MOST_STATEMENTS] if limit else ()
    values = None if processed is None else shown_values(release, processed.answers)
    tables = [
        statement_table(
            release,
            entry,
            confidence,
            processed=values,
            most=limit * MOST_COLUMNS,
            columns=MOST_COLUMNS,
        )
        for entry in listed
    ]
    cut = len(listed) < len(statements)
    grids: list[Sequence[Block]] = []
    for entry in grouped_tables(tables):
        table = single_numbers(entry) if isinstance(entry, list) else entry.table(MOST_COLUMNS)
        rows = table.rows[:limit]
        lines = len(table.rows) if isinstance(entry, list) else entry.lines
        if lines is None or len(rows) < lines:
            cut = True
            of = "" if lines is None else f" of {lines:,}"
            note = f"… the first {len(rows):,}{of} rows. {table.note}".rstrip()
            table = replace(table, rows=rows, note=note)
        grids.append([table])
    sentences = []
    if len(tables) > 1:
        sentences.append(f"at {release.privacy.symbols}, {usable_words(tables)}")
    if cut:
        total = many(len(batch.shown), "answer", "answers")
        sentences.append(
            f"not all of {total} are shown: lrm show names one table, or writes all files"
        )
    sentences += derived_notes(
        answer for entry in listed for answer in batch.derived[slice(*entry.derived)]
    )
    sentences.append(
        f"± is half of a {100 * confidence:.4g} % interval, which covers the noise alone; counts "
        "and sums are neither rounded nor clipped"
    )
    if processed is not None:
        sentences += [*(words for _, words in processed.notes), *processed.sentences]
    return _apart(*grids, _said(sentences))


def budgets_document(budgets: Sequence[Budget]) -> Document:
    """What is left of each budget, and whom it protects."""
    rows = map(budget_row, budgets)
    table = plain_table("", BUDGET_COLUMNS, rows, words=("table", "accounting"))
    return _apart(
        [table], _said(f"'{budget.table}' protects {budget.unit.words}" for budget in budgets)
    )


def history_document(entries: Iterable[Entry]) -> Document:
    """Everything that was ever created and spent."""
    words = ("table", "entry", "purpose")
    return _apart([plain_table("", ENTRY_COLUMNS, map(entry_row, entries), words=words)])
