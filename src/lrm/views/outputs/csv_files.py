"""Answers as CSV: one row per answer, or the table of a statement; a folder has both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lrm.files.csv_cells import csv_cell, csv_document
from lrm.files.writing import write_text, writing
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import group_titles
from lrm.queries.workload.frames import AnswerFrame
from lrm.queries.workload.label_columns import Codes
from lrm.views.outputs.export import Export
from lrm.views.outputs.long_form import long_blocks, long_columns, statement_names

LABELS = ("statement", "name", "query")
"""Columns of the long form before those of groups."""

NUMBERS = ("answer", "standard_error", "low", "high", "confidence", "processed")
"""Columns of the long form after those of groups; the last where answers were processed."""

LONG_FILE = "answers.csv"
"""The file of a folder that has every answer, one row each."""


def write(export: Export, path: Path) -> None:
    """Write the table of one statement, or all answers in the long form."""
    if export.statement is None:
        _write_long(export, path)
        return
    for frame in export.frames():
        write_text(path, frame_csv(frame))


def frame_csv(frame: AnswerFrame) -> str:
    """The table of a statement: groups, then four numbers per answer, nothing rounded."""
    lines = [["" if value is None else value for value in row] for row in frame.plain_rows()]
    return csv_document([frame.header, *lines])


def write_folder(export: Export, folder: Path) -> list[str]:
    """Write one wide file per statement, and one of all answers; return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, frame in named_frames(export, 100):
        names.append(f"{name}.csv")
        write_text(folder / names[-1], frame_csv(frame))
    _write_long(export, folder / LONG_FILE)
    return [*names, LONG_FILE]


def folder_files(export: Export, folder: Path) -> list[Path]:
    """The files that `write_folder` writes."""
    names = safe_names(statement_names(export.release), 100)
    return [folder / f"{name}.csv" for name in names] + [folder / LONG_FILE]


def named_frames(export: Export, most: int) -> Iterator[tuple[str, AnswerFrame]]:
    """Each table with a name that files and sheets may have, of at most ``most`` characters."""
    names = [export.statement or ""]
    if export.statement is None:
        names = statement_names(export.release)
    yield from zip(safe_names(names, most), export.frames(), strict=True)


def safe_names(names: list[str], most: int) -> list[str]:
    """Names that files and sheets may have, none twice.

    >>> safe_names(["by month", "by/month", "answers"], 31)
    ['by_month', 'by_month_2', 'answers_3']
    """
    taken = {LONG_FILE.removesuffix(".csv")}
    safe = []
    for number, name in enumerate(names, start=1):
        stem = re.sub(r"[^\w.-]+", "_", name).strip("._-'")[:most] or "table"
        unused, ending = stem, number
        while unused.casefold() in taken:
            unused, ending = f"{stem[: most - len(f'_{ending}')]}_{ending}", ending + 1
        taken.add(unused.casefold())
        safe.append(unused)
    return safe


def _write_long(export: Export, path: Path) -> None:
    """Write one row per answer: its statement, name, query, groups and numbers."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask
    import pyarrow.compute as pc  # noqa: PLC0415 - same

    columns = long_columns(export.release, csv_cell)
    grouped = columns.attributes
    titles = group_titles(grouped, (*LABELS, *NUMBERS))
    numbers = NUMBERS[:-1] if export.processed is None else NUMBERS
    names = [csv_cell(name) for name in statement_names(export.release)]
    with writing(path) as file:
        file.write(csv_document([[*LABELS, *titles, *numbers]]).encode())
        for block in long_blocks(export):
            texts = [_statement_texts(names, block.statements)]
            texts += [columns.names(block.spans, _quoted)]
            texts += [columns.queries(block.spans).dictionary_decode()]
            texts += [columns.group_texts(block.spans, name).fill_null("") for name in grouped]
            spelt = [_spelt(column) for column in block.numbers.values()]
            spelt.insert(4, pa.scalar(repr(float(export.confidence))))
            rows = pc.binary_join_element_wise(*texts, *spelt, ",")
            file.write(("\n".join(rows.to_pylist()) + "\n").encode())


def _statement_texts(names: Sequence[str], codes: Codes) -> Any:
    """The names of the statements of a block; one name where all are the same."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    if len(codes) and codes.min() == codes.max():
        return pa.scalar("" if codes[0] < 0 else names[codes[0]])
    return pa.array([*names, ""], pa.string()).take(pa.array(codes % (len(names) + 1)))


def _spelt(column: Floats) -> Any:
    """Numbers as CSV holds them, to all their digits: nothing for one that does not exist."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    # A fifth of the time that ``repr`` takes; nulls stand for NaN.
    return pa.array(column, from_pandas=True).cast(pa.string()).fill_null("")


def _quoted(text: str) -> str:
    return text.replace('"', '""')
