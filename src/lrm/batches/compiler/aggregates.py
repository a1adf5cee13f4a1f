"""Aggregates of SQL → sums of products of small tables of weights."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.atoms import FALSE, TRUE
from lrm.batches.compiler.constants import constant, is_constant, number
from lrm.batches.compiler.predicates import Cut
from lrm.batches.compiler.refusals import AGGREGATES, at_line, only, refuse, refuse_node
from lrm.batches.compiler.tables import TOO_MANY, Table, Truth, aligned, fits, joined
from lrm.domain import Categories, Integers
from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lrm.batches.compiler.predicates import Scope

__all__ = ["Summand", "Weighed", "Weights", "filtered", "weights"]

_EXACT = 2**53  # integers up to here are exact as float64


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


def _scaled(inner: Weights, factor: Decimal) -> Weights:
    return tuple(Summand(one.coefficient * float(factor), one.tables) for one in inner)


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


def weights(node: exp.Expr, scope: Scope) -> Weights:  # noqa: PLR0911 - one per kind of node
    """Compile COUNT(*), SUM(…), and linear combinations of them."""
    kind = type(node)
    if kind is exp.Paren:
        only(node, "this")
        return weights(node.this, scope)
    if kind is exp.Neg:
        only(node, "this")
        return _scaled(weights(node.this, scope), Decimal(-1))
    if kind in (exp.Add, exp.Sub):
        only(node, "this", "expression")
        left, right = (_summand(side, scope) for side in (node.this, node.expression))
        return (*left, *(_scaled(right, Decimal(-1)) if kind is exp.Sub else right))
    if kind is exp.Mul:
        return _multiple(node, scope)
    if kind is exp.Filter:
        return _filter(node, scope)
    if kind is exp.Count:
        return _count(node)
    if kind is exp.Sum:
        return _sum(node, scope)
    if kind is exp.Column:
        name = node.name
        raise refuse(f"column {name!r} without an aggregate", f"GROUP BY {name} to list it", node)
    if is_constant(node):
        raise refuse("a constant as an answer", AGGREGATES, node)
    raise refuse_node(node, AGGREGATES)


def _summand(node: exp.Expr, scope: Scope) -> Weights:
    if is_constant(node):
        raise refuse("adding a constant", "a constant may multiply an aggregate", node.parent)
    return weights(node, scope)


def _multiple(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this", "expression")
    left, right = _factor(node.this), _factor(node.expression)
    if left is not None and right is None:
        return _scaled(weights(node.expression, scope), left)
    if right is not None and left is None:
        return _scaled(weights(node.this, scope), right)
    if left is None:
        raise refuse("a product of aggregates", "multiply by a constant only", node)
    raise refuse("a constant as an answer", AGGREGATES, node)


def _factor(node: exp.Expr) -> Decimal | None:
    """Read a constant factor, possibly a product; None if it is not a constant."""
    if type(node) is exp.Paren and not is_constant(node):
        return _factor(node.this)
    if type(node) is exp.Mul:
        left, right = _factor(node.this), _factor(node.expression)
        return None if left is None or right is None else left * right
    return number(node) if is_constant(node) else None


def _filter(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this", "expression")
    if type(node.this) not in (exp.Count, exp.Sum):
        raise refuse_node(node.this, AGGREGATES)
    where = node.expression
    only(where, "this")
    return filtered(weights(node.this, scope), scope.truths(where.this))


def _count(node: exp.Expr) -> Weights:
    only(node, "this", "big_int")
    if type(node.this) is not exp.Star:
        if type(node.this) is exp.Distinct:
            raise refuse("COUNT(DISTINCT …)", "rows are counted as they are", node)
        if type(node.this) is exp.Column:
            way_out = f"write COUNT(*) FILTER (WHERE {node.this.name} IS NOT NULL)"
        else:
            way_out = "write COUNT(*)"
        raise refuse(f"{node.sql(dialect='duckdb')}", way_out, node)
    only(node.this)
    return (Summand(1.0),)


def _sum(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this")
    if type(node.this) is exp.Case:
        return _case(node.this, scope)
    if type(node.this) is exp.Column:
        return _values(node.this, scope)
    if type(node.this) is exp.Distinct:
        raise refuse("SUM(DISTINCT …)", "rows are counted as they are", node)
    raise refuse(f"{node.sql(dialect='duckdb')}", AGGREGATES, node)


def _case(node: exp.Expr, scope: Scope) -> Weights:
    if node.this is not None:
        raise refuse("CASE with an operand", "write CASE WHEN state = 'NY' THEN …", node)
    only(node, "ifs", "default")
    default = node.args.get("default")
    rest = 0.0 if default is None else _constant_weight(default)
    branches = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        branches.append((scope.truths(branch.this), _constant_weight(branch.args["true"])))
    if len(branches) == 1 and rest == 0.0:
        truth, then = branches[0]
        return filtered((Summand(then),), truth)
    return (Summand(1.0, (_first_true(branches, rest),)),)


def _first_true(branches: Sequence[tuple[Truth, float]], default: float) -> Weighed:
    """The weight of the first branch whose condition is true, as one table."""
    if any(truth.negations for truth, _ in branches):
        raise SqlError(TOO_MANY)
    every = [table for truth, _ in branches for table in truth.tables]
    if not fits(every):
        raise SqlError(TOO_MANY)
    axes = tuple(sorted({axis for table in every for axis in table.axes}))
    values: NDArray[np.float64] = np.full((1,) * len(axes), default)
    undecided: NDArray[np.bool_] = np.zeros((1,) * len(axes), dtype=bool)
    for truth, then in reversed(branches):
        surely = np.ones((1,) * len(axes), dtype=bool)
        maybe = surely
        for table in truth.tables:
            truths = aligned(table, axes)
            surely = surely & (truths == TRUE)
            maybe = maybe & (truths & TRUE).astype(bool)
        # A cut matters only where the two sides differ.
        undecided = (maybe & ~surely & (then != values)) | (~surely & undecided)
        values = np.where(surely, then, values)
    shape = np.broadcast_shapes(*(aligned(table, axes).shape for table in every))
    return Weighed(axes, np.broadcast_to(values, shape), np.broadcast_to(undecided, shape))


def _constant_weight(node: exp.Expr) -> float:
    if type(node) is exp.Null:  # a NULL is left out of a sum
        return 0.0
    if not is_constant(node):
        raise refuse(f"CASE … THEN {node.sql(dialect='duckdb')}", "give each branch a number", node)
    value = constant(node)
    if not isinstance(value, Decimal):
        raise at_line(node, f"a branch of CASE must be a number, not {value!s}")
    return float(value)


def _values(node: exp.Expr, scope: Scope) -> Weights:
    """Compile SUM(attribute): the weight of a cell is its one declared value."""
    axis = scope.axis(node)
    attribute = scope.domain.attributes[axis]
    if isinstance(attribute, Integers) and attribute.width == 1:
        declared = attribute.starts
    elif isinstance(attribute, Categories) and attribute.value_type == "integer":
        declared = np.array(attribute.values, dtype=np.int64)
    else:
        raise refuse(
            f"SUM({attribute.name})",
            "its cells must be single integers with declared bounds "
            f"({attribute.name!r} is declared as {attribute.kind})",
            node,
        )
    if int(np.abs(declared).max()) > _EXACT:
        raise refuse(f"SUM({attribute.name})", "its values must be within ±2^53", node)
    values = np.zeros(attribute.size)
    values[: attribute.regular] = declared
    undecided = np.zeros(attribute.size, dtype=bool)
    undecided[attribute.regular :] = True
    null = attribute.special_cell("(null)")
    if null is not None:  # a NULL is left out of a sum
        undecided[null] = False
    scope.cuts.append(Cut(node, f"SUM({attribute.name}) has no one value on", axis, undecided))
    table, cut = scope.spread(values, axis), scope.spread(undecided, axis)
    return (Summand(1.0, (Weighed(table.axes, table.values, cut.values),)),)
