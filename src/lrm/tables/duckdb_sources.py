"""Where DuckDB finds rows: Parquet, CSV, a database file, or a frame in memory."""

from __future__ import annotations

import csv
import glob
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lrm.domain import Domain
from lrm.errors import TableError
from lrm.tables.base import Column, guarded, name_parts
from lrm.tables.duckdb_connection import connection, describe
from lrm.tables.duckdb_sql import DuckDbSql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["CsvFiles", "DatabaseFile", "ParquetFiles", "Source"]

SQL = DuckDbSql()


class Source(Protocol):
    """Where DuckDB finds the rows."""

    @property
    def label(self) -> str:
        """What the source is called by default."""
        ...

    def columns(self) -> tuple[Column, ...]:
        """Names and types, found without looking at rows."""
        ...

    def check(self, needed: Sequence[Column]) -> None:
        """Refuse what would fail only when rows are read."""
        ...

    def relation(self, db: DuckDBPyConnection, domain: Domain, *, schema_only: bool) -> str:
        """Make the rows known to ``db``, and return what to write after FROM.

        With ``schema_only`` no row need be there, as none will be read.
        """
        ...


def files_of(pattern: str) -> tuple[str, ...]:
    """Return the files that a path or a pattern names, sorted, or say that there is none."""
    exact = Path(pattern).is_file()
    found = [pattern] if exact else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    files = tuple(file for file in found if Path(file).is_file())
    if not files:
        folder = " (it is a folder; write FOLDER/*.parquet)" if Path(pattern).is_dir() else ""
        raise TableError(f"no file matches {pattern!r}{folder}")
    return files


def _listed(files: Sequence[str]) -> str:
    # DuckDB would take a bracket in a file's name for a pattern.
    return "[" + ", ".join(SQL.text(glob.escape(file)) for file in files) + "]"


class ParquetFiles:
    """Parquet files with one schema."""

    def __init__(self, pattern: str) -> None:
        self._files = files_of(pattern)
        self.label = Path(pattern).name
        self._columns = self._describe(self._files[0])

    def _describe(self, file: str) -> tuple[Column, ...]:
        def look() -> tuple[Column, ...]:
            with connection() as db:
                return describe(db, self._read([file]))

        return guarded(f"reading the schema of {file!r}", look)

    @staticmethod
    def _read(files: Sequence[str]) -> str:
        # Columns made of folder names would have types guessed from data.
        return f"read_parquet({_listed(files)}, hive_partitioning = false)"

    def columns(self) -> tuple[Column, ...]:
        return self._columns

    def check(self, needed: Sequence[Column]) -> None:
        """Every file has the columns, of one type: a cast between types may fail on a value."""
        for file in self._files[1:]:
            found = self._describe(file)
            for column in needed:
                if column not in found:
                    raise TableError(
                        f"file {file!r} has no column {column.name!r} of type "
                        f"{column.type_text}, as {self._files[0]!r} has"
                    )

    def relation(self, db: DuckDBPyConnection, domain: Domain, *, schema_only: bool) -> str:  # noqa: ARG002
        return self._read(self._files)


class CsvFiles:
    """CSV files with a header line, separated by commas (or tabs, where called ``.tsv``).

    The form is that of RFC 4180 and is never guessed: with every column as text, DuckDB's
    guess of the separator still changed with the rows. A line that does not have as many
    fields as the header is no row.
    """

    def __init__(self, pattern: str) -> None:
        self._files = files_of(pattern)
        self.label = Path(pattern).name
        self._separator = "\t" if ".tsv" in Path(pattern).name.lower() else ","
        self._header = self._header_of(self._files[0])

    def _header_of(self, file: str) -> tuple[str, ...]:
        def look() -> list[str]:
            opened: Any = gzip.open if file.lower().endswith(".gz") else open
            with opened(file, mode="rt", encoding="utf-8-sig", newline="") as lines:
                return next(csv.reader(lines, delimiter=self._separator), [])

        header = guarded(f"reading the header of {file!r}", look)
        twice = {name for name in header if header.count(name) > 1}
        if not header or twice:
            fault = f"names {min(twice)!r} twice" if twice else "is empty"
            raise TableError(f"the header of {file!r} {fault}; name each column once")
        return tuple(header)

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name, "text (CSV)", "raw") for name in self._header)

    def check(self, needed: Sequence[Column]) -> None:  # noqa: ARG002 - all columns are alike
        """Every file has the same header, as columns are found by their place."""
        for file in self._files[1:]:
            if self._header_of(file) != self._header:
                raise TableError(f"the header of {file!r} differs from that of {self._files[0]!r}")

    def relation(self, db: DuckDBPyConnection, domain: Domain, *, schema_only: bool) -> str:  # noqa: ARG002
        types = ", ".join(f"{SQL.text(name)}: 'VARCHAR'" for name in self._header)
        return (
            f"read_csv({_listed(self._files)}, auto_detect = false, header = true, "
            f"delim = {SQL.text(self._separator)}, quote = '\"', escape = '\"', "
            f"columns = {{{types}}}, allow_quoted_nulls = false, ignore_errors = true)"
        )


class DatabaseFile:
    """A table or view of a DuckDB database file, opened for reading only."""

    def __init__(self, path: str, table: str) -> None:
        if not Path(path).is_file():
            raise TableError(f"there is no database file {path!r}")
        self._path = path
        self._table = ".".join(SQL.name(part) for part in name_parts(table))
        self.label = table

        def look() -> tuple[Column, ...] | None:
            with connection() as db:
                relation = self._attach(db)
                import duckdb  # noqa: PLC0415 - loaded by `connection`

                try:
                    return describe(db, relation)
                except duckdb.CatalogException:
                    return None

        columns = guarded(f"opening database {path!r}", look)
        if columns is None:
            raise TableError(f"database {path!r} has no table {table!r}")
        self._columns = columns

    def _attach(self, db: DuckDBPyConnection) -> str:
        db.execute(f"ATTACH {SQL.text(self._path)} AS lrm_source (READ_ONLY)")
        return f"lrm_source.{self._table}"

    def columns(self) -> tuple[Column, ...]:
        return self._columns

    def check(self, needed: Sequence[Column]) -> None:
        """Nothing fails later that `columns` does not show."""

    def relation(self, db: DuckDBPyConnection, domain: Domain, *, schema_only: bool) -> str:  # noqa: ARG002
        return self._attach(db)
