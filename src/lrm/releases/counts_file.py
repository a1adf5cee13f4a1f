"""Counts from files, into the record that hides them.

The file is private. No message here contains anything from it, nor an exception
that does: what is wrong is found first and raised afterwards, so that no context is chained.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lrm.errors import CountsError, FileFormatError
from lrm.files.npy import parse_npy
from lrm.files.parquet import parse_parquet
from lrm.files.reading import read_bytes
from lrm.privacy.mechanism import TrueCounts

KINDS = (".csv", ".npy", ".parquet")

_WHOLE = re.compile(r"\+?([0-9]{1,19})(\.0*)?", re.ASCII)
_BELOW_ZERO = re.compile(r"-[0-9]{1,19}(\.0*)?", re.ASCII)
_LABEL = re.compile(r"[^\W\d_][^,;\t]*")
"""A first line that begins with a letter and has one field is a header."""


@dataclass(frozen=True)
class CountsFile:
    """A file of counts that is there and not yet read: ``lrm.release`` charges the ledger first."""

    path: str | os.PathLike[str]  # see `read_counts`

    def check(self) -> None:
        """Refuse a file that could not be read, without looking into it."""
        file = Path(self.path)
        _check_kind(file)
        if not file.is_file() or not os.access(file, os.R_OK):
            raise FileFormatError(f"cannot read the counts file {file}; check its name and rights")

    def read(self) -> TrueCounts:
        """Read the counts."""
        return read_counts(self.path)


def _check_kind(file: Path) -> None:
    if file.suffix.lower() not in KINDS:
        raise CountsError(
            f"counts are read from {', '.join(KINDS)} files, not from {file.name!r}; "
            "save them as one of those"
        )


def read_counts(path: str | os.PathLike[str]) -> TrueCounts:
    """Read how many records fall in each cell, in the order of the workload's columns.

    Parameters
    ----------
    path
        ``.csv`` (one whole number per line; a header is skipped), ``.npy`` (a vector of
        integers) or ``.parquet`` (one column of integers).

    Raises
    ------
    CountsError
        When the contents are not counts. The message never quotes the file.
    FileFormatError
        When the file is missing, unreadable or damaged.
    """
    file = Path(path)
    readers = {".csv": _read_csv, ".npy": _read_npy, ".parquet": _read_parquet}
    _check_kind(file)
    data = read_bytes(file, "counts file")
    try:
        return TrueCounts(readers[file.suffix.lower()](file, data))
    except MemoryError:
        problem = f"the counts in {file} do not fit the memory"
    raise FileFormatError(problem)


def _parsed(parse: Callable[[bytes], Any], data: bytes, sentence: str) -> Any:
    with suppress(FileFormatError, UnicodeDecodeError):
        return parse(data)
    raise FileFormatError(sentence)


def _read_csv(path: Path, data: bytes) -> list[int]:
    sentence = f"{path} is not text in UTF-8; save the counts as CSV again"
    text: str = _parsed(partial(str, encoding="utf-8-sig"), data, sentence)
    lines = [line.strip().strip('"') for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    skipped = 1 if lines and _LABEL.fullmatch(lines[0]) else 0
    if len(lines) == skipped:
        raise CountsError(f"{path} holds no counts; it needs one whole number per line")
    return list(_whole_numbers(path, lines[skipped:], skipped + 1))


def _whole_numbers(path: Path, lines: list[str], first: int) -> Iterable[int]:
    for number, line in enumerate(lines, start=first):
        match = _WHOLE.fullmatch(line)
        if match:
            yield int(match[1])
        elif _BELOW_ZERO.fullmatch(line):
            # The mechanism refuses it, in the same words for every kind of file.
            yield -1
        else:
            raise CountsError(
                f"{path}: line {number} is not a whole number; counts need one whole number per "
                "line and nothing else"
            )


def _read_npy(path: Path, data: bytes) -> Any:
    sentence = f"{path} is damaged or does not hold one NumPy array; write it with numpy.save"
    array = _parsed(parse_npy, data, sentence)
    if array.size == 0:
        raise CountsError(f"{path} holds no counts; it needs one whole number for each cell")
    return array


def _read_parquet(path: Path, data: bytes) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for this kind of file only

    sentence = f"{path} is damaged or is not a Parquet file; write it again"
    table = _parsed(parse_parquet, data, sentence)
    if table.num_columns != 1:
        raise CountsError(
            f"{path}: counts must be a single column, but there are {table.num_columns}; "
            "keep only the counts"
        )
    column = table.column(0)
    if not pa.types.is_integer(column.type):
        raise CountsError(
            f"{path}: counts need a column of integers, but it holds {column.type}; convert it"
        )
    if column.null_count:
        raise CountsError(f"{path}: a count is empty (NULL); write 0 where there are no records")
    if not len(column):
        raise CountsError(f"{path} holds no counts; it needs one whole number for each cell")
    return column.to_numpy()
