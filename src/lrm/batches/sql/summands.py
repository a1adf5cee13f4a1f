"""What one row adds to an aggregate: sums of products of small tables of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.sql.atoms import FALSE, TRUE
from lrm.batches.sql.tables import Table, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lrm.batches.sql.tables import Truth

__all__ = ["Summand", "Weighed", "Weights", "filtered", "multiplied"]


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
        apart: list[Weighed] = list(self.tables)
        for table in tables:
            sharing = [one for one in apart if not set(one.axes).isdisjoint(table.axes)]
            apart = [one for one in apart if one not in sharing]
            apart.append(_product([*sharing, table]))
        return Summand(self.coefficient * factor, tuple(apart))

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
    values = joined([Table(one.axes, one.values) for one in tables], np.multiply)
    possible = joined([Table(one.axes, one.possible) for one in tables], np.logical_and)
    cut = joined([Table(one.axes, one.undecided) for one in tables], np.logical_or)
    return Weighed(values.axes, values.values, possible.values & cut.values)


def multiplied(inner: Weights, factor: float) -> Weights:
    """The same times a constant."""
    return tuple(Summand(one.coefficient * factor, one.tables) for one in inner)


def filtered(inner: Weights, truth: Truth) -> Weights:
    """Keep the weights where a condition is true; null is not true."""
    kept = [_weighed(table, table.values == TRUE, TRUE) for table in truth.tables]
    found = [summand.times(kept) for summand in inner]
    for clause in truth.negations:
        # NOT (a AND b …) is 1 − (a is not false)(b is not false)…
        others = [_weighed(table, table.values != FALSE, FALSE) for table in clause]
        found += [summand.times(others, -1.0) for summand in found]
    return tuple(found)


def _weighed(table: Table, values: NDArray[np.bool_], open_truth: int) -> Weighed:
    """Weights 1 and 0; cells where ``open_truth`` is one of several possible are undecided."""
    possible = (table.values & open_truth).astype(bool)
    return Weighed(table.axes, values.astype(np.float64), possible & (table.values != open_truth))
