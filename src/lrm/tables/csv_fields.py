"""Lines of a CSV file cut into fields, many at once.

The grammar of a line, without its line feed and without one carriage return before that, is

.. code-block:: text

    line  = field (delimiter field)*
    field = (any character but delimiter and quote)*
          | quote (any character but quote | quote quote)* quote

A line without this form, with a number of fields other than the header's, or that is too long,
is unreadable. Every line of bytes is either read or unreadable: nothing raises an error, and
nothing depends on another line.

In a line of this form each field has an even number of quotes, and a delimiter is inside quotes
exactly where an odd number of quotes precede it in its line. So delimiters preceded by an even
number cut the line, and the pieces are then checked against the grammar one by one. This needs no
automaton, and NumPy does it for all lines of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrm.tables.base import load_engine
from lrm.tables.csv_lines import UNREADABLE

if TYPE_CHECKING:
    import pyarrow as pa

Positions = NDArray[np.int64]

_LF, _CR, _NUL = b"\n\r\0"


@dataclass(frozen=True, slots=True)
class Marks:
    """The bytes between and around fields.

    Examples
    --------
    >>> Marks(b",", b'"').delimiter
    b','
    """

    delimiter: bytes
    quote: bytes | None


def fields_of(line: bytes, marks: Marks) -> list[str | None] | None:
    """The fields of one line in UTF-8 that can be read; None for any other line.

    Examples
    --------
    >>> fields_of(b'a,"b ""c"", d",,""', Marks(b",", b'"'))
    ['a', 'b "c", d', None, '']
    >>> fields_of(b'a,he said "b"', Marks(b",", b'"')) is None
    True
    """
    block = line + b"\n"
    width = int(_Lines.of(block, marks).feeds[0]) + 1
    fields = [column[0].as_py() for column in split_block(block, marks, width, range(width))]
    return None if UNREADABLE.decode() in fields else fields


def split_block(
    block: bytes, marks: Marks, width: int, requested: Sequence[int]
) -> list[pa.StringArray]:
    """Return the wanted columns of a block of lines.

    Rows are in no particular order: those of unreadable lines, whose every value is
    `UNREADABLE`, come last. An empty line is not a row, unless lines have only one field.

    Parameters
    ----------
    block
        Lines in UTF-8, each ended by a line feed.
    width
        Number of fields of a readable line.
    requested
        Places of columns.
    """
    lines = _Lines.of(block, marks)
    proper = lines.proper(width)
    bad = len(lines.feeds) - len(proper)
    if width > 1:
        bad -= int(np.count_nonzero(lines.starts == lines.stops))
    return [_column(lines, proper, width, place, bad) for place in requested]


@dataclass(frozen=True)
class _Lines:
    """Where lines and fields of a block begin and end.

    ``cuts`` are the line feeds and the delimiters outside quotes, ``feeds`` the places of line
    feeds among them, and ``quotes`` the number of quotes before each cut (None where the block has
    none at all).
    """

    block: bytes
    data: NDArray[np.uint8]
    quote: bytes | None
    cuts: Positions
    feeds: Positions
    quotes: Positions | None

    @classmethod
    def of(cls, block: bytes, marks: Marks) -> _Lines:
        data = np.frombuffer(block, dtype=np.uint8)
        is_mark = (data == marks.delimiter[0]) | (data == _LF)
        if marks.quote is None or marks.quote not in block:
            cuts = np.flatnonzero(is_mark)
            return cls(block, data, None, cuts, np.flatnonzero(data[cuts] == _LF), None)
        is_mark |= data == marks.quote[0]
        places = np.flatnonzero(is_mark)
        unquoted = np.flatnonzero(data[places] != marks.quote[0])
        cuts, quotes = places[unquoted], unquoted - np.arange(len(unquoted))
        is_feed = data[cuts] == _LF
        feeds = np.flatnonzero(is_feed)
        before = np.concatenate([[0], quotes[feeds[:-1]]])
        if np.any(before & 1):
            inside = (quotes - np.repeat(before, np.diff(feeds, prepend=-1))) & 1
        else:
            inside = quotes & 1
        cutting = is_feed | (inside == 0)
        if not cutting.all():
            cuts, quotes = cuts[cutting], quotes[cutting]
            feeds = np.flatnonzero(is_feed[cutting])
        return cls(block, data, marks.quote, cuts, feeds, quotes)

    @cached_property
    def starts(self) -> Positions:
        """First byte of each line."""
        ends = self.cuts[self.feeds]
        return np.concatenate([[0], ends[:-1] + 1])

    @cached_property
    def stops(self) -> Positions:
        """Byte after the last one of each line, without its line end."""
        ends = self.cuts[self.feeds]
        # Byte -1 is the last of the block: a line feed, and no carriage return.
        return np.asarray(ends - ((self.data[ends - 1] == _CR) & (ends > self.starts)))

    def field(self, lines: Positions, width: int, place: int) -> tuple[Positions, Positions]:
        """First byte, and byte after the last one, of a field of lines with ``width`` fields."""
        first = self.feeds[lines] - (width - 1)
        start = self.starts[lines] if place == 0 else self.cuts[first + (place - 1)] + 1
        stop = self.stops[lines] if place == width - 1 else self.cuts[first + place]
        return start, stop

    def quotes_in(self, lines: Positions, width: int, place: int) -> Positions:
        """Number of quotes of a field of lines with ``width`` fields."""
        assert self.quotes is not None  # noqa: S101 - the caller looked
        cut = self.feeds[lines] - (width - 1) + place
        before = np.where(cut == 0, 0, self.quotes[cut - 1])
        return np.asarray(self.quotes[cut] - before)

    def proper(self, width: int) -> Positions:
        """Numbers of the readable lines."""
        right = np.diff(self.feeds, prepend=-1) == width
        if self.quotes is None:
            return np.flatnonzero(right)
        total = np.diff(self.quotes[self.feeds], prepend=0)
        right &= total % 2 == 0
        quoted = np.flatnonzero(right & (total > 0))
        for place in range(width):
            right[quoted[~self._well_quoted(quoted, width, place)]] = False
        return np.flatnonzero(right)

    def _well_quoted(self, lines: Positions, width: int, place: int) -> NDArray[np.bool_]:
        assert self.quote is not None  # noqa: S101 - only lines with quotes are asked about
        start, stop = self.field(lines, width, place)
        count = self.quotes_in(lines, width, place)
        mark = self.quote[0]
        # Bytes at `start` and `stop - 1` exist: a line feed follows each field, and where the
        # field is empty, `count` is 0.
        ends = (self.data[start] == mark) & (self.data[stop - 1] == mark) & (stop - start > 1)
        good = (count == 0) | ((count > 0) & ends)
        for row in np.flatnonzero(good & (count > 2)).tolist():
            good[row] = _is_quoted(self.block[start[row] : stop[row]], self.quote)
        return np.asarray(good)


def _is_quoted(field: bytes, quote: bytes) -> bool:
    """Whether a field is quoted, and all quotes inside are doubled."""
    return (
        len(field) >= 2
        and field.startswith(quote)
        and field.endswith(quote)
        and quote not in field[1:-1].replace(quote * 2, b"")
    )


def _column(lines: _Lines, proper: Positions, width: int, place: int, bad: int) -> pa.StringArray:
    """The texts of a column: slices of the block, and what cannot be a slice after it."""
    pa = load_engine("pyarrow")
    start, stop = lines.field(proper, width, place)
    missing = start == stop
    extra = [UNREADABLE]
    special: dict[int, int] = {}
    if lines.quotes is not None:
        assert lines.quote is not None  # noqa: S101 - it has quotes
        count = lines.quotes_in(proper, width, place)
        start, stop = start + (count > 0), stop - (count > 0)
        for row in np.flatnonzero(count > 2).tolist():
            text = lines.block[start[row] : stop[row]]
            special[row] = len(extra)
            extra.append(text.replace(lines.quote * 2, lines.quote))
    if UNREADABLE in lines.block:
        nuls = np.flatnonzero(lines.data == _NUL)
        holds = np.searchsorted(nuls, start) < np.searchsorted(nuls, stop)
        special |= dict.fromkeys(np.flatnonzero(holds).tolist(), 0)
    # The slices of the block, and what lies between them, are one Arrow array; then the extra.
    rows = len(proper)
    offsets = np.empty(2 * rows + 1 + len(extra), dtype=np.int32)
    offsets[0 : 2 * rows : 2], offsets[1 : 2 * rows : 2] = start, stop
    offsets[2 * rows :] = len(lines.block) + np.cumsum([0, *map(len, extra)])
    heap = lines.block + b"".join(extra)
    texts = pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(heap))
    text_numbers = np.full(rows + bad, 2 * rows, dtype=np.int32)
    text_numbers[:rows] = np.arange(0, 2 * rows, 2)
    for row, index in special.items():
        text_numbers[row] = 2 * rows + index
    absent = np.zeros(rows + bad, dtype=bool)
    absent[:rows] = missing
    return texts.take(pa.array(text_numbers, mask=absent))
