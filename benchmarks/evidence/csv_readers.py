"""CSV files counted by the reader of lrm, and by DuckDB's own, which it replaces.

DuckDB's reader is here for comparison only: one record can make it drop, join or refuse all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from lrm.domain import CsvForm, Domain
from lrm.tables.base import Column
from lrm.tables.csv_files import CsvFiles
from lrm.tables.duckdb_sql import DuckDbSql
from lrm.tables.duckdb_table import DuckDbTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["by_duckdb", "by_lrm", "generate_csv"]

SQL = DuckDbSql()


class DuckDbCsv:
    """A CSV file read by DuckDB in parallel, every column as text."""

    def __init__(self, path: Path) -> None:
        self.label = path.name
        self._path = path
        self._columns = CsvFiles(str(path)).columns()

    def columns(self, domain: Domain | None = None) -> tuple[Column, ...]:  # noqa: ARG002 - the file says
        """Names and types."""
        return self._columns

    def check(self, needed: Sequence[Column], domain: Domain) -> None:
        """Nothing to refuse."""

    def relation(self, db: DuckDBPyConnection, domain: Domain, *, schema_only: bool) -> str:  # noqa: ARG002
        """Return the call of DuckDB's reader, as it was used before."""
        types = ", ".join(f"{SQL.text(column.name)}: 'VARCHAR'" for column in self._columns)
        return (
            f"read_csv({SQL.text(str(self._path))}, auto_detect = false, header = true, "
            f"delim = ',', quote = '\"', escape = '\"', columns = {{{types}}}, "
            "allow_quoted_nulls = false, ignore_errors = true)"
        )


def by_duckdb(path: Path) -> DuckDbTable:
    """The file as DuckDB reads it."""
    return DuckDbTable(DuckDbCsv(path))


def by_lrm(path: Path) -> DuckDbTable:
    """The file as lrm reads it."""
    return DuckDbTable(CsvFiles(str(path), CsvForm()))


def generate_csv(parquet: Path, path: Path, *, quoted: bool) -> None:
    """Write the rows of a Parquet file as CSV, with quotes around all fields or none."""
    with duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False}) as db:
        forced = ", FORCE_QUOTE *" if quoted else ""
        db.execute(f"COPY (FROM '{parquet}') TO '{path}' (HEADER{forced})")
