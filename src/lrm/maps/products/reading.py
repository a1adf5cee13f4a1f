"""Batches over products from the facts and arrays of a file; nothing there is believed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lrm.domain.core import MOST_ATTRIBUTES
from lrm.errors import FileFormatError
from lrm.files.facts import Arrays, Facts
from lrm.maps.linear import LinearMap
from lrm.maps.products.batch import MOST_CHOICES, ProductBatch
from lrm.maps.products.factors import LARGEST_SIZE, make_factor
from lrm.maps.products.map import ProductMap
from lrm.maps.words import WORDS

__all__ = ["KEYS", "read_products"]

KEYS = ["sizes", "factors"]
"""The plain values of a map of kind ``products``."""


def read_products(name: str, facts: Facts, arrays: Arrays) -> ProductMap:
    """Build the map that `ProductMap.contents` wrote, every index and size checked."""
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
