"""Batches over small products, written out as one sparse matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.maps.linear import LinearMap
from lrm.maps.products.batch import ProductBatch

__all__ = ["sparse_matrix"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Entries = tuple[Integers, Integers, Floats]
"""Row, column and weight of every entry that is not 0, sorted by row, then column."""


def _entries(factor: LinearMap) -> Entries:
    """The non-zero weights of a factor, without its dense matrix where it is a word.

    Examples
    --------
    >>> from lrm.maps.words import Prefix
    >>> row, column, weight = _entries(Prefix(2))
    >>> row.tolist(), column.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    matrix = factor.sparse()
    row = np.repeat(np.arange(len(factor)), np.diff(matrix.indptr))
    return row, matrix.indices.astype(np.int64), matrix.data


def sparse_matrix(batch: ProductBatch) -> sp.csr_array:
    """All queries over all cells with compressed rows; terms one below the other.

    Cost: the number of non-zero weights, and some 10 µs per product and attribute.
    """
    known = lru_cache(maxsize=None)(lambda i, f: _entries(batch.factors[i][f]))
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
