"""Statements as files: one wide CSV file or one sheet of a workbook each."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lrm.errors import MissingExtra, UsageError
from lrm.files.csv_cells import csv_document
from lrm.files.writing import write_bytes, write_text
from lrm.queries.workload.label_columns import typed_values
from lrm.queries.workload.layout import find_statement
from lrm.releases import Release
from lrm.releases.postprocess import Processed
from lrm.views.answers import StatementTable, statement_table, statement_tables
from lrm.views.releases import export_csv

MOST_SHEET_ROWS = 1_048_576
"""Rows of a sheet that Excel can open, its header included."""

LONG_FILE = "answers.csv"
"""The file of a folder that has every answer, one row each."""

_PARTS = ("answer", "standard_error", "low", "high", "processed")


def wide_rows(table: StatementTable) -> tuple[list[str], list[list[Any]]]:
    """The header and the rows of a statement: groups, then four numbers per answer.

    The column of an answer has its name; those of its standard error and of the ends of its
    interval have the name with an ending. Nothing is rounded. A group that a row is not of, as in
    a total, is None, and so is a number that does not exist.
    """
    layout = table.layout
    header = [column.name for column in layout.columns]
    part_names = [name for name in _PARTS if name in table.numbers]
    for answer in layout.answers:
        header += [answer if part == "answer" else f"{answer}_{part}" for part in part_names]
    values = [
        typed_values(table_column.labels, table_column.kind) or list(table_column.labels)
        for table_column in layout.columns
    ]
    rows = []
    for row, codes in enumerate(layout.codes.tolist()):
        line: list[Any] = [
            None if code < 0 else column_values[code]
            for column_values, code in zip(values, codes, strict=True)
        ]
        for place in range(len(layout.answers)):
            numbers = (float(table.numbers[part][row, place]) for part in part_names)
            line += [None if math.isnan(number) else number for number in numbers]
        rows.append(line)
    return header, rows


def statement_facts(release: Release, name: str, confidence: float = 0.95) -> dict[str, Any]:
    """One statement as JSON can hold it: the columns and rows of its file."""
    table = statement_table(release, find_statement(release.plan.workload, name), confidence)
    header, rows = wide_rows(table)
    return {
        "statement": table.statement.name,
        "title": table.statement.title,
        "simulated": release.simulated,
        "confidence": confidence,
        "columns": header,
        "rows": [[None if value is None else _spelt(value) for value in row] for row in rows],
        "note": table.note,
    }


def export_folder(
    release: Release,
    folder: str | os.PathLike[str],
    confidence: float = 0.95,
    *,
    processed: Processed | None = None,
) -> list[str]:
    """Write one wide CSV file per statement, and one of all answers; return their names."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    names = []
    for name, table in _named(release, confidence, processed, 100):
        header, rows = wide_rows(table)
        lines = [["" if value is None else _spelt(value) for value in row] for row in rows]
        names.append(f"{name}.csv")
        write_text(place / names[-1], csv_document([header, *lines]))
    export_csv(release, place / LONG_FILE, confidence, processed=processed)
    return [*names, LONG_FILE]


def _spelt(value: Any) -> str | float:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, float | int) else str(value)


def export_workbook(
    release: Release,
    path: str | os.PathLike[str],
    confidence: float = 0.95,
    *,
    processed: Processed | None = None,
) -> None:
    """Write an Excel workbook with one sheet per statement, whole or not at all."""
    try:
        import xlsxwriter  # noqa: PLC0415 - for those who ask
    except ImportError:
        raise MissingExtra(
            "a workbook needs the package XlsxWriter, which is not installed; run: "
            "pip install xlsxwriter"
        ) from None
    import io  # noqa: PLC0415 - as above

    made = io.BytesIO()
    # Texts that begin with = or http stay texts, and files do not depend on the clock.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
    with xlsxwriter.Workbook(made, options) as book:
        bold = book.add_format({"bold": True})
        date = book.add_format({"num_format": "yyyy-mm-dd"})
        if release.simulated:
            book.set_properties({"title": "SIMULATED", "comments": "The noise was simulated."})
        for name, table in _named(release, confidence, processed, 31):
            header, rows = wide_rows(table)
            if len(rows) >= MOST_SHEET_ROWS:
                raise UsageError(
                    f"statement {table.statement.name!r} has {len(rows):,} rows, more than a sheet "
                    "can hold; write a folder with --csv instead"
                )
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, header, bold)
            for number, row in enumerate(rows, start=1):
                for column, value in enumerate(row):
                    _write_cell(sheet, number, column, value, date)
            sheet.freeze_panes(1, len(table.layout.columns))
            sheet.autofilter(0, 0, len(rows), len(header) - 1)
    write_bytes(Path(path), made.getvalue())


def _write_cell(sheet: Any, row: int, column: int, value: Any, date: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, str):
        sheet.write_string(row, column, value)
    elif isinstance(value, int | float):
        text = math.isinf(value) if isinstance(value, float) else abs(value) > 2**53
        (sheet.write_string if text else sheet.write_number)(
            row, column, str(value) if text else value
        )
    else:
        sheet.write_datetime(row, column, value, date)


def _named(
    release: Release, confidence: float, processed: Processed | None, most: int
) -> Iterator[tuple[str, StatementTable]]:
    """Each statement with a name that files and sheets may have, none twice."""
    taken = {LONG_FILE.removesuffix(".csv")}
    for number, table in enumerate(
        statement_tables(release, confidence, processed=processed), start=1
    ):
        stem = re.sub(r"[^\w.-]+", "_", table.statement.name).strip("._-'")[:most] or "table"
        name = stem
        while name.casefold() in taken:
            ending = f"_{number}"
            name, number = stem[: most - len(ending)] + ending, number + 1  # noqa: PLW2901
        taken.add(name.casefold())
        yield name, table
