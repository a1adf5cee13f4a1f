"""Counting at most a few rows of each person, from rows that arrive sorted by person.

The rule is that of `lrm.domain.persons`. A person is processed when all of their rows have been
seen, which may be many batches later; until then rows in one cell are kept as one, on disk if there
are many.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lrm.tables.base import load_engine
from lrm.tables.tally import Tally, Words

Numbers = NDArray[np.int64]

SPILLED_BYTES = 1 << 25
"""If one person has more rows than this, they are kept on disk."""

READ_ROWS = 1 << 17
"""Rows of one person that are read back at once."""


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
    >>> from lrm.tables.count import count_of
    >>> tally = Tally(count_of(Domain([Integers("cell", 0, 3)]), None))
    >>> with RowLimit(tally, 2, b"key") as limit:
    ...     limit.add(pa.array([1, 1, 1, 2]), [np.array([0, 1, 2, 3])], np.array([0, 0, 1, 0]))
    ...     limit.add(pa.array([2, 2, 2]), [np.array([3, 3, 3])], np.array([0, 0, 0]))
    >>> tally.true_counts()
    <TrueCounts of 4 cells, hidden>
    """

    def __init__(self, tally: Tally, max_rows: int, key: bytes) -> None:
        self._tally = tally
        self._max_rows = max_rows
        self._key = key
        self._person: Any = None  # the last one seen, of whom more rows may come: an array of one
        self._rows = _Rows()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Process the last person seen, unless an error is being raised."""
        if kind is None:
            self._finish()
        self._rows.close()

    def add(self, persons: Any, words: Words, later: NDArray[np.signedinteger]) -> None:
        """Take a batch of rows: persons sorted, across batches too, and words for each sorted.

        ``later`` is 1 for rows that an attribute drops, which come last of a person's.
        """
        if not len(persons):
            return
        compute = load_engine("pyarrow.compute")
        changes = compute.not_equal(persons[1:], persons[:-1]).to_numpy(zero_copy_only=False)
        begins = np.concatenate([[0], np.flatnonzero(changes) + 1])
        last, done, rows = int(begins[-1]), 0, len(persons)
        marked = [later.astype(np.int64), *words]
        if self._person is not None and persons[0].equals(self._person[0]):
            done = int(begins[1]) if len(begins) > 1 else rows
            self._rows.append([word[:done] for word in marked])
        if done == rows:
            return
        self._finish()
        complete = [word[done:last] for word in marked]
        self._count(persons[done:last], complete, begins[begins >= done][:-1] - done)
        self._person = persons[last : last + 1]
        self._rows.append([word[last:] for word in marked])

    def _finish(self) -> None:
        """Process the last person seen."""
        if self._person is None:
            return
        later = self._rows.later
        totals = np.array([self._rows.total - later, later])
        limits = np.array([self._max_rows, max(self._max_rows - int(totals[0]), 0)])
        both = self._person.take(np.zeros(2, dtype=np.int64))
        offsets = self._offsets(both, np.maximum(totals, 1))
        places = np.zeros(2, dtype=np.int64)
        for (mark, *words), counts in self._rows.take():
            for group in (0, 1):
                total, most = max(int(totals[group]), 1), int(limits[group])
                # Kept rows before row t: the multiples of the total up to t c + o - c.
                of_group = np.where(mark == group, counts, 0)
                row_places = places[group] + np.concatenate([[0], np.cumsum(of_group)])
                before = (row_places * most + (offsets[group] - most)) // total
                # No branch here and below: which lines run depends on no value.
                self._tally.add(words, np.where(total > most, np.diff(before), of_group))
                places[group] = row_places[-1]
        self._rows.close()
        self._person, self._rows = None, _Rows()

    def _count(self, persons: Any, words: Words, begins: Numbers) -> None:
        """Count the rows of persons who have no further rows."""
        rows_in_all, (later, *words) = len(persons), words
        starts_later = np.flatnonzero(np.diff(later, prepend=0) > 0)
        runs = np.union1d(begins, starts_later)  # a person's rows, and those that come later
        totals = np.diff(np.append(runs, rows_in_all))
        is_rest = ~np.isin(runs, begins)
        earlier = np.where(is_rest, np.concatenate([[0], totals[:-1]]), 0)
        limits = np.maximum(self._max_rows - earlier, 0)
        begins = runs
        many = totals > limits
        # One entry per row of those who have too many.
        rows = np.flatnonzero(np.repeat(many, totals))
        few = totals[many]
        total = np.repeat(few, few)
        place = rows - np.repeat(begins[many], few)
        offset = np.repeat(self._offsets(persons.take(begins[many]), few), few)
        within_limit = np.ones(rows_in_all, dtype=np.bool_)
        most = np.repeat(limits[many], few)
        within_limit[rows] = (place * most + offset) % total < most
        self._tally.add([word[within_limit] for word in words])

    def _offsets(self, persons: Any, totals: Numbers) -> Numbers:
        """The first kept row of each person, by `lrm.domain.persons.offset_of`; 1 µs per person."""
        key, sha256 = self._key, hashlib.sha256
        listed = persons.to_pylist()
        names = [name if isinstance(name, bytes) else b"%d" % name for name in listed]
        digests = b"".join([sha256(key + name).digest() for name in names])
        first_bytes = np.frombuffer(digests + bytes(32), dtype=">u8")[:-4:4]  # 8 of 32
        return (first_bytes >> 4).astype(np.int64) % totals


class _Rows:
    """Rows of one person, sorted: each run of equal ones as its words and its length.

    The first word is 1 for rows that an attribute drops, else 0.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=SPILLED_BYTES)  # noqa: SIM115 - as long as this record
        self._columns = 0
        self.total = self.later = 0  # rows; of these, rows that an attribute drops

    def append(self, words: Words) -> None:
        """Keep the rows that follow those before."""
        rows = len(words[0])
        changes = np.zeros(max(rows - 1, 0), dtype=np.bool_)
        for word in words:
            changes |= word[1:] != word[:-1]
        begins = np.concatenate([[0], np.flatnonzero(changes) + 1])
        lengths = np.diff(np.append(begins, rows))
        runs = np.column_stack([*(word[begins] for word in words), lengths]).astype(np.int64)
        self._file.write(runs.tobytes())
        self._columns = runs.shape[1]
        self.total += rows
        self.later += int(words[0].sum())

    def take(self) -> Iterator[tuple[Words, Numbers]]:
        """Yield words and lengths of runs, a bounded number at once."""
        self._file.seek(0)
        while chunk := self._file.read(8 * self._columns * READ_ROWS):
            *words, lengths = np.frombuffer(chunk, dtype=np.int64).reshape(-1, self._columns).T
            yield words, lengths

    def close(self) -> None:
        """Remove what is on disk."""
        self._file.close()
