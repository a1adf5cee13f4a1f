"""Parts of the page that the server renders: tables, facts and numbers, all from `lrm.views`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lrm.files.spelling import in_percent, many, number
from lrm.ledger import Budget, Entry
from lrm.views.blocks import Cell, Facts, Heading, Numbers, Prose, Table, plain_table
from lrm.views.budgets import BUDGET_COLUMNS, ENTRY_COLUMNS, budget_lines, budget_row, entry_row
from lrm.views.html import render
from lrm.views.statement_errors import StatementError, typical_count
from lrm.views.verdicts import WITHIN, percent, verdict
from lrm.workbench.compiling import Asked

LISTED = 300
"""Statements that the page lists."""

UNKNOWN = "…"
"""What stands in place of a number until there is a plan."""

Places = Mapping[tuple[int, int], StatementError]
"""Errors by the position of a statement and of a part of it."""


class Beside(NamedTuple):
    """Another plan whose errors stand beside: what it is called, and its errors."""

    name: str
    errors: Places


def placed(statements: Sequence[Asked], errors: Sequence[StatementError]) -> Places:
    """Find the errors of statements in those of a plan, which may be of an older text.

    Statements are matched by their titles; several of one title in their order.
    """
    groups: dict[str, list[list[StatementError]]] = {}
    before = None
    for error in errors:
        known = groups.setdefault(error.part.statement.title, [])
        if error.part.statement != before:
            known.append([])
        before = error.part.statement
        known[-1].append(error)
    placed_errors: dict[tuple[int, int], StatementError] = {}
    for place, statement in enumerate(statements):
        waiting = groups.get(statement.title)
        if waiting:
            group = waiting.pop(0)
            placed_errors.update(
                {(place, k): error for k, error in enumerate(group[: len(statement.parts)])}
            )
    return placed_errors


def relative(statement: Asked, error: StatementError | None) -> float | None:
    """Half an interval relative to the size that the text states now."""
    if error is None or statement.expected is None or error.part.kind != "count":
        return None
    return error.half / statement.expected


def table_of(
    statements: Sequence[Asked], errors: Places, confidence: float, beside: Beside | None
) -> str:
    """The errors of all statements, in the order of the text."""
    headings = [
        Heading("statement", words=True, label=True, field="title"),
        Heading("answers", field="count"),
        Heading(f"{in_percent(confidence)} interval", field="half"),
        Heading("largest error", field="largest"),
        Heading("expected size", field="expected"),
        Heading("of expected", field="relative"),
        Heading("importance", field="importance"),
    ]
    if beside is not None:  # in place of the largest error, for which there is no room
        headings[3] = Heading(beside.name, field="other")
    counts = [error.half for error in errors.values() if error.part.kind == "count"]
    most = max(counts, default=0.0) or 1.0
    rows = []
    for place, statement in enumerate(statements[:LISTED]):
        for k, (title, count) in enumerate(statement.parts):
            error = errors.get((place, k))
            row = _row(statement, title, count, error, most, first=k == 0)
            if beside is not None:
                row[3] = _other(error, beside.errors.get((place, k)))
            rows.append(tuple(row))
    hidden = len(statements) - LISTED
    title = "Errors by statement" + (f"; {hidden:,} more are not listed" if hidden > 0 else "")
    return render(Table(title, tuple(headings), tuple(rows), live=True))


def rows_of(statements: Sequence[Asked]) -> list[dict[str, int | bool]]:
    """For each row of the table: where its statement begins, and whether it is the first of it."""
    return [
        {"line": statement.line, "first": k == 0}
        for statement in statements[:LISTED]
        for k in range(len(statement.parts))
    ]


def _row(  # noqa: PLR0913 - what a row is made of
    statement: Asked,
    title: str,
    count: int,
    error: StatementError | None,
    most: float,
    *,
    first: bool,
) -> list[Cell]:
    note = f"line {statement.line}"
    if error is not None and error.part.kind == "derived":
        note += "; with the expected rows of a group"
    share = relative(statement, error)
    judged = Cell("") if share is None else Cell(percent(share), verdict(share), value=share)
    bar = None
    if error is not None and error.part.kind == "count":
        end = error.half / most
        bar = (0.0, end, end, end)
    elif error is None:
        bar = (0.0, 0.0, 0.0, 0.0)
    size = "" if statement.expected is None else f"{statement.expected:.12g}"
    return [
        Cell(title, note),
        Cell(f"{count:,}", value=count),
        _number(None if error is None else error.half, "±", bar),
        _number(None if error is None else error.largest),
        Cell(size if first else "", value=statement.expected),
        judged,
        Cell(f"{statement.importance:.12g}" if first else "", value=statement.importance),
    ]


def _number(
    value: float | None, sign: str = "", bar: tuple[float, float, float, float] | None = None
) -> Cell:
    if value is None or math.isnan(value):
        return Cell(UNKNOWN, bar=bar)
    return Cell(f"{sign}{number(value)}", bar=bar, value=value)


def _other(error: StatementError | None, other: StatementError | None) -> Cell:
    if error is None or other is None or not error.half or math.isnan(error.half):
        return Cell(UNKNOWN)
    return replace(_number(other.half, "±"), note=f"{other.half / error.half:.3g}×")


def key_html(
    statements: Sequence[Asked], errors: Places, guarantee: str, noise: str
) -> tuple[str, str]:
    """The few numbers that matter most, and a sentence for those who cannot see them change."""
    typical = typical_count(errors.values())
    shares = [
        share
        for (place, _), entry in errors.items()
        if (share := relative(statements[place], entry)) is not None
    ]
    usable = sum(verdict(share) == "usable" for share in shares)
    answers = sum(entry.count for entry in statements)
    error = UNKNOWN if typical is None else number(typical)
    numbers = Numbers(
        (
            ("guarantee", guarantee or UNKNOWN, f"{noise} noise"),
            ("error of a count", error, "root mean square"),
            (
                "usable tables",
                f"{usable} of {len(shares)}" if shares else "—",
                f"{WITHIN} of the expected size" if shares else "state an expected size",
            ),
            (
                "answers",
                f"{answers:,}",
                f"in {many(len(statements), 'statement', 'statements')}",
            ),
        )
    )
    return render(numbers), f"{guarantee}: error of a count {error}."


def remaining_html(budgets: Sequence[Budget], table: str) -> str:
    """What is left for a table."""
    for budget in budgets:
        if budget.table == table:
            return render(Facts(tuple(budget_lines(budget))))
    if not budgets:
        return render(Prose(("This ledger has no budget yet.",), "note"))
    names = ", ".join(budget.table for budget in budgets[:8])
    return render(Prose((f"This ledger has budgets of {names}.",), "note"))


def ledger_html(budgets: Sequence[Budget], entries: Sequence[Entry], count: int) -> str:
    """All budgets of a ledger, and what was ever spent, the newest first."""
    budget_table = plain_table(
        "Budgets", BUDGET_COLUMNS, map(budget_row, budgets), words=("accounting",)
    )
    title = f"{many(count, 'entry', 'entries')}, the newest first"
    words = ("date", "table", "entry", "purpose")
    rows = [entry_row(entry) for entry in reversed(entries)]
    return render(budget_table) + render(plain_table(title, ENTRY_COLUMNS, rows, words=words))
