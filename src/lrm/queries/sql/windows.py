"""``OVER (…)`` → which groups are added up for each group.

Every declared group that WHERE leaves has a row, so that ``ROWS``, ``LAG`` and ``AVG`` count those
groups, empty or not. What they need to know of the groups is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.domain import Attribute, Dates, Domain, Integers, SteppedAttribute
from lrm.queries.sql import expr as ir
from lrm.queries.sql.atoms import ordered_cells
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import ADVICE, refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.tables import Weighed
from lrm.queries.terms import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.queries.sql.groups import GroupingSet, Keys


@dataclass(frozen=True, eq=False)
class KeyGroup:
    """One group of the expressions that a statement is grouped by: labels, values and cells."""

    labels: tuple[tuple[str, str], ...]
    row: tuple[Any, ...]
    tables: Sequence[Weighed]


@dataclass(frozen=True, eq=False)
class Window:
    """Which groups a window function is of."""

    node: ir.Window
    within: tuple[int, ...]  # attributes that it is partitioned or ordered by
    axis: int | None  # the attribute that it is ordered by, or None
    partition: tuple[int, ...]  # places of the expressions that it is partitioned by
    # The place of each group of the expressions in the order of those that it is ordered by.
    ranks: Sequence[int] | None
    groups: Sequence[KeyGroup]  # all groups of the expressions
    present: Sequence[bool]  # whether WHERE leaves each of them
    attribute: Attribute | None

    @property
    def counts_groups(self) -> bool:
        """Whether it depends on which groups there are, rather than on their answers alone."""
        ordered = self.axis is not None or self.ranks is not None
        return self.node.name != "SUM" or (ordered and not self._is_range)

    @property
    def needs_some(self) -> bool:
        """Whether there is no answer where it is of no group."""
        return self.node.name != "SUM" and len(self.node.args) < 3

    @property
    def by_keys(self) -> bool:
        """Whether it depends on the group of the expressions."""
        return bool(self.partition) or self.ranks is not None

    @property
    def _is_range(self) -> bool:
        """Whether its frame is given by values rather than by a number of groups."""
        frame = self.node.frame
        named = self.node.name in {"SUM", "AVG", "FIRST_VALUE", "LAST_VALUE"}
        return named and (frame is None or frame.kind == "RANGE" or frame.is_running)

    def ends(self, places: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first and last group of each of some groups in order; none where last is before.

        ``places`` are their places in the order of values: those of equal values are the same.
        """
        node, count = self.node, len(places)
        rank = np.arange(count)
        if node.name in {"LAG", "LEAD"}:
            far = int(node.args[1].text) if isinstance(node.args[1], ir.Number) else 1
            at = rank - far if node.name == "LAG" else rank + far
            inside = (at >= 0) & (at < count)
            return np.where(inside, at, 0), np.where(inside, at, -1)
        ordered = self.axis is not None or self.ranks is not None
        start, end = (-np.inf, 0.0 if ordered else np.inf)
        if node.frame is not None:
            start, end = node.frame.start, node.frame.end
        if self._is_range:
            low = np.searchsorted(places, places + start)
            high = np.searchsorted(places, places + end, "right") - 1
        else:
            low = np.clip(rank + start, 0, count).astype(np.intp)
            high = np.clip(rank + end, -1, count - 1).astype(np.intp)
        if node.name == "FIRST_VALUE":
            high = np.where(low <= high, low, high)
        elif node.name == "LAST_VALUE":
            low = np.where(low <= high, high, low)
        return low, np.maximum(high, low - 1)

    # groups of expressions

    def tables(self, group: KeyGroup) -> Sequence[Weighed]:
        """The cells that are added up for one group of the expressions."""
        is_held = self.held(group) if self.by_keys else None
        if is_held is None or is_held.all():
            return ()
        (cells,) = group.tables
        return [Weighed(cells.axes, is_held[self._codes].astype(np.float64), cells.undecided)]

    def held(self, group: KeyGroup) -> NDArray[np.bool_]:
        """The groups of the expressions that are added up for one of them."""
        group_place = next(
            place for place, key_group in enumerate(self.groups) if key_group is group
        )
        rows = [
            tuple(key_group.row[place] for place in self.partition) for key_group in self.groups
        ]
        same = np.array([row == rows[group_place] for row in rows])
        if self.ranks is None:
            return np.asarray(same & np.array(self.present)) if self.counts_groups else same
        ranks = np.array(self.ranks)
        if not self.counts_groups:
            return np.asarray(same & (ranks <= ranks[group_place]))
        there = np.flatnonzero(same & np.array(self.present))
        there = there[np.argsort(ranks[there], kind="stable")]
        low, high = self.ends(ranks[there])
        at = int(np.flatnonzero(there == group_place)[0])
        mask = np.zeros(len(rows), dtype=bool)
        mask[there[low[at] : high[at] + 1]] = True
        return mask

    @cached_property
    def _codes(self) -> NDArray[np.intp]:
        """The place of the group of each cell; any where it has none."""
        codes = np.zeros(self.groups[0].tables[0].values.shape, dtype=np.intp)
        for place, key_group in enumerate(self.groups):
            codes[key_group.tables[0].values > 0] = place
        return codes

    # cells of an attribute

    def rows(self, cells: NDArray[np.intp] | None) -> Rows:
        """The cells that are added up for each cell of the attribute that it is ordered by.

        ``cells`` are those that have groups; None for all.
        """
        attribute = self.attribute
        assert attribute is not None  # noqa: S101 - asked of windows in the order of an attribute
        assert self.axis is not None  # noqa: S101 - same
        every = np.arange(attribute.size) if cells is None else cells
        there = np.ones(attribute.size, dtype=bool)
        if self.counts_groups and cells is not None:
            there = np.isin(np.arange(attribute.size), cells)
        pairs = [
            (cell, place)
            for place, some in enumerate(_in_order(attribute, self.node.order[0]))
            for cell in some
            if there[cell]
        ]
        order = np.array([cell for cell, _ in pairs], dtype=np.intp)
        low, high = self.ends(np.array([place for _, place in pairs], dtype=np.intp))
        first, last = (np.zeros(attribute.size, dtype=np.intp) for _ in range(2))
        first[order], last[order] = low, high
        labels = tuple(attribute.labels[cell] for cell in every)
        return Rows(self.axis, order, first[every], last[every], labels)


def window_of(  # noqa: C901, PLR0912, PLR0913, PLR0917 - checks, one after the other
    node: ir.Window,
    axes: GroupingSet,
    keys: Keys,
    groups: Sequence[KeyGroup],
    present: Sequence[bool],
    domain: Domain,
) -> Window:
    """Read ``OVER (…)`` of a statement that is grouped by ``axes`` and ``keys``."""
    places = {group_key: place for place, group_key in enumerate(keys)}
    partition = tuple(places[group_key] for group_key in node.partition if group_key in places)
    within = []
    for group_key in node.partition:
        if group_key in places:
            continue
        if not isinstance(group_key, ir.Attribute) or group_key.axis not in axes:
            advice = f"write {shown(group_key)} in GROUP BY, too"
            raise refuse("window", f"PARTITION BY {shown(group_key)}", advice, group_key)
        within.append(group_key.axis)
    if not node.order:
        if node.frame is not None or node.name not in {"SUM", "AVG"}:
            construct = "ROWS or RANGE" if node.frame is not None else f"{node.name}()"
            raise refuse("window", f"{construct} without ORDER BY", "say in which order", node)
        return Window(node, tuple(within), None, partition, None, groups, present, None)
    by_keys = all(group_key.this in places for group_key in node.order)
    if len(node.order) > 1 and not by_keys:
        raise refuse("window", "OVER (ORDER BY several)", "order by one of the groups", node)
    order_places = {places[group_key.this] for group_key in node.order} if by_keys else set()
    rest = len(set(axes) - set(within)) + len(set(range(len(keys))) - set(partition) - order_places)
    window = Window(node, tuple(within), None, partition, (), groups, present, None)
    if rest > (0 if by_keys else 1):
        if node.frame is not None and node.frame.kind == "ROWS":
            raise refuse("window", "ROWS in OVER (…)", "partition by all other groups", node)
        if window.counts_groups and node.name != "AVG":
            construct = f"{node.name}() in OVER (…)"
            raise refuse("window", construct, "partition by all other groups", node)
    if by_keys:
        frame = node.frame
        if frame is not None and frame.kind == "RANGE" and not frame.is_running:
            advice = "write UNBOUNDED PRECEDING, or count groups by ROWS"
            raise refuse("window", "this frame of OVER (…)", advice, node)
        ranks = _group_ranks(node.order, places, keys, groups, domain)
        return Window(node, tuple(within), None, partition, ranks, groups, present, None)
    by = node.order[0]
    axis = by.this.axis if isinstance(by.this, ir.Attribute) else -1
    if axis not in axes or axis in within:
        advice = "order by one of the groups"
        raise refuse("window", f"OVER (ORDER BY {shown(by.this)})", advice, node)
    attribute = domain.attributes[axis]
    if node.frame is not None and node.frame.kind == "RANGE":
        _check_frame(node.frame, attribute, node)
    both = (*within, axis)
    return Window(node, both, axis, partition, None, groups, present, attribute)


def _group_ranks(
    order: Sequence[ir.SortKey],
    places: Mapping[Expr, int],
    keys: Keys,
    groups: Sequence[KeyGroup],
    domain: Domain,
) -> list[int]:
    """The place of each group of the expressions in an order."""
    nodes = list(keys.values())
    columns = []
    for by in order:
        place = places[by.this]
        ranks = _ranks(nodes[place][1], {group.row[place] for group in groups}, by, domain)
        columns.append([ranks[group.row[place]] for group in groups])
    rows = list(zip(*columns, strict=True))
    known = {row: rank for rank, row in enumerate(sorted(set(rows)))}
    return [known[row] for row in rows]


def _ranks(key: Expr, values: set[Any], by: ir.SortKey, domain: Domain) -> dict[Any, int]:
    """The place of each value of an expression in the order of a window."""
    if isinstance(key, ir.CellLabel) and isinstance(key.this, ir.Attribute):
        attribute = domain.attributes[key.this.axis]
        return {
            attribute.labels[cell]: rank
            for rank, cells in enumerate(_in_order(attribute, by))
            for cell in cells
        }
    known = sorted((value for value in values if value is not None), reverse=by.descending)
    order = [None, *known] if by.nulls_first else [*known, None]
    return {key_value: rank for rank, key_value in enumerate(order)}


def _in_order(attribute: Attribute, by: ir.SortKey) -> list[list[int]]:
    """The cells of an attribute as a window orders them; those of NULL are together."""
    order_of, null = ordered_cells(attribute, by)
    places = [[cell] for cell in (reversed(order_of) if by.descending else order_of)]
    return [null, *places] if by.nulls_first else [*places, null]


def _check_frame(frame: ir.Frame, attribute: Attribute, node: ir.Window) -> None:
    """Check that a distance is a number of cells: each is one whole number, or one day."""
    if all(abs(end) in {0.0, np.inf} for end in (frame.start, frame.end)):
        return
    days = isinstance(attribute, Dates) and frame.unit == "day"
    is_integer = isinstance(attribute, Integers) and not frame.unit
    single = isinstance(attribute, SteppedAttribute) and (
        attribute.size == attribute.last - int(attribute.starts[0]) + 1
    )
    if not (days or is_integer) or not single:
        raise refuse("window", "this frame of OVER (…)", ADVICE["frame"][1], node)
