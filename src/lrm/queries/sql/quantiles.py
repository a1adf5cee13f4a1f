"""Quantiles of a column, from running totals over its cells in ascending order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrm.domain import Attribute, Bins, Integers, Numbers
from lrm.queries.sql import expr as ir
from lrm.queries.sql.atoms import Intervals
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.groups import GroupBlock
from lrm.queries.sql.inputs import Part, QuantileAnswer
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.render import shown
from lrm.queries.terms import Names, Rows

if TYPE_CHECKING:
    from lrm.queries.maps.products.combine import Product
    from lrm.queries.sql.cells import Cells
    from lrm.queries.workload import Method

LONG = 1 << 20
"""Weights of running totals that are written out, with no row more than is asked."""


def quantile_answer(
    quantile: ir.Aggregate, block: GroupBlock, names: Names, products: list[Product], cells: Cells
) -> QuantileAnswer:
    """The quantile in the groups of a block; ``products`` weigh the rows that it is of."""
    domain = cells.domain
    axes, kept_rows = block
    column, level = quantile.args[0], quantile.level
    assert level is not None  # noqa: S101 - a quantile has one
    if not isinstance(column, ir.Attribute):
        advice = "quantiles are of attributes declared as integers, in bins or by knots"
        raise refuse("quantile", f"a quantile of {shown(column)}", advice, column)
    axis = column.axis
    attribute = domain.attributes[axis]
    if axis in axes:
        feature = f"a quantile of {column.name} by {column.name}"
        raise refuse("quantile", feature, "group by others", column)
    _check_quantile(attribute, column)
    order_of, lows, highs = Intervals.of(attribute).ascending()
    if isinstance(attribute, Numbers):  # a knot has shares of what is between its neighbours
        lows, highs = np.append(lows[0], lows[:-1]), np.append(highs[1:], highs[-1])
    order = np.array(order_of, dtype=np.intp)
    if len(order_of) * attribute.size > LONG and np.array_equal(order, np.arange(len(order_of))):
        # All prefixes of a long attribute need no array, with those of NULL after the others.
        order = np.arange(attribute.size)
        products = [_plain_until(len(order_of), axis, cell_product) for cell_product in products]
    labels = tuple(f"up to {attribute.labels[cell]}" for cell in order)
    running = Rows(axis, order, np.zeros_like(order), np.arange(len(order)), labels)
    part = Part(tuple(sorted((*axes, axis))), products, (*kept_rows, running))
    label = names.label(domain, axes, kept_rows)
    ends = tuple(lows.tolist()), tuple(highs.tolist())
    return QuantileAnswer(label, axes, level, part, axis, _method(quantile), *ends)


def _method(node: ir.Aggregate) -> Method:
    """Whether a quantile lies between two rows, or is the value of one, counted from which end."""
    methods: dict[str, Method] = {"QUANTILE_DISC": "lower", "QUANTILE_DISC_DESC": "upper"}
    return methods.get(node.name, "continuous")


def _check_quantile(attribute: Attribute, node: Expr) -> None:
    """Check that an attribute is of numbers, each of which has a place in their order."""
    advice = ""
    if not isinstance(attribute, Bins | Integers | Numbers):
        advice = "quantiles are of attributes declared as integers, in bins or by knots"
    elif attribute.nan == "cell":
        advice = "NaN has no place in it; declare nan: drop"
    if advice:
        raise refuse("quantile", f"a quantile of {attribute.name!r}", advice, node)


def _plain_until(count: int, axis: int, cell_product: Product) -> Product:
    """A product with the same weights on the first cells, and the constant one beyond them."""
    coefficient, vectors = cell_product
    vector = vectors.get(axis)
    if vector is None or np.any(vector[:count] != vector[0]) or not vector[0]:
        return cell_product
    other_vectors = {other: weights for other, weights in vectors.items() if other != axis}
    return coefficient * float(vector[0]), other_vectors
