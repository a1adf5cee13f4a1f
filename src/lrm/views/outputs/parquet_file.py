"""Answers as Parquet: one row per answer, or the table of a statement."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from lrm.files.writing import writing
from lrm.views.outputs.export import Export


def write(export: Export, path: Path) -> None:
    """Write the table of one statement, or all answers in the long form."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - 0.1 s, for those who ask

    tables = (frame.to_arrow() for frame in export.rows())
    first = next(tables)
    with writing(path) as file, pq.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
