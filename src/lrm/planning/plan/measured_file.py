"""What a plan measures, as plain facts and arrays, and back: integers, over cells or products.

Nothing is believed: the records check themselves, and what follows from them (sensitivity,
limits, digest) is computed again. So are bodies of shaped noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import FileFormatError
from lrm.files.facts import Arrays, Facts
from lrm.files.reading import FILE_LIMIT
from lrm.planning.design.cells import CellMap
from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.integers import CARRIER_BITS, CellBasis
from lrm.planning.design.measured import Measured, plain_tables
from lrm.planning.design.products.axes import Axis
from lrm.planning.design.products.basis import MarginalBasis, ProductBasis
from lrm.planning.design.products.kinds import KINDS
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.planning.design.products.trees import TreeBasis
from lrm.planning.limits import MEMORY
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.cube import MOST_SIDES, Cube
from lrm.privacy.bodies.facets import MOST_DIMENSIONS, MOST_SHIFT, Facets
from lrm.privacy.bodies.shared import SharedTables
from lrm.privacy.bodies.split import MOST_DIMENSIONS as MOST_SPLIT
from lrm.privacy.bodies.split import MOST_LEAVES, SplitHull, Tree
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import MOST_FREE_CELLS, Tables
from lrm.privacy.norms import BodyNorm, Norm, norm_of
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.files import pack_map, unpack_map
from lrm.queries.maps.linear import Integers
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.workload import Workload

CELLS = ("kind", "strategy", "merged_cells", "bits", "row_rank")
PRODUCTS = ("kind", "bits", "residual", "combined", "groups")

MEMBERS = {
    "cells": CELLS,
    "shaped": (*CELLS, "body"),
    "replaced": (*CELLS, "body"),
    "products": PRODUCTS,
    "mixed": (*PRODUCTS, "body"),
    "tables": ("kind", "bits", "tables", "body"),
}
"""What is stated of each kind: of a list of cells with independent noise, with a body, or with one
for replaced units; of products, perhaps some with a body; and of tables with a body."""

MOST_GROUPS = 1 << 16
"""Groups of a strategy over products."""

MOST_INTEGERS = FILE_LIMIT // 8
"""Integers of a file."""

MOST_TABLES = 1 << 12
"""Tables that are measured with the noise of one body."""


def pack_measured(measured: Measured, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Put the arrays into ``arrays`` and return the plain facts."""
    norm = measured.norm
    body = {"body": norm.shape.pack(arrays, "body")} if isinstance(norm, BodyNorm) else {}
    if measured.cells is not None:
        kind = "cells"
        if isinstance(norm, BodyNorm):
            kind = "replaced" if norm.replaced else "shaped"
        facts = _pack_cells(measured.cells, arrays)
        return {"kind": kind, "bits": measured.bits, **facts, **body}
    if body and measured.is_mixed:
        return {**_pack_products(measured, arrays), "kind": "mixed", **body}
    if body:
        labels, tables = measured.tables
        arrays["measured"] = np.concatenate(labels)
        return {"kind": "tables", "bits": measured.bits, "tables": plain_tables(tables), **body}
    return _pack_products(measured, arrays)


def _pack_cells(cells: CellBasis, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    arrays["cell-index"] = cells.cell_map.index
    arrays["cell-factor"] = cells.cell_map.factor
    return {
        "strategy": pack_map("strategy", cells.matrix, arrays),
        "merged_cells": cells.cell_map.merged_size,
        "row_rank": cells.row_rank,
    }


def _unit_of(workload: Workload) -> PrivacyUnit | None:
    return None if workload.domain is None else workload.domain.unit


def unpack_measured(facts: Facts, arrays: Arrays, workload: Workload, noise: str) -> Measured:
    """Build what ``pack_measured`` wrote, for queries over the same cells."""
    members = MEMBERS.get(facts.kind("measured"), CELLS)
    measured_facts = facts.part("measured", members)
    kind, unit = measured_facts.choice("kind", *MEMBERS), _unit_of(workload)
    if ("body" in members) != (noise == BodyNorm.noise):
        raise FileFormatError("shaped noise needs a strategy with a body, and no other has one")
    if kind == "tables":
        return _unpack_tables(measured_facts, arrays, workload.products)
    if "body" in members:
        body = unpack_body(measured_facts.any("body"), arrays, "body")
        norm: Norm = BodyNorm(body, replaced=kind == "replaced")
    else:
        norm = norm_of(noise, unit)
    if kind in {"products", "mixed"}:
        measured = _unpack_products(measured_facts, arrays, workload.products, norm)
        if measured.is_mixed != (kind == "mixed"):
            raise FileFormatError("a strategy of the kind 'mixed' needs two groups or more")
        return measured
    cells = workload.shape[1]
    index = arrays.take("cell-index", "i8", (cells,))
    merged = measured_facts.integer("merged_cells", 1, cells)
    return Measured.of_cells(
        unpack_map("strategy", measured_facts, arrays, (None, merged)),
        CellMap(merged, index, arrays.take("cell-factor", "i8", (cells,))),
        measured_facts.integer("bits", 0, CARRIER_BITS),
        measured_facts.optional("row_rank", lambda name: measured_facts.integer(name, 1, merged)),
        norm,
    )


def _unpack_tables(facts: Facts, arrays: Arrays, queries: ProductMap | None) -> Measured:
    if queries is None:
        raise FileFormatError("the plan measures tables, but its queries are over cells")
    labels = arrays.take("measured", "i8", (sum(queries.sizes),)).copy()
    return Measured.of_tables(
        tuple(np.split(labels, np.cumsum(queries.sizes)[:-1])),
        _attributes(facts.any("tables"), len(queries.sizes)),
        facts.integer("bits", 0, CARRIER_BITS - 1),
        unpack_body(facts.any("body"), arrays, "body"),
    )


def _attributes(listed: Any, attributes: int) -> list[tuple[int, ...]]:
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_TABLES:
        raise FileFormatError(f"'tables' must be a list of 1 to {MOST_TABLES:,} tables")
    tables = [tuple(table) if isinstance(table, list) else (table,) for table in listed]
    if any(type(i) is not int or not 0 <= i < attributes for table in tables for i in table):
        raise FileFormatError("'tables' must consist of attributes of the plan")
    return tables


def _pack_products(measured: Measured, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    # One array for all integers: an archive has few members, a strategy may have many bases.
    pieces: list[Integers] = []
    groups = [_pack_group(group, pieces) for group in measured.groups]
    arrays["measured"] = np.concatenate([np.asarray(piece).reshape(-1) for piece in pieces])
    return {
        "kind": "products",
        "bits": measured.bits,
        "residual": measured.residual,
        "combined": measured.combined,
        "groups": groups,
    }


def _pack_group(group: MeasuredGroup, pieces: list[Integers]) -> dict[str, Any]:
    members = [k for axis_set in group.sets for k in axis_set]
    pieces += [
        group.terms,
        np.array([len(axis_set) for axis_set in group.sets], dtype=np.int64),
        np.array(members, dtype=np.int64),
        np.array(group.factors, dtype=np.int64),
        np.array(group.folds, dtype=np.int64),
    ]
    labels = []
    for axis in group.axes:
        for i, marks in zip(axis.attributes, axis.labels, strict=True):
            if not np.array_equal(marks, np.arange(len(marks))):
                labels.append(i)
                pieces.append(marks)
    classes = [(k, axis.classes) for k, axis in enumerate(group.axes) if axis.classes is not None]
    parts = [(k, axis.parts) for k, axis in enumerate(group.axes) if axis.parts is not None]
    pieces += [*(marks for _, marks in classes), *(array for _, array in parts)]
    bases = []
    for k, basis in enumerate(group.product_bases):
        contents = basis.contents()
        if contents:
            unnamed = isinstance(basis, MarginalBasis | ResidualBasis | TreeBasis)
            rows = len(contents.get("rows", ()))
            bases.append([k, rows] if unnamed else [k, rows, basis.kind])
            pieces += [array for _, array in sorted(contents.items())]
    mixes = sorted(group.mixes.items())
    pieces += [mix for _, mix in mixes]
    further: dict[str, Any] = {"classes": [k for k, _ in classes]} if classes else {}
    further |= {"parts": [[k, len(array)] for k, array in parts]} if parts else {}
    further |= {"mixes": [[b, len(mix)] for b, mix in mixes]} if mixes else {}
    return {
        "axes": [list(axis.attributes) for axis in group.axes],
        "terms": len(group.terms),
        "sets": len(group.sets),
        "members": len(members),
        "labels": labels,
        "bases": bases,
        **further,
    }


class _Pieces:
    """The integers of a strategy, taken piece by piece from one array."""

    def __init__(self, integers: Integers) -> None:
        self._integers, self._taken = integers, 0

    def take(self, *shape: int) -> Integers:
        """The next integers, in a shape whose sides are not negative."""
        start, self._taken = self._taken, self._taken + math.prod(shape)
        if self._taken > len(self._integers):
            raise FileFormatError("the array 'measured' has too few integers for its groups")
        return self._integers[start : self._taken].reshape(shape).copy()

    def check_all_taken(self) -> None:
        """Refuse integers that belong to no group."""
        if self._taken != len(self._integers):
            raise FileFormatError("the array 'measured' has more integers than its groups")


def _unpack_products(
    facts: Facts, arrays: Arrays, queries: ProductMap | None, norm: Norm
) -> Measured:
    if queries is None:
        raise FileFormatError("the plan measures products, but its queries are over cells")
    listed = facts.any("groups")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_GROUPS:
        raise FileFormatError(f"'groups' must be a list of 1 to {MOST_GROUPS:,} objects")
    if sum(queries.sizes) * len(listed) > MEMORY:
        raise FileFormatError(
            f"the attributes of the plan have more than {MEMORY:,} values over all groups"
        )
    residual = facts.flag("residual")
    pieces = _Pieces(arrays.take("measured", "i8", (None,)))
    groups = tuple(
        _unpack_group(values, pieces, queries.sizes, residual=residual) for values in listed
    )
    pieces.check_all_taken()
    return Measured(
        queries.sizes,
        groups,
        facts.integer("bits", 0, CARRIER_BITS),
        norm,
        facts.flag("combined"),
    )


def _unpack_group(
    values: Any, pieces: _Pieces, sizes: tuple[int, ...], *, residual: bool
) -> MeasuredGroup:
    # What few groups have.
    rare = ("classes", "parts", "mixes")
    further = [name for name in rare if isinstance(values, dict) and name in values]
    usual = ("axes", "terms", "sets", "members", "labels", "bases")
    facts = Facts(values, (*usual, *further), "a group")
    terms = pieces.take(facts.integer("terms", 0, MOST_INTEGERS))
    sets, factors, folds = _sets(facts, pieces)
    axes = _axes(facts, pieces, sizes)
    if "classes" in further:
        axes = _with_classes(axes, facts.integers("classes", 0, len(axes) - 1), pieces)
    if "parts" in further:
        corners = _heights(facts.any("parts"), "parts", len(axes))
        axes = tuple(
            replace(axis, parts=pieces.take(corners[k], axis.size)) if k in corners else axis
            for k, axis in enumerate(axes)
        )
    listed = facts.any("bases")
    heights = _heights(_unnamed(listed), "bases", len(axes))
    kinds = {pair[0]: pair[2] for pair in listed if len(pair) > 2}
    bases = tuple(
        _basis(axis.size, heights.get(k), kinds.get(k), pieces, residual=residual)
        for k, axis in enumerate(axes)
    )
    mixes = {}
    for b, rows in _heights(
        facts.any("mixes") if "mixes" in further else [], "mixes", len(sets)
    ).items():
        # The axes of a set are checked with its group; a product may be of any size.
        if not all(0 <= k < len(axes) for k in sets[b]):
            raise FileFormatError("a set must consist of axes of its group")
        width = math.prod(bases[k].height for k in sets[b])
        mixes[b] = pieces.take(rows, width)
    return MeasuredGroup(terms, axes, bases, sets, factors, folds, mixes)


def _sets(
    facts: Facts, pieces: _Pieces
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...]]:
    count = facts.integer("sets", 0, MOST_INTEGERS)
    lengths = pieces.take(count)
    members = pieces.take(facts.integer("members", 0, MOST_INTEGERS)).tolist()
    factors, folds = pieces.take(count), pieces.take(count)
    # Python's integers: those of 64 bits could wrap around to the right sum.
    if lengths.min(initial=0) < 0 or sum(lengths.tolist()) != len(members):
        raise FileFormatError("the sets of a group do not fit their lengths")
    ends = np.cumsum(lengths).tolist()
    sets = tuple(
        tuple(members[end - length : end])
        for end, length in zip(ends, lengths.tolist(), strict=True)
    )
    return sets, tuple(factors.tolist()), tuple(folds.tolist())


def _axes(facts: Facts, pieces: _Pieces, sizes: tuple[int, ...]) -> tuple[Axis, ...]:
    listed = facts.any("axes")
    if not isinstance(listed, list) or not all(
        isinstance(axis_members, list) and axis_members for axis_members in listed
    ):
        raise FileFormatError("'axes' of a group must be lists of attributes")
    flat = [i for axis_members in listed for i in axis_members]
    if any(type(i) is not int for i in flat) or sorted(flat) != list(range(len(sizes))):
        raise FileFormatError("'axes' of a group must have every attribute once")
    merged = set(facts.integers("labels", 0, len(sizes) - 1))
    stored = [i for i in flat if i in merged]
    if list(facts.integers("labels", 0, len(sizes) - 1)) != stored:
        raise FileFormatError("'labels' of a group must be attributes in the order of its axes")
    labels = {i: pieces.take(sizes[i]) if i in merged else np.arange(sizes[i]) for i in flat}
    return tuple(
        Axis(tuple(axis_members), tuple(labels[i] for i in axis_members)) for axis_members in listed
    )


def _with_classes(
    axes: tuple[Axis, ...], classed: Sequence[int], pieces: _Pieces
) -> tuple[Axis, ...]:
    if list(classed) != sorted(set(classed)):
        raise FileFormatError("'classes' of a group must be axes, each once and in order")
    return tuple(
        replace(axis, classes=pieces.take(axis.combinations)) if k in classed else axis
        for k, axis in enumerate(axes)
    )


def _heights(listed: Any, name: str, count: int) -> dict[int, int]:
    """Numbers of rows, of the bases that are not the usual ones or of mixes, by axis or set."""
    height_by_axis: dict[int, int] = {}
    for height_pair in listed if isinstance(listed, list) else [None]:
        if (
            not isinstance(height_pair, list)
            or len(height_pair) != 2
            or any(type(n) is not int for n in height_pair)
        ):
            raise FileFormatError(f"{name!r} of a group must be pairs of a number and a height")
        k, rows = height_pair
        if not max(height_by_axis, default=-1) < k < count or not 0 <= rows <= MOST_INTEGERS:
            raise FileFormatError(f"{name!r} of a group must have different numbers, in order")
        height_by_axis[k] = rows
    return height_by_axis


def _unnamed(listed: Any) -> Any:
    """Pairs of an axis and rows, without the kind that some bases are of."""
    if not isinstance(listed, list):
        return listed
    for entry in listed:
        if isinstance(entry, list) and len(entry) == 3 and entry[2] not in KINDS:
            raise FileFormatError(f"a basis must be of the kind {', '.join(map(repr, KINDS))}")
    return [entry[:2] if isinstance(entry, list) and len(entry) == 3 else entry for entry in listed]


def _basis(
    size: int, rows: int | None, kind: str | None, pieces: _Pieces, *, residual: bool
) -> ProductBasis:
    """A basis; those without rows or without a kind are the ones that most groups have."""
    if rows is None:
        return ResidualBasis(size) if residual else MarginalBasis.identity(size)
    if kind is None:
        usual = ResidualBasis if rows else TreeBasis
        kind = usual.kind if residual else MarginalBasis.kind
    return KINDS[kind].from_file(size, rows, pieces.take)


MOST_BODIES = 64
"""Groups of measurements with bodies of their own."""


def unpack_body(values: Any, arrays: Arrays, prefix: str) -> Body:
    """Build the body that ``pack`` wrote; its own checks are made again."""
    kind = values.get("kind") if isinstance(values, dict) else None
    if kind == "tables":
        return _tables(Facts(values, ("kind", "sizes", "closed", "unit"), "a body"))
    if kind == "shared tables":
        return _shared_tables(Facts(values, ("kind", "tables", "unit"), "a body"))
    if kind == "cube":
        facts = Facts(values, ("kind", "sides", "unit"), "a body")
        return Cube(facts.integer("sides", 1, MOST_SIDES), facts.whole("unit"))
    if kind == "facets":
        facts = Facts(values, ("kind", "shift", "dimensions"), "a body")
        k = facts.integer("dimensions", 2, MOST_DIMENSIONS)
        vertices = arrays.take(f"{prefix}-vertices", "i8", (None, k))
        facets = arrays.take(f"{prefix}-facets", "i8", (None, k))
        return Facets(vertices, facets, facts.integer("shift", 0, MOST_SHIFT))
    if kind == "groups" and "-" not in prefix:
        facts = Facts(values, ("kind", "shares", "bodies"), "a body")
        listed = facts.any("bodies")
        if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_BODIES:
            raise FileFormatError(f"'bodies' must be a list of 1 to {MOST_BODIES} objects")
        bodies = [
            unpack_body(part_facts, arrays, f"{prefix}-{g}") for g, part_facts in enumerate(listed)
        ]
        return Groups(tuple(bodies), facts.integers("shares", 1, WHOLE))
    if kind == "split" and "-" not in prefix:
        return _split(
            Facts(values, ("kind", "dimensions", "tree", "leaves"), "a body"), arrays, prefix
        )
    raise FileFormatError(
        "a body must be of the kind 'tables', 'shared tables', 'cube', 'facets', 'groups' or "
        "'split'"
    )


def _split(facts: Facts, arrays: Arrays, prefix: str) -> SplitHull:
    k = facts.integer("dimensions", 2, MOST_SPLIT)
    points = arrays.take(f"{prefix}-points", "i8", (None, k))
    listed = facts.any("leaves")
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST_LEAVES:
        raise FileFormatError(f"'leaves' must be a list of 2 to {MOST_LEAVES} objects")
    leaves = [
        unpack_body(leaf_facts, arrays, f"{prefix}-{g}") for g, leaf_facts in enumerate(listed)
    ]
    return SplitHull(points, tuple(leaves), _tree(facts.any("tree")))


def _tree(values: Any, depth: int = 0) -> Tree:
    if type(values) is int:
        return values
    if not isinstance(values, list) or not 2 <= len(values) <= MOST_LEAVES or depth > MOST_LEAVES:
        raise FileFormatError("'tree' must be leaves, or lists of trees")
    return tuple(_tree(subtree, depth + 1) for subtree in values)


def _tables(facts: Facts) -> Tables:
    sizes = facts.integers("sizes", 1, MOST_FREE_CELLS)
    closed = facts.integers("closed", 0, 1)
    return Tables(sizes, tuple(bool(closed_flag) for closed_flag in closed), facts.whole("unit"))


def _shared_tables(facts: Facts) -> SharedTables:
    """Tables as lists of attributes, each followed by its number of values."""
    listed = facts.any("tables")
    if not isinstance(listed, list) or not len(listed) <= MOST_FREE_CELLS:
        raise FileFormatError(f"'tables' must be a list of at most {MOST_FREE_CELLS:,} tables")
    tables = []
    for entries in listed:
        if not isinstance(entries, list) or len(entries) % 2 or len(entries) > MOST_FREE_CELLS:
            raise FileFormatError("a table must be a list of attributes and numbers of values")
        if any(type(x) is not int or not 0 <= x < 1 << 31 for x in entries):
            raise FileFormatError("a table must be a list of attributes and numbers of values")
        tables.append(tuple(zip(entries[::2], entries[1::2], strict=True)))
    return SharedTables(tuple(tables), facts.whole("unit"))
