"""Bodies of shaped noise from files: all that they state is verified by the bodies themselves."""

from __future__ import annotations

from typing import Any

from lrm.errors import FileFormatError
from lrm.files.facts import Arrays, Facts
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.cube import MOST_SIDES, Cube
from lrm.privacy.bodies.facets import MOST_DIMENSIONS, MOST_SHIFT, Facets
from lrm.privacy.bodies.split import MOST_DIMENSIONS as MOST_SPLIT
from lrm.privacy.bodies.split import MOST_LEAVES, SplitHull, Tree
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import MOST_FREE_CELLS, Tables

__all__ = ["unpack_body"]

MOST_GROUPS = 64
"""Groups of measurements with bodies of their own."""


def unpack_body(values: Any, arrays: Arrays, prefix: str) -> Body:
    """Build the body that ``pack`` wrote; its own checks are made again."""
    kind = values.get("kind") if isinstance(values, dict) else None
    if kind == "tables":
        return _tables(Facts(values, ("kind", "sizes", "closed", "unit"), "a body"))
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
        if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_GROUPS:
            raise FileFormatError(f"'bodies' must be a list of 1 to {MOST_GROUPS} objects")
        bodies = [
            unpack_body(part_facts, arrays, f"{prefix}-{g}") for g, part_facts in enumerate(listed)
        ]
        return Groups(tuple(bodies), facts.integers("shares", 1, WHOLE))
    if kind == "split" and "-" not in prefix:
        return _split(
            Facts(values, ("kind", "dimensions", "tree", "leaves"), "a body"), arrays, prefix
        )
    raise FileFormatError(
        "a body must be of the kind 'tables', 'cube', 'facets', 'groups' or 'split'"
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
