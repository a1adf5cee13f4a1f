"""Weights of an aggregate → few products of one vector per attribute."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.sql.decompose import Vectors, decompose, multiplied
from lrm.batches.sql.tables import Table, aligned, fits
from lrm.errors import SqlError
from lrm.maps.products.combine import MANY_PRODUCTS, Product
from lrm.spelling import how_many

if TYPE_CHECKING:
    from lrm.batches.sql.cells import Cells
    from lrm.batches.sql.summands import Summand, Weights

__all__ = ["products_of"]

FLAT_CELLS = 1 << 16
"""Cells up to which an answer of more products is written out cell by cell."""


def products_of(compiled: Weights, cells: Cells) -> list[Product]:
    """Write an aggregate as few products of one vector per attribute, over the domain's cells."""
    for summand in compiled:
        undecided = summand.undecided()
        if undecided is not None:
            raise cells.explain(undecided)
    limit = MANY_PRODUCTS if cells.domain.size > FLAT_CELLS else FLAT_CELLS
    found = _few([_summand_products(summand, limit) for summand in compiled], compiled)
    if len(found) > limit:
        raise SqlError(
            f"the answer is a sum of {len(found):,} products of attributes, and at most "
            f"{MANY_PRODUCTS} are supported over a domain of {how_many(cells.domain.size)} cells; "
            "use OR and NOT across fewer attributes, or write several statements",
            code="size",
        )
    return [
        (coefficient, {axis: cells.over_cells(vector, axis) for axis, vector in vectors.items()})
        for coefficient, vectors in found
    ]


def _summand_products(summand: Summand, limit: int) -> list[Vectors]:
    parts = [decompose(Table(one.axes, one.values + 0.0)) for one in summand.tables]
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
    apart = [one for products in each for one in products]
    if len(apart) <= 1:
        return apart
    tables = [table for summand in compiled for table in summand.tables]
    if not fits(tables):
        return apart
    axes = tuple(sorted({axis for table in tables for axis in table.axes}))
    whole = np.zeros((1,) * len(axes))
    for summand in compiled:
        values = np.full((1,) * len(axes), summand.coefficient)
        for table in summand.tables:
            values = values * aligned(table, axes)
        whole = whole + values
    together = decompose(Table(axes, whole + 0.0))
    return together if len(together) <= len(apart) else apart
