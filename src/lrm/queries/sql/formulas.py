"""Answers → formulas over linear aggregates.

``AVG``, quotients of aggregates, ``VARIANCE`` and shares of a total are decomposed here; their
linear parts are compiled, and planned, like every other answer. Aggregates of numbers are in
`statistics`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.refusals import ADVICE, AGGREGATES, fail, refuse
from lrm.queries.sql.render import shown
from lrm.queries.sql.statistics import STATISTICS, Asked, Leaf, Middle, Size, Steps

_ARITHMETIC = frozenset("+-*/")
_FUNCTIONS = {"SQRT": "sqrt", "LN": "ln", "EXP": "exp", "ABS": "abs"}
_FOLDED: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_LINEAR = frozenset({"COUNT", "SUM"})
_MOST_DIGITS = 12


def asked(node: Expr, middle: Middle) -> Asked:
    """Split an answer into its linear parts; ``middle`` estimates an expression."""
    formula = Asked(middle=middle)
    if isinstance(node, ir.Aggregate) and node.level is not None:
        formula.leaves.append(Leaf(ir.Aggregate("COUNT", (), node.where, at=node.at)))
        formula.steps, formula.quantile = [0], node
        return formula
    if not node.has(ir.Aggregate, ir.Window, ir.Apart) and node.axes:
        raise _no_aggregate(node)
    formula.steps = _steps(node, formula)
    if not formula.leaves:
        raise refuse("no-answer", "a constant as an answer", AGGREGATES, node)
    return formula


def _no_aggregate(node: Expr) -> Exception:
    if isinstance(node, ir.Attribute | ir.LookedUp):
        sentence = f"column {shown(node)!r} must appear in GROUP BY or inside an aggregate"
        return fail("group-by", sentence, node)
    advice = "rows are never listed: GROUP BY it, or add it up with SUM or AVG"
    return refuse("group-by", f"{shown(node)} without an aggregate", advice, node)


def number(node: Expr) -> Decimal | None:
    """The number that a literal is; None for anything else."""
    return Decimal(node.text) if isinstance(node, ir.Number) else None


def factor(node: Expr) -> Decimal | None:
    """A constant factor, possibly a product; None if it is not a constant."""
    if isinstance(node, ir.Binary) and node.op == "*":
        left, right = factor(node.left), factor(node.right)
        return None if left is None or right is None else left * right
    return number(node)


def is_linear(node: Expr) -> bool:  # noqa: PLR0911 - one per kind
    """Whether an aggregate is a sum over rows, as far as its form tells."""
    if isinstance(node, ir.Aggregate):
        return node.name in _LINEAR
    if isinstance(node, ir.Binary):
        left, right = is_linear(node.left), is_linear(node.right)
        if node.op in {"+", "-"}:
            return left and right
        by = node.op in {"*", "/"} and left and factor(node.right) is not None
        return by or (node.op == "*" and right and factor(node.left) is not None)
    if isinstance(node, ir.Negative):
        return is_linear(node.this)
    if isinstance(node, ir.Call) and node.name == "COALESCE":
        return is_linear(node.args[0])
    if isinstance(node, ir.Cast) and not node.safe:  # a count is not rounded
        digits = ir.rounded_digits(node)
        whole = digits is not None and _is_whole(node.this)
        return is_linear(node.this) if digits == math.inf else whole
    return False


def _is_whole(node: Expr) -> bool:
    """Whether an aggregate is a whole number: a count, or a sum of counts."""
    if isinstance(node, ir.Binary) and node.op in {"+", "-"}:
        return _is_whole(node.left) and _is_whole(node.right)
    return isinstance(node, ir.Aggregate) and node.name == "COUNT"


def is_rank(node: Expr) -> bool:
    """Whether a node is a window over displayed answers, rather than one that adds them up.

    It numbers the groups, chooses among their answers, is in the order of these, or adds up rates.
    """
    if not isinstance(node, ir.Window) or node.name == "WITHIN":
        return False
    if node.name in ir.RANKS or node.name in ir.CHOOSING:
        return True
    (inner, *_), is_sum = node.args, node.name in {"SUM", "AVG"}
    if not inner.has(ir.Aggregate) or any(key.has(ir.Aggregate) for key in node.order):
        return True
    return is_sum and not is_linear(inner)


def _steps(node: Expr, formula: Asked) -> Steps:
    if is_linear(node):
        return [formula.leaf(node)]
    constant = number(node)
    if constant is not None:
        return [float(constant)]
    if node.axes and not node.has(ir.Aggregate, ir.Window, ir.Apart, ir.GroupCount):
        return _of_group(node, formula)
    split = _KINDS.get(type(node))
    # What cannot be decomposed is left to the compiler of linear answers, which says why.
    return [formula.leaf(node)] if split is None else split(node, formula)


def _negative(node: ir.Negative, formula: Asked) -> Steps:
    return [*_steps(node.this, formula), -1.0, "*"]


def _unrounded(steps: Steps, node: Expr) -> Steps:
    if "round" in steps:
        raise refuse("formula", "ROUND within a formula", "round the whole answer", node)
    return steps


def _binary(node: ir.Binary, formula: Asked) -> Steps:
    if node.op not in _ARITHMETIC:
        return [formula.leaf(node)]
    left, right = _steps(node.left, formula), _steps(node.right, formula)
    return _combined(node.op, left, right, node)


def _combined(step: str, left: Steps, right: Steps, node: Expr) -> Steps:
    """``left step right``, with a constant in the second place wherever that is the same."""
    left_constant = left[0] if len(left) == 1 and isinstance(left[0], float) else None
    two = right[0] if len(right) == 1 and isinstance(right[0], float) else None
    if left_constant is None and two is None:
        _unrounded([*left, *right], node)
    if step == "/" and two == 0:
        raise fail("formula", "an aggregate is divided by 0", node)
    if left_constant is not None and two is not None:
        return [_FOLDED[step](left_constant, two)]
    if left_constant is not None:
        if step in "+*":
            return [*right, left_constant, step]
        if step == "-":
            return [*right, -1.0, "*", left_constant, "+"]
        _unrounded(right, node)
    made: list[Any] = [*left, *right, step]
    return made


def _extreme(node: ir.Call, formula: Asked) -> Steps:
    """``GREATEST(a, b)`` as (a + b + |a − b|) / 2, and ``LEAST`` as (a + b − |a − b|) / 2."""
    steps, *others = (_unrounded(_steps(part, formula), node) for part in node.args)
    for other in others:
        total = _combined("+", steps, other, node)
        gap = [*_combined("-", steps, other, node), "abs"]
        steps = [*total, *gap, "+" if node.name == "GREATEST" else "-", 0.5, "*"]
    return steps


def _call(node: ir.Call, formula: Asked) -> Steps:
    if node.name in _FUNCTIONS:
        return [*_unrounded(_steps(node.args[0], formula), node), _FUNCTIONS[node.name]]
    split = _CALLS.get(node.name)
    return [formula.leaf(node)] if split is None else split(node, formula)


def _power(node: ir.Call, formula: Asked) -> Steps:
    """Squares, cubes and roots."""
    inner = _unrounded(_steps(node.args[0], formula), node)
    exponent = number(node.args[1])
    if exponent == Decimal("0.5"):
        return [*inner, "sqrt"]
    if exponent not in {Decimal(1), Decimal(2), Decimal(3)}:
        raise refuse("formula", shown(node), "exponents are 0.5, 2 and 3", node)
    return [*inner, *(step for _ in range(int(exponent) - 1) for step in (*inner, "*"))]


def _rounded(node: ir.Call, formula: Asked) -> Steps:
    digit_number = number(node.args[1]) if len(node.args) > 1 else Decimal(0)
    digits = float(digit_number) if digit_number is not None else 0.5
    if digits != round(digits) or abs(digits) > _MOST_DIGITS:
        sentence = f"ROUND takes between -{_MOST_DIGITS} and {_MOST_DIGITS} digits"
        raise fail("formula", sentence, node)
    return [*_steps(node.args[0], formula), digits, "round"]


def _unless(node: ir.Call, formula: Asked) -> Steps:
    """``NULLIF(aggregate, 0)``, which only what is divided by may be, and ``COALESCE(…, 0)``."""
    zero_args, first = node.args[1:], node.args[0]
    if len(zero_args) != 1 or number(zero_args[0]) != 0:
        raise refuse("formula", shown(node), "only 0 is allowed as the default", node)
    moved = isinstance(first, ir.Window) and first.name in {"LAG", "LEAD"}
    if node.name == "COALESCE" and isinstance(first, ir.Window) and moved:
        return _steps(replace(first, args=(*first.args[:2], zero_args[0])), formula)
    steps = _steps(node.args[0], formula)
    return _or_else(steps) if node.name == "COALESCE" else steps


def _or_else(steps: Steps) -> Steps:
    """The same formula, and 0 where it has no value: a count of rows is 0."""
    return [*steps, 0.0, "else"] if "/" in steps or "ln" in steps else steps


def _cast(node: ir.Cast, formula: Asked) -> Steps:
    """CAST to a float leaves an answer as it is, and one to integers and decimals rounds it."""
    inner, digits = _steps(node.this, formula), ir.rounded_digits(node)
    if digits is None:
        found_ = f"CAST of an aggregate to {node.to}"
        raise refuse("formula", found_, "cast it to DOUBLE", node)
    return inner if digits == math.inf else [*inner, digits, "round"]


def guarded(node: ir.Case) -> tuple[Expr, Expr] | None:
    """What ``CASE WHEN d = 0 THEN NULL ELSE … / d END`` divides, and what else it gives."""
    guard = _zero_guard(node)
    sides = (node.results[0], node.default or ir.Null())
    compared = isinstance(guard, ir.Binary) and guard.op in {"=", ">", "<>"}
    if len(node.conditions) != 1 or not isinstance(guard, ir.Binary) or not compared:
        return None
    guarded_side, other = sides if guard.op in {">", "<>"} else sides[::-1]
    is_count = isinstance(guard.left, ir.Aggregate) and guard.left.name == "COUNT"
    none = isinstance(other, ir.Null) or number(other) == 0
    divided = [
        division
        for division in guarded_side.walk()
        if isinstance(division, ir.Binary) and division.op in {"/", "div"}
    ]
    zero = number(guard.right) == 0 and (guard.op != ">" or is_count)
    divides = any(_divisor(division) == guard.left for division in divided)
    return (guarded_side, other) if zero and none and divides else None


def _guarded(node: ir.Case, formula: Asked) -> Steps:
    """``CASE WHEN d = 0 THEN NULL ELSE … / d END``, which is ``… / NULLIF(d, 0)``."""
    parts = guarded(node)
    if parts is None:
        advice = "of aggregates, CASE WHEN d = 0 THEN NULL ELSE … / d END is supported"
        raise refuse("formula", shown(node), advice, node)
    steps = _steps(parts[0], formula)
    return steps if isinstance(parts[1], ir.Null) else _or_else(steps)


def _zero_guard(node: ir.Case) -> Expr:
    """The comparison with 0 that a CASE is guarded by.

    Snowflake's ``DIV0(a, b)`` is 0 where ``b = 0 AND a IS NOT NULL``, and ``DIV0NULL`` where ``b =
    0 OR b IS NULL``: a sum is never NULL here.
    """
    guard = node.conditions[0]
    if not isinstance(guard, ir.And | ir.Or) or len(guard.items) != 2:
        return guard
    first, inner = guard.items
    if isinstance(guard, ir.And):
        if not isinstance(inner, ir.Not):
            return guard
        inner = inner.this
    quotient = node.default
    divided = isinstance(quotient, ir.Binary) and quotient.op == "/"
    if not isinstance(inner, ir.IsNull) or not divided or not isinstance(quotient, ir.Binary):
        return guard
    expected = quotient.left if isinstance(guard, ir.And) else quotient.right
    return first if inner.this == expected and is_linear(inner.this) else guard


def _divisor(node: ir.Binary) -> Expr:
    """What a quotient divides by, whatever it is cast to."""
    divisor = node.right
    while isinstance(divisor, ir.Cast) or (
        isinstance(divisor, ir.Call) and divisor.name == "NULLIF"
    ):
        divisor = divisor.children[0]
    return divisor


def _apart(node: ir.Apart, formula: Asked) -> Steps:
    before = formula.apart, formula.window
    formula.apart, formula.window = True, None  # the same in all groups
    steps = _steps(node.this, formula)
    formula.apart, formula.window = before
    return steps


def _window(node: ir.Window, formula: Asked) -> Steps:
    """A sum over groups, ``SUM(COUNT(*)) OVER (…)``, or an answer of another group."""
    if formula.window is not None:
        raise refuse("window", "OVER within OVER", "write the inner one in a sub-select", node)
    inner = node.args[0]
    if node.name == "WITHIN":
        before, formula.apart = formula.apart, True
        formula.window = replace(node, name="SUM")
        steps = _steps(inner, formula)
        formula.window, formula.apart = None, before
        return steps
    if node.name in {"SUM", "AVG"}:
        total = formula.leaf(inner, window=node)
        return [total] if node.name == "SUM" else [total, Size(node), "/"]
    if len(node.args) > 2 and not (number(node.args[2]) == 0 and is_linear(inner)):
        advice = "the default may only be 0, and only for sums and counts"
        raise refuse("window", f"this default of {node.name}()", advice, node)
    formula.window = node
    steps = _steps(inner, formula)
    formula.window = None
    return steps


def _group_count(node: ir.GroupCount, formula: Asked) -> Steps:
    if formula.window is not None:  # it counts the groups of another row
        raise refuse("nested", "AVG() of answers in OVER (…)", "select it by itself", node)
    return [Size(replace(node, apart=True) if formula.apart else node)]


def _of_group(node: Expr, formula: Asked) -> Steps:
    """A number that is known of each group: a column of groups, or of a lookup by them."""
    if formula.window is not None or formula.apart:
        advice = "write it outside of OVER (…) and sub-selects"
        raise refuse("formula", f"{shown(node)} there", advice, node)
    return [Size(node)]


def _aggregate(node: ir.Aggregate, formula: Asked) -> Steps:
    if node.level is not None:
        raise refuse("quantile", *ADVICE["quantile"], node)
    return STATISTICS[node.name](node, formula)


_CALLS: dict[str, Callable[[ir.Call, Asked], Steps]] = {
    "POWER": _power,
    "ROUND": _rounded,
    "NULLIF": _unless,
    "COALESCE": _unless,
    "GREATEST": _extreme,
    "LEAST": _extreme,
}
_KINDS: dict[type[Expr], Callable[[Any, Asked], Steps]] = {
    ir.Apart: _apart,
    ir.Negative: _negative,
    ir.Binary: _binary,
    ir.Call: _call,
    ir.Case: _guarded,
    ir.Cast: _cast,
    ir.Window: _window,
    ir.GroupCount: _group_count,
    ir.Aggregate: _aggregate,
}
"""What each kind of node is decomposed by."""
