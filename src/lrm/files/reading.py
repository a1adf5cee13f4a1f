"""The one reader of files: regular, of a bounded size, and whole in memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from lrm.errors import FileFormatError

FILE_LIMIT = 1 << 30
"""Most bytes that a file of arrays may have, packed or unpacked (1 GiB)."""

TEXT_LIMIT = 1 << 26
"""Most bytes of a text (64 MiB): the objects that it becomes take up to 30 times as much."""

# Without waiting: a pipe that nobody writes to is seen to be a pipe only once it is open.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def opening(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn what can go wrong on the way to a file's bytes into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise FileFormatError(f"no {what} at {path}; check the name") from None
    except OSError as reason:
        raise FileFormatError(
            f"cannot read the {what} {path}: {reason.strerror or 'it is damaged'}"
        ) from None
    except MemoryError:
        raise FileFormatError(
            f"cannot read the {what} {path}: it needs more memory than there is"
        ) from None


def read_bytes(path: str | os.PathLike[str], what: str, limit: int = FILE_LIMIT) -> bytes:
    """Read a regular file of at most ``limit`` bytes.

    ``what`` is what it should be, for errors: ``"plan file"``.
    """
    with opening(path, what), _opened(path, what) as file:
        file_status = os.fstat(file.fileno())
        if not stat.S_ISREG(file_status.st_mode):
            raise FileFormatError(f"cannot read the {what} {path}: it is not a regular file")
        # It may grow while it is read: what is read decides, not what was there.
        data = file.read(limit + 1) if file_status.st_size <= limit else b""
        if file_status.st_size > limit or len(data) > limit:
            raise FileFormatError(
                f"cannot read the {what} {path}: it has more than {limit >> 20:,} MiB"
            )
        return data


def _opened(path: str | os.PathLike[str], what: str) -> BinaryIO:
    try:
        return os.fdopen(os.open(path, _FLAGS), "rb")
    except ValueError:  # no name has a NUL character
        raise FileFormatError(f"no {what} at {os.fspath(path)!r}; check the name") from None
