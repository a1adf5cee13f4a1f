"""Class numbers of rows on engines that join long lists of categories with the table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lrm.domain import Bins, Domain
from lrm.tables.axes import Axis
from lrm.tables.base import Column
from lrm.tables.cell_sql import (
    CASE_LIMIT,
    CategoryKeys,
    bin_steps,
    category_keys,
    cell_sql,
    joined_categories,
)
from lrm.tables.dialect import Dialect

__all__ = ["JoinedRows", "JoiningDialect"]


class JoiningDialect(Dialect):
    """SQL of an engine that also chooses the rows of a person."""

    @abstractmethod
    def person_hash(self, person: str, key: bytes) -> str:
        """Number of 60 bits that `lrm.domain.persons.offset_of` makes of a name and a key."""


@dataclass(frozen=True)
class JoinedRows:
    """The rows of a table, seen through a domain: columns ``c0``, ``c1`` … and ``person``.

    Parameters
    ----------
    dialect
        The engine's SQL.
    domain, axes
        Attributes, the classes of their cells, and the privacy unit.
    columns
        The column of each attribute.
    """

    dialect: JoiningDialect
    domain: Domain
    axes: Sequence[Axis]
    columns: Sequence[Column]

    def selected(self, person: Column | None) -> list[str]:
        """The table's columns, under names that need no quotes."""
        name = self.dialect.name
        listed = [f"{name(column.name)} AS c{place}" for place, column in enumerate(self.columns)]
        if person is not None:
            listed.append(f"{self.dialect.as_person(name(person.name), person)} AS person")
        return listed

    def joins(self) -> dict[int, CategoryKeys]:
        """Lists to be joined as ``keys0(value, code)`` …, by the place of their attribute."""
        found = {
            place: category_keys(axis, f"c{place}", self.columns[place], self.dialect)
            for place, axis in enumerate(self.axes)
        }
        return {place: keys for place, keys in found.items() if keys is not None}

    def wide(self) -> list[int]:
        """Places of the attributes with so many edges that a CASE is too slow."""
        return [
            place
            for place, axis in enumerate(self.axes)
            if isinstance(axis.attribute, Bins) and len(bin_steps(axis)[0]) > CASE_LIMIT
        ]

    def number(self, given: dict[int, str]) -> str:
        """The number of a row's class in C order, with some attributes' classes ``given``."""
        number = ""
        for place, axis in enumerate(self.axes):
            key = given.get(place) or cell_sql(axis, f"c{place}", self.columns[place], self.dialect)
            key = self.dialect.as_bigint(f"({key})")
            number = f"({number} * {axis.size} + {key})" if number else key
        return number

    ranked: ClassVar[Sequence[str]] = (
        "number",
        "person",
        "row_number() OVER (PARTITION BY person ORDER BY number) - 1 AS place",
        "count(*) OVER (PARTITION BY person) AS total",
    )
    """What `kept` looks at, of rows with a ``number`` and a ``person``."""

    def kept(self, key: bytes) -> str:
        """Whether a row that `ranked` describes counts, as `lrm.domain.persons` defines it."""
        most = self.domain.unit.max_rows
        offset = f"{self.dialect.person_hash('person', key)} % total"
        chosen = f"(place * {most} + {offset}) % total < {most}"
        return f"CASE WHEN total <= {most} THEN TRUE ELSE {chosen} END"

    def joined(self, places: Sequence[int]) -> dict[int, str]:
        """The classes that joins with ``keys0`` … have found, as SQL."""
        return {
            place: joined_categories(self.axes[place], f"c{place}", f"keys{place}.code")
            for place in places
        }
