"""Numbers among many edges: DuckDB reads, NumPy places, in batches of bounded size.

A CASE over 1,024 bins costs 21 s for ten million rows. Here DuckDB says the classes of the
other attributes and hands the number over as it is, in Arrow batches; placing it and counting
takes as long as a grouping query over three narrow attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrm.tables.axes import DROPPED, Axis, Tally
from lrm.tables.base import load_engine
from lrm.tables.cell_sql import bin_steps
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.tables.locate import Locator

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["count_batches"]

BATCH_ROWS = 1 << 17
"""Rows of an Arrow batch: 1 MB a column, which fits the cache; 2^20 was a fifth slower."""


def count_batches(
    db: DuckDBPyConnection,
    connection: Callable[[], AbstractContextManager[DuckDBPyConnection]],
    rows: DuckDbRows,
    relation: str,
    tally: Tally,
) -> None:
    """Add the rows of ``relation`` to ``tally``; ``connection`` opens a second DuckDB."""
    reader = db.sql(rows.partly(relation)).to_arrow_reader(BATCH_ROWS)
    batches = _numbered(reader, rows)
    if rows.person is None:
        for number, _ in batches:
            tally.add_rows(number)
        return
    pa = load_engine("pyarrow", "duckdb")
    schema = pa.schema([("number", pa.int64()), reader.schema.field("person")])
    stream = (
        pa.record_batch([pa.array(number), person], schema=schema) for number, person in batches
    )
    with connection() as second:
        # The second DuckDB pulls batches through the first one and sorts them by person,
        # on disk where they are too many.
        second.register("numbered", pa.RecordBatchReader.from_batches(schema, stream))
        found = second.sql(rows.bounded("numbered")).to_arrow_table()
    tally.add(found["number"].to_numpy(), found["n"].to_numpy())


def _numbered(reader: Any, rows: DuckDbRows) -> Iterator[tuple[NDArray[np.int64], Any]]:
    """Yield the class numbers of counted rows, batch by batch, with their persons."""
    placers = [_Placer(rows.axes[place]) for place in rows.wide]
    for batch in reader:
        number = batch["base"].to_numpy().copy()
        counted = np.ones(len(number), dtype=np.bool_)
        for place, placer in zip(rows.wide, placers, strict=True):
            missing = batch[f"missing{place}"] if rows.is_read(place) else None
            code = placer.codes(batch[f"x{place}"], missing)
            counted &= code != DROPPED
            number += code * rows.strides[place]
        person = None if rows.person is None else batch["person"].filter(counted)
        yield number[counted], person


class _Placer:
    """Finds the classes of a batch of numbers."""

    def __init__(self, axis: Axis) -> None:
        edges, codes = bin_steps(axis)
        self._locator = Locator(edges)
        self._codes = np.array([DROPPED if code is None else code for code in codes])
        nan, null = axis.special("(nan)"), axis.special("(null)")
        self._nan = DROPPED if nan is None else nan
        self._null = DROPPED if null is None else null

    def codes(self, x: Any, missing: Any) -> NDArray[np.int64]:
        """Return the class of each number of an Arrow array.

        ``missing`` tells which are NULL in the table, where a NULL of ``x`` may also be a text
        that is no number.
        """
        values = x.to_numpy(zero_copy_only=False)  # NULL becomes NaN
        strange = np.isnan(values)
        if not strange.any():
            return self._codes[self._locator.positions(values)]
        code = self._codes[self._locator.positions(np.where(strange, 0.0, values))]
        code[strange] = self._nan
        code[x.is_null().to_numpy(zero_copy_only=False)] = (
            self._null if missing is None else DROPPED
        )
        if missing is not None:
            code[missing.to_numpy(zero_copy_only=False)] = self._null
        return code
