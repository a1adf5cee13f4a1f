"""Aggregates of SQL → one weight per cell."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.atoms import TRUE, Truths
from lrm.batches.compiler.constants import constant, is_constant, number
from lrm.batches.compiler.predicates import Cut
from lrm.batches.compiler.refusals import AGGREGATES, at_line, only, refuse, refuse_node
from lrm.domain import Categories, Integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lrm.batches.compiler.predicates import Scope

__all__ = ["Weights", "filtered", "weights"]

_EXACT = 2**53  # integers up to here are exact as float64


@dataclass(frozen=True, eq=False)
class Weights:
    """What one row adds to an answer, per cell, broadcastable over the domain.

    ``undecided`` marks cells whose rows do not all add the same: they must be filtered
    away before the weights can be used.
    """

    values: NDArray[np.float64]
    undecided: NDArray[np.bool_]

    def scaled(self, factor: Decimal) -> Weights:
        """Return ``factor`` times these weights."""
        return Weights(self.values * float(factor), self.undecided)

    def plus(self, other: Weights) -> Weights:
        """Return the sum of two aggregates."""
        return Weights(self.values + other.values, self.undecided | other.undecided)


def filtered(inner: Weights, truths: Truths) -> Weights:
    """Keep the weights where a condition is true; null is not true."""
    surely, maybe = truths == TRUE, (truths & TRUE).astype(bool)
    values = np.where(surely, inner.values, 0.0)
    open_mask = maybe & ~surely & (inner.values != 0.0)
    return Weights(values, open_mask | (maybe & inner.undecided))


def weights(node: exp.Expr, scope: Scope) -> Weights:  # noqa: PLR0911 - one per kind of node
    """Compile COUNT(*), SUM(…), and linear combinations of them."""
    kind = type(node)
    if kind is exp.Paren:
        only(node, "this")
        return weights(node.this, scope)
    if kind is exp.Neg:
        only(node, "this")
        return weights(node.this, scope).scaled(Decimal(-1))
    if kind in (exp.Add, exp.Sub):
        only(node, "this", "expression")
        left, right = (_summand(side, scope) for side in (node.this, node.expression))
        return left.plus(right.scaled(Decimal(-1)) if kind is exp.Sub else right)
    if kind is exp.Mul:
        return _multiple(node, scope)
    if kind is exp.Filter:
        return _filter(node, scope)
    if kind is exp.Count:
        return _count(node, scope)
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
        return weights(node.expression, scope).scaled(left)
    if right is not None and left is None:
        return weights(node.this, scope).scaled(right)
    if left is None:
        raise refuse("a product of aggregates", "multiply by a constant only", node)
    raise refuse("a constant as an answer", AGGREGATES, node)


def _factor(node: exp.Expr) -> Decimal | None:
    """Read a constant factor, itself perhaps a product; None where it is no constant."""
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


def _count(node: exp.Expr, scope: Scope) -> Weights:
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
    one = (1,) * len(scope.domain.shape)
    return Weights(np.ones(one), np.zeros(one, dtype=bool))


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
    rest = _constant_weight(default, scope) if default is not None else _nothing(scope)
    for branch in reversed(node.args["ifs"]):
        only(branch, "this", "true")
        then = _constant_weight(branch.args["true"], scope)
        truths = scope.truths(branch.this)
        surely, maybe = truths == TRUE, (truths & TRUE).astype(bool)
        values = np.where(surely, then.values, rest.values)
        # A cut matters only where the two sides differ.
        open_mask = maybe & ~surely & (then.values != rest.values)
        rest = Weights(values, open_mask | (~surely & rest.undecided))
    return rest


def _constant_weight(node: exp.Expr, scope: Scope) -> Weights:
    if type(node) is exp.Null:  # a NULL is left out of a sum
        return _nothing(scope)
    if not is_constant(node):
        raise refuse(f"CASE … THEN {node.sql(dialect='duckdb')}", "give each branch a number", node)
    value = constant(node)
    if not isinstance(value, Decimal):
        raise at_line(node, f"a branch of CASE must be a number, not {value!s}")
    one = (1,) * len(scope.domain.shape)
    return Weights(np.full(one, float(value)), np.zeros(one, dtype=bool))


def _nothing(scope: Scope) -> Weights:
    one = (1,) * len(scope.domain.shape)
    return Weights(np.zeros(one), np.zeros(one, dtype=bool))


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
    return Weights(
        scope.spread(values, axis),  # type: ignore[arg-type] # same numbers, new shape
        scope.spread(undecided, axis),  # type: ignore[arg-type]
    )
