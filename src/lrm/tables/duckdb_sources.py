"""Where DuckDB finds rows: Parquet files and database files."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrm.domain import Domain
from lrm.errors import TableError
from lrm.files.locations import shown
from lrm.tables.arrow_rows import ArrowRows
from lrm.tables.base import Column, guarded, load_engine, name_parts
from lrm.tables.duckdb_connection import connection, describe
from lrm.tables.duckdb_reading import SQL, Needed, Reading, Source, reading_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BATCH_ROWS = 1 << 17


def files_of(pattern: str) -> tuple[str, ...]:
    """Return the files that a path or a pattern names, sorted, or say that there is none."""
    exact = Path(pattern).is_file()
    candidates = [pattern] if exact else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    files = tuple(file for file in candidates if Path(file).is_file())
    if not files:
        folder = " (it is a folder; write FOLDER/*.parquet)" if Path(pattern).is_dir() else ""
        raise TableError(f"no file matches {shown(pattern)!r}{folder}")
    return files


def _listed(files: Sequence[str]) -> str:
    # DuckDB would take a bracket in a file's name for a pattern.
    return "[" + ", ".join(SQL.text(glob.escape(file)) for file in files) + "]"


class ParquetFiles(Source):
    """Parquet files with one schema."""

    def __init__(self, pattern: str) -> None:
        self._files = files_of(pattern)
        self.label = Path(pattern).name
        self._columns = self._describe(self._files[0])

    def _describe(self, file: str) -> tuple[Column, ...]:
        def look() -> tuple[Column, ...]:
            with connection() as db:
                return describe(db, self._relation([file]))

        return guarded(f"reading the schema of {file!r}", look)

    @staticmethod
    def _relation(files: Sequence[str]) -> str:
        # Columns made of folder names would have types guessed from data. Where a filter skips
        # parts of a file, their greatest number must not be taken for that of NaNs, too.
        return f"read_parquet({_listed(files)}, hive_partitioning = false, can_have_nan = true)"

    def check(self, needed: Sequence[Column], domain: Domain) -> None:  # noqa: ARG002
        """Every file has the columns, of one type: a cast between types may fail on a value."""
        for file in self._files:
            columns = self._describe(file)
            own_names = guarded(f"reading the schema of {file!r}", partial(_own_names, file))
            for column in needed:
                if column not in columns:
                    raise TableError(
                        f"file {file!r} has no column {column.name!r} of type "
                        f"{column.type_text}, as {self._files[0]!r} has"
                    )
                # DuckDB renames the second of two equal names, and Arrow does not.
                if (
                    own_names.count(column.name) > 1
                    or own_names[columns.index(column)] != column.name
                ):
                    raise TableError(
                        f"file {file!r} has several columns that may be called {column.name!r}; "
                        "write it with names that differ in more than case"
                    )

    def ways(self) -> Sequence[Callable[..., Reading]]:
        return (self._read, self._by_arrow)

    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """By DuckDB's own reader, which refuses some values, such as text that is not UTF-8."""
        return reading_of(db, self._relation(self._files), domain, needed, empty=empty)

    def _by_arrow(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """By Arrow's reader, which accepts every value and takes 1.5 times as long."""
        parquet = load_engine("pyarrow.parquet")

        def opened(file: str) -> Any:
            # As integers of 96 bits, Arrow would let times after 2262 wrap around.
            return parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")

        def batches() -> Iterator[Any]:
            for file in () if empty else self._files:
                with opened(file) as rows:
                    yield from rows.iter_batches(BATCH_ROWS, columns=list(needed))

        with opened(self._files[0]) as first:
            types = {field.name: field.type for field in first.schema_arrow}
        rows = ArrowRows(domain, needed, types)
        db.register("lrm_parquet", rows.reader(batches()))
        return rows.reading("lrm_parquet")


def _own_names(file: str) -> list[str]:
    """The names of columns as a Parquet file states them."""
    return list(load_engine("pyarrow.parquet").read_schema(file).names)


def _with_collations(
    db: DuckDBPyConnection, relation: str, columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Mark texts with a collation, which DuckDB reports for tables but not for views."""
    texts = [column for column in columns if column.type_text == "VARCHAR"]
    if not texts:
        return columns
    listed = ", ".join(f"{SQL.name(column.name)} AS c{i}" for i, column in enumerate(texts))
    db.execute(f"CREATE TEMP TABLE lrm_texts AS SELECT {listed} FROM {relation} WITH NO DATA")  # noqa: S608 - quoted parts
    definitions = db.execute(
        "SELECT sql FROM duckdb_tables() WHERE table_name = 'lrm_texts'"
    ).fetchall()
    types = definitions[0][0].partition("(")[2].split(", ")  # c0 VARCHAR, c1 VARCHAR COLLATE NOCASE
    loose = {column.name for column, text in zip(texts, types, strict=True) if " COLLATE " in text}
    return tuple(replace(column, loose=column.name in loose) for column in columns)


class DatabaseFile(Source):
    """A table or view of a DuckDB database file, opened for reading only."""

    attached = True

    def __init__(self, path: str, table: str) -> None:
        if not Path(path).is_file():
            raise TableError(f"there is no database file {shown(path)!r}")
        self._path = path
        self._table = ".".join(SQL.name(part) for part in name_parts(table))
        self.label = table

        def look() -> tuple[Column, ...] | None:
            with connection(alone=True) as db:
                relation = self._attach(db)
                import duckdb  # noqa: PLC0415 - loaded by `connection`

                try:
                    columns = describe(db, relation)
                except duckdb.CatalogException:
                    return None
                return _with_collations(db, relation, columns)

        columns = guarded(f"opening database {path!r}", look)
        if columns is None:
            raise TableError(f"database {path!r} has no table {table!r}")
        self._columns = columns

    def _attach(self, db: DuckDBPyConnection) -> str:
        db.execute(f"ATTACH {SQL.text(self._path)} AS lrm_source (READ_ONLY)")
        return f"lrm_source.{self._table}"

    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        return reading_of(db, self._attach(db), domain, needed, empty=empty)
