"""Reports that are published period after period, from one domain file.

Each edition reads the rows of its own period alone. The day of a row's date column decides its
edition, and nothing else does, so that the rows of one person in one period are in one edition:
releases of different editions do not add up for that unit (parallel composition).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrm.domain.ordered import Dates
from lrm.errors import BudgetError, DomainError
from lrm.privacy.periods import Edition, Period, parse_editions

if TYPE_CHECKING:
    from lrm.domain.attributes import Attribute

_STEPS: dict[Period, str] = {"day": "day", "week": "day", "month": "month", "quarter": "month"}


@dataclass(frozen=True)
class Editions:
    """The period of a report, the column that dates its rows, and the editions that are read.

    Parameters
    ----------
    by
        How often the report is published, and the period that the guarantee is about.
    date
        The column whose day decides the edition of a row. Rows without a date are in none. None
        for rows that follow from several tables of a people, each of which has its own.
    edition
        The edition that is read, such as ``"2025-03"``, or the first and the last of several, such
        as ``"2025-01..2025-03"``; None for a domain that is used for every edition.

    Examples
    --------
    >>> march = Editions("month", "ordered", "2025-03")
    >>> march.names, march.first.isoformat(), march.last.isoformat()
    (('2025-03',), '2025-03-01', '2025-03-31')
    """

    by: Period
    date: str | None
    edition: str | None = None

    def __post_init__(self) -> None:
        if self.date is not None and not (isinstance(self.date, str) and self.date.strip()):
            raise DomainError(f"date must be the name of a column, not {self.date!r}")
        try:
            _ = self.each
        except BudgetError as error:
            raise DomainError(f"edition: {error}") from None

    @property
    def each(self) -> tuple[Edition, ...]:
        """The editions that are read; of a domain for every edition, that of January 2000."""
        if self.edition is None:
            return (Edition.of(self.by, dt.date(2000, 1, 1)),)
        return parse_editions(self.by, self.edition)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the editions that are read."""
        return () if self.edition is None else tuple(edition.name for edition in self.each)

    @property
    def together(self) -> int | None:
        """How many editions are read together; None for one."""
        return len(self.names) if len(self.names) > 1 else None

    @property
    def first(self) -> dt.date:
        """The first day that is read."""
        return self.each[0].first

    @property
    def last(self) -> dt.date:
        """The last day that is read."""
        return self.each[-1].last

    @property
    def attribute(self) -> Dates:
        """The rows of these editions as cells of dates, as few as there can be."""
        step = _STEPS.get(self.by, "year")
        return Dates(self.date or "", self.first, self.last, step, time=False)

    def has(self, row: Mapping[str, object]) -> bool:
        """Whether a row is in these editions, by its day alone; one of several tables is."""
        if self.date is None:
            return True
        if self.date not in row:
            raise DomainError(f"the table has no column {self.date!r}")
        return self.attribute.cell_of(row[self.date]) is not None

    def check(self, attributes: tuple[Attribute, ...]) -> None:
        """Refuse an attribute of the date column that would count rows of other editions."""
        for attribute in attributes:
            if attribute.name != self.date:
                continue
            fits = isinstance(attribute, Dates) and attribute.relative
            if not fits or attribute.null != "drop" or attribute.outside != "drop":
                raise DomainError(
                    f"attribute {attribute.name!r} dates the rows of an edition, so that it must "
                    "be of kind dates with start: edition, null: drop and outside: drop"
                )

    @property
    def facts(self) -> dict[str, str]:
        """As a domain file states it."""
        facts = {"by": self.by, "date": self.date, "edition": self.edition}
        return {name: value for name, value in facts.items() if value is not None}

    def moved(self, attribute: Attribute) -> Attribute:
        """An attribute whose dates, where they start with the edition, are those of this one."""
        if isinstance(attribute, Dates) and attribute.relative:
            return attribute.from_to(self.first, self.last)
        return attribute
