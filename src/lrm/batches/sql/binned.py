"""Numbers whose cells hold several of them: what a cell stands for, and how cells are ordered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.sql import expr as ir
from lrm.batches.sql.atoms import is_null
from lrm.batches.sql.expr import Expr
from lrm.batches.sql.refusals import refuse
from lrm.domain import Bins, Categories, Dates, Integers, Numbers, SteppedAttribute

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lrm.batches.sql.atoms import Truths
    from lrm.batches.sql.cells import Cells
    from lrm.domain import Attribute

    Floats = NDArray[np.float64]

__all__ = [
    "UNBOUNDED",
    "Form",
    "cell_ends",
    "is_binned",
    "linear_form",
    "middle",
    "ordered_cells",
    "reads_bins",
    "represented",
    "sums_bins",
]


UNBOUNDED = 2.0**500
"""In place of an infinite error, which cannot be multiplied by 0."""


def is_binned(attribute: Attribute) -> bool:
    """Whether cells of an attribute of numbers hold several of them, or shares of them."""
    return isinstance(attribute, Bins | Numbers) or (
        isinstance(attribute, Integers) and attribute.width > 1
    )


def sums_bins(node: Expr, cells: Cells) -> bool:
    """Whether an aggregate may add up numbers in bins."""
    sums = (
        descendant
        for descendant in node.walk()
        if isinstance(descendant, ir.Aggregate) and descendant.name == "SUM"
    )
    axes = {axis for descendant in sums for argument in descendant.args for axis in argument.axes}
    return reads_bins(axes, cells)


def reads_bins(axes: Iterable[int], cells: Cells) -> bool:
    """Whether one of some attributes is in bins."""
    return any(is_binned(cells.domain.attributes[axis]) for axis in axes)


def middle(node: Expr, cells: Cells) -> int:
    """A whole number near the middle of a column's numbers; 0 for any other expression."""
    for descendant in node.walk():
        if isinstance(descendant, ir.Attribute) and is_binned(
            cells.domain.attributes[descendant.axis]
        ):
            advice = (
                "products of numbers in bins or by knots are not known; "
                "declare the attribute as integers"
            )
            raise refuse("aggregate", f"a correlation of {descendant.name!r}", advice, node)
    attribute = cells.domain.attributes[node.axis] if isinstance(node, ir.Attribute) else None
    if not isinstance(attribute, Integers):
        return 0
    return int((int(attribute.starts[0]) + attribute.last) // 2)


def represented(attribute: Attribute) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """What each cell counts for, how far its numbers may lie from that, and where it has none.

    NULL counts for 0. A cell without an end has a representative only where the domain gives it.
    """
    values, halves = np.zeros(attribute.size), np.zeros(attribute.size)
    open_cells = np.ones(attribute.size, dtype=bool)
    null = attribute.special_cell("(null)")
    if null is not None:
        open_cells[null] = False
    lows, highs = _regular_ends(attribute)
    representatives = getattr(attribute, "representatives", None)
    middle = np.where(np.isfinite(lows + highs), (lows + highs) / 2, np.nan)
    regular = slice(0, attribute.regular)
    values[regular] = middle if representatives is None else np.array(representatives)
    halves[regular] = np.maximum(values[regular] - lows, highs - values[regular])
    halves[np.isinf(halves)] = UNBOUNDED
    open_cells[regular] = np.isnan(values[regular])
    values[open_cells] = halves[open_cells] = 0.0
    return values, halves, open_cells


def _regular_ends(attribute: Attribute) -> tuple[Floats, Floats]:
    if isinstance(attribute, Numbers):  # a knot counts for itself, and shares for what is between
        return np.array(attribute.knots), np.array(attribute.knots)
    if isinstance(attribute, Bins):
        edges = np.array(attribute.edges)
        return edges[:-1], edges[1:]
    assert isinstance(attribute, SteppedAttribute)  # noqa: S101 - asked of these
    return attribute.starts.astype(np.float64), attribute.ends.astype(np.float64)


def cell_ends(attribute: Attribute, node: Expr) -> tuple[list[int], Floats, Floats]:
    """The cells of an attribute of numbers in order, with their least and largest numbers.

    NULL and invalid values are in none.
    """
    if not isinstance(attribute, Bins | Integers):
        raise refuse(
            "quantile",
            f"a quantile of {attribute.name!r}",
            "quantiles are of attributes declared as integers or bins",
            node,
        )
    if attribute.nan == "cell":
        raise refuse(
            "quantile",
            f"a quantile of {attribute.name!r}",
            "NaN has no place in it; declare nan: drop",
            node,
        )
    lows, highs = _regular_ends(attribute)
    cells = list(range(attribute.regular))
    below, above = attribute.special_cell("(below)"), attribute.special_cell("(above)")
    if below is not None and above is not None:
        gap = 1.0 if isinstance(attribute, Integers) else 0.0
        cells = [below, *cells, above]
        lows = np.array([-math.inf, *lows, highs[-1] + gap])
        highs = np.array([lows[1] - gap, *highs, math.inf])
    return cells, lows, highs


def ordered_cells(attribute: Attribute, node: Expr) -> tuple[list[int], list[int]]:
    """All cells in ascending order, and those of NULL and invalid values, which have no place."""
    special = {label: attribute.special_cell(label) for label in ("(invalid)", "(null)")}
    last = [cell for cell in special.values() if cell is not None]
    regular = list(range(attribute.regular))
    if isinstance(attribute, Categories):
        if attribute.special_cell("(other)") is not None:
            advice = "the place of its cell (other) is not known"
            raise refuse("window", f"ORDER BY {attribute.name}", advice, node)
        regular.sort(key=lambda cell: attribute.values[cell])
    before = [attribute.special_cell("(below)")]
    after = [attribute.special_cell("(above)"), attribute.special_cell("(nan)")]
    return [cell for cell in (*before, *regular, *after) if cell is not None], last


@dataclass(frozen=True, eq=False)
class Form:
    """A number that is a sum of columns times constants, and a constant."""

    columns: tuple[tuple[int, float], ...]
    constant: float

    def present(self, cells: Cells) -> list[tuple[int, Truths]]:
        """For each column, the truth of its being NULL."""
        return [(axis, is_null(cells.domain.attributes[axis])) for axis, _ in self.columns]


def linear_form(node: Expr, cells: Cells) -> Form | None:
    """Read an expression as a sum of columns, one of which is in bins; None for any other."""
    linear_sum = _form(node)
    if linear_sum is None:
        return None
    columns: dict[int, float] = {}
    for axis, factor in linear_sum[0]:
        columns[axis] = columns.get(axis, 0.0) + factor
    attributes = [cells.domain.attributes[axis] for axis in columns]
    if not any(map(is_binned, attributes)):
        return None
    if any(isinstance(attribute, Categories | Dates) for attribute in attributes):
        return None
    return Form(tuple(columns.items()), linear_sum[1])


_Sum = tuple["Sequence[tuple[int, float]]", float]


def _form(node: Expr) -> _Sum | None:
    if isinstance(node, ir.Attribute):
        return [(node.axis, 1.0)], 0.0
    if isinstance(node, ir.Number):
        return [], float(node.text)
    if isinstance(node, ir.Negative):
        return _times(_form(node.this), -1.0)
    if isinstance(node, ir.Cast) and node.to in {"DOUBLE", "REAL", "FLOAT"}:
        return _form(node.this)
    if isinstance(node, ir.Binary) and node.op in {"+", "-", "*", "/"}:
        left, right = _form(node.left), _form(node.right)
        if left is not None and right is not None:
            return _joined(node.op, left, right)
    return None


def _joined(step: str, left: _Sum, right: _Sum) -> _Sum | None:
    if step in {"+", "-"}:
        sign = 1.0 if step == "+" else -1.0
        columns = [*left[0], *((axis, sign * coefficient) for axis, coefficient in right[0])]
        return columns, left[1] + sign * right[1]
    if step == "*" and not left[0]:
        left, right = right, left
    if right[0] or (step == "/" and not right[1]):
        return None
    return _times(left, right[1] if step == "*" else 1.0 / right[1])


def _times(form: _Sum | None, factor: float) -> _Sum | None:
    if form is None:
        return None
    return [(axis, coefficient * factor) for axis, coefficient in form[0]], form[1] * factor
