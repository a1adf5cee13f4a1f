"""Words and entries of rows on engines that join long lists of categories with the table.

`lrm.tables.count` defines them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

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
from lrm.tables.tally import Tally

GROUPED_CELLS = 1 << 22
"""Different rows up to which these are counted, and their entries found afterwards.

Twenty marginals of a million rows took a server three times as long as grouping them."""

GROUPED_VALUES = 1 << 16
"""Cells up to which rows with equal values are counted before their cells are looked for."""

PACKED = 1 << 62
"""Different rows up to which the words of a person's row are one number while rows are sorted."""


Integers = NDArray[np.int64]


class JoiningDialect(Dialect):
    """SQL of an engine that also chooses the rows of a person."""

    @abstractmethod
    def person_hash(self, person: str, key: str) -> str:
        """Number of 60 bits that `lrm.domain.persons.offset_of` makes of a name and a key.

        ``key`` is SQL of its bytes.
        """

    def own_person(self, x: str, column: Column) -> str:
        """Make a value by which rows of one person are equal in one table; it need not be bytes."""
        return self.as_person(x, column)

    def own_name(self, person: str, column: Column) -> str:  # noqa: ARG002 - some engines look
        """The name, as `as_person` makes it, of a person that `own_person` made."""
        return person

    @abstractmethod
    def group_name(self, what: str, group: str, person: str) -> str:
        """The bytes that `lrm.domain.persons.group_name` makes of a person and a group."""


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

    def selected(self, person: Column | None, *, alone: bool = False) -> list[str]:
        """The table's columns, under names that need no quotes.

        With ``alone`` the person is compared within this table alone.
        """
        name = self.dialect.name
        listed = [f"{name(column.name)} AS c{place}" for place, column in enumerate(self.columns)]
        if person is not None:
            named = self.dialect.own_person if alone else self.dialect.as_person
            listed.append(f"{named(name(person.name), person)} AS person")
        return listed

    @cached_property
    def used(self) -> list[int]:
        """Places of the attributes that decide where a row counts."""
        return [
            place
            for place, axis in enumerate(self.axes)
            if not axis.is_constant or self.columns[place].kind == "cells"  # these may be NULL
        ]

    @property
    def values_first(self) -> bool:
        """Whether rows with equal values are counted before their cells are looked for.

        Grouping by values costs what a query by hand does. It is done where the declared values
        are few; a column with many others takes the time of a longer list of groups.
        """
        grouped = all(
            self.columns[place].kind in {"text", "integer", "boolean", "date"}
            and not self.columns[place].loose
            for place in self.used
        )
        size = prod(self.axes[place].attribute.size for place in self.used)
        return grouped and size <= GROUPED_VALUES and not self.count.numbers

    @cached_property
    def joins(self) -> dict[int, CategoryKeys]:
        """Lists to be joined as ``keys0(value, code)`` …, by the place of their attribute."""
        keys_by_place = {
            place: category_keys(axis, f"c{place}", self.columns[place], self.dialect)
            for place, axis in enumerate(self.axes)
            if self.columns[place].kind != "cells" and place in self.used
        }
        return {place: keys for place, keys in keys_by_place.items() if keys is not None}

    def wide(self) -> list[int]:
        """Places of the attributes with too many edges for a fast CASE."""
        return [
            place
            for place, axis in enumerate(self.axes)
            if self.columns[place].kind != "cells"
            and place in self.used
            and isinstance(axis.attribute, Bins)
            and len(bin_steps(axis)[0]) > CASE_LIMIT
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
            key = "0"
            if place in self.used:
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
        tests = [
            f"w{number} IS NOT NULL"
            for number, places in enumerate(self.count.words)
            if any(place in self.used for place in places)
        ]
        return " AND ".join(tests) or "TRUE"

    def limits(self, key: str, named: str = "person") -> Iterator[tuple[list[str], str]]:
        """The limits of a person's rows, one after the other, as `lrm.domain.persons` defines them.

        Each is what a query over rows with words and a ``person`` lists, and the condition on
        these that its rows have to meet. ``key`` is SQL of the key's bytes, and ``named`` of the
        person's name.
        """
        unit, later = self.count.domain.unit, is_dropped(self.count, self.dialect)
        names = [*self.word_names, "person"]
        if self.count.group is None and prod(self._sizes) <= PACKED:
            yield from self._packed_limit(later, key, named)
            return
        if self.count.group is not None and unit.by is not None:
            word, stride, size = self.count.group
            cell = f"w{word}" if stride == 1 else self.dialect.quotient(f"w{word}", stride)
            group = self.dialect.as_bigint(f"(({cell}) % {size})")
            yield [*names, f"{group} AS grp", f"{later} AS later"], "TRUE"
            by_group = ["person", "grp"]
            listed = self._ranked([*names, "grp", "later"], by_group, "later")
            if unit.by.groups is not None:
                place = self.dialect.person_hash(
                    self.dialect.group_name("groups", "grp", named), key
                )
                regular = "min(later) OVER (PARTITION BY person, grp)"
                listed += [f"{place} AS grp_place", f"{regular} AS grp_later"]
            name = self.dialect.group_name("rows", "grp", named)
            yield listed, self._kept(unit.by.most, name, key)
            if unit.by.groups is not None:
                order = "PARTITION BY person ORDER BY grp_later, grp_place, grp"
                rank = f"dense_rank() OVER ({order}) AS grp_rank"
                yield [*names, rank], f"grp_rank <= {unit.by.groups}"
        listed = self._ranked(names, ["person"], later)
        yield listed, self._kept(unit.max_rows, named, key)

    @property
    def _sizes(self) -> list[int]:
        """Number of values of each word."""
        numbers = self.count.numbers  # words of their own
        return [
            numbers[places[0]].position_count
            if places[0] in numbers
            else prod(self.axes[place].size for place in places)
            for places in self.count.words
        ]

    def _packed(self, first: str = "") -> str:
        """The words as one number, in the same order, after a number that comes before them."""
        for number, size in enumerate(self._sizes):
            first = f"({first} * {size} + w{number})" if first else f"w{number}"
        return first

    @property
    def groups_only(self) -> bool:
        """Whether different rows are counted, and their entries found outside of the engine."""
        return self.count.joint_size <= GROUPED_CELLS and not self.count.numbers

    @property
    def group(self) -> str:
        """A row as one number, where `groups_only` holds."""
        return self.dialect.as_bigint(f"({self._packed()})")

    def add_groups(self, tally: Tally, groups: Integers, counts: Integers) -> None:
        """Add different rows, as `group` has them, and how often each is there."""
        words: list[Integers] = []
        for size in reversed(self._sizes):
            groups, word = np.divmod(groups, size)
            words.insert(0, word)
        tally.add(words, counts)

    def _packed_limit(self, later: str, key: str, named: str) -> Iterator[tuple[list[str], str]]:
        """The limit of a person's rows, whose words are one number while the rows are sorted.

        Rows that an attribute drops have larger numbers than all others.
        """
        sizes = self._sizes
        rows = prod(sizes)
        yield [f"{self._packed('' if later == '0' else later)} AS packed", "person"], "TRUE"
        listed = ["packed", "person", "row_number() OVER (PARTITION BY person ORDER BY packed) - 1"]
        listed[-1] += " AS place"
        listed.append("count(*) OVER (PARTITION BY person) AS total")
        earlier = "0"
        if later != "0":
            is_regular = f"CASE WHEN packed < {rows} THEN 1 ELSE 0 END"
            listed.append(f"sum({is_regular}) OVER (PARTITION BY person) AS regular")
            yield listed, "TRUE"
            regular, first = self.dialect.as_bigint("regular"), f"packed < {rows}"
            listed = [
                "packed",
                "person",
                f"CASE WHEN {first} THEN place ELSE place - {regular} END AS place",
                f"CASE WHEN {first} THEN {regular} ELSE total - {regular} END AS total",
                f"CASE WHEN {first} THEN 0 ELSE {regular} END AS earlier",
            ]
            earlier = "earlier"
        yield listed, self._kept(self.count.domain.unit.max_rows, named, key, earlier)
        words = []
        for number, size in enumerate(sizes):
            stride = prod(sizes[number + 1 :])
            word = "packed" if stride == 1 else f"({self.dialect.quotient('packed', stride)})"
            is_whole = number == 0 and later == "0"
            words.append(f"{word if is_whole else f'{word} % {size}'} AS w{number}")
        yield words, "TRUE"

    def _ranked(self, names: list[str], of: list[str], later: str) -> list[str]:
        """Each row's place among those of a person, or of a person in a group."""
        words, unit = ", ".join(self.word_names), ", ".join(of)
        rows_of = unit if later == "0" else f"{unit}, {later}"
        # How many rows of the person come before those that an attribute drops.
        in_all = f"count(*) OVER (PARTITION BY {unit})"
        before = f"({later}) * ({in_all} - count(*) OVER (PARTITION BY {rows_of}))"
        return [
            *names,
            f"row_number() OVER (PARTITION BY {rows_of} ORDER BY {words}) - 1 AS place",
            f"count(*) OVER (PARTITION BY {rows_of}) AS total",
            f"{'0' if later == '0' else before} AS earlier",
        ]

    def _kept(self, limit: int, name: str, key: str, earlier: str = "earlier") -> str:
        """Whether a row that `_ranked` describes counts."""
        most = str(limit) if earlier == "0" else f"greatest({limit} - {earlier}, 0)"
        offset = f"{self.dialect.person_hash(name, key)} % total"
        condition = f"(place * {most} + {offset}) % total < {most}"
        return f"CASE WHEN total <= {most} THEN TRUE ELSE {condition} END"

    @property
    def groups_first(self) -> bool:
        """Whether equal pieces of rows are counted before their entries are looked for."""
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
