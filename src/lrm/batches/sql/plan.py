"""What a statement asks for, as relational nodes over the expressions of `expr`.

A node's expressions read the columns of the FROM that they stand in, as `Column` nodes whose keys
are ``(alias, column)``. ``HAVING``, ``ORDER BY`` and ``LIMIT`` stand around the SELECT that they
belong to, and read the columns of the same FROM.
"""

from __future__ import annotations

from dataclasses import dataclass

from lrm.batches.sql.expr import Expr, SortKey

__all__ = [
    "Aggregate",
    "Choose",
    "CrossAnswers",
    "EndKey",
    "Filter",
    "Item",
    "JoinAnswers",
    "Limit",
    "LookupJoin",
    "Named",
    "Plan",
    "Project",
    "Qualify",
    "Scan",
    "Sort",
    "UnionAll",
]


@dataclass(frozen=True)
class Plan:
    """A relational node."""


@dataclass(frozen=True)
class Item:
    """A column of a SELECT: its expression, its alias, and the name that others know it by."""

    expr: Expr
    alias: str | None
    name: str


@dataclass(frozen=True)
class Scan(Plan):
    """All rows of the declared table."""


@dataclass(frozen=True)
class Named(Plan):
    """A sub-select in FROM, under its alias."""

    input: Plan
    alias: str


@dataclass(frozen=True)
class LookupJoin(Plan):
    """The rows of the input with the columns of a lookup; all of them if ``left``."""

    input: Plan
    lookup: str
    key: Expr
    left: bool
    at: int | None = None


@dataclass(frozen=True)
class CrossAnswers(Plan):
    """The rows of the input, each joined with the one row of a sub-select."""

    input: Plan
    other: Plan
    alias: str
    at: int | None = None


@dataclass(frozen=True)
class JoinAnswers(Plan):
    """The answers of two sub-selects with the same groups, side by side.

    ``pairs`` are the columns of groups that are compared: of the input, and of the other.
    """

    input: Plan
    other: Plan
    alias: str
    pairs: tuple[tuple[Expr, Expr], ...]
    left: bool
    at: int | None = None


@dataclass(frozen=True)
class Filter(Plan):
    """The rows of the input of which a condition is true: WHERE."""

    input: Plan
    condition: Expr


@dataclass(frozen=True)
class Project(Plan):
    """Expressions of the columns of the input: a SELECT without aggregates."""

    input: Plan
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Aggregate(Plan):
    """Aggregates of the rows of the input, by grouping sets: a SELECT with aggregates."""

    input: Plan
    sets: tuple[tuple[Expr, ...], ...]
    items: tuple[Item, ...]
    grouped: bool


@dataclass(frozen=True)
class Choose(Plan):
    """The answers of which a condition is true: HAVING."""

    input: Plan
    condition: Expr


@dataclass(frozen=True)
class Qualify(Plan):
    """The answers of which a condition is true after window functions: QUALIFY."""

    input: Plan
    condition: Expr


@dataclass(frozen=True)
class Sort(Plan):
    """The answers in an order."""

    input: Plan
    keys: tuple[SortKey, ...]


@dataclass(frozen=True)
class Limit(Plan):
    """The first answers after some."""

    input: Plan
    count: int | None
    offset: int
    at: int | None = None


@dataclass(frozen=True)
class EndKey:
    """A key of ORDER BY after UNION ALL: a column by its name or its position."""

    name: str
    position: int | None
    descending: bool
    nulls_first: bool
    at: int | None = None


@dataclass(frozen=True)
class UnionAll(Plan):
    """The answers of several SELECTs, one below the other, in an order.

    A statement of one SELECT is one part without an ending.
    """

    parts: tuple[Plan, ...]
    places: tuple[int | None, ...]
    keys: tuple[EndKey, ...] = ()
    count: int | None = None
    offset: int = 0
    at: int | None = None

    @property
    def ends(self) -> bool:
        """Whether ORDER BY, LIMIT or OFFSET stands after it all."""
        return bool(self.keys) or self.count is not None or self.offset > 0
