"""The tables that a batch consists of: which answers belong together, by statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lrm.workload import Grouped, Labels

__all__ = ["Statement", "Table", "statements"]

SINGLE = "Single counts"


@dataclass(frozen=True)
class Table:
    """Answers that belong together.

    Parameters
    ----------
    title
        The query and what it is grouped by.
    axes
        The grouping attributes with their labels, the last varying fastest; none for a list of
        single counts.
    positions
        Where the answers stand in the batch.
    """

    title: str
    axes: tuple[tuple[str, Sequence[str]], ...]
    positions: Sequence[int]


@dataclass(frozen=True)
class Statement:
    """One or more tables that were asked for together."""

    title: str
    tables: tuple[Table, ...]

    @property
    def positions(self) -> list[int]:
        """Where the answers stand in the batch."""
        return [position for table in self.tables for position in table.positions]


def statements(labels: Labels) -> list[Statement]:
    """Group the answers of a batch: by line of its text, else by table; single counts together.

    >>> parts = [Grouped("n", (("sex", ("f", "m")),)), Grouped("total"), Grouped("max")]
    >>> [(one.title, one.positions) for one in statements(Labels(parts))]
    [('n by sex', [0, 1]), ('Single counts', [2, 3])]
    """
    found: dict[object, list[Table]] = {}
    single: list[int] = []
    start = 0
    for part in labels.tables():
        positions = range(start, start := start + len(part))
        if isinstance(part, Grouped) and part.hidden:
            continue  # an input of derived answers
        if isinstance(part, Grouped) and len(part) > 1:
            table = Table(f"{part.query} by {', '.join(part.attributes)}", part.axes, positions)
            found.setdefault(start if part.line is None else f"line {part.line}", []).append(table)
            continue
        single += positions
        found.setdefault(SINGLE, [])
    found |= {SINGLE: [Table(SINGLE, (), single)]} if single else {}
    return [Statement(_title(tables), tuple(tables)) for tables in found.values()]


def _title(tables: Sequence[Table]) -> str:
    """The titles of all tables, where there are few of them."""
    more = f" and {len(tables) - 3} more" if len(tables) > 3 else ""
    return "; ".join(table.title for table in tables[:3]) + more
