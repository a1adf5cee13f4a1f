"""The rows of one level of a people, made of its private tables inside DuckDB.

Each private table is read once: every row becomes the name of its person, as bytes, and the cells
of the attributes that are needed. What follows looks at these alone, in expressions that cannot
fail, and puts together what has the same bytes for a name. So a row of a level is a function of one
person's rows (`lrm.domain.people`), and the limit on rows per person is the one of every table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.domain import Attribute, Bins, Domain, Integers, Numbers
from lrm.domain.people import Feature, Level, PrivateTable
from lrm.errors import TableError
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.products.combine import Product
from lrm.queries.sql.compile import compile_condition
from lrm.tables.axes import plain_axis
from lrm.tables.base import Column, check_columns
from lrm.tables.count import Count
from lrm.tables.duckdb_reading import SQL, Needed, Reading, Source
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.tables.duckdb_table import DuckDbTable
from lrm.tables.opening import open_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARTS = 10_000
"""Sums are added up in whole numbers of such parts: float sums depend on the order of rows."""

PERSON = "person"


def open_people(level: Level, sources: Mapping[str, object]) -> DuckDbTable:
    """Open the private tables of a level; no row is read.

    Parameters
    ----------
    level
        What is counted.
    sources
        What `lrm.tables.open_table` takes, by the name of the table.
    """
    opened = {}
    known = {table.name: table for table in level.people.tables}
    for name, source in sources.items():
        if name not in known:
            raise TableError(
                f"{level.people.name!r} has no table {name!r}; its tables are {', '.join(known)}"
            )
        counted = source if isinstance(source, DuckDbTable) else open_table(source)
        if not isinstance(counted, DuckDbTable):
            raise TableError(
                f"table {name!r}: tables of a people are counted by DuckDB; give files, frames or "
                "tables of a DuckDB database"
            )
        opened[name] = counted.source
    for table in level.tables:
        if table.name not in opened:
            raise TableError(
                f"table {table.name!r} of {level.people.name!r} is missing; give it as "
                f"{{{table.name!r}: …}}, on the command line as --table {table.name}=FILE"
            )
    return DuckDbTable(LevelSource(level, opened), level.people.name)


class LevelSource(Source):
    """The rows of a level as one relation of DuckDB."""

    attached = True  # a database of its own: the rows of several tables are gone with it

    def __init__(self, level: Level, sources: Mapping[str, Source]) -> None:
        self.label = level.people.name
        self._level = level
        self._tables = {
            table.name: _TableRows(number, table, sources[table.name], self._used(table))
            for number, table in enumerate(level.tables)
        }

    def _used(self, table: PrivateTable) -> tuple[Attribute, ...]:
        """The attributes of a table that the level looks at."""
        level = self._level
        names = {attribute.name for owner, attribute in level.sources.values() if owner == table}
        for feature in level.every_feature.values():
            if feature.of == table.name:
                columns = [
                    table.attribute(name) for name in (feature.column, feature.order) if name
                ]
                names |= {attribute.name for attribute in columns if attribute is not None}
                names |= {table.domain.names[axis] for axis in _axes(_condition(feature, table))}
        used = tuple(attribute for attribute in table.attributes if attribute.name in names)
        return used or table.attributes[:1]

    def columns(self, domain: Domain | None = None) -> tuple[Column, ...]:  # noqa: ARG002
        """Cells of the attributes, numbers of features, and the person."""
        level = self._level
        person = level.domain.unit.column or PERSON
        return (*map(self._column, level.domain.attributes), Column(person, "name", "cells"))

    def _column(self, attribute: Attribute) -> Column:
        feature = self._level.every_feature.get(attribute.name)
        if feature is not None and feature.value in {"count", "sum", "distinct"}:
            if isinstance(attribute, Integers):
                return Column(attribute.name, "BIGINT", "integer")
            return Column(attribute.name, "DOUBLE", "float")
        owner = self._level.sources.get(attribute.name)
        if owner is not None and isinstance(attribute, Numbers):
            return replace(self._tables[owner[0].name].stored(owner[1]), name=attribute.name)
        return Column(attribute.name, "cell", "cells")

    def check(self, needed: Sequence[Column], domain: Domain) -> None:  # noqa: ARG002
        for rows in self._tables.values():
            rows.check()

    def ways(self) -> Sequence[Callable[..., Reading]]:
        most = max(len(rows.source.ways()) for rows in self._tables.values())
        return tuple(partial(self._read_by, way) for way in range(most))

    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        return self._read_by(0, db, domain=domain, needed=needed, empty=empty)

    def _read_by(
        self, way: int, db: DuckDBPyConnection, *, domain: Domain, needed: Needed, empty: bool
    ) -> Reading:
        for rows in self._tables.values():
            rows.make(db, way, empty=empty)
        relation = self._persons() if self._level.base is None else self._events()
        db.execute(f"CREATE TEMP TABLE lrm_level AS {relation}")
        columns = tuple(needed[name] for name in domain.names)
        return Reading("lrm_level", columns, needed[domain.unit.column or PERSON])

    def _persons(self) -> str:
        """One row per person: their columns, and their features."""
        level = self._level
        base = level.persons_table
        if base.is_single:
            start = self._tables[base.name].single()
        else:
            every = (f"SELECT person FROM {rows.name}" for rows in self._tables.values())  # noqa: S608
            start = f"(SELECT DISTINCT person FROM ({' UNION ALL '.join(every)}))"  # noqa: S608
        joins, listed = [], [f"base.person AS {SQL.name(level.domain.unit.column or PERSON)}"]
        for name, (table, attribute) in level.sources.items():
            source = "base" if table == base else f"single_{self._tables[table.name].number}"
            listed.append(
                f"{source}.{self._tables[table.name].place(attribute)} AS {SQL.name(name)}"
            )
            join = f"LEFT JOIN {self._tables[table.name].single()} AS {source} USING (person)"
            if table != base and join not in joins:
                joins.append(join)
        for table in level.tables:
            features = [f for f in level.every_feature.values() if f.of == table.name]
            if features:
                rows = self._tables[table.name]
                joins.append(
                    f"LEFT JOIN {rows.features(features)} AS of_{rows.number} USING (person)"
                )
                listed += [
                    f"{rows.feature(f, f'of_{rows.number}.f{i}')} AS {SQL.name(f.name)}"
                    for i, f in enumerate(features)
                ]
        if level.domain.names == ("(everyone)",):
            listed.append('0 AS "(everyone)"')
        return f"SELECT {', '.join(listed)} FROM {start} AS base {' '.join(joins)}"  # noqa: S608

    def _events(self) -> str:
        """The rows of one table, with the columns of their persons."""
        level = self._level
        assert level.table is not None  # noqa: S101 - the caller looked
        base = self._tables[level.table.name]
        listed = [f"base.person AS {SQL.name(level.domain.unit.column or PERSON)}"]
        joins: dict[str, str] = {}
        for name, (table, attribute) in level.sources.items():
            rows = self._tables[table.name]
            value = f"base.{rows.place(attribute)}"
            if table != level.table:
                value = f"single_{rows.number}.{rows.place(attribute)}"
                null = attribute.special_cell("(null)")
                if null is not None:  # no row of the person is NULL in every column
                    missing = f"single_{rows.number}.person IS NULL"
                    value = f"CASE WHEN {missing} THEN {null} ELSE {value} END"
                joins[table.name] = rows.joined()
            listed.append(f"{value} AS {SQL.name(name)}")
        for feature in level.features:
            rows = self._tables[feature.of]
            joins[feature.of] = rows.joined()
            has_row = f"single_{rows.number}.person IS NOT NULL"
            listed.append(f"CASE WHEN {has_row} THEN 0 ELSE 1 END AS {SQL.name(feature.name)}")
        if level.domain.names == ("(everyone)",):
            listed.append('0 AS "(everyone)"')
        return f"SELECT {', '.join(listed)} FROM {base.name} AS base {' '.join(joins.values())}"  # noqa: S608


class _TableRows:
    """The rows of one private table, as names and cells."""

    def __init__(
        self, number: int, table: PrivateTable, source: Source, used: tuple[Attribute, ...]
    ) -> None:
        self.number, self.table, self.source, self._used = number, table, source, used
        unit = PrivacyUnit(table.person, table.most or 1)
        self._domain = Domain(used, table.name, unit, table.csv)
        self.name = f"lrm_rows_{number}"

    @property
    def _needed(self) -> dict[str, Column]:
        return check_columns(self.table.name, self._domain, self.source.columns(self._domain))

    def check(self) -> None:
        """Refuse a table that lacks what is declared."""
        self.source.check(tuple(self._needed.values()), self._domain)

    def stored(self, attribute: Attribute) -> Column:
        """How an attribute is stored."""
        return self._needed[attribute.name]

    def place(self, attribute: Attribute) -> str:
        """The column of `name` that has an attribute."""
        place = self._domain.names.index(attribute.name)
        return f"v{place}" if isinstance(attribute, Numbers) else f"k{place}"

    def make(self, db: DuckDBPyConnection, way: int, *, empty: bool) -> None:
        """Read the rows, once, into a table of the connection."""
        ways = self.source.ways()
        read: Callable[..., Reading] = ways[min(way, len(ways) - 1)]
        reading = read(db, domain=self._domain, needed=self._needed, empty=empty)
        axes = tuple(map(plain_axis, self._used))
        words = tuple((place,) for place in range(len(axes)))
        rows = DuckDbRows(Count(self._domain, axes, words, (), (), of_cells=False), reading)
        assert reading.person is not None  # noqa: S101 - the domain has a person's column
        listed = [f"{_name_of(reading.person)} AS person"]
        for place, attribute in enumerate(self._used):
            if isinstance(attribute, Numbers):
                listed.append(f"c{place} AS v{place}")
            else:
                listed.append(f"CAST({rows.key(place)} AS INTEGER) AS k{place}")
            if attribute.numeric:
                listed.append(f"{SQL.as_double(*rows.value(place))} AS x{place}")
        query = f"SELECT {', '.join(listed)} FROM {rows.values()} WHERE person IS NOT NULL"  # noqa: S608
        db.execute(f"CREATE TEMP TABLE {self.name} AS {query}")
        db.execute("DROP TABLE IF EXISTS lrm_empty")
        if self.source.attached:
            db.execute("DETACH lrm_source")

    def single(self) -> str:
        """One row per person: the first in the order of cells."""
        columns = [self.place(attribute) for attribute in self._used]
        record = ", ".join(f"{column} := {column}" for column in columns)
        listed = ", ".join(f"record.{column} AS {column}" for column in columns)
        least = (
            f"SELECT person, min(struct_pack({record})) AS record FROM {self.name} GROUP BY person"  # noqa: S608
        )
        return f"(SELECT person, {listed} FROM ({least}))"  # noqa: S608

    def joined(self) -> str:
        """A join of events with the one row of their person."""
        single = f"single_{self.number}"
        return f"LEFT JOIN {self.single()} AS {single} ON base.person = {single}.person"

    def features(self, features: Sequence[Feature]) -> str:
        """One row per person with rows: the features as ``f0``, ``f1`` …."""
        listed = ", ".join(f"{self._aggregate(f)} AS f{i}" for i, f in enumerate(features))
        return f"(SELECT person, {listed} FROM {self.name} GROUP BY person)"  # noqa: S608

    def _aggregate(self, feature: Feature) -> str:
        condition = _condition_sql(_condition(feature, self.table), self.table, self._domain)
        if feature.value == "count":
            return f"count(*) FILTER (WHERE {condition})"
        if feature.value == "exists":
            return f"bool_or({condition})"
        source = self.table.attribute(feature.column or "")
        assert source is not None  # noqa: S101 - the people has checked it
        place = self._domain.names.index(source.name)
        if feature.value == "sum":
            low, high = feature.clip or (0.0, 0.0)
            x = f"x{place}"
            clipped = f"least(greatest({x}, {low!r}::DOUBLE), {high!r}::DOUBLE)"
            whole = f"CAST(round({clipped} * {PARTS}) AS BIGINT)"
            number = f"CASE WHEN {x} IS NOT NULL AND NOT isnan({x}) THEN {whole} END"
            return f"sum({number}) FILTER (WHERE {condition})"
        cell = f"k{place}"
        regular = f"{cell} < {source.regular} AND {condition}"
        if feature.value == "distinct":
            return f"count(DISTINCT {cell}) FILTER (WHERE {regular})"
        if feature.value in {"min", "max"}:
            return f"{feature.value}({cell}) FILTER (WHERE {regular})"
        order = self.table.attribute(feature.order or "")
        assert order is not None  # noqa: S101 - the people has checked it
        by = f"k{self._domain.names.index(order.name)}"
        key = f"CAST({by} AS BIGINT) * {source.size} + {cell}"
        extreme = "arg_min" if feature.value == "first" else "arg_max"
        ordered = f"{by} < {order.regular} AND {regular}"
        return f"{extreme}({cell}, {key}) FILTER (WHERE {ordered})"

    def feature(self, feature: Feature, value: str) -> str:
        """A feature in the form of its attribute, for persons without rows too."""
        attribute = feature.attribute
        if feature.value == "exists":
            return f"CASE WHEN {value} THEN 0 ELSE 1 END"
        if feature.value in {"min", "max", "first", "last"}:
            return f"coalesce({value}, {attribute.special_cell('(null)')})"
        number = f"coalesce({value}, 0)"
        if feature.value == "sum":
            number = f"CAST({number} AS DOUBLE) / {PARTS}"
        if isinstance(attribute, Integers):
            ends = f"least(greatest({number}, {attribute.low}), {attribute.high})"
            return f"CAST({ends} AS BIGINT)"
        if isinstance(attribute, Bins):  # the last edge belongs to the last cell
            return f"least(CAST({number} AS DOUBLE), {_below(attribute.edges[-1])!r}::DOUBLE)"
        return f"CAST({number} AS DOUBLE)"


def _below(edge: float) -> float:
    return float(np.nextafter(edge, -np.inf)) if np.isfinite(edge) else 1e300


def _name_of(column: Column) -> str:
    """The name of a person as bytes, whatever the column holds: SQL over `DuckDbRows.values`."""
    if column.kind == "integer" and column.bits <= 64:
        return "encode(CAST(person AS VARCHAR))"
    return "person"


def _condition(feature: Feature, table: PrivateTable) -> list[Product]:
    """The rows of a feature as a sum of products over the cells of its table."""
    if feature.where is None:
        return []
    text = f"SELECT COUNT(*) FROM {SQL.name(table.name)} WHERE {feature.where}"  # noqa: S608 - parsed, never executed
    compiled = compile_condition(text, table.domain)
    if compiled is None:
        raise feature.error("where must be a condition on columns of its table")
    return compiled[0]


def _axes(products: Sequence[Product]) -> set[int]:
    return {axis for _, vectors in products for axis in vectors}


def _condition_sql(products: Sequence[Product], table: PrivateTable, used: Domain) -> str:
    """Whether a row meets a condition, from its cells; a row outside of the domain does not."""
    if not products:
        return "TRUE"
    places = {axis: used.names.index(table.domain.names[axis]) for axis in _axes(products)}
    known = [f"k{place} IS NOT NULL" for place in places.values()]
    terms = []
    for coefficient, vectors in products:
        factors = [_weights(f"k{places[axis]}", vector) for axis, vector in vectors.items()]
        terms.append(" * ".join([f"({coefficient!r})", *factors]))
    return " AND ".join([*known, f"({' + '.join(terms)}) > 0.5"])


def _weights(cell: str, vector: Any) -> str:
    """The weight of a cell, as SQL: most are 0 or 1."""
    clauses = []
    for weight in np.unique(vector[vector != 0]).tolist():
        cells = ", ".join(map(str, np.flatnonzero(vector == weight).tolist()))
        clauses.append(f"WHEN {cell} IN ({cells}) THEN {weight!r}")
    return f"CASE {' '.join(clauses)} ELSE 0 END" if clauses else "0"
