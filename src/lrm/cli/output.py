"""What commands print: JSON for machines, tables that fit a terminal for people."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from lrm.spelling import escape_controls, visible

if TYPE_CHECKING:
    from lrm.accuracy import Accuracy
    from lrm.plans import Plan
    from lrm.releases import Release

__all__ = [
    "echo",
    "print_answers",
    "print_facts",
    "print_json",
    "print_table",
    "print_worst",
]

LEAST_WORDS = 12
"""Characters to which a column of text may shrink."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines, their control characters made visible."""
    click.echo(visible(text, lines=True), err=err, nl=nl)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object; numbers that are not finite become null."""
    text = json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    # Only a string can hold a control character, and there its escape means the same.
    click.echo(escape_controls(text, lambda found: json.dumps(found)[1:-1], lines=True))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns; long values wrap inside theirs."""
    table = _table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(_text(name), _text(value))
    _console().print(table)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[str] = ()
) -> None:
    """Print a table that fits the terminal: columns called in ``words`` wrap, numbers never.

    Where the numbers alone are too wide, each row is printed as lines of its own.
    """
    shown = [list(row) for row in rows]
    console = _console()
    widths = _widths(columns, shown, words, console.width)
    if widths is None:
        for row in shown:
            echo("")
            _print_record(columns, row, console)
        echo("")
        return
    table = _table(show_header=True)
    for column, width in zip(columns, widths, strict=True):
        justify = "left" if column in words else "right"
        table.add_column(_text(column), justify=justify, width=width, overflow="fold")
    for row in shown:
        table.add_row(*map(_text, row))
    console.print(table)


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[str], room: int
) -> list[int] | None:
    """A width for each column, in which every number is whole; None where there is no room."""
    cells = [max((_width(row[i]) for row in rows), default=0) for i in range(len(columns))]
    wanted = [max(_width(name), cell) for name, cell in zip(columns, cells, strict=True)]
    least = [
        min(want, LEAST_WORDS) if name in words else max(cell, *map(_width, name.split()))
        for name, cell, want in zip(columns, cells, wanted, strict=True)
    ]
    spare = room - sum(least) - 3 * len(columns) + 1  # blanks between columns, and at the ends
    if spare < 0:
        return None
    for i in sorted(range(len(columns)), key=lambda i: columns[i] not in words):
        more = min(spare, wanted[i] - least[i])
        least[i] += more
        spare -= more
    return least


def _print_record(columns: Sequence[str], row: Sequence[str], console: Any) -> None:
    """Print one row of a table as lines; names wrap before values do."""
    names = max(max(_width(word) for word in name.split()) for name in columns)
    room = console.width - max(map(_width, row)) - 2
    table = _table(show_header=False)
    table.add_column(width=max(names, min(room, max(map(_width, columns)))))
    table.add_column(overflow="fold")
    for name, value in zip(columns, row, strict=True):
        table.add_row(_text(name), _text(value))
    console.print(table)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(visible(text))


def _table(*, show_header: bool) -> Any:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD if show_header else None, pad_edge=False, show_header=show_header
    )


def _text(text: str) -> Any:
    from rich.text import Text

    return Text(visible(text))  # square brackets in a query's name are not markup


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def print_answers(release: "Release", confidence: float, limit: int) -> None:
    """Print the first answers with their intervals, as the statements display them."""
    from lrm.views.answers import answer_columns, answer_rows
    from lrm.views.derived import derived_notes
    from lrm.views.displays import displayed, shown_positions

    total = len(release.plan.workload.shown)
    shown = displayed(release)
    table = release.table(confidence) if shown else release.head(limit, confidence)
    positions = shown_positions(release, shown)[:limit] if shown else range(len(table))
    rows = [(label.name, *row) for label, row in answer_rows(table, positions)]
    for one in shown:
        echo(one.note)
    if rows:
        print_table(answer_columns(confidence), rows, words=("query",))
    if len(rows) < total:
        echo(f"{len(rows):,} of {total:,} answers shown; --json or --csv has all")
    for note in derived_notes(release.plan.workload):
        echo(note)
    echo("intervals cover the noise alone; answers are neither rounded nor clipped")


def print_expected(
    plan: "Plan", expected: "Accuracy", confidence: float, expect: float | None = None
) -> None:
    """Print the errors of derived answers, where there are some."""
    from lrm.spelling import number
    from lrm.views.derived import derived_notes, expected_columns, expected_rows

    rows = expected_rows(plan, expected, confidence, expect)
    if not rows:
        return
    columns = expected_columns(confidence)
    print_table(columns, rows, words=columns[:1])
    given = "n is that number" if expect is None else f"{number(expect)} rows"
    echo(f"largest errors for the rows in a denominator ({given}); see --expect")
    for note in derived_notes(plan.workload):
        echo(note)


def print_worst(plan: "Plan", expected: "Accuracy", confidence: float, limit: int) -> None:
    """Print the queries of largest error with their intervals."""
    from lrm.spelling import number
    from lrm.views.plans import worst_queries

    queries = sum(stop - start for start, stop in plan.workload.labels.shown_ranges())
    rows = [
        (label.name, number(error), f"±{number(half)}")
        for label, error, half in worst_queries(plan, expected, confidence, limit)
    ]
    if not rows:
        if queries:
            echo(f"none of {queries:,} queries listed")
        return
    columns = ("query", "standard error", f"{100 * confidence:.4g} % interval")
    print_table(columns, rows, words=("query",))
    if len(rows) < queries:
        echo(f"{len(rows):,} of {queries:,} queries shown, the largest errors first")
