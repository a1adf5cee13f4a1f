"""Answers as CSV: one row per answer, or the table of a statement; a folder has both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrm.files.csv_cells import NumberStyle, csv_cell
from lrm.files.writing import write_text, writing
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.finding import Span
from lrm.queries.workload.frames import AnswerFrame, group_titles
from lrm.queries.workload.label_blocks import pair_text, query_text
from lrm.queries.workload.label_columns import file_texts
from lrm.queries.workload.statements import Column
from lrm.views.outputs.export import Export

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
        write_text(path, frame_csv(frame, export.style))


def frame_csv(frame: AnswerFrame, style: NumberStyle = NumberStyle()) -> str:  # noqa: B008 - frozen
    """The table of a statement: groups, then four numbers per answer, nothing rounded."""
    groups, separator = len(frame.columns), style.separator
    lines = [separator.join(csv_cell(name, separator) for name in frame.header)]
    for row in frame.plain_rows():
        cells = [_group_cell(value, style) for value in row[:groups]]
        cells += ["" if value is None else style.number(repr(value)) for value in row[groups:]]
        lines.append(separator.join(cells))
    return "\n".join(lines) + "\n"


def _group_cell(value: str | float | None, style: NumberStyle) -> str:
    """The label of a group: a number such as a year has no separators of thousands."""
    if isinstance(value, float):
        return NumberStyle(style.decimal).number(repr(value))
    return "" if value is None else csv_cell(value, style.separator)


def write_folder(export: Export, folder: Path) -> list[str]:
    """Write one wide file per statement, and one of all answers; return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, frame in named_frames(export, 100):
        names.append(f"{name}.csv")
        write_text(folder / names[-1], frame_csv(frame, export.style))
    _write_long(export, folder / LONG_FILE)
    return [*names, LONG_FILE]


def folder_files(export: Export, folder: Path) -> list[Path]:
    """The files that `write_folder` writes."""
    names = safe_names(export.names(), 100)
    return [folder / f"{name}.csv" for name in names] + [folder / LONG_FILE]


def named_frames(export: Export, most: int) -> Iterator[tuple[str, AnswerFrame]]:
    """Each table with a name that files and sheets may have, of at most ``most`` characters."""
    yield from zip(safe_names(export.names(), most), export.frames(), strict=True)


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

    style, separator = export.style, export.style.separator
    texts, pairs = _Spelt(separator), _Pairs(separator)
    blocks = export.release.tables(export.confidence, processed=export.processed)
    with writing(path) as file:
        for number, frame in enumerate(blocks):
            columns = [texts.of(frame, k) for k in range(len(frame.columns))]
            numbers = [_digits(column, style) for column in frame.number_columns().values()]
            numbers.insert(4, pa.scalar(style.number(repr(float(export.confidence)))))
            if not number:
                groups = [column.name for column in frame.columns[1:-1]]
                known = NUMBERS if export.processed is not None else NUMBERS[:-1]
                titles = [*LABELS, *group_titles(groups, (*LABELS, *NUMBERS)), *known]
                head = separator.join(csv_cell(title, separator) for title in titles)
                file.write(f"{head}\n".encode())
            cells = [columns[0], pairs.names(frame.spans), columns[-1], *columns[1:-1], *numbers]
            rows = pc.binary_join_element_wise(*cells, separator)
            file.write(("\n".join(rows.to_pylist()) + "\n").encode())


@dataclass
class _Spelt:
    """Columns of groups as texts of CSV, which blocks share."""

    separator: str
    _held: dict[int, tuple[Column, Any]] = field(default_factory=dict)

    def of(self, frame: AnswerFrame, place: int) -> Any:
        """One text per row; nothing where a row is not grouped by the column."""
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

        column, codes = frame.columns[place], frame.codes[:, place]
        if place not in self._held or self._held[place][0] is not column:
            spelt = [*(csv_cell(text, self.separator) for text in file_texts(column)), ""]
            self._held[place] = column, pa.array(spelt, pa.string())
        texts = self._held[place][1]
        if len(codes) and codes.min() == codes.max():
            return texts[int(codes[0]) % len(texts)]
        return texts.take(pa.array(codes % len(texts)))


@dataclass
class _Pairs:
    """The names of answers as texts of CSV."""

    separator: str
    _held: dict[tuple[str, int], Any] = field(default_factory=dict)

    def names(self, spans: Sequence[Span]) -> Any:
        """One text for each answer."""
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

        return pa.chunked_array(map(self._names, spans), pa.string()).combine_chunks()

    def _names(self, span: Span) -> Any:
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask
        import pyarrow.compute as pc  # noqa: PLC0415 - same

        block = span.block
        if len(block.queries) > 1 or len(block.axes) < 2:
            names = (block.label(i).name for i in range(span.first, span.last))
            return pa.array([csv_cell(name, self.separator) for name in names], pa.string())
        # The text around a name of several groups is that of its first one.
        first = block.label(span.first).name
        before, _, after = csv_cell(first, self.separator).partition(_quoted(first))
        pieces: list[Any] = [before + _quoted(query_text(block.query)) + "["]
        for axis, (attribute, labels) in enumerate(block.axes):
            key = attribute, id(labels)
            if key not in self._held:
                pairs = [_quoted(pair_text(attribute, label)) for label in labels]
                self._held[key] = pa.array(pairs, pa.string())
            texts = self._held[key].take(pa.array(span.places(axis)))
            pieces += [", "] * (axis > 0) + [texts]
        return pc.binary_join_element_wise(*pieces, "]" + after, "")


def _digits(column: Floats, style: NumberStyle) -> Any:
    """Numbers as CSV holds them, to all their digits: nothing for one that does not exist."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    # A fifth of the time that ``repr`` takes; nulls stand for NaN.
    texts = pa.array(column, from_pandas=True).cast(pa.string()).fill_null("")
    if style.is_plain:
        return texts
    return pa.array([style.number(text) for text in texts.to_pylist()], pa.string())


def _quoted(text: str) -> str:
    return text.replace('"', '""')
