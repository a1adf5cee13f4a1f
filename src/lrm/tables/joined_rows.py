"""Words and entries of rows on engines that join long lists of categories with the table.

`lrm.tables.count` defines them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lrm.domain import Bins
from lrm.tables.axes import Axis
from lrm.tables.base import Column
from lrm.tables.cell_sql import (
    CASE_LIMIT,
    CategoryKeys,
    bin_steps,
    category_keys,
    cell_sql,
    is_dropped,
    joined_categories,
)
from lrm.tables.count import Count, Marginal, Part
from lrm.tables.dialect import Dialect
from lrm.tables.shares import piece_sql, share_sql

GROUPED_CELLS = 1 << 22
"""Cells up to which equal rows are counted first, where there are several marginals."""


class JoiningDialect(Dialect):
    """SQL of an engine that also chooses the rows of a person."""

    @abstractmethod
    def person_hash(self, person: str, key: bytes) -> str:
        """Number of 60 bits that `lrm.domain.persons.offset_of` makes of a name and a key."""


@dataclass(frozen=True)
class JoinedRows:
    """The rows of a table, seen through a domain: columns ``c0``, ``c1`` … and ``person``."""

    dialect: JoiningDialect
    count: Count
    columns: Sequence[Column]  # that of each attribute

    @property
    def axes(self) -> Sequence[Axis]:
        """The attributes, with the classes of their cells."""
        return self.count.axes

    def selected(self, person: Column | None) -> list[str]:
        """The table's columns, under names that need no quotes."""
        name = self.dialect.name
        listed = [f"{name(column.name)} AS c{place}" for place, column in enumerate(self.columns)]
        if person is not None:
            listed.append(f"{self.dialect.as_person(name(person.name), person)} AS person")
        return listed

    @cached_property
    def joins(self) -> dict[int, CategoryKeys]:
        """Lists to be joined as ``keys0(value, code)`` …, by the place of their attribute."""
        keys_by_place = {
            place: category_keys(axis, f"c{place}", self.columns[place], self.dialect)
            for place, axis in enumerate(self.axes)
        }
        return {place: keys for place, keys in keys_by_place.items() if keys is not None}

    def wide(self) -> list[int]:
        """Places of the attributes with too many edges for a fast CASE."""
        return [
            place
            for place, axis in enumerate(self.axes)
            if isinstance(axis.attribute, Bins) and len(bin_steps(axis)[0]) > CASE_LIMIT
        ]

    def words(self, known_classes: dict[int, str]) -> list[str]:
        """The words of a row as ``w0``, ``w1`` …, some of them ``known_classes``."""
        return [
            f"{self._word(places, known_classes)} AS w{number}"
            for number, places in enumerate(self.count.words)
        ]

    def _word(self, places: Sequence[int], known_classes: dict[int, str]) -> str:
        word = ""
        for place in places:
            axis, column = self.axes[place], self.columns[place]
            key = known_classes.get(place) or cell_sql(axis, f"c{place}", column, self.dialect)
            key = self.dialect.as_bigint(f"({key})")
            word = f"({word} * {axis.size} + {key})" if word else key
        return word

    @property
    def word_names(self) -> list[str]:
        """The names of the words."""
        return [f"w{number}" for number in range(len(self.count.words))]

    @property
    def counted(self) -> str:
        """Whether a row is in a cell."""
        return " AND ".join(f"{name} IS NOT NULL" for name in self.word_names)

    @property
    def ranked(self) -> list[str]:
        """What `kept` looks at, of rows with words and a ``person``."""
        words, later = ", ".join(self.word_names), is_dropped(self.count, self.dialect)
        rows_of = "person" if later == "0" else f"person, {later}"
        # How many rows of the person come before those that an attribute drops.
        in_all = "count(*) OVER (PARTITION BY person)"
        before = f"({later}) * ({in_all} - count(*) OVER (PARTITION BY {rows_of}))"
        earlier = "0" if later == "0" else before
        return [
            *self.word_names,
            "person",
            f"row_number() OVER (PARTITION BY {rows_of} ORDER BY {words}) - 1 AS place",
            f"count(*) OVER (PARTITION BY {rows_of}) AS total",
            f"{earlier} AS earlier",
        ]

    def kept(self, key: bytes) -> str:
        """Whether a row that `ranked` describes counts, as `lrm.domain.persons` defines it."""
        most = f"greatest({self.count.domain.unit.max_rows} - earlier, 0)"
        offset = f"{self.dialect.person_hash('person', key)} % total"
        condition = f"(place * {most} + {offset}) % total < {most}"
        return f"CASE WHEN total <= {most} THEN TRUE ELSE {condition} END"

    @property
    def groups_first(self) -> bool:
        """Whether equal rows are counted before their entries are looked for."""
        return len(self.count.marginals) > 1 and self.count.joint_size <= GROUPED_CELLS

    @property
    def shares(self) -> list[str]:
        """Each number's lower cell and the share of the next, with the words, as columns."""
        listed = list(self.word_names)
        for place, attribute in self.count.numbers.items():
            cell, share = share_sql(attribute, f"w{place}", self.dialect)
            listed += [f"{cell} AS l{place}", f"{share} AS s{place}"]
        return listed

    @property
    def starts(self) -> str:
        """Where the pieces of a row begin, as the elements of a list."""
        return ", ".join(
            [self.dialect.as_bigint("0"), *(f"s{place}" for place in self.count.numbers)]
        )

    @property
    def pieces(self) -> list[str]:
        """The words of the piece that begins at ``start``, and its units ``n``."""
        numbers = self.count.numbers
        words = [
            f"l{place} + CASE WHEN start < s{place} THEN 1 ELSE 0 END AS w{place}"
            if place in numbers
            else f"w{place}"
            for place in range(len(self.count.words))
        ]
        return [*words, f"{piece_sql([f's{place}' for place in numbers])} AS n"]

    def parts(self) -> list[str]:
        """The merged values of a row's words, as ``p0``, ``p1`` …; negative: not counted."""
        listed = [f"{self._part(part)} AS p{i}" for i, part in enumerate(self.count.parts)]
        return listed or ["1 AS nothing"]  # a row without columns is odd SQL

    def _part(self, part: Part) -> str:
        word = f"w{part.word}"
        return word if part.labels is None else self.dialect.lookup(part.labels.tolist(), word)

    def entries(self) -> list[str]:
        """The entry of a row in each marginal, as SQL over `parts`; NULL where it has none."""
        return [self._entry(marginal) for marginal in self.count.marginals]

    def _entry(self, marginal: Marginal) -> str:
        parts = self.count.parts
        terms, stride = [str(marginal.start)] if marginal.start else [], 1
        for number in reversed(marginal.parts):
            if parts[number].size > 1:
                terms.append(self.dialect.as_bigint(f"p{number}") + f" * {stride}")
            stride *= parts[number].size
        entry = " + ".join(terms) or "0"
        tests = [f"p{number} >= 0" for number in marginal.parts if parts[number].skips]
        entry = self.dialect.as_bigint(f"({entry})")
        return f"CASE WHEN {' AND '.join(tests)} THEN {entry} END" if tests else entry

    def joined(self) -> dict[int, str]:
        """The classes that joins with ``keys0`` … have found, as SQL."""
        return {
            place: joined_categories(self.axes[place], f"c{place}", f"keys{place}.code")
            for place in self.joins
        }
