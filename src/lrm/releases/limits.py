"""How many rows a limit per person leaves out: a small release about persons.

With x_n persons who have n rows of a table, a limit of c rows leaves out ``Σ_n max(n − c, 0)·x_n``.
For several limits these are a linear batch over one number per person, which is answered like any
other: a person moves it by one person's rows, up to a cap that is stated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lrm.domain.features import Feature
from lrm.domain.ordered import Integers
from lrm.domain.people import People
from lrm.domain.private_tables import PrivateTable
from lrm.errors import UsageError
from lrm.planning.plan.planner import plan
from lrm.privacy.amounts import Amount
from lrm.queries.sql import sql
from lrm.releases.core import Release
from lrm.releases.making import NOT_GIVEN, NotGiven, release

if TYPE_CHECKING:
    from lrm.ledger import Ledger

ROWS = "rows_of_person"
"""The feature: how many rows a person has."""

MOST_CAP = 10_000
"""The largest cap."""


@dataclass(frozen=True)
class Limit:
    """What one limit leaves out.

    Parameters
    ----------
    most
        The limit.
    left_out, low, high
        Rows beyond it, with the ends of an interval.
    share, share_low, share_high
        The same as a share of all rows.
    """

    most: int
    left_out: float
    low: float
    high: float
    share: float
    share_low: float
    share_high: float

    @property
    def sentence(self) -> str:
        """What a report may say of an answer with this limit."""
        half = 50 * (self.share_high - self.share_low)
        return f"about {100 * self.share:.0f} % ± {half:.1f} % of the rows are left out"


@dataclass(frozen=True, eq=False)
class RowLimits:
    """What several limits leave out of one table.

    Parameters
    ----------
    table
        The table.
    cap
        Rows of a person beyond this number were not counted.
    release
        The release that the numbers are from: it was charged.
    confidence
        Of the intervals.
    """

    table: PrivateTable
    candidates: tuple[int, ...]
    cap: int
    release: Release
    confidence: float = 0.95

    def __iter__(self) -> Iterator[Limit]:
        for most in self.candidates:
            numbers = []
            for name in (f"left_out_{most}", f"share_{most}"):
                frame = self.release.frame(name, self.confidence).to_pandas()
                row = frame.iloc[0]
                numbers += [float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"])]
            yield Limit(most, *numbers)


def row_limits(  # noqa: PLR0913 - what is counted, of what, and what is charged
    people: People,
    table: str,
    source: Any,
    candidates: Sequence[int],
    epsilon: Amount,
    *,
    cap: int = 100,
    ledger: Ledger | str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
    budget: str | None = None,
) -> RowLimits:
    """Release how many rows of one table limits per person would leave out.

    Parameters
    ----------
    people, table, source
        The people, the name of one of its tables, and where that table is.
    candidates
        Limits.
    epsilon
        The guarantee.
    cap
        The most rows of a person that are counted here: more than any candidate. Chosen from public
        knowledge; a larger one costs accuracy.
    ledger, budget
        What is charged, as for ``lrm.release``.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = PrivateTable("orders", "customer", (Integers("month", 1, 12),), most=12)
    >>> rows = pd.DataFrame({"customer": [1] * 20 + [2] * 5, "month": 1})
    >>> limits = row_limits(People("shop", [orders]), "orders", rows, [4, 8], 1, ledger=None)
    >>> [limit.most for limit in limits]
    [4, 8]
    """
    private = people.table(table)
    if private is None:
        names = ", ".join(each.name for each in people.tables)
        raise UsageError(f"{people.name!r} has no table {table!r}; its tables are {names}")
    limits = tuple(sorted(set(candidates)))
    if not limits or limits[0] < 1:
        raise UsageError("candidates must be limits of at least one row, such as 4,8,16")
    if not limits[-1] < cap <= MOST_CAP:
        raise UsageError(f"the cap must be above every candidate, and at most {MOST_CAP:,}")
    feature = Feature(Integers(ROWS, 0, cap), private.name, "count")
    # Persons are those of the table itself, whether another table has them or not.
    alone = People(people.name, [private], [feature], neighbours=people.neighbours)
    batch = sql(_text(people.name, limits), alone.persons([ROWS]).domain)
    made = plan(batch)
    answered = release(made, {private.name: source}, epsilon=epsilon, ledger=ledger, budget=budget)
    return RowLimits(private, limits, cap, answered)


def _text(name: str, limits: Sequence[int]) -> str:
    """The batch: rows beyond each limit, and their share of all rows."""
    quoted = '"' + name.replace('"', '""') + '"'
    statements = []
    for most in limits:
        beyond = f"SUM(CASE WHEN {ROWS} > {most} THEN {ROWS} - {most} ELSE 0 END)"
        statements += [
            f"SELECT {beyond} AS left_out_{most} FROM {quoted}",  # noqa: S608 - compiled, not run
            f"SELECT {beyond} / SUM({ROWS}) AS share_{most} FROM {quoted}",  # noqa: S608
        ]
    return ";\n".join(statements)
