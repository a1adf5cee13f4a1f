"""Linear maps as plain values and arrays, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.domain.core import MOST_ATTRIBUTES
from lrm.errors import FileFormatError
from lrm.files.facts import Arrays, Facts
from lrm.maps.levels import MOST_LEVELS, LevelMap
from lrm.maps.linear import LinearMap
from lrm.maps.matrices import DenseMap, SparseMap, check_compressed, check_weights
from lrm.maps.products.batch import MOST_CHOICES, ProductBatch
from lrm.maps.products.map import ProductMap
from lrm.maps.words import LARGEST_SIZE, WORDS, AllRanges, Prefix, make_factor

_MOST = 1 << 40

MOST_EMPTY_ROWS = 1 << 22
"""Rows of a sparse map beyond its number of entries: a few bytes pack any number of them."""


Shape = tuple[int | None, int | None]
"""Rows and columns; None stands for any number."""


def pack_map(name: str, linear_map: LinearMap, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Put the arrays of a map into ``arrays`` and return its plain facts."""
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
    if kind not in _BUILDERS:
        raise FileFormatError(f"the {name} is of an unknown kind; was it made by another lrm?")
    if shape[1] is None and kind != ProductMap.kind:
        raise FileFormatError(f"the {name} must be a product of attributes")
    keys, build = _BUILDERS[kind]
    linear_map = build(name, facts.part(name, ["kind", *keys]), arrays, shape)
    if shape[0] not in {None, linear_map.shape[0]} or shape[1] not in {None, linear_map.shape[1]}:
        raise FileFormatError(f"the {name} has the wrong shape {linear_map.shape}")
    return linear_map


def _dense(name: str, facts: Facts, arrays: Arrays, shape: Shape) -> LinearMap:
    del facts
    matrix = arrays.take(f"{name}-matrix", "f8", shape)
    if 0 in matrix.shape:
        raise FileFormatError(f"the {name} is empty")
    check_weights(matrix)
    return DenseMap(matrix)


def _sparse(name: str, facts: Facts, arrays: Arrays, shape: Shape) -> LinearMap:
    sides = facts.integers("shape", 1, _MOST)
    if len(sides) != 2 or sides[1] != shape[1]:
        raise FileFormatError(f"the {name} has the wrong shape {sides}")
    data = arrays.take(f"{name}-data", "f8", (None,))
    indices = arrays.take(f"{name}-indices", "i8", (None,))
    indptr = arrays.take(f"{name}-indptr", "i8", (None,))
    check_weights(data)
    if sides[0] > max(len(data), MOST_EMPTY_ROWS):
        raise FileFormatError(f"the {name} has {sides[0]:,} rows, most of them empty")
    # Before SciPy sees them: building a matrix alone already follows its indices.
    check_compressed(data, indices, indptr, sides)
    sparse_map = SparseMap(sp.csr_array((data, indices, indptr), shape=sides))
    check_weights(sparse_map.matrix.data)  # duplicates were summed
    return sparse_map


def _prefix(name: str, facts: Facts, arrays: Arrays, shape: Shape) -> LinearMap:
    del name, arrays
    return Prefix(facts.integer("cells", 1, shape[1] or _MOST))


def _all_ranges(name: str, facts: Facts, arrays: Arrays, shape: Shape) -> LinearMap:
    del name, arrays
    return AllRanges(facts.integer("cells", 1, shape[1] or _MOST))


def _levels(name: str, facts: Facts, arrays: Arrays, shape: Shape) -> LinearMap:
    del name, arrays
    return LevelMap(
        facts.integer("cells", 1, shape[1] or _MOST),
        facts.integers("fanouts", 2, _MOST)[: MOST_LEVELS + 1],
        facts.numbers("weights"),
        facts.flag("contrast"),
    )


def _products(name: str, facts: Facts, arrays: Arrays, shape: Shape) -> LinearMap:
    """Build the map that `ProductMap.contents` wrote, every index and size checked."""
    del shape
    sizes = facts.integers("sizes", 1, LARGEST_SIZE)
    coefficients = arrays.take(f"{name}-coefficients", "f8", (None,))
    summands, attributes = len(coefficients), len(sizes)
    if not 1 <= attributes <= MOST_ATTRIBUTES or not 1 <= summands * attributes <= MOST_CHOICES:
        raise FileFormatError(f"the {name} has too many terms or attributes, or none")
    term_of = arrays.take(f"{name}-term-of", "i8", (summands,))
    places = arrays.take(f"{name}-places", "i8", (None,))
    choices = arrays.take(f"{name}-choices", "i8", (len(places),))
    if len(places) and not (
        places[0] >= 0 and places[-1] < summands * attributes and np.all(places[1:] > places[:-1])
    ):
        raise FileFormatError(f"the {name} chooses a factor for a term that does not exist")
    factors = _factors(name, facts.any("factors"), sizes, arrays)
    most = max(map(len, factors))
    if len(choices) and not (choices.min() >= 1 and choices.max() < most):
        raise FileFormatError(f"the {name} chooses a factor that does not exist")
    choice = np.zeros(summands * attributes, dtype=np.int32)
    choice[places] = choices
    # Terms are numbered from 0: one number more than there are products would be a term of none.
    terms = int(term_of.max()) + 1
    if not 1 <= terms <= summands:
        raise FileFormatError(f"the {name} has a term without products")
    return ProductMap(
        ProductBatch(
            factors,
            choice.reshape(summands, attributes),
            coefficients.copy(),
            term_of.copy(),
            np.ones(terms),
        )
    )


_BUILDERS: dict[str, tuple[list[str], Callable[[str, Facts, Arrays, Shape], LinearMap]]] = {
    "dense": ([], _dense),
    "sparse": (["shape"], _sparse),
    "prefix": (["cells"], _prefix),
    "all-ranges": (["cells"], _all_ranges),
    "products": (["sizes", "factors"], _products),
    "levels": (["cells", "fanouts", "weights", "contrast"], _levels),
}
"""The plain values of each kind, and how it is built."""


def _factors(
    name: str, facts: Any, sizes: tuple[int, ...], arrays: Arrays
) -> tuple[tuple[LinearMap, ...], ...]:
    if not isinstance(facts, list) or len(facts) != len(sizes):
        raise FileFormatError(f"the {name} must have a list of factors for each attribute")
    rows = arrays.take(f"{name}-rows", "f8", (None,))
    start, factors = 0, []
    for size, listed in zip(sizes, facts, strict=True):
        if not isinstance(listed, list) or not listed:
            raise FileFormatError(f"the {name} must have a list of factors for each attribute")
        choices = []
        for fact in listed:
            kind, queries = _kind(name, fact)
            weights = queries * size if kind == "rows" else 0
            if start + weights > len(rows):
                raise FileFormatError(f"the {name} has too few rows for its factors")
            entries = (
                rows[start : start + weights].reshape(queries, size).copy() if weights else None
            )
            start += weights
            choices.append(make_factor(kind if entries is None else entries, size))
            if len(choices[-1]) != queries:
                raise FileFormatError(f"a factor of the {name} has the wrong number of queries")
        factors.append(tuple(choices))
    if start != len(rows):
        raise FileFormatError(f"the {name} has more rows than its factors")
    return tuple(factors)


def _kind(name: str, fact: Any) -> tuple[str, int]:
    if isinstance(fact, list) and len(fact) == 2 and type(fact[1]) is int:
        for kind in (*WORDS, "rows"):
            if fact[0] == kind and 1 <= fact[1] <= math.comb(LARGEST_SIZE + 1, 2):
                return kind, fact[1]
    raise FileFormatError(f"a factor of the {name} must be a kind with a number of queries")
