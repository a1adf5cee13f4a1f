"""Linear aggregates → what one row adds: sums of products of small tables of weights.

The moment says what is added up of an expression: itself, its square, how far bins may be off, or
one where it is not NULL.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np

from lrm.domain import Dates, Numbers
from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.atoms import TRUE, represented
from lrm.queries.sql.cells import Cells, Cut
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.forms import Form, linear_form, reads_bins
from lrm.queries.sql.formulas import factor, is_linear, number
from lrm.queries.sql.refusals import AGGREGATES, fail, refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.tables import (
    TOO_MANY,
    Summand,
    Table,
    Truth,
    Weighed,
    Weights,
    aligned,
    all_of,
    filtered,
    fits,
    multiplied,
    negated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


Moment = Literal["value", "square", "size", "binning", "presence"]
"""What is added up of an expression: ``size`` is how far it is from 0 at most."""

_NUMBERS = frozenset(
    {
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT"),
        *("USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE"),
        "",  # known on no cell
    }
)
_EXACT = 2**53  # integers up to here are exact as float64


def weights(node: Expr, cells: Cells, moment: Moment) -> Weights:
    """Compile COUNT, SUM, and linear combinations of them."""
    if isinstance(node, ir.Aggregate) and node.name in {"COUNT", "SUM"}:
        added = _count(node, cells) if node.name == "COUNT" else summed(node.args[0], cells, moment)
        if node.name == "COUNT" and moment == "binning":
            added = tuple(replace(summand, coefficient=0.0) for summand in added)
        return added if node.where is None else filtered(added, cells.truths(node.where))
    if isinstance(node, ir.Negative):
        return _scaled(weights(node.this, cells, moment), Decimal(-1), moment)
    if isinstance(node, ir.Binary) and node.op in {"+", "-"}:
        left, right = (weights(side, cells, moment) for side in (node.left, node.right))
        return (*left, *(_scaled(right, Decimal(-1), moment) if node.op == "-" else right))
    if isinstance(node, ir.Binary) and node.op in {"*", "/"}:
        return _multiple(node, cells, moment)
    if isinstance(node, ir.Cast) and is_linear(node):
        return weights(node.this, cells, moment)
    if isinstance(node, ir.Call) and node.name == "COALESCE":
        if len(node.args) != 2 or number(node.args[1]) != 0:
            advice = "only 0 may stand for a sum over no rows"
            raise refuse("formula", shown(node), advice, node)
        return weights(node.args[0], cells, moment)
    raise _no_answer(node)


def _no_answer(node: Expr) -> SqlError:
    if isinstance(node, ir.Binary) and node.op == "//":
        advice = "divide by /, and round the released answer"
        return refuse("formula", "integer division of answers", advice, node)
    if isinstance(node, ir.Call):
        return refuse("formula", f"{node.name}()", AGGREGATES, node)
    return refuse("formula", shown(node), AGGREGATES, node)


def _scaled(inner: Weights, by: Decimal, moment: Moment) -> Weights:
    """A multiple; errors of bins add up whatever the sign."""
    return multiplied(inner, abs(float(by)) if moment == "binning" else float(by))


def _multiple(node: ir.Binary, cells: Cells, moment: Moment) -> Weights:
    """Compile ``2 * aggregate``, and ``aggregate / 2``, which is never rounded in DuckDB."""
    left, right = factor(node.left), factor(node.right)
    if node.op == "/" and right == 0:
        raise fail("formula", "an aggregate is divided by 0", node)
    if right is not None:
        by = right if node.op == "*" else 1 / right
        return _scaled(weights(node.left, cells, moment), by, moment)
    if left is None or node.op == "/":
        raise _no_answer(node)
    return _scaled(weights(node.right, cells, moment), left, moment)


def _count(node: ir.Aggregate, cells: Cells) -> Weights:
    """Compile COUNT(*), and COUNT(expression), which counts what is not NULL."""
    if not node.args:
        return (Summand(1.0),)
    inner = node.args[0]
    form = linear_form(inner, cells)
    if form is not None:
        nulls = [Truth((cells.spread(truths, axis),)) for axis, truths in form.present(cells)]
        return filtered((Summand(1.0),), all_of([negated(null_truth) for null_truth in nulls]))
    pieces = _pieces(inner, cells)
    in_bins = isinstance(pieces, ir.Case) and holds_bins(pieces, cells)
    if in_bins or _sides(_scale(pieces)[1], cells, "presence") is not None:
        return summed(pieces, cells, "presence")
    if isinstance(inner, ir.Case):
        branch = inner.only_branch
        if branch is not None and not isinstance(branch[1], ir.Null):
            condition, then = branch
            counted_args = () if ir.is_constant(then) else (then,)
            return filtered(
                _count(replace(node, args=counted_args), cells), cells.truths(condition)
            )
    if isinstance(inner, ir.Attribute):
        return filtered((Summand(1.0),), negated(cells.truths(ir.IsNull(inner, at=inner.at))))
    null_values = cells.values(ir.IsNull(inner, at=inner.at), shown(inner))
    null = Truth((cells.placed(null_values, null_values.truths()),))
    return filtered((Summand(1.0),), negated(null))


# sums of expressions


def summed(node: Expr, cells: Cells, moment: Moment) -> Weights:
    """What one row adds to a sum of an expression."""
    node = _pieces(node, cells)
    if isinstance(node, ir.Case):
        case_weights = _case(node, cells, moment)
        if case_weights is not None:
            return case_weights
    if ir.is_constant(node):
        return (Summand(_constant(node, moment)),)
    form = linear_form(node, cells)
    if form is not None:
        return _represented(node, form, cells, moment)
    by, inner = _scale(node)
    if inner is not node and _sides(inner, cells, moment) is not None:
        powers = {"value": by, "square": by**2, "presence": 1.0}
        return multiplied(summed(inner, cells, moment), powers.get(moment, abs(by)))
    return _separate(node, cells, moment) or _evaluated(node, cells, moment)


def _constant(node: Expr, moment: Moment) -> float:
    if isinstance(node, ir.Null):  # a NULL is left out of a sum
        return 0.0
    if not isinstance(node, ir.Number):
        raise fail("constant", f"expected a number to sum, got {shown(node)}", node)
    return float(_measured(np.array(float(node.text)), moment))


def _measured(numbers: NDArray[np.float64], moment: Moment) -> NDArray[np.float64]:
    """What is added up of a number that is known: itself, its square, its error 0, or one."""
    if moment in {"binning", "presence"}:
        return np.full_like(numbers, 0.0 if moment == "binning" else 1.0)
    if moment == "size":
        return np.abs(numbers)
    return numbers**2 if moment == "square" else numbers


def _evaluated(node: Expr, cells: Cells, moment: Moment) -> Weights:
    """The values of an expression on declared values."""
    try:
        values = cells.values(node)
    except SqlError as error:
        if error.code != "cut":
            raise
        raise refuse("cut", f"SUM({shown(node)})", _added(node, cells), node) from None
    if values.kind not in _NUMBERS and not values.kind.startswith("DECIMAL"):
        advice = f"it is {values.kind}, not a number"
        raise refuse("constant", f"SUM({shown(node)})", advice, node)
    numbers = values.present() if moment == "presence" else _measured(values.numbers(), moment)
    strange = ~np.isfinite(numbers) | (np.abs(numbers) > _EXACT)
    if strange.any():
        if len(values.axes) > 1:
            advice = "its values must be within ±2^53"
            raise refuse("size", f"SUM({shown(node)})", advice, node)
        (axis,), (classes,) = values.axes, values.classes
        sentence = f"{shown(node)} has no number within ±2^53 on"
        cells.cuts.append(Cut(node, sentence, axis, strange[classes]))
    table = cells.placed(values, np.where(strange, 0.0, numbers))
    open_cells = cells.placed(values, values.undecided | strange)
    return (Summand(1.0, (Weighed(table.axes, table.values, open_cells.values),)),)


def _added(node: Expr, cells: Cells) -> str:
    """Which sums of numbers in bins and by knots are known."""
    names = [cells.domain.names[axis] for axis in sorted(node.axes)]
    by_knots = [name for name in names if isinstance(cells.domain.attribute(name), Numbers)]
    if len(by_knots) > 1:
        listed = " and ".join(map(repr, by_knots))
        return (
            f"{listed} are declared by knots, and their product is not known: declare one as "
            "integers or in bins, or have the owner of the table add a column of the product"
        )
    return (
        "numbers in bins and by knots are added up as a column, its multiples, and sums and "
        "products of different columns; have the owner of the table add a column for it"
    )


def _separate(node: Expr, cells: Cells, moment: Moment) -> Weights | None:
    """A sum, difference or product of two numbers that read different attributes.

    Σ(x + y) is Σx where y is known and Σy where x is, so that no table of both is needed; Σxy is
    one product. None for anything else.
    """
    sides = _sides(node, cells, moment)
    if sides is None:
        return None
    sign, one_side, two_side = sides

    def of(what: Moment) -> tuple[Weights, Weights]:
        side_weights = tuple(
            _days(side, one_side, cells, what) or summed(side, cells, what)
            for side in (one_side, two_side)
        )
        return side_weights[0], side_weights[1]

    if moment == "presence" or (not sign and moment != "binning"):
        return _times(*of(moment))
    if not sign:  # |xy − x̂ŷ| is at most |x̂|·|y − ŷ| + |x − x̂|·|ŷ| + |x − x̂|·|y − ŷ|
        (large, wide), (near, far) = of("size"), of("binning")
        return (*_times(large, far), *_times(near, wide), *_times(near, far))
    if moment in {"binning", "size"}:
        (near, far), (there, too) = of(moment), of("presence")
        return (*_times(near, too), *_times(there, far))
    (left_values, two), (there, too) = of("value"), of("presence")
    if moment == "value":
        return (*_times(left_values, too), *multiplied(_times(there, two), sign))
    squares = of("square")
    both = multiplied(_times(left_values, two), 2.0 * sign)
    return (*_times(squares[0], too), *both, *_times(there, squares[1]))


def _sides(node: Expr, cells: Cells, moment: Moment) -> tuple[float, Expr, Expr] | None:
    """The sign (0 for a product) and the sides of what `_separate` takes."""
    if isinstance(node, ir.Binary) and node.op in {"+", "-", "*"}:
        sides, step = (node.left, node.right), node.op
    elif isinstance(node, ir.Call) and node.name == "DATE_DIFF" and node.pieces is not None:
        sides, step = (node.args[1], node.args[0]), "days"
        if "'day'" not in node.pieces[0]:
            return None
    else:
        return None
    read = [side.axes for side in sides]
    if not all(read) and not _has_constant(step, sides, cells, moment):
        return None
    if read[0] & read[1] or (step == "*" and all(_by_knots(axes, cells) for axes in read)):
        return None
    dates = [_day_column(side, cells) is not None for side in sides]
    if (any(dates) or step == "days") and not (all(dates) and step in {"-", "days"}):
        return None
    return {"+": 1.0, "*": 0.0}.get(step, -1.0), *sides


def _by_knots(axes: frozenset[int], cells: Cells) -> bool:
    """Whether a number is divided between knots: a product of two such is not known."""
    return any(isinstance(cells.domain.attributes[axis], Numbers) for axis in axes)


def _has_constant(step: str, sides: tuple[Expr, Expr], cells: Cells, moment: Moment) -> bool:
    """Whether one side of a sum is a number, and the other one is decomposed itself."""
    numbers = [number(side) is not None for side in sides]
    other = sides[1] if numbers[0] else sides[0]
    sums = step in {"+", "-"} and sum(numbers) == 1
    return sums and _sides(_scale(other)[1], cells, moment) is not None


def _scale(node: Expr) -> tuple[float, Expr]:
    """The constant that an expression is multiplied by, and what is multiplied.

    ``(a + b) / 3.0`` is a third of ``a + b``, so that both are added up by the same queries.
    """
    by = 1.0
    while True:
        if isinstance(node, ir.Negative):
            by, node = -by, node.this
            continue
        if not isinstance(node, ir.Binary) or node.op not in {"*", "/"}:
            return by, node
        left_number, two = number(node.left), number(node.right)
        if two is not None and (two or node.op == "*"):
            by, node = by * float(two) if node.op == "*" else by / float(two), node.left
        elif left_number is not None and node.op == "*":
            by, node = by * float(left_number), node.right
        else:
            return by, node


def _day_column(node: Expr, cells: Cells) -> tuple[int, Dates] | None:
    """The place and the attribute of a column of single days; None for any other expression."""
    axis = node.axis if isinstance(node, ir.Attribute) else None
    attribute = None if axis is None else cells.domain.attributes[axis]
    if axis is None or not isinstance(attribute, Dates):
        return None
    return (axis, attribute) if np.array_equal(attribute.starts, attribute.ends) else None


def _days(node: Expr, first: Expr, cells: Cells, moment: Moment) -> Weights | None:
    """The days of a column of dates since the first that ``first`` declares; None for others."""
    column, origin = _day_column(node, cells), _day_column(first, cells)
    if column is None or origin is None:  # both are such columns, or none
        return None
    (axis, attribute), (_, other) = column, origin
    null = attribute.special_cell("(null)")
    special = np.arange(attribute.size) >= attribute.regular
    days = np.zeros(attribute.size)
    since = (attribute.starts - other.starts[0]).astype(float)
    days[: attribute.regular] = _measured(since, moment)
    unknown = special & (np.arange(attribute.size) != (-1 if null is None else null))
    if unknown.any():
        cells.cuts.append(Cut(node, f"{shown(node)} has no day on", axis, unknown))
    table, cut = cells.spread(days, axis), cells.spread(unknown, axis)
    return (Summand(1.0, (Weighed(table.axes, table.values, cut.values),)),)


def _times(left_weights: Weights, two: Weights) -> Weights:
    """The product of two sums over different attributes."""
    return tuple(a.times(b.tables, b.coefficient) for a in left_weights for b in two)


def _represented(node: Expr, form: Form, cells: Cells, moment: Moment) -> Weights:
    """A sum of numbers in bins, by representatives, over rows where none of them is NULL."""
    if moment == "square" and len(form.columns) > 1:
        advice = "of several columns in bins none is known"
        raise refuse("aggregate", f"a variance of {shown(node)}", advice, node)
    present = {
        axis: _sure(cells.spread((truths != TRUE).astype(np.float64), axis))
        for axis, truths in form.present(cells)
    }
    if moment == "presence":
        return (Summand(1.0).times(present.values()),)
    summands = []
    for axis, by in form.columns:
        attribute = cells.domain.attributes[axis]
        values, halves, cut = represented(attribute)
        if cut.any():
            hint = "filter it away, or give representatives in the domain file"
            cells.cuts.append(Cut(node, f"{shown(node)} has no number for", axis, cut, hint))
        if moment == "square":
            with np.errstate(over="ignore"):
                values = (by * values + form.constant) ** 2
            if not np.isfinite(values).all():
                advice = "its squares are too large"
                raise refuse("size", f"a variance of {shown(node)}", advice, node)
        elif moment == "size":
            values = np.abs(by * values)
        else:
            values = abs(by) * halves if moment == "binning" else by * values
        table, undecided = cells.spread(values, axis), cells.spread(cut, axis)
        axis_table = Weighed(table.axes, table.values, undecided.values)
        other_tables = [
            presence for other, presence in present.items() if other != axis or moment == "square"
        ]
        summands.append(Summand(1.0, (axis_table,)).times(other_tables))
    if form.constant and moment in {"value", "size"}:
        constant = form.constant if moment == "value" else abs(form.constant)
        summands.append(Summand(constant).times(present.values()))
    return tuple(summands)


def _sure(table: Table) -> Weighed:
    return Weighed(table.axes, table.values, np.zeros(table.values.shape, dtype=bool))


def _pieces(node: Expr, cells: Cells) -> Expr:
    """GREATEST, LEAST and COALESCE with a constant, and ABS, of a number in bins, as CASE.

    On each side of the constant they are linear. GREATEST and LEAST ignore NULL, as in DuckDB.
    """
    if not isinstance(node, ir.Call) or node.name not in {"GREATEST", "LEAST", "ABS", "COALESCE"}:
        return node
    if not reads_bins(node.axes, cells):
        return node
    sides = (*node.args, ir.Number("0")) if node.name == "ABS" else node.args
    moving = [side for side in sides if side.axes]
    fixed = [side for side in sides if not side.axes]
    if len(moving) != 1 or len(fixed) != 1:
        return node
    (this,), (other,) = moving, fixed
    step = "<" if node.name == "LEAST" else ">="
    condition: Expr = ir.Binary(step, this, other, at=this.at)
    if node.name == "ABS":
        other = ir.Negative(this, at=this.at)
    elif node.name == "COALESCE":
        condition = ir.Not(ir.IsNull(this, at=this.at), at=this.at)
    return ir.Case((condition,), (this,), other, at=node.at)


def _case(node: ir.Case, cells: Cells, moment: Moment) -> Weights | None:
    """Compile CASE with a number in each branch, or with numbers in bins; None for another."""
    if len(node.conditions) > 1 and holds_bins(node, cells):  # WHEN b is ELSE CASE WHEN b
        later = replace(node, conditions=node.conditions[1:], results=node.results[1:])
        node = ir.Case(node.conditions[:1], node.results[:1], later, at=node.at)
    branch = node.only_branch
    if branch is not None:
        condition, then = branch
        return filtered(summed(then, cells, moment), cells.truths(condition))
    if node.default is not None and holds_bins(node, cells):
        truth = cells.truths(node.conditions[0])
        other = summed(node.default, cells, moment)
        # ELSE is for the rows that the condition is not true of: all but those it is true of.
        return (
            *filtered(summed(node.results[0], cells, moment), truth),
            *other,
            *multiplied(filtered(other, truth), -1.0),
        )
    if not all(ir.is_constant(outcome) for outcome in node.outcomes):
        return None
    rest = 0.0 if node.default is None else _constant(node.default, moment)
    weighed = [
        (cells.truths(condition), _constant(then, moment))
        for condition, then in zip(node.conditions, node.results, strict=True)
    ]
    if len(weighed) == 1 and rest == 0.0:
        truth, then_weight = weighed[0]
        return filtered((Summand(then_weight),), truth)
    return (Summand(1.0, (_first_true(weighed, rest),)),)


def holds_bins(node: ir.Case, cells: Cells) -> bool:
    """Whether a result of CASE, rather than a condition, is a number in bins."""
    plain = [_pieces(outcome, cells) for outcome in node.outcomes]
    return any(
        holds_bins(outcome, cells)
        if isinstance(outcome, ir.Case)
        else linear_form(outcome, cells) is not None
        or (
            reads_bins(outcome.axes, cells)
            and _sides(_scale(outcome)[1], cells, "value") is not None
        )
        for outcome in plain
    )


def _first_true(branches: Sequence[tuple[Truth, float]], default: float) -> Weighed:
    """The weight of the first branch whose condition is true, as one table."""
    every = [table for truth, _ in branches for table in truth.tables]
    if any(truth.negations for truth, _ in branches) or not fits(every):
        raise SqlError(TOO_MANY, code="size")
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
