"""The rows of one level of a people, made of its private tables inside DuckDB.

Each private table is read once, and all that follows is the SQL of `lrm.tables.people_sql`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lrm.domain import Domain, Numbers
from lrm.domain.people import Level
from lrm.tables.base import Column
from lrm.tables.duckdb_reading import SQL, Needed, Reading, Source
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.tables.people_sql import LevelSql, TableRows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PERSON = "person"


class LevelSource(Source):
    """The rows of a level as one relation of DuckDB."""

    attached = True  # a database of its own: the rows of several tables are gone with it

    def __init__(self, level: Level, sources: Mapping[str, Source]) -> None:
        self.label = level.people.name
        self._level = level
        self._sources = sources
        columns = {table.name: sources[table.name].columns(table.domain) for table in level.tables}
        self._sql = LevelSql(level, columns, SQL)

    def columns(self, domain: Domain | None = None) -> tuple[Column, ...]:  # noqa: ARG002
        """Cells of the attributes, numbers of features, and the person."""
        level = self._level
        person = level.domain.unit.column or PERSON
        return (*map(self._sql.column, level.domain.attributes), Column(person, "name", "cells"))

    def check(self, needed: Sequence[Column], domain: Domain) -> None:  # noqa: ARG002
        for name, rows in self._sql.tables.items():
            self._sources[name].check(tuple(rows.needed.values()), rows.domain)

    def ways(self) -> Sequence[Callable[..., Reading]]:
        most = max(len(self._sources[name].ways()) for name in self._sql.tables)
        return tuple(partial(self._read_by, way) for way in range(most))

    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        return self._read_by(0, db, domain=domain, needed=needed, empty=empty)

    def _read_by(
        self, way: int, db: DuckDBPyConnection, *, domain: Domain, needed: Needed, empty: bool
    ) -> Reading:
        del needed
        # Whole numbers are compared as such where all tables have them: 1 and '1' are one person.
        whole = all(map(_has_whole_persons, self._sql.tables.values()))
        for name, rows in self._sql.tables.items():
            _make(db, rows, self._sources[name], way, empty=empty, whole=whole)
        db.execute(f"CREATE TEMP TABLE lrm_level AS {self._sql.relation(domain)}")
        person = self._sql.person if self._sql.is_limited else None
        return Reading("lrm_level", self._sql.columns(), person)


def _has_whole_persons(rows: TableRows) -> bool:
    """Whether persons are named by signed whole numbers of at most 64 bits."""
    column = rows.needed[rows.table.person]
    signed = not column.type_text.upper().startswith("U")
    return column.kind == "integer" and column.bits <= 64 and signed


def _make(  # noqa: PLR0913 - a table, and how it is read
    db: DuckDBPyConnection, rows: TableRows, source: Source, way: int, *, empty: bool, whole: bool
) -> None:
    """Read the rows, once, into a table of the connection.

    With ``whole``, persons are whole numbers there, else bytes.
    """
    ways = source.ways()
    read: Callable[..., Reading] = ways[min(way, len(ways) - 1)]
    reading = read(db, domain=rows.domain, needed=rows.needed, empty=empty)
    placed = DuckDbRows(rows.count, reading)
    assert reading.person is not None  # noqa: S101 - the domain has a person's column
    name = "CAST(person AS BIGINT)" if whole else _name_of(reading.person)
    listed = [f"{name} AS person"]
    for place, attribute in enumerate(rows.used):
        if isinstance(attribute, Numbers):
            listed.append(f"c{place} AS v{place}")
        else:
            listed.append(f"CAST({placed.key(place)} AS INTEGER) AS w{place}")
    listed += [f"{SQL.as_double(*placed.value(place))} AS x{place}" for place in rows.numbers]
    kept = ["person IS NOT NULL"]
    if rows.dated is not None:  # rows of other editions are in no cell
        kept.append(f"{placed.key(int(rows.dated[1:]))} IS NOT NULL")
    query = f"SELECT {', '.join(listed)} FROM {placed.values()} WHERE {' AND '.join(kept)}"  # noqa: S608
    db.execute(f"CREATE TEMP TABLE {rows.name} AS {query}")
    db.execute("DROP TABLE IF EXISTS lrm_empty")
    if source.attached:
        db.execute("DETACH lrm_source")


def _name_of(column: Column) -> str:
    """The name of a person as bytes, whatever the column holds: SQL over `DuckDbRows.values`."""
    if column.kind == "integer" and column.bits <= 64:
        return "encode(CAST(person AS VARCHAR))"
    return "person"
