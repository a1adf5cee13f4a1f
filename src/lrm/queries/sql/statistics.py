"""What answers are computed from: linear aggregates, formulas over them, and the known statistics.

Averages, variances, correlations and regressions follow from sums over rows. To add one, add an
entry to `STATISTICS`: how its formula follows from linear aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from lrm.queries.sql import expr as ir
from lrm.queries.sql.expr import Expr

if TYPE_CHECKING:
    from lrm.queries.workload import Step


@dataclass(frozen=True)
class Leaf:
    """A linear aggregate that an answer is computed from."""

    node: Expr
    square: bool = False  # whether numbers are squared before they are added up
    # For the numbers of an average: the leaf that counts them, so that they may be added up from a
    # centre on.
    counted: int | None = None
    window: ir.Window | None = None  # ``OVER (…)`` around its sum over groups, or None
    # Whether it is over all rows, whatever WHERE and GROUP BY of the statement say.
    apart: bool = False

    @property
    def in_groups(self) -> bool:
        """Whether it is over the rows of each group."""
        return self.window is None and not self.apart


@dataclass(frozen=True)
class Centre:
    """A constant that is known once the numbers are: the centre of a leaf's numbers."""

    leaf: int


@dataclass(frozen=True)
class Size:
    """A constant that is known once the groups are.

    How many of them something adds up, or what a column of groups or of a lookup is in them.
    """

    of: Expr


Steps = list["Step | Centre | Size"]

Middle = Callable[[Expr], int]


@dataclass(eq=False)
class Asked:
    """One answer of a statement: its formula over its leaves.

    A quantile has a level and a column instead: its leaf counts the rows that it is a quantile of.
    """

    steps: Steps = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    quantile: ir.Aggregate | None = None
    apart: bool = False
    window: ir.Window | None = None
    middle: Middle = lambda _: 0

    @property
    def is_linear(self) -> bool:
        """Whether the answer is that of its one leaf."""
        return self.quantile is None and self.steps == [0] and self.leaves[0].in_groups

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
        return sum(
            two in ("*", "/") and not isinstance(operand, float | Size) for operand, two in pairs
        )

    def leaf(
        self,
        node: Expr,
        *,
        square: bool = False,
        counted: int | None = None,
        window: ir.Window | None = None,
    ) -> int:
        """The number of a leaf, which is added where it is new."""
        new = Leaf(node, square, counted, window or self.window, self.apart)
        if new not in self.leaves:
            self.leaves.append(new)
        return self.leaves.index(new)


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
