"""Batches joined to one, and restricted to the records that meet a condition.

Importances of queries become weights of terms; terms whose queries differ in it are split.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lrm.errors import WorkloadError
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import FactorNumbers, ProductBatch, sum_batch

Product = tuple[float, Mapping[int, Floats]]
"""A coefficient, and one weight per value of some attributes: the others weigh 1."""

MANY_PRODUCTS = 64
"""Products that one query may be the sum of, without being written out cell by cell."""

WRITTEN_CELLS = 1 << 16
"""Cells up to which a query of more products is written out cell by cell."""

MOST_PRODUCTS = 512
"""Products of a condition on few combinations of values, over more cells than can be written out:
such conditions are measured by classes of combinations."""

MOST_FACTOR_WEIGHTS = 1 << 25
"""Weights of a factor that is written out: 256 MB."""

MOST_SPLIT = 20_000
"""Queries that may become terms of their own."""


def is_count(products: Sequence[Product]) -> bool:
    """Whether all weights of some products are 0 or 1."""
    return all(
        abs(coefficient) == 1.0 and all(np.isin(w, (0, 1)).all() for w in weights.values())
        for coefficient, weights in products
    )


def cell_weights(products: Sequence[Product], sizes: Sequence[int]) -> Floats:
    """The sum of products in every cell, for the small domain of a batch that is a matrix.

    Examples
    --------
    >>> cell_weights([(2.0, {1: np.array([1.0, 0.0])})], (2, 2)).tolist()
    [2.0, 0.0, 2.0, 0.0]
    """
    weights = np.zeros(tuple(sizes))
    for coefficient, vectors in products:
        part: Floats = np.full((1,) * len(sizes), coefficient)
        for axis, vector in vectors.items():
            part = part * vector.reshape([-1 if i == axis else 1 for i in range(len(sizes))])
        weights += part
    return weights.reshape(-1)


def check_rows(queries: int, size: int) -> None:
    """Refuse a factor whose rows are too many to be written out."""
    if queries * size > MOST_FACTOR_WEIGHTS:
        raise WorkloadError(
            f"{queries:,} queries over the {size:,} values of one attribute are too many to be "
            "written out; ask for fewer, or declare wider cells"
        )


def stacked(batches: Sequence[ProductBatch]) -> ProductBatch:
    """The terms of several batches over the same attributes, one after the other."""
    first = batches[0]
    if any(batch.sizes != first.sizes for batch in batches):
        raise WorkloadError("batches over attributes of different sizes cannot be joined")
    numbers = FactorNumbers(choices[:1] for choices in first.factors)
    choices, terms, start = [], [], 0
    for batch in batches:
        choice = np.zeros_like(batch.choice)
        for i, batch_factors in enumerate(batch.factors):
            places = np.array([numbers.number(i, factor) for factor in batch_factors])
            choice[:, i] = places[batch.choice[:, i]]
        choices.append(choice)
        terms.append(batch.term_of + start)
        start += batch.terms
    return ProductBatch(
        numbers.factors,
        np.vstack(choices),
        np.concatenate([batch.coefficients for batch in batches]),
        np.concatenate(terms),
        np.concatenate([batch.weights for batch in batches]),
    )


def weighed(factor: LinearMap, weights: Floats) -> LinearMap:
    """The queries of a factor with the weight of every value multiplied.

    Examples
    --------
    >>> from lrm.queries.maps.words import Identity
    >>> weighed(Identity(2), np.array([0.0, 1.0])).dense().tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    if np.all(weights == 1.0):
        return factor
    check_rows(*factor.shape)
    return factor.scale_columns(weights)


def restricted(batch: ProductBatch, condition: Sequence[Product]) -> ProductBatch:
    """Every query, with the weight of each cell multiplied by a sum of products.

    Parameters
    ----------
    condition
        At least one product; their sum is 1 in the cells that are kept and 0 in the others.
    """
    numbers = FactorNumbers(batch.factors)
    choices, coefficients = [], []
    for coefficient, weights in condition:
        choice = batch.choice.copy()
        for i, values in weights.items():
            present, place = np.unique(batch.choice[:, i], return_inverse=True)
            factors = (weighed(batch.factors[i][f], values) for f in present.tolist())
            choice[:, i] = np.array([numbers.number(i, factor) for factor in factors])[place]
        choices.append(choice)
        coefficients.append(coefficient * batch.coefficients)
    term_of = np.tile(batch.term_of, len(condition))
    order = np.argsort(term_of, kind="stable")
    return ProductBatch(
        numbers.factors,
        np.vstack(choices)[order],
        np.concatenate(coefficients)[order],
        term_of[order],
        batch.weights,
    )


def weigh_terms(batch: ProductBatch, importance: Floats | None) -> ProductBatch:
    """The queries of a batch in their order, weighted by the roots of their importances.

    A term whose queries differ in importance becomes one term for each of them.

    Examples
    --------
    >>> from lrm.queries.maps.products.batch import product_batch
    >>> batch = product_batch([2, 3], [["identity", "total"], ["total", "total"]])
    >>> weigh_terms(batch, np.array([4.0, 4.0, 9.0])).weights.tolist()
    [2.0, 3.0]
    >>> weigh_terms(batch, np.array([4.0, 1.0, 9.0])).weights.tolist()
    [2.0, 1.0, 3.0]
    """
    if importance is None:
        return batch
    ends = np.cumsum(batch.term_queries)
    starts = np.concatenate([[0], ends[:-1]])
    least = np.minimum.reduceat(importance, starts)
    most = np.maximum.reduceat(importance, starts)
    mixed = least != most
    if not mixed.any():
        return replace(batch, weights=np.sqrt(most))
    if int(batch.term_queries[mixed].sum()) > MOST_SPLIT:
        raise WorkloadError(
            f"importance differs within tables of more than {MOST_SPLIT:,} queries; give one "
            "importance to each table, or ask for the queries that matter more by themselves"
        )
    terms: list[list[tuple[float, list[LinearMap]]]] = []
    weights: list[float] = []
    for term in range(batch.terms):
        summands = batch.summands(term)
        if not mixed[term]:
            terms.append(summands)
            weights.append(math.sqrt(most[term]))
            continue
        terms += _rows(summands)
        weights += np.sqrt(importance[starts[term] : ends[term]]).tolist()
    return sum_batch(batch.sizes, terms, weights)


def _rows(
    summands: list[tuple[float, list[LinearMap]]],
) -> list[list[tuple[float, list[LinearMap]]]]:
    """Each query of a term as a term, in C order."""
    single = [(c, [_single_rows(factor) for factor in factors]) for c, factors in summands]
    lengths = [len(rows) for rows in single[0][1]]
    return [
        [(c, [rows[k] for rows, k in zip(parts, place, strict=True)]) for c, parts in single]
        for place in itertools.product(*(range(length) for length in lengths))
    ]


def _single_rows(factor: LinearMap) -> list[LinearMap]:
    if factor.kind == "total":
        return [factor]
    return [DenseMap(row[None, :]) for row in factor.dense()]
