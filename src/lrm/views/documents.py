"""The output of commands about releases to come and budgets, each as one document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lrm.ledger import Budget, Entry
from lrm.releases import Preview
from lrm.views.blocks import Block, Document, Facts, Prose, apart, plain_table, said
from lrm.views.budgets import (
    ACCOUNT_COLUMNS,
    BUDGET_COLUMNS,
    ENTRY_COLUMNS,
    account_rows,
    budget_row,
    entry_row,
    preview_lines,
    protects,
)
from lrm.views.derived import expected_blocks
from lrm.views.plans import worst_blocks
from lrm.views.statement_errors import StatementErrors, error_table


def facts_document(pairs: Iterable[tuple[str, str]]) -> Document:
    """Names and values."""
    return apart([Facts(tuple(pairs))])


def preview_document(preview: Preview, confidence: float, limit: int) -> Document:
    """What a release would cost, and its errors: by statement, or the largest query by query."""
    plan, accuracy = preview.plan, preview.accuracy
    errors = StatementErrors(plan).at(accuracy, confidence)
    several = len(errors) > 1
    return apart(
        [Facts(tuple(preview_lines(preview)))],
        [error_table(errors, confidence)] if several and limit else [],
        [] if several else worst_blocks(plan, accuracy, confidence, limit),
        expected_blocks(plan, accuracy, confidence),
        [
            *said(preview.plan.warnings, "warning"),
            Prose(("a dry run: nothing was spent, and no row was read",)),
        ],
    )


def budgets_document(budgets: Sequence[Budget]) -> Document:
    """What is left of each budget, and whom it protects."""
    rows = map(budget_row, budgets)
    blocks: list[Block] = [plain_table("", BUDGET_COLUMNS, rows, words=("table", "accounting"))]
    for budget in budgets:
        if budget.accounts:
            lines = account_rows(budget)
            blocks.append(plain_table("", ACCOUNT_COLUMNS, lines, words=("table", "edition")))
    return apart(blocks, said(words for budget in budgets for words in protects(budget)))


def history_document(entries: Iterable[Entry]) -> Document:
    """Everything that was ever created and spent."""
    words = ("table", "entry", "purpose")
    return apart([plain_table("", ENTRY_COLUMNS, map(entry_row, entries), words=words)])
