"""Answers that are not linear → a formula, and the linear aggregates that it needs.

``AVG``, quotients of aggregates, ``VARIANCE`` and shares of a total are taken apart here; their
linear parts are compiled, and planned, like every other answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.asked import Asked, Leaf, Middle, Steps
from lrm.batches.compiler.constants import constant, is_constant, number
from lrm.batches.compiler.expressions import Apart, shown
from lrm.batches.compiler.moments import PAIRS, SPREADS, moments, pair
from lrm.batches.compiler.refusals import AGGREGATES, at_line, only, refuse

if TYPE_CHECKING:
    from lrm.workload import Method

__all__ = ["asked", "is_linear"]

_LINEAR = (exp.Count, exp.Sum, exp.CountIf)
_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Sqrt: "sqrt",
    exp.Ln: "ln",
    exp.Exp: "exp",
    exp.Abs: "abs",
}
_FOLDED: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_MOST_DIGITS = 12
_ALONE = (exp.Column, exp.Star, exp.Window)
"""What has sentences of its own where it stands by itself."""
_ROUNDED = (exp.DType.DECIMAL, exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT)


def asked(node: exp.Expr, middle: Middle) -> Asked:
    """Take an answer apart; ``middle`` is a number near the middle of what an expression may be."""
    found = Asked(middle=middle)
    if _quantile(node, found):
        return found
    if type(node) not in _ALONE and node.find(exp.AggFunc, exp.Anonymous, Apart) is None:
        if node.find(exp.Grouping) is not None:
            raise refuse("GROUPING()", "select the column: rows without it are totals", node)
        if node.find(exp.Column) is not None:
            way_out = "rows are never listed: GROUP BY it, or add it up with SUM or AVG"
            raise refuse(f"{shown(node)} without an aggregate", way_out, node)
    found.steps = _steps(node, found)
    if not found.leaves:
        raise refuse("a constant as an answer", AGGREGATES, node)
    return found


def _quantile(node: exp.Expr, found: Asked) -> bool:
    """Read MEDIAN, QUANTILE_CONT, PERCENTILE_CONT … into ``found``; False for anything else."""
    while type(node) is exp.Paren:
        node = node.this
    where = None
    if type(node) is exp.Filter:
        node, where = node.this, node.expression
    column, level = _level(node)
    if column is None:
        return False
    found.method = _method(node)
    counted: exp.Expr = exp.Count(this=exp.Star())
    found.leaves.append(
        Leaf(counted if where is None else exp.Filter(this=counted, expression=where.copy()))
    )
    found.steps, found.column, found.level = [0], column, level
    return True


def _level(node: exp.Expr) -> tuple[exp.Expr | None, float]:
    """The column of a quantile and its level; None where the node is not a quantile."""
    kind = type(node)
    if kind is exp.Median:
        only(node, "this")
        return node.this, 0.5
    if kind is exp.WithinGroup and type(node.this) in _QUANTILES:
        only(node, "this", "expression")
        (order,) = node.expression.expressions
        level = _checked_level(node.this.this)
        return order.this, 1 - level if order.args.get("desc") else level
    if kind in _QUANTILES:
        return node.this, _checked_level(node.args.get("quantile") or node.expression)
    return None, 0.0


def _method(node: exp.Expr) -> Method:
    """Whether a quantile lies between two rows, or is the value of one, counted from which end."""
    inner = node.this if type(node) is exp.WithinGroup else node
    kinds = (exp.PercentileDisc, exp.Quantile)
    if type(inner) not in kinds:
        return "continuous"
    order = node.expression.expressions[0] if type(node) is exp.WithinGroup else None
    return "upper" if order is not None and order.args.get("desc") else "lower"


def _checked_level(node: exp.Expr | None) -> float:
    if node is None or not is_constant(node):
        raise refuse(
            "a quantile without one constant level",
            "write one quantile per level: QUANTILE_CONT(x, 0.9)",
            node,
        )
    level = float(number(node))
    if not 0 < level < 1:
        raise at_line(node, f"the level of a quantile must be between 0 and 1, not {level:g}")
    return level


def is_linear(node: exp.Expr) -> bool:
    """Whether an aggregate is a sum over rows, as far as its form tells."""
    kind = type(node)
    if kind in (exp.Add, exp.Sub):
        return is_linear(node.this) and is_linear(node.expression)
    if kind in (exp.Mul, exp.Div):
        factor = is_linear(node.this) and _is_factor(node.expression)
        both_ways = kind is exp.Mul and is_linear(node.expression) and _is_factor(node.this)
        return factor or both_ways
    if kind in (exp.Paren, exp.Neg, exp.Coalesce) or (kind is exp.Cast and _is_float(node)):
        return is_linear(node.this)
    if kind is exp.Cast:  # a count is not rounded
        return _is_whole(node.this) and node.args["to"].this in _ROUNDED
    return kind in _LINEAR or (kind is exp.Filter and type(node.this) in _LINEAR)


def _is_float(node: exp.Expr) -> bool:
    return any(node.args["to"].is_type(kind) for kind in (exp.DType.DOUBLE, exp.DType.FLOAT))


def _is_factor(node: exp.Expr) -> bool:
    if type(node) is exp.Paren:
        return _is_factor(node.this)
    if type(node) is exp.Mul:
        return _is_factor(node.this) and _is_factor(node.expression)
    return is_constant(node) and type(node) is not exp.Cast


def _steps(node: exp.Expr, found: Asked) -> Steps:
    if is_linear(node):
        return [found.leaf(node)]
    if is_constant(node) and type(node) is not exp.Cast and isinstance(constant(node), Decimal):
        return [float(number(node))]
    split = _KINDS.get(type(node))
    # What cannot be taken apart is left to the compiler of linear answers, which says why.
    return [found.leaf(node)] if split is None else split(node, found)


def _inner(node: exp.Expr, found: Asked) -> Steps:
    only(node, "this")
    return _steps(node.this, found)


def _negative(node: exp.Expr, found: Asked) -> Steps:
    return [*_inner(node, found), -1.0, "*"]


def _function(node: exp.Expr, found: Asked) -> Steps:
    return [*_unrounded(_inner(node, found), node), _FUNCTIONS[type(node)]]


def _unrounded(steps: Steps, node: exp.Expr) -> Steps:
    if "round" in steps:
        raise refuse("ROUND within a formula", "round the whole answer", node)
    return steps


def _power(node: exp.Expr, found: Asked) -> Steps:
    """Squares, cubes and roots."""
    only(node, "this", "expression")
    inner = _unrounded(_steps(node.this, found), node)
    exponent = float(number(node.expression)) if is_constant(node.expression) else 0.0
    if exponent == 0.5:
        return [*inner, "sqrt"]
    if exponent not in {1.0, 2.0, 3.0}:
        raise refuse(shown(node), "exponents are 0.5, 2 and 3", node)
    return [*inner, *(step for _ in range(int(exponent) - 1) for step in (*inner, "*"))]


def _cast(node: exp.Expr, found: Asked) -> Steps:
    """CAST to a float leaves an answer as it is, and one to integers and decimals rounds it."""
    only(node, "this", "to", "_type")
    kind = node.args["to"]
    inner = _steps(node.this, found)
    if _is_float(node):
        return inner
    if kind.this not in _ROUNDED:
        raise refuse(f"CAST of an aggregate to {shown(kind)}", "cast it to DOUBLE", node)
    digits = 0.0
    if kind.this is exp.DType.DECIMAL:
        sizes = [float(number(one.this)) for one in kind.expressions]
        digits = sizes[1] if len(sizes) > 1 else 0.0 if sizes else 3.0
    return [*inner, digits, "round"]


def _is_whole(node: exp.Expr) -> bool:
    """Whether an aggregate is a whole number: a count, or a sum of counts."""
    if type(node) in {exp.Add, exp.Sub}:
        return _is_whole(node.this) and _is_whole(node.expression)
    if type(node) in {exp.Paren, exp.Filter}:
        return _is_whole(node.this)
    return type(node) in {exp.Count, exp.CountIf}


def _arithmetic(node: exp.Expr, found: Asked) -> Steps:
    only(node, "this", "expression", "typed", "safe")
    left, right = _steps(node.this, found), _steps(node.expression, found)
    return _combined(_ARITHMETIC[type(node)], left, right, node)


def _filtered(node: exp.Expr, found: Asked) -> Steps:
    only(node, "this", "expression")
    if type(node.this) in PAIRS:
        return pair(node.this, found, node.expression)
    if type(node.this) not in {exp.Avg, *SPREADS}:
        return [found.leaf(node)]
    return moments(node.this, found, node.expression)


def _combined(step: str, left: Steps, right: Steps, node: exp.Expr) -> Steps:
    """``left step right``, with a constant in the second place wherever that is the same."""
    one = left[0] if len(left) == 1 and isinstance(left[0], float) else None
    two = right[0] if len(right) == 1 and isinstance(right[0], float) else None
    if one is None and two is None:
        _unrounded([*left, *right], node)
    if step == "/" and two == 0:
        raise at_line(node, "an aggregate is divided by 0")
    if one is not None and two is not None:
        return [_FOLDED[step](one, two)]
    if one is not None:
        if step in "+*":
            return [*right, one, step]
        if step == "-":
            return [*right, -1.0, "*", one, "+"]
        _unrounded(right, node)
    return [*left, *right, step]


def _unless(node: exp.Expr, found: Asked) -> Steps:
    """``NULLIF(aggregate, 0)``, which only what is divided by may be, and ``COALESCE(…, 0)``."""
    others = node.expressions if type(node) is exp.Coalesce else [node.expression]
    only(node, "this", "expressions", "expression")
    zero = len(others) == 1 and is_constant(others[0]) and not isinstance(constant(others[0]), str)
    if not zero or number(others[0]) != 0:
        raise refuse(shown(node), "only 0 may stand there", node)
    steps = _steps(node.this, found)
    return _or_else(steps) if type(node) is exp.Coalesce else steps


def _or_else(steps: Steps) -> Steps:
    """The same formula, and 0 where it has no value: a count of rows is 0."""
    return [*steps, 0.0, "else"] if "/" in steps or "ln" in steps else steps


def _guarded(node: exp.Expr, found: Asked) -> Steps:
    """``CASE WHEN d = 0 THEN NULL ELSE … / d END``, which is ``… / NULLIF(d, 0)``."""
    if type(node) is exp.If:
        branches, default = [node], node.args.get("false")
    else:
        branches, default = node.args["ifs"], node.args.get("default")
    guard = branches[0].this
    while type(guard) is exp.Paren:
        guard = guard.this
    sides = (branches[0].args["true"], exp.Null() if default is None else default)
    kept, other = sides if type(guard) in {exp.GT, exp.NEQ} else sides[::-1]
    counts = type(guard) is not exp.GT or type(guard.this) in {exp.Count, exp.CountIf}
    none = type(other) is exp.Null or (is_constant(other) and shown(other) in {"0", "0.0"})
    understood = (
        len(branches) == 1
        and (type(node) is exp.If or node.this is None)
        and type(guard) in {exp.EQ, exp.GT, exp.NEQ}
        and shown(guard.expression) == "0"
        and counts
        and none
        and any(_divisor(one) == guard.this for one in kept.find_all(exp.Div))
    )
    if not understood:
        way_out = "of aggregates, CASE WHEN d = 0 THEN NULL ELSE … / d END is compiled"
        raise refuse(shown(node), way_out, node)
    steps = _steps(kept, found)
    return steps if type(other) is exp.Null else _or_else(steps)


def _divisor(node: exp.Expr) -> exp.Expr:
    """What a quotient divides by, whatever it is cast to."""
    found: exp.Expr = node.expression
    while type(found) in {exp.Paren, exp.Cast, exp.Nullif}:
        found = found.this
    return found


def _apart(node: exp.Expr, found: Asked) -> Steps:
    if found.apart:
        return _steps(node.this, found)
    found.apart = True
    steps = _steps(node.this, found)
    found.apart = False
    return steps


def _rounded(node: exp.Expr, found: Asked) -> Steps:
    only(node, "this", "decimals")
    decimals = node.args.get("decimals")
    digits = 0.0 if decimals is None else float(number(decimals))
    if digits != round(digits) or abs(digits) > _MOST_DIGITS:
        raise at_line(node, f"ROUND takes between -{_MOST_DIGITS} and {_MOST_DIGITS} digits")
    inner = _steps(node.this, found)
    return [*inner, digits, "round"]


def _window(node: exp.Expr, found: Asked) -> Steps:
    """A sum over groups: ``SUM(COUNT(*)) OVER (…)``."""
    if type(node.this) is not exp.Sum or not is_linear(node.this.this):
        return [found.leaf(node)]
    only(node, "this", "partition_by", "order", "over", "spec")
    return [found.leaf(node.this.this, window=node)]


_KINDS: dict[type[exp.Expr], Callable[[exp.Expr, Asked], Steps]] = {
    Apart: _apart,
    exp.Paren: _inner,
    exp.Neg: _negative,
    exp.Pow: _power,
    exp.Case: _guarded,
    exp.If: _guarded,
    exp.Cast: _cast,
    exp.Nullif: _unless,
    exp.Coalesce: _unless,
    exp.Round: _rounded,
    exp.Window: _window,
    exp.Filter: _filtered,
    exp.Avg: moments,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys(_FUNCTIONS, _function),
    **dict.fromkeys(SPREADS, moments),
    **dict.fromkeys(PAIRS, pair),
}
"""What each kind of node is taken apart by."""
