"""Counting at most a few rows of each person, from rows that arrive sorted by person.

The rule is that of `lrm.domain.persons`. A person is decided on when all rows have been seen,
which may be many batches later; until then only how many rows lie in each cell is kept.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.tables.axes import Tally
from lrm.tables.base import load_engine

__all__ = ["RowLimit"]

Numbers = NDArray[np.int64]


class RowLimit:
    """Adds the rows that count to a tally.

    Parameters
    ----------
    tally
        Where kept rows are counted.
    max_rows
        The most rows of a person that count.
    key
        Decides where each person with more begins to take rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from lrm.domain import Domain, Integers
    >>> from lrm.tables.axes import axes_of
    >>> domain = Domain([Integers("cell", 0, 3)])
    >>> tally = Tally(domain, axes_of(domain, None))
    >>> limit = RowLimit(tally, 2, b"key")
    >>> limit.add(pa.array([1, 1, 1, 2]), np.array([0, 1, 2, 3]))
    >>> limit.add(pa.array([2, 2, 2]), np.array([3, 3, 3]))
    >>> limit.finish()
    >>> tally.true_counts()
    <TrueCounts of 4 cells, hidden>
    """

    def __init__(self, tally: Tally, max_rows: int, key: bytes) -> None:
        self._tally = tally
        self._max_rows = max_rows
        self._key = key
        self._person: Any = None  # the last one seen, of whom more rows may come: an array of one
        self._cells = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)

    def add(self, persons: Any, numbers: Numbers) -> None:
        """Take a batch of rows: persons sorted, across batches too, and cells for each sorted."""
        if not len(persons):
            return
        compute = load_engine("pyarrow.compute")
        changes = compute.not_equal(persons[1:], persons[:-1]).to_numpy(zero_copy_only=False)
        begins = np.concatenate([[0], np.flatnonzero(changes) + 1])
        last, done = int(begins[-1]), 0
        if self._person is not None and persons[0].equals(self._person[0]):
            done = int(begins[1]) if len(begins) > 1 else len(numbers)
            self._remember(numbers[:done])
        if done == len(numbers):
            return
        self.finish()
        self._count(persons[done:last], numbers[done:last], begins[begins >= done][:-1] - done)
        self._person = persons[last : last + 1]
        self._remember(numbers[last:])

    def finish(self) -> None:
        """Decide on the last person seen."""
        if self._person is None:
            return
        total = int(self._counts.sum())
        (offset,) = self._offsets(self._person, np.array([total])).tolist()
        # Kept rows before row t: the multiples of the total up to t c + o - c.
        places = np.concatenate([[0], np.cumsum(self._counts)])
        before = (places * self._max_rows + (offset - self._max_rows)) // total
        # No branch here and below: which lines run depends on no value.
        kept = np.where(total > self._max_rows, np.diff(before), self._counts)
        self._tally.add(self._cells, kept)
        self._person = None
        self._cells = self._counts = np.zeros(0, dtype=np.int64)

    def _remember(self, numbers: Numbers) -> None:
        """Keep rows of the last person, as counts: there are at most as many as cells."""
        cells, counts = np.unique(numbers, return_counts=True)
        self._cells, inverse = np.unique(np.concatenate([self._cells, cells]), return_inverse=True)
        both = np.concatenate([self._counts, counts])
        self._counts = np.bincount(inverse, both, minlength=len(self._cells)).astype(np.int64)

    def _count(self, persons: Any, numbers: Numbers, begins: Numbers) -> None:
        """Count the rows of persons of whom no more will come."""
        totals = np.diff(np.append(begins, len(numbers)))
        many = totals > self._max_rows
        # One entry per row of those who have too many.
        rows = np.flatnonzero(np.repeat(many, totals))
        few = totals[many]
        total = np.repeat(few, few)
        place = rows - np.repeat(begins[many], few)
        offset = np.repeat(self._offsets(persons.take(begins[many]), few), few)
        kept = np.ones(len(numbers), dtype=np.bool_)
        kept[rows] = (place * self._max_rows + offset) % total < self._max_rows
        self._tally.add_rows(numbers[kept])

    def _offsets(self, persons: Any, totals: Numbers) -> Numbers:
        """Where persons begin, as `lrm.domain.persons.offset_of` says; 1 µs per person."""
        key, sha256 = self._key, hashlib.sha256
        listed = persons.to_pylist()
        names = [name if isinstance(name, bytes) else b"%d" % name for name in listed]
        digests = b"".join([sha256(key + name).digest() for name in names])
        first_bytes = np.frombuffer(digests + bytes(32), dtype=">u8")[:-4:4]  # 8 of 32
        return (first_bytes >> 4).astype(np.int64) % totals
