"""Workloads as CSV text: one line per query, one column per cell.

The file may be a private table that was passed by mistake: errors name the line, the column and
what was expected, and never quote a field.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrm.errors import FileFormatError, WorkloadError
from lrm.files.reading import TEXT_LIMIT, read_bytes
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.core import Workload
from lrm.queries.workload.labels import repeated_name
from lrm.queries.workload.suspicion import warn_of_records


@dataclass(frozen=True)
class _Line:
    """One line of the file, with its number as an editor counts."""

    number: int
    fields: list[str]


def read_csv(path: Path) -> Workload:
    """Read a workload from a CSV file."""
    data = read_bytes(path, "workload file", TEXT_LIMIT)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is not text in UTF-8; save it as CSV again") from None
    return parse_csv(text, str(path))


def parse_csv(text: str, source: str) -> Workload:
    """Read a workload from CSV text.

    A first line is taken for cell labels when none of its fields is a number, and a first
    column for names of queries when none of its fields is. An empty corner says both, so that
    labels and names may then be numbers. A line that is half numbers and half words is
    refused, since it may be a typing error.
    """
    lines = _lines(text, source)
    first = lines[0]
    corner_empty = first.fields[0] == "" and len(first.fields) > 1
    header = corner_empty or _is_header(source, first)
    rows = lines[1:] if header else lines
    if not rows:
        raise WorkloadError(f"{source}: there is a line of labels, but no query below it")
    named = corner_empty or _has_names(source, rows)
    width = len(first.fields)
    if width == 1 and named:
        raise WorkloadError(
            f"{source}: expected numbers separated by commas, but line {rows[0].number} has a "
            "single field, which is not a number; is the separator something else?"
        )
    matrix = np.empty((len(rows), width - named))
    for index, line in enumerate(rows):
        if len(line.fields) != width:
            raise WorkloadError(
                f"{source}: line {line.number} has {len(line.fields)} fields but line "
                f"{first.number} has {width}; every query needs a number for every cell"
            )
        matrix[index] = _numbers(source, line, int(named))
    names = [line.fields[0] for line in rows] if named else None
    repeated = repeated_name(names or [])
    if repeated is not None:
        first_line, second_line = (rows[place].number for place in repeated)
        raise WorkloadError(
            f"{source}: lines {first_line} and {second_line} have the same name in column 1; every "
            "query needs a name of its own"
        )
    try:
        workload = Workload(matrix, names=names)
    except WorkloadError as reason:
        raise WorkloadError(f"{source}: {reason}") from None
    warn_of_records(matrix, source, header=header)
    return workload


def _lines(text: str, source: str) -> list[_Line]:
    """All lines that hold something, their fields stripped of blanks."""
    lines = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            stripped = [field.strip() for field in fields]
            if any(stripped):
                lines.append(_Line(reader.line_num, stripped))
    except csv.Error as reason:
        raise FileFormatError(
            f"{source}: line {reader.line_num} is not valid CSV ({reason}); save it as CSV again"
        ) from reason
    if not lines:
        raise WorkloadError(
            f"{source} is empty; a workload needs one line per query and one column per cell"
        )
    return lines


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_header(source: str, line: _Line) -> bool:
    numbers = [_is_number(field) for field in line.fields]
    if not any(numbers):
        return True
    if not all(numbers[1:]):
        column = numbers.index(False, 1) + 1
        raise WorkloadError(
            f"{source}: line {line.number} has numbers, but column {column} is not a number; "
            "correct it if the line is a query, or leave its first field empty if it is a line of "
            "labels"
        )
    return False


def _has_names(source: str, rows: list[_Line]) -> bool:
    numbers = [_is_number(line.fields[0]) for line in rows]
    if any(numbers) and not all(numbers):
        line = rows[numbers.index(False)]
        raise WorkloadError(
            f"{source}: line {line.number} does not begin with a number, but other lines do; give "
            "every query a name that is not a number, or give no names"
        )
    return not any(numbers)


def _numbers(source: str, line: _Line, start: int) -> Floats:
    try:
        values = np.array(line.fields[start:], dtype=np.float64)
    except ValueError:
        column = next(i for i, f in enumerate(line.fields) if i >= start and not _is_number(f))
        found = "is not a number" if line.fields[column] else "is empty"
        raise WorkloadError(
            f"{source}: line {line.number}, column {column + 1} {found}; every query needs a "
            "number for every cell"
        ) from None
    if not np.all(np.isfinite(values)):
        column = start + int(np.argmin(np.isfinite(values)))
        raise WorkloadError(
            f"{source}: line {line.number}, column {column + 1} is not a finite number; every "
            "query needs a number for every cell"
        )
    return values
