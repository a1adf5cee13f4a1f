"""Answers as Parquet: one row per answer, or the table of a statement."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lrm.files.writing import writing
from lrm.queries.workload import group_titles
from lrm.queries.workload.answer_table import statement_column
from lrm.views.outputs.export import Export
from lrm.views.outputs.long_form import long_blocks, long_columns, statement_names

NUMBERS = ("answer", "standard_error", "low", "high")


def write(export: Export, path: Path) -> None:
    """Write the table of one statement, or all answers in the long form."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - 0.1 s, for those who ask

    if export.statement is None:
        _write_long(export, path)
        return
    for frame in export.frames():
        with writing(path) as file:
            pq.write_table(frame.to_arrow(), file)


def _write_long(export: Export, path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for those who ask
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    columns = long_columns(export.release)
    names, grouped = statement_names(export.release), columns.attributes
    fixed = ("query", *NUMBERS, *([] if export.processed is None else ["processed"]))
    titles = ["statement", *group_titles(grouped, ("statement", *fixed)), *fixed]
    kinds = [
        statement_column(names, np.empty(0, dtype=np.int32)).type,
        *(columns.group([], name).type for name in grouped),
        columns.queries([]).type,
        *[pa.float64()] * (len(fixed) - 1),
    ]
    schema = pa.schema(list(zip(titles, kinds, strict=True)), export.release.stated)
    with writing(path) as file, pq.ParquetWriter(file, schema) as writer:
        for block in long_blocks(export):
            arrays = [statement_column(names, block.statements)]
            arrays += [columns.group(block.spans, attribute) for attribute in grouped]
            arrays += [columns.queries(block.spans), *map(pa.array, block.numbers.values())]
            writer.write_table(pa.table(arrays, schema=schema))
