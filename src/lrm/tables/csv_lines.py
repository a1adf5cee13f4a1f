"""Bytes of a CSV file as blocks of whole lines, in bounded memory.

A record is one physical line. It ends at a line feed, or at the end of the file, whatever bytes
come before: no quote, no escape and no encoding can move a record's end. So a change of one
record's bytes changes one line, and nothing about the others.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from lrm.errors import TableError

MAX_LINE = 1 << 20
"""Bytes of the longest line that is read, without its line feed. Longer ones are unreadable."""

UNREADABLE = b"\0"
"""Marks what cannot be read: a field that contains it has no value."""


def line_blocks(file: str) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of whole lines, each ended by a line feed.

    Lines longer than `MAX_LINE` are replaced by `UNREADABLE`, and a mark of UTF-8 at the start of
    the file is left out.
    """
    if not file.lower().endswith(".gz"):
        with Path(file).open("rb") as plain:
            yield from _cut(plain.read)
        return
    try:
        with gzip.open(file) as packed:
            yield from _cut(packed.read)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{file!r} is not a complete gzip file; compress it again") from None


def _cut(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Cut blocks after the last line feed of each piece; the rest waits for the next one.

    As a piece is no longer than a line may be, only a line that began in an earlier piece can be
    too long.
    """
    begun, too_long = b"", False
    piece = read(MAX_LINE).removeprefix(codecs.BOM_UTF8)
    while piece:
        end = piece.find(b"\n")
        length = len(begun) + (len(piece) if end < 0 else end)
        if too_long or length > MAX_LINE:
            begun, too_long = UNREADABLE, end < 0
            piece = b"" if end < 0 else piece[end:]
        last = piece.rfind(b"\n") + 1
        if last:
            yield begun + piece[:last]
            begun = piece[last:]
        elif not too_long:
            begun += piece
        piece = read(MAX_LINE)
    if begun:
        yield begun + b"\n"


def to_utf8(block: bytes, encoding: str) -> bytes:
    r"""Return text in UTF-8, with `UNREADABLE` in place of each byte that cannot be decoded.

    In the encodings that a `CsvForm` permits, an ASCII byte is always its own character, so that
    no line feed, delimiter or quote appears or disappears.

    Examples
    --------
    >>> to_utf8(b"caf\xe9,1", "latin-1").decode()
    'café,1'
    >>> to_utf8(b"caf\xe9,1", "utf-8")
    b'caf\x00,1'
    """
    if block.isascii():
        return block
    try:
        text = block.decode(encoding)
    except UnicodeDecodeError:
        text = block.decode(encoding, "lrm-unreadable")
    return block if encoding == "utf-8" and "\0" not in text else text.encode()


def _unreadable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - used for decoding alone
    return UNREADABLE.decode(), error.end


codecs.register_error("lrm-unreadable", _unreadable)
