"""What a plan measures, as plain facts and arrays, and back: integers, over cells or products.

Nothing is believed: the records check themselves, and what follows from them (sensitivity,
limits, digest) is computed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import FileFormatError
from lrm.exact.cells import CellMap
from lrm.exact.integers import CARRIER_BITS, IntegerStrategy
from lrm.exact.products.integers import IntegerBasis, MarginalBasis, ResidualBasis
from lrm.exact.products.measured import MeasuredGroup, MeasuredProducts
from lrm.exact.products.strategy import Axis
from lrm.exact.protocols import Measured
from lrm.files.facts import Arrays, Facts
from lrm.maps.files import pack_map, unpack_map
from lrm.maps.linear import LinearMap
from lrm.maps.products.map import ProductMap

__all__ = ["pack_measured", "unpack_measured"]

CELLS = ("kind", "strategy", "merged_cells", "bits", "row_rank")
PRODUCTS = ("kind", "bits", "residual", "combined", "groups")

MOST_GROUPS = 1 << 16
"""Groups of a strategy over products."""


def pack_measured(measured: Measured, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Put the arrays into ``arrays`` and return the plain facts."""
    if isinstance(measured, MeasuredProducts):
        return _pack_products(measured, arrays)
    flat = measured.flat()
    arrays["cell-index"] = flat.cell_map.index
    arrays["cell-factor"] = flat.cell_map.factor
    return {
        "kind": "cells",
        "strategy": pack_map("strategy", flat.matrix, arrays),
        "merged_cells": flat.cell_map.merged_size,
        "bits": flat.bits,
        "row_rank": flat.row_rank,
    }


def unpack_measured(facts: Facts, arrays: Arrays, queries: LinearMap) -> Measured:
    """Build what ``pack_measured`` took apart, for queries over the same cells."""
    if facts.kind("measured") == "products":
        return _unpack_products(facts.part("measured", PRODUCTS), arrays, queries)
    own = facts.part("measured", CELLS)
    cells = queries.shape[1]
    index = arrays.take("cell-index", "i8", (cells,))
    merged = own.integer("merged_cells", 1, cells)
    return IntegerStrategy(
        unpack_map("strategy", own, arrays, (None, merged)),
        CellMap(merged, index, arrays.take("cell-factor", "i8", (cells,))),
        own.integer("bits", 0, CARRIER_BITS),
        own.optional("row_rank", lambda name: own.integer(name, 1, merged)),
    )


def _pack_products(measured: MeasuredProducts, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    groups = []
    for g, group in enumerate(measured.groups):
        arrays[f"group-{g}-terms"] = group.terms
        members = [k for one in group.sets for k in one]
        arrays[f"group-{g}-members"] = np.array(members, dtype=np.int64)
        lengths = [len(one) for one in group.sets]
        arrays[f"group-{g}-lengths"] = np.array(lengths, dtype=np.int64)
        arrays[f"group-{g}-factors"] = np.array(group.factors, dtype=np.int64)
        for axis in group.axes:
            for i, marks in zip(axis.attributes, axis.labels, strict=True):
                if not np.array_equal(marks, np.arange(len(marks))):
                    arrays[f"group-{g}-labels-{i}"] = marks
        for k, basis in enumerate(group.bases):
            for name, array in basis.contents().items():
                arrays[f"group-{g}-basis-{k}-{name}"] = array
        groups.append({"axes": [list(axis.attributes) for axis in group.axes]})
    return {
        "kind": "products",
        "bits": measured.bits,
        "residual": measured.residual,
        "combined": measured.combined,
        "groups": groups,
    }


def _unpack_products(facts: Facts, arrays: Arrays, queries: LinearMap) -> MeasuredProducts:
    if not isinstance(queries, ProductMap):
        raise FileFormatError("the plan measures products, but its queries are over cells")
    listed = facts.any("groups")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_GROUPS:
        raise FileFormatError("the plan's groups must be a list")
    residual = facts.flag("residual")
    groups = tuple(
        _unpack_group(g, values, arrays, queries.sizes, residual=residual)
        for g, values in enumerate(listed)
    )
    return MeasuredProducts(
        queries.sizes,
        groups,
        facts.integer("bits", 0, CARRIER_BITS),
        residual,
        facts.flag("combined"),
    )


def _unpack_group(
    g: int, values: Any, arrays: Arrays, sizes: tuple[int, ...], *, residual: bool
) -> MeasuredGroup:
    axes = tuple(_axis(g, members, arrays, sizes) for members in _axes(values, len(sizes)))
    sets = _sets(g, arrays)
    factors = arrays.take(f"group-{g}-factors", "i8", (len(sets),))
    return MeasuredGroup(
        arrays.take(f"group-{g}-terms", "i8", (None,)),
        axes,
        tuple(_basis(g, k, axis.size, arrays, residual=residual) for k, axis in enumerate(axes)),
        sets,
        tuple(factors.tolist()),
    )


def _axes(values: Any, attributes: int) -> list[list[int]]:
    listed = values.get("axes") if isinstance(values, dict) and set(values) == {"axes"} else None
    if not isinstance(listed, list) or not all(isinstance(one, list) for one in listed):
        raise FileFormatError("a group of the plan must list its axes")
    flat = [i for one in listed for i in one]
    if any(type(i) is not int for i in flat) or sorted(flat) != list(range(attributes)):
        raise FileFormatError("the axes of a group must have every attribute once")
    if not all(listed):
        raise FileFormatError("an axis of a group must have an attribute")
    return listed


def _axis(g: int, members: list[int], arrays: Arrays, sizes: tuple[int, ...]) -> Axis:
    labels = []
    for i in members:
        name = f"group-{g}-labels-{i}"
        marks = np.arange(sizes[i])
        if arrays.has(name):
            marks = arrays.take(name, "i8", (sizes[i],))
            if marks.min() < -1 or marks.max() >= sizes[i]:
                raise FileFormatError("a label of a merged value is out of range")
            if len(np.unique(marks[marks >= 0])) != marks.max() + 1:
                raise FileFormatError("the labels of merged values must be numbered in a row")
        labels.append(marks)
    axis = Axis(tuple(members), tuple(labels))
    if axis.size < 1:
        raise FileFormatError("an axis of the plan counts no value")
    return axis


def _sets(g: int, arrays: Arrays) -> tuple[tuple[int, ...], ...]:
    members = arrays.take(f"group-{g}-members", "i8", (None,))
    lengths = arrays.take(f"group-{g}-lengths", "i8", (None,))
    if lengths.min(initial=0) < 0 or sum(lengths.tolist()) != len(members):
        raise FileFormatError("the sets of the plan do not fit their lengths")
    ends = np.cumsum(lengths).tolist()
    return tuple(
        tuple(members[end - length : end].tolist())
        for end, length in zip(ends, lengths.tolist(), strict=True)
    )


def _basis(g: int, k: int, size: int, arrays: Arrays, *, residual: bool) -> IntegerBasis:
    name = f"group-{g}-basis-{k}"
    if not residual and not arrays.has(f"{name}-rows"):
        return MarginalBasis.identity(size)
    if not residual:
        return MarginalBasis(
            arrays.take(f"{name}-diagonal", "i8", (size,)),
            arrays.take(f"{name}-rows", "i8", (None, size)),
        )
    if not arrays.has(f"{name}-rows"):
        return ResidualBasis(size)
    return ResidualBasis(
        size,
        arrays.take(f"{name}-rows", "i8", (None, size)),
        arrays.take(f"{name}-null", "i8", (size,)),
    )
