"""COUNT, SUM and linear combinations of them → sums of products of small tables of weights."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.binned import linear_form
from lrm.batches.compiler.constants import constant, is_constant, number
from lrm.batches.compiler.derivations import is_linear
from lrm.batches.compiler.expressions import held, shown
from lrm.batches.compiler.refusals import AGGREGATES, DISTINCT, at_line, only, refuse, refuse_node
from lrm.batches.compiler.summands import Summand, Weights, filtered, multiplied
from lrm.batches.compiler.sums import present, summed
from lrm.batches.compiler.tables import Truth, all_of, negated
from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lrm.batches.compiler.predicates import Scope

__all__ = ["weights"]


def weights(node: exp.Expr, scope: Scope) -> Weights:
    """Compile COUNT, SUM, and linear combinations of them."""
    compiled = _KINDS.get(type(node))
    if compiled is not None:
        found = compiled(node, scope)
        counts = scope.measure == "binning" and type(node) in (exp.Count, exp.CountIf)
        return tuple(replace(one, coefficient=0.0) for one in found) if counts else found
    if type(node) is exp.Column:
        name = node.name
        raise refuse(f"column {name!r} without an aggregate", f"GROUP BY {name} to list it", node)
    raise refuse_node(node, AGGREGATES)


def _inner(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this")
    return weights(node.this, scope)


def _negative(node: exp.Expr, scope: Scope) -> Weights:
    return _scaled(_inner(node, scope), Decimal(-1), scope)


def _added(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this", "expression")
    left, right = (weights(side, scope) for side in (node.this, node.expression))
    return (*left, *(_scaled(right, Decimal(-1), scope) if type(node) is exp.Sub else right))


def _scaled(inner: Weights, factor: Decimal, scope: Scope) -> Weights:
    """A multiple; errors of bins add up whatever the sign."""
    size = abs(float(factor)) if scope.measure == "binning" else float(factor)
    return multiplied(inner, size)


def _cast(node: exp.Expr, scope: Scope) -> Weights:
    """Compile a cast that rounds nothing: `derivations` takes apart all others."""
    only(node, "this", "to", "_type")
    if is_constant(node) or not is_linear(node):
        raise refuse(shown(node), AGGREGATES, node)
    return weights(node.this, scope)


def _count_if(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this")
    return filtered((Summand(1.0),), scope.truths(node.this))


def _multiple(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this", "expression")
    left, right = _factor(node.this), _factor(node.expression)
    if left is not None and right is None:
        return _scaled(weights(node.expression, scope), left, scope)
    if right is None:
        raise refuse_node(node, AGGREGATES)
    return _scaled(weights(node.this, scope), right, scope)


def _quotient(node: exp.Expr, scope: Scope) -> Weights:
    """Compile ``aggregate / constant``, which is never rounded in DuckDB."""
    only(node, "this", "expression", "typed", "safe")
    divisor = _factor(node.expression)
    if divisor is None:
        raise refuse_node(node, AGGREGATES)
    if divisor == 0:
        raise at_line(node, "an aggregate is divided by 0")
    return _scaled(weights(node.this, scope), 1 / divisor, scope)


def _or_zero(node: exp.Expr, scope: Scope) -> Weights:
    """Compile ``COALESCE(aggregate, 0)``: a sum over no rows is 0 here anyway."""
    only(node, "this", "expressions")
    others = node.expressions
    if len(others) != 1 or not is_constant(others[0]) or constant(others[0]) != Decimal(0):
        raise refuse(shown(node), "only 0 may stand for a sum over no rows", node)
    return weights(node.this, scope)


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
    if type(node.this) not in (exp.Count, exp.Sum, exp.CountIf):
        raise refuse_node(node.this, AGGREGATES)
    where = node.expression
    only(where, "this")
    return filtered(weights(node.this, scope), scope.truths(where.this))


def _count(node: exp.Expr, scope: Scope) -> Weights:
    """Compile COUNT(*), and COUNT(expression), which counts what is not NULL."""
    only(node, "this", "big_int")
    inner = _bare(node.this)
    if inner is None or type(inner) is exp.Star:
        if inner is not None:
            only(inner)
        return (Summand(1.0),)
    if type(inner) is exp.Distinct:
        raise refuse("COUNT(DISTINCT …)", DISTINCT, node)
    if is_constant(inner) and type(inner) is not exp.Cast:
        if type(inner) is exp.Null:
            raise refuse("COUNT(NULL)", "it is always 0", node)
        constant(inner)
        return (Summand(1.0),)
    form = linear_form(inner, scope)
    if form is not None:
        nulls = [Truth((scope.spread(truths, axis),)) for axis, truths in form.present(scope)]
        return filtered((Summand(1.0),), all_of([negated(one) for one in nulls]))
    found = present(inner, scope)
    if found is not None:
        return found
    branch = _only_branch(inner)
    if branch is not None:
        condition, then = branch
        return filtered(_count(exp.Count(this=then.copy()), scope), scope.truths(condition))
    null = exp.Is(this=held(inner.copy()), expression=exp.Null())
    try:
        truth = negated(scope.truths(null))
    except SqlError as error:  # nobody wrote IS NULL
        raise SqlError(str(error).replace(shown(null), shown(inner))) from None
    return filtered((Summand(1.0),), truth)


def _only_branch(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The condition and the result of ``CASE WHEN … THEN … END``; None for anything else."""
    if type(node) is exp.If:
        condition, then, default = node.this, node.args["true"], node.args.get("false")
    elif type(node) is exp.Case and node.this is None and len(node.args["ifs"]) == 1:
        (branch,) = node.args["ifs"]
        condition, then, default = branch.this, branch.args["true"], node.args.get("default")
    else:
        return None
    if type(then) is exp.Null or (default is not None and type(default) is not exp.Null):
        return None
    return condition, then


def _bare(node: exp.Expr | None) -> exp.Expr | None:
    """What parentheses hold."""
    while type(node) is exp.Paren:
        only(node, "this")
        node = node.this
    return node


def _sum(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this")
    inner = _bare(node.this)
    if inner is None:
        raise refuse("SUM without an expression", AGGREGATES, node)
    if type(inner) is exp.Distinct:
        raise refuse("SUM(DISTINCT …)", DISTINCT, node)
    return summed(inner, scope)


_KINDS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Weights]] = {
    exp.Paren: _inner,
    exp.Neg: _negative,
    exp.Add: _added,
    exp.Sub: _added,
    exp.Mul: _multiple,
    exp.Div: _quotient,
    exp.Cast: _cast,
    exp.Coalesce: _or_zero,
    exp.Filter: _filter,
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
}
"""What each kind of node is compiled by."""
