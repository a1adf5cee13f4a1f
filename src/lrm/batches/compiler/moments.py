"""Averages, variances, correlations and regressions → formulas of sums and counts."""

from __future__ import annotations

from sqlglot import exp

from lrm.batches.compiler.asked import Asked, Centre, Steps
from lrm.batches.compiler.expressions import held
from lrm.batches.compiler.refusals import DISTINCT, only, refuse

__all__ = ["PAIRS", "SPREADS", "moments", "pair"]

SPREADS: dict[type[exp.Expr], tuple[str, bool]] = {
    exp.Variance: ("sample", False),
    exp.VariancePop: ("population", False),
    exp.Stddev: ("sample", True),
    exp.StddevSamp: ("sample", True),
    exp.StddevPop: ("population", True),
}
PAIRS = (
    *(exp.Corr, exp.CovarPop, exp.CovarSamp),
    *(exp.RegrSlope, exp.RegrIntercept, exp.RegrR2),
)


def moments(node: exp.Expr, found: Asked, where: exp.Expr | None = None) -> Steps:
    """AVG, VARIANCE and STDDEV from sums, sums of squares and counts."""
    only(node, "this")

    def leaf(aggregate: type[exp.Expr], *, square: bool = False, counted: int | None = None) -> int:
        made = aggregate(this=node.this.copy())
        if where is not None:
            made = exp.Filter(this=made, expression=where.copy())
        return found.leaf(made, square=square, counted=counted)

    if type(node.this) is exp.Distinct:
        raise refuse(f"{node.key.upper()}(DISTINCT …)", DISTINCT, node)
    n = leaf(exp.Count)
    total = leaf(exp.Sum, counted=n)
    if type(node) is exp.Avg:
        return [total, n, "/", Centre(total), "+"]
    squares = leaf(exp.Sum, square=True, counted=n)
    kind, root = SPREADS[type(node)]
    inner: Steps = [squares, total, total, "*", n, "/", "-", n]
    inner += ["/"] if kind == "population" else [1.0, "-", "/"]
    return [*inner, "sqrt"] if root else inner


def pair(node: exp.Expr, found: Asked, where: exp.Expr | None = None) -> Steps:
    """Correlations, covariances and regressions from sums over rows where both are known.

    They do not change where a constant is taken from each number, which keeps the noise small.
    """
    only(node, "this", "expression")
    sides = []
    for side in (node.this, node.expression):
        centre = found.middle(side)
        inner = held(side.copy())
        step = exp.Add if centre < 0 else exp.Sub
        moved = step(this=inner, expression=exp.Literal.number(abs(centre)))
        sides.append(held(moved) if centre else inner)
    y, x = sides
    known = [exp.Not(this=exp.Is(this=side.copy(), expression=exp.Null())) for side in (y, x)]
    rows = exp.Where(this=exp.and_(*([] if where is None else [where.this.copy()]), *known))

    def total(*factors: exp.Expr) -> int:
        inner = factors[0].copy() if factors else None
        for factor in factors[1:]:
            inner = exp.Mul(this=inner, expression=factor.copy())
        made = exp.Count(this=exp.Star()) if inner is None else exp.Sum(this=inner)
        return found.leaf(exp.Filter(this=made, expression=rows.copy()))

    n, sy, sx, sxy, sxx, syy = (
        total(*factors) for factors in ((), (y,), (x,), (x, y), (x, x), (y, y))
    )
    both: Steps = [n, sxy, "*", sx, sy, "*", "-"]
    own_x: Steps = [n, sxx, "*", sx, sx, "*", "-"]
    own_y: Steps = [n, syy, "*", sy, sy, "*", "-"]
    slope: Steps = [*both, *own_x, "/"]
    kind = type(node)
    if kind is exp.RegrSlope:
        return slope
    if kind is exp.RegrIntercept:
        mean_x: Steps = [sx, n, "/", float(found.middle(node.expression)), "+"]
        mean_y: Steps = [sy, n, "/", float(found.middle(node.this)), "+"]
        return [*mean_y, *slope, *mean_x, "*", "-"]
    if kind in (exp.CovarPop, exp.CovarSamp):
        covered: Steps = [sxy, sx, sy, "*", n, "/", "-", n]
        return [*covered, "/"] if kind is exp.CovarPop else [*covered, 1.0, "-", "/"]
    found_squared: Steps = [*own_x, *own_y, "*"]
    if kind is exp.RegrR2:
        return [*both, *both, "*", *found_squared, "/"]
    return [*both, *found_squared, "sqrt", "/"]
