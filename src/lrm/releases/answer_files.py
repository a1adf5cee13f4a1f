"""Answers as CSV and Parquet, block by block: memory does not follow their number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from lrm.errors import UsageError
from lrm.files.csv_cells import csv_cell, csv_document
from lrm.files.writing import writing
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import LabelColumns, Span, group_titles, spans_of
from lrm.queries.workload.statements import group_columns

if TYPE_CHECKING:  # a release writes itself through this module
    from lrm.releases.core import Release

COLUMNS = ("name", "query", "answer", "standard_error", "low", "high", "confidence", "processed")
"""Columns of the CSV in addition to those of groups; the last where answers were processed."""


def _blocks(
    release: Release, confidence: float, processed: Floats | None = None
) -> Iterator[tuple[Sequence[Span], dict[str, Floats]]]:
    """Yield all shown answers, in order: labels, and columns of numbers by name."""
    ranges = list(release.shown_blocks())
    for (start, stop), spans in zip(
        ranges, spans_of(release.plan.workload.shown, ranges), strict=True
    ):
        numbers = release.shown_numbers(start, stop, confidence)
        if processed is not None:
            numbers["processed"] = processed[start:stop]
        yield spans, numbers


def write_answers(release: Release, path: str | os.PathLike[str], confidence: float) -> None:
    """Write one row per answer as ``.csv`` or ``.parquet``, whole or not at all."""
    kind = PurePath(os.fspath(path)).suffix.lower()
    if kind not in {".csv", ".parquet"}:
        raise UsageError(f"answers are written to a .csv or .parquet file, not {os.fspath(path)!r}")
    (write_csv if kind == ".csv" else _write_parquet)(release, path, confidence)


def write_csv(
    release: Release,
    path: str | os.PathLike[str],
    confidence: float,
    processed: Floats | None = None,
) -> None:
    """Write answers as CSV: name, query, groups, answer, standard error, interval."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask
    import pyarrow.compute as pc  # noqa: PLC0415 - same

    columns = _label_columns(release, csv_cell)
    grouped = columns.attributes
    titles = COLUMNS if processed is not None else COLUMNS[:-1]
    header = [*titles[:2], *group_titles(grouped, COLUMNS), *titles[2:]]
    with writing(path) as file:
        file.write(csv_document([header]).encode())
        for spans, numbers in _blocks(release, confidence, processed):
            texts = [columns.names(spans, _quoted), columns.queries(spans).dictionary_decode()]
            texts += [columns.group_texts(spans, attribute).fill_null("") for attribute in grouped]
            spelt = [_spelt(column) for column in numbers.values()]
            spelt.insert(4, pa.scalar(repr(float(confidence))))
            rows = pc.binary_join_element_wise(*texts, *spelt, ",")
            file.write(("\n".join(rows.to_pylist()) + "\n").encode())


def _label_columns(release: Release, spell: Callable[[str], str] = str) -> LabelColumns:
    workload = release.plan.workload
    return LabelColumns(workload.shown, group_columns(workload.tables), spell)


def _spelt(column: Floats) -> Any:
    """Numbers as CSV holds them, to all their digits: nothing for one that does not exist."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask

    # A fifth of the time that ``repr`` takes; nulls stand for NaN.
    return pa.array(column, from_pandas=True).cast(pa.string()).fill_null("")


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def _write_parquet(release: Release, path: str | os.PathLike[str], confidence: float) -> None:
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    columns = _label_columns(release)
    grouped = columns.attributes
    fixed = ("query", *COLUMNS[2:6])
    titles = [*group_titles(grouped, fixed), *fixed]
    texts = [*(columns.group([], name).type for name in grouped), columns.queries([]).type]
    kinds = texts + [pa.float64()] * (len(fixed) - 1)
    schema = pa.schema(list(zip(titles, kinds, strict=True)), release.stated)
    with writing(path) as file, pq.ParquetWriter(file, schema) as writer:
        for spans, numbers in _blocks(release, confidence):
            block_columns = [columns.group(spans, attribute) for attribute in grouped]
            block_columns += [columns.queries(spans), *map(pa.array, numbers.values())]
            writer.write_table(pa.table(block_columns, schema=schema))
