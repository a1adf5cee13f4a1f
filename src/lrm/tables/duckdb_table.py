"""Counting with DuckDB: files, tables of a database, and frames in memory.

Rows are grouped inside the engine if each attribute's cell is cheap to compute in SQL;
numbers among many edges, and rows of persons, leave it in batches (see
`lrm.tables.duckdb_batches`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lrm.domain import CsvForm, Domain
from lrm.domain.people import Level
from lrm.privacy.mechanism import OccurringValues, TrueCounts
from lrm.tables.base import Column, Table, check_columns, guarded, load_engine
from lrm.tables.count import Count, Wanted, count_of
from lrm.tables.csv_files import CsvFiles
from lrm.tables.duckdb_batches import count_batches
from lrm.tables.duckdb_connection import connection
from lrm.tables.duckdb_people import LevelSource
from lrm.tables.duckdb_reading import Reading, Source
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.tables.duckdb_sources import DatabaseFile
from lrm.tables.duckdb_values import occurring_values
from lrm.tables.frames import FrameSource, is_frame
from lrm.tables.open_values import OpenValues
from lrm.tables.parquet_files import ParquetFiles
from lrm.tables.tally import Tally

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

GROUPED_CELLS = 1 << 14
"""Cells up to which DuckDB groups rows itself; beyond, its hash tables are slower than NumPy."""


def open_source(source: object, name: str | None = None) -> DuckDbTable | None:
    """Open files, a folder, ``FILE.duckdb::TABLE`` or a frame; None for others."""
    if is_frame(source):
        return DuckDbTable(FrameSource(source), name)
    if not isinstance(source, (str, os.PathLike)):
        return None
    path, separator, table = os.fspath(source).partition("::")
    if separator:
        return DuckDbTable(DatabaseFile(path, table), name)
    parts = path.lower().removesuffix(".gz").rpartition(".")
    if parts[2] in {"parquet", "pq"} or Path(path).is_dir():
        return DuckDbTable(ParquetFiles(path), name)
    if parts[2] in {"csv", "tsv"}:
        return DuckDbTable(CsvFiles(path), name)
    return None


def open_csv(path: str, name: str | None, form: CsvForm) -> DuckDbTable:
    """Open CSV files of any name that are written in ``form``."""
    return DuckDbTable(CsvFiles(path, form), name)


class DuckDbTable(Table):
    """A table that DuckDB reads: see `lrm.tables.open_table`."""

    def __init__(self, source: Source, name: str | None = None) -> None:
        super().__init__(name or source.label)
        self._source = source

    @property
    def source(self) -> Source:
        """Where its rows are."""
        return self._source

    @classmethod
    def of_level(cls, level: Level, tables: Mapping[str, Table]) -> DuckDbTable:
        sources = {n: t.source for n, t in tables.items() if isinstance(t, DuckDbTable)}
        return cls(LevelSource(level, sources), level.people.name)

    def _described(self) -> tuple[Column, ...]:
        return self._source.columns()

    def _check(self, domain: Domain, requested: Wanted) -> None:
        count, needed = self._prepared(domain, requested)
        self._source.check(tuple(needed.values()), domain)

        def count_nothing() -> None:
            for read in self._source.ways():
                nothing = partial(read, domain=domain, needed=needed, empty=True)
                self._counted(count, nothing).true_counts()

        guarded(f"preparing the count of table {self.name!r}", count_nothing)

    def _counts(self, domain: Domain, requested: Wanted) -> TrueCounts:
        count, needed = self._prepared(domain, requested)

        def count_rows() -> TrueCounts:
            *faster, last = (
                partial(read, domain=domain, needed=needed, empty=False)
                for read in self._source.ways()
            )
            failure = load_engine("duckdb").Error
            for read in faster:
                # A value that DuckDB refuses may not decide whether the count succeeds.
                with suppress(failure):
                    return self._counted(count, read).true_counts()
            return self._counted(count, last).true_counts()

        return guarded(f"counting table {self.name!r}", count_rows)

    def check_values(self, wanted: OpenValues) -> None:
        wanted.check()
        needed = self._needed(wanted)
        self._source.check(tuple(needed.values()), wanted.domain)

        def look_at_nothing() -> None:
            for read in self._source.ways():
                self._values(wanted, partial(read, domain=wanted.domain, needed=needed, empty=True))

        guarded(f"preparing to read table {self.name!r}", look_at_nothing)

    def values(self, wanted: OpenValues) -> OccurringValues:
        needed = self._needed(wanted)

        def find() -> OccurringValues:
            *faster, last = (
                partial(read, domain=wanted.domain, needed=needed, empty=False)
                for read in self._source.ways()
            )
            failure = load_engine("duckdb").Error
            for read in faster:
                with suppress(failure):  # as for counts
                    return self._values(wanted, read)
            return self._values(wanted, last)

        return guarded(f"reading table {self.name!r}", find)

    def _needed(self, wanted: OpenValues) -> dict[str, Column]:
        return check_columns(self.name, wanted.domain, self._source.columns(wanted.domain))

    def _values(
        self, wanted: OpenValues, read: Callable[[DuckDBPyConnection], Reading]
    ) -> OccurringValues:
        count = count_of(wanted.domain, None, lists=False)
        with connection(alone=self._source.attached) as db:
            return occurring_values(db, DuckDbRows(count, read(db)), wanted)

    def _prepared(self, domain: Domain, requested: Wanted) -> tuple[Count, dict[str, Column]]:
        # NumPy merges values: looking up 115 ages in a list of DuckDB cost as much as reading
        # them, and a list of a million took 3 GB. Of numbers among edges, fewer edges are worth it.
        count = count_of(domain, requested, lists=False)
        return count, check_columns(self.name, domain, self._source.columns(domain))

    def _counted(self, count: Count, read: Callable[[DuckDBPyConnection], Reading]) -> Tally:
        tally = Tally(count)
        with connection(alone=self._source.attached) as db:
            rows = DuckDbRows(count, read(db))
            many = count.numbers or count.joint_size > GROUPED_CELLS
            if rows.wide or rows.person is not None or many:
                count_batches(db, rows, tally)
            else:
                grouped = db.sql(rows.grouped()).to_arrow_table()
                words = [grouped[f"w{i}"].to_numpy() for i in range(len(count.words))]
                tally.add(words, grouped["n"].to_numpy())
        return tally
