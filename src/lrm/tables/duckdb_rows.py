"""SQL by which DuckDB turns the rows of a relation into words (`lrm.tables.count`)."""

from __future__ import annotations

from collections.abc import Sequence

from lrm.domain import Bins
from lrm.tables.axes import Axis
from lrm.tables.base import Column
from lrm.tables.cell_sql import CASE_LIMIT, bin_steps, cell_sql, is_dropped
from lrm.tables.count import Count
from lrm.tables.csv_values import reading
from lrm.tables.duckdb_reading import SQL, Reading

NOT_COUNTED = -(1 << 30)
"""Term of a row that is in no cell: so negative that no other term makes the sum positive."""


class DuckDbRows:
    """The rows of a relation, seen through a domain: what is counted, and where it is read."""

    def __init__(self, count: Count, reading: Reading) -> None:
        self.count = count
        self.axes = axes = count.axes
        self._relation = reading.relation
        self._columns = reading.columns
        self.wide = [
            place for place, axis in enumerate(axes) if _is_wide(axis, self._columns[place])
        ]
        self.person = reading.person

    def values(self) -> str:
        """The columns as ``c0``, ``c1`` … and ``v0``, ``v1`` …: as stored, and as read."""
        listed = []
        for place, column in enumerate(self._columns):
            stored = SQL.name(column.name)
            listed.append(f"{stored} AS c{place}")
            if self.is_read(place):
                listed.append(f"{self._read(place, stored)[0]} AS v{place}")
        if self.person is not None:
            listed.append(f"{SQL.as_person(SQL.name(self.person.name), self.person)} AS person")
        return f"(SELECT {', '.join(listed)} FROM {self._relation})"  # noqa: S608 - all parts are quoted

    def value(self, place: int) -> tuple[str, Column]:
        """The value of an attribute as SQL over `values`, and its type."""
        if self.is_read(place):
            return f"v{place}", self._read(place, f"c{place}")[1]
        return f"c{place}", self._columns[place]

    def is_read(self, place: int) -> bool:
        """Whether some stored values of an attribute may be unreadable: texts, and decimals."""
        return self._columns[place].kind in {"raw", "decimal"}

    def _read(self, place: int, stored: str) -> tuple[str, Column]:
        """Read a stored value: NULL where that cannot be done; and the type of the result."""
        column = self._columns[place]
        if column.kind == "raw":
            return reading(self.axes[place].attribute, stored, column.csv)
        # Files and frames may hold decimals of more digits than declared, on which casts fail.
        digits = "9" * (column.precision - column.scale) + "." + "9" * column.scale
        most = f"CAST('{digits}' AS {column.type_text})"
        return f"CASE WHEN {stored} <= {most} AND {stored} >= -{most} THEN {stored} END", column

    def key(self, place: int) -> str:
        """The class of an attribute as SQL over `values`."""
        x, column = self.value(place)
        return cell_sql(self.axes[place], x, column, SQL, f"c{place}")

    def keys(self) -> list[str]:
        """The classes of the attributes as SQL over `values`; of those that are wide, NULL."""
        every = range(len(self.axes))
        return ["NULL" if place in self.wide else self.key(place) for place in every]

    def words(self, keys: Sequence[str]) -> list[str]:
        """The words of a row, without what wide attributes add, from its classes ``keys``."""
        return [self._word(number, keys) for number in range(len(self.count.words))]

    def _word(self, number: int, keys: Sequence[str]) -> str:
        terms = [
            f"CAST({keys[place]} AS {self._type(number)}) * {stride}"
            if stride > 1
            else f"CAST({keys[place]} AS {self._type(number)})"
            for place, stride in self.count.strides(number).items()
            if place not in self.wide
        ]
        return " + ".join(terms) or f"CAST(0 AS {self._type(number)})"

    def _type(self, number: int) -> str:
        """The type of a word: as narrow as its attributes permit, which sorts and copies faster."""
        places = self.count.words[number]
        fits = len(places) == 1 and self.axes[places[0]].attribute.position_count < 1 << 15
        return "SMALLINT" if fits and places[0] not in self.wide else "INTEGER"

    def worded(self) -> str:
        """All rows, as their words and person."""
        listed = [f"{word} AS w{i}" for i, word in enumerate(self.words(self.keys()))]
        return f"(SELECT {', '.join(listed)}, person FROM {self.values()})"  # noqa: S608

    def partly(self) -> str:
        """All rows: their words without wide attributes, and the numbers of those."""
        # A mark, not a filter: filtering ten million rows took half as long as reading them.
        listed = [
            f"coalesce({word}, {-1 if self._type(i) == 'SMALLINT' else NOT_COUNTED}) AS w{i}"
            for i, word in enumerate(self.words(self.keys()))
        ]
        listed += [f"{SQL.as_double(*self.value(place))} AS x{place}" for place in self.wide]
        listed += [
            f"c{place} IS NULL AS missing{place}" for place in self.wide if self.is_read(place)
        ]
        listed += ["person"] if self.person is not None else []
        return f"SELECT {', '.join(listed)} FROM {self.values()}"  # noqa: S608

    def grouped(self) -> str:
        """The words of rows in a cell, and how many rows have them."""
        keys = ", ".join(f"{key} AS k{place}" for place, key in enumerate(self.keys()))
        # By the classes, one column each, which beats grouping by one product of them.
        grouped = f"SELECT {keys}, count(*) AS n FROM {self.values()} GROUP BY ALL"  # noqa: S608
        words = self.words([f"k{place}" for place in range(len(self.axes))])
        listed = ", ".join(f"{word} AS w{i}" for i, word in enumerate(words))
        return f"SELECT {listed}, n FROM ({grouped}) WHERE {self._counted()}"  # noqa: S608

    def by_person(self, worded: str) -> str:
        """Rows with words and a person, each person's together, in the order of their cells.

        ``later`` is 1 for rows that an attribute drops, which come last.
        """
        words = ", ".join(f"w{i}" for i in range(len(self.count.words)))
        later = f"CAST({is_dropped(self.count, SQL)} AS TINYINT)"
        return (
            f"SELECT {words}, person, {later} AS later FROM {worded} "  # noqa: S608 - all parts are quoted
            f"WHERE {self._counted()} AND person IS NOT NULL ORDER BY person, later, {words}"
        )

    def _counted(self) -> str:
        return " AND ".join(f"w{i} IS NOT NULL" for i in range(len(self.count.words)))


def _is_wide(axis: Axis, column: Column) -> bool:
    if not isinstance(axis.attribute, Bins) or column.kind == "cells":
        return False
    return len(bin_steps(axis)[0]) > CASE_LIMIT
