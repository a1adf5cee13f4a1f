"""Periods in which a report is published: their editions, and the days of each.

An edition is one day, ISO week, month, quarter or year of the calendar. Editions of one period are
disjoint, and each day is in exactly one, so that a row with a date is in one edition, which is
decided by that row alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, get_args

from lrm.errors import BudgetError
from lrm.privacy.amounts import spell

Period = Literal["day", "week", "month", "quarter", "year"]
"""How often a report is published, and how much of a person's life one edition covers."""

PERIODS: tuple[Period, ...] = get_args(Period)

MOST_EDITIONS = 1_000
"""Editions that one release may read."""

_EXAMPLES: dict[Period, str] = {
    "day": "2025-03-31",
    "week": "2025-W13",
    "month": "2025-03",
    "quarter": "2025-Q1",
    "year": "2025",
}
_FORMS: dict[Period, re.Pattern[str]] = {
    "day": re.compile(r"(\d{4})-(\d\d)-(\d\d)"),
    "week": re.compile(r"(\d{4})-W(\d\d)"),
    "month": re.compile(r"(\d{4})-(\d\d)"),
    "quarter": re.compile(r"(\d{4})-Q(\d)"),
    "year": re.compile(r"(\d{4})"),
}


def example_of(period: Period) -> str:
    """How an edition of a period is written.

    >>> example_of("quarter")
    '2025-Q1'
    """
    return _EXAMPLES[period]


@dataclass(frozen=True, slots=True)
class Edition:
    """One period of the calendar.

    Examples
    --------
    >>> march = Edition("month", date(2025, 3, 1))
    >>> march.name, march.last.isoformat(), march.next.name
    ('2025-03', '2025-03-31', '2025-04')
    >>> Edition.of("week", date(2024, 12, 31)).name
    '2025-W01'
    """

    period: Period
    first: date

    @classmethod
    def of(cls, period: Period, day: date) -> Edition:
        """The edition of a period that a day is in."""
        match period:
            case "day":
                return cls(period, day)
            case "week":
                return cls(period, day - timedelta(days=day.weekday()))
            case "month":
                return cls(period, day.replace(day=1))
            case "quarter":
                return cls(period, day.replace(month=day.month - (day.month - 1) % 3, day=1))
            case "year":
                return cls(period, day.replace(month=1, day=1))

    @property
    def last(self) -> date:
        """Its last day."""
        return self.next.first - timedelta(days=1)

    @property
    def next(self) -> Edition:
        """The edition that follows."""
        days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[self.period]
        return Edition.of(self.period, self.first + timedelta(days=days))

    @property
    def year_before(self) -> Edition | None:
        """The edition of the same name in the year before; None where there is none.

        Examples
        --------
        >>> Edition("week", date(2025, 3, 24)).year_before.name
        '2024-W13'
        >>> Edition("day", date(2024, 2, 29)).year_before is None
        True
        """
        try:
            if self.period == "week":
                year, week, _ = self.first.isocalendar()
                return Edition("week", date.fromisocalendar(year - 1, week, 1))
            return Edition(self.period, self.first.replace(year=self.first.year - 1))
        except ValueError:  # 29 February, week 53, or before the first year of the calendar
            return None

    @property
    def name(self) -> str:
        """How it is written."""
        day = self.first
        match self.period:
            case "day":
                return day.isoformat()
            case "week":
                return "{:04}-W{:02}".format(*day.isocalendar())
            case "month":
                return f"{day.year:04}-{day.month:02}"
            case "quarter":
                return f"{day.year:04}-Q{(day.month + 2) // 3}"
            case "year":
                return f"{day.year:04}"


def parse_edition(period: Period, name: str) -> Edition:
    """Read an edition of a period as `Edition.name` writes it.

    Examples
    --------
    >>> parse_edition("month", "2025-13")
    Traceback (most recent call last):
        ...
    lrm.errors.BudgetError: '2025-13' is not a month; write it as 2025-03
    """
    found = _FORMS[period].fullmatch(name) if isinstance(name, str) and name.isascii() else None
    if found is not None:
        try:
            edition = _edition(period, *map(int, found.groups()))
        except (ValueError, OverflowError):
            edition = None
        if edition is not None and edition.name == name:
            return edition
    raise BudgetError(f"{spell(name)} is not a {period}; write it as {example_of(period)}")


def _edition(period: Period, year: int, part: int = 1, day: int = 1) -> Edition | None:
    if not 1 <= year < 9999:  # the day after the last one is a date, too
        return None
    match period:
        case "week":
            return Edition(period, date.fromisocalendar(year, part, 1))
        case "quarter":
            return Edition(period, date(year, 3 * part - 2, 1))
        case _:
            return Edition(period, date(year, part, day))


def parse_editions(period: Period, names: str) -> tuple[Edition, ...]:
    """Read one edition, or the first and the last of several, with two points between them.

    Examples
    --------
    >>> [edition.name for edition in parse_editions("month", "2024-12..2025-02")]
    ['2024-12', '2025-01', '2025-02']
    """
    first_name, dots, last_name = names.partition("..")
    first = parse_edition(period, first_name)
    last = parse_edition(period, last_name) if dots else first
    if last.first < first.first:
        raise BudgetError(f"{last.name} is before {first.name}; write FIRST..LAST")
    editions = [first]
    while editions[-1] != last:
        if len(editions) == MOST_EDITIONS:
            raise BudgetError(f"a release reads at most {MOST_EDITIONS:,} editions")
        editions.append(editions[-1].next)
    return tuple(editions)
