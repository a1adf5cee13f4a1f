"""Importances of queries as weights of terms; terms whose queries differ in it are split."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.maps.linear import LinearMap
from lrm.maps.matrices import DenseMap
from lrm.maps.products.batch import ProductBatch, sum_batch

__all__ = ["weigh_terms"]

Floats = NDArray[np.float64]

MOST_SPLIT = 20_000
"""Queries that may become terms of their own."""


def weigh_terms(batch: ProductBatch, importance: Floats | None) -> ProductBatch:
    """The queries of a batch in their order, weighted by the roots of their importances.

    A term whose queries differ in importance becomes one term for each of them.

    Examples
    --------
    >>> from lrm.maps.products.batch import product_batch
    >>> batch = product_batch([2, 3], [["identity", "total"], ["total", "total"]])
    >>> weigh_terms(batch, np.array([4.0, 4.0, 9.0])).weights.tolist()
    [2.0, 3.0]
    >>> weigh_terms(batch, np.array([4.0, 1.0, 9.0])).weights.tolist()
    [2.0, 1.0, 3.0]
    """
    if importance is None:
        return batch
    ends = np.cumsum(batch.term_queries())
    starts = np.concatenate([[0], ends[:-1]])
    least = np.minimum.reduceat(importance, starts)
    most = np.maximum.reduceat(importance, starts)
    mixed = least != most
    if not mixed.any():
        return replace(batch, weights=np.sqrt(most))
    if int(batch.term_queries()[mixed].sum()) > MOST_SPLIT:
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
