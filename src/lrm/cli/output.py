"""What commands print: JSON for machines, tables that fit a terminal for people."""

import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lrm.cli.progress import waiting
from lrm.spelling import escape_controls, many, visible

if TYPE_CHECKING:
    from lrm.accuracy import Accuracy
    from lrm.plans import Plan
    from lrm.releases import Release
    from lrm.views.blocks import Block

__all__ = [
    "echo",
    "print_answers",
    "print_block",
    "print_facts",
    "print_json",
    "print_table",
    "print_worst",
]

MOST_STATEMENTS = 40
"""Statements that are printed without being named."""

MOST_COLUMNS = 12
"""Groups that stand side by side."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines, their control characters made visible."""
    # With a stream of its own choice click writes UTF-8 to terminals that are not UTF-8.
    stream = sys.stderr if err else sys.stdout
    click.echo(visible(text, lines=True), file=stream, nl=nl)


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


def _width() -> int:
    from rich.console import Console

    return Console().width


def print_block(block: "Block") -> None:
    """Print a block of a document, between empty lines."""
    from lrm.views.text import block_text

    echo(f"\n{block_text(block, _width())}\n")


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns; long values wrap inside theirs."""
    from lrm.views.blocks import Facts
    from lrm.views.text import facts_text

    echo(facts_text(Facts(tuple(facts)), _width()))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[str] = ()
) -> None:
    """Print a table that fits the terminal: columns called in ``words`` wrap, numbers never.

    Where the numbers alone are too wide, each row is printed as lines of its own.
    """
    from lrm.views.blocks import plain_table
    from lrm.views.text import table_text

    table = plain_table("", columns, rows, words=words)
    echo(f"\n{table_text(table, _width())}\n")


def print_answers(
    release: "Release", confidence: float, limit: int, name: str | None = None
) -> None:
    """Print one grid per statement, of at most ``limit`` rows each; or the one called ``name``."""
    from lrm.views.answers import grouped_tables, single_numbers, statement_table, usable_words
    from lrm.views.derived import derived_notes
    from lrm.views.text import table_text
    from lrm.workload.layout import find_statement

    batch, width = release.plan.workload, _width()
    chosen = batch.tables if name is None else (find_statement(batch, name),)
    listed = chosen[:MOST_STATEMENTS] if limit else ()
    with waiting("answers"):
        tables = [
            statement_table(release, one, confidence, most=limit * MOST_COLUMNS) for one in listed
        ]
    cut = len(listed) < len(chosen)
    for one in grouped_tables(tables):
        table = single_numbers(one) if isinstance(one, list) else one.table(MOST_COLUMNS)
        rows = table.rows[:limit]
        whole = isinstance(one, list) or one.note or one.count == one.total
        if len(rows) < len(table.rows) or not whole:
            cut = True
            note = f"… the first {len(rows):,} rows. {table.note}".rstrip()
            table = replace(table, rows=rows, note=note)
        echo(f"\n{table_text(table, width)}")
    echo("")
    if len(tables) > 1:
        echo(f"at {release.privacy.symbols}, {usable_words(tables)}")
    if cut:
        total = many(len(batch.shown), "answer", "answers")
        echo(f"not all of {total} are shown: lrm show names one table, or writes all files")
    for note in derived_notes(batch):
        echo(note)
    echo(
        f"± is half of a {100 * confidence:.4g} % interval, which covers the noise alone; answers "
        "are neither\nrounded nor clipped"
    )


def print_expected(
    plan: "Plan", expected: "Accuracy", confidence: float, expect: float | None = None
) -> None:
    """Print the errors of derived answers, where there are some."""
    from lrm.spelling import number
    from lrm.views.derived import derived_notes, expected_columns, expected_rows

    with waiting("errors of derived answers"):
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
    with waiting("errors"):
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
