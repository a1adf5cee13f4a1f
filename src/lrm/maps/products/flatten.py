"""Batches over small products, written out as one sparse matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.factors import Factor

__all__ = ["entries", "filled", "sparse_matrix"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Entries = tuple[Integers, Integers, Floats]
"""Row, column and weight of every entry that is not 0, sorted by row, then column."""


def filled(factor: Factor) -> int:
    """Number of non-zero weights of a factor."""
    n = factor.size
    match factor.kind:
        case "total" | "identity":
            return n
        case "prefix":
            return n * (n + 1) // 2
        case "all-ranges":
            return n * (n + 1) * (n + 2) // 6
        case _:
            return int(np.count_nonzero(factor.dense()))


def entries(factor: Factor) -> Entries:
    """The non-zero weights of a factor, without its dense matrix where it is a word.

    Examples
    --------
    >>> row, column, weight = entries(Factor("prefix", 2))
    >>> row.tolist(), column.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    n = factor.size
    values = np.arange(n)
    match factor.kind:
        case "total":
            return np.zeros(n, dtype=np.int64), values, np.ones(n)
        case "identity":
            return values, values, np.ones(n)
        case "prefix":
            return _runs(np.zeros(n, dtype=np.int64), values)
        case "all-ranges":
            first, last = np.triu_indices(n)
            return _runs(first, last)
        case _:
            rows = np.asarray(factor.rows)
            row, column = np.nonzero(rows)
            return row, column, rows[row, column]


def _runs(first: Integers, last: Integers) -> Entries:
    lengths = last - first + 1
    ends = np.cumsum(lengths)
    column = np.arange(ends[-1]) - np.repeat(ends - lengths - first, lengths)
    return np.repeat(np.arange(len(first)), lengths), column, np.ones(len(column))


def sparse_matrix(batch: ProductBatch) -> sp.csr_array:
    """All queries over all cells with compressed rows; terms one below the other.

    Cost: the number of non-zero weights, and some 10 µs per product and attribute.
    """
    known = lru_cache(maxsize=None)(lambda i, f: entries(batch.factors[i][f]))
    indices, data, lengths = [], [], []
    for term, queries in enumerate(batch.term_queries().tolist()):
        parts = [_product(batch, s, known) for s in batch.summand_numbers(term).tolist()]
        row, column, weight = parts[0] if len(parts) == 1 else _joined(parts)
        if queries > 1:
            order = np.argsort(row, kind="stable")
            column, weight = column[order], weight[order]
        indices.append(column)
        data.append(weight)
        lengths.append(np.bincount(row, minlength=queries))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    shape = (len(indptr) - 1, math.prod(batch.sizes))
    kind = np.int32 if max(int(indptr[-1]), shape[1]) < 2**31 else np.int64
    matrix = sp.csr_array(
        (np.concatenate(data), np.concatenate(indices).astype(kind), indptr.astype(kind)),
        shape=shape,
    )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _joined(parts: list[Entries]) -> Entries:
    rows, columns, weights = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)


def _product(batch: ProductBatch, summand: int, known: Callable[[int, int], Entries]) -> Entries:
    """The entries of one product, by outer sums of rows and columns."""
    row = column = np.zeros(1, dtype=np.int64)
    weight = batch.coefficients[summand : summand + 1]
    for i, f in enumerate(batch.choice[summand].tolist()):
        r, c, w = known(i, f)
        row = np.add.outer(row * len(batch.factors[i][f]), r).ravel()
        column = np.add.outer(column * batch.sizes[i], c).ravel()
        weight = np.multiply.outer(weight, w).ravel()
    return row, column, weight
