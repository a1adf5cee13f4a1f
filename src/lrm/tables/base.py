"""What every engine offers: columns, a check before anything is spent, and true counts.

An engine has three methods, and one more for the tables of a people. Names and types of columns are
public, and everything that can go wrong with them is found by `Table.check`, before
budget is spent. Only `Table.counts` reads values, in expressions that cannot fail on
any value, so that neither an error nor the shape of a result depends on the rows.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Literal, TypeVar

from lrm.domain import Attribute, Categories, CsvForm, Dates, Domain
from lrm.domain.people import Level
from lrm.errors import LrmError, MissingExtra, TableError
from lrm.files.locations import shown
from lrm.privacy.mechanism import OccurringValues, TrueCounts
from lrm.tables.count import Wanted
from lrm.tables.editions import of_edition
from lrm.tables.engine_errors import meaning
from lrm.tables.open_values import OpenValues

Kind = Literal[
    "text",
    "integer",
    "decimal",
    "float",
    "boolean",
    "date",
    "timestamp",
    "instant",
    "uuid",
    "bytes",
    "raw",
    "cells",
    "other",
]
"""What a column holds, whatever the engine calls it.

``instant`` is a timestamp with a time zone; ``raw`` is text of a CSV file, which is read as
whatever the domain declares; ``cells`` are Python objects, placed in cells before an engine sees
them; ``uuid`` and ``bytes`` may only identify a person; ``other`` cannot be used.
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and type: public facts, never values."""

    name: str
    type_text: str
    kind: Kind
    precision: int = 0
    scale: int = 0
    bits: int = 64
    csv: CsvForm | None = None
    """How the texts of a CSV file are written."""
    loose: bool = False
    """Whether the type treats different texts as equal, as a collation that ignores case does."""


class Table(ABC):
    """A private table on some engine."""

    def __init__(self, name: str) -> None:
        self.name = name  # what the table is called, without passwords and without values

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @abstractmethod
    def _described(self) -> Sequence[Column]:
        """The columns, in order."""

    @property
    def described(self) -> Sequence[Column]:
        """The columns, in order."""
        return self._described()

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns, in order; never values."""
        return tuple((column.name, column.type_text) for column in self._described())

    @classmethod
    def of_level(cls, level: Level, tables: Mapping[str, Table]) -> Table:
        """The rows of a level of a people, made of its private ``tables`` on this engine.

        ``tables`` are of this class, by their names in the domain; no row is read.
        """
        raise TableError(
            f"{cls.__name__} does not count the tables of a people such as {level.people.name!r} "
            f"({', '.join(tables)}); give files, frames, or tables of DuckDB, PostgreSQL or Spark"
        )

    def unseen_times(self, domain: Domain) -> list[str]:
        """What to say of columns of timestamps that the domain declares as days."""
        return unseen_times(self.name, domain, self._described())

    def check(self, domain: Domain, requested: Wanted = None) -> None:
        """Raise `TableError` unless `counts` can work: columns exist, types are usable.

        The query of `counts` is tried without a row, so this costs nothing and is done before
        budget is spent.
        """
        self._check(*of_edition(domain, requested))

    def counts(self, domain: Domain, requested: Wanted = None) -> TrueCounts:
        """Count rows by the rules of ``domain`` and its privacy unit.

        Parameters
        ----------
        domain
            Says which cell each row is in, and how many rows of a person count.
        requested
            None for the count of each cell; or how a batch merges cells: cells that it cannot
            distinguish may then be counted as one, on the first of them, and cells that it never
            looks at not at all, where that is cheaper (``requested.merge_counts`` of the result is
            the same either way); or tabulations, where a domain has too many cells to count
            each. A row outside the domain is in no tabulation, whatever it is by.

        Returns
        -------
        TrueCounts
            One count per cell of the domain, in its order; or the entries of all tabulations,
            one after the other, as `lrm.queries.maps.products.tabulation.tabulate` has them.
        """
        return self._counts(*of_edition(domain, requested))

    def check_values(self, wanted: OpenValues) -> None:
        """Raise `TableError` unless `values` can work; no row is read."""
        raise TableError(
            f"values of {self.name!r} cannot be discovered; give the table that has column "
            f"{wanted.column!r} itself"
        )

    def values(self, wanted: OpenValues) -> OccurringValues:
        """How many persons have each value; each person counts in at most ``wanted.most``."""
        raise NotImplementedError  # check_values raises an error before anything is charged

    @abstractmethod
    def _check(self, domain: Domain, requested: Wanted) -> None:
        """What an engine does for `check`; the domain has no editions any more."""

    @abstractmethod
    def _counts(self, domain: Domain, requested: Wanted) -> TrueCounts:
        """What an engine does for `counts`; the domain has no editions any more."""


def usable_kinds(attribute: Attribute) -> tuple[str, tuple[Kind, ...]]:
    """Return what ``attribute`` needs, in words, and the kinds of column that provide it."""
    if isinstance(attribute, Dates):
        return "a date or a timestamp", ("date", "timestamp", "instant", "raw")
    if isinstance(attribute, Categories) and attribute.value_type == "text":
        return "text", ("text", "raw")
    if isinstance(attribute, Categories) and attribute.value_type == "boolean":
        return "a boolean", ("boolean", "raw")
    return "a number", ("integer", "decimal", "float", "raw")


def check_columns(table: str, domain: Domain, columns: Sequence[Column]) -> dict[str, Column]:
    """Return the columns that ``domain`` needs by name, or say which is missing or unusable."""
    by_name = {column.name: column for column in columns}
    _check_header(table, domain, columns)
    needed = {
        attribute.name: _needed(table, attribute.source, by_name) for attribute in domain.attributes
    }
    for attribute in domain.attributes:
        words, kinds = usable_kinds(attribute)
        column = needed[attribute.name]
        if column.kind not in (*kinds, "cells"):
            raise TableError(
                f"column {column.name!r} of table {table!r} has type {column.type_text}, but the "
                f"domain declares {attribute.kind} and needs {words}; "
                "change the domain, or read a view that converts the column"
            )
    if domain.unit.column is not None:
        person = _needed(table, domain.unit.column, by_name)
        _check_person(table, person)
        needed[person.name] = person
    return needed


def unseen_times(table: str, domain: Domain, columns: Sequence[Column]) -> list[str]:
    """What to say of columns of timestamps that the domain declares as days, by their types."""
    by_name = {column.name: column for column in columns}
    form = None if domain.csv is None else domain.csv.dates
    sentences = []
    for attribute in domain.attributes:
        column = by_name.get(attribute.source)
        if column is None or not isinstance(attribute, Dates) or attribute.time is not None:
            continue
        in_text = column.kind == "raw" and form is not None and "%H" in form
        if column.kind in {"timestamp", "instant"} or in_text:
            sentences.append(
                f"column {attribute.source!r} of table {table!r} holds times, and the domain "
                f"declares days: {attribute.source} > '{attribute.start}' is false of all times of "
                "that day. Declare time: true for comparisons and hours of the times, or "
                "time: false if days are meant"
            )
    return sentences


def column_names(needed: Mapping[str, Column]) -> list[str]:
    """The columns of a table that a domain needs, each once."""
    return list(dict.fromkeys(column.name for column in needed.values()))


def _check_header(table: str, domain: Domain, columns: Sequence[Column]) -> None:
    """Refuse a CSV file none of whose columns is declared: its first line may be a row of data."""
    sources = [attribute.source for attribute in domain.attributes]
    declared = {name.casefold() for name in sources}
    csv = all(column.kind == "raw" for column in columns)
    if csv and declared.isdisjoint(column.name.casefold() for column in columns):
        raise TableError(
            f"table {table!r} has no column {sources[0]!r}, nor any other that is declared; "
            "the first line of a CSV file must name its columns (it may be data: it is not shown)"
        )


def _check_person(table: str, column: Column) -> None:
    """Refuse a column in which "the same person" is not well defined (`lrm.domain.persons`)."""
    is_integer = column.kind == "decimal" and column.scale == 0 and column.precision > 0
    exact = column.kind in {"text", "integer", "uuid", "bytes", "raw", "cells"} or is_integer
    if exact and not column.loose:
        return
    fault = "which treats different texts as equal" if column.loose else "which has no exact text"
    raise TableError(
        f"column {column.name!r} of table {table!r} identifies the privacy unit but has type "
        f"{column.type_text}, {fault}; persons are identified by exact text, whole numbers, UUIDs "
        "or bytes: read a view that converts the column, as with lower(x)"
    )


def _needed(table: str, name: str, by_name: dict[str, Column]) -> Column:
    if name in by_name:
        return by_name[name]
    near = [other for other in by_name if other.casefold() == name.casefold()]
    hint = f"did you mean {near[0]!r}?" if near else f"it has {_listed(by_name)}"
    raise TableError(f"table {table!r} has no column {name!r}; {hint}")


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - 30} more" if len(shown) > 30 else ""
    return (", ".join(map(repr, shown[:30])) or "no columns") + more


def guarded(doing: str, call: Callable[[], T]) -> T:
    """Run a call of an engine; of its errors only the class is shown, and what it means.

    The message of an engine may quote a value of the table. The new error is raised after the
    old one has been released, so that no traceback or log finds it through ``__context__``.
    An attribute that this package looks for and a driver lacks is named.
    """
    try:
        return call()
    except LrmError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever an engine raises may quote a value
        kind, attribute = type(error).__name__, _missing_attribute(error)
        sentence = meaning(error)
    except BaseException as stop:  # Ctrl-C, perhaps while the error of an engine was handled
        stop.__context__ = None
        raise
    if attribute:
        raise TableError(
            f"{doing} failed: the engine's driver has no {attribute!r}; its version may be older "
            "than lrm needs: install lrm again with the extra of that engine"
        )
    raise TableError(
        f"{doing} failed with {kind}{': ' * bool(sentence)}{sentence}; "
        "the engine's own message is withheld, as it may quote values of the table"
    )


def _missing_attribute(error: Exception) -> str:
    """The attribute that code of this package looked for, if its absence is the error.

    The name is a word of that code, so it is not a value of a table.
    """
    name = getattr(error, "name", None) if isinstance(error, AttributeError) else None
    looking: tuple[str, ...] = ()
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if str(trace.tb_frame.f_globals.get("__name__")).startswith("lrm."):
            looking = code.co_names
        trace = trace.tb_next
    return name if name in looking else ""


def load_engine(module: str, requirement: str | None = None) -> ModuleType:
    """Import an engine's driver, or name the command that installs it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtra(
            f"this table needs the package {package}, which is not installed; "
            f"run: pip install {requirement or package}"
        ) from None


def name_parts(name: str) -> tuple[str, ...]:
    """Split ``schema.table`` at points that are not in double quotes.

    Examples
    --------
    >>> name_parts('public."a.b"')
    ('public', 'a.b')
    """
    parts = re.findall(r'"((?:[^"]|"")+)"|([^."]+)', name)
    rebuilt = ".".join(f'"{quoted}"' if quoted else plain for quoted, plain in parts)
    if not parts or rebuilt != name:
        raise TableError(
            f'{shown(name)!r} is not the name of a table; write table, schema.table or "a.b".c'
        )
    return tuple(quoted.replace('""', '"') if quoted else plain for quoted, plain in parts)
