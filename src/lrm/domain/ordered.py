"""Attributes whose cells are runs of whole numbers: integers, and days of dates."""

from __future__ import annotations

import datetime as dt
import numbers
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from lrm.domain.attributes import LARGEST_INTEGER, Attribute, NumericAttribute, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

Period = Literal["day", "month", "year"]
"""The length of a cell of dates."""

_FIRST, _LAST = -(2**63), 2**63 - 1  # the open ends of (below) and (above)


class SteppedAttribute(Attribute):
    """An attribute whose cells are runs of whole numbers: integers, or days of dates."""

    @cached_property
    @abstractmethod
    def starts(self) -> NDArray[np.int64]:
        """First whole number of each declared cell, ascending, read-only."""

    @property
    @abstractmethod
    def last(self) -> int:
        """Last whole number of the last declared cell."""

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Last whole number of each declared cell, read-only."""
        ends = np.append(self.starts[1:] - 1, np.int64(self.last))
        ends.setflags(write=False)
        return ends

    @cached_property
    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last whole number of each cell up to ``(above)``; open ends are ±2^63."""
        if self.outside == "drop":
            return self.starts, self.ends
        first = np.append(self.starts, [_FIRST, self.last + 1])
        last = np.append(self.ends, [int(self.starts[0]) - 1, _LAST])
        return first, last

    def _place(self, integer: int) -> int | None:
        if integer < int(self.starts[0]):
            return self.special_cell("(below)")
        if integer > self.last:
            return self.special_cell("(above)")
        return int(np.searchsorted(self.starts, integer, side="right")) - 1


@dataclass(frozen=True)
class Integers(SteppedAttribute, NumericAttribute):
    """Whole numbers from ``low`` to ``high``, both included.

    Parameters
    ----------
    name
        The column.
    low, high
        Declared bounds, from public knowledge.
    width
        Whole numbers per cell; the last cell may be narrower.

    Examples
    --------
    >>> Integers("age", 0, 99).size
    100
    >>> age = Integers("age", 0, 17, width=5, outside="cell", null="cell")
    >>> age.labels
    ('0..4', '5..9', '10..14', '15..17', '(below)', '(above)', '(invalid)', '(null)')
    >>> [age.cell_of(value) for value in (4, 5, 17.0, 18, float("inf"), 4.5, True, None)]
    [0, 1, 3, 5, 5, 6, 6, 7]
    """

    low: int
    high: int
    width: int = 1

    kind: ClassVar[str] = "integers"

    def __post_init__(self) -> None:
        for key in ("low", "high", "width"):
            value: Any = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, numbers.Integral):
                raise self._error(f"{key} must be an integer, not {value!r}")
            if abs(int(value)) > LARGEST_INTEGER:
                raise self._error(f"{key} must be within ±2^62, not {value}")
            object.__setattr__(self, key, int(value))
        if self.low > self.high:
            raise self._error(f"low must be at most high, but {self.low} > {self.high}")
        if not 1 <= self.width <= self.high - self.low + 1:
            raise self._error(
                f"width must be between 1 and {self.high - self.low + 1}, not {self.width}"
            )
        self._check_common()

    @property
    def regular(self) -> int:
        """Number of declared cells."""
        return -(-(self.high - self.low + 1) // self.width)

    @property
    def last(self) -> int:
        """The declared upper bound."""
        return self.high

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First integer of each declared cell, ascending, read-only."""
        starts = self.low + self.width * np.arange(self.regular, dtype=np.int64)
        starts.setflags(write=False)
        return starts

    def _regular_labels(self) -> Iterable[str]:
        if self.width == 1:
            return map(str, range(self.low, self.high + 1))
        pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return (str(a) if a == b else f"{a}..{b}" for a, b in pairs)

    def _position(self, number: Any) -> int | None:
        if abs(number) > LARGEST_INTEGER + 1:  # so that int() never builds Decimal("1e999999")
            number = LARGEST_INTEGER + 1 if number > 0 else -LARGEST_INTEGER - 1
        integer = int(number)
        return self._place(integer) if integer == number else self.special_cell("(invalid)")


@dataclass(frozen=True, init=False)
class Dates(SteppedAttribute):
    """Days from ``start`` to ``end``, both included, by day, month or year.

    Parameters
    ----------
    name
        The column.
    start, end
        Dates, or texts such as ``"2024-01-31"``. By month or year they must be the first
        and the last day of one: a cell that holds half a month would mislead.
    by
        Length of a cell.

    Notes
    -----
    Queries and cells see the day of a timestamp, never its time. A timestamp with a time
    zone is read in UTC.

    Examples
    --------
    >>> Dates("admitted", "2024-01-01", "2024-03-31", by="month").labels
    ('2024-01', '2024-02', '2024-03')
    >>> Dates("admitted", "2024-01-01", "2024-12-31").cell_of(dt.date(2024, 2, 1))
    31
    """

    start: dt.date
    end: dt.date
    by: Period

    kind: ClassVar[str] = "dates"

    def __init__(  # noqa: PLR0913 - the facts of one attribute
        self,
        name: str,
        start: dt.date | str,
        end: dt.date | str,
        by: Period = "day",
        *,
        null: Rule = "drop",
        outside: Rule = "drop",
    ) -> None:
        super().__init__(name, null=null, outside=outside)
        if by not in get_args(Period):
            raise self._error(f"by must be day, month or year, not {by!r}")
        object.__setattr__(self, "start", self._date("start", start))
        object.__setattr__(self, "end", self._date("end", end))
        object.__setattr__(self, "by", by)
        if self.start > self.end:
            raise self._error(f"start must not be after end, but {self.start} > {self.end}")
        after = self.end.toordinal() + 1
        if self.start != _first_day(self.start, by):
            raise self._error(f"start must be the first day of a {by}, not {self.start}")
        if after <= dt.date.max.toordinal() and (
            dt.date.fromordinal(after) != _first_day(dt.date.fromordinal(after), by)
        ):
            raise self._error(f"end must be the last day of a {by}, not {self.end}")
        self._check_common()

    def _date(self, key: str, value: object) -> dt.date:
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return value
        try:
            return dt.date.fromisoformat(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise self._error(f"{key} must be a date such as 2024-01-31, not {value!r}") from None

    @property
    def regular(self) -> int:
        """Number of declared cells."""
        years = self.end.year - self.start.year
        months = 12 * years + self.end.month - self.start.month
        return 1 + {"day": (self.end - self.start).days, "month": months, "year": years}[self.by]

    @property
    def last(self) -> int:
        """Ordinal of the last declared day."""
        return self.end.toordinal()

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Ordinal (days since 0001-01-01, which is 1) of each cell's first day, read-only."""
        unit = {"day": "D", "month": "M", "year": "Y"}[self.by]
        origin = int(np.array(self.start, dtype=f"datetime64[{unit}]").astype(np.int64))
        periods = np.arange(origin, origin + self.regular).astype(f"datetime64[{unit}]")
        days = periods.astype("datetime64[D]").astype(np.int64)
        starts: NDArray[np.int64] = days + dt.date(1970, 1, 1).toordinal()
        starts.setflags(write=False)
        return starts

    def _regular_labels(self) -> Iterable[str]:
        length = {"day": 10, "month": 7, "year": 4}[self.by]
        return (dt.date.fromordinal(day).isoformat()[:length] for day in self.starts.tolist())

    def cell_of(self, value: object) -> int | None:
        """Return the cell of ``value``, or None where its row is dropped."""
        if value is None:
            return self.special_cell("(null)")
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            with suppress(OverflowError):  # within a day of the years 1 and 9999
                value = value.astimezone(dt.UTC)
        if not isinstance(value, dt.date):
            return self.special_cell("(invalid)")
        return self._place(value.toordinal())


def _first_day(day: dt.date, by: Period) -> dt.date:
    if by == "day":
        return day
    return day.replace(day=1) if by == "month" else day.replace(month=1, day=1)
