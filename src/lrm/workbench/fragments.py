"""Parts of the page that the server renders: tables, facts and numbers, all from `lrm.views`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lrm.ledger import Budget, Entry
from lrm.spelling import many, number
from lrm.views.blocks import Cell, Facts, Heading, Table, plain_table
from lrm.views.budgets import BUDGET_COLUMNS, ENTRY_COLUMNS, budget_row, entry_row
from lrm.views.elements import Markup, key_numbers, paragraph, render_block, render_table
from lrm.views.statement_errors import StatementError, typical_count
from lrm.views.verdicts import USABLE, percent, verdict
from lrm.workbench.compiling import Asked

__all__ = [
    "Beside",
    "Places",
    "key_html",
    "ledger_html",
    "placed",
    "remaining_html",
    "rows_of",
    "table_of",
]

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
    for one in errors:
        known = groups.setdefault(one.part.statement.title, [])
        if one.part.statement != before:
            known.append([])
        before = one.part.statement
        known[-1].append(one)
    found: dict[tuple[int, int], StatementError] = {}
    for place, asked in enumerate(statements):
        waiting = groups.get(asked.title)
        if waiting:
            own = waiting.pop(0)
            found.update({(place, k): one for k, one in enumerate(own[: len(asked.parts)])})
    return found


def relative(asked: Asked, one: StatementError | None) -> float | None:
    """Half an interval beside the size that the text states now."""
    if one is None or asked.expected is None or one.part.kind != "count":
        return None
    return one.half / asked.expected


def table_of(
    statements: Sequence[Asked], errors: Places, confidence: float, beside: Beside | None
) -> Markup:
    """The errors of all statements, in the order of the text."""
    headings = [
        Heading("statement", words=True, label=True, field="title"),
        Heading("answers", field="count"),
        Heading(f"{100 * confidence:.4g} % interval", field="half"),
        Heading("largest error", field="largest"),
        Heading("expected size", field="expected"),
        Heading("of expected", field="relative"),
        Heading("importance", field="importance"),
    ]
    if beside is not None:
        headings[3:3] = [Heading(beside.name, field="other"), Heading("times", field="times")]
    counts = [one.half for one in errors.values() if one.part.kind == "count"]
    most = max(counts, default=0.0) or 1.0
    rows = []
    for place, asked in enumerate(statements[:LISTED]):
        for k, (title, count) in enumerate(asked.parts):
            one = errors.get((place, k))
            row = _row(asked, title, count, one, most, first=k == 0)
            if beside is not None:
                row[3:3] = _other(one, beside.errors.get((place, k)))
            rows.append(tuple(row))
    hidden = len(statements) - LISTED
    title = "Errors by statement" + (f"; {hidden:,} more are not listed" if hidden > 0 else "")
    return render_table(Table(title, tuple(headings), tuple(rows), live=True))


def rows_of(statements: Sequence[Asked]) -> list[dict[str, int | bool]]:
    """For each row of the table: where its statement begins, and whether it is the first of it."""
    return [
        {"line": asked.line, "first": k == 0}
        for asked in statements[:LISTED]
        for k in range(len(asked.parts))
    ]


def _row(  # noqa: PLR0913 - what a row is made of
    asked: Asked,
    title: str,
    count: int,
    one: StatementError | None,
    most: float,
    *,
    first: bool,
) -> list[Cell]:
    note = f"line {asked.line}"
    if one is not None and one.part.kind == "derived":
        note += "; errors of what it is computed from"
    share = relative(asked, one)
    judged = Cell("") if share is None else Cell(percent(share), verdict(share), value=share)
    bar = None
    if one is not None and one.part.kind == "count":
        end = one.half / most
        bar = (0.0, end, end, end)
    elif one is None:
        bar = (0.0, 0.0, 0.0, 0.0)
    size = "" if asked.expected is None else f"{asked.expected:.12g}"
    return [
        Cell(title, note),
        Cell(f"{count:,}", value=count),
        _number(None if one is None else one.half, "±", bar),
        _number(None if one is None else one.largest),
        Cell(size if first else "", value=asked.expected),
        judged,
        Cell(f"{asked.importance:.12g}" if first else "", value=asked.importance),
    ]


def _number(
    value: float | None, sign: str = "", bar: tuple[float, float, float, float] | None = None
) -> Cell:
    if value is None:
        return Cell(UNKNOWN, bar=bar)
    return Cell(f"{sign}{number(value)}", bar=bar, value=value)


def _other(one: StatementError | None, other: StatementError | None) -> list[Cell]:
    if one is None or other is None or not one.half:
        return [Cell(UNKNOWN), Cell(UNKNOWN)]
    times = other.half / one.half
    return [_number(other.half, "±"), Cell(f"{times:.3g}×", value=times)]


def key_html(
    statements: Sequence[Asked], errors: Places, guarantee: str, noise: str
) -> tuple[Markup, str]:
    """The few numbers that matter most, and a sentence for those who cannot see them change."""
    typical = typical_count(errors.values())
    shares = [
        share
        for (place, _), one in errors.items()
        if (share := relative(statements[place], one)) is not None
    ]
    usable = sum(verdict(share) == "usable" for share in shares)
    answers = sum(one.count for one in statements)
    error = UNKNOWN if typical is None else number(typical)
    html = key_numbers(
        [
            ("guarantee", guarantee or UNKNOWN, f"{noise} noise"),
            ("error of a count", error, "root mean square"),
            (
                "usable tables",
                f"{usable} of {len(shares)}" if shares else "—",
                f"within ±{100 * USABLE:.0f} % of the expected size"
                if shares
                else "state an expected size",
            ),
            (
                "answers",
                f"{answers:,}",
                f"in {many(len(statements), 'statement', 'statements')}",
            ),
        ]
    )
    return html, f"{guarantee}: error of a count {error}."


def remaining_html(budgets: Sequence[Budget], table: str) -> Markup:
    """What is left for a table."""
    for one in budgets:
        if one.table == table:
            pairs = [*zip(BUDGET_COLUMNS, budget_row(one), strict=True)]
            return render_block(Facts((*pairs, ("protects", one.unit.words))))
    if not budgets:
        return paragraph("This ledger has no budget yet.", "note")
    names = ", ".join(one.table for one in budgets[:8])
    return paragraph(f"This ledger has budgets of {names}.", "note")


def ledger_html(budgets: Sequence[Budget], entries: Sequence[Entry], count: int) -> Markup:
    """All budgets of a ledger, and what was ever spent, the newest first."""
    kept = plain_table("Budgets", BUDGET_COLUMNS, map(budget_row, budgets), words=("accounting",))
    title = f"{many(count, 'entry', 'entries')}, the newest first"
    words = ("date", "table", "entry", "purpose")
    rows = [entry_row(one) for one in reversed(entries)]
    return Markup(
        render_block(kept) + render_block(plain_table(title, ENTRY_COLUMNS, rows, words=words))
    )
