"""SUM(expression) → what each row adds, for expressions of every kind."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.atoms import TRUE
from lrm.batches.compiler.binned import Form, linear_form, represented
from lrm.batches.compiler.constants import constant, is_constant
from lrm.batches.compiler.cuts import Cut
from lrm.batches.compiler.expressions import shown
from lrm.batches.compiler.refusals import at_line, only, refuse
from lrm.batches.compiler.summands import Summand, Weighed, Weights, filtered, multiplied
from lrm.batches.compiler.tables import TOO_MANY, Table, Truth, aligned, fits
from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lrm.batches.compiler.predicates import Scope

__all__ = ["holds_bins", "summed"]

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


def summed(node: exp.Expr, scope: Scope) -> Weights:
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
        return filtered(summed(then, scope), scope.truths(condition))
    if len(branches) == 1 and default is not None and holds_bins(node, scope):
        ((condition, then),) = branches
        truth, other = scope.truths(condition), summed(default, scope)
        # ELSE is for the rows that the condition is not true of: all but those it is true of.
        return (
            *filtered(summed(then, scope), truth),
            *other,
            *multiplied(filtered(other, truth), -1.0),
        )
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


def holds_bins(node: exp.Expr, scope: Scope) -> bool:
    """Whether a result of CASE, rather than a condition, is a column in bins."""
    branches, default = _branches(node)
    results = [then for _, then in branches] + ([default] if default is not None else [])
    return any(linear_form(one, scope) is not None for one in results)


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
