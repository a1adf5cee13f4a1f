"""What differs between the engines' SQL, as small pieces of text.

Names and values reach an engine only through `Dialect.name`, `Dialect.text` and numbers
that Python wrote, so that no declared name or category can become SQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from lrm.domain import Categories
from lrm.domain.attributes import LARGEST_INTEGER
from lrm.tables.axes import FEW_RUNS, Axis
from lrm.tables.base import Column

BEYOND = LARGEST_INTEGER + 1
"""A number above it is outside every declared range, whether or not it is whole."""

Clause = tuple[str, str]
"""A condition and the value where it is the first that holds."""


def case(clauses: Sequence[Clause]) -> str:
    """Write a CASE, without trailing clauses that yield NULL anyway."""
    possible = [clause for clause in clauses if clause[0] != "FALSE"]
    while possible and possible[-1][1] == "NULL":
        possible.pop()
    if not possible:
        return "CAST(NULL AS INTEGER)"
    return "CASE " + " ".join(f"WHEN {test} THEN {value}" for test, value in possible) + " END"


def sql_code(code: int | None) -> str:
    """Write a class number, or NULL."""
    return "NULL" if code is None else str(code)


class Dialect(ABC):
    """SQL of one engine. Arguments and results are SQL expressions."""

    double: ClassVar[str] = "DOUBLE"

    def name(self, identifier: str) -> str:
        """Quote the name of a column or table."""
        return '"' + identifier.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Write a text as a literal."""
        return "'" + value.replace("'", "''") + "'"

    def number(self, value: float) -> str:
        """Write a float64 as a literal that reads back as the same float64."""
        return f"CAST('{value!r}' AS {self.double})"

    def lookup(self, codes: Sequence[int | None], place: str) -> str:
        """Return the element of a list at ``place``, counted from 0; NULL for NULL."""
        ends = [i for i in range(1, len(codes)) if codes[i] != codes[i - 1]]
        if len(ends) < FEW_RUNS:  # of equal elements: a list of a million took seconds to parse
            below = [(f"{place} < {end}", sql_code(codes[end - 1])) for end in ends]
            return case([*below, (f"{place} IS NOT NULL", sql_code(codes[-1]))])
        return self.element(codes, f"{self.as_bigint(place)} + 1")

    @abstractmethod
    def element(self, codes: Sequence[int | None], place: str) -> str:
        """Return the element of a list at ``place``, counted from 1.

        The list is written as one literal: a list of expressions takes the parser of any engine
        kilobytes per element.
        """

    def literal(self, value: object) -> str:
        """Write a declared category."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        return str(value) if isinstance(value, int) else self.text(str(value))

    def categories(self, axis: Axis, value: str, rest: Sequence[Clause]) -> str:
        """Class of a value among declared ones, by comparing with one after the other.

        ``rest`` says what becomes of values that are not declared.
        """
        attribute = axis.attribute
        assert isinstance(attribute, Categories)  # noqa: S101 - the caller looked
        clauses = [
            (f"{value} = {self.literal(declared)}", sql_code(axis.code(cell)))
            for declared, cell in attribute.spelled
        ]
        return case([*clauses, *rest])

    @abstractmethod
    def as_double(self, x: str, column: Column) -> str:
        """Convert a number to the nearest float64, exactly as Python does."""

    @abstractmethod
    def as_text(self, x: str, column: Column) -> str:
        """Make text that compares exactly, whatever the column's collation."""

    @abstractmethod
    def as_day(self, x: str, column: Column) -> str:
        """Return the day of a date, a timestamp, or an instant (in UTC)."""

    def minute_of_day(self, x: str, column: Column) -> str:
        """Return the minute of the day, 0 to 1439, as 64 bits, of what `as_day` takes.

        Where it is asked, the day is one that a domain may declare.
        """
        return "0" if column.kind == "date" else self._minute_of_day(x, column)

    @abstractmethod
    def _minute_of_day(self, x: str, column: Column) -> str:
        """The same of a timestamp or an instant."""

    @abstractmethod
    def as_person(self, x: str, column: Column) -> str:
        """Make a value by which rows of one person, and only those, are equal.

        Its bytes are those of `lrm.domain.persons.person_name`; a number may stand for its
        digits.
        """

    def first_rows(self, relation: str, person: str, columns: Sequence[str]) -> str:
        """The query of one row per person: the first by some columns, of which NULL comes last."""
        order = ", ".join(f"{column} ASC NULLS LAST" for column in columns)
        ranked = (
            f"SELECT *, row_number() OVER (PARTITION BY {person} ORDER BY {order}) AS place "  # noqa: S608
            f"FROM {relation}"
        )
        return f"SELECT {', '.join([person, *columns])} FROM ({ranked}) AS ranked WHERE place = 1"  # noqa: S608

    def wide_sum(self, x: str) -> str:
        """The sum of integers of 64 bits in a type that holds it, whatever the rows are."""
        return f"sum({x})"

    @abstractmethod
    def whole(self, x: str, column: Column) -> tuple[str, str]:
        """Return a whole number that compares exactly with integers, and when ``x`` is one.

        The first is meaningful only where the second holds. A number beyond `BEYOND` passes.
        """

    def is_nan(self, x: str) -> str:
        """Whether a float is NaN."""
        return f"isnan({x})"

    def is_exact_nan(self, x: str, column: Column) -> str:  # noqa: ARG002 - some engines look
        """Whether a number that is not a float can still be NaN."""
        return "FALSE"

    def is_whole_float(self, x: str) -> str:
        """Whether a float has no fraction; infinities have none."""
        return f"trunc({x}) = {x}"

    def bounded_bigint(self, x: str, column: Column) -> str:  # noqa: ARG002 - some engines look
        """Convert the first of `whole` to 64 bits, where a declared range has been checked."""
        return self.as_bigint(x)

    @abstractmethod
    def as_bigint(self, x: str) -> str:
        """Convert a whole number to 64 bits; must not fail, whatever the value."""

    @abstractmethod
    def quotient(self, x: str, divisor: int) -> str:
        """Integer quotient of two whole numbers that are not negative."""

    def day(self, iso: str) -> str:
        """Write a date as a literal."""
        return f"DATE '{iso}'"

    @abstractmethod
    def days_since(self, x: str, iso: str) -> str:
        """Days from a declared date to the date ``x``."""

    def year(self, x: str) -> str:
        """Year of a date."""
        return f"EXTRACT(YEAR FROM {x})"

    def month(self, x: str) -> str:
        """Month of a date, 1 to 12."""
        return f"EXTRACT(MONTH FROM {x})"
