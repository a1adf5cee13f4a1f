"""Aggregates of SQL → sums of products of small tables of weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.atoms import FALSE, TRUE
from lrm.batches.compiler.binned import Form, linear_form, represented
from lrm.batches.compiler.constants import constant, is_constant, number
from lrm.batches.compiler.cuts import Cut
from lrm.batches.compiler.expressions import shown
from lrm.batches.compiler.refusals import AGGREGATES, at_line, only, refuse, refuse_node
from lrm.batches.compiler.tables import (
    TOO_MANY,
    Table,
    Truth,
    aligned,
    all_of,
    fits,
    joined,
    negated,
)
from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from lrm.batches.compiler.predicates import Scope

__all__ = ["Summand", "Weighed", "Weights", "filtered", "weights"]

_NUMBERS = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "DOUBLE",
        "",  # known on no cell
    ]
)
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


def _scaled(inner: Weights, factor: Decimal, scope: Scope) -> Weights:
    """A multiple; errors of bins add up whatever the sign."""
    size = abs(float(factor)) if scope.measure == "binning" else float(factor)
    return tuple(Summand(one.coefficient * size, one.tables) for one in inner)


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


def _as_double(node: exp.Expr, scope: Scope) -> Weights:
    only(node, "this", "to", "_type")
    if node.args["to"].this not in (exp.DType.DOUBLE, exp.DType.FLOAT) or is_constant(node):
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
        raise refuse("COUNT(DISTINCT …)", "rows are counted as they are", node)
    if is_constant(inner) and type(inner) is not exp.Cast:
        if type(inner) is exp.Null:
            raise refuse("COUNT(NULL)", "it is always 0", node)
        constant(inner)
        return (Summand(1.0),)
    form = linear_form(inner, scope)
    if form is not None:
        nulls = [Truth((scope.spread(truths, axis),)) for axis, truths in form.present(scope)]
        return filtered((Summand(1.0),), all_of([negated(one) for one in nulls]))
    if type(inner) in (exp.Case, exp.If) and _holds_bins(inner, scope):
        measure, scope.measure = scope.measure, "presence"
        found = _summed(inner, scope)
        scope.measure = measure
        return found
    truth = _only_branch(inner, scope)
    if truth is None:
        held = inner.copy() if type(inner) is exp.Column else exp.Paren(this=inner.copy())
        truth = negated(scope.truths(exp.Is(this=held, expression=exp.Null())))
    return filtered((Summand(1.0),), truth)


def _only_branch(node: exp.Expr, scope: Scope) -> Truth | None:
    """The condition of ``CASE WHEN condition THEN constant END``; None for anything else."""
    if type(node) is exp.If:
        if node.args.get("false") is not None:
            return None
        condition, then = node.this, node.args["true"]
    elif type(node) is exp.Case and node.this is None and len(node.args["ifs"]) == 1:
        default = node.args.get("default")
        if default is not None and type(default) is not exp.Null:
            return None
        (branch,) = node.args["ifs"]
        condition, then = branch.this, branch.args["true"]
    else:
        return None
    if not is_constant(then) or type(then) is exp.Null:
        return None
    return scope.truths(condition)


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
        raise refuse("SUM(DISTINCT …)", "rows are counted as they are", node)
    return _summed(inner, scope)


def _summed(node: exp.Expr, scope: Scope) -> Weights:
    """What one row adds to a sum of an expression."""
    if type(node) in (exp.Case, exp.If) and (type(node) is exp.If or node.this is None):
        found = _case(node, scope)
        if found is not None:
            return found
    if is_constant(node) and type(node) is not exp.Cast:
        return (Summand(_constant_weight(node, scope)),)
    form = linear_form(node, scope)
    if form is not None:
        return _represented(node, form, scope)
    found_values = scope.values(node)
    if found_values.kind not in _NUMBERS and not found_values.kind.startswith("DECIMAL"):
        raise refuse(f"SUM({shown(node)})", f"it is {found_values.kind}, not a number", node)
    numbers = _measured(found_values.numbers(), scope)
    if scope.measure == "presence":
        numbers = found_values.present()
    if not np.all(np.isfinite(numbers)) or np.any(np.abs(numbers) > _EXACT):
        raise refuse(f"SUM({shown(node)})", "its values must be within ±2^53", node)
    table = scope.placed(found_values, numbers)
    cut = scope.placed(found_values, found_values.undecided)
    return (Summand(1.0, (Weighed(table.axes, table.values, cut.values),)),)


def _represented(node: exp.Expr, form: Form, scope: Scope) -> Weights:
    """A sum of numbers in bins, by representatives, over rows where none of them is NULL."""
    if scope.measure == "square" and len(form.columns) > 1:
        raise refuse(
            f"a variance of {shown(node)}", "of several columns in bins none is known", node
        )
    present = {
        axis: scope.spread((truths != TRUE).astype(np.float64), axis)
        for axis, truths in form.present(scope)
    }
    if scope.measure == "presence":
        return (Summand(1.0).times([_sure(one) for one in present.values()]),)
    found = []
    for axis, factor in form.columns:
        attribute = scope.domain.attributes[axis]
        values, halves, cut = represented(attribute)
        if cut.any():
            hint = "filter it away, or give representatives in the domain file"
            scope.cuts.append(Cut(node, f"{shown(node)} has no number for", axis, cut, hint))
        if scope.measure == "square":
            values = (factor * values + form.constant) ** 2
        elif scope.measure == "binning":
            values = abs(factor) * halves
        else:
            values = factor * values
        table, undecided = scope.spread(values, axis), scope.spread(cut, axis)
        own = Weighed(table.axes, table.values, undecided.values)
        others = [_sure(one) for other, one in present.items() if other != axis]
        kept = [_sure(present[axis])] if scope.measure == "square" else []
        found.append(Summand(1.0, (own,)).times([*others, *kept]))
    if form.constant and scope.measure == "value":
        found.append(Summand(form.constant).times([_sure(one) for one in present.values()]))
    return tuple(found)


def _sure(table: Table) -> Weighed:
    return Weighed(table.axes, table.values, np.zeros(table.values.shape, dtype=bool))


def _case(node: exp.Expr, scope: Scope) -> Weights | None:
    """Compile CASE with a number in each branch, or with one branch; None for another."""
    branches, default = _branches(node)
    if len(branches) == 1 and (default is None or type(default) is exp.Null):
        ((condition, then),) = branches
        return filtered(_summed(then, scope), scope.truths(condition))
    if len(branches) == 1 and default is not None and _holds_bins(node, scope):
        ((condition, then),) = branches
        truth, other = scope.truths(condition), _summed(default, scope)
        # ELSE is for the rows that the condition is not true of: all but those it is true of.
        return (*filtered(_summed(then, scope), truth), *other, *_minus(filtered(other, truth)))
    every = [then for _, then in branches] + ([default] if default is not None else [])
    if not all(is_constant(one) and type(one) is not exp.Cast for one in every):
        return None
    rest = 0.0 if default is None else _constant_weight(default, scope)
    weighed = [
        (scope.truths(condition), _constant_weight(then, scope)) for condition, then in branches
    ]
    if len(weighed) == 1 and rest == 0.0:
        truth, number_then = weighed[0]
        return filtered((Summand(number_then),), truth)
    return (Summand(1.0, (_first_true(weighed, rest),)),)


def _holds_bins(node: exp.Expr, scope: Scope) -> bool:
    """Whether a result of CASE, rather than a condition, is a column in bins."""
    branches, default = _branches(node)
    results = [then for _, then in branches] + ([default] if default is not None else [])
    return any(linear_form(one, scope) is not None for one in results)


def _minus(inner: Weights) -> Weights:
    return tuple(replace(one, coefficient=-one.coefficient) for one in inner)


def _branches(node: exp.Expr) -> tuple[list[tuple[exp.Expr, exp.Expr]], exp.Expr | None]:
    """The conditions and results of CASE or IF, and what ELSE gives."""
    if type(node) is exp.If:
        only(node, "this", "true", "false")
        return [(node.this, node.args["true"])], node.args.get("false")
    only(node, "ifs", "default")
    branches = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        branches.append((branch.this, branch.args["true"]))
    return branches, node.args.get("default")


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


def _measured(numbers: NDArray[np.float64], scope: Scope) -> NDArray[np.float64]:
    """What is added up of a number that is known: itself, its square, its error 0, or one."""
    if scope.measure in {"binning", "presence"}:
        return np.full_like(numbers, 0.0 if scope.measure == "binning" else 1.0)
    return numbers**2 if scope.measure == "square" else numbers


def _constant_weight(node: exp.Expr, scope: Scope) -> float:
    if type(node) is exp.Null:  # a NULL is left out of a sum
        return 0.0
    value = constant(node)
    if not isinstance(value, Decimal):
        raise at_line(node, f"expected a number to sum, got {shown(node)}")
    return float(_measured(np.array(float(value)), scope))


_KINDS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Weights]] = {
    exp.Paren: _inner,
    exp.Neg: _negative,
    exp.Add: _added,
    exp.Sub: _added,
    exp.Mul: _multiple,
    exp.Div: _quotient,
    exp.Cast: _as_double,
    exp.Coalesce: _or_zero,
    exp.Filter: _filter,
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
}
"""What each kind of node is compiled by."""
