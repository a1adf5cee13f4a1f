"""People who have rows in several private tables: public facts, and the tables that follow.

A *people* is a group of persons, named once, with one budget. Each row of each of its tables
belongs to one person. Neighbouring databases differ by all rows of one person, in all tables.

Statements read one of two kinds of tables that follow from these, its *levels*:

persons
    One row per person: the columns of the tables with one row per person, and *features*, each a
    function of all rows that the person has in one table (how many orders, whether there is one
    with a condition, the first day …).
events
    The rows of one table, at most ``most`` of each person, joined with the person's columns.

What is counted of a person is then a function of that person's rows alone, so that the guarantee of
one table with a person's column holds (`lrm.domain.persons`): at most one row of each person at the
level of persons, and at most ``most`` rows at the level of events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lrm.domain.attributes import Attribute, Categories
from lrm.domain.core import Domain
from lrm.domain.editions import Editions
from lrm.domain.features import Feature, feature_facts, flag, renamed
from lrm.domain.lookups import Lookup
from lrm.domain.numbers import Numbers
from lrm.domain.private_tables import PrivateTable, table_facts
from lrm.errors import DomainError
from lrm.privacy.unit import PERSON, Neighbours, PrivacyUnit

SOURCE, PERSONS = "(table)", "(persons)"
"""The attribute that names the level of a row, where there are several; its value for persons."""


VERSION = 2
"""Version of domain files that declare a people."""

MOST_TABLES, MOST_FEATURES = 100, 2_000
"""Tables and features of a people."""


@dataclass(frozen=True, init=False)
class People:
    """Persons with rows in several private tables, and one budget.

    Parameters
    ----------
    name
        Name of the people, and of its budget.
    tables
        The private tables.
    features
        Values per person.
    lookups
        Public tables that give further columns to values of attributes.
    neighbours
        ``"add-remove"``, or ``"substitute"`` where the number of persons is public.

    Examples
    --------
    >>> from lrm.domain import Integers
    >>> customers = PrivateTable("customers", "id", (Categories("region", ["n", "s"]),))
    >>> orders = PrivateTable("orders", "customer", (Integers("month", 1, 12),), most=12)
    >>> shop = People("shop", [customers, orders])
    >>> shop.persons(["region"]).domain.shape
    (2,)
    >>> shop.events("orders", ["month", "region"]).domain.unit.max_rows
    12
    """

    name: str
    tables: tuple[PrivateTable, ...]
    features: tuple[Feature, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    neighbours: Neighbours = "add-remove"

    def __init__(
        self,
        name: str,
        tables: Iterable[PrivateTable],
        features: Iterable[Feature] = (),
        lookups: Iterable[Lookup] = (),
        neighbours: Neighbours = "add-remove",
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "tables", tuple(tables))
        object.__setattr__(self, "features", tuple(features))
        object.__setattr__(self, "lookups", tuple(lookups))
        object.__setattr__(self, "neighbours", neighbours)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DomainError(f"people must be a name, not {self.name!r}")
        if not 1 <= len(self.tables) <= MOST_TABLES:
            raise DomainError(f"a people has 1 to {MOST_TABLES} tables, not {len(self.tables)}")
        if len(self.features) > MOST_FEATURES:
            raise DomainError(f"a people has at most {MOST_FEATURES:,} features")
        names = [table.name for table in self.tables] + [self.name]
        _check_different(names, "tables and the people")
        _check_different([feature.name for feature in self.features], "features")
        self._check_editions()
        for feature in self.features:
            self._check_feature(feature)
        for lookup in self.lookups:
            if not any(table.attribute(lookup.key) for table in self.tables):
                raise lookup.error(f"its key {lookup.key!r} is not an attribute of a table")

    def _check_editions(self) -> None:
        """All tables have a date, or none: rows without one would be read by every edition."""
        dated = [table for table in self.tables if table.editions is not None]
        for table in self.tables if dated else ():
            if table.editions is None or table.editions.date is None:
                raise table.error(
                    "'date' is missing: which column says in which edition a row is? Rows without "
                    "a date would be read by every edition, and what a person loses by them would "
                    "add up over all editions; join such columns to the dated rows in a view, or "
                    "leave editions out"
                )
        if len({(t.editions.by, t.editions.edition) for t in dated if t.editions}) > 1:
            raise DomainError("all tables of a people have the same editions")

    @property
    def editions(self) -> Editions | None:
        """The editions of a report about these people; each table has its own date."""
        editions = self.tables[0].editions
        return None if editions is None else replace(editions, date=None)

    def at(self, edition: str) -> People:
        """The people of one edition, or of several, such as ``"2025-01..2025-03"``.

        Examples
        --------
        >>> from lrm.domain import Dates
        >>> day = Dates("day", "2000-01-01", "2000-01-31", relative=True)
        >>> monthly = Editions("month", "day")
        >>> orders = PrivateTable("orders", "customer", (day,), most=12, editions=monthly)
        >>> february = People("shop", [orders]).at("2025-02")
        >>> february.events("orders", ["day"]).domain.shape, february.unit.protected
        ((28,), "one person of 'shop', with all rows in all tables in one month")
        """
        if self.editions is None:
            raise DomainError(
                f"{self.name!r} has no editions; declare them: editions: {{by: month}}, and for "
                "each table its date"
            )
        editions = replace(self.editions, edition=edition)
        tables = [table.at(edition) for table in self.tables]
        features = [feature.at(editions) for feature in self.features]
        return People(self.name, tables, features, self.lookups, self.neighbours)

    def _check_feature(self, feature: Feature) -> None:
        table = self.table(feature.of)
        if table is None:
            raise feature.error(f"no table is called {feature.of!r}")
        for name in (feature.column, feature.order):
            if name is not None and table.attribute(name) is None:
                raise feature.error(f"table {table.name!r} has no attribute {name!r}")
        for single in self.singles:
            if single.attribute(feature.name) is not None:
                raise feature.error(f"table {single.name!r} has a column of the same name")

    def table(self, name: str) -> PrivateTable | None:
        """The private table that SQL calls ``name``, if there is one."""
        folded = name.casefold()
        return next((table for table in self.tables if table.name.casefold() == folded), None)

    @property
    def singles(self) -> tuple[PrivateTable, ...]:
        """Tables with one row per person."""
        return tuple(table for table in self.tables if table.is_single)

    @property
    def words(self) -> str:
        """Whom the guarantee protects."""
        return self.unit.words

    def persons(self, columns: Iterable[str], features: Iterable[Feature] = ()) -> Level:
        """The level of persons: some columns of tables with one row per person, and features."""
        return Level(self, None, tuple(columns), tuple(features))

    def events(self, table: str, columns: Iterable[str], features: Iterable[Feature] = ()) -> Level:
        """The level of one table's rows: some of its columns, and some of the person's.

        A person without a row in a table of persons has NULL there; ``features`` may say whether
        there is such a row.
        """
        return Level(self, table, tuple(columns), tuple(features))

    @property
    def unit(self) -> PrivacyUnit:
        """Whom a budget for these people protects, and a release over several levels."""
        if self.editions is None:
            return PrivacyUnit(PERSON, 1, self.neighbours, self.name)
        period, periods = self.editions.by, self.editions.together
        return PrivacyUnit(PERSON, 1, self.neighbours, self.name, period, periods=periods)


def _check_different(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise DomainError(f"{what} need different names, and {name!r} is given twice")
        seen.add(name.casefold())


@dataclass(frozen=True)
class Level:
    """One table that follows from the private tables of a people.

    Parameters
    ----------
    people
        Whose tables.
    base
        The table whose rows are the events; None for the level of persons.
    columns
        The columns that are used, by name: of the base, of tables with one row per person, or
        declared features. Where several tables have a name, it is that of the first of these; the
        column of another is called ``table.column``.
    features
        Further features that statements define; of events, whether the person has a row in a table
        of persons.
    """

    people: People
    base: str | None
    columns: tuple[str, ...]
    features: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        if self.base is not None and (self.table is None or self.table.is_single):
            raise DomainError(f"{self.base!r} is no table of events of {self.people.name!r}")
        singles = {table.name for table in self.people.singles}
        for feature in self.features if self.base is not None else ():
            if feature.value != "exists" or feature.of not in singles or feature.where is not None:
                raise feature.error("features belong to the level of persons")
        for feature in self.features:
            self.people._check_feature(feature)  # noqa: SLF001 - a record of this module
        _check_different([*self.columns, *(f.name for f in self.features)], "columns of a level")
        self.domain  # noqa: B018 - it checks that every column exists

    @property
    def table(self) -> PrivateTable | None:
        """The table of events, if the level is one of events."""
        return None if self.base is None else self.people.table(self.base)

    @cached_property
    def every_feature(self) -> dict[str, Feature]:
        """The features among the columns, by name."""
        declared = {feature.name: feature for feature in self.people.features}
        if self.base is not None:
            declared = {}
        used = {name: declared[name] for name in self.columns if name in declared}
        return {**used, **{feature.name: feature for feature in self.features}}

    @cached_property
    def all_columns(self) -> tuple[str, ...]:
        """The columns, and the one by whose cells the rows of a person are limited."""
        by = None if self.table is None else self.table.by
        if by is None or by.attribute.casefold() in {name.casefold() for name in self.columns}:
            return self.columns
        return (*self.columns, by.attribute)

    @cached_property
    def sources(self) -> dict[str, tuple[PrivateTable, Attribute]]:
        """The table and the attribute of each column that is no feature, by name."""
        sources = {}
        for name in self.all_columns:
            if name in self.every_feature:
                continue
            source = self._source(name)
            if source is None:
                raise DomainError(f"no column of the level is called {name!r}")
            sources[name] = source
        return sources

    def _source(self, name: str) -> tuple[PrivateTable, Attribute] | None:
        """The column that a name stands for: ``column``, or ``table.column``."""
        tables = [*([] if self.table is None else [self.table]), *self.people.singles]
        folded = name.casefold()
        for table in tables:
            if (attribute := table.attribute(name)) is not None:
                return table, attribute
        for table in tables:
            for attribute in table.attributes:
                if f"{table.name}.{attribute.name}".casefold() == folded:
                    return table, attribute
        return None

    @cached_property
    def domain(self) -> Domain:
        """The level as one table: its attributes, and the limit of rows per person."""
        attributes = [
            self.every_feature[name].attribute
            if name not in self.sources
            else renamed(self.sources[name][1], name)
            for name in self.all_columns
        ]
        attributes += [feature.attribute for feature in self.features]
        if not attributes:  # a single total
            attributes = [flag("(everyone)")]
        unit = PrivacyUnit(PERSON, 1, self.people.neighbours, self.people.name)
        if self.table is not None:
            by = self.table.by
            if by is not None:  # under the name that the column has here
                folded = by.attribute.casefold()
                name = next(name for name in self.all_columns if name.casefold() == folded)
                by = replace(by, attribute=name)
            most = self.table.most or 1
            unit = replace(unit, column=self.table.person, max_rows=most, by=by)
        names = {attribute.name for attribute in attributes}
        lookups = [lookup for lookup in self.people.lookups if lookup.key in names]
        editions = self.people.editions
        return Domain(attributes, self.people.name, unit, None, lookups, self, editions)

    def drops(self, attribute: Attribute) -> bool:
        """Whether a row of the level may have no declared cell of an attribute.

        Counts and sums of persons without rows are 0, and other features of them are missing, which
        has a cell. Rows of other editions are not in the table.
        """
        feature = self.every_feature.get(attribute.name)
        if feature is not None:
            least = 0.0 if feature.clip is None else min(feature.clip[0], 0.0)
            first = getattr(attribute, "edges", (least,))[0]
            beyond = isinstance(attribute, Numbers) or first > least
            return feature.is_number and attribute.outside == "drop" and beyond
        if attribute.name not in self.sources:  # everyone
            return False
        table, source = self.sources[attribute.name]
        editions = table.editions if table == self.table else None
        return attribute.drops and (editions is None or source.name != editions.date)

    def at(self, edition: str) -> Level:
        """The level of one edition."""
        people = self.people.at(edition)
        assert people.editions is not None  # noqa: S101 - it is at one
        return replace(
            self, people=people, features=tuple(f.at(people.editions) for f in self.features)
        )

    @property
    def tables(self) -> tuple[PrivateTable, ...]:
        """The private tables that are read, each once."""
        used = [table for table, _ in self.sources.values()]
        used += [table for f in self.every_feature.values() if (table := self.people.table(f.of))]
        used += [self.persons_table] if self.base is None else []
        used += [] if self.table is None else [self.table]
        return tuple(table for table in self.people.tables if table in used)

    @property
    def persons_table(self) -> PrivateTable:
        """The table that says who the persons are."""
        return (*self.people.singles, *self.people.tables)[0]

    @property
    def label(self) -> str:
        """What it is called among several levels."""
        return PERSONS if self.base is None else self.base

    @cached_property
    def text(self) -> str:
        """All that decides what is counted, as one canonical line."""
        return json.dumps(level_facts(self), sort_keys=True, default=str)


@dataclass(frozen=True)
class Levels:
    """Several levels of one people: what a batch reads that is about persons and about rows.

    Each level is counted by itself. As one table they are the rows of all of them, with an
    attribute that says of which level a row is; columns that levels have in common are one
    attribute. A statement reads the rows of its own level, and a ratio those of two.

    Parameters
    ----------
    levels
        At least two, no two of the same table.

    Examples
    --------
    >>> from lrm.domain import Integers
    >>> customers = PrivateTable("customers", "id", (Categories("region", ["n", "s"]),))
    >>> orders = PrivateTable("orders", "customer", (Integers("month", 1, 12),), most=12)
    >>> shop = People("shop", [customers, orders])
    >>> both = Levels((shop.persons(["region"]), shop.events("orders", ["month", "region"])))
    >>> both.domain.names, both.axes(both.levels[1])
    (('(table)', 'region', 'month'), (2, 1))
    """

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if len(self.levels) < 2 or len({level.label for level in self.levels}) < len(self.levels):
            raise DomainError("several levels need at least two, each of another table")
        if any(level.people != self.people for level in self.levels):
            raise DomainError("several levels must be of one people")
        self.domain  # noqa: B018 - it checks that attributes of one name are the same

    @property
    def people(self) -> People:
        """Whose tables."""
        return self.levels[0].people

    @cached_property
    def domain(self) -> Domain:
        """The rows of all levels as one table, which no engine counts."""
        attributes: dict[str, Attribute] = {}
        for level in self.levels:
            for attribute in level.domain.attributes:
                known = attributes.setdefault(attribute.name.casefold(), attribute)
                if known != attribute:
                    raise DomainError(
                        f"{attribute.name!r} means different columns of persons and of rows; plan "
                        "statements about persons and about rows as two batches"
                    )
        source = Categories(SOURCE, [level.label for level in self.levels])
        names = {attribute.name for attribute in attributes.values()}
        lookups = [lookup for lookup in self.people.lookups if lookup.key in names]
        every = [source, *attributes.values()]
        people = self.people
        return Domain(every, people.name, people.unit, None, lookups, self, people.editions)

    def at(self, edition: str) -> Levels:
        """The levels of one edition."""
        return Levels(tuple(level.at(edition) for level in self.levels))

    def drops(self, attribute: Attribute) -> bool:
        """Whether a row of a level that has an attribute may have no declared cell of it."""
        return any(
            attribute.name in level.domain.names and level.drops(attribute) for level in self.levels
        )

    def axes(self, level: Level) -> tuple[int, ...]:
        """The places of the attributes of one level among those of all."""
        return tuple(map(self.domain.names.index, level.domain.names))

    @property
    def tables(self) -> tuple[PrivateTable, ...]:
        """The private tables that are read, each once."""
        used = [table for level in self.levels for table in level.tables]
        return tuple(table for table in self.people.tables if table in used)

    @cached_property
    def text(self) -> str:
        """All that decides what is counted, as one canonical line."""
        return json.dumps(level_facts(self), sort_keys=True, default=str)


Declared = Domain | People
"""What a domain file declares: one table, or the tables of a people."""


def people_facts(people: People) -> dict[str, Any]:
    """A people as plain values for YAML, with every rule written out."""
    return {
        "lrm-domain": VERSION,
        "people": people.name,
        "neighbours": people.neighbours,
        **({} if people.editions is None else {"editions": people.editions.facts}),
        "tables": [table_facts(table) for table in people.tables],
        **({"features": [feature_facts(f) for f in people.features]} if people.features else {}),
        **({"lookups": [lookup.facts for lookup in people.lookups]} if people.lookups else {}),
    }


def level_facts(level: Level | Levels, rest: Sequence[str] = ()) -> dict[str, Any]:
    """A level as plain values for YAML: its people, and the section that says which table it is.

    ``rest`` names the attributes that have a cell for what their rules drop.
    """
    facts = people_facts(level.people) | ({"rest": list(rest)} if rest else {})
    if isinstance(level, Levels):
        return {**facts, "levels": [_section(part) for part in level.levels]}
    return {**facts, "level": _section(level)}


def _section(level: Level) -> dict[str, Any]:
    section: dict[str, Any] = {"columns": list(level.columns)}
    if level.base is not None:
        section["events"] = level.base
    if level.features:
        section["features"] = [feature_facts(feature) for feature in level.features]
    return section
