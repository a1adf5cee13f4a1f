"""Linear maps and cell maps as plain values and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import FileFormatError
from lrm.maps.levels import LevelMap
from lrm.maps.linear import AllRanges, DenseMap, LinearMap, Prefix, SparseMap

__all__ = ["pack_map", "unpack_map"]

Arrays = dict[str, NDArray[Any]]


def pack_map(name: str, linear_map: LinearMap, arrays: Arrays) -> dict[str, Any]:
    """Put the arrays of a map into ``arrays`` and return its plain facts."""
    facts: dict[str, Any] = {"kind": linear_map.kind}
    for key, value in linear_map.contents().items():
        if isinstance(value, np.ndarray):
            arrays[f"{name}-{key}"] = value
        else:
            facts[key] = value
    return facts


def unpack_map(name: str, facts: Mapping[str, Any], arrays: Arrays) -> LinearMap:
    """Build the map that ``pack_map`` took apart."""

    def array(key: str) -> NDArray[Any]:
        return arrays[f"{name}-{key}"]

    builders: dict[str, Callable[[], LinearMap]] = {
        "dense": lambda: DenseMap(array("matrix")),
        "sparse": lambda: SparseMap(
            sp.csr_array(
                (array("data"), array("indices"), array("indptr")), shape=tuple(facts["shape"])
            )
        ),
        "prefix": lambda: Prefix(facts["cells"]),
        "all-ranges": lambda: AllRanges(facts["cells"]),
        "levels": lambda: LevelMap(
            facts["cells"], tuple(facts["fanouts"]), tuple(facts["weights"]), facts["contrast"]
        ),
    }
    try:
        return builders[facts["kind"]]()
    except (KeyError, TypeError, ValueError) as reason:
        raise FileFormatError(
            f"the {name} of this file is of an unknown or broken form; was it made by another lrm?"
        ) from reason
