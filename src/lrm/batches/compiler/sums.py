"""SUM(expression) → what each row adds, for expressions of every kind."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from lrm.batches.compiler.atoms import TRUE
from lrm.batches.compiler.binned import Form, is_binned, linear_form, represented
from lrm.batches.compiler.constants import constant, is_constant
from lrm.batches.compiler.cuts import Cut
from lrm.batches.compiler.expressions import held, shown
from lrm.batches.compiler.refusals import at_line, only, refuse
from lrm.batches.compiler.summands import Summand, Weighed, Weights, filtered, multiplied
from lrm.batches.compiler.tables import TOO_MANY, Table, Truth, aligned, fits
from lrm.domain import Dates
from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lrm.batches.compiler.predicates import Measure, Scope

__all__ = ["present", "summed"]

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
_PIECES: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.Greatest: exp.GTE,
    exp.Least: exp.LT,
    exp.Abs: exp.GTE,
    exp.Coalesce: exp.Is,
}
"""Functions that are linear on each side of a constant: where they are their argument."""

_EXACT = 2**53  # integers up to here are exact as float64


def summed(node: exp.Expr, scope: Scope) -> Weights:
    """What one row adds to a sum of an expression."""
    node = _pieces(node, scope)
    if type(node) in (exp.Case, exp.If) and (type(node) is exp.If or node.this is None):
        found = _case(node, scope)
        if found is not None:
            return found
    if is_constant(node) and type(node) is not exp.Cast:
        return (Summand(_constant_weight(node, scope)),)
    form = linear_form(node, scope)
    if form is not None:
        return _represented(node, form, scope)
    factor, inner = _scale(node)
    if inner is not node and _sides(inner, scope) is not None:
        powers = {"value": factor, "square": factor**2, "presence": 1.0, "binning": abs(factor)}
        return multiplied(summed(inner, scope), powers[scope.measure])
    return _separate(node, scope) or _evaluated(node, scope)


def _evaluated(node: exp.Expr, scope: Scope) -> Weights:
    """The values of an expression on declared values."""
    values = scope.values(node)
    if values.kind not in _NUMBERS and not values.kind.startswith("DECIMAL"):
        raise refuse(f"SUM({shown(node)})", f"it is {values.kind}, not a number", node)
    numbers = _measured(values.numbers(), scope)
    if scope.measure == "presence":
        numbers = values.present()
    strange = ~np.isfinite(numbers) | (np.abs(numbers) > _EXACT)
    if strange.any():
        if len(values.axes) > 1:
            raise refuse(f"SUM({shown(node)})", "its values must be within ±2^53", node)
        (axis,), (classes,) = values.axes, values.classes
        cut = Cut(node, f"{shown(node)} has no number within ±2^53 on", axis, strange[classes])
        scope.cuts.append(cut)
    table = scope.placed(values, np.where(strange, 0.0, numbers))
    open_cells = scope.placed(values, values.undecided | strange)
    return (Summand(1.0, (Weighed(table.axes, table.values, open_cells.values),)),)


def present(node: exp.Expr, scope: Scope) -> Weights | None:
    """1 for rows on which an expression is not NULL, where no table of it is needed; else None."""
    node = _pieces(node, scope)
    apart = _sides(_scale(node)[1], scope) is not None
    if not apart and not (type(node) in (exp.Case, exp.If) and holds_bins(node, scope)):
        return None
    measure, scope.measure = scope.measure, "presence"
    found = summed(node, scope)
    scope.measure = measure
    return found


def _separate(node: exp.Expr, scope: Scope) -> Weights | None:
    """A sum, difference or product of two numbers that read different attributes.

    Σ(x + y) is Σx where y is known and Σy where x is, so that no table of both is needed; Σxy is
    one product. None for anything else.
    """
    sides = _sides(node, scope)
    if sides is None:
        return None
    sign, one_side, two_side = sides

    def of(measure: Measure) -> tuple[Weights, Weights]:
        before, scope.measure = scope.measure, measure
        found = tuple(
            _days(side, one_side, scope) or summed(side, scope) for side in (one_side, two_side)
        )
        scope.measure = before
        return found[0], found[1]

    if not sign or scope.measure == "presence":
        return _times(*of(scope.measure))
    (one, two), (there, too) = of("value"), of("presence")
    if scope.measure == "value":
        return (*_times(one, too), *multiplied(_times(there, two), sign))
    squares = of("square")
    both = multiplied(_times(one, two), 2.0 * sign)
    return (*_times(squares[0], too), *both, *_times(there, squares[1]))


def _sides(node: exp.Expr, scope: Scope) -> tuple[float, exp.Expr, exp.Expr] | None:
    """The sign (0 for a product) and the sides of what `_separate` takes."""
    while type(node) is exp.Paren:
        node = node.this
    if scope.measure == "binning" or type(node) not in {exp.Add, exp.Sub, exp.Mul, exp.DateDiff}:
        return None
    sides = (node.this, node.expression)
    if type(node) is exp.DateDiff:
        day = node.args.get("unit") is not None and node.args["unit"].name.casefold() == "day"
        if not day or not all(_is_day(side, scope) for side in sides):
            return None
    read = [_axes(side, scope) for side in sides]
    if not all(read) and not _has_constant(node, scope):
        return None
    if read[0] & read[1] or any(_reads_bins(axes, scope) for axes in read):
        return None
    dates = [_is_day(side, scope) for side in sides]
    if any(dates) and not (all(dates) and type(node) in {exp.Sub, exp.DateDiff}):
        return None
    sign = 1.0 if type(node) is exp.Add else 0.0 if type(node) is exp.Mul else -1.0
    return sign, *sides


def _has_constant(node: exp.Expr, scope: Scope) -> bool:
    """Whether one side of a sum is a number, and the other one is taken apart itself."""
    numbers = [_number(one) is not None for one in (node.this, node.expression)]
    other = node.expression if numbers[0] else node.this
    sums = type(node) in {exp.Add, exp.Sub} and sum(numbers) == 1
    return sums and _sides(_scale(other)[1], scope) is not None


def _scale(node: exp.Expr) -> tuple[float, exp.Expr]:
    """The constant that an expression is multiplied by, and what is multiplied.

    ``(a + b) / 3.0`` is a third of ``a + b``, so that both are added up by the same queries.
    """
    factor = 1.0
    while True:
        one = _number(node.this) if type(node) is exp.Mul else None
        two = _number(node.expression) if type(node) in {exp.Mul, exp.Div} else None
        if type(node) is exp.Paren:
            node = node.this
        elif type(node) is exp.Neg:
            factor, node = -factor, node.this
        elif two is not None and (two or type(node) is exp.Mul):
            factor, node = factor * two if type(node) is exp.Mul else factor / two, node.this
        elif one is not None:
            factor, node = factor * one, node.expression
        else:
            return factor, node


def _number(node: exp.Expr) -> float | None:
    """A constant number; None for anything else."""
    if not is_constant(node) or type(node) is exp.Cast:
        return None
    value = None if type(node) is exp.Null else constant(node)
    return float(value) if isinstance(value, Decimal) else None


def _is_day(node: exp.Expr, scope: Scope) -> bool:
    """Whether an expression is a column of single days."""
    if type(node) is not exp.Column:
        return False
    attribute = scope.domain.attributes[scope.axis(node)]
    return isinstance(attribute, Dates) and bool(np.all(attribute.starts == attribute.ends))


def _days(node: exp.Expr, first: exp.Expr, scope: Scope) -> Weights | None:
    """The days of a column of dates since the first that ``first`` declares; None for others."""
    if not _is_day(node, scope):
        return None
    axis = scope.axis(node)
    attribute, other = (scope.domain.attributes[scope.axis(one)] for one in (node, first))
    assert isinstance(attribute, Dates)  # noqa: S101 - just asked
    assert isinstance(other, Dates)  # noqa: S101 - both are or none
    null = attribute.special_cell("(null)")
    special = np.arange(attribute.size) >= attribute.regular
    days = np.zeros(attribute.size)
    days[: attribute.regular] = _measured((attribute.starts - other.starts[0]).astype(float), scope)
    unknown = special & (np.arange(attribute.size) != (-1 if null is None else null))
    if unknown.any():
        scope.cuts.append(Cut(node, f"{shown(node)} has no day on", axis, unknown))
    table, cut = scope.spread(days, axis), scope.spread(unknown, axis)
    return (Summand(1.0, (Weighed(table.axes, table.values, cut.values),)),)


def _reads_bins(axes: set[int], scope: Scope) -> bool:
    return any(is_binned(scope.domain.attributes[axis]) for axis in axes)


def _times(one: Weights, two: Weights) -> Weights:
    """The product of two sums over different attributes."""
    return tuple(a.times(b.tables, b.coefficient) for a in one for b in two)


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


def _pieces(node: exp.Expr, scope: Scope) -> exp.Expr:
    """GREATEST, LEAST and COALESCE with a constant, and ABS, of a number in bins, as CASE.

    On each side of the constant they are linear. GREATEST and LEAST ignore NULL, as in DuckDB.
    """
    while type(node) is exp.Paren:
        node = node.this
    if type(node) not in _PIECES or not _reads_bins(_axes(node, scope), scope):
        return node
    sides = [node.this, *node.expressions]
    if type(node) is exp.Abs:
        sides.append(exp.Literal.number(0))
    moving = [one for one in sides if one.find(exp.Column) is not None]
    fixed = [one for one in sides if one.find(exp.Column) is None]
    if len(moving) != 1 or len(fixed) != 1:
        return node
    (number,), (constant,) = moving, fixed
    inner = held(number.copy())
    condition = _PIECES[type(node)](this=inner, expression=held(constant.copy()))
    other = constant.copy()
    if type(node) is exp.Abs:
        other = exp.Neg(this=inner.copy())
    elif type(node) is exp.Coalesce:
        condition = exp.Not(this=exp.Is(this=inner, expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=condition, true=number.copy())], default=other)


def _axes(node: exp.Expr, scope: Scope) -> set[int]:
    return {scope.axis(one) for one in node.find_all(exp.Column)}


def _case(node: exp.Expr, scope: Scope) -> Weights | None:
    """Compile CASE with a number in each branch, or with numbers in bins; None for another."""
    branches, default = _branches(node)
    if len(branches) > 1 and holds_bins(node, scope):  # WHEN b is ELSE CASE WHEN b
        later = [exp.If(this=one.copy(), true=two.copy()) for one, two in branches[1:]]
        default = exp.Case(ifs=later, default=None if default is None else default.copy())
        branches = branches[:1]
    if len(branches) == 1 and (default is None or type(default) is exp.Null):
        ((condition, then),) = branches
        return filtered(summed(then, scope), scope.truths(condition))
    if default is not None and holds_bins(node, scope):
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
    """Whether a result of CASE, rather than a condition, is a number in bins."""
    branches, default = _branches(node)
    results = [then for _, then in branches] + ([default] if default is not None else [])
    plain = [_pieces(one, scope) for one in results]
    return any(
        holds_bins(one, scope)
        if type(one) is exp.If or (type(one) is exp.Case and one.this is None)
        else linear_form(one, scope) is not None
        for one in plain
    )


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
