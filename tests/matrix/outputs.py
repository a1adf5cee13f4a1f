"""The answers that each output of a release holds, read back without lrm."""

from __future__ import annotations

import csv
import json
import math
import re
import zipfile
from xml.etree import ElementTree as ET

import numpy as np

DIGITS = 1e-12
"""To how many digits outputs hold the same numbers: a workbook has 16 of them."""

SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def answers_of_csv(path) -> list[float]:
    """The answers of a file with one row for each."""
    with path.open(encoding="utf-8", newline="") as opened:
        return [_number(line["answer"]) for line in csv.DictReader(opened)]


def answers_of_json(path) -> list[float]:
    """The answers of an export."""
    return [_number(fact["answer"]) for fact in json.loads(path.read_text())["answers"]]


def answers_of_wide_files(folder) -> list[float]:
    """The answers of a folder with one file per statement."""
    answers = []
    for path in sorted(folder.glob("*.csv")):
        if path.name != "answers.csv":
            with path.open(encoding="utf-8", newline="") as opened:
                header, *rows = csv.reader(opened)
            answers += answers_of_rows(header, rows)
    return answers


def answers_of_workbook(path) -> list[float]:
    """The answers of a workbook with one sheet per statement."""
    answers = []
    with zipfile.ZipFile(path) as book:
        shared = _parsed(book, "xl/sharedStrings.xml")
        texts = ["".join(part.itertext()) for part in shared]
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        for name in sheets:
            rows = [_cells(row, texts) for row in _parsed(book, name).iter(f"{SPACE}row")]
            places = sorted(rows[0], key=_place)
            header = [rows[0][place] for place in places]
            answers += answers_of_rows(header, [[row.get(p) for p in places] for row in rows[1:]])
    return answers


def answers_of_rows(header, rows) -> list[float]:
    """The answers of a table: the columns that have a standard error."""
    header = list(header)
    places = [k for k, name in enumerate(header) if f"{name}_standard_error" in header]
    return [_number(row[place]) for row in rows for place in places]


def same_answers(first, second) -> bool:
    """Whether two lists hold the same numbers, in any order; missing ones are left out."""
    one, two = (
        np.sort([number for number in some if not math.isnan(number)]) for some in (first, second)
    )
    return one.shape == two.shape and bool(np.allclose(one, two, rtol=DIGITS, atol=DIGITS))


def _parsed(book, name):
    return ET.fromstring(book.read(name))  # noqa: S314 - lrm has just written it


def _cells(row, texts):
    cells = {}
    for cell in row.iter(f"{SPACE}c"):
        value = cell.findtext(f"{SPACE}v")
        column = re.match("[A-Z]+", cell.get("r"))[0]
        cells[column] = texts[int(value)] if cell.get("t") == "s" else value
    return cells


def _place(column):
    return len(column), column


def _number(value):
    return math.nan if value in {None, ""} else float(value)
