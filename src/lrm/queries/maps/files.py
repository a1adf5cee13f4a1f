"""Linear maps as plain values and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import FileFormatError, WorkloadError
from lrm.files.facts import Arrays, Facts
from lrm.queries.maps.levels import LevelMap
from lrm.queries.maps.linear import LinearMap, Shape, StoredMap
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.ranges import RangeMap
from lrm.queries.maps.words import WORDS

KINDS: tuple[type[LinearMap], ...] = (
    DenseMap,
    SparseMap,
    RangeMap,
    *WORDS.values(),
    LevelMap,
    ProductMap,
)
"""The maps that files may hold. A new kind is a class in a file of its own, and its name here."""

_BY_NAME = {kind.kind: kind for kind in KINDS}


def pack_map(name: str, linear_map: LinearMap, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Put the arrays of a map into ``arrays`` and return its plain facts."""
    if linear_map.kind not in _BY_NAME:
        raise WorkloadError(
            f"a linear map of kind {linear_map.kind!r} cannot be saved, since "
            "lrm.queries.maps.files.KINDS does not have it; plan its matrix, written_out(), instead"
        )
    facts: dict[str, Any] = {"kind": linear_map.kind}
    for key, value in linear_map.contents().items():
        if isinstance(value, np.ndarray):
            arrays[f"{name}-{key}"] = value
        else:
            facts[key] = value
    return facts


def unpack_map(name: str, facts: Facts, arrays: Arrays, shape: Shape) -> LinearMap:
    """Build the map that ``pack_map`` wrote.

    Parameters
    ----------
    name
        The map's name among the facts, and that its arrays begin with.
    facts, arrays
        What the file holds.
    shape
        The shape that the map must have; None means any number. A map of any number of
        columns must be a product of attributes, whose sizes the file states.
    """
    kind = facts.kind(name)
    if kind not in _BY_NAME:
        raise FileFormatError(f"the {name} is of an unknown kind; was it made by another lrm?")
    if shape[1] is None and kind != ProductMap.kind:
        raise FileFormatError(f"the {name} must be a product of attributes")
    form = _BY_NAME[kind]
    values = facts.part(name, ["kind", *form.file_values])
    linear_map = form.from_file(StoredMap(name, values, arrays, shape))
    if shape[0] not in {None, linear_map.shape[0]} or shape[1] not in {None, linear_map.shape[1]}:
        raise FileFormatError(f"the {name} has the wrong shape {linear_map.shape}")
    return linear_map
