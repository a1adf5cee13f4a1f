"""Which attributes the queries of a batch use, and the same queries over all rows of a table.

A query is written over declared cells. What it says of a row that an attribute drops depends on
whether its statement uses the attribute: the row is dropped if it does, and counts if not. So
where some statement does not use an attribute whose rules drop values, the attribute gets one more
cell for them (`lrm.domain.Attribute.with_rest`): it counts 0 in the queries that use the
attribute, and in others as every cell does. Every row of a table is then in a cell unless all
statements drop it, and the meaning of a statement depends on no other.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.domain.people import Levels
from lrm.errors import WorkloadError
from lrm.queries.maps.leading import leading
from lrm.queries.maps.linear import Integers, LinearMap
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.map import ProductMap, products_of
from lrm.queries.maps.words import word_factor

if TYPE_CHECKING:
    from lrm.domain import Domain


@dataclass(frozen=True, eq=False)
class Uses:
    """The attributes that runs of queries use.

    Parameters
    ----------
    lengths
        Number of queries of each run; they follow each other.
    used
        Runs × attributes: whether the queries of a run use an attribute.
    """

    lengths: Integers
    used: NDArray[np.bool_]

    @classmethod
    def alike(cls, queries: int, attributes: int, axes: Collection[int]) -> Uses:
        """All queries of a batch use the same attributes."""
        used = np.zeros((1, attributes), dtype=bool)
        used[0, list(axes)] = True
        return cls(np.array([queries], dtype=np.int64), used)

    @classmethod
    def joined(cls, parts: Sequence[Uses]) -> Uses:
        """The uses of batches one after the other."""
        return cls(
            np.concatenate([part.lengths for part in parts]),
            np.concatenate([part.used for part in parts]),
        )

    def check(self, queries: int, attributes: int) -> None:
        """Refuse uses that do not fit a batch."""
        if self.used.shape != (len(self.lengths), attributes) or self.lengths.sum() != queries:
            raise WorkloadError("the uses of attributes do not fit the queries; leave them out")

    def and_also(self, axes: Collection[int]) -> Uses:
        """The queries use some further attributes too."""
        used = self.used.copy()
        used[:, list(axes)] = True
        return Uses(self.lengths, used)

    @property
    def ends(self) -> Integers:
        """Where each run ends."""
        return np.cumsum(self.lengths)

    def runs_of(self, terms: ProductBatch) -> Integers:
        """The run of each term of a batch."""
        return np.asarray(np.searchsorted(self.ends, terms.term_ends, side="left"), dtype=np.int64)


def unused_axes(queries: LinearMap, uses: Uses | None, domain: Domain) -> tuple[int, ...]:
    """The attributes that drop rows and that some query about these rows does not use."""
    if uses is None:
        return ()
    uses, has = _of_levels(queries, uses, domain)
    unused = (has & ~uses.used).any(axis=0)
    return tuple(axis for axis in np.flatnonzero(unused).tolist() if domain.drops(axis))


def _of_levels(queries: LinearMap, uses: Uses, domain: Domain) -> tuple[Uses, NDArray[np.bool_]]:
    """The uses of each level's queries, and the attributes that the rows of its level have."""
    products = products_of(queries)
    if products is None or not isinstance(domain.level, Levels):
        return uses, np.ones_like(uses.used)
    axes = [domain.level.axes(level) for level in domain.level.levels]
    owners, _ = levels_of_terms(products.batch, axes)
    has = np.zeros((len(axes), uses.used.shape[1]), dtype=bool)
    for number, own in enumerate(axes):
        has[number, list(own)] = True
    used = uses.used[uses.runs_of(products.batch)] & has[owners]
    return Uses(products.batch.term_queries, used), has[owners]


def over_all_rows(
    queries: LinearMap, uses: Uses | None, domain: Domain, axes: Collection[int]
) -> LinearMap:
    """Queries over the declared cells of ``domain`` as queries over ``domain.with_rest(axes)``."""
    if not axes:
        return queries
    if uses is None:
        uses = Uses.alike(queries.shape[0], len(domain.attributes), range(len(domain.attributes)))
    uses, _ = _of_levels(queries, uses, domain)
    products = products_of(queries)
    if products is not None:
        return ProductMap(_padded(products.batch, uses, axes))
    matrix, rows = queries.sparse(), []
    for used, start, stop in _runs(uses, axes):
        parts = [
            _spread(size, used=used[axis]) if axis in axes else sp.eye_array(size, format="csr")
            for axis, size in enumerate(domain.shape)
        ]
        rows.append(matrix[start:stop] @ reduce(lambda a, b: sp.kron(a, b, "csr"), parts))
    return SparseMap(sp.csr_array(sp.vstack(rows, format="csr")))


def counted_rest(queries: LinearMap, rows: Integers, domain: Domain) -> list[int]:
    """The attributes whose dropped rows are counted by every one of some queries."""
    if not domain.rest_axes or not len(rows):
        return []
    products = products_of(queries)
    if products is not None:
        batch = products.batch
        terms = np.searchsorted(batch.term_ends, rows, side="right")
        chosen = batch.choice[np.isin(batch.term_of, terms)]
        return [axis for axis in domain.rest_axes if not chosen[:, axis].any()]
    matrix = queries.sparse()[rows].tocoo()
    counted = []
    for axis in domain.rest_axes:
        size = domain.shape[axis]
        places = matrix.coords[1] // prod(domain.shape[axis + 1 :]) % size
        if len(np.unique(matrix.coords[0][places == size - 1])) == len(rows):
            counted.append(axis)
    return counted


def _runs(uses: Uses, axes: Collection[int]) -> list[tuple[NDArray[np.bool_], int, int]]:
    """Runs of queries that use the same of some attributes: what they use, and their rows."""
    places = sorted(axes)
    joined: list[tuple[NDArray[np.bool_], int, int]] = []
    ends = uses.ends.tolist()
    for used, (start, stop) in zip(uses.used, itertools.pairwise([0, *ends]), strict=True):
        if joined and np.array_equal(joined[-1][0][places], used[places]):
            joined[-1] = (joined[-1][0], joined[-1][1], stop)
        else:
            joined.append((used, start, stop))
    return joined


def _spread(size: int, *, used: bool) -> sp.csr_array:
    """From weights of declared cells to those with one more, which counts 0, or as cell 0 does."""
    rows = np.arange(size)
    columns = rows
    if not used:
        rows, columns = np.append(rows, 0), np.append(columns, size)
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(size, size + 1))


def _padded(batch: ProductBatch, uses: Uses, axes: Collection[int]) -> ProductBatch:
    """A batch over attributes of which some have one more value."""
    used = uses.used[uses.runs_of(batch)][batch.term_of]
    for column, choices in zip(batch.choice.T, batch.factors, strict=True):
        counts_nothing = np.array([factor.entry_count == 0 for factor in choices])[column]
        used[counts_nothing] = False  # the product is 0 without them
    factors, choice = list(batch.factors), batch.choice
    for axis in axes:
        old = batch.factors[axis]
        new: list[LinearMap] = [word_factor("total", old[0].shape[1] + 1)]
        numbers = np.zeros(len(old), dtype=np.int32)
        column = batch.choice[:, axis]
        declared = used[:, axis] | (column > 0)
        for number in np.unique(column[declared]).tolist():
            numbers[number] = len(new)
            new.append(leading(old[number]))
        if choice is batch.choice:
            choice = choice.copy()
        choice[:, axis] = np.where(declared, numbers[column], 0)
        factors[axis] = tuple(new)
    return ProductBatch(
        tuple(factors), choice, batch.coefficients, batch.term_of, batch.weights, checked=True
    )


def levels_of_terms(
    terms: ProductBatch, axes: Sequence[tuple[int, ...]]
) -> tuple[Integers, NDArray[np.float64]]:
    """The level of each term, and the weight of each product by its factor of the level."""
    level_of, weight_of = [], []
    for factor in terms.factors[0]:
        row = factor.dense()
        counted = np.flatnonzero(row.any(axis=0))
        is_one = len(row) == 1 and len(counted) <= 1 and factor.kind != "total"
        level_of.append(int(counted[0]) if is_one and len(counted) else (-1 if is_one else -2))
        weight_of.append(float(row.sum()) if is_one else 0.0)
    chosen = np.array(level_of)[terms.choice[:, 0]]
    owners = np.full(terms.terms, -1, dtype=np.int64)
    used = np.zeros((terms.terms, len(terms.factors)), dtype=bool)
    for term, level, choice in zip(terms.term_of.tolist(), chosen, terms.choice, strict=True):
        if level == -2 or (level >= 0 and owners[term] not in {-1, level}):
            raise WorkloadError("a query is about the rows of several levels; write one for each")
        owners[term] = max(int(level), int(owners[term]))
        used[term] |= choice > 0
    for term in range(terms.terms):
        others = set(np.flatnonzero(used[term]).tolist()) - {0}
        fits = [number for number, own in enumerate(axes) if others <= set(own)]
        if owners[term] < 0 and fits:  # it counts nothing, at any level
            owners[term] = fits[0]
        if owners[term] not in fits:
            raise WorkloadError("a query uses columns of another level than its own")
    return owners, np.array(weight_of)[terms.choice[:, 0]]
