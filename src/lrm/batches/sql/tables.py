"""Small tables over the merged cells of a few attributes, multiplied without being joined.

A condition is kept as a conjunction of tables over different attributes, so that its size follows
the attributes that it names, never the domain. Only what joins attributes (OR, NOT of several)
is written out over their merged cells, and only where that is small. What one row adds to an
aggregate is a sum of products of such tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrm.batches.sql.atoms import AND, FALSE, NOT, TRUE, Truths
from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "TOO_MANY",
    "Summand",
    "Table",
    "Truth",
    "Weighed",
    "Weights",
    "aligned",
    "all_of",
    "any_of",
    "filtered",
    "fits",
    "joined",
    "multiplied",
    "negated",
]


MAX_ENTRIES = 1 << 20
"""Merged cells of attributes that OR or NOT joins."""

MAX_ENTRIES_OF_MANY = 1 << 13
"""The same for more than eight attributes, which take longer to distinguish."""

TOO_MANY = (
    "OR, NOT or CASE over these attributes would need too many products; "
    "write it as several statements"
)


@dataclass(frozen=True, eq=False)
class Table:
    """Values over the merged cells of some attributes, one dimension per attribute."""

    axes: tuple[int, ...]
    values: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Truth:
    """Possible truths of a condition over cells.

    It is the conjunction of ``tables``, over different attributes, and of the negations of some
    conjunctions that are too large to be written out as one table.
    """

    tables: tuple[Table, ...] = ()
    negations: tuple[tuple[Table, ...], ...] = ()


def fits(tables: Sequence[Table]) -> bool:
    """Whether tables are small enough to be joined to one."""
    sides: dict[int, int] = {}
    for table in tables:
        sides |= dict(zip(table.axes, table.values.shape, strict=True))
    limit = MAX_ENTRIES if len(sides) <= 8 else MAX_ENTRIES_OF_MANY
    return math.prod(sides.values()) <= limit


def aligned(table: Table, axes: Sequence[int]) -> NDArray[Any]:
    """The values of a table with one dimension for each of ``axes``, 1 where it has none."""
    sides = dict(zip(table.axes, table.values.shape, strict=True))
    return table.values.reshape([sides.get(axis, 1) for axis in axes])


def joined(tables: Sequence[Table], combine: Callable[[Any, Any], NDArray[Any]]) -> Table:
    """One table over all attributes of several, combined two by two."""
    if len(tables) == 1:
        return tables[0]
    if not fits(tables):
        raise SqlError(TOO_MANY, code="size")
    axes = tuple(sorted({axis for table in tables for axis in table.axes}))
    values = aligned(tables[0], axes)
    for table in tables[1:]:
        values = combine(values, aligned(table, axes))
    return Table(axes, values)


def disjoint(
    tables: Sequence[Table], combine: Callable[[Any, Any], NDArray[Any]]
) -> tuple[Table, ...]:
    """The same product of tables, with those that share an attribute joined."""
    separate_tables: list[Table] = []
    for table in tables:
        sharing = [
            other_table
            for other_table in separate_tables
            if not set(other_table.axes).isdisjoint(table.axes)
        ]
        if not table.axes:
            sharing = [other_table for other_table in separate_tables if not other_table.axes]
        if sharing:
            separate_tables = [
                other_table for other_table in separate_tables if other_table not in sharing
            ]
        separate_tables.append(joined([*sharing, table], combine))
    return tuple(separate_tables)


def _and(left_truth: Any, two: Any) -> Truths:
    return np.asarray(AND[left_truth, two])


def all_of(parts: Sequence[Truth]) -> Truth:
    """AND of conditions."""
    tables = disjoint([table for part in parts for table in part.tables], _and)
    return Truth(tables, tuple(clause for part in parts for clause in part.negations))


def negated(truth: Truth) -> Truth:
    """NOT of a condition."""
    if not truth.negations:
        if len(truth.tables) > 1 and not fits(truth.tables):
            return Truth((), (truth.tables,))
        joined_table = joined(truth.tables, _and)
        return Truth((Table(joined_table.axes, NOT[joined_table.values]),))
    if not truth.tables and len(truth.negations) == 1:
        return Truth(truth.negations[0])
    raise SqlError(TOO_MANY, code="size")


def any_of(parts: Sequence[Truth]) -> Truth:
    """OR of conditions."""
    return negated(all_of([negated(part) for part in parts]))


@dataclass(frozen=True, eq=False)
class Weighed(Table):
    """What one row adds to an answer, over the merged cells of some attributes.

    ``undecided`` marks cells whose rows do not all add the same: they must be filtered
    away before the weights can be used.
    """

    undecided: NDArray[np.bool_]

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Where a row may add something other than 0."""
        return np.asarray(self.values != 0.0) | self.undecided


@dataclass(frozen=True, eq=False)
class Summand:
    """A constant times tables over different attributes."""

    coefficient: float
    tables: tuple[Weighed, ...] = ()

    def times(self, tables: Iterable[Weighed], factor: float = 1.0) -> Summand:
        """Multiply by further tables."""
        disjoint_tables: list[Weighed] = list(self.tables)
        for table in tables:
            sharing = [
                other_table
                for other_table in disjoint_tables
                if not set(other_table.axes).isdisjoint(table.axes)
            ]
            disjoint_tables = [
                other_table for other_table in disjoint_tables if other_table not in sharing
            ]
            disjoint_tables.append(_product([*sharing, table]))
        return Summand(self.coefficient * factor, tuple(disjoint_tables))

    def undecided(self) -> dict[int, int] | None:
        """A merged cell of each attribute on which the weight is undecided, if there is one."""
        if not all(table.possible.any() for table in self.tables):
            return None
        cut = [table for table in self.tables if table.undecided.any()]
        if not cut:
            return None
        place: dict[int, int] = {}
        for table in self.tables:
            matters = table.undecided if table is cut[0] else table.possible
            at = np.unravel_index(int(np.argmax(matters)), matters.shape)
            place |= dict(zip(table.axes, map(int, at), strict=True))
        return place


Weights = tuple[Summand, ...]
"""An aggregate: the sum of these."""


def _product(tables: Sequence[Weighed]) -> Weighed:
    if len(tables) == 1:
        return tables[0]
    values = joined([Table(table.axes, table.values) for table in tables], np.multiply)
    possible = joined([Table(table.axes, table.possible) for table in tables], np.logical_and)
    cut = joined([Table(table.axes, table.undecided) for table in tables], np.logical_or)
    return Weighed(values.axes, values.values, possible.values & cut.values)


def multiplied(inner: Weights, factor: float) -> Weights:
    """The same times a constant."""
    return tuple(Summand(summand.coefficient * factor, summand.tables) for summand in inner)


def filtered(inner: Weights, truth: Truth) -> Weights:
    """Keep the weights where a condition is true; null is not true."""
    true_tables = [_weighed(table, table.values == TRUE, TRUE) for table in truth.tables]
    summands = [summand.times(true_tables) for summand in inner]
    for clause in truth.negations:
        # NOT (a AND b …) is 1 − (a is not false)(b is not false)…
        possible_tables = [_weighed(table, table.values != FALSE, FALSE) for table in clause]
        summands += [summand.times(possible_tables, -1.0) for summand in summands]
    return tuple(summands)


def _weighed(table: Table, values: NDArray[np.bool_], open_truth: int) -> Weighed:
    """Weights 1 and 0; cells where ``open_truth`` is one of several possible are undecided."""
    possible = (table.values & open_truth).astype(bool)
    return Weighed(table.axes, values.astype(np.float64), possible & (table.values != open_truth))
