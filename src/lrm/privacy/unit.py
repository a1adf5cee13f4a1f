"""The privacy unit: who is protected, with how many rows, and against which change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, get_args

from lrm.errors import BudgetError
from lrm.privacy.amounts import spell
from lrm.privacy.periods import PERIODS, Period

Neighbours = Literal["add-remove", "substitute"]
"""Neighbouring tables differ by one unit added or removed, or by one replaced by another."""

MOST_ROWS = 10**9

PERSON = "(person)"
"""The column of a table that has one row per person of a people."""

LATER = ("people", "period", "by", "periods")
"""Facts that are left out where they are None, as in files from before there were any."""


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """The most rows of a person in each group of rows, and the most groups with rows of a person.

    Parameters
    ----------
    attribute
        The attribute whose cells are the groups.
    most
        The most rows of a person in one group.
    groups
        The most groups in which a person has rows; None for all.

    Examples
    --------
    >>> GroupLimit("month", 4, groups=6).words
    'at most 4 of them in each cell of month, in at most 6 cells'
    """

    attribute: str
    most: int
    groups: int | None = None
    size: int = field(default=0, compare=False, repr=False)
    """Cells of the attribute in a domain; 0 before the limit belongs to one."""
    axis: int = field(default=0, compare=False, repr=False)
    """The attribute's place in that domain."""
    stride: int = field(default=0, compare=False, repr=False)
    """The number of cells of that domain from one of its cells to the next, in a list of all."""

    def __post_init__(self) -> None:
        if not isinstance(self.attribute, str) or not self.attribute.strip():
            raise BudgetError(f"by must name an attribute, not {spell(self.attribute)}")
        for name, value in (("by", self.most), ("groups", self.groups)):
            if value is None and name == "groups":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ROWS:
                raise BudgetError(
                    f"{name} must be a whole number from 1 to {MOST_ROWS:,}, not {spell(value)}"
                )

    @property
    def words(self) -> str:
        """The limit, for people."""
        groups = "" if self.groups is None else f", in at most {self.groups:,} cells"
        groups = ", in at most 1 cell" if self.groups == 1 else groups
        return f"at most {self.most:,} of them in each cell of {self.attribute}{groups}"

    @property
    def facts(self) -> dict[str, object]:
        """The limit as plain values."""
        return {"attribute": self.attribute, "most": self.most, "groups": self.groups}


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Whom a guarantee protects, and which tables are neighbours.

    Parameters
    ----------
    column
        The column that identifies the person, or None. A table is then counted with at most
        ``max_rows`` rows of each person, whatever it holds.
    max_rows
        Most rows that one unit has in the counts. Without a column nothing enforces it: 1
        protects single rows, and a larger number is a statement about the counts.
    neighbours
        ``"add-remove"``, or ``"substitute"`` where the number of units is public.
    people
        The name of a people with several tables: a unit is one person with all rows in all of
        them, and ``max_rows`` those that count in one table. None for a single table.
    period
        Where each edition of a report is about one period: a unit has all its rows in one period,
        and ``max_rows`` in each. Rows of the same person in another period are another unit.
    by
        A further limit of a person's rows, in each cell of an attribute.
    periods
        How many periods are counted together, where they are several: a person's rows in one of
        them then decide which of their rows in the others count. None for one period.

    Examples
    --------
    >>> PrivacyUnit("patient_id").max_rows
    1
    >>> PrivacyUnit("patient_id", 3).words
    "one person (column 'patient_id') with at most 3 rows, added or removed"
    """

    column: str | None = None
    max_rows: int = 1
    neighbours: Neighbours = "add-remove"
    people: str | None = None
    period: Period | None = None
    by: GroupLimit | None = None
    periods: int | None = None

    def __post_init__(self) -> None:
        if self.column is not None and not (isinstance(self.column, str) and self.column.strip()):
            raise BudgetError(f"column must be the name of a column, not {spell(self.column)}")
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int):
            raise BudgetError(f"max_rows must be an integer, not {spell(self.max_rows)}")
        if not 1 <= self.max_rows <= MOST_ROWS:
            raise BudgetError(
                f"max_rows must be between 1 and {MOST_ROWS:,}, not {spell(self.max_rows)}"
            )
        if self.neighbours not in get_args(Neighbours):
            raise BudgetError(
                f"neighbours must be 'add-remove' or 'substitute', not {spell(self.neighbours)}"
            )
        if self.people is not None and not (isinstance(self.people, str) and self.people.strip()):
            raise BudgetError(f"people must be the name of a people, not {spell(self.people)}")
        if self.people is not None and self.column is None:
            raise BudgetError("the persons of a people are named by a column; give column")
        self._check_periods()
        if self.by is not None and (not isinstance(self.by, GroupLimit) or self.column is None):
            raise BudgetError("by limits the rows of a person in each group; give column too")

    def _check_periods(self) -> None:
        if self.period is not None and self.period not in PERIODS:
            raise BudgetError(
                f"period must be one of {', '.join(PERIODS)}, not {spell(self.period)}"
            )
        if self.periods is not None and (self.period is None or self.column is None):
            raise BudgetError("periods is for the rows of persons in several periods")
        if self.periods is not None and not (type(self.periods) is int and self.periods > 1):
            raise BudgetError(f"periods must be a whole number above 1, not {spell(self.periods)}")

    @property
    def most_rows(self) -> int:
        """The most rows of a unit that count, by all limits together."""
        if self.by is None or not self.by.size:
            return self.max_rows
        return min(self.max_rows, self.by.most * min(self.by.groups or self.by.size, self.by.size))

    @property
    def factor(self) -> int:
        """Factor by which the sensitivity of one record is multiplied for one unit.

        A person who is added or removed changes up to ``most_rows`` records; one who is
        replaced takes as many out and brings as many in. Of several periods that are counted
        together, so does one whose rows in a single period are removed: other rows of that person
        may take their places, and a number per person may be another one.

        >>> PrivacyUnit(max_rows=3, neighbours="substitute").factor
        6
        >>> PrivacyUnit("pid", 3, period="month", periods=2).factor
        6
        """
        twice = (self.neighbours == "substitute") + (self.periods is not None)
        return self.most_rows << twice

    @property
    def is_replaced(self) -> bool:
        """Whether neighbours differ by records that are replaced, rather than added or removed."""
        return self.neighbours == "substitute" or self.periods is not None

    @property
    def protected(self) -> str:
        """Who is protected.

        >>> PrivacyUnit().protected, PrivacyUnit(max_rows=5).protected
        ('one row', 'one person with at most 5 rows')
        """
        if self.period is not None:
            whole = replace(self, period=None, periods=None).protected
            return f"{whole} {'in' if self.column else 'of'} one {self.period}"
        if self.people is not None:
            return f"one person of {self.people!r}, with all rows in all tables"
        if self.column is None and self.max_rows == 1:
            return "one row"
        person = "one person" if self.column is None else f"one person (column {self.column!r})"
        return f"{person} with at most {self.rows}"

    @property
    def rows(self) -> str:
        """How many rows of a person count.

        >>> PrivacyUnit("patient_id", 2).rows
        '2 rows'
        """
        rows = "1 row" if self.max_rows == 1 else f"{self.max_rows:,} rows"
        return rows if self.by is None else f"{rows} ({self.by.words})"

    @property
    def change(self) -> str:
        """The change of the table that the guarantee hides."""
        return "added or removed" if self.neighbours == "add-remove" else "replaced by another"

    @property
    def words(self) -> str:
        """Who is protected against which change.

        >>> PrivacyUnit().words
        'one row, added or removed'
        """
        return f"{self.protected}, {self.change}"

    @property
    def limit(self) -> str | None:
        """What the limit of rows per person means for answers, where a column enforces it.

        >>> PrivacyUnit("patient_id", 2).limit.partition(",")[0]
        'at most 2 rows of each person are counted'
        """
        if self.column is None or (self.people is not None and self.column == PERSON):
            return None
        are = "is" if self.max_rows == 1 else "are"
        return (
            f"at most {self.rows} of each person {are} counted, chosen at random, and rows "
            f"without a person in column {self.column!r} are not; "
            "intervals do not cover what is left out"
        )

    @property
    def facts(self) -> dict[str, object]:
        """The unit as plain values, for JSON; without those of ``LATER`` that are None."""
        facts = asdict(self)
        facts["by"] = None if self.by is None else self.by.facts
        return {key: value for key, value in facts.items() if key not in LATER or value is not None}

    @property
    def text(self) -> str:
        """The unit as one canonical line, for files, ledgers and digests.

        >>> PrivacyUnit("pid", 2).text
        '{"column":"pid","max_rows":2,"neighbours":"add-remove"}'
        """
        return json.dumps(self.facts, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_facts(cls, facts: object) -> PrivacyUnit:
        """Read what ``facts`` returned; anything else is refused.

        >>> PrivacyUnit.from_facts({"column": "pid", "max_rows": 1, "neighbours": "add-remove"})
        PrivacyUnit(column='pid', max_rows=1, neighbours='add-remove', people=None, period=None, \
by=None, periods=None)
        """
        if not isinstance(facts, dict) or {*facts, *LATER} != set(cls.__slots__):
            raise BudgetError(
                "a privacy unit must have exactly the fields column, max_rows, neighbours and, "
                "for persons with several tables, people; for editions, period and periods; for "
                "limits by group, by"
            )
        by = facts.get("by")
        if by is not None:
            if not isinstance(by, dict) or set(by) != {"attribute", "most", "groups"}:
                raise BudgetError("by must have exactly the fields attribute, most and groups")
            by = GroupLimit(**by)
        return cls(**{**facts, "by": by})

    def steps_of(self, other: PrivacyUnit) -> int | None:
        """How many steps between neighbours of ``other`` join any two neighbours of this unit.

        A release that guarantees ε for ``other`` keeps ``steps * ε`` for this unit, and ρ
        becomes ``steps**2 * ρ`` (group privacy). None where no number of steps is certain:

        - rows against a person's column, or two different columns: nothing bounds how many
          rows of a table belong to one person; nor does anything follow from one table for the
          persons of a people, or between two peoples;
        - one is about a period and the other is not, or about another: nothing bounds in how many
          periods a person has rows;
        - ``other`` is about replacing and this unit about adding: no number of replacements
          changes how many units there are.

        With the same column ``max_rows`` does not matter: each release drops the rows of a
        person beyond its own limit, so that it protects a person whatever their rows.

        >>> PrivacyUnit(max_rows=5).steps_of(PrivacyUnit())
        5
        >>> PrivacyUnit("pid", neighbours="substitute").steps_of(PrivacyUnit("pid", 10))
        2
        >>> PrivacyUnit("pid", 10).steps_of(PrivacyUnit()) is None
        True
        """
        if self.people != other.people or self.period != other.period:
            return None
        if self.people is None and self.column != other.column:
            return None
        if self.neighbours == "add-remove" and other.neighbours == "substitute":
            return None
        groups = 1 if self.column is not None else -(-self.max_rows // other.max_rows)
        return groups if self.neighbours == other.neighbours else 2 * groups
