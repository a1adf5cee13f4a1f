"""Weights of an aggregate → few products of one vector per attribute."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrm.batches.sql.tables import Table, aligned, fits
from lrm.errors import SqlError
from lrm.maps.products.combine import MANY_PRODUCTS, Product
from lrm.spelling import how_many

if TYPE_CHECKING:
    from lrm.batches.sql.cells import Cells
    from lrm.batches.sql.tables import Summand, Weights

__all__ = ["Vectors", "decompose", "multiplied", "products_of", "slices"]


Floats = NDArray[np.float64]
_FEW = 1 << 14
"""Entries of a table whose slices are compared as one text."""

Vectors = tuple[float, dict[int, Floats]]
"""A coefficient, and one weight per merged cell of some attributes: the others weigh 1."""


def decompose(table: Table) -> list[Vectors]:
    """Write a table as a sum of products, cut into slices or taken from a constant.

    Cells are cut along the attribute that needs the fewest different slices, so that most
    products weigh different cells, and the weights are those of the table, not rounded. Where
    the weights are whole numbers, the table may also be a constant less a few products:
    ``a OR b OR c`` is 1 − (not a)(not b)(not c).

    Examples
    --------
    >>> either = np.array([[1.0, 1.0], [1.0, 0.0]])
    >>> for coefficient, vectors in decompose(Table((0, 1), either)):
    ...     print(coefficient, {axis: vector.tolist() for axis, vector in vectors.items()})
    1.0 {0: [1.0, 0.0]}
    1.0 {0: [0.0, 1.0], 1: [1.0, 0.0]}
    """
    terms = slices(table.values, table.axes)
    if len(terms) <= 2 or not np.all(table.values == np.rint(table.values)):
        return terms
    values, counts = np.unique(table.values, return_counts=True)
    constant = float(values[np.argmax(counts)])
    rest = slices(table.values - constant, table.axes) if constant else terms
    return [(constant, {}), *rest] if len(rest) + 1 < len(terms) else terms


def slices(values: Floats, axes: tuple[int, ...]) -> list[Vectors]:
    """A table as a sum of products of which no two weigh the same cell."""
    if values.ndim == 0:
        return [(float(values), {})] if values else []
    if values.ndim == 1:
        constant = bool(np.all(values == values[0]))
        return slices(values[0], ()) if constant else [(1.0, {axes[0]: values})]
    every = [_groups(values, side) for side in range(values.ndim)]
    if not every[0]:
        return []  # it is 0 everywhere
    varying_sides = [
        side
        for side, groups in enumerate(every)
        if len(groups) > 1 or len(groups[0]) < values.shape[side]
    ]
    if len(varying_sides) < values.ndim:  # the same all along some sides
        first = tuple(slice(None) if side in varying_sides else 0 for side in range(values.ndim))
        return slices(np.asarray(values[first]), tuple(axes[side] for side in varying_sides))
    side = min(varying_sides, key=lambda candidate: len(every[candidate]))
    rest = (*axes[:side], *axes[side + 1 :])
    terms: list[Vectors] = []
    for members in every[side]:
        inside = np.zeros(values.shape[side])
        inside[members] = 1.0
        for coefficient, vectors in slices(np.asarray(values.take(members[0], axis=side)), rest):
            terms.append((coefficient, {axes[side]: inside, **vectors}))
    return terms


def _groups(values: Floats, side: int) -> list[list[int]]:
    """The places along one side with equal slices that are not all 0."""
    rows = np.moveaxis(values, side, 0).reshape(values.shape[side], -1)
    groups: dict[bytes, list[int]] = {}
    if values.size <= _FEW:  # one call instead of one for each row
        text = np.ascontiguousarray(rows).tobytes()
        step = len(text) // len(rows)
        for place in range(len(rows)):
            groups.setdefault(text[place * step : (place + 1) * step], []).append(place)
        groups.pop(bytes(step), None)
        return list(groups.values())
    for place in np.flatnonzero(rows.any(axis=1)).tolist():
        groups.setdefault(rows[place].tobytes(), []).append(place)
    return list(groups.values())


def multiplied(parts: list[list[Vectors]], coefficient: float) -> list[Vectors]:
    """The product of sums over different attributes, as one sum."""
    terms: list[Vectors] = []
    for combination in product(*parts):
        weight = coefficient
        vectors: dict[int, Floats] = {}
        for factor, some in combination:
            weight *= factor
            vectors |= some
        terms.append((weight, vectors))
    return terms


FLAT_CELLS = 1 << 16
"""Cells up to which an answer of more products is written out cell by cell."""


def products_of(compiled: Weights, cells: Cells) -> list[Product]:
    """Write an aggregate as few products of one vector per attribute, over the domain's cells."""
    for summand in compiled:
        undecided = summand.undecided()
        if undecided is not None:
            raise cells.explain(undecided)
    limit = MANY_PRODUCTS if cells.domain.size > FLAT_CELLS else FLAT_CELLS
    product_list = _few([_summand_products(summand, limit) for summand in compiled], compiled)
    if len(product_list) > limit:
        raise SqlError(
            f"the answer is a sum of {len(product_list):,} products of attributes, and at most "
            f"{MANY_PRODUCTS} are supported over a domain of {how_many(cells.domain.size)} cells; "
            "use OR and NOT across fewer attributes, or write several statements",
            code="size",
        )
    return [
        (coefficient, {axis: cells.over_cells(vector, axis) for axis, vector in vectors.items()})
        for coefficient, vectors in product_list
    ]


def _summand_products(summand: Summand, limit: int) -> list[Vectors]:
    parts = [
        decompose(Table(factor_table.axes, factor_table.values + 0.0))
        for factor_table in summand.tables
    ]
    count = math.prod(map(len, parts))
    if count > max(limit, MANY_PRODUCTS):
        raise SqlError(
            f"the answer is a sum of {count:,} products of attributes, and at most "
            f"{MANY_PRODUCTS} are supported; use OR and NOT across fewer attributes, "
            "or write several statements",
            code="size",
        )
    return multiplied(parts, summand.coefficient) if summand.coefficient else []


def _few(each: list[list[Vectors]], compiled: Weights) -> list[Vectors]:
    """The products of all summands, or of their sum cell by cell where that has no more."""
    separate = [single_product for products in each for single_product in products]
    if len(separate) <= 1:
        return separate
    tables = [table for summand in compiled for table in summand.tables]
    if not fits(tables):
        return separate
    axes = tuple(sorted({axis for table in tables for axis in table.axes}))
    total_values = np.zeros((1,) * len(axes))
    for summand in compiled:
        values = np.full((1,) * len(axes), summand.coefficient)
        for table in summand.tables:
            values = values * aligned(table, axes)
        total_values = total_values + values
    together = decompose(Table(axes, total_values + 0.0))
    return together if len(together) <= len(separate) else separate
