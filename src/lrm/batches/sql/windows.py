"""``SUM(…) OVER (…)`` → the groups that are added up for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.batches.sql import expr as ir
from lrm.batches.sql.binned import ordered_cells
from lrm.batches.sql.expr import Expr, shown
from lrm.batches.sql.refusals import refuse
from lrm.batches.sql.summands import Weighed
from lrm.batches.sql.words import ADVICE
from lrm.batches.terms import Rows
from lrm.domain import Dates, Integers, SteppedAttribute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.batches.sql.groups import GroupingSet, Keys
    from lrm.domain import Attribute, Domain

__all__ = ["KeyGroup", "Window", "window_of"]


@dataclass(frozen=True, eq=False)
class KeyGroup:
    """One group of the expressions that a statement is grouped by: labels, values and cells."""

    labels: tuple[tuple[str, str], ...]
    row: tuple[Any, ...]
    tables: Sequence[Weighed]


@dataclass(frozen=True, eq=False)
class Window:
    """Which groups a sum over groups is of.

    Parameters
    ----------
    within
        Attributes that it is partitioned or ordered by.
    running
        Running totals over the attribute that it is ordered by.
    partition
        Places of the expressions that it is partitioned by.
    order
        Place of the expression that it is ordered by, and the rank of each of its values.
    groups
        All groups of the expressions.
    """

    within: tuple[int, ...]
    running: Rows | None
    partition: tuple[int, ...]
    order: tuple[int, Mapping[Any, int]] | None
    groups: Sequence[KeyGroup]

    @property
    def by_keys(self) -> bool:
        """Whether it depends on the group of the expressions."""
        return bool(self.partition) or self.order is not None

    def tables(self, group: KeyGroup) -> Sequence[Weighed]:
        """The cells that are added up for one group of the expressions."""
        held = np.array([self._holds(one, group) for one in self.groups]) if self.by_keys else None
        if held is None or held.all():
            return ()
        (cells,) = group.tables
        return [Weighed(cells.axes, held[self._codes].astype(np.float64), cells.undecided)]

    @cached_property
    def _codes(self) -> NDArray[np.intp]:
        """The place of the group of each cell; any where it has none."""
        codes = np.zeros(self.groups[0].tables[0].values.shape, dtype=np.intp)
        for place, one in enumerate(self.groups):
            codes[one.tables[0].values > 0] = place
        return codes

    def _holds(self, one: KeyGroup, group: KeyGroup) -> bool:
        if any(one.row[place] != group.row[place] for place in self.partition):
            return False
        if self.order is None:
            return True
        place, ranks = self.order
        return ranks[one.row[place]] <= ranks[group.row[place]]


def window_of(  # noqa: C901 - checks, one after the other
    node: ir.Window, axes: GroupingSet, keys: Keys, groups: Sequence[KeyGroup], domain: Domain
) -> Window:
    """Read ``OVER (…)`` of a statement that is grouped by ``axes`` and ``keys``."""
    places = {one: place for place, one in enumerate(keys)}
    partition = tuple(places[one] for one in node.partition if one in places)
    within = []
    for one in node.partition:
        if one in places:
            continue
        if not isinstance(one, ir.Attribute) or one.axis not in axes:
            raise refuse("window", f"PARTITION BY {shown(one)}", "it is not grouped by", one)
        within.append(one.axis)
    frame = node.frame
    if not node.order:
        if frame is not None:
            raise refuse("window", "ROWS or RANGE without ORDER BY", "leave it out", node)
        return Window(tuple(within), None, partition, None, groups)
    if len(node.order) != 1:
        raise refuse("window", "OVER (ORDER BY several)", "order by one of the groups", node)
    (by,) = node.order
    rest = len(set(axes) - set(within)) + len(set(range(len(keys))) - set(partition))
    if frame is not None and frame.kind != "RANGE" and rest > 1:
        raise refuse("window", "ROWS in OVER (…)", "partition by all other groups", node)
    place = places.get(by.this)
    if place is not None:
        if frame is not None and (frame.start, frame.end) != (-np.inf, 0.0):
            advice = "write UNBOUNDED PRECEDING"
            raise refuse("window", "this frame of OVER (…)", advice, node)
        ranks = _ranks(
            list(keys.values())[place][1], {one.row[place] for one in groups}, by, domain
        )
        return Window(tuple(within), None, partition, (place, ranks), groups)
    axis = by.this.axis if isinstance(by.this, ir.Attribute) else -1
    if axis not in axes or axis in within:
        advice = "order by one of the groups"
        raise refuse("window", f"OVER (ORDER BY {shown(by.this)})", advice, node)
    running = _running(axis, by, frame, node, domain)
    return Window((*within, axis), running, partition, None, groups)


def _ranks(key: Expr, values: set[Any], by: ir.SortKey, domain: Domain) -> dict[Any, int]:
    """The place of each value of an expression in the order of a window."""
    if isinstance(key, ir.CellLabel) and isinstance(key.this, ir.Attribute):
        attribute = domain.attributes[key.this.axis]
        return {
            attribute.labels[cell]: rank
            for rank, cells in enumerate(_in_order(attribute, by))
            for cell in cells
        }
    known = sorted((one for one in values if one is not None), reverse=by.descending)
    order = [None, *known] if by.nulls_first else [*known, None]
    return {one: rank for rank, one in enumerate(order)}


def _in_order(attribute: Attribute, by: ir.SortKey) -> list[list[int]]:
    """The cells of an attribute as a window orders them; those of NULL are together."""
    order_of, null = ordered_cells(attribute, by)
    places = [[cell] for cell in (reversed(order_of) if by.descending else order_of)]
    return [null, *places] if by.nulls_first else [*places, null]


def _running(
    axis: int, by: ir.SortKey, frame: ir.Frame | None, node: ir.Window, domain: Domain
) -> Rows:
    """Running totals over the cells of an attribute, in its order: one row per cell."""
    attribute = domain.attributes[axis]
    before, after = -np.inf, 0.0
    if frame is not None:
        _check_frame(frame, attribute, node)
        before, after = frame.start, frame.end
    places = [cells for cells in _in_order(attribute, by) if cells]
    # The cells of one place (NULL and invalid values) are added up together.
    bounds = np.cumsum([0, *map(len, places)])
    rank = np.arange(len(places))
    low = np.clip(rank + before, 0, len(places)).astype(np.intp)
    high = np.clip(rank + after, -1, len(places) - 1).astype(np.intp)
    order = np.array([cell for cells in places for cell in cells], dtype=np.intp)
    first, last = np.zeros(attribute.size, dtype=np.intp), np.zeros(attribute.size, dtype=np.intp)
    first[order] = np.repeat(bounds[low], np.diff(bounds))
    last[order] = np.repeat(bounds[high + 1] - 1, np.diff(bounds))
    return Rows(axis, order, first, np.maximum(last, first - 1), attribute.labels)


def _check_frame(frame: ir.Frame, attribute: Attribute, node: ir.Window) -> None:
    """Check that a distance is a number of cells: each is one whole number, or one day."""
    if all(abs(end) in {0.0, np.inf} for end in (frame.start, frame.end)):
        return
    days = isinstance(attribute, Dates) and frame.unit == "day"
    whole = isinstance(attribute, Integers) and not frame.unit
    single = isinstance(attribute, SteppedAttribute) and (
        attribute.size == attribute.last - int(attribute.starts[0]) + 1
    )
    if not (days or whole) or not single:
        raise refuse("window", "this frame of OVER (…)", ADVICE["frame"][1], node)
