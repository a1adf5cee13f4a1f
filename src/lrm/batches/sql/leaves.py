"""What an answer is computed from: linear aggregates, and a formula over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lrm.batches.sql import expr as ir
from lrm.batches.sql.expr import Expr

if TYPE_CHECKING:
    from lrm.workload import Step

__all__ = ["Asked", "Centre", "Leaf", "Middle", "Size", "Steps"]


@dataclass(frozen=True)
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

    node: Expr
    square: bool = False
    counted: int | None = None
    window: ir.Window | None = None
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
    """A constant that is known once the groups are: how many of them something adds up."""

    of: ir.Window | ir.GroupCount


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
