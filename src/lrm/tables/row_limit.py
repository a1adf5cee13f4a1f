"""Counting at most a few rows of each person, from rows that arrive sorted by person.

The rule is that of `lrm.domain.persons`. A person is processed when all of their rows have been
seen, which may be many batches later; until then rows in one cell are kept as one, on disk if there
are many.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lrm.domain.persons import group_name
from lrm.tables.base import load_engine
from lrm.tables.count import Count
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
    count
        What is counted: its privacy unit has the limits.
    key
        Decides where each person with more begins to take rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from lrm.domain import Domain, Integers, PrivacyUnit
    >>> from lrm.tables.count import count_of
    >>> count = count_of(Domain([Integers("cell", 0, 3)], unit=PrivacyUnit("who", 2)), None)
    >>> tally = Tally(count)
    >>> with RowLimit(tally, count, b"key") as limit:
    ...     limit.add(pa.array([1, 1, 1, 2]), [np.array([0, 1, 2, 3])], np.array([0, 0, 1, 0]))
    ...     limit.add(pa.array([2, 2, 2]), [np.array([3, 3, 3])], np.array([0, 0, 0]))
    >>> tally.true_counts()
    <TrueCounts of 4 cells, hidden>
    """

    def __init__(self, tally: Tally, count: Count, key: bytes) -> None:
        self._tally = tally
        self._unit = count.domain.unit
        self._group = count.group
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
        (name,) = _names(self._person)
        rows = self._rows
        by = self._unit.by
        if by is not None:
            left = _Rows()
            offsets = _Offsets(lambda group: group_name(name, group), self._key)
            first = partial(self._first_groups, name, by.groups)
            for chunk, counts in rows.chosen(self._groups, by.size, by.most, offsets, first):
                left.append(chunk, counts)
            rows.close()
            rows = left
        offsets = _Offsets(lambda _: name, self._key)
        for (_, *words), counts in rows.chosen(_one, 1, self._unit.max_rows, offsets):
            self._tally.add(words, counts)
        rows.close()
        self._person, self._rows = None, _Rows()

    def _groups(self, words: Words) -> Numbers:
        """The group of each row, of words without the mark of dropped rows."""
        assert self._group is not None  # noqa: S101 - the caller looked
        word, stride, size = self._group
        return words[word].astype(np.int64) // stride % size

    def _first_groups(self, name: bytes, most: int | None, totals: Numbers) -> NDArray[np.bool_]:
        """Which groups of a person are kept; ``totals`` has their rows, then those dropped."""
        (used,) = np.nonzero(totals.sum(axis=0))
        places = _hashes([group_name(name, int(g), b"groups") for g in used], self._key)
        order = np.lexsort((used, places, totals[0, used] == 0))
        first = np.zeros(totals.shape[1], dtype=np.bool_)
        first[used[order[:most]]] = True
        return first

    def _count(self, persons: Any, words: Words, begins: Numbers) -> None:
        """Count the rows of persons who have no further rows."""
        later, *words = words
        person = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(later))))
        names = persons.take(begins)
        if self._unit.by is not None:
            rows = self._kept_by_group(names, person, self._groups(words), later)
            person, later, words = person[rows], later[rows], [word[rows] for word in words]
        most = self._unit.max_rows
        kept = self._chosen(lambda units: _names(names.take(units)), person, later, most)
        self._tally.add([word[kept] for word in words])

    def _kept_by_group(
        self, names: Any, person: Numbers, group: Numbers, later: Numbers
    ) -> Numbers:
        """The rows that a limit by group leaves, in their order."""
        by = self._unit.by
        assert by is not None  # noqa: S101 - the caller looked
        order = np.lexsort((later, group, person))  # stable: in the order of cells within a group
        person, group, later = person[order], group[order], later[order]
        changes = (np.diff(person, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0)
        starts, unit = np.flatnonzero(changes), np.cumsum(changes) - 1
        owners, cells = person[starts], group[starts]

        def named(units: Numbers, what: bytes = b"rows") -> list[bytes]:
            listed = _names(names.take(owners[units]))
            return [
                group_name(name, int(cell), what)
                for name, cell in zip(listed, cells[units], strict=True)
            ]

        kept = self._chosen(named, unit, later, by.most)
        if by.groups is not None:
            every = np.arange(len(starts))
            places = _hashes(named(every, b"groups"), self._key)
            first = np.lexsort((cells, places, later[starts], owners))
            begins = np.flatnonzero(np.diff(owners, prepend=-1))  # of each person's groups
            rank = np.empty(len(starts), dtype=np.int64)
            rank[first] = every - np.repeat(begins, np.diff(np.append(begins, len(starts))))
            kept &= (rank < by.groups)[unit]
        return np.sort(order[kept])

    def _chosen(
        self, names: Callable[[Numbers], list[bytes]], unit: Numbers, later: Numbers, most: int
    ) -> NDArray[np.bool_]:
        """Which rows count, of rows by unit: those that an attribute drops come last of each.

        ``names`` has the names of some units.
        """
        new = np.diff(unit, prepend=-1) != 0
        begins, runs = np.flatnonzero(new), np.flatnonzero(new | (np.diff(later, prepend=0) > 0))
        totals = np.diff(np.append(runs, len(unit)))
        is_rest = ~np.isin(runs, begins)
        earlier = np.where(is_rest, np.concatenate([[0], totals[:-1]])[: len(runs)], 0)
        limits = np.maximum(most - earlier, 0)
        many = totals > limits
        # One entry per row of those who have too many.
        rows = np.flatnonzero(np.repeat(many, totals))
        few = totals[many]
        total = np.repeat(few, few)
        place = rows - np.repeat(runs[many], few)
        offsets = _hashes(names(unit[runs[many]]), self._key) % few
        within_limit = np.ones(len(unit), dtype=np.bool_)
        limit = np.repeat(limits[many], few)
        within_limit[rows] = (place * limit + np.repeat(offsets, few)) % total < limit
        return within_limit


def _names(persons: Any) -> list[bytes]:
    """The names of an Arrow array of persons."""
    return [name if isinstance(name, bytes) else b"%d" % name for name in persons.to_pylist()]


def _hashes(names: list[bytes], key: bytes) -> Numbers:
    """Numbers of 60 bits, by `lrm.domain.persons.offset_of`; 1 µs per name."""
    sha256 = hashlib.sha256
    digests = b"".join([sha256(key + name).digest() for name in names])
    first_bytes = np.frombuffer(digests + bytes(32), dtype=">u8")[:-4:4]  # 8 of 32
    return (first_bytes >> 4).astype(np.int64)


class _Offsets:
    """The first kept row of units of one person."""

    def __init__(self, named: Callable[[int], bytes], key: bytes) -> None:
        self._named, self._key = named, key

    def __call__(self, units: Numbers, totals: Numbers) -> Numbers:
        return _hashes([self._named(int(unit)) for unit in units], self._key) % totals


def _one(words: Words) -> Numbers:
    """All rows are in one group."""
    return np.zeros(len(words[0]), dtype=np.int64)


class _Rows:
    """Rows of one person, sorted: each run of equal ones as its words and its length.

    The first word is 1 for rows that an attribute drops, else 0.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=SPILLED_BYTES)  # noqa: SIM115 - as long as this record
        self._columns = 0

    def append(self, words: Words, counts: Numbers | None = None) -> None:
        """Keep the rows that follow those before, each as often as ``counts`` says."""
        rows = len(words[0])
        changes = np.zeros(max(rows - 1, 0), dtype=np.bool_)
        for word in words:
            changes |= word[1:] != word[:-1]
        begins = np.concatenate([[0], np.flatnonzero(changes) + 1])
        if counts is None:
            counts = np.ones(rows, dtype=np.int64)
        lengths = np.add.reduceat(counts, begins)
        runs = np.column_stack([*(word[begins] for word in words), lengths]).astype(np.int64)
        self._file.write(runs.tobytes())
        self._columns = runs.shape[1]

    def take(self) -> Iterator[tuple[Words, Numbers]]:
        """Yield words and lengths of runs, a bounded number at once."""
        self._file.seek(0)
        while chunk := self._file.read(8 * self._columns * READ_ROWS):
            *words, lengths = np.frombuffer(chunk, dtype=np.int64).reshape(-1, self._columns).T
            yield words, lengths

    def chosen(
        self,
        unit_of: Callable[[Words], Numbers],
        size: int,
        most: int,
        offsets_of: Callable[[Numbers, Numbers], Numbers],
        first: Callable[[Numbers], NDArray[np.bool_]] | None = None,
    ) -> Iterator[tuple[Words, Numbers]]:
        """Yield all runs, with how many rows of each count: at most the limit of each unit.

        ``offsets_of`` finds the first kept row of some units from how many rows they have, and
        ``first`` the units that count at all from the rows of each, and the later ones.
        """
        totals = np.zeros(2 * size, dtype=np.int64)  # of other rows, then of those that come later
        for (mark, *words), counts in self.take():
            np.add.at(totals, mark * size + unit_of(words), counts)
        limits = np.concatenate([np.full(size, most), np.maximum(most - totals[:size], 0)])
        offsets = np.zeros(2 * size, dtype=np.int64)
        (used,) = np.nonzero(totals)
        offsets[used] = offsets_of(used % size, totals[used])
        every = np.maximum(totals, 1)
        if first is not None:
            limits *= np.tile(first(totals.reshape(2, size)), 2)
        places = np.zeros(2 * size, dtype=np.int64)
        for (mark, *words), counts in self.take():
            unit = mark * size + unit_of(words)
            order = np.argsort(unit, kind="stable")
            sums = np.concatenate([[0], np.cumsum(counts[order])])
            begins = np.flatnonzero(np.diff(unit[order], prepend=-1))
            lengths = np.diff(np.append(begins, len(order)))
            before = np.empty(len(order), dtype=np.int64)  # rows of the unit before this run
            before[order] = sums[:-1] - np.repeat(sums[begins], lengths)
            start = places[unit] + before
            # Kept rows before row t: the multiples of the total up to t c + o - c.
            limit, total, offset = limits[unit], every[unit], offsets[unit]
            kept = (start + counts) * limit + offset - limit
            kept = kept // total - (start * limit + offset - limit) // total
            # No branch: which lines run depends on no value.
            yield [mark, *words], np.where(total > limit, kept, counts) * (limit > 0)
            np.add.at(places, unit, counts)

    def close(self) -> None:
        """Remove what is on disk."""
        self._file.close()
