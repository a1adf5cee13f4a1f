"""The privacy unit: who is protected, with how many rows, and against which change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from lrm.errors import BudgetError
from lrm.privacy.amounts import spell

Neighbours = Literal["add-remove", "substitute"]
"""Neighbouring tables differ by one unit added or removed, or by one replaced by another."""

MOST_ROWS = 10**9

PERSON = "(person)"
"""The column of a table that has one row per person of a people."""

NO_PEOPLE = ("people", None)
"""The fact that older files leave out."""


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

    Examples
    --------
    >>> PrivacyUnit()
    PrivacyUnit(column=None, max_rows=1, neighbours='add-remove', people=None)
    >>> PrivacyUnit("patient_id", 3).words
    "one person (column 'patient_id') with at most 3 rows, added or removed"
    """

    column: str | None = None
    max_rows: int = 1
    neighbours: Neighbours = "add-remove"
    people: str | None = None

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

    @property
    def factor(self) -> int:
        """Factor by which the sensitivity of one record is multiplied for one unit.

        A person who is added or removed changes up to ``max_rows`` records; one who is
        replaced takes as many out and brings as many in.

        >>> PrivacyUnit(max_rows=3, neighbours="substitute").factor
        6
        """
        return self.max_rows if self.neighbours == "add-remove" else 2 * self.max_rows

    @property
    def protected(self) -> str:
        """Who is protected.

        >>> PrivacyUnit().protected, PrivacyUnit(max_rows=5).protected
        ('one row', 'one person with at most 5 rows')
        """
        if self.people is not None:
            return f"one person of {self.people!r}, with all rows in all tables"
        if self.column is None and self.max_rows == 1:
            return "one row"
        person = "one person" if self.column is None else f"one person (column {self.column!r})"
        return f"{person} with at most {self._rows}"

    @property
    def _rows(self) -> str:
        return "1 row" if self.max_rows == 1 else f"{self.max_rows:,} rows"

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
            f"at most {self._rows} of each person {are} counted, chosen at random, and rows "
            f"without a person in column {self.column!r} are not; "
            "intervals do not cover what is left out"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The unit as plain values, for JSON; without ``people`` where there is none."""
        return {key: value for key, value in asdict(self).items() if (key, value) != NO_PEOPLE}

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

        >>> PrivacyUnit.from_facts({"column": None, "max_rows": 1, "neighbours": "substitute"})
        PrivacyUnit(column=None, max_rows=1, neighbours='substitute', people=None)
        """
        if not isinstance(facts, dict) or not (
            set(facts) == set(cls.__slots__) or {*facts, "people"} == set(cls.__slots__)
        ):
            raise BudgetError(
                "a privacy unit must have exactly the fields column, max_rows, neighbours and, "
                "for persons with several tables, people"
            )
        return cls(**facts)

    def steps_of(self, other: PrivacyUnit) -> int | None:
        """How many steps between neighbours of ``other`` join any two neighbours of this unit.

        A release that guarantees ε for ``other`` keeps ``steps * ε`` for this unit, and ρ
        becomes ``steps**2 * ρ`` (group privacy). None where no number of steps is certain:

        - rows against a person's column, or two different columns: nothing bounds how many
          rows of a table belong to one person; nor does anything follow from one table for the
          persons of a people, or between two peoples;
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
        if self.people != other.people:
            return None
        if self.people is None and self.column != other.column:
            return None
        if self.neighbours == "add-remove" and other.neighbours == "substitute":
            return None
        groups = 1 if self.column is not None else -(-self.max_rows // other.max_rows)
        return groups if self.neighbours == other.neighbours else 2 * groups
