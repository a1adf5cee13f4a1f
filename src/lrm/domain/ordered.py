"""Attributes whose cells are runs of whole numbers: integers, and days of dates."""

from __future__ import annotations

import datetime as dt
import numbers
import re
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from lrm.domain.attributes import LARGEST_INTEGER, Attribute, NumericAttribute, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

Period = Literal["hour", "day", "month", "year"]
"""The length of a cell of dates; numbers of minutes and hours are written ``15 minutes``."""

MINUTES = 24 * 60
"""Minutes of a day."""

DAY = MINUTES * 60_000_000
"""Microseconds of a day: a timestamp is a whole number of them."""

_STEP = re.compile(r"(?:([1-9][0-9]{0,3}) )?(minute|hour)s?")

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
        if self.outside != "cell":
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
    """Days from ``start`` to ``end``, both included, by day, month or year; or times within them.

    Parameters
    ----------
    name
        The column.
    start, end
        Dates, or texts such as ``"2024-01-31"``. By month or year they must be the first
        and the last day of one: a cell that holds half a month would mislead.
    by
        Length of a cell: ``day``, ``month``, ``year``; of times also ``hour``, or a part of a day
        such as ``15 minutes`` or ``6 hours``.
    time
        Whether the column holds times: a cell is then an interval of time, and
        ``x <= '2024-01-31'`` is true of midnight and false later that day. Without it the values
        are days, and the time of a timestamp is never seen. False instead of None is
        without a warning where a table holds timestamps.
    relative
        Whether start and end are those of the edition that a report is about (`Editions`); a
        domain for every edition has stand-ins.

    Notes
    -----
    A timestamp with a time zone is read in UTC.

    Examples
    --------
    >>> Dates("admitted", "2024-01-01", "2024-03-31", by="month").labels
    ('2024-01', '2024-02', '2024-03')
    >>> Dates("admitted", "2024-01-01", "2024-12-31").cell_of(dt.date(2024, 2, 1))
    31
    >>> called = Dates("called", "2024-01-01", "2024-01-02", by="6 hours")
    >>> called.labels[:2], called.cell_of(dt.datetime(2024, 1, 2, 7, 30))
    (('2024-01-01 00:00:00', '2024-01-01 06:00:00'), 5)
    """

    start: dt.date
    end: dt.date
    by: str
    time: bool | None
    relative: bool = False

    kind: ClassVar[str] = "dates"

    def __init__(  # noqa: PLR0913 - the facts of one attribute
        self,
        name: str,
        start: dt.date | str,
        end: dt.date | str,
        by: Period | str = "day",
        *,
        time: bool | None = None,
        null: Rule = "drop",
        outside: Rule = "drop",
        relative: bool = False,
        column: str | None = None,
    ) -> None:
        super().__init__(name, null=null, outside=outside, column=column)
        object.__setattr__(self, "relative", relative)
        if time is not None and not isinstance(time, bool):
            raise self._error(f"time must be true or false, not {time!r}")
        object.__setattr__(self, "start", self._date("start", start))
        object.__setattr__(self, "end", self._date("end", end))
        object.__setattr__(self, "by", by)
        if by not in {"day", "month", "year"}:
            self._check_step()
            if time is False:
                raise self._error(f"time must be true where cells are by {by}")
            time = True
        object.__setattr__(self, "time", time)
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

    def from_to(self, first: dt.date, last: dt.date, *, relative: bool = True) -> Dates:
        """The same dates from another day to another one."""
        twin = Dates(self.name, first, last, self.by, time=self.time, relative=relative)
        for rule in ("null", "outside"):
            object.__setattr__(twin, rule, getattr(self, rule))
        return twin

    def _check_step(self) -> None:
        match = _STEP.fullmatch(self.by) if isinstance(self.by, str) else None
        if match is None or MINUTES % _minutes(match):
            raise self._error(
                "by must be day, month or year, or of times hour or a part of a day such as "
                f"15 minutes, not {self.by!r}"
            )

    @cached_property
    def minutes(self) -> int:
        """Minutes of a cell that is shorter than a day; those of a day otherwise."""
        match = _STEP.fullmatch(self.by)
        return MINUTES if match is None else _minutes(match)

    @property
    def per_day(self) -> int:
        """Whole numbers of a day: 1, or of times its microseconds."""
        return DAY if self.time else 1

    @property
    def regular(self) -> int:
        """Number of declared cells."""
        years = self.end.year - self.start.year
        if self.by in {"month", "year"}:
            months = 12 * years + self.end.month - self.start.month
            return 1 + (months if self.by == "month" else years)
        return (1 + (self.end - self.start).days) * (MINUTES // self.minutes)

    @property
    def last(self) -> int:
        """The last declared day, or microsecond, counted from the first of the year 1 as `step`."""
        return self.end.toordinal() * self.per_day + self.per_day - 1

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First day or microsecond of each cell, read-only."""
        if self.by in {"month", "year"}:
            unit = {"month": "M", "year": "Y"}[self.by]
            origin = int(np.array(self.start, dtype=f"datetime64[{unit}]").astype(np.int64))
            periods = np.arange(origin, origin + self.regular).astype(f"datetime64[{unit}]")
            days = periods.astype("datetime64[D]").astype(np.int64)
            starts: NDArray[np.int64] = (days + EPOCH) * self.per_day
        else:
            length = self.per_day * self.minutes // MINUTES
            starts = self.start.toordinal() * self.per_day + length * np.arange(
                self.regular, dtype=np.int64
            )
        starts.setflags(write=False)
        return starts

    def _regular_labels(self) -> Iterable[str]:
        if self.minutes < MINUTES:
            return map(str, map(self.value_of, self.starts.tolist()))
        length = {"day": 10, "month": 7, "year": 4}[self.by]
        days = (self.starts // self.per_day).tolist()
        return (dt.date.fromordinal(day).isoformat()[:length] for day in days)

    def step(self, value: dt.date) -> int:
        """The whole number of a day or, of times, of a point in time.

        A day is its ordinal, 1 on the first day of the year 1; a point in time is as many
        microseconds after a day that is 0.
        """
        days = value.toordinal() * self.per_day
        if not self.time or not isinstance(value, dt.datetime):
            return days
        minutes = value.hour * 60 + value.minute
        return days + (minutes * 60 + value.second) * 1_000_000 + value.microsecond

    def value_of(self, step: int) -> dt.date:
        """The day or point in time of a whole number."""
        day, rest = divmod(step, self.per_day)
        date = dt.date.fromordinal(day)
        if not self.time:
            return date
        return dt.datetime.combine(date, dt.time()) + dt.timedelta(microseconds=rest)

    def cell_of(self, value: object) -> int | None:
        """Return the cell of ``value``, or None where its row is dropped."""
        if value is None:
            return self.special_cell("(null)")
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            with suppress(OverflowError):  # within a day of the years 1 and 9999
                value = value.astimezone(dt.UTC)
        if not isinstance(value, dt.date):
            return self.special_cell("(invalid)")
        return self._place(self.step(value))


EPOCH = dt.date(1970, 1, 1).toordinal()
"""The day from which engines count days and times."""


def _minutes(match: re.Match[str]) -> int:
    return int(match[1] or 1) * (60 if match[2] == "hour" else 1)


def _first_day(day: dt.date, by: str) -> dt.date:
    if by == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if by == "year" else day
