"""Batches of queries as stacks of products, one factor per attribute."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrm.maps.products.factors import Factor, Word, kronecker, make_factor

__all__ = ["ProductBatch", "cross_tabs", "product_batch", "sum_batch"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ProductBatch:
    """Terms over the product of d attributes; nothing has the size of the product.

    Summand s is ``coefficients[s] · ⊗_i factors[i][choice[s, i]]``; a term is the sum of the
    summands that carry its number in ``term_of`` (one for a conjunction, a few for OR and NOT),
    which must agree in the number of queries per attribute. ``factors[i][0]`` is always the
    total. ``weights`` is the importance of each term: its squared error counts weight² times.

    Examples
    --------
    >>> batch = product_batch([2, 3], [["identity", "total"], ["identity", "prefix"]])
    >>> batch.queries, batch.choice.tolist()
    (8, [[1, 0], [1, 1]])
    """

    factors: tuple[tuple[Factor, ...], ...]
    choice: NDArray[np.int32]
    coefficients: Floats
    term_of: Integers
    weights: Floats
    _shapes: dict[str, Integers] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        summands, d = self.choice.shape
        if len(self.factors) != d:
            raise ValueError(f"expected {d} lists of factors, got {len(self.factors)}")
        if self.coefficients.shape != (summands,) or self.term_of.shape != (summands,):
            raise ValueError("expected one coefficient and one term number per summand")
        if summands and not np.array_equal(np.unique(self.term_of), np.arange(len(self.weights))):
            raise ValueError("every term needs at least one summand, and every summand a term")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise ValueError("weights must be finite and not negative")
        if not np.isfinite(self.coefficients).all():
            raise ValueError("coefficients must be finite")
        for column, choices in zip(self.choice.T, self.factors, strict=True):
            if choices[0].kind != "total":
                raise ValueError("the first factor of every attribute must be its total")
            if summands and not (column.min() >= 0 and column.max() < len(choices)):
                raise ValueError("a summand chooses a factor that is not there")
        for array in (self.choice, self.coefficients, self.term_of, self.weights):
            array.setflags(write=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return tuple(choices[0].size for choices in self.factors)

    @property
    def terms(self) -> int:
        """Number of terms."""
        return len(self.weights)

    @property
    def simple(self) -> bool:
        """Whether every term is one product."""
        return len(self.term_of) == self.terms

    def term_queries(self) -> Integers:
        """Number of queries of each term."""
        if "queries" not in self._shapes:
            count = np.ones(len(self.choice), dtype=np.int64)
            for column, choices in zip(self.choice.T, self.factors, strict=True):
                count *= np.array([len(factor) for factor in choices])[column]
            each = np.zeros(self.terms, dtype=np.int64)
            each[self.term_of] = count
            self._shapes["queries"] = each
        return self._shapes["queries"]

    @property
    def queries(self) -> int:
        """Number of queries of the whole batch."""
        return int(self.term_queries().sum())

    def summands(self, term: int) -> list[tuple[float, list[Factor]]]:
        """The products that a term is the sum of, each with its coefficient."""
        return [
            (
                float(self.coefficients[s]),
                [self.factors[i][f] for i, f in enumerate(self.choice[s])],
            )
            for s in np.flatnonzero(self.term_of == term)
        ]

    def support(self) -> NDArray[np.bool_]:
        """Which attributes each summand tells values apart in (summands x attributes)."""
        inside = np.zeros(self.choice.shape, dtype=bool)
        for i, choices in enumerate(self.factors):
            tells = np.array([factor.total_factor is None for factor in choices])
            inside[:, i] = tells[self.choice[:, i]]
        return inside

    def take(self, terms: ArrayLike) -> ProductBatch:
        """The batch of some of the terms, in the given order."""
        chosen = np.asarray(terms, dtype=np.int64)
        place = np.full(self.terms, -1)
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(place[self.term_of] >= 0)
        rows = rows[np.argsort(place[self.term_of[rows]], kind="stable")]
        return ProductBatch(
            self.factors,
            self.choice[rows],
            self.coefficients[rows],
            place[self.term_of[rows]],
            self.weights[chosen],
        )

    def dense(self) -> Floats:
        """All queries over all cells, each scaled by the weight of its term; for small products."""
        parts = [np.zeros((0, math.prod(self.sizes)))]
        for term, weight in enumerate(self.weights):
            products = [c * kronecker(f.dense() for f in fs) for c, fs in self.summands(term)]
            parts.append(weight * np.sum(products, axis=0))
        return np.vstack(parts)


class _Interned:
    """Factors by content, the total first, for each attribute."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.factors = [[Factor("total", n)] for n in sizes]
        self._by_key = [{choices[0].key: 0} for choices in self.factors]
        self._by_object: list[dict[int, int]] = [{} for _ in sizes]
        self._alive: list[object] = []  # an id is only unique while its object lives

    def number(self, attribute: int, given: ArrayLike | Word | Factor) -> int:
        seen = self._by_object[attribute]
        if id(given) in seen:
            return seen[id(given)]
        factor = make_factor(given, self.sizes[attribute])
        keys = self._by_key[attribute]
        if factor.key not in keys:
            keys[factor.key] = len(self.factors[attribute])
            self.factors[attribute].append(factor)
        self._alive.append(given)
        seen[id(given)] = keys[factor.key]
        return seen[id(given)]


def product_batch(
    sizes: Sequence[int],
    terms: Sequence[Sequence[ArrayLike | Word | Factor]],
    weights: ArrayLike | None = None,
) -> ProductBatch:
    """Return the batch of ``terms``: lists of one factor per attribute.

    A factor is an array (queries x values) or ``"total"``, ``"identity"``, ``"prefix"`` or
    ``"all-ranges"``.
    """
    return sum_batch(sizes, [[(1.0, term)] for term in terms], weights)


def sum_batch(
    sizes: Sequence[int],
    terms: Sequence[Sequence[tuple[float, Sequence[ArrayLike | Word | Factor]]]],
    weights: ArrayLike | None = None,
) -> ProductBatch:
    """Return a batch whose terms are sums of products, each a coefficient and its factors.

    Examples
    --------
    >>> a, b = [[1, 0]], [[1, 0, 0]]  # a OR b = a + b − a·b
    >>> either = [(1, [a, "total"]), (1, ["total", b]), (-1, [a, b])]
    >>> sum_batch([2, 3], [either]).dense().tolist()
    [[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]]
    """
    interned = _Interned(sizes)
    choice, coefficients, term_of = [], [], []
    for number, summands in enumerate(terms):
        lengths = set()
        for coefficient, factors in summands:
            if len(factors) != len(sizes):
                raise ValueError(
                    f"term {number} has {len(factors)} factors, the table {len(sizes)} attributes"
                )
            row = [interned.number(i, factor) for i, factor in enumerate(factors)]
            choice.append(row)
            coefficients.append(float(coefficient))
            term_of.append(number)
            if len(summands) > 1:
                lengths.add(tuple(len(interned.factors[i][f]) for i, f in enumerate(row)))
        if len(lengths) > 1:
            raise ValueError(f"the products that term {number} adds up differ in their queries")
    return ProductBatch(
        tuple(map(tuple, interned.factors)),
        np.array(choice, dtype=np.int32).reshape(len(choice), len(sizes)),
        np.array(coefficients),
        np.array(term_of, dtype=np.int64),
        np.ones(len(terms)) if weights is None else np.array(weights, dtype=np.float64),
    )


def cross_tabs(
    sizes: Sequence[int], orders: Iterable[int], kinds: Sequence[Word] | None = None
) -> ProductBatch:
    """Return all cross-tabs of the given numbers of attributes; the others are summed out.

    Made without a Python object per term: 161,700 tables of 100 attributes in 0.1 s.

    Examples
    --------
    >>> cross_tabs([2, 3], [1]).choice.tolist()
    [[1, 0], [0, 1]]
    """
    d = len(sizes)
    identity: Word = "identity"
    chosen = kinds if kinds is not None else [identity] * d
    blocks = []
    for order in orders:
        members = np.array(list(itertools.combinations(range(d), order)), dtype=np.int64)
        block = np.zeros((len(members), d), dtype=np.int32)
        if order:
            block[np.arange(len(members))[:, None], members] = 1
        blocks.append(block)
    choice = np.vstack(blocks)
    factors = tuple(
        (Factor("total", n), Factor(kind, n)) for n, kind in zip(sizes, chosen, strict=True)
    )
    count = len(choice)
    return ProductBatch(factors, choice, np.ones(count), np.arange(count), np.ones(count))
