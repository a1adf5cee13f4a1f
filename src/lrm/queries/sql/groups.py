"""Grouping sets → attributes, and expressions whose values are groups; which of them there are.

A statement has the declared groups with a declared cell that WHERE may be true of. It follows from
the domain and the text alone, never from the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.domain.lookups import label_text
from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.atoms import TRUE, finer_cells, sorted_cells
from lrm.queries.sql.evaluation import Values
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.formulas import is_rank
from lrm.queries.sql.plan import grouped_levels, level_of
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.tables import (
    Summand,
    Table,
    Truth,
    Weighed,
    Weights,
    disjoint,
    filtered,
    joined,
    slices,
)
from lrm.queries.sql.windows import KeyGroup
from lrm.queries.terms import Rows
from lrm.queries.workload import Column, Kind
from lrm.queries.workload.statements import kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.queries.sql.cells import Cells
    from lrm.queries.sql.plan import Answers

_PARTS: dict[str, Kind] = {"YEAR": "year", "MONTH": "month_of_year"}
MOST_GROUPS = 1000
"""Groups that expressions of one statement may have."""

GroupingSet = tuple[int, ...]
"""Positions of the attributes that one set groups by, ascending."""

Keys = dict[Expr, tuple[str, Expr]]
"""Expressions that a statement is grouped by, with the name of each and what is evaluated."""

Labels = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Grouping sets that share the expressions that they are by."""

    sets: list[GroupingSet]
    keys: Keys
    levels: Labels = ()  # what each GROUPING(…) that is selected is in these sets


def groupings(answers: Answers) -> list[Grouping]:
    """The grouping sets of a statement, by the expressions that they share."""
    named: dict[Expr, str] = {}
    names: dict[Expr, str] = {}
    every = {key for keys in answers.sets for key in keys}
    for item in answers.items:
        name = item.alias or item.name
        label = ir.is_constant(item.expr) and item.expr not in every
        if item.expr.has(ir.Aggregate, ir.Window) or not name or label:
            continue
        if item.alias or name != own_name(item.expr):
            named[item.expr] = name
        if names.setdefault(item.expr, name) != name:
            what = f"{shown(item.expr)} under two names"
            raise refuse("name", what, "use one of them", item.expr)
    nodes = [item.expr for item in answers.items if grouped_levels(item.expr) is not None]
    together: list[Expr] = [
        key
        for item in answers.items
        for window in item.expr.walk()
        if isinstance(window, ir.Window) and len(window.order) > 1 and not is_rank(window)
        for key in window.order
    ]
    together += [key for keys in answers.sets for key in keys if not isinstance(key, ir.Attribute)]
    read = frozenset[int]().union(*(key.axes for key in together))
    variants: dict[tuple[tuple[Expr, ...], Labels], Grouping] = {}
    for keys in answers.sets:
        axes, expressions = _split(keys, named, read)
        levels = tuple(level_of(node, keys) for node in nodes)
        variant = Grouping([], expressions, levels)
        variants.setdefault((tuple(expressions), levels), variant).sets.append(axes)
    return list(variants.values())


def _split(
    nodes: tuple[Expr, ...], named: Mapping[Expr, str], read: frozenset[int]
) -> tuple[GroupingSet, Keys]:
    """Tell the attributes of one set from its expressions.

    An attribute that an expression reads too, or that a window is ordered by with others, is
    grouped by the labels of its cells, as one of the expressions.
    """
    computed_keys = [node for node in nodes if not isinstance(node, ir.Attribute)]
    plain = [node for node in nodes if isinstance(node, ir.Attribute)]
    keys: Keys = {
        node: (named.get(node, node.name), ir.CellLabel(node, at=node.at))
        for node in plain
        if node.axis in read
    }
    keys |= {node: (named.get(node) or own_name(node), node) for node in computed_keys}
    return tuple(sorted(node.axis for node in plain if node.axis not in read)), keys


def _split_alone(nodes: tuple[Expr, ...]) -> tuple[GroupingSet, Keys]:
    """The attributes and the expressions of smaller groups."""
    computed_keys = [node for node in nodes if not isinstance(node, ir.Attribute)]
    return _split(nodes, {}, frozenset[int]().union(*(node.axes for node in computed_keys)))


def own_name(node: Expr) -> str:
    """What a column of groups is called that SELECT gives no name."""
    if isinstance(node, ir.Attribute):
        return node.name
    return node.column if isinstance(node, ir.LookedUp) and node.column else shown(node)


def key_values(keys: Keys, cells: Cells) -> Values | None:
    """The values of all expressions that a statement is grouped by, together, as row values."""
    if not keys:
        return None
    nodes = [key_node for _, key_node in keys.values()]
    parts = _independent(nodes)
    each = [_together([nodes[place] for place in places], cells) for places in parts]
    count = math.prod(len(values.distinct) for values in each)
    if count > MOST_GROUPS:
        what = f"GROUP BY expressions of {count:,} values"
        advice = f"at most {MOST_GROUPS:,} are; group by fewer, or by attributes themselves"
        raise refuse("size", what, advice, at=nodes[0].at)
    return each[0] if len(each) == 1 else _combined(each, parts)


def _independent(nodes: Sequence[Expr]) -> list[list[int]]:
    """The places of expressions, those that read the same attributes together."""
    parts: list[tuple[frozenset[int], list[int]]] = []
    for place, node in enumerate(nodes):
        linked = [part for part in parts if part[0] & node.axes] if node.axes else parts[:1]
        axes = node.axes.union(*(part[0] for part in linked))
        places = sorted([place, *(known for part in linked for known in part[1])])
        parts = [(axes, places), *(part for part in parts if part not in linked)]
    return sorted(places for _, places in parts)


def _together(nodes: Sequence[Expr], cells: Cells) -> Values:
    """The values of expressions that read the same attributes, as row values."""
    description, at = ", ".join(map(shown, nodes)), nodes[0].at
    row_values = cells.values(ir.Row((*nodes, nodes[0]), at=at), description)
    if not row_values.distinct:
        axis = next(axis for node in nodes for axis in sorted(node.axes))
        advice = f"it is not constant on any cell; {finer_cells(cells.domain.attributes[axis], 0)}"
        raise refuse("cut", f"GROUP BY {description}", advice, at=at)
    return row_values


def _combined(each: Sequence[Values], parts: Sequence[Sequence[int]]) -> Values:
    """The row values of expressions that read different attributes: every combination is one."""
    each = list(map(_merged, each))
    sides = {
        axis: (values.classes[side], values.several[side])
        for values in each
        for side, axis in enumerate(values.axes)
    }
    axes = tuple(sorted(sides))
    codes: NDArray[np.int64] = np.zeros((1,) * len(axes), dtype=np.int64)
    undecided = codes < 0
    for values in each:
        spread = values.codes[tuple(slice(None) if a in values.axes else None for a in axes)]
        codes, undecided = codes * len(values.distinct) + spread, undecided | (spread < 0)
    order = [place for places in parts for place in places]
    rows = []
    for combination in product(*(values.distinct for values in each)):
        row = [value for some in combination for value in some[:-1]]
        in_order = [value for _, value in sorted(zip(order, row, strict=True), key=itemgetter(0))]
        rows.append((*in_order, in_order[0]))
    classes, several = zip(*(sides[axis] for axis in axes), strict=True)
    return Values(axes, classes, np.where(undecided, -1, codes), several, tuple(rows), "")


def _merged(values: Values) -> Values:
    """The same values of one attribute, over classes of cells that have the same one."""
    if len(values.axes) != 1:
        return values
    (classes,), (several,) = values.classes, values.several
    both = values.codes * 2 + several
    _, first, merged = np.unique(both, return_index=True, return_inverse=True)
    return replace(
        values,
        classes=(merged.reshape(-1)[classes],),
        codes=values.codes[first],
        several=(several[first],),
    )


def key_groups(values: Values | None, keys: Keys, cells: Cells) -> list[KeyGroup]:
    """The groups of the expressions: one for each combination of their values."""
    if values is None:
        return [KeyGroup((), (), ())]
    group_list: list[KeyGroup] = []
    cut = cells.placed(values, values.undecided)
    computed = {name for name, node in keys.values() if not isinstance(node, ir.CellLabel)}
    for code, row in enumerate(values.distinct):
        labels = tuple(
            (name, label_text(value))
            for (name, node), value in zip(keys.values(), row[:-1], strict=True)
            if not isinstance(node, ir.CellLabel) or name not in computed  # UPPER(a) AS a, by a
        )
        inside = cells.placed(values, (values.codes == code).astype(np.float64))
        group_list.append(
            KeyGroup(labels, row[:-1], [Weighed(inside.axes, inside.values, cut.values)])
        )
    if any(node.has(ir.OneValue) for node in keys):
        places = [k for k, node in enumerate(keys) if not node.has(ir.OneValue)]
        if len({tuple(group.row[k] for k in places) for group in group_list}) < len(group_list):
            node = next(node for node in keys if node.has(ir.OneValue))
            construct = f"MAX() or MIN() of {shown(node)}, which has several values in a group,"
            raise refuse("aggregate", construct, "GROUP BY the column", node)
    if len({key_group.labels for key_group in group_list}) < len(group_list):
        sentence = "two groups of an expression have the same label; give the column another name"
        raise SqlError(sentence, code="name")
    return group_list


def group_numbers(node: Expr, cells: Cells) -> NDArray[np.float64]:
    """The number that an expression of one attribute is on each of its cells; NaN where NULL."""
    values = cells.values(node)
    codes = values.codes[values.classes[0]]
    numbers = [_number(value, node) for value in values.distinct]
    (axis,) = values.axes
    if (codes[: cells.domain.attributes[axis].regular] < 0).any():
        raise _not_one(node)
    return np.array([*numbers, np.nan])[codes]


def number_of_group(node: Expr, keys: Keys, group: KeyGroup, cells: Cells) -> float:
    """The number that an expression is in a group of the expressions that rows are grouped by."""
    places = [place for place, (_, key) in enumerate(keys.values()) if key.axes & node.axes]
    nodes = [list(keys.values())[place][1] for place in places]
    if not nodes or not node.axes <= frozenset[int]().union(*(key.axes for key in nodes)):
        raise _not_one(node)
    rows = cells.values(ir.Row((*nodes, node, node)), shown(node))
    here = tuple(group.row[place] for place in places)
    found = {row[-1] for row in rows.distinct if row[: len(nodes)] == here}
    if len(found) != 1:
        raise _not_one(node)
    return _number(found.pop(), node)


def _number(value: Any, node: Expr) -> float:
    if isinstance(value, str | bool):
        raise refuse("formula", f"arithmetic with {shown(node)}", "it is not a number", node)
    return math.nan if value is None else float(value)


def _not_one(node: Expr) -> SqlError:
    if isinstance(node, ir.OneValue):
        construct = f"{node.name}({shown(node)}), which has several values in a group,"
        return refuse("aggregate", construct, "GROUP BY the column", node)
    sentence = f"column {shown(node)!r} must appear in GROUP BY or inside an aggregate"
    return SqlError(sentence, code="group-by", at=node.at)


def note_groups(nodes: tuple[Expr, ...], cells: Cells) -> None:
    """Note which cells are distinguished by the expressions that define smaller groups."""
    _, keys = _split_alone(nodes)
    key_groups(key_values(keys, cells), keys, cells)


def count_groups(
    nodes: tuple[Expr, ...],
    group: KeyGroup,
    block: GroupBlock,
    conditions: Sequence[Truth],
    cells: Cells,
) -> float:
    """How many groups by some expressions, of those that conditions leave, a group has.

    ``nodes`` define the smaller groups; ``group`` and ``block`` are the groups that are asked.
    """
    axes, keys = _split_alone(nodes)
    outer, kept_rows = block
    refused = refuse(
        "nested", "AVG() of answers over uneven groups", "add up the answers with SUM", nodes[0]
    )
    if not set(outer) <= set(axes):
        raise refused
    expected = {element.axis: element.key for element in kept_rows}
    total = 0
    for element in key_groups(key_values(keys, cells), keys, cells):
        tables = [*element.tables, *group.tables]
        blocks = group_blocks([axes], KeyGroup((), (), tables), conditions, cells)
        for _, rows in blocks:
            rows_by_axis = {row.axis: row for row in rows}
            there = {axis: row.key for axis, row in rows_by_axis.items() if axis in outer}
            if outer and (len(blocks) > 1 or there != expected):
                raise refused
            total += math.prod(
                len(rows_by_axis[axis]) if axis in rows_by_axis else cells.domain.shape[axis]
                for axis in axes
                if axis not in outer
            )
    return float(total)


def check_groups(groups: list[KeyGroup], where: Truth | None, cells: Cells) -> None:
    """Refuse cells whose rows are in different groups, even if they add nothing to an answer.

    Otherwise a group of theirs might be missing.
    """
    if not groups[0].tables:
        return
    rows: Weights = (Summand(1.0),)
    if where is not None:
        rows = filtered(rows, where)
    (key,) = groups[0].tables
    several = Weighed(key.axes, key.undecided.astype(np.float64), key.undecided)
    for summand in rows:
        undecided = summand.times([several]).undecided()
        if undecided is not None:
            raise cells.explain(undecided)


def group_columns(
    grouping: Grouping, renamed: Mapping[int, str], values: Values | None, cells: Cells
) -> dict[Expr, tuple[Column, Labels]]:
    """The columns of groups as a table has them, with their labels in ascending order."""
    known: dict[Expr, tuple[int, str | None]] = {
        ir.Attribute(axis, cells.domain.names[axis]): (axis, renamed.get(axis))
        for axes in grouping.sets
        for axis in axes
    }
    columns: dict[Expr, tuple[Column, Labels]] = {}
    for place, (key, (name, node)) in enumerate(grouping.keys.items()):
        if isinstance(node, ir.CellLabel) and isinstance(node.this, ir.Attribute):
            known[key] = node.this.axis, name
        elif values is not None:
            columns[key] = _computed(name, node, {row[place] for row in values.distinct})
    for key, (axis, other_name) in known.items():
        attribute = cells.domain.attributes[axis]
        labels = tuple(attribute.labels[cell] for cell in sorted_cells(attribute))
        columns[key] = Column.of(attribute, other_name), labels
    return columns


def _computed(name: str, node: Expr, values: set[Any]) -> tuple[Column, Labels]:
    kind = kind_of(values)
    if kind == "integer" and isinstance(node, ir.Call):
        part_name = node.name
        if part_name == "EXTRACT" and node.pieces is not None:
            part_name = node.pieces[0].removeprefix("EXTRACT(").partition(" ")[0]
        kind = _PARTS.get(part_name, kind)
    labels = tuple(map(label_text, sorted(value for value in values if value is not None)))
    return Column(name, kind, (*labels, "(null)") if None in values else labels), labels


MOST_BLOCKS = 256
"""Blocks of groups that one answer is written as; beyond it their common frame is answered."""

GroupBlock = tuple[tuple[int, ...], tuple[Rows, ...]]
"""The attributes of a grouping set, and the cells of those of which not all are there."""

_Inside = Mapping[int, "NDArray[np.bool_]"]


def group_blocks(
    sets: Sequence[tuple[int, ...]], group: KeyGroup, conditions: Sequence[Truth], cells: Cells
) -> list[GroupBlock]:
    """The groups of some grouping sets that conditions leave, as products of cells.

    ``conditions`` are WHERE, and what is asked of groups later on.
    """
    tables = [
        Table(table.axes, (table.values & TRUE).astype(bool))
        for truth in conditions
        for table in truth.tables
    ]
    tables += [Table(key_table.axes, key_table.values > 0) for key_table in group.tables]
    with suppress(SqlError):  # too large to be joined: each is looked at by itself
        tables = disjoint(tables, partial(joined, combine=np.logical_and))
    blocks: list[GroupBlock] = []
    for axes in sets:
        if not axes and not group.tables:
            blocks.append((axes, ()))  # a total has one row, whatever it counts
            continue
        blocks += [(axes, _rows(block, cells)) for block in _blocks(tables, axes)]
    return blocks


def _blocks(tables: Sequence[Table], axes: tuple[int, ...]) -> list[_Inside]:
    """Products of cells, of which no two share a group; none where no group is left."""
    each: list[list[_Inside]] = []
    for table in tables:
        summed_sides = tuple(k for k, axis in enumerate(table.axes) if axis not in axes)
        inside = np.asarray(table.values.any(axis=summed_sides))
        shared_axes = tuple(axis for axis in table.axes if axis in axes)
        if not inside.any():
            return []
        if inside.all():
            continue
        parts = slices(inside.astype(np.float64), shared_axes)
        each.append(
            [{axis: vector > 0 for axis, vector in vectors.items()} for _, vectors in parts]
        )
    count = 1
    for place, some in enumerate(each):
        count *= len(some)
        if count > MOST_BLOCKS:
            count //= len(some)
            each[place] = [_frame(some)]
    return [_joined(combination) for combination in product(*each)]


def _frame(blocks: Sequence[_Inside]) -> _Inside:
    """The smallest product of cells that holds several."""
    axes = set(blocks[0]).intersection(*blocks)
    return {axis: np.logical_or.reduce([block[axis] for block in blocks]) for axis in axes}


def _joined(parts: Sequence[_Inside]) -> _Inside:
    """The product of cells of several, which may share attributes where tables were not joined."""
    masks: dict[int, NDArray[np.bool_]] = {}
    for part in parts:
        for axis, inside in part.items():
            masks[axis] = inside & masks[axis] if axis in masks else inside
    return masks


def _rows(block: _Inside, cells: Cells) -> tuple[Rows, ...]:
    rows = []
    for axis, inside in sorted(block.items()):
        indices = np.flatnonzero(cells.over_cells(inside, axis))
        rows.append(Rows.single(axis, indices, cells.domain.attributes[axis].labels))
    return tuple(rows)
