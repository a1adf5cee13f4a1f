"""The one writer of files: a regular file, whole or not at all.

A file appears under its name only when it is complete: it is written under a temporary name and
then renamed. What is replaced is always a regular file. A symbolic link is followed, so that the
link stays and the file that it points to is replaced; a device, a pipe, a socket or a folder is
refused.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lrm.errors import FileFormatError, UsageError
from lrm.files.locations import is_address, shown

_KINDS = (
    (stat.S_ISDIR, "a folder; give the name of a file in it"),
    (stat.S_ISCHR, "a device; give the name of a file"),
    (stat.S_ISBLK, "a device; give the name of a file"),
    (stat.S_ISFIFO, "a pipe; give the name of a file"),
    (stat.S_ISSOCK, "a socket; give the name of a file"),
)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, whole or not at all.

    A new file has the rights that the umask leaves; one that is replaced keeps its own.

    Raises
    ------
    UsageError
        Where ``path`` is something other than a regular file.
    FileFormatError
        Where it cannot be written.
    """
    with writing(path) as file:
        file.write(data)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that is written piece by piece; it appears when the block ends without error."""
    target, mode = _target(path)
    with _new_file(target, path) as (handle, name):
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        name.replace(target)


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse what `write_bytes` would refuse, before any work or privacy is spent on it."""
    target, mode = _target(path)
    if not target.parent.is_dir():
        raise FileFormatError(f"cannot write {shown(path)}: its folder does not exist; create it")
    if mode is not None and not os.access(target, os.W_OK):
        raise FileFormatError(
            f"cannot write {shown(path)}: it is write-protected; choose another name"
        )
    with _new_file(target, path) as (handle, name):
        os.close(handle)
        name.unlink()


def _target(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """The file behind ``path``, links followed, and its rights where it exists already."""
    if is_address(os.fspath(path)):
        raise UsageError(f"expected the name of a file to write, not {shown(path)}")
    try:
        target = Path(os.path.realpath(path))
        file_mode = target.stat().st_mode
    except FileNotFoundError:
        return target, None
    except (OSError, ValueError) as reason:  # ValueError: a null byte in the name
        raise _refusal(path, reason) from reason
    if not stat.S_ISREG(file_mode):
        kind = next((words for test, words in _KINDS if test(file_mode)), "no regular file")
        raise UsageError(f"{path} is {kind}")
    return target, stat.S_IMODE(file_mode)


@contextmanager
def _new_file(target: Path, path: str | os.PathLike[str]) -> Iterator[tuple[int, Path]]:
    """An open temporary file next to ``target``, which is removed if the block fails."""
    name = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    hint = "; choose a folder that is writable"
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        hint = ""
        yield handle, name
    except OSError as reason:
        _remove(name)
        raise _refusal(path, reason, hint) from reason
    except BaseException:  # Ctrl-C included
        _remove(name)
        raise


def _remove(name: Path) -> None:
    with suppress(OSError):
        name.unlink()


def _refusal(
    path: str | os.PathLike[str], reason: OSError | ValueError, hint: str = ""
) -> FileFormatError:
    why = getattr(reason, "strerror", None) or str(reason)
    return FileFormatError(f"cannot write {shown(path)}: {why}{hint}")
