"""Which numbers each cell of an attribute holds, and its comparisons with constants, cell by cell.

A cell is a set of values, so that a comparison has a *set* of possible truths on
it: a subset of {true, false, null}, kept as the bits 1, 2, 4. A cell on which a
comparison may be true and may be false is *cut* by it; the compiler refuses a query in
which a cut still matters in the end, and never rounds the constant. Comparisons, monotone chains
of functions, sums by representatives, quantiles and the edges that errors name all read the ends
of cells from `Intervals`.
"""

from __future__ import annotations

import datetime as dt
import difflib
import operator
import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Attribute, Bins, Categories, Dates, Integers, Numbers, SteppedAttribute
from lrm.domain.attributes import number_text
from lrm.domain.ordered import DAY, EPOCH, MINUTES
from lrm.errors import SqlError
from lrm.queries.sql.expr import OPPOSITES, Expr
from lrm.queries.sql.refusals import refuse

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    from collections.abc import Callable, Sequence

MOST_REMARKS = 8
"""Constants of a list that are named as not declared; the others are counted."""

MOST_COMPARED = 2000
"""Declared values among which one with a similar spelling is looked for."""

UNBOUNDED = 2.0**500
"""In place of an infinite error, which cannot be multiplied by 0."""

_LEAST = 2.0**-900
_LAST_TIME = (dt.date.max.toordinal() + 1) * DAY - 1
_LARGEST_WHOLE = 2.0**52
"""Whole numbers up to here are exact as float64, and so are their neighbours."""


def is_binned(attribute: Attribute) -> bool:
    """Whether cells of an attribute hold several numbers or times, or shares of them."""
    if isinstance(attribute, Dates):
        return bool(attribute.time)
    return isinstance(attribute, Bins | Numbers) or (
        isinstance(attribute, Integers) and attribute.width > 1
    )


@dataclass(frozen=True, eq=False)
class Intervals:
    """The numbers of each cell that holds some: the declared cells, then (below) and (above)."""

    low: NDArray[Any]  # the least number of each cell
    high: NDArray[Any]  # the largest one, or where ``is_open`` the edge that its numbers stay below
    regular: int  # how many cells are declared ones
    is_open: bool = False
    are_times: bool = False  # numbers of microseconds, as `Dates.step` has them

    @classmethod
    def of(cls, attribute: Attribute) -> Intervals:
        """The intervals of integers, dates, bins or knots."""
        if isinstance(attribute, Numbers):  # a knot counts for itself, shares for what is between
            return cls(np.array(attribute.knots), np.array(attribute.knots), attribute.regular)
        if isinstance(attribute, SteppedAttribute):
            are_times = isinstance(attribute, Dates) and bool(attribute.time)
            return cls(*attribute.spans, attribute.regular, are_times=are_times)
        assert isinstance(attribute, Bins)  # noqa: S101 - categories hold no numbers
        edges = np.asarray(attribute.edges)
        low, high = edges[:-1], edges[1:]
        if attribute.outside == "cell":  # (above) holds inf itself, which no constant reaches
            low, high = np.append(low, [-np.inf, edges[-1]]), np.append(high, [edges[0], np.inf])
        return cls(low, high, attribute.regular, is_open=True)

    def ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least and the largest number of each cell.

        >>> Intervals.of(Bins("x", [0, 10, 20])).ends()[1].tolist()
        [9.999999999999998, 19.999999999999996]
        """
        if not self.is_open:
            return self.low, self.high
        last = np.where(np.isinf(self.high), self.high, np.nextafter(self.high, -np.inf))
        return self.low, last

    def computed_ends(self) -> list[NDArray[Any]]:
        """The least and the largest numbers that functions are evaluated on.

        Times are counted from 1970, as engines do. Below 0, the largest is one that a quotient
        does not round to 0. Where all edges are whole, a column may be stored as integers: these
        follow.
        """
        low, high = self.ends()
        if self.are_times:
            first = (np.clip(side, DAY, _LAST_TIME) - EPOCH * DAY for side in (low, high))
            return [side.astype("datetime64[us]") for side in first]
        high = np.where(self.high == 0.0, -_LEAST, high)
        edges = np.concatenate([self.low, self.high])
        finite = edges[np.isfinite(edges)]
        if np.any(finite != np.rint(finite)) or np.any(np.abs(finite) > _LARGEST_WHOLE):
            return [low, high]
        first, last = (
            np.clip(side, -_LARGEST_WHOLE, _LARGEST_WHOLE) for side in (low, np.floor(high))
        )
        return [low, high, first.astype(np.int64), last.astype(np.int64)]

    def ascending(self) -> tuple[list[int], Floats, Floats]:
        """The cells in order, with the ends of their numbers; those beyond have infinite ends."""
        cells = list(range(self.regular))
        beyond = len(self.low) > self.regular
        order = [self.regular, *cells, self.regular + 1] if beyond else cells
        lows, highs = self.low[order].astype(np.float64), self.high[order].astype(np.float64)
        if beyond:
            lows[0], highs[-1] = -np.inf, np.inf
        return order, lows, highs


def represented(attribute: Attribute) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """What each cell counts for, how far its numbers may lie from that, and where it has none.

    NULL counts for 0. A cell without an end has a representative only where the domain gives it.
    """
    values, halves = np.zeros(attribute.size), np.zeros(attribute.size)
    open_cells = np.ones(attribute.size, dtype=bool)
    null = attribute.special_cell("(null)")
    if null is not None:
        open_cells[null] = False
    cells, regular = Intervals.of(attribute), slice(0, attribute.regular)
    lows, highs = (side[regular].astype(np.float64) for side in (cells.low, cells.high))
    representatives = getattr(attribute, "representatives", None)
    middle = np.where(np.isfinite(lows + highs), (lows + highs) / 2, np.nan)
    values[regular] = middle if representatives is None else np.array(representatives)
    halves[regular] = np.maximum(values[regular] - lows, highs - values[regular])
    halves[np.isinf(halves)] = UNBOUNDED
    open_cells[regular] = np.isnan(values[regular])
    values[open_cells] = halves[open_cells] = 0.0
    return values, halves, open_cells


def sorted_cells(attribute: Attribute) -> list[int]:
    """All cells as ORDER BY sorts them; those of values without a place in the order come last."""
    cells = list(range(attribute.size))
    if isinstance(attribute, Categories):
        cells[: attribute.regular] = sorted(
            range(attribute.regular), key=lambda cell: attribute.values[cell]
        )
    below = attribute.special_cell("(below)")
    return cells if below is None else [below, *(cell for cell in cells if cell != below)]


def ordered_cells(attribute: Attribute, node: Expr) -> tuple[list[int], list[int]]:
    """All cells in ascending order, and those of NULL and invalid values, which have no place."""
    if attribute.special_cell("(other)") is not None:
        advice = "the place of its cell (other) is not known"
        raise refuse("window", f"ORDER BY {attribute.name}", advice, node)
    special = [attribute.special_cell(label) for label in ("(invalid)", "(null)")]
    last = [cell for cell in special if cell is not None]
    return [cell for cell in sorted_cells(attribute) if cell not in last], last


Constant = str | bool | Decimal | dt.date
"""Text, truth, number or date."""

TRUE, FALSE, NULL = 1, 2, 4
Truths = NDArray[np.uint8]
"""Per cell, a subset of {true, false, null} as bits."""

NOT = np.array(
    [(s & NULL) | (FALSE if s & TRUE else 0) | (TRUE if s & FALSE else 0) for s in range(8)],
    dtype=np.uint8,
)
"""Negation of a set of truths: indexed by it."""

AND = np.zeros((8, 8), dtype=np.uint8)
"""Conjunction of two sets of truths: FALSE decides, else NULL, else both are TRUE."""
for _left in (TRUE, FALSE, NULL):
    for _right in (TRUE, FALSE, NULL):
        _both = next(truth for truth in (FALSE, NULL, TRUE) if truth in {_left, _right})
        AND[np.ix_((np.arange(8) & _left) > 0, (np.arange(8) & _right) > 0)] |= _both

_ON_NUMBERS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
}
_CONSTANTS: dict[str, type] = {"text": str, "integer": Decimal, "boolean": bool}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def compare(attribute: Attribute, operation: str, value: Constant) -> Truths:
    """Return the possible truths of ``attribute <operation> value`` on each cell.

    Operations are ``= <> < <= > >=``.

    >>> from lrm.domain import Integers
    >>> compare(Integers("age", 0, 9, width=5, null="cell"), "<", Decimal(5)).tolist()
    [1, 2, 4]
    >>> compare(Integers("age", 0, 9, width=5), "<", Decimal(7)).tolist()  # cuts 5..9
    [1, 3]
    """
    if isinstance(attribute, Numbers):
        raise SqlError(undivided(attribute, "compared"), code="cut")
    if operation not in _ON_NUMBERS:
        return np.asarray(NOT[compare(attribute, OPPOSITES[operation], value)])
    result = np.full(attribute.size, NULL, dtype=np.uint8)
    if isinstance(attribute, Categories):
        _compare_categories(attribute, operation, value, result)
    elif isinstance(attribute, Bins | SteppedAttribute) and operation == "=":
        equal = _equal_some(attribute, [value])
        result[: len(equal)] = equal
    elif isinstance(attribute, Bins | SteppedAttribute):
        first, last = Intervals.of(attribute).ends()
        point = first.dtype.type(_point(attribute, operation, value))
        # A number in bins may lie between the largest float64 of its cell and the edge.
        surely = last < point if operation == "<=" and last.dtype.kind == "f" else last <= point
        result[: len(first)] = by_ends(first <= point, surely)
    nan = attribute.special_cell("(nan)")
    if nan is not None:
        result[nan] = FALSE  # it equals no number and is greater than each, in all engines
    return result


def among(attribute: Attribute, values: Sequence[Constant]) -> Truths:
    """Return the possible truths of ``attribute IN (values)`` on each cell.

    >>> from lrm.domain import Integers
    >>> among(Integers("age", 0, 9, width=5, null="cell"), [Decimal(7), Decimal(8)]).tolist()
    [2, 3, 4]
    """
    result = compare(attribute, "=", values[0]).copy()
    if isinstance(attribute, Categories):
        cells = {value: cell for cell, value in enumerate(attribute.values)}
        other = attribute.special_cell("(other)")
        for value in values[1:]:
            if value in cells and type(value) is _CONSTANTS[attribute.value_type]:
                result[cells[value]] = TRUE
            else:
                result = np.asarray(NOT[AND[NOT[result], compare(attribute, "<>", value)]])
            if other is not None and value not in cells:
                result[other] = TRUE | FALSE
        return result
    assert isinstance(attribute, Bins | SteppedAttribute)  # noqa: S101 - the only other kinds
    equal = _equal_some(attribute, values)
    result[: len(equal)] = equal
    return result


def _equal_some(attribute: Bins | SteppedAttribute, values: Sequence[Constant]) -> Truths:
    """Truths of a number being one of some, on each cell that holds numbers."""
    first, last = Intervals.of(attribute).ends()
    known = {_point(attribute, "=", value) for value in values} - {None}
    points = np.array(sorted(known), dtype=first.dtype)  # type: ignore[type-var]
    counts = np.searchsorted(points, last, "right") - np.searchsorted(points, first)
    is_covered = np.zeros(len(first), dtype=bool)
    if isinstance(attribute, SteppedAttribute):
        # Exact beyond 2^53, and where a cell without an end has 2^63 values.
        gaps = last.astype(np.uint64) - first.astype(np.uint64)
        is_covered = np.maximum(counts - 1, 0).astype(np.uint64) == gaps
    truths = np.where(counts == 0, FALSE, np.where(is_covered, TRUE, TRUE | FALSE))
    return truths.astype(np.uint8)


def undivided(attribute: Numbers, done: str) -> str:
    """Say that numbers by knots have no cells of their own."""
    return (
        f"{attribute.name!r} cannot be {done}: its numbers are declared by knots and divided "
        "between them, for sums, averages, variances and quantiles; declare a column of a view "
        "with the same numbers in bins, and use that"
    )


def _point(
    attribute: Bins | SteppedAttribute, operation: str, value: Constant
) -> int | float | None:
    """The number that is compared with: of ``=`` None for none, of others one to compare by <=."""
    if isinstance(attribute, SteppedAttribute):
        exact = _as_step(attribute, value)
        integer = int(exact.to_integral_value(rounding=ROUND_FLOOR))
        if operation == "=" and integer != exact:
            return None
        if operation == "<":  # x < 4.2 is x <= 4, and x < 4 is x <= 3
            integer = int(exact.to_integral_value(rounding=ROUND_CEILING)) - 1
        # One step inside the open ends ±2^63: a huge constant still cuts (below), (above).
        return max(-(2**63) + 1, min(2**63 - 2, integer))
    at = _exactly(_as_number(attribute, value))
    if not np.isfinite(at):
        raise _wrong(f"{value} is too large for a number of {attribute.name!r}")
    return float(np.nextafter(at, -np.inf)) if operation == "<" else at


def by_ends(at_first: NDArray[np.bool_], at_last: NDArray[np.bool_]) -> Truths:
    """Truths of a monotone condition by those at both ends of each cell."""
    truths = np.where(at_first & at_last, TRUE, np.where(at_first | at_last, TRUE | FALSE, FALSE))
    return truths.astype(np.uint8)


def is_null(attribute: Attribute) -> Truths:
    """Return the truth of ``attribute IS NULL`` on each cell: never null itself."""
    result = np.full(attribute.size, FALSE, dtype=np.uint8)
    cell = attribute.special_cell("(null)")
    if cell is not None:
        result[cell] = TRUE
    return result


def _exactly(value: Decimal) -> float:
    """The float64 that is written so, or the next one beyond: an edge is not reached by rounding.

    >>> _exactly(Decimal("0.1")), _exactly(Decimal(2**53 + 1)) == 2.0**53
    (0.1, False)
    """
    at = float(value)
    if not np.isfinite(at) or value in {Decimal(repr(at)), Decimal(at)}:
        return at
    return float(np.nextafter(at, np.inf if value > Decimal(at) else -np.inf))


def _compare_categories(
    attribute: Categories, operation: str, value: Constant, result: Truths
) -> None:
    expected = _CONSTANTS[attribute.value_type]
    if expected is Decimal and isinstance(value, str) and _WHOLE.fullmatch(value):
        value = Decimal(value)
    if expected is bool and value in {Decimal(0), Decimal(1)}:  # SQL Server has no TRUE
        value = bool(value)
    if type(value) is not expected:
        raise _wrong(
            f"{attribute.name!r} holds {attribute.value_type} values, not {value!s}; "
            "write text in single quotes, and numbers, TRUE and FALSE without"
        )
    if operation != "=" and attribute.value_type != "integer":
        raise _wrong(
            f"the order of {attribute.value_type} values of {attribute.name!r} is not supported "
            "(engines differ about it); list the declared values with IN"
        )
    truth = _ON_NUMBERS[operation]
    result[: attribute.regular] = [
        TRUE if truth(category, value) else FALSE for category in attribute.values
    ]
    other = attribute.special_cell("(other)")
    if other is not None:
        declared = operation == "=" and value in attribute.values
        result[other] = FALSE if declared else TRUE | FALSE


def undeclared(attribute: Attribute, values: Sequence[Constant]) -> list[tuple[str, str]]:
    """Say which constants are not declared values of categories, and which ones are near.

    Of many constants some are named, and near values are looked for among a few thousand: a list of
    50,000 constants over 100,000 categories takes a second.

    >>> undeclared(Categories("state", ["NY", "NJ"]), ["NY", "ny "])
    [("'ny ' is not a declared value of 'state'", "did you mean 'NY'?")]
    """
    if not isinstance(attribute, Categories):
        return []
    as_numbers = attribute.value_type == "integer"
    declared: frozenset[object] = frozenset(attribute.values)
    strange = [
        value
        for value in values
        if (Decimal(value) if as_numbers and isinstance(value, str) else value) not in declared
    ]
    if not strange:
        return []
    labels = {label.lower().strip(): label for label in attribute.labels[: attribute.regular]}
    remarks = []
    for value in strange[:MOST_REMARKS]:
        text = str(value).lower().strip()
        compared = labels if len(labels) <= MOST_COMPARED else {text} & labels.keys()
        near = difflib.get_close_matches(text, compared, 1, 0.5)
        hint = f"did you mean {labels[near[0]]!r}?" if near else "declare it in the domain"
        remarks.append((f"{str(value)!r} is not a declared value of {attribute.name!r}", hint))
    more = len(strange) - MOST_REMARKS
    if more > 0:
        text = f"none of {more:,} more constants is a declared value of {attribute.name!r}"
        remarks.append((text, "declare them in the domain"))
    return remarks


def _as_number(attribute: Attribute, value: Constant) -> Decimal:
    if isinstance(value, str) and _WHOLE.fullmatch(value):  # '5' is read as the column's type
        return Decimal(value)
    if not isinstance(value, Decimal):
        raise _wrong(f"{attribute.name!r} holds numbers, not {str(value)!r}")
    return value


def _as_step(attribute: SteppedAttribute, value: Constant) -> Decimal:
    if isinstance(attribute, Dates):
        if isinstance(value, str):
            value = point_in_time(value) if attribute.time else date(value)
        if isinstance(value, dt.datetime) and not attribute.time:  # a time is a part of its day
            since = value - dt.datetime.combine(value, dt.time())
            return value.toordinal() + Decimal(since // dt.timedelta(microseconds=1)) / DAY
        if isinstance(value, dt.date):
            return Decimal(attribute.step(value))
        what = (
            "times such as '2024-01-31 10:00'" if attribute.time else "dates such as '2024-01-31'"
        )
        raise _wrong(f"{attribute.name!r} holds {what}, not {value!s}")
    return _as_number(attribute, value)


def nearest_edges(attribute: Attribute, cell: int) -> str:
    """Name the edges of a cell that was cut, as constants for ``<`` and ``>=``.

    >>> from lrm.domain import Integers
    >>> nearest_edges(Integers("age", 0, 9, width=5), 1)
    'age >= 5 or age < 10'
    """
    name, below = attribute.name, cell == attribute.special_cell("(below)")
    above = cell == attribute.special_cell("(above)")
    special = cell >= attribute.regular and not (below or above)
    if isinstance(attribute, Categories) or special:
        return f"the declared values of {name}"
    cells = Intervals.of(attribute)
    if isinstance(attribute, SteppedAttribute):
        start = _step_text(attribute, int(cells.low[cell]))
        after = _step_text(attribute, int(cells.high[cell]) + 1)
    else:
        start, after = number_text(float(cells.low[cell])), number_text(float(cells.high[cell]))
    if below:
        return f"{name} < {after}"
    if above:
        return f"{name} >= {start}"
    return f"{name} >= {start} or {name} < {after}"


def half_open(attribute: Attribute, low: Constant, high: Constant) -> tuple[str, str] | None:
    """The ends, as constants for ``>=`` and ``<``, that BETWEEN probably means; None if others.

    >>> half_open(Bins("x", [0, 50, 200]), Decimal(50), Decimal(200))
    ('50', '200')
    """
    if isinstance(attribute, Dates) and attribute.time and isinstance(high, str):
        end = point_in_time(high)
        if len(high) == 10:
            high = date(high) + dt.timedelta(days=1)  # a day is meant to its end
        elif end.second == 59:  # and so is the last second of a day or an hour
            high = end.replace(microsecond=0) + dt.timedelta(seconds=1)
        else:
            return None
    elif not isinstance(attribute, Bins):
        return None
    truths = [compare(attribute, ">=", low), compare(attribute, "<", high)]
    cut = any((each & (TRUE | FALSE) == TRUE | FALSE).any() for each in truths)
    texts = [f"{end}" if isinstance(end, Decimal) else f"'{end}'" for end in (low, high)]
    return None if cut else (texts[0], texts[1])


def finer_cells(attribute: Attribute, cell: int) -> str:
    """What to do where an expression is not constant on a cell.

    >>> from lrm.domain import Integers
    >>> finer_cells(Integers("age", 0, 9, width=5, outside="cell"), 1)
    "declare 'age' with width: 1"
    >>> finer_cells(Integers("age", 0, 9, width=5, outside="cell"), 2)
    'filter away age < 0'
    """
    if cell >= attribute.regular:
        outside = cell in map(attribute.special_cell, ("(below)", "(above)"))
        return f"{'filter away' if outside else 'filter by'} {nearest_edges(attribute, cell)}"
    steps = {Dates: "by: day", Integers: "with width: 1"}
    finer = steps.get(type(attribute), "with edges within it")
    if isinstance(attribute, Dates) and attribute.time:
        finer = "by: hour" if attribute.minutes == MINUTES else "by: minute"
    return f"declare {attribute.name!r} {finer}"


def _step_text(attribute: SteppedAttribute, step: int) -> str:
    if isinstance(attribute, Dates) and 1 <= step // attribute.per_day <= dt.date.max.toordinal():
        return f"'{str(attribute.value_of(step)).removesuffix(' 00:00:00')}'"
    return str(step)


def _wrong(sentence: str) -> SqlError:
    return SqlError(sentence, code="constant")


_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d|\d{8})(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(?:Z|\+00(?::?00)?)?)?"
)
_MIDNIGHT = re.compile(r"[ T]00:00(:00(\.0{1,6})?)?(Z|\+00(:?00)?)?$")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)")


def point_in_time(text: str) -> dt.datetime:
    """Read a time written as YYYY-MM-DD, perhaps with HH:MM or HH:MM:SS, in UTC."""
    match = _TIME.fullmatch(text.strip())
    day, clock = ("", "") if match is None else (match[1], match[2] or "00:00")
    clock = clock.ljust(len("HH:MM:SS.ffffff"), "0") if "." in clock else clock
    with suppress(ValueError):
        return dt.datetime.fromisoformat(f"{day} {clock}")
    what = "expected a time such as '2024-01-31 10:00' or a date such as '2024-01-31'"
    raise _wrong(f"{what}, got {text!r}")


def date(text: str) -> dt.date:
    """Read a day written as YYYY-MM-DD or YYYYMMDD, perhaps with midnight.

    >>> date("20240131") == date("2024-01-31 00:00:00") == date("2024-01-31")
    True
    """
    day = _COMPACT.sub(r"\1-\2-\3", _MIDNIGHT.sub("", text.strip()))
    try:
        return dt.datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=dt.UTC).date()
    except ValueError:
        raise _wrong(f"expected a date such as '2024-01-31', got {text!r}") from None
