"""The terms of a batch over the axes of a group: each factor is merged once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.strategy import Axis
from lrm.maps.linear import Floats, Integers, LinearMap
from lrm.maps.matrices import DenseMap
from lrm.maps.products.batch import ProductBatch

BLOCK_ANSWERS = 1 << 18
"""Answers that are computed and held at a time (2 MB per column)."""

WRITTEN_ENTRIES = 1 << 22
"""Entries of some rows of a factor that are written out at a time (32 MB)."""

LONGEST_TERM = 1 << 26
"""Answers of a term over a long identity or prefix, which is not written out (0.5 GB)."""

Product = Mapping[int, LinearMap]
"""The factors of a product by axis, ascending; axes that are not in it are summed out."""


@dataclass(frozen=True, eq=False)
class MergedTerms:
    """The terms of a batch over some axes; axes that a term sums out cost nothing."""

    batch: ProductBatch
    axes: Sequence[Axis]
    _known: dict[tuple[int, tuple[int, ...]], LinearMap] = field(default_factory=dict, repr=False)

    @cached_property
    def _axis_of(self) -> list[int]:
        place = [0] * len(self.batch.factors)
        for k, axis in enumerate(self.axes):
            for i in axis.attributes:
                place[i] = k
        return place

    def factor(self, k: int, choice: NDArray[np.int32]) -> LinearMap:
        """The factor on one axis of a product that chooses these factors."""
        axis = self.axes[k]
        key = k, tuple(int(choice[i]) for i in axis.attributes)
        if key not in self._known:
            factors = [self.batch.factors[0][0]] * len(self.batch.factors)
            for i in axis.attributes:
                factors[i] = self.batch.factors[i][choice[i]]
            self._known[key] = axis.factor(factors)
        return self._known[key]

    def summands(self, term: int, rows: slice | None = None) -> list[tuple[float, Product]]:
        """The products that a term is the sum of, each with its coefficient.

        All have a factor on the same axes. With ``rows``, those rows alone of the factor on the
        first axis of these.
        """
        numbers = self.batch.summand_numbers(term)
        choices = self.batch.choice[numbers]
        touched = np.flatnonzero(choices.any(axis=0)).tolist()
        axes = sorted({self._axis_of[i] for i in touched})
        weighted_products: list[tuple[float, Product]] = []
        for number, choice in zip(numbers.tolist(), choices, strict=True):
            product = {k: self.factor(k, choice) for k in axes}
            if rows is not None and axes:
                product[axes[0]] = _some_rows(product[axes[0]], rows)
            weighted_products.append((float(self.batch.coefficients[number]), product))
        return weighted_products

    def first_factors(self, term: int) -> list[LinearMap]:
        """The factors on the first axis that a term does not sum out, one for each summand."""
        return [next(iter(product.values())) for _, product in self.summands(term)]


def _some_rows(factor: LinearMap, rows: slice) -> LinearMap:
    if rows == slice(0, len(factor)):
        return factor
    return DenseMap(factor.rows(rows.start, rows.stop))


@dataclass(frozen=True)
class Piece:
    """A term, or some rows of its factor on its first axis, with the answers it gives.

    ``start`` and ``stop`` are places in the batch; ``rows`` is None for a whole term.
    """

    term: int
    start: int
    stop: int
    rows: slice | None = None


def pieces_of(
    batch: ProductBatch,
    merged: Sequence[MergedTerms],
    group_of: Integers,
    start: int,
    stop: int,
) -> Iterator[Piece]:
    """Yield the pieces that cover the queries ``start:stop`` of a batch, in order.

    A term of more than ``BLOCK_ANSWERS`` queries is cut along its first axis; the rows of a factor
    are then written out, so there are few of them over a long axis.
    """
    for term, begin, end in batch.terms_in(start, stop):
        if end - begin <= BLOCK_ANSWERS:
            yield Piece(term, begin, end)
            continue
        factors = merged[group_of[term]].first_factors(term)
        length, values = len(factors[0]), factors[0].shape[1]
        each = (end - begin) // length
        block, written = BLOCK_ANSWERS // each, WRITTEN_ENTRIES // values
        plain = all(factor.is_word for factor in factors)
        if written < block and plain and end - begin <= LONGEST_TERM:
            yield Piece(term, begin, end)
            continue
        step = max(1, min(block, written))
        for first in range(0, length, step):
            last = min(first + step, length)
            piece = Piece(term, begin + first * each, begin + last * each, slice(first, last))
            if piece.start < stop and piece.stop > start:
                yield piece


def row_ranges(pieces: Iterable[Piece]) -> Iterator[tuple[int, int]]:
    """Yield ``(start, stop)`` of consecutive pieces of up to ``BLOCK_ANSWERS`` together."""
    start = stop = 0
    for piece in pieces:
        if stop > start and piece.stop - start > BLOCK_ANSWERS:
            yield start, stop
            start = stop
        stop = piece.stop
    if stop > start:
        yield start, stop


def joined(
    pieces: Iterable[Piece], numbers: Callable[[Piece], Floats], start: int, stop: int
) -> Floats:
    """The numbers of all pieces in one array, without what is outside of ``start:stop``."""
    values = np.empty(stop - start)
    for piece in pieces:
        first, last = max(piece.start, start), min(piece.stop, stop)
        piece_values = numbers(piece)
        values[first - start : last - start] = piece_values[
            first - piece.start : last - piece.start
        ]
    return values
