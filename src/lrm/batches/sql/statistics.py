"""Aggregates that follow from sums over rows: averages, variances, correlations, regressions.

To add one, add an entry to `STATISTICS`: how its formula follows from linear aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.leaves import Asked, Centre, Steps

__all__ = ["STATISTICS"]


def _mean(node: ir.Aggregate, formula: Asked) -> Steps:
    n = formula.leaf(replace(node, name="COUNT"))
    total = formula.leaf(replace(node, name="SUM"), counted=n)
    return [total, n, "/", Centre(total), "+"]


def _spread(node: ir.Aggregate, formula: Asked, *, sample: bool, root: bool) -> Steps:
    """Variances and standard deviations: Σx² − (Σx)²/n, by n or n − 1."""
    n = formula.leaf(replace(node, name="COUNT"))
    total = formula.leaf(replace(node, name="SUM"), counted=n)
    squares = formula.leaf(replace(node, name="SUM"), square=True, counted=n)
    steps: Steps = [squares, total, total, "*", n, "/", "-", n]
    steps += [1.0, "-", "/"] if sample else ["/"]
    return [*steps, "sqrt"] if root else steps


def _standard_error(node: ir.Aggregate, formula: Asked) -> Steps:
    """The standard error of an average, as DuckDB's SEM: √(variance/n)."""
    variance = _spread(node, formula, sample=False, root=False)
    return [*variance, variance[-2], "/", "sqrt"]


def _pair(node: ir.Aggregate, formula: Asked) -> Steps:
    """Correlations, covariances and regressions from sums over rows where both are known.

    They do not change where a constant is taken from each number, which keeps the noise small.
    """
    centres = [formula.middle(side) for side in node.args]
    y, x = (
        ir.Binary("-", side, ir.Number(str(centre)), at=side.at) if centre else side
        for side, centre in zip(node.args, centres, strict=True)
    )
    known = [ir.Not(ir.IsNull(side, at=side.at), at=side.at) for side in (y, x)]
    rows = ir.And((*ir.conjuncts(node.where), *known), at=node.at)

    def total(*factors: Expr) -> int:
        if not factors:
            return formula.leaf(ir.Aggregate("COUNT", (), rows, at=node.at))
        inner = factors[0]
        for factor in factors[1:]:
            inner = ir.Binary("*", inner, factor, at=node.at)
        return formula.leaf(ir.Aggregate("SUM", (inner,), rows, at=node.at))

    n, sy, sx, sxy, sxx, syy = (
        total(*factors) for factors in ((), (y,), (x,), (x, y), (x, x), (y, y))
    )
    both: Steps = [n, sxy, "*", sx, sy, "*", "-"]
    own_x: Steps = [n, sxx, "*", sx, sx, "*", "-"]
    own_y: Steps = [n, syy, "*", sy, sy, "*", "-"]
    slope: Steps = [*both, *own_x, "/"]
    if node.name == "REGR_SLOPE":
        return slope
    if node.name == "REGR_INTERCEPT":
        mean_x: Steps = [sx, n, "/", float(centres[1]), "+"]
        mean_y: Steps = [sy, n, "/", float(centres[0]), "+"]
        return [*mean_y, *slope, *mean_x, "*", "-"]
    if node.name in {"COVAR_POP", "COVAR_SAMP"}:
        covered: Steps = [sxy, sx, sy, "*", n, "/", "-", n]
        return [*covered, "/"] if node.name == "COVAR_POP" else [*covered, 1.0, "-", "/"]
    squared: Steps = [*own_x, *own_y, "*"]
    if node.name == "REGR_R2":
        return [*both, *both, "*", *squared, "/"]
    return [*both, *squared, "sqrt", "/"]


STATISTICS: dict[str, Callable[[ir.Aggregate, Asked], Steps]] = {
    "AVG": _mean,
    **dict.fromkeys(("VARIANCE", "VAR_SAMP"), partial(_spread, sample=True, root=False)),
    "VAR_POP": partial(_spread, sample=False, root=False),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP"), partial(_spread, sample=True, root=True)),
    "STDDEV_POP": partial(_spread, sample=False, root=True),
    "SEM": _standard_error,
    **dict.fromkeys(("CORR", "COVAR_POP", "COVAR_SAMP"), _pair),
    **dict.fromkeys(("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"), _pair),
}
"""Aggregates by their names in SQL."""
