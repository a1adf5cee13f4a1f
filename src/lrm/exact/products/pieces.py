"""Pieces of a batch, each a term or some rows of its first factor: answers that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from lrm.maps.linear import Floats
from lrm.maps.products.batch import ProductBatch, Products

BLOCK_ANSWERS = 1 << 18
"""Answers that are computed and held at a time (2 MB per column)."""

WRITTEN_ENTRIES = 1 << 22
"""Entries of some rows of a factor that are written out at a time (32 MB)."""

LONGEST_TERM = 1 << 26
"""Answers of a term over a long identity or prefix, which is not written out (0.5 GB)."""


@dataclass(frozen=True)
class Piece:
    """A term, or some rows of its factor on its first axis, with the answers it gives.

    ``start`` and ``stop`` are places in the batch; ``rows`` is empty for a whole term.
    """

    term: int
    start: int
    stop: int
    rows: tuple[slice, ...] = ()


def pieces_of(
    batch: ProductBatch, products: Callable[[int], Products], start: int, stop: int
) -> Iterator[Piece]:
    """Yield the pieces that cover the queries ``start:stop`` of a batch, in order.

    A term of more than ``BLOCK_ANSWERS`` queries is cut along its first axis; the rows of a factor
    are then written out, so there are few of them over a long axis. ``products`` are those of a
    term over the axes that it is answered on.
    """
    for term, begin, end in batch.terms_in(start, stop):
        if end - begin <= BLOCK_ANSWERS:
            yield Piece(term, begin, end)
            continue
        factors = [next(iter(factors.values())) for _, factors in products(term)]
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
            piece = Piece(term, begin + first * each, begin + last * each, (slice(first, last),))
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
