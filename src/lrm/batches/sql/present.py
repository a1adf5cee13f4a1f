"""Which declared groups a statement has: those with a declared cell that WHERE may be true of.

It follows from the domain and the text alone, never from the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.sql.atoms import TRUE
from lrm.batches.sql.decompose import slices
from lrm.batches.sql.tables import Table, disjoint
from lrm.batches.terms import Rows
from lrm.errors import SqlError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.batches.sql.cells import Cells
    from lrm.batches.sql.tables import Truth
    from lrm.batches.sql.windows import KeyGroup

__all__ = ["GroupBlock", "group_blocks"]

MOST_BLOCKS = 256
"""Blocks of groups that one answer is written as; beyond it their common frame is answered."""

GroupBlock = tuple[tuple[int, ...], tuple[Rows, ...]]
"""The attributes of a grouping set, and the cells of those of which not all are there."""

_Inside = Mapping[int, "NDArray[np.bool_]"]


def group_blocks(
    sets: Sequence[tuple[int, ...]], group: KeyGroup, conditions: Sequence[Truth], cells: Cells
) -> list[GroupBlock]:
    """The groups of some grouping sets that conditions leave, as products of cells.

    Parameters
    ----------
    group
        One group of the expressions that the statement is grouped by.
    conditions
        WHERE, and what is asked of groups later on.
    """
    tables = [
        Table(table.axes, (table.values & TRUE).astype(bool))
        for truth in conditions
        for table in truth.tables
    ]
    tables += [Table(one.axes, one.values > 0) for one in group.tables]
    with suppress(SqlError):  # too large to be joined: each is looked at by itself
        tables = list(disjoint(tables, np.logical_and))
    found: list[GroupBlock] = []
    for axes in sets:
        if not axes and not group.tables:
            found.append((axes, ()))  # a total has one row, whatever it counts
            continue
        found += [(axes, _rows(block, cells)) for block in _blocks(tables, axes)]
    return found


def _blocks(tables: Sequence[Table], axes: tuple[int, ...]) -> list[_Inside]:
    """Products of cells, of which no two share a group; none where no group is left."""
    each: list[list[_Inside]] = []
    for table in tables:
        others = tuple(k for k, axis in enumerate(table.axes) if axis not in axes)
        inside = np.asarray(table.values.any(axis=others))
        kept = tuple(axis for axis in table.axes if axis in axes)
        if not inside.any():
            return []
        if inside.all():
            continue
        parts = slices(inside.astype(np.float64), kept)
        each.append([{axis: one > 0 for axis, one in vectors.items()} for _, vectors in parts])
    count = 1
    for place, some in enumerate(each):
        count *= len(some)
        if count > MOST_BLOCKS:
            count //= len(some)
            each[place] = [_frame(some)]
    return [_joined(chosen) for chosen in product(*each)]


def _frame(blocks: Sequence[_Inside]) -> _Inside:
    """The smallest product of cells that holds several."""
    axes = set(blocks[0]).intersection(*blocks)
    return {axis: np.logical_or.reduce([one[axis] for one in blocks]) for axis in axes}


def _joined(parts: Sequence[_Inside]) -> _Inside:
    """The product of cells of several, which may share attributes where tables were not joined."""
    found: dict[int, NDArray[np.bool_]] = {}
    for part in parts:
        for axis, inside in part.items():
            found[axis] = inside & found[axis] if axis in found else inside
    return found


def _rows(block: _Inside, cells: Cells) -> tuple[Rows, ...]:
    found = []
    for axis, inside in sorted(block.items()):
        kept = np.flatnonzero(cells.over_cells(inside, axis))
        found.append(Rows.single(axis, kept, cells.domain.attributes[axis].labels))
    return tuple(found)
