"""What the ledger asks of a database."""

from collections.abc import Callable
from typing import Protocol

from lrm.ledger.entries import Row, Snapshot

SCHEMA_VERSION = 2
DEFAULT_TIMEOUT = 30.0

CREATE_HINT = "make one with `lrm budget create`, or Ledger.create in Python"
COLUMNS = (
    "sequence, kind, table_name, accounting, unit, amount, promise, purpose, time, previous, digest"
)


class Store(Protocol):
    """A place that keeps rows in order and never changes them.

    Every operation opens its own connection, so a store may be used from several
    threads and survives a fork.
    """

    @property
    def name(self) -> str:
        """Where the ledger is, for error messages; holds no password."""
        ...

    def prepare(self) -> None:
        """Create an empty ledger if there is none; leave an existing one unchanged."""
        ...

    def read(self) -> Snapshot:
        """Return all rows and the head, as of one moment."""
        ...

    def append(self, decide: Callable[[Snapshot], Row]) -> Row:
        """Add the row that ``decide`` makes of the present state, in one transaction.

        No other writer gets in between. When this returns, the row is on disk;
        when it raises, no success may be assumed. If ``decide`` raises, nothing
        is written.
        """
        ...


def version_error(name: str, version: object) -> str:
    """Say that a ledger was written by another version."""
    older = isinstance(version, int) and version < SCHEMA_VERSION
    return (
        f"ledger {name} has format version {version}, but this lrm knows version "
        f"{SCHEMA_VERSION}; "
        + (
            "create a new ledger whose limits are what the old one has left"
            if older
            else "install the lrm that wrote it"
        )
    )
