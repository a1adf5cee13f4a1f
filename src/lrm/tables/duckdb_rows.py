"""SQL by which DuckDB turns the rows of a relation into numbers of classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lrm.domain import Bins
from lrm.tables.axes import Axis
from lrm.tables.base import Column
from lrm.tables.cell_sql import CASE_LIMIT, bin_steps, cell_sql
from lrm.tables.csv_values import reading
from lrm.tables.duckdb_reading import Reading
from lrm.tables.duckdb_sql import DuckDbSql

__all__ = ["NOT_COUNTED", "DuckDbRows"]

SQL = DuckDbSql()

NOT_COUNTED = -(1 << 30)
"""Term of a row that is in no cell: so far below zero that no other term brings it back."""


class DuckDbRows:
    """The rows of a relation, seen through a domain.

    Parameters
    ----------
    axes
        The attributes, with the classes of their cells.
    reading
        Where their columns are found.
    max_rows
        The most rows of a person that count.
    """

    def __init__(self, axes: Sequence[Axis], reading: Reading, max_rows: int) -> None:
        self.axes = axes
        self._relation = reading.relation
        self._columns = reading.columns
        self.wide = [
            place for place, axis in enumerate(axes) if _is_wide(axis, self._columns[place])
        ]
        self.narrow = [place for place in range(len(axes)) if place not in self.wide]
        self.person = reading.person
        self.max_rows = max_rows
        sizes = [axis.size for axis in axes]
        self.strides = [
            int(np.prod(sizes[place + 1 :], dtype=np.int64)) for place in range(len(sizes))
        ]

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
            return reading(self.axes[place].attribute, stored, column.decimal_mark)
        # Files and frames may hold decimals of more digits than declared, on which casts fail.
        digits = "9" * (column.precision - column.scale) + "." + "9" * column.scale
        most = f"CAST('{digits}' AS {column.type_text})"
        return f"CASE WHEN {stored} <= {most} AND {stored} >= -{most} THEN {stored} END", column

    def key(self, place: int) -> str:
        """The class of an attribute as SQL over `values`."""
        x, column = self.value(place)
        return cell_sql(self.axes[place], x, column, SQL, f"c{place}")

    def number(self, keys: Sequence[str], places: Iterable[int]) -> str:
        """What the classes ``keys`` of attributes add to the number of a row's class."""
        terms = [
            f"CAST({key} AS INTEGER) * {self.strides[place]}"  # a domain has at most 10^8 cells
            for key, place in zip(keys, places, strict=True)
        ]
        return " + ".join(terms) or "CAST(0 AS INTEGER)"

    def numbered(self) -> str:
        """All rows, as their class number and person."""
        every = range(len(self.axes))
        number = self.number([self.key(place) for place in every], every)
        return f"(SELECT {number} AS number, person FROM {self.values()})"  # noqa: S608

    def partly(self) -> str:
        """All rows: what the other attributes add to the number, and numbers among many edges."""
        base = self.number([self.key(place) for place in self.narrow], self.narrow)
        # A mark, not a filter: filtering ten million rows took half as long as reading them.
        listed = [f"coalesce({base}, {NOT_COUNTED}) AS base"]
        listed += [f"{SQL.as_double(*self.value(place))} AS x{place}" for place in self.wide]
        listed += [
            f"c{place} IS NULL AS missing{place}" for place in self.wide if self.is_read(place)
        ]
        listed += ["person"] if self.person is not None else []
        return f"SELECT {', '.join(listed)} FROM {self.values()}"  # noqa: S608

    @staticmethod
    def by_person(numbered: str) -> str:
        """Rows with a number and a person, each person's together, the smallest numbers first."""
        return (
            f"SELECT number, person FROM {numbered} "  # noqa: S608 - all parts are quoted
            "WHERE number IS NOT NULL AND person IS NOT NULL ORDER BY person, number"
        )


def _is_wide(axis: Axis, column: Column) -> bool:
    if not isinstance(axis.attribute, Bins) or column.kind == "cells":
        return False
    return len(bin_steps(axis)[0]) > CASE_LIMIT
