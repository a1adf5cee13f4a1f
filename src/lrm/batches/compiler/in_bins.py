"""Functions of a number in bins, where they have one value on each cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.atoms import FALSE, NOT, NULL, TRUE, Truths
from lrm.batches.compiler.expressions import held, point_text, shown
from lrm.batches.compiler.monotone import chain, turning
from lrm.batches.compiler.refusals import at_line
from lrm.batches.compiler.tables import Table, Truth, all_of, any_of
from lrm.domain import Bins
from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lrm.batches.compiler.evaluation import CellColumn
    from lrm.batches.compiler.predicates import Scope

__all__ = ["column", "compared", "joined_truths", "spread"]

_UNKNOWN = -2  # the place of a value that differs within a cell


def column(scope: Scope, node: exp.Expr) -> CellColumn | None:
    """What is known of a monotone expression cell by cell; None for any other expression."""
    axis = _axis(scope, node)
    return None if axis is None else _known(scope, node, axis)


def compared(scope: Scope, node: exp.Expr) -> tuple[int, Truths] | None:
    """Answer a comparison of a monotone expression with a constant."""
    sides = [node.this, node.expression]
    moving = [side for side in sides if side.find(exp.Column) is not None]
    axis = _axis(scope, moving[0]) if len(moving) == 1 else None
    if axis is None:
        return None
    kinds = [type(node)]
    if type(node) in (exp.EQ, exp.NEQ):  # not monotone, but <= and >= are
        kinds = [exp.LTE, exp.GTE]
    found = []
    for kind in kinds:
        part = kind(this=node.this.copy(), expression=node.expression.copy())
        known = _known(scope, part, axis)
        bits = [TRUE if one else FALSE for one in known.values.to_pylist()]
        found.append(np.array([*bits, TRUE | FALSE, NULL], dtype=np.uint8)[known.places])
    truths = joined_truths(all_of, axis, found)
    if type(node) is exp.NEQ:
        truths = NOT[truths]
    scope.cut(node, axis, truths)
    return axis, truths


def spread(scope: Scope, node: exp.Expr) -> tuple[int, Truths] | None:
    """Answer IN and BETWEEN of a monotone expression, as comparisons with constants."""
    pairs: list[tuple[type[exp.Expr], exp.Expr]] = [(exp.EQ, item) for item in node.expressions]
    if type(node) is exp.Between:
        pairs = [(exp.GTE, node.args["low"]), (exp.LTE, node.args["high"])]
    found = []
    for kind, value in pairs:
        one = compared(scope, kind(this=held(node.this.copy()), expression=held(value.copy())))
        if one is None:
            return None
        found.append(one)
    if not found:
        return None
    combine = all_of if type(node) is exp.Between else any_of
    return found[0][0], joined_truths(combine, found[0][0], [truths for _, truths in found])


def joined_truths(
    combine: Callable[[Sequence[Truth]], Truth], axis: int, parts: Sequence[Truths]
) -> Truths:
    """AND or OR of conditions on one attribute, cell by cell."""
    (table,) = combine([Truth((Table((axis,), part),)) for part in parts]).tables
    return np.asarray(table.values)


def _axis(scope: Scope, node: exp.Expr) -> int | None:
    """The attribute in bins of which a node is a chain of monotone functions."""
    found = None if type(node) is exp.Column else chain(node)
    if found is None:
        return None
    axis = scope.axis(found)
    return axis if isinstance(scope.domain.attributes[axis], Bins) else None


def _known(scope: Scope, node: exp.Expr, axis: int) -> CellColumn:
    text = shown(node)
    found = scope.context.on_cells.get(text)
    if found is None:
        found = _evaluated(scope, node, axis)
        for condition in turning(node):
            turns = _evaluated(scope, condition, axis).places == _UNKNOWN
            found = replace(found, places=np.where(turns, _UNKNOWN, found.places))
        scope.context.on_cells[text] = found
    return found


def _evaluated(scope: Scope, node: exp.Expr, axis: int) -> CellColumn:
    try:
        return scope.context.evaluator.on_cells(shown(node), point_text(node, axis), axis)
    except SqlError as error:
        raise at_line(node, str(error)) from None
