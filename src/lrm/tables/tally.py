"""Adds up rows, seen as words, to the entries that a count asks for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrm.privacy.mechanism import TrueCounts
from lrm.tables.count import Count, Marginal
from lrm.tables.shares import divided_words

Words = Sequence[NDArray[np.signedinteger]]
"""The words of many rows: one array for each word (`lrm.tables.count`)."""


class Tally:
    """Counts so far.

    Examples
    --------
    >>> from lrm.domain import Domain, Integers
    >>> from lrm.tables.count import count_of
    >>> tally = Tally(count_of(Domain([Integers("a", 0, 2)]), None))
    >>> tally.add([np.array([0, 2, 2])])
    >>> tally.true_counts()
    <TrueCounts of 3 cells, hidden>
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._entries = np.zeros(count.size, dtype=np.int64)
        # In 32 bits, which are faster: there are at most 10^8 entries.
        self._labels = [
            None if part.labels is None else part.labels.astype(np.int32) for part in count.parts
        ]

    def add(self, words: Words, counts: NDArray[np.int64] | None = None) -> None:
        """Add rows that are in a cell, each once or as often as ``counts`` says."""
        if self._count.numbers:
            words, counts = divided_words(self._count.numbers, words, counts)
        parts = self._count.parts
        merged = [
            words[part.word] if labels is None else np.take(labels, words[part.word])
            for part, labels in zip(parts, self._labels, strict=True)
        ]
        part_masks = [
            values >= 0 if part.skips else None for part, values in zip(parts, merged, strict=True)
        ]
        for marginal in self._count.marginals:
            places = self._places(marginal, merged, len(words[0]))
            counted = _all(marginal, part_masks)
            amounts = counts
            if counted is not None:
                places = places[counted]
                amounts = None if counts is None else counts[counted]
            entries = self._entries[marginal.start : marginal.start + marginal.size]
            _add(entries, places, amounts)

    def add_entries(self, entries: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add what an engine has already counted entry by entry."""
        np.add.at(self._entries, entries, counts)

    def _places(self, marginal: Marginal, merged: Words, rows: int) -> NDArray[np.signedinteger]:
        """The entries of rows within a marginal: Horner's rule over its parts."""
        places: NDArray[np.signedinteger] | None = None
        for number in marginal.parts:
            size = self._count.parts[number].size
            if places is None:
                places = merged[number]
            elif size > 1:
                # Words of 16 bits become 32; of 64 bits, which persons' rows have, stay so.
                places = places * np.int32(size) + merged[number]
        return np.zeros(rows, dtype=np.int32) if places is None else places

    def true_counts(self) -> TrueCounts:
        """The counts, hidden."""
        return TrueCounts(self._count.spread(self._entries))


def _all(
    marginal: Marginal, part_masks: Sequence[NDArray[np.bool_] | None]
) -> NDArray[np.bool_] | None:
    """Which rows are counted in a marginal; None for all."""
    masks = [mask for number in marginal.parts if (mask := part_masks[number]) is not None]
    return np.logical_and.reduce(masks) if masks else None


def _add(
    entries: NDArray[np.int64],
    places: NDArray[np.signedinteger],
    counts: NDArray[np.int64] | None,
) -> None:
    if counts is not None:
        np.add.at(entries, places, counts)
    elif len(entries) <= 4 * len(places):
        entries += np.bincount(places, minlength=len(entries))
    else:
        np.add.at(entries, places, 1)
