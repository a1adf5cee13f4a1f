"""Answers as an Excel workbook: one sheet per statement, and one about all of them."""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path
from typing import Any

from lrm.errors import MissingExtra, UsageError
from lrm.files.spelling import in_percent
from lrm.files.writing import write_bytes
from lrm.queries.workload.frames import AnswerFrame
from lrm.queries.workload.label_columns import date_pattern
from lrm.views.outputs.csv_files import named_frames
from lrm.views.outputs.export import Export

MOST_SHEET_ROWS = 1_048_576
"""Rows of a sheet that Excel can open, its header included."""

MOST_NAME = 31
"""Characters of the name of a sheet."""

ABOUT = "about"
"""The sheet with the guarantee, and the title and caveats of each table."""

FORMATS = {"month": "yyyy-mm", "day": "yyyy-mm-dd", "second": "yyyy-mm-dd hh:mm:ss"}
"""How a sheet shows dates, by their precision."""


def write(export: Export, path: Path) -> None:
    """Write an Excel workbook with one sheet per statement, whole or not at all."""
    write_sheets(named_frames(export, MOST_NAME), path, simulated=export.release.simulated)


def write_sheets(
    frames: Iterable[tuple[str, AnswerFrame]], path: Path, *, simulated: bool = False
) -> None:
    """Write a workbook with one sheet per table, and one of what they state."""
    try:
        import xlsxwriter  # noqa: PLC0415 - for those who ask
    except ImportError:
        raise MissingExtra(
            "a workbook needs the package XlsxWriter, which is not installed; run: "
            "pip install xlsxwriter"
        ) from None
    made = io.BytesIO()
    # Texts that begin with = or http stay texts, and files do not depend on the clock.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
    with xlsxwriter.Workbook(made, options) as book:
        bold = book.add_format({"bold": True})
        dates = {key: book.add_format({"num_format": text}) for key, text in FORMATS.items()}
        if simulated:
            book.set_properties({"title": "SIMULATED", "comments": "The noise was simulated."})
        stated: dict[str, str] = {}
        notes: list[tuple[str, str]] = []
        for name, frame in frames:
            _write_sheet(book.add_worksheet(name), frame, bold, dates)
            stated = {**frame.stated, "intervals": in_percent(frame.confidence)}
            notes.append((name, frame.title))
            notes += [(name, entry.sentence) for entry in frame.caveats]
        about = book.add_worksheet(_unused(book, ABOUT))
        for number, line in enumerate((*stated.items(), *notes)):
            about.write_row(number, 0, line)
    write_bytes(path, made.getvalue())


def _unused(book: Any, name: str) -> str:
    """A name that no sheet of a workbook has; Excel ignores their case."""
    used = {sheet.get_name().lower() for sheet in book.worksheets()}
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(each for each in names if each not in used)


def _write_sheet(sheet: Any, frame: AnswerFrame, bold: Any, dates: dict[str, Any]) -> None:
    if len(frame) >= MOST_SHEET_ROWS:
        raise UsageError(
            f"statement {frame.name!r} has {len(frame):,} rows, more than a sheet can hold; write "
            "a folder of CSV files instead"
        )
    header = frame.header
    sheet.write_row(0, 0, header, bold)
    formats = [dates[date_pattern(column)] for column in frame.columns]
    for number, row in enumerate(frame.rows(), start=1):
        for column, value in enumerate(row):
            form = formats[column] if column < len(formats) else None
            _write_cell(sheet, number, column, value, form)
    sheet.freeze_panes(1, len(frame.columns))
    sheet.autofilter(0, 0, len(frame), len(header) - 1)


def _write_cell(sheet: Any, row: int, column: int, value: Any, date: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, str):
        sheet.write_string(row, column, value)
    elif isinstance(value, dt.date):
        if value.year < 1900:  # no sheet can show it as a date
            sheet.write_string(row, column, str(value))
        else:
            sheet.write_datetime(row, column, value, date)
    else:
        text = not math.isfinite(value) if isinstance(value, float) else abs(value) > 2**53
        (sheet.write_string if text else sheet.write_number)(
            row, column, str(value) if text else value
        )
