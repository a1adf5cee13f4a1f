"""Answers that are not linear → a formula, and the linear aggregates that it needs.

``AVG``, quotients of aggregates, ``VARIANCE`` and shares of a total are taken apart here; their
linear parts are compiled, and planned, like every other answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.constants import constant, is_constant, number
from lrm.batches.compiler.expressions import Apart, shown
from lrm.batches.compiler.refusals import AGGREGATES, at_line, only, refuse

if TYPE_CHECKING:
    from lrm.workload import Step

__all__ = ["Asked", "Centre", "Leaf", "asked", "is_linear"]

_LINEAR = (exp.Count, exp.Sum, exp.CountIf)
_SPREADS: dict[type[exp.Expr], tuple[str, bool]] = {
    exp.Variance: ("sample", False),
    exp.VariancePop: ("population", False),
    exp.Stddev: ("sample", True),
    exp.StddevSamp: ("sample", True),
    exp.StddevPop: ("population", True),
}
_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_FOLDED: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_MOST_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Leaf:
    """A linear aggregate that an answer is computed from.

    Parameters
    ----------
    node
        The aggregate.
    square
        Whether numbers are squared before they are added up.
    counted
        For the numbers of an average: the leaf that counts them, so that they may be added up from
        a centre on.
    window
        ``OVER (…)`` around its sum over groups, or None.
    apart
        Whether it is over all rows, whatever WHERE and GROUP BY of the statement say.
    """

    node: exp.Expr
    square: bool = False
    counted: int | None = None
    window: exp.Expr | None = None
    apart: bool = False

    @property
    def in_groups(self) -> bool:
        """Whether it is over the rows of each group."""
        return self.window is None and not self.apart


@dataclass(frozen=True)
class Centre:
    """A constant that is known once the numbers are: the centre of a leaf's numbers."""

    leaf: int


Steps = list["Step | Centre"]


@dataclass(eq=False)
class Asked:
    """One answer of a statement: its formula over its leaves.

    A quantile has a level and a column instead: its leaf counts the rows that it is a quantile of.
    """

    steps: Steps = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    level: float | None = None
    column: exp.Expr | None = None
    apart: bool = False

    @property
    def is_linear(self) -> bool:
        """Whether the answer is that of its one leaf."""
        return self.level is None and self.steps == [0] and self.leaves[0].in_groups

    @property
    def is_average(self) -> bool:
        """Whether the answer is a linear combination of averages, or a standard deviation."""
        averages = sum(isinstance(step, Centre) for step in self.steps)
        if averages:
            return averages == self.products
        last = self.steps[:-2] if self.steps[-1] == "round" else self.steps
        return last[-1] == "sqrt" and sum(leaf.square for leaf in self.leaves) == 1

    @property
    def products(self) -> int:
        """How many multiplications and divisions are not by a constant."""
        pairs = zip(self.steps, self.steps[1:], strict=False)
        return sum(two in ("*", "/") and not isinstance(one, float) for one, two in pairs)

    def leaf(
        self,
        node: exp.Expr,
        *,
        square: bool = False,
        counted: int | None = None,
        window: exp.Expr | None = None,
    ) -> int:
        """The number of a leaf, which is added where it is new."""
        for place, known in enumerate(self.leaves):
            same = (known.square, known.counted, known.apart) == (square, counted, self.apart)
            if same and known.node == node and known.window == window:
                return place
        self.leaves.append(Leaf(node, square, counted, window, self.apart))
        return len(self.leaves) - 1


def asked(node: exp.Expr) -> Asked:
    """Take an answer apart."""
    found = Asked()
    if _quantile(node, found):
        return found
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


def _checked_level(node: exp.Expr | None) -> float:
    if node is None or not is_constant(node):
        raise refuse("a quantile without one constant level", "write QUANTILE_CONT(x, 0.9)", node)
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


def _root(node: exp.Expr, found: Asked) -> Steps:
    return [*_inner(node, found), "sqrt"]


def _as_float(node: exp.Expr, found: Asked) -> Steps:
    if not _is_float(node):
        return [found.leaf(node)]
    only(node, "this", "to", "_type")
    return _steps(node.this, found)


def _arithmetic(node: exp.Expr, found: Asked) -> Steps:
    only(node, "this", "expression", "typed", "safe")
    left, right = _steps(node.this, found), _steps(node.expression, found)
    return _combined(_ARITHMETIC[type(node)], left, right, node)


def _filtered(node: exp.Expr, found: Asked) -> Steps:
    if type(node.this) not in {exp.Avg, *_SPREADS}:
        return [found.leaf(node)]
    only(node, "this", "expression")
    return _moments(node.this, found, node.expression)


def _combined(step: str, left: Steps, right: Steps, node: exp.Expr) -> Steps:
    """``left step right``, with a constant in the second place wherever that is the same."""
    for side in (left, right):
        if "round" in side:
            raise refuse("ROUND within a formula", "round the whole answer", node)
    one = left[0] if len(left) == 1 and isinstance(left[0], float) else None
    two = right[0] if len(right) == 1 and isinstance(right[0], float) else None
    if step == "/" and two == 0:
        raise at_line(node, "an aggregate is divided by 0")
    if one is not None and two is not None:
        return [_FOLDED[step](one, two)]
    if one is not None:
        if step in "+*":
            return [*right, one, step]
        if step == "-":
            return [*right, -1.0, "*", one, "+"]
    return [*left, *right, step]


def _unless(node: exp.Expr, found: Asked) -> Steps:
    """``NULLIF(aggregate, 0)`` and ``COALESCE(aggregate, 0)``: noise is never exactly 0."""
    others = node.expressions if type(node) is exp.Coalesce else [node.expression]
    only(node, "this", "expressions", "expression")
    zero = len(others) == 1 and is_constant(others[0]) and not isinstance(constant(others[0]), str)
    if not zero or number(others[0]) != 0:
        raise refuse(shown(node), "only 0 may stand there", node)
    return _steps(node.this, found)


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


def _moments(node: exp.Expr, found: Asked, where: exp.Expr | None = None) -> Steps:
    """AVG, VARIANCE and STDDEV from sums, sums of squares and counts."""
    only(node, "this")

    def leaf(aggregate: type[exp.Expr], *, square: bool = False, counted: int | None = None) -> int:
        made = aggregate(this=node.this.copy())
        if where is not None:
            made = exp.Filter(this=made, expression=where.copy())
        return found.leaf(made, square=square, counted=counted)

    if type(node.this) is exp.Distinct:
        raise refuse(f"{node.key.upper()}(DISTINCT …)", "rows are counted as they are", node)
    n = leaf(exp.Count)
    total = leaf(exp.Sum, counted=n)
    if type(node) is exp.Avg:
        return [total, n, "/", Centre(total), "+"]
    squares = leaf(exp.Sum, square=True, counted=n)
    kind, root = _SPREADS[type(node)]
    inner: Steps = [squares, total, total, "*", n, "/", "-", n]
    inner += ["/"] if kind == "population" else [1.0, "-", "/"]
    return [*inner, "sqrt"] if root else inner


_KINDS: dict[type[exp.Expr], Callable[[exp.Expr, Asked], Steps]] = {
    Apart: _apart,
    exp.Paren: _inner,
    exp.Neg: _negative,
    exp.Sqrt: _root,
    exp.Cast: _as_float,
    exp.Nullif: _unless,
    exp.Coalesce: _unless,
    exp.Round: _rounded,
    exp.Window: _window,
    exp.Filter: _filtered,
    exp.Avg: _moments,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys(_SPREADS, _moments),
}
"""What each kind of node is taken apart by."""
