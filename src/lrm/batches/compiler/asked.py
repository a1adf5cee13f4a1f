"""An answer that was taken apart: a formula, and the linear aggregates that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from lrm.workload import Method, Step

__all__ = ["Asked", "Centre", "Leaf", "Middle", "Steps"]


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

Middle = Callable[[exp.Expr], int]


@dataclass(eq=False)
class Asked:
    """One answer of a statement: its formula over its leaves.

    A quantile has a level and a column instead: its leaf counts the rows that it is a quantile of.
    """

    steps: Steps = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    level: float | None = None
    method: Method = "continuous"
    column: exp.Expr | None = None
    apart: bool = False
    middle: Middle = lambda _: 0

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
