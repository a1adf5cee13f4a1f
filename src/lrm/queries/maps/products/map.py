"""A batch over a product of attributes as a linear map that is never written out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from lrm.domain.core import MOST_ATTRIBUTES
from lrm.errors import FileFormatError, WorkloadError
from lrm.files.spelling import how_many
from lrm.queries.maps.linear import Floats, Integers, LinearMap, StoredMap
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.batch import MOST_CHOICES, ProductBatch
from lrm.queries.maps.words import LARGEST_SIZE, WORDS, kind_of, make_factor, stored_word

FLAT_CELLS = 1 << 22
"""Cells up to which a product may be written out: a vector of them takes 32 MB."""

FLAT_WEIGHTS = 1 << 27
"""Non-zero weights of a product that is written out: 1.5 GB in sparse form."""


@dataclass(frozen=True, eq=False)
class ProductMap(LinearMap):
    """Terms with one factor per attribute, over the product of the attributes' values.

    Cells are numbered in C order, the last attribute varying fastest; so are the queries of a
    term, by the rows of its factors. What needs a list of all cells works for small products
    alone (`is_flat`), and is refused, with the reason, for others.

    Examples
    --------
    >>> from lrm.queries.maps.products.batch import product_batch
    >>> table = ProductMap(product_batch([2, 10**7], [["identity", "total"]]))
    >>> table.shape, table.is_flat
    ((2, 20000000), False)
    """

    batch: ProductBatch
    kind: ClassVar[str] = "products"
    file_values: ClassVar[tuple[str, ...]] = ("sizes", "factors")

    def __post_init__(self) -> None:
        if not np.all(self.batch.weights == 1.0):
            raise WorkloadError("importances belong to the workload, not to its map")
        object.__setattr__(self, "shape", (self.batch.queries, math.prod(self.batch.sizes)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return self.batch.sizes

    def term_slices(self) -> Iterator[tuple[int, slice]]:
        """Yield each term with the place of its queries in the batch."""
        for term, start, stop in self.batch.terms_in(0, self.shape[0]):
            yield term, slice(start, stop)

    @property
    def is_flat(self) -> bool:
        """Whether the matrix is small enough to be written out."""
        return self.shape[1] <= FLAT_CELLS and self._weights <= FLAT_WEIGHTS

    @cached_property
    def _weights(self) -> int:
        """Number of non-zero weights of the matrix, each summand counted for itself."""
        counts = [[factor.entry_count for factor in choices] for choices in self.batch.factors]
        return sum(
            math.prod(counts[i][f] for i, f in enumerate(row)) for row in self.batch.choice.tolist()
        )

    def written_out(self) -> SparseMap:
        if not self.is_flat:
            raise WorkloadError(
                f"a batch of {self.shape[0]:,} queries over {how_many(self.shape[1])} cells cannot "
                "be written out as a matrix; use a mechanism for products of attributes"
            )
        return self._written_out

    @cached_property
    def _written_out(self) -> SparseMap:
        return SparseMap(sparse_matrix(self.batch))

    @property
    def entry_count(self) -> int:
        return self._weights

    def squared_norm(self) -> float:
        """``‖W‖_F²``, without a list of cells."""
        batch = self.batch
        norms = batch.coefficients**2
        for column, choices in zip(batch.choice.T, batch.factors, strict=True):
            norms = (
                norms * np.array([factor.column_squared_sums().sum() for factor in choices])[column]
            )
        if batch.simple:
            return float(norms.sum())
        several = np.bincount(batch.term_of) > 1
        alone = norms[~several[batch.term_of]].sum()
        sums = [self._term_squared_norm(term) for term in np.flatnonzero(several).tolist()]
        return float(alone + math.fsum(sums))

    def _term_squared_norm(self, term: int) -> float:
        parts = self.batch.summands(term)
        return sum(
            a * b * math.prod(_inner(f, g) for f, g in zip(left, right, strict=True))
            for a, left in parts
            for b, right in parts
        )

    def is_integer(self) -> bool:
        integer_factors = all(
            factor.is_integer() for choices in self.batch.factors for factor in choices
        )
        return integer_factors and bool(
            np.all(self.batch.coefficients == np.rint(self.batch.coefficients))
        )

    def contents(self) -> dict[str, Any]:
        """Sizes, the kinds of the factors, and arrays; totals, the most common choice, left out."""
        batch = self.batch
        summand, attribute = np.nonzero(batch.choice)
        rows = [
            factor.dense().ravel()
            for choices in batch.factors
            for factor in choices
            if not factor.is_word
        ]
        return {
            "sizes": batch.sizes,
            "factors": tuple(
                tuple((kind_of(factor), len(factor)) for factor in choices)
                for choices in batch.factors
            ),
            "coefficients": batch.coefficients,
            "term-of": batch.term_of,
            "places": summand * len(batch.sizes) + attribute,
            "choices": batch.choice[summand, attribute].astype(np.int64),
            "rows": np.concatenate([np.zeros(0), *rows]),
        }

    @classmethod
    def from_file(cls, stored: StoredMap) -> ProductMap:
        name = stored.name
        sizes = stored.facts.integers("sizes", 1, LARGEST_SIZE)
        coefficients = stored.array("coefficients", "f8", (None,))
        summands, attributes = len(coefficients), len(sizes)
        if not 1 <= attributes <= MOST_ATTRIBUTES or not 1 <= summands * attributes <= MOST_CHOICES:
            raise FileFormatError(f"the {name} has too many terms or attributes, or none")
        term_of = stored.array("term-of", "i8", (summands,))
        places = stored.array("places", "i8", (None,))
        choices = stored.array("choices", "i8", (len(places),))
        if len(places) and not (
            places[0] >= 0
            and places[-1] < summands * attributes
            and np.all(places[1:] > places[:-1])
        ):
            raise FileFormatError(f"the {name} chooses a factor for a term that does not exist")
        factors = _stored_factors(stored, sizes)
        most = max(map(len, factors))
        if len(choices) and not (choices.min() >= 1 and choices.max() < most):
            raise FileFormatError(f"the {name} chooses a factor that does not exist")
        choice = np.zeros(summands * attributes, dtype=np.int32)
        choice[places] = choices
        # Terms are numbered from 0: one number more than there are products would be a term of none
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


def _stored_factors(stored: StoredMap, sizes: tuple[int, ...]) -> tuple[tuple[LinearMap, ...], ...]:
    """The factors of each attribute, from their kinds and the weights of those that are rows."""
    name, facts = stored.name, stored.facts.any("factors")
    if not isinstance(facts, list) or len(facts) != len(sizes):
        raise FileFormatError(f"the {name} must have a list of factors for each attribute")
    rows = stored.array("rows", "f8", (None,))
    start, factors = 0, []
    for size, listed in zip(sizes, facts, strict=True):
        if not isinstance(listed, list) or not listed:
            raise FileFormatError(f"the {name} must have a list of factors for each attribute")
        choices = []
        for fact in listed:
            kind, queries = _stored_kind(name, fact)
            weights = queries * size if kind == "rows" else 0
            if start + weights > len(rows):
                raise FileFormatError(f"the {name} has too few rows for its factors")
            entries = (
                rows[start : start + weights].reshape(queries, size).copy() if weights else None
            )
            start += weights
            choices.append(
                stored_word(kind, size, queries) if entries is None else make_factor(entries, size)
            )
            if len(choices[-1]) != queries:
                raise FileFormatError(f"a factor of the {name} has the wrong number of queries")
        factors.append(tuple(choices))
    if start != len(rows):
        raise FileFormatError(f"the {name} has more rows than its factors")
    return tuple(factors)


def _stored_kind(name: str, fact: Any) -> tuple[str, int]:
    if isinstance(fact, list) and len(fact) == 2 and type(fact[1]) is int:
        for kind in (*WORDS, "rows"):
            if fact[0] == kind and 1 <= fact[1] <= math.comb(LARGEST_SIZE + 1, 2):
                return kind, fact[1]
    raise FileFormatError(f"a factor of the {name} must be a kind with a number of queries")


def products_of(queries: LinearMap) -> ProductMap | None:
    """The queries, where they are products over attributes and not over a list of cells."""
    return queries if isinstance(queries, ProductMap) else None


def _inner(left: LinearMap, two: LinearMap) -> float:
    """``Σ one·two``, entry by entry."""
    return left.squared_norm() if left is two else float((left.dense() * two.dense()).sum())


Entries = tuple[Integers, Integers, Floats]
"""Row, column and weight of every entry that is not 0, sorted by row, then column."""


def _entries(factor: LinearMap) -> Entries:
    """The non-zero weights of a factor, without its dense matrix where it is a word.

    Examples
    --------
    >>> from lrm.queries.maps.words import Prefix
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
    for term, queries in enumerate(batch.term_queries.tolist()):
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
