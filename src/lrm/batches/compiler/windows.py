"""``SUM(…) OVER (…)`` → the groups that are added up for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.binned import ordered_cells
from lrm.batches.compiler.expressions import CellLabel, shown
from lrm.batches.compiler.refusals import only, refuse
from lrm.batches.compiler.summands import Weighed
from lrm.batches.terms import Rows
from lrm.domain import Dates, Integers, SteppedAttribute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.batches.compiler.grouping import GroupingSet, Keys
    from lrm.batches.compiler.predicates import Scope
    from lrm.domain import Attribute

__all__ = ["KeyGroup", "Window", "window_of"]

_LONGEST = 9  # digits of a distance
_FRAME = "RANGE counts whole numbers, or days as INTERVAL 6 DAY, of a column that is never NULL"
_ROWS = "which groups have no rows is not known; write RANGE BETWEEN … PRECEDING AND CURRENT ROW"


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


def window_of(
    node: exp.Expr, axes: GroupingSet, keys: Keys, groups: Sequence[KeyGroup], scope: Scope
) -> Window:
    """Read ``OVER (…)`` of a statement that is grouped by ``axes`` and ``keys``."""
    named = {name: place for place, (name, _) in enumerate(keys.values())}
    named |= {text: place for place, text in enumerate(keys)}
    parts = node.args.get("partition_by") or []
    partition = tuple(named[shown(one)] for one in parts if shown(one) in named)
    within = tuple(scope.axis(one) for one in parts if shown(one) not in named)
    for axis in set(within) - set(axes):
        name = scope.domain.names[axis]
        raise refuse(f"PARTITION BY {name}", "it is not grouped by", node)
    order, spec = node.args.get("order"), node.args.get("spec")
    if order is None and spec is not None:
        raise refuse("ROWS or RANGE without ORDER BY", "leave it out", node)
    if order is None:
        return Window(within, None, partition, None, groups)
    if len(order.expressions) != 1:
        raise refuse("OVER (ORDER BY several)", "order by one of the groups", node)
    (by,) = order.expressions
    place = named.get(shown(by.this))
    rest = len(set(axes) - set(within)) + len(set(range(len(keys))) - set(partition))
    if spec is not None and spec.args.get("kind") != "RANGE" and rest > 1:
        raise refuse("ROWS in OVER (…)", "partition by all other groups", node)
    if place is not None:
        _check_whole(spec, node)
        ranks = _ranks(list(keys.values())[place][1], {one.row[place] for one in groups}, by, scope)
        return Window(within, None, partition, (place, ranks), groups)
    axis = scope.axis(by.this)
    if axis not in axes or axis in within:
        name = scope.domain.names[axis]
        raise refuse(f"OVER (ORDER BY {name})", "order by one of the groups", node)
    running = _running(axis, by, spec, node, scope)
    return Window((*within, axis), running, partition, None, groups)


def _check_whole(spec: exp.Expr | None, node: exp.Expr) -> None:
    """Refuse frames other than all groups up to the present one."""
    if spec is not None and _ends(spec, None, node) != (-np.inf, 0.0):
        raise refuse("this frame of OVER (…)", "write UNBOUNDED PRECEDING", node)


def _ranks(key: exp.Expr, values: set[Any], by: exp.Expr, scope: Scope) -> dict[Any, int]:
    """The place of each value of an expression in the order of a window."""
    if type(key) is CellLabel:
        attribute = scope.domain.attributes[scope.axis(key.this)]
        return {
            attribute.labels[cell]: rank
            for rank, cells in enumerate(_in_order(attribute, by))
            for cell in cells
        }
    known = sorted((one for one in values if one is not None), reverse=bool(by.args.get("desc")))
    order = [None, *known] if by.args.get("nulls_first") else [*known, None]
    return {one: rank for rank, one in enumerate(order)}


def _in_order(attribute: Attribute, by: exp.Expr) -> list[list[int]]:
    """The cells of an attribute as a window orders them; those of NULL are together."""
    order_of, null = ordered_cells(attribute, by)
    places = [[cell] for cell in (reversed(order_of) if by.args.get("desc") else order_of)]
    return [null, *places] if by.args.get("nulls_first") else [*places, null]


def _running(axis: int, by: exp.Expr, spec: exp.Expr | None, node: exp.Expr, scope: Scope) -> Rows:
    """Running totals over the cells of an attribute, in its order: one row per cell."""
    attribute = scope.domain.attributes[axis]
    before, after = (-np.inf, 0.0) if spec is None else _ends(spec, attribute, node)
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


def _ends(spec: exp.Expr, attribute: Attribute | None, node: exp.Expr) -> tuple[float, float]:
    """How far a frame reaches before and after the present group."""
    only(spec, "kind", "start", "start_side", "end", "end_side")
    found = []
    for end, missing in (("start", "UNBOUNDED"), ("end", "CURRENT ROW")):
        value, side = spec.args.get(end) or missing, spec.args.get(f"{end}_side") or "PRECEDING"
        sign = -1.0 if side == "PRECEDING" else 1.0
        if isinstance(value, str):
            found.append(sign * np.inf if value == "UNBOUNDED" else 0.0)
            continue
        if spec.args.get("kind") != "RANGE":
            raise refuse(f"{spec.args.get('kind')} … {side}", _ROWS, node)
        found.append(sign * _distance(value, attribute, node))
    return found[0], found[1]


def _distance(value: exp.Expr, attribute: Attribute | None, node: exp.Expr) -> float:
    """How many cells of an attribute RANGE reaches: each is one whole number, or one day."""
    number: exp.Expr = value
    if type(value) is exp.Interval and isinstance(attribute, Dates):
        unit = value.args.get("unit")
        number = value.this if unit is not None and unit.name.upper() in {"DAY", "DAYS"} else value
    single = isinstance(attribute, Integers) and number is value
    single = single or (isinstance(attribute, Dates) and number is not value)
    if not single or type(number) is not exp.Literal or not number.name.isdecimal():
        raise refuse("this frame of OVER (…)", _FRAME, node)
    assert isinstance(attribute, SteppedAttribute)  # noqa: S101 - both are
    if attribute.size != attribute.last - int(attribute.starts[0]) + 1:
        raise refuse("this frame of OVER (…)", _FRAME, node)
    return float(number.name[:_LONGEST])
