"""SQL that places a row in a cell, for any engine.

Each expression has the class of a row's cell as its value, or NULL where the row is not
counted. Conditions are written so that NULL and NaN, which compare with nothing or above
everything, fall through to the clauses that are meant for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Bins, Categories, Dates, Integers, Numbers
from lrm.domain.attributes import LARGEST_INTEGER
from lrm.domain.ordered import MINUTES
from lrm.tables.axes import DROPPED, Axis
from lrm.tables.base import Column
from lrm.tables.count import Count
from lrm.tables.dialect import Clause, Dialect, case, sql_code
from lrm.tables.shares import knot_position

CASE_LIMIT = 64
"""Steps up to which a CASE is used: its cost is linear, 21 s at 1,024 bins against 1.7 s."""


@dataclass(frozen=True)
class CategoryKeys:
    """Many declared values, to be joined with the table: (value, class) pairs as literals."""

    value: str
    pairs: tuple[tuple[str, int], ...]


def cell_sql(axis: Axis, x: str, column: Column, dialect: Dialect, stored: str = "") -> str:
    """Return the SQL of a row's class for ``axis``; of numbers by knots, of its position.

    Parameters
    ----------
    axis
        An attribute and the classes of its cells.
    x, column
        A value as SQL, and its type.
    dialect
        The engine's SQL.
    stored
        What the table holds, where ``x`` was read from it: a value that cannot be read makes
        ``x`` NULL, but is not NULL itself. It is ``(other)`` or ``(invalid)``.
    """
    attribute = axis.attribute
    stored = stored or x
    if column.kind == "cells":
        return _stepped(axis, x, 1, dialect, attribute.size)
    null = (f"{stored} IS NULL", sql_code(axis.special("(null)")))
    rest = (null, (f"{stored} IS NOT NULL", sql_code(axis.special("(invalid)"))))
    if isinstance(attribute, Numbers):
        return case(knot_position(axis, dialect.as_double(x, column), rest, dialect))
    if isinstance(attribute, Bins):
        return bins(axis, dialect.as_double(x, column), rest, dialect)
    if isinstance(attribute, Integers):
        return integers(axis, x, column, rest, dialect)
    if isinstance(attribute, Dates):
        return dates(axis, x, column, rest, dialect)
    assert isinstance(attribute, Categories)  # noqa: S101 - all kinds of attribute are above
    other = (f"{stored} IS NOT NULL", sql_code(axis.special("(other)")))
    return dialect.categories(axis, category_value(axis, x, column, dialect), (other, null))


def is_dropped(count: Count, dialect: Dialect) -> str:
    """SQL of whether the words of a row have a value that its attribute drops: 1, or 0."""
    tests = []
    for word, stride, size, value in count.dropped_values:
        place = f"w{word}" if stride == 1 else dialect.quotient(f"w{word}", stride)
        tests.append(f"({place}) % {size} = {value}")
    return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END" if tests else "0"


def bin_steps(axis: Axis) -> tuple[NDArray[np.float64], list[int | None]]:
    """Return edges, and the class of numbers below the first, between, and above the last.

    Edges between numbers of one class are left out: a batch that asks for four age groups
    costs three comparisons, whatever the domain declares.
    """
    attribute = axis.attribute
    assert isinstance(attribute, Bins)  # noqa: S101 - the caller looked
    codes = [axis.code(cell) for cell in range(attribute.regular)]
    codes = [axis.special("(below)"), *codes, axis.special("(above)")]
    changes = [i for i in range(len(attribute.edges)) if codes[i] != codes[i + 1]]
    return np.array([attribute.edges[i] for i in changes]), [
        codes[0],
        *(codes[i + 1] for i in changes),
    ]


def bins(axis: Axis, x: str, rest: Sequence[Clause], dialect: Dialect) -> str:
    """SQL of a float64 among edges, by comparing with one after the other."""
    edges, codes = bin_steps(axis)
    clauses = [
        (f"{x} < {dialect.number(edge)}", sql_code(code))
        for edge, code in zip(edges.tolist(), codes, strict=False)
    ]
    # NaN is greater than every number on these engines, and NULL is neither less nor more.
    nan = (dialect.is_nan(x), sql_code(axis.special("(nan)")))
    return case([*clauses, nan, (f"{x} IS NOT NULL", sql_code(codes[-1])), *rest])


def integers(axis: Axis, x: str, column: Column, rest: Sequence[Clause], dialect: Dialect) -> str:
    """SQL of a whole number, by arithmetic on integers.

    Of floats, fractions are invalid, and infinities are outside.
    """
    attribute = axis.attribute
    assert isinstance(attribute, Integers)  # noqa: S101 - the caller looked
    low, high = str(attribute.low), str(attribute.high)
    if column.kind == "float":
        x = dialect.as_double(x, column)
        low = dialect.number(_float_at_least(attribute.low))
        high = dialect.number(-_float_at_least(-attribute.high))
        is_whole, nan, whole = dialect.is_whole_float(x), dialect.is_nan(x), dialect.as_bigint(x)
    else:
        nan = dialect.is_exact_nan(x, column)
        x, is_whole = dialect.whole(x, column)
        whole = dialect.bounded_bigint(x, column)
    cell = _stepped(axis, f"{whole} - ({attribute.low})", attribute.width, dialect)
    only = "" if is_whole == "TRUE" else f"{is_whole} AND "
    within, *beyond = _ranged(axis, x, low, high, cell, only)
    # NaN is greater than every number.
    not_a_number = (nan, sql_code(axis.special("(nan)")))
    return case([_last_of_all(axis, x), within, not_a_number, *beyond, *rest])


def _ranged(  # noqa: PLR0913, PLR0917 - what the clauses are made of
    axis: Axis, x: str, low: str, high: str, cell: str, only: str = ""
) -> list[Clause]:
    """Clauses for a value within a declared range, below it, and above it."""
    return [
        (f"{only}{x} >= {low} AND {x} <= {high}", cell),
        (f"{only}{x} < {low}", sql_code(axis.special("(below)"))),
        (f"{only}{x} > {high}", sql_code(axis.special("(above)"))),
    ]


def _last_of_all(axis: Axis, x: str) -> Clause:
    """Treat 2^62 separately if counting starts at -2^62: the difference does not fit 64 bits."""
    attribute = axis.attribute
    assert isinstance(attribute, Integers)  # noqa: S101 - the caller looked
    fits = attribute.high - attribute.low < 2**63
    code = sql_code(axis.code(attribute.regular - 1))
    return ("FALSE", "NULL") if fits else (f"{x} = {attribute.high}", code)


def _float_at_least(bound: int) -> float:
    """Return the smallest float64 at or above an integer: a whole float compares as it does."""
    nearest = float(bound)
    return nearest if int(nearest) >= bound else math.nextafter(nearest, math.inf)


def _stepped(axis: Axis, offset: str, width: int, dialect: Dialect, cells: int = 0) -> str:
    """SQL of the class of the cell at ``offset``; NULL where that is NULL."""
    place = offset if width == 1 else dialect.quotient(f"({offset})", width)
    cells = cells or axis.attribute.regular
    if np.array_equal(axis.codes[:cells], np.arange(cells)):
        return place
    codes = axis.codes[:cells].tolist()
    return dialect.lookup([None if code == DROPPED else code for code in codes], place)


def dates(axis: Axis, x: str, column: Column, rest: Sequence[Clause], dialect: Dialect) -> str:
    """SQL of a day or time, by counting days, months or years from the first, or parts of days."""
    attribute = axis.attribute
    assert isinstance(attribute, Dates)  # noqa: S101 - the caller looked
    start, end = attribute.start.isoformat(), attribute.end.isoformat()
    day = dialect.as_day(x, column)
    if attribute.minutes < MINUTES:
        days = dialect.as_bigint(f"({dialect.days_since(day, start)})")
        part = dialect.quotient(dialect.minute_of_day(x, column), attribute.minutes)
        offset = f"{days} * {MINUTES // attribute.minutes} + {part}"
    elif attribute.by == "day":
        offset = dialect.days_since(day, start)
    else:
        offset = f"{dialect.year(day)} - {attribute.start.year}"
        if attribute.by == "month":
            offset = f"({offset}) * 12 + {dialect.month(day)} - {attribute.start.month}"
    cell = _stepped(axis, dialect.as_bigint(f"({offset})"), 1, dialect)
    return case([*_ranged(axis, day, dialect.day(start), dialect.day(end), cell), *rest])


def category_value(axis: Axis, x: str, column: Column, dialect: Dialect) -> str:
    """SQL of a value that compares exactly with declared ones; NULL where it can be none."""
    attribute = axis.attribute
    assert isinstance(attribute, Categories)  # noqa: S101 - the caller looked
    if attribute.value_type == "text":
        return dialect.as_text(x, column)
    if attribute.value_type == "boolean":
        return x
    if column.kind == "float":
        x = dialect.as_double(x, column)
        bound = dialect.number(float(LARGEST_INTEGER))
        test = f"{x} >= -{bound} AND {x} <= {bound} AND {dialect.is_whole_float(x)}"
    else:
        x, is_whole = dialect.whole(x, column)
        test = f"{is_whole} AND {x} >= -{LARGEST_INTEGER} AND {x} <= {LARGEST_INTEGER}"
    return f"CASE WHEN {test} THEN {dialect.as_bigint(x)} END"


def category_keys(axis: Axis, x: str, column: Column, dialect: Dialect) -> CategoryKeys | None:
    """Return what to join with the table where the declared values are many, else None."""
    attribute = axis.attribute
    if not isinstance(attribute, Categories) or len(attribute.spelled) <= CASE_LIMIT:
        return None
    coded = ((declared, axis.code(cell)) for declared, cell in attribute.spelled)
    pairs = [
        (dialect.literal(declared), DROPPED if code is None else code) for declared, code in coded
    ]
    return CategoryKeys(category_value(axis, x, column, dialect), tuple(pairs))


def joined_categories(axis: Axis, x: str, joined: str) -> str:
    """SQL of a value whose class a join has found, or not."""
    return case(
        [
            (f"{joined} >= 0", joined),
            (f"{joined} < 0", "NULL"),
            (f"{x} IS NOT NULL", sql_code(axis.special("(other)"))),
            (f"{x} IS NULL", sql_code(axis.special("(null)"))),
        ]
    )
