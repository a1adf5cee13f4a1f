"""Counting with DuckDB: files, tables of a database, and frames in memory.

Rows are grouped inside the engine wherever each attribute's cell is cheap to say in SQL;
numbers among many edges, and rows of persons, leave it in batches (see
`lrm.tables.duckdb_batches`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from lrm.domain import CsvForm, Domain
from lrm.exact.cells import CellMap
from lrm.privacy.mechanism import TrueCounts
from lrm.tables.axes import Tally, axes_of
from lrm.tables.base import check_columns, guarded, load_engine
from lrm.tables.csv_files import CsvFiles
from lrm.tables.duckdb_batches import count_batches
from lrm.tables.duckdb_connection import connection
from lrm.tables.duckdb_reading import Reading, Source
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.tables.duckdb_sources import DatabaseFile, ParquetFiles
from lrm.tables.frames import FrameSource, is_frame

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["DuckDbTable", "open_csv", "open_source"]


def open_source(source: object, name: str | None = None) -> DuckDbTable | None:
    """Open a file, a pattern of files, ``FILE.duckdb::TABLE`` or a frame; None for others."""
    if is_frame(source):
        return DuckDbTable(FrameSource(source), name)
    if not isinstance(source, (str, os.PathLike)):
        return None
    path, separator, table = os.fspath(source).partition("::")
    if separator:
        return DuckDbTable(DatabaseFile(path, table), name)
    parts = path.lower().removesuffix(".gz").rpartition(".")
    if parts[2] in {"parquet", "pq"}:
        return DuckDbTable(ParquetFiles(path), name)
    if parts[2] in {"csv", "tsv"}:
        return DuckDbTable(CsvFiles(path), name)
    return None


def open_csv(path: str, name: str | None, form: CsvForm) -> DuckDbTable:
    """Open CSV files of any name that are written in ``form``."""
    return DuckDbTable(CsvFiles(path, form), name)


class DuckDbTable:
    """A table that DuckDB reads: see `lrm.tables.open_table`."""

    def __init__(self, source: Source, name: str | None = None) -> None:
        self._source = source
        self._name = name or source.label

    @property
    def name(self) -> str:
        """What the table is called."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def columns(self) -> tuple[tuple[str, str], ...]:
        return tuple((column.name, column.type_text) for column in self._source.columns())

    def check(self, domain: Domain, cells: CellMap | None = None) -> None:
        needed = check_columns(self.name, domain, self._source.columns(domain))
        self._source.check(tuple(needed.values()), domain)

        def count_nothing() -> None:
            for read in self._source.ways():
                _count(domain, cells, partial(read, domain=domain, needed=needed, empty=True))

        guarded(f"preparing the count of table {self.name!r}", count_nothing)

    def counts(self, domain: Domain, cells: CellMap | None = None) -> TrueCounts:
        needed = check_columns(self.name, domain, self._source.columns(domain))

        def count() -> TrueCounts:
            *faster, last = (
                partial(read, domain=domain, needed=needed, empty=False)
                for read in self._source.ways()
            )
            failure = load_engine("duckdb").Error
            for read in faster:
                # A value that DuckDB refuses may not decide whether the count succeeds.
                with suppress(failure):
                    return _count(domain, cells, read)
            return _count(domain, cells, last)

        return guarded(f"counting table {self.name!r}", count)


def _count(
    domain: Domain, cells: CellMap | None, read: Callable[[DuckDBPyConnection], Reading]
) -> TrueCounts:
    axes = axes_of(domain, cells)
    tally = Tally(domain, axes)
    with connection() as db:
        rows = DuckDbRows(axes, read(db), domain.unit.max_rows)
        if rows.wide or rows.person is not None:
            count_batches(db, rows, tally)
        else:
            _count_groups(db, rows, tally)
    return tally.true_counts()


def _count_groups(db: DuckDBPyConnection, rows: DuckDbRows, tally: Tally) -> None:
    """Group inside DuckDB: by the classes, one column each, which beats one product of them."""
    every = range(len(rows.axes))
    keys = ", ".join(f"{rows.key(place)} AS k{place}" for place in every)
    grouped = f"SELECT {keys}, count(*) AS n FROM {rows.values()} GROUP BY ALL"  # noqa: S608
    number = rows.number([f"k{place}" for place in every], every)
    query = f"SELECT {number} AS number, n FROM ({grouped}) WHERE number IS NOT NULL"  # noqa: S608
    found = db.sql(query).to_arrow_table()
    tally.add(found["number"].to_numpy(), found["n"].to_numpy())
