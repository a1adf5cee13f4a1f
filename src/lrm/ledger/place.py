"""Where a SQLite ledger may be: a regular file with one name.

A ledger with two names is two ledgers to SQLite, whose journal is
next to the name (see :mod:`lrm.ledger.sqlite`). Symbolic links are followed to the one
real name; hard links and files that are mount points of their own are refused.
"""

import os
import re
import stat
import sys
from pathlib import Path

from lrm.errors import LedgerError
from lrm.ledger.store import CREATE_HINT


class FilePlace:
    """A path, followed to the real name of the file that is or will be there."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))

    @property
    def name(self) -> str:
        """The real path, for messages."""
        return str(self.path)

    def check_folder(self) -> None:
        """Refuse a place where no ledger can be made."""
        if not self.path.parent.is_dir():
            raise LedgerError(
                f"ledger {self.name} is in a directory that does not exist; create it first"
            )
        if self.path.exists():
            self.check_file()

    def check_file(self) -> None:
        """Refuse what is not a regular file, or has a second name."""
        try:
            file_status = os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise LedgerError(f"there is no ledger at {self.name}; {CREATE_HINT}") from None
        except OSError as reason:
            raise LedgerError(
                f"ledger {self.name} cannot be opened ({reason.strerror}); check that you may "
                "read and write the file and its directory"
            ) from None
        if stat.S_ISDIR(file_status.st_mode):
            raise LedgerError(f"ledger {self.name} is a directory; name a file in it")
        if not stat.S_ISREG(file_status.st_mode):
            raise LedgerError(f"ledger {self.name} is not a regular file; name one")
        if file_status.st_nlink > 1:
            raise LedgerError(
                f"ledger {self.name} has {file_status.st_nlink} names (hard links), and what "
                "is spent through one could be missed through another; remove all names but one"
            )
        if self._is_mount_point():
            raise LedgerError(
                f"ledger {self.name} is a file that is mounted by itself, and what is spent "
                "here could be missed elsewhere; mount its directory instead"
            )

    def sync_folder(self) -> None:
        """Put the new file's name on disk, which SQLite leaves to the caller."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _is_mount_point(self) -> bool:
        """Whether the file is on a different mount than its folder (Linux knows such mounts)."""
        if sys.platform != "linux":
            return False
        file, folder = _mount_of(self.path), _mount_of(self.path.parent)
        return file is not None and folder is not None and file != folder


def _mount_of(path: Path) -> str | None:
    """The number of the mount that contains a path, or None if the system does not report it."""
    try:
        # O_PATH does not open the file: closing an ordinary descriptor would drop the locks
        # that SQLite holds on it in this process.
        descriptor = os.open(path, os.O_PATH)
    except OSError:
        return None
    try:
        facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    except OSError:
        return None
    finally:
        os.close(descriptor)
    mount_match = re.search(r"^mnt_id:\s*(\d+)$", facts, re.MULTILINE)
    return None if mount_match is None else mount_match[1]
