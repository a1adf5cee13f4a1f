"""Where DuckDB finds rows in files: the files of a pattern, and database files."""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lrm.domain import Domain
from lrm.errors import TableError
from lrm.files.locations import shown
from lrm.tables.base import Column, guarded, name_parts
from lrm.tables.duckdb_connection import connection, describe
from lrm.tables.duckdb_reading import SQL, Needed, Reading, Source, reading_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def files_of(pattern: str) -> tuple[str, ...]:
    """Return the files that a path or a pattern names, sorted, or say that there is none."""
    exact = Path(pattern).is_file()
    candidates = [pattern] if exact else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    files = tuple(file for file in candidates if Path(file).is_file())
    if not files:
        raise TableError(f"no file matches {shown(pattern)!r}")
    return files


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
