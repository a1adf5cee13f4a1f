"""Rows that DuckDB reads and sorts and NumPy counts, in batches of bounded size.

Numbers among many edges: a CASE over 1,024 bins costs 21 s for ten million rows. Here DuckDB
computes the classes of the other attributes and passes the number as it is, in Arrow
batches; placing it and counting takes as long as a grouping query over narrow attributes.

Persons: their rows arrive together, and a few of each are counted (`lrm.tables.row_limit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrm.domain import persons
from lrm.tables.axes import Axis
from lrm.tables.base import load_engine
from lrm.tables.cell_sql import bin_steps
from lrm.tables.duckdb_connection import connection
from lrm.tables.duckdb_rows import NOT_COUNTED, DuckDbRows
from lrm.tables.locate import locator
from lrm.tables.row_limit import RowLimit
from lrm.tables.tally import Tally, Words

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BATCH_ROWS = 1 << 17
"""Rows of an Arrow batch: 1 MB per column, which fits the cache; 2^20 was a fifth slower."""


def count_batches(db: DuckDBPyConnection, rows: DuckDbRows, tally: Tally) -> None:
    """Add the rows to ``tally``, by person where the domain has such a unit."""
    if rows.person is not None and not rows.wide:
        _count_by_person(db, rows, rows.worded(), tally)
        return
    reader = db.sql(rows.partly()).to_arrow_reader(BATCH_ROWS)
    batches = _worded(reader, rows)
    if rows.person is None:
        for words, _ in batches:
            tally.add(words)
        return
    pa = load_engine("pyarrow")
    fields = [(f"w{i}", pa.int64()) for i in range(len(rows.count.words))]
    schema = pa.schema([*fields, reader.schema.field("person")])
    stream = (
        pa.record_batch([*(pa.array(word, pa.int64()) for word in words), person], schema=schema)
        for words, person in batches
    )
    with connection(alone=True) as second:  # it pulls the batches through the first one
        second.register("worded", pa.RecordBatchReader.from_batches(schema, stream))
        _count_by_person(second, rows, "worded", tally)


def _count_by_person(db: DuckDBPyConnection, rows: DuckDbRows, worded: str, tally: Tally) -> None:
    """Count at most as many rows of each person as may stay.

    DuckDB sorts on disk where memory is short: ten million rows of 2.5 million persons took
    3 s and 320 MB. Its ``row_number() OVER (PARTITION BY …)`` took 48 s and ran out of 488 MB.
    """
    with RowLimit(tally, rows.count, persons.fresh_key()) as limit:
        for batch in db.sql(rows.by_person(worded)).to_arrow_reader(BATCH_ROWS):
            words = [batch[f"w{i}"].to_numpy() for i in range(len(rows.count.words))]
            limit.add(batch["person"], words, batch["later"].to_numpy())


def _worded(reader: Any, rows: DuckDbRows) -> Iterator[tuple[Words, Any]]:
    """Yield the words of counted rows, batch by batch, with their persons."""
    pa = load_engine("pyarrow")
    placers: list[dict[int, _Placer]] = [
        {
            place: _Placer(rows.axes[place], stride)
            for place, stride in rows.count.strides(number).items()
            if place in rows.wide
        }
        for number in range(len(rows.count.words))
    ]
    for batch in reader:
        words = []
        counted = np.ones(len(batch), dtype=np.bool_)
        for number, wide in enumerate(placers):
            word = batch[f"w{number}"].to_numpy()
            for place, placer in wide.items():
                missing = batch[f"missing{place}"] if rows.is_read(place) else None
                word = word + placer.terms(batch[f"x{place}"], missing)
            words.append(word)
            counted &= word >= 0
        person = None if rows.person is None else batch["person"].filter(pa.array(counted))
        yield words if counted.all() else [word[counted] for word in words], person


class _Placer:
    """Finds what a batch of numbers adds to the numbers of their rows' classes."""

    def __init__(self, axis: Axis, stride: int) -> None:
        edges, codes = bin_steps(axis)
        specials = [axis.special(label) for label in ("(invalid)", "(nan)", "(null)")]
        terms = [NOT_COUNTED if code is None else code * stride for code in (*codes, *specials)]
        self._located = locator(edges)
        self._terms = np.array(terms[:-3])
        self._invalid, self._nan, self._null = terms[-3:]

    def terms(self, x: Any, missing: Any) -> NDArray[np.int64]:
        """Return the term of each number of an Arrow array.

        ``missing`` marks those that are NULL in the table, where a NULL of ``x`` may also be a
        text that is not a number.
        """
        values = x.to_numpy(zero_copy_only=False)  # NULL becomes NaN
        strange = np.isnan(values)
        if not strange.any():
            return self._terms[self._located(values)]
        term: NDArray[np.int64] = self._terms[self._located(np.where(strange, 0.0, values))]
        term[strange] = self._nan
        unread = self._null if missing is None else self._invalid
        term[x.is_null().to_numpy(zero_copy_only=False)] = unread
        if missing is not None:
            term[missing.to_numpy(zero_copy_only=False)] = self._null
        return term
