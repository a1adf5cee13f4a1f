"""What one record can weigh in several queries at a time, without a list of all cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.products.batch import ProductBatch, Products, some_rows
from lrm.queries.maps.products.map import ProductMap

MOST_ENTRIES = 1 << 20
"""Weights of the different kinds of records that are listed (8 MB)."""

MOST_WORK = 1 << 26
"""Weights that are looked at for all groups together."""

MOST_ROWS = 1 << 14
"""Queries with products of both signs that are looked at one by one."""

ROUNDING = 1e-9
"""How far weights may be off where products are added up."""

Flags = NDArray[np.bool_]

DIGITS = 12
"""Digits to which weights are compared."""


def record_weights(queries: LinearMap, rows: Integers) -> Iterator[Floats | None]:
    """Yield, for each group, the different weights of a record in its queries.

    Parameters
    ----------
    queries
        The queries of a batch.
    rows
        Numbers of queries, groups × inputs.

    Yields
    ------
        Inputs × kinds of records, one array for all groups that have the same; None where there
        are too many kinds.

    Examples
    --------
    >>> from lrm.queries.maps.matrices import DenseMap
    >>> both = DenseMap(np.array([[1.0, 1.0, 1.0], [0.0, 5.0, 5.0]]))
    >>> next(record_weights(both, np.array([[0, 1]]))).tolist()
    [[1.0, 1.0], [0.0, 5.0]]
    """
    if isinstance(queries, ProductMap):
        yield from _ProductRecords(queries.batch).of_groups(rows)
    elif rows.size * queries.shape[1] > MOST_WORK:
        yield from [None] * len(rows)
    else:
        for group in rows.tolist():
            yield _distinct(np.vstack([queries.rows(row, row + 1) for row in group]))


@dataclass(frozen=True, eq=False)
class RowSigns:
    """What the weights of queries are, for ranges of queries that have the same.

    Parameters
    ----------
    ends
        Where each range ends.
    whole
        Whether all weights are whole numbers.
    nonnegative
        Whether none is below 0, so that no answer can be.
    """

    ends: Integers
    whole: Flags
    nonnegative: Flags

    @classmethod
    def of_queries(cls, queries: LinearMap) -> RowSigns:
        """Those of all queries, as far as they can be told; false where they cannot."""
        if isinstance(queries, ProductMap):
            return cls._of_products(queries)
        count = np.array([queries.shape[0]])
        whole, nonnegative = queries.is_integer(), queries.is_nonnegative()
        if (whole and nonnegative) or queries.shape[0] * queries.shape[1] > MOST_WORK:
            return cls(count, np.array([whole]), np.array([nonnegative]))
        rows = queries.dense()
        flags = (np.asarray(good.all(axis=1)) for good in (rows == np.rint(rows), rows >= 0))
        return cls(np.arange(1, count[0] + 1), *flags)

    @classmethod
    def _of_products(cls, queries: ProductMap) -> RowSigns:
        batch = queries.batch
        nonnegative = batch.nonnegative_terms.copy()
        records, left = _ProductRecords(batch), MOST_ROWS
        # OR and NOT subtract products, and yet count rows.
        for term in np.flatnonzero(~nonnegative).tolist():
            count = int(batch.term_queries[term])
            left -= count
            if left < 0:
                break
            rows = np.arange(count)[:, None] + int(batch.term_ends[term]) - count
            nonnegative[term] = all(
                kinds is not None and kinds.min(initial=0.0) > -ROUNDING
                for kinds in records.of_groups(rows)
            )
        return cls(batch.term_ends, batch.whole_terms, nonnegative)

    def of(self, start: int, stop: int) -> tuple[Flags, Flags]:
        """Whether the weights of the queries ``start:stop`` are whole, and not below 0."""
        place = np.searchsorted(self.ends, np.arange(start, stop), side="right")
        return self.whole[place], self.nonnegative[place]


def _distinct(columns: Floats) -> Floats:
    """Equal columns as one, compared through a random sum of their entries."""
    size = np.abs(columns).max(axis=1, initial=0.0)
    signs = np.random.default_rng(0).uniform(1.0, 2.0, len(columns))
    sums = np.round((signs / np.where(size > 0, size, 1.0)) @ columns, DIGITS)
    return np.asarray(columns[:, np.unique(sums, return_index=True)[1]])


@dataclass(frozen=True, eq=False)
class _Row:
    """A query of a product batch: the products of its term, and the row of each factor."""

    products: Products
    place: dict[int, int]


@dataclass(frozen=True, eq=False)
class _ProductRecords:
    batch: ProductBatch
    _terms: dict[int, tuple[Products, list[int], list[int]]] = field(default_factory=dict)
    _axes: dict[tuple[object, ...], bytes] = field(default_factory=dict)
    _kinds: dict[bytes, Floats] = field(default_factory=dict)

    def of_groups(self, rows: Integers) -> Iterator[Floats | None]:
        known: dict[tuple[object, ...], Floats | None] = {}
        work = 0
        for group in rows.tolist():
            asked = [self._row(query) for query in group]
            attributes = sorted({i for row in asked for i in row.place})
            keys = []
            for i in attributes:
                key, cost = self._axis(i, asked)
                work += cost
                if work > MOST_WORK:
                    break
                keys.append(key)
            if work > MOST_WORK:
                yield None
                continue
            # What the coefficients are follows from the terms.
            whole = (tuple(keys), tuple(id(row.products) for row in asked))
            if whole not in known:
                known[whole] = self._combined(asked, [self._kinds[key] for key in keys])
            yield known[whole]

    def _row(self, query: int) -> _Row:
        term = int(np.searchsorted(self.batch.term_ends, query, side="right"))
        if term not in self._terms:
            products = self.batch.products(term)
            factors = products[0][1]
            self._terms[term] = products, list(factors), [len(f) for f in factors.values()]
        products, attributes, lengths = self._terms[term]
        left = query - int(self.batch.term_ends[term] - self.batch.term_queries[term])
        place: dict[int, int] = {}
        for i, length in zip(reversed(attributes), reversed(lengths), strict=True):
            left, place[i] = divmod(left, length)
        return _Row(products, place)

    def _axis(self, i: int, asked: Sequence[_Row]) -> tuple[bytes, int]:
        """The different weights on one attribute in all products, and what finding them took."""
        uses = [
            (factors.get(i), row.place.get(i, 0)) for row in asked for _, factors in row.products
        ]
        key = (i, *((id(factor), place) for factor, place in uses))
        if key in self._axes:
            return self._axes[key], 0
        size = self.batch.sizes[i]
        places = {place for factor, place in uses if factor is not None and len(factor) > 1}
        words = all(factor is None or factor.kind in {"identity", "total"} for factor, _ in uses)
        if words and len(places) <= 1:  # a cell and all others
            vectors = [
                np.array([1.0, float(factor is None or factor.kind == "total")])[: min(size, 2)]
                for factor, _ in uses
            ]
        else:
            vectors = [_vector(factor, place, size) for factor, place in uses]
        kinds = _distinct(np.vstack(vectors))
        spelt = kinds.tobytes() + bytes(str(kinds.shape), "ascii")
        self._axes[key] = spelt
        self._kinds.setdefault(spelt, kinds)
        return spelt, len(vectors) * len(vectors[0])

    @staticmethod
    def _combined(asked: Sequence[_Row], axes: Sequence[Floats]) -> Floats | None:
        coefficients = np.array([coefficient for row in asked for coefficient, _ in row.products])
        weights = coefficients[:, None]
        for kinds in sorted(axes, key=lambda axis: axis.shape[1]):
            if weights.size * kinds.shape[1] > MOST_ENTRIES:
                return None
            weights = (weights[:, :, None] * kinds[:, None, :]).reshape(len(weights), -1)
            weights = _distinct(weights)
        starts = np.cumsum([0, *(len(row.products) for row in asked)])[:-1]
        return _distinct(np.add.reduceat(weights, starts, axis=0))


def _vector(factor: LinearMap | None, place: int, size: int) -> Floats:
    if factor is None:
        return np.ones(size)
    return np.asarray(some_rows(factor, slice(place, place + 1)).dense()[0])
