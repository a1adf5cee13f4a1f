"""Lookups: small public tables that give further columns to the values of an attribute."""

from __future__ import annotations

import csv
import datetime as dt
import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lrm.domain.attributes import Attribute
from lrm.domain.bins import Bins
from lrm.domain.numbers import Numbers
from lrm.domain.ordered import Dates, SteppedAttribute
from lrm.errors import DomainError

MOST_ROWS = 100_000
"""Rows of a lookup."""

DIFFERENT = object()
"""What a cell has whose values are not all given the same."""

Value = str | int | float | bool | None


@dataclass(frozen=True, init=False)
class Lookup:
    """A public table with one row for each value of an attribute.

    Parameters
    ----------
    name
        Name by which SQL joins it.
    key
        The attribute.
    columns
        Names of its columns other than the key.
    rows
        A value of the attribute and one value of each column; None is NULL. A value without a row
        has NULL in each column.
    key_column
        Name of the key in the lookup, if it is not that of the attribute.

    Examples
    --------
    >>> from lrm.domain import Categories
    >>> lookup = Lookup("airlines", "carrier", ["airline"], [["UA", "United"], ["AA", "American"]])
    >>> lookup.on_cells(Categories("carrier", ["AA", "B6"], null="cell"), "airline")
    ['American', None, None]
    """

    name: str
    key: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    key_column: str

    def __init__(
        self,
        name: str,
        key: str,
        columns: Iterable[str],
        rows: Iterable[Sequence[Value]],
        key_column: str | None = None,
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in rows))
        object.__setattr__(self, "key_column", key if key_column is None else key_column)
        self._check()

    def _check(self) -> None:
        names = (self.name, self.key, self.key_column, *self.columns)
        if not all(isinstance(entry, str) and entry.strip() for entry in names):
            raise self.error("its name, its key and its columns must be texts")
        folded = [entry.casefold() for entry in (self.key_column, *self.columns)]
        if not self.columns or len(set(folded)) < len(folded):
            raise self.error("it needs columns, with names unlike each other's and its key's")
        if not 0 < len(self.rows) <= MOST_ROWS:
            raise self.error(f"it needs 1 to {MOST_ROWS:,} rows, not {len(self.rows):,}")
        width = 1 + len(self.columns)
        if any(len(row) != width for row in self.rows):
            raise self.error(f"each row needs {width} values: the key, and one for each column")
        for place, column in enumerate(self.columns, start=1):
            column_values = [row[place] for row in self.rows if row[place] is not None]
            kinds = {float if type(entry) is int else type(entry) for entry in column_values}
            if len(kinds) > 1 or not kinds <= {str, float, bool}:
                raise self.error(f"column {column!r} must hold texts, numbers or booleans alone")
            finite = (abs(entry) <= sys.float_info.max for entry in column_values)  # type: ignore[arg-type]
            if kinds == {float} and not all(finite):
                raise self.error(f"the numbers of column {column!r} must be finite float64s")

    def error(self, sentence: str) -> DomainError:
        """An error whose message names this lookup."""
        return DomainError(f"lookup {self.name!r}: {sentence}")

    def check_key(self, attribute: Attribute) -> None:
        """Check that every key may be a value of the attribute and has one row."""
        if isinstance(attribute, Numbers):
            raise self.error(f"the numbers of {self.key!r} are declared by knots, and are no keys")
        if isinstance(attribute, Bins):
            raise self.error(f"the cells of {self.key!r} are intervals, which have no keys")
        if isinstance(attribute, Dates) and attribute.time:
            raise self.error(f"the cells of {self.key!r} are intervals of time, and are no keys")
        kinds = {str} if isinstance(attribute, Dates) else {int}
        if not isinstance(attribute, SteppedAttribute):
            kinds = {type(key_value) for key_value in getattr(attribute, "values", ())}
        seen: set[object] = set()  # of values: a date can be spelled in several ways
        for key, *_ in self.rows:
            if type(key) not in kinds:
                raise self.error(f"{key!r} is not a value of {self.key!r}: its type is another")
            value = self._value(attribute, key)
            if value in seen:
                raise self.error(f"the key {key!r} has two rows")
            seen.add(value)

    def keys(self, attribute: Attribute) -> list[object]:
        """The key of each row as a value of the attribute; dates are read from text."""
        return [self._value(attribute, key) for key, *_ in self.rows]

    def _value(self, attribute: Attribute, key: Value) -> object:
        if not isinstance(attribute, Dates):
            return key
        try:
            return dt.date.fromisoformat(str(key))
        except ValueError:
            raise self.error(f"expected a date such as '2024-01-31', got {key!r}") from None

    def on_cells(self, attribute: Attribute, column: str | None) -> list[object]:
        """The value of a column on each cell, DIFFERENT where a cell has several.

        Without a column: whether the values of a cell have a row.
        """
        place = None if column is None else 1 + self.columns.index(column)
        absent: Value = False if place is None else None
        values_by_cell: list[list[Value]] = [[] for _ in range(attribute.size)]
        for row in self.rows:
            cell = attribute.cell_of(self._value(attribute, row[0]))
            if cell is not None:
                values_by_cell[cell].append(True if place is None else row[place])
        counts = np.ones(attribute.regular, dtype=np.int64)
        if isinstance(attribute, SteppedAttribute):
            counts = attribute.ends - attribute.starts + 1
        values: list[object] = []
        for cell, cell_values in enumerate(values_by_cell):
            complete = cell < attribute.regular and len(cell_values) == counts[cell]
            different = {*cell_values} if complete else {*cell_values, absent}
            values.append(different.pop() if len(different) == 1 else DIFFERENT)
        return values

    @property
    def facts(self) -> dict[str, object]:
        """The lookup as a domain file has it."""
        return {
            "name": self.name,
            "key": self.key,
            **({} if self.key_column == self.key else {"key_column": self.key_column}),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }


def label_text(value: object) -> str:
    """What a group is called that has this value."""
    if value is None:
        return "(null)"
    if isinstance(value, float):
        value += 0.0  # -0.0 equals 0.0, and SQL has one group for both
    return str(value).lower() if isinstance(value, bool) else str(value)


def lookup_rows(
    text: str, key_column: str, attribute: Attribute
) -> tuple[list[str], list[list[Value]]]:
    """Columns and rows of a CSV text with a header; empty fields are NULL.

    A column of which every field is a whole number holds integers, and likewise other numbers.
    """
    try:
        table = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as reason:
        raise DomainError(f"the CSV file cannot be read: {reason}") from None
    if not table or key_column not in table[0]:
        raise DomainError(f"the CSV file has no column {key_column!r}")
    header, *rows = table
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise DomainError(f"the CSV file has two columns called {twice!r}")
    if any(len(row) != len(header) for row in rows):
        raise DomainError("the lines of the CSV file have different numbers of fields")
    columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    keys: Sequence[Value] = columns.pop(key_column, ())
    values = getattr(attribute, "values", None)
    if values is not None and isinstance(values[0], bool):
        keys = [{"true": True, "false": False}.get(str(key).casefold(), key) for key in keys]
    elif isinstance(values[0] if values else 0, int) and not isinstance(attribute, Dates):
        keys = _typed(keys)
    typed_columns = [keys, *(_typed(column) for column in columns.values())]
    return list(columns), [list(row) for row in zip(*typed_columns, strict=True)]


def _typed(fields: Sequence[Any]) -> Sequence[Value]:
    for kind in (int, float):
        try:
            # Python reads 1_000 as a number, and nobody else does.
            return [None if field == "" else kind(field.replace("_", "?")) for field in fields]
        except ValueError:
            continue
    return [None if field == "" else field for field in fields]
