"""Sets of attributes as rows of bits, for any number of attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lrm.planning.limits import BLOCK
from lrm.queries.maps.linear import Floats, Integers

Masks = NDArray[np.uint64]

LARGEST_KEY = 1 << 62
"""Keys of sets are 64-bit integers."""


@lru_cache(maxsize=64)
def bits_of(d: int) -> Masks:
    """One row of 64-bit words per attribute, with its bit set.

    Examples
    --------
    >>> bits_of(2).tolist()
    [[1], [2]]
    """
    bits = np.zeros((d, (d + 63) // 64 or 1), dtype=np.uint64)
    for i in range(d):
        bits[i, i // 64] = np.uint64(1) << np.uint64(i % 64)
    bits.flags.writeable = False
    return bits


def masks_of(inside: NDArray[np.bool_]) -> Masks:
    """The sets whose members are the true entries of the rows of ``inside``."""
    count, d = inside.shape
    words = (d + 63) // 64 or 1
    padded = np.zeros((count, words * 64), dtype=bool)
    padded[:, :d] = inside
    packed = np.packbits(padded, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64).reshape(count, words)


def members_of(masks: Masks, d: int) -> NDArray[np.bool_]:
    """Inverse of ``masks_of``: sets x attributes."""
    packed = np.ascontiguousarray(masks.astype("<u8")).view(np.uint8)
    return np.unpackbits(packed, axis=1, bitorder="little")[:, :d].astype(bool)


def tuples_of(inside: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The members of each row's set, ascending."""
    columns = np.nonzero(inside)[1].tolist()
    ends = np.cumsum(inside.sum(axis=1)).tolist()
    return [tuple(columns[start:end]) for start, end in itertools.pairwise([0, *ends])]


def sums_over(inside: NDArray[np.bool_], values: Floats) -> Floats:
    """The sum of ``values`` over the members of each row's set; most sets have few members."""
    rows, columns = np.nonzero(inside)
    return np.asarray(np.bincount(rows, values[columns], len(inside)), dtype=np.float64)


def popcount(masks: Masks) -> Integers:
    """Number of members of each set."""
    return np.asarray(np.bitwise_count(masks).sum(axis=-1), dtype=np.int64)


def contained(small: Masks, large: Masks) -> NDArray[np.bool_]:
    """Which sets of ``small`` (rows) are subsets of which of ``large`` (columns).

    One byte per pair; the 64-bit words of pairs are compared a piece at a time.
    """
    inside = np.ones((len(small), len(large)), dtype=bool)
    height = max(1, BLOCK // max(1, len(large)))
    for start in range(0, len(small), height):
        piece = slice(start, start + height)
        for word in range(small.shape[1]):
            a = small[piece, word][:, None]
            inside[piece] &= (a & large[:, word][None, :]) == a
    return inside


def _patterns(size: int, most: int) -> Iterator[tuple[int, ...]]:
    """Positions of the members of all subsets of at most ``most`` of ``size`` members."""
    for k in range(min(size, most) + 1):
        yield from itertools.combinations(range(size), k)


class SubsetIndex:
    """Distinct sets with a number each; finds the number of a set exactly.

    Each word is replaced by its rank among the words that occur, and the ranks are combined
    into one integer, so that a look-up is a few binary searches. Where the integer would not fit
    into 64 bits, it is replaced by its rank among those that occur before the next word is added.
    """

    def __init__(self, masks: Masks, d: int) -> None:
        self.d = d
        self._levels: list[tuple[Masks, Integers | None]] = []
        key, count = np.zeros(len(masks), dtype=np.int64), 1
        for w in range(masks.shape[1]):
            words, known = np.unique(masks[:, w]), None
            if count * len(words) > LARGEST_KEY:
                known = np.unique(key)
                count = len(known)
            self._levels.append((words, known))
            key = _next_key(key, masks[:, w], words, known)
            count *= len(words)
        self._keys, first = np.unique(key, return_index=True)
        self.masks: Masks = masks[first]

    def __len__(self) -> int:
        return len(self.masks)

    @cached_property
    def sizes(self) -> Integers:
        """Number of members of each set."""
        return popcount(self.masks)

    def _key(self, masks: Masks) -> Integers:
        key = np.zeros(masks.shape[:-1], dtype=np.int64)
        for w, (words, known) in enumerate(self._levels):
            key = _next_key(key, masks[..., w], words, known)
        return key

    def find(self, masks: Masks) -> Integers:
        """The number of each of ``masks``, or −1."""
        if not len(self):
            return np.full(masks.shape[:-1], -1)
        key = self._key(masks)
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[place] == key, place, -1)

    def inside(self, sets: Masks) -> Floats | sparse.csr_array:
        """Incidence (subsets x sets): 1 where the subset is contained in the set.

        Dense where that is small, else sparse by enumerating the subsets of each set.
        """
        if len(self) * len(sets) <= 4_000_000:
            return contained(self.masks, sets).astype(np.float64)
        return self._enumerated(sets)

    def _enumerated(self, sets: Masks) -> sparse.csr_array:
        """Look up the subsets of each set; where these are more than all subsets, compare them."""
        inside = members_of(sets, self.d)
        counts = inside.sum(axis=1)
        bits, most = bits_of(self.d), int(self.sizes.max(initial=0))
        rows, columns = [], []
        for size in np.unique(counts).tolist():
            of_size = np.flatnonzero(counts == size)
            if sum(math.comb(size, k) for k in range(min(size, most) + 1)) > len(self):
                width = max(1, BLOCK // len(self))
                for start in range(0, len(of_size), width):
                    some = of_size[start : start + width]
                    row, column = np.nonzero(contained(self.masks, sets[some]))
                    rows.append(row)
                    columns.append(some[column])
                continue
            members = np.nonzero(inside[of_size])[1].reshape(len(of_size), size)
            for pattern in _patterns(size, most):
                masks = np.zeros((len(of_size), bits.shape[1]), dtype=np.uint64)
                for position in pattern:
                    masks |= bits[members[:, position]]
                subset_numbers = self.find(masks)
                rows.append(subset_numbers[subset_numbers >= 0])
                columns.append(of_size[subset_numbers >= 0])
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (len(self), len(sets))
        return sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)


def _next_key(key: Integers, column: Masks, words: Masks, known: Integers | None) -> Integers:
    """The keys with one more word; −1 for those that do not occur."""
    bad = key < 0
    if known is not None:
        place = np.minimum(np.searchsorted(known, key), len(known) - 1)
        bad = bad | (known[place] != key)
        key = place
    rank = np.minimum(np.searchsorted(words, column), len(words) - 1)
    bad = bad | (words[rank] != column)
    return np.where(bad, -1, key * len(words) + rank)
