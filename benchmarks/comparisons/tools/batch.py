"""The table's public columns, the batch of statements, and how answers follow from counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
By = tuple[str, ...]
"""The columns of a GROUP BY; empty for the total."""

CARRIERS = "9E AA AS B6 DL EV F9 FL HA MQ OO UA US VX WN YV"
VALUES: dict[str, list[int] | list[str]] = {
    "month": list(range(1, 13)),
    "carrier": CARRIERS.split(),
    "origin": ["EWR", "JFK", "LGA"],
    "hour": list(range(24)),
}
"""Public values of each column: the calendar, the clock, and the carriers and airports listed
in the description of the table."""


@dataclass(frozen=True)
class Statement:
    """Counts grouped by some columns, or their running totals."""

    name: str
    by: By = ()
    running: bool = False

    def __post_init__(self) -> None:
        if unknown := set(self.by) - set(VALUES):
            raise ValueError(f"unknown columns: {sorted(unknown)}")
        if list(self.by) != [column for column in VALUES if column in self.by]:
            raise ValueError("columns must be in the order of VALUES, as the groups of lrm are")
        if self.running and len(self.by) != 1:
            raise ValueError("a running total is over one column")

    @property
    def answers(self) -> int:
        """Number of answers."""
        return math.prod(shape(self.by))


STATEMENTS = (
    Statement("total"),
    Statement("by month", ("month",)),
    Statement("by carrier", ("carrier",)),
    Statement("by origin", ("origin",)),
    Statement("by hour", ("hour",)),
    Statement("by month and origin", ("month", "origin")),
    Statement("by carrier and origin", ("carrier", "origin")),
    Statement("up to each hour", ("hour",), running=True),
)

AS_WRITTEN: tuple[By, ...] = tuple(one.by for one in STATEMENTS if not one.running)
"""Every grouping is asked for; running totals are sums of the counts by hour."""
FEWEST: tuple[By, ...] = (("month", "origin"), ("carrier", "origin"), ("hour",))
"""The fewest groupings that determine the batch; every other answer is a sum of theirs."""


def shape(by: By) -> tuple[int, ...]:
    """Number of values of each column of ``by``."""
    return tuple(len(VALUES[column]) for column in by)


def keys(by: By) -> list[list[int | str]]:
    """All groups of ``by``, the last column changing fastest."""
    columns: list[list[int | str]] = [list(VALUES[column]) for column in by]
    return [list(key) for key in product(*columns)]


def answers(counts: Mapping[By, Floats]) -> dict[str, Floats]:
    """The answers of each statement, from the counts of the groupings that were asked for.

    A statement that was not asked for is summed from the smallest grouping that determines it. A
    group that a tool left out is NaN in ``counts``: it stays NaN where it is an answer itself,
    and adds nothing to a sum.
    """
    found = {}
    for statement in STATEMENTS:
        able = [by for by in counts if set(statement.by) <= set(by)]
        source = min(able, key=lambda by: math.prod(shape(by)))
        values = counts[source].reshape(shape(source))
        if source != statement.by or statement.running:
            values = np.nan_to_num(values)
            others = tuple(i for i, column in enumerate(source) if column not in statement.by)
            values = values.sum(axis=others)
        found[statement.name] = np.cumsum(values) if statement.running else values.ravel()
    return found


def expected_variances(counts: Mapping[By, Floats], epsilon: float) -> dict[str, Floats]:
    """Variance of each answer where ε is split evenly, with discrete Laplace noise on ``counts``.

    Every count has noise of its own, so variances add as the counts do. Of ``counts`` only the
    shape is used, and which groups are left out.
    """
    ratio = math.exp(-epsilon / len(counts))
    variance = 2 * ratio / (1 - ratio) ** 2
    return answers({by: np.where(np.isnan(one), one, variance) for by, one in counts.items()})


def domain_text() -> str:
    """The domain of the batch, as a file of ``lrm``."""
    lines = ["lrm-domain: 1", "table: flights", "unit: row", "attributes:"]
    for column, values in VALUES.items():
        if isinstance(values[0], int):
            kind = f"kind: integers, low: {values[0]}, high: {values[-1]}"
        else:
            kind = f"kind: categories, values: [{', '.join(map(str, values))}]"
        lines.append(f"  - {{name: {column}, {kind}, 'null': drop, outside: drop}}")
    return "\n".join(lines) + "\n"


def sql_text() -> str:
    """The batch in SQL, one statement per line."""
    lines = []
    for statement in STATEMENTS:
        alias = statement.name.replace(" ", "_")
        columns = ", ".join(statement.by)
        if statement.running:
            counts = (f"COUNT(*) FILTER (WHERE {columns} <= {v}) AS up_to_{v}" for v in range(24))
            lines.append(f"SELECT {', '.join(counts)} FROM flights;")  # noqa: S608 - constants
        elif statement.by:
            lines.append(
                f"SELECT {columns}, COUNT(*) AS {alias} FROM flights GROUP BY {columns};"  # noqa: S608 - constants
            )
        else:
            lines.append(f"SELECT COUNT(*) AS {alias} FROM flights;")  # noqa: S608 - constants
    return "\n".join(lines) + "\n"
