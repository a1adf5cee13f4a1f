"""SQL that makes the rows of one level of a people from its private tables, on any engine.

An engine reads each private table once, as a relation whose rows have the name of their ``person``
and, of each attribute that is needed, the cell ``w0``, ``w1`` …, of numbers by knots the stored
value ``v0`` …, and of numbers the nearest float64 ``x0`` …. What follows looks at these alone, in
expressions that cannot fail, and puts together what has the same bytes for a name. So a row of a
level is a function of one person's rows (`lrm.domain.people`), and the limit on rows per person is
the one of every table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lrm.domain import Attribute, Bins, Domain, Integers, Numbers
from lrm.domain.features import Feature
from lrm.domain.people import Level
from lrm.domain.private_tables import PrivateTable
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.products.combine import Product
from lrm.queries.sql.compile import compile_condition
from lrm.tables.axes import plain_axis
from lrm.tables.base import Column, check_columns
from lrm.tables.count import Count
from lrm.tables.dialect import Dialect
from lrm.tables.editions import absolute

PARTS = 10_000
"""Sums are added up in whole numbers of such parts: float sums depend on the order of rows."""

MOST_PARTS = 1 << 62
"""Sums beyond it are moved to it, so that they fit 64 bits."""

FLAGS = 60
"""Yes/no features in one number of 64 bits."""


class LevelSql:
    """The rows of a level as one relation.

    Parameters
    ----------
    level
        What is counted.
    columns
        The columns of each private table, by its name.
    dialect
        The engine's SQL.
    prefix
        What the names of relations begin with.
    """

    def __init__(
        self,
        level: Level,
        columns: Mapping[str, Sequence[Column]],
        dialect: Dialect,
        prefix: str = "lrm_rows",
    ) -> None:
        self._level, self._dialect = level, dialect
        self.tables = {
            table.name: TableRows(
                f"{prefix}_{number}", table, used_attributes(level, table), columns, dialect
            )
            for number, table in enumerate(level.tables)
        }

    @property
    def person(self) -> Column:
        """The column ``person`` of `relation`."""
        return Column("person", "name", "cells")

    @property
    def is_limited(self) -> bool:
        """Whether a person may have too many rows: at the level of persons each has one."""
        return self._level.base is not None

    def columns(self) -> tuple[Column, ...]:
        """The columns ``c0``, ``c1`` … of `relation`, one for each attribute of the level."""
        attributes = self._level.domain.attributes
        return tuple(replace(self.column(a), name=f"c{i}") for i, a in enumerate(attributes))

    def column(self, attribute: Attribute) -> Column:
        """What the level has of an attribute: cells, or numbers."""
        feature = self._level.every_feature.get(attribute.name)
        if feature is not None and feature.is_number:
            if isinstance(attribute, Integers):
                return Column(attribute.name, "BIGINT", "integer")
            return Column(attribute.name, "DOUBLE", "float")
        owner = self._level.sources.get(attribute.name)
        if owner is not None and isinstance(attribute, Numbers):
            return replace(self.tables[owner[0].name].stored(owner[1]), name=attribute.name)
        return Column(attribute.name, "cell", "cells")

    def relation(self, domain: Domain) -> str:
        """The query of the level's rows, for a domain that may have cells for dropped values."""
        values, source = self._persons() if self._level.base is None else self._events()
        names = domain.names
        if names == ("(everyone)",):
            values["(everyone)"] = "0"
        for attribute in domain.attributes:
            if attribute.rest and self.column(attribute).kind == "cells":
                values[attribute.name] = f"coalesce({values[attribute.name]}, {attribute.size - 1})"
        listed = ["base.person AS person", *(f"{values[n]} AS c{i}" for i, n in enumerate(names))]
        return f"SELECT {', '.join(listed)} FROM {source}"  # noqa: S608 - all parts are quoted

    def _persons(self) -> tuple[dict[str, str], str]:
        """One row per person: their columns, and their features."""
        level = self._level
        base = self.tables[level.persons_table.name]
        if base.table.is_single:
            start = base.single()
        else:
            every = (f"SELECT person FROM {rows.name}" for rows in self.tables.values())  # noqa: S608
            start = f"(SELECT DISTINCT person FROM ({' UNION ALL '.join(every)}) AS named)"  # noqa: S608
        values: dict[str, str] = {}
        joins: dict[str, str] = {}
        for name, (table, attribute) in level.sources.items():
            rows = self.tables[table.name]
            source = "base" if rows is base else rows.single_alias
            values[name] = f"{source}.{rows.place(attribute)}"
            if rows is not base:
                joins[source] = rows.joined()
        for table in level.tables:
            features = [f for f in level.every_feature.values() if f.of == table.name]
            if features:
                rows = self.tables[table.name]
                alias = f"of_{rows.name}"
                joins[alias] = _left_join(rows.features(features), alias)
                for i, feature in enumerate(features):
                    values[feature.name] = rows.feature(feature, f"{alias}.f{i}")
        return values, f"{start} AS base {' '.join(joins.values())}"

    def _events(self) -> tuple[dict[str, str], str]:
        """The rows of one table, with the columns of their persons."""
        level = self._level
        assert level.table is not None  # noqa: S101 - the caller looked
        base = self.tables[level.table.name]
        values: dict[str, str] = {}
        joins: dict[str, str] = {}
        for name, (table, attribute) in level.sources.items():
            rows = self.tables[table.name]
            if rows is base:
                values[name] = f"base.{rows.place(attribute)}"
                continue
            value = f"{rows.single_alias}.{rows.place(attribute)}"
            null = attribute.special_cell("(null)")
            if null is not None:  # no row of the person is NULL in every column
                value = f"CASE WHEN {rows.single_alias}.person IS NULL THEN {null} ELSE {value} END"
            values[name] = value
            joins[table.name] = rows.joined()
        for feature in level.features:
            rows = self.tables[feature.of]
            joins[feature.of] = rows.joined()
            has_row = f"{rows.single_alias}.person IS NOT NULL"
            values[feature.name] = f"CASE WHEN {has_row} THEN 0 ELSE 1 END"
        return values, f"{base.name} AS base {' '.join(joins.values())}"


def used_attributes(level: Level, table: PrivateTable) -> tuple[Attribute, ...]:
    """The attributes of a table that a level looks at."""
    names = {attribute.name for owner, attribute in level.sources.values() if owner == table}
    for feature in level.every_feature.values():
        if feature.of == table.name:
            columns = [table.attribute(name) for name in (feature.column, feature.order) if name]
            names |= {attribute.name for attribute in columns if attribute is not None}
            names |= {table.domain.names[axis] for axis in _axes(_condition(feature, table))}
    used = tuple(attribute for attribute in table.attributes if attribute.name in names)
    return used or table.attributes[:1]


def _left_join(relation: str, alias: str) -> str:
    return f"LEFT JOIN {relation} AS {alias} ON base.person = {alias}.person"


class TableRows:
    """The rows of one private table, as names and cells."""

    def __init__(
        self,
        name: str,
        table: PrivateTable,
        used: tuple[Attribute, ...],
        columns: Mapping[str, Sequence[Column]],
        dialect: Dialect,
    ) -> None:
        self.name, self.table, self.used = name, table, used
        self._dialect = dialect
        self._columns = columns[table.name]
        unit = PrivacyUnit(table.person, table.most or 1)
        self._dated = table.editions
        read = used
        if self._dated is not None and self._dated.date not in {a.name for a in used}:
            read = (*used, self._dated.attribute)
        self.domain = Domain(map(absolute, read), table.name, unit, table.csv)

    @property
    def needed(self) -> dict[str, Column]:
        """The columns of the table that are read, by name; an error if one is missing."""
        return check_columns(self.table.name, self.domain, self._columns)

    @property
    def count(self) -> Count:
        """The words of its rows: the cells of the attributes, one by one."""
        axes = tuple(map(plain_axis, self.domain.attributes))
        words = tuple((place,) for place in range(len(axes)))
        return Count(self.domain, axes, words, (), (), of_cells=False)

    def stored(self, attribute: Attribute) -> Column:
        """How an attribute is stored."""
        return self.needed[attribute.name]

    def place(self, attribute: Attribute) -> str:
        """The column of `name` that has an attribute."""
        place = self.domain.names.index(attribute.name)
        return f"v{place}" if isinstance(attribute, Numbers) else f"w{place}"

    @property
    def numbers(self) -> list[int]:
        """Places of the attributes whose number the relation has in addition to the cell."""
        return [place for place, attribute in enumerate(self.used) if attribute.numeric]

    def further(self) -> list[str]:
        """What the relation has beside cells, from columns ``c0`` … as they are stored."""
        listed = [
            f"c{place} AS v{place}"
            for place, attribute in enumerate(self.used)
            if isinstance(attribute, Numbers)
        ]
        for place in self.numbers:
            column = self.needed[self.used[place].name]
            listed.append(f"{self._dialect.as_double(f'c{place}', column)} AS x{place}")
        return listed

    @property
    def dated(self) -> str | None:
        """The column that is NULL in rows of other editions, if there are editions."""
        if self._dated is None:
            return None
        return f"w{self.domain.names.index(self._dated.date or '')}"

    @property
    def single_alias(self) -> str:
        """What the one row of each person is called in joins."""
        return f"single_{self.name}"

    def single(self) -> str:
        """One row per person: the first in the order of cells."""
        columns = [self.place(attribute) for attribute in self.used]
        return f"({self._dialect.first_rows(self.name, 'person', columns)})"

    def joined(self) -> str:
        """A join with the one row of their person."""
        return _left_join(self.single(), self.single_alias)

    def features(self, features: Sequence[Feature]) -> str:
        """One row per person with rows: the features as ``f0``, ``f1`` ….

        Yes/no features are bits of one number, which takes a fourth of the time of an aggregate for
        each.
        """
        flags = [i for i, feature in enumerate(features) if feature.value == "exists"]
        inner, outer = ["person"], ["person"]
        for start in range(0, len(flags), FLAGS):
            bits = [
                f"CASE WHEN {self._condition(features[i])} THEN {1 << bit} ELSE 0 END"
                for bit, i in enumerate(flags[start : start + FLAGS])
            ]
            inner.append(f"bit_or(CAST({' | '.join(bits)} AS BIGINT)) AS b{start}")
            outer += [
                f"(b{start} & {1 << bit}) > 0 AS f{i}"
                for bit, i in enumerate(flags[start : start + FLAGS])
            ]
        for i, feature in enumerate(features):
            if i not in flags:
                inner.append(f"{self._aggregate(feature)} AS f{i}")
                outer.append(f"f{i}")
        grouped = f"SELECT {', '.join(inner)} FROM {self.name} GROUP BY person"  # noqa: S608
        return f"(SELECT {', '.join(outer)} FROM ({grouped}) AS grouped)"  # noqa: S608

    def _condition(self, feature: Feature) -> str:
        products = _condition(feature, self.table)
        return _condition_sql(products, self.table, self.domain, self._dialect)

    def _aggregate(self, feature: Feature) -> str:
        condition = self._condition(feature)
        if feature.value == "count":
            return f"count(*) FILTER (WHERE {condition})"
        source = self.table.attribute(feature.column or "")
        assert source is not None  # noqa: S101 - the people has checked it
        place = self.domain.names.index(source.name)
        if feature.value == "sum":
            low, high = map(self._dialect.number, feature.clip or (0.0, 0.0))
            x = f"x{place}"
            whole = f"floor(least(greatest({x}, {low}), {high}) * {PARTS} + {self._half})"
            known = f"{x} IS NOT NULL AND NOT ({self._dialect.is_nan(x)})"
            number = f"CASE WHEN {known} THEN CAST({whole} AS BIGINT) END"
            return f"{self._dialect.wide_sum(number)} FILTER (WHERE {condition})"
        cell = f"w{place}"
        regular = f"{cell} < {source.regular} AND {condition}"
        if feature.value == "distinct":
            return f"count(DISTINCT CASE WHEN {regular} THEN {cell} END)"
        if feature.value in {"min", "max"}:
            return f"{feature.value}({cell}) FILTER (WHERE {regular})"
        order = self.table.attribute(feature.order or "")
        assert order is not None  # noqa: S101 - the people has checked it
        by = f"w{self.domain.names.index(order.name)}"
        key = f"CAST({by} AS BIGINT) * {source.size} + {cell}"
        extreme = "min" if feature.value == "first" else "max"
        ordered = f"{by} < {order.regular} AND {regular}"
        return f"({extreme}({key}) FILTER (WHERE {ordered})) % {source.size}"

    @property
    def _half(self) -> str:
        return self._dialect.number(0.5)

    def feature(self, feature: Feature, value: str) -> str:
        """A feature in the form of its attribute, for persons without rows too."""
        attribute, double = feature.attribute, self._dialect.double
        if feature.value == "exists":
            return f"CASE WHEN {value} THEN 0 ELSE 1 END"
        if feature.value in {"min", "max", "first", "last"}:
            return f"coalesce({value}, {attribute.special_cell('(null)')})"
        number = f"coalesce({value}, 0)"
        if feature.value == "sum":
            whole = f"CAST(least(greatest({number}, -{MOST_PARTS}), {MOST_PARTS}) AS BIGINT)"
            number = f"CAST({whole} AS {double}) / {self._dialect.number(PARTS)}"
            if isinstance(attribute, Integers):  # the nearest whole number
                number = f"floor({number} + {self._half})"
        if isinstance(attribute, Integers):
            ends = f"least(greatest({number}, {attribute.low}), {attribute.high})"
            return f"CAST({ends} AS BIGINT)"
        if isinstance(attribute, Bins):  # the last edge belongs to the last cell
            below = self._dialect.number(_below(attribute.edges[-1]))
            return f"least(CAST({number} AS {double}), {below})"
        return f"CAST({number} AS {double})"


def _below(edge: float) -> float:
    return float(np.nextafter(edge, -np.inf)) if np.isfinite(edge) else 1e300


def _condition(feature: Feature, table: PrivateTable) -> list[Product]:
    """The rows of a feature as a sum of products over the cells of its table."""
    if feature.where is None:
        return []
    name = '"' + table.name.replace('"', '""') + '"'
    text = f"SELECT COUNT(*) FROM {name} WHERE {feature.where}"  # noqa: S608 - parsed, never executed
    compiled = compile_condition(text, table.domain)
    if compiled is None:
        raise feature.error("where must be a condition on columns of its table")
    return compiled[0]


def _axes(products: Sequence[Product]) -> set[int]:
    return {axis for _, vectors in products for axis in vectors}


def _condition_sql(
    products: Sequence[Product], table: PrivateTable, used: Domain, dialect: Dialect
) -> str:
    """Whether a row meets a condition, from its cells; a row outside of the domain does not."""
    if not products:
        return "TRUE"
    places = {axis: used.names.index(table.domain.names[axis]) for axis in _axes(products)}
    known = [f"w{place} IS NOT NULL" for place in places.values()]
    terms = []
    for coefficient, vectors in products:
        factors = [
            _weights(f"w{places[axis]}", vector, dialect) for axis, vector in vectors.items()
        ]
        terms.append(" * ".join([dialect.number(float(coefficient)), *factors]))
    return " AND ".join([*known, f"({' + '.join(terms)}) > {dialect.number(0.5)}"])


def _weights(cell: str, vector: Any, dialect: Dialect) -> str:
    """The weight of a cell, as SQL: most are 0 or 1, in few runs."""
    clauses = []
    for weight in np.unique(vector[vector != 0]).tolist():
        places = np.flatnonzero(vector == weight)
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
        tests = [f"{cell} BETWEEN {run[0]} AND {run[-1]}" for run in runs if len(run) > 1]
        singles = ", ".join(str(run[0]) for run in runs if len(run) == 1)
        tests += [f"{cell} IN ({singles})"] if singles else []
        clauses.append(f"WHEN {' OR '.join(tests)} THEN {dialect.number(weight)}")
    zero = dialect.number(0.0)
    return f"CASE {' '.join(clauses)} ELSE {zero} END" if clauses else zero
