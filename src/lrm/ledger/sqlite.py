"""A ledger in one SQLite file.

``BEGIN IMMEDIATE`` takes the write lock before anything is read, so that checking
and spending cannot be separated; ``synchronous=EXTRA`` puts a commit on disk before it
is reported. A process killed at any moment leaves either the whole entry or nothing.
The file must be on a local disk, whose locks hold between processes.

SQLite keeps its journal next to the file, under the name by which the file was opened.
Through a second name of the same file, a process does not see the journal of another
one: with a write-ahead log both spent the whole limit, and with a rollback journal a
commit that was cut short is not rolled back. So :mod:`lrm.ledger.place` refuses files
with a second name, and the journal is a rollback journal, whose locks are those of the
file itself: what slips through between two checks is still serialised.
"""

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from lrm.errors import ChargeUnknown, LedgerError
from lrm.ledger.entries import GENESIS, Row, Snapshot, stored_row
from lrm.ledger.place import FilePlace
from lrm.ledger.store import COLUMNS, CREATE_HINT, DEFAULT_TIMEOUT, SCHEMA_VERSION, version_error

_APPLICATION_ID = 0x6C726D31  # "lrm1": distinguishes a ledger from other SQLite files
# SQLite waits this long inside C, where Ctrl-C has no effect; the rest is waited here.
_WAIT_IN_C = 0.2

_SCHEMA = f"""
CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,
  count INTEGER NOT NULL,
  digest TEXT NOT NULL
);
CREATE TABLE entries (
  sequence INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  table_name TEXT NOT NULL,
  accounting TEXT NOT NULL,
  unit TEXT NOT NULL,
  amount TEXT NOT NULL,
  promise TEXT NOT NULL,
  purpose TEXT NOT NULL,
  time TEXT NOT NULL,
  previous TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE
);
INSERT INTO head VALUES (1, {SCHEMA_VERSION}, 0, '{GENESIS}');
CREATE TRIGGER entries_follow BEFORE INSERT ON entries
WHEN NOT EXISTS (
  SELECT 1 FROM head WHERE NEW.sequence = count + 1 AND NEW.previous = digest
) BEGIN SELECT RAISE(ABORT, 'an entry must follow the head'); END;
CREATE TRIGGER entries_advance AFTER INSERT ON entries BEGIN
  UPDATE head SET count = NEW.sequence, digest = NEW.digest;
END;
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER head_single BEFORE INSERT ON head
BEGIN SELECT RAISE(ABORT, 'the ledger has one head'); END;
CREATE TRIGGER head_stays BEFORE DELETE ON head
BEGIN SELECT RAISE(ABORT, 'the ledger has one head'); END;
CREATE TRIGGER head_follows BEFORE UPDATE ON head
WHEN NEW.version IS NOT OLD.version OR NOT EXISTS (
  SELECT 1 FROM entries WHERE sequence = OLD.count + 1 AND sequence = NEW.count
    AND previous = OLD.digest AND digest = NEW.digest
) BEGIN SELECT RAISE(ABORT, 'the head only follows a new entry'); END;
PRAGMA application_id = {_APPLICATION_ID};
"""  # noqa: S608 - constants of this package

_INSERT = f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * 11)})"  # noqa: S608


class SqliteStore:
    """Rows in a SQLite file at ``path``; waits up to ``timeout`` seconds for its lock."""

    def __init__(self, path: Path, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._place = FilePlace(path)
        self._timeout = timeout

    @property
    def name(self) -> str:
        """The file's path."""
        return self._place.name

    def prepare(self) -> None:
        """Create an empty ledger if there is none; leave an existing one unchanged."""
        self._place.check_folder()
        with self._explained(), closing(self._connect("rwc")) as db:
            self._begin(db, "IMMEDIATE")
            self._place.check_file()
            if _is_empty(db):
                for statement in _statements(_SCHEMA):
                    db.execute(statement)
            self._check_schema(db)
            self._commit(db)
        self._place.sync_folder()

    def read(self) -> Snapshot:
        """Return all rows and the head, as of one moment."""
        self._place.check_file()
        # Opened for writing where possible: a journal that a killed process left behind is
        # rolled back first. SQLite falls back to reading where the file cannot be written.
        with self._explained(), closing(self._connect("rw")) as db:
            self._begin(db, "DEFERRED")
            return self._snapshot(db)

    def append(self, decide: Callable[[Snapshot], Row]) -> Row:
        """Add the row that ``decide`` makes of the present state, in one transaction.

        Where the disk fails during COMMIT, the file is read again: the row may be in it.
        """
        self._place.check_file()
        row = None
        try:
            with self._explained(), closing(self._connect("rw")) as db:
                # Closing without COMMIT rolls back, also when Ctrl-C comes in between.
                self._begin(db, "IMMEDIATE")
                self._place.check_file()
                made = decide(self._snapshot(db))
                db.execute(_INSERT, made.values())
                row = made  # what follows is COMMIT
                self._commit(db)
                return row
        except LedgerError as failed:
            if row is not None and not _is_busy(failed.__cause__) and self._may_have(row):
                raise ChargeUnknown(
                    f"{failed}. That was during its last step: it may be charged; "
                    f"`lrm budget history` shows an entry {row.sequence} of {row.time} if it was"
                ) from failed.__cause__
            raise

    def _may_have(self, row: Row) -> bool:
        """Whether the file has a row, or cannot be read."""
        try:
            return any(stored.digest == row.digest for stored in self.read().rows)
        except LedgerError:
            return True

    def _snapshot(self, db: sqlite3.Connection) -> Snapshot:
        self._check_schema(db)
        count, digest = db.execute("SELECT count, digest FROM head").fetchone()
        rows = db.execute(f"SELECT {COLUMNS} FROM entries ORDER BY sequence")  # noqa: S608
        return Snapshot(tuple(map(stored_row, rows)), count, digest)

    def _check_schema(self, db: sqlite3.Connection) -> None:
        if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise LedgerError(
                f"{self.name} is a SQLite file but not a ledger; "
                f"name a ledger, or {CREATE_HINT} under a new name"
            )
        head = db.execute("SELECT version FROM head").fetchone()
        if head is None or head[0] != SCHEMA_VERSION:
            raise LedgerError(version_error(self.name, head and head[0]))
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
            raise LedgerError(
                f"ledger {self.name} was switched to a write-ahead log by another program; "
                "switch it back with PRAGMA journal_mode = DELETE"
            )

    def _connect(self, mode: str) -> sqlite3.Connection:
        db = sqlite3.connect(
            f"{self._place.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=min(_WAIT_IN_C, self._timeout),
            isolation_level=None,
        )
        # Settings of the connection, not of the file, though setting them reads it. EXTRA
        # also syncs the folder after the journal is deleted: otherwise a power cut could bring
        # it back, and undo the commit. fullfsync matters on macOS only.
        try:
            for setting in ("synchronous = EXTRA", "fullfsync = ON"):
                self._patiently(partial(db.execute, f"PRAGMA {setting}"))
        except BaseException:
            db.close()
            raise
        return db

    def _begin(self, db: sqlite3.Connection, how: str) -> None:
        """Begin a transaction and read something, which is what takes the lock of a reader."""

        def begin() -> None:
            if db.in_transaction:
                db.execute("ROLLBACK")
            db.execute(f"BEGIN {how}")
            db.execute("SELECT 1 FROM sqlite_schema").fetchone()

        self._patiently(begin)

    def _commit(self, db: sqlite3.Connection) -> None:
        """Commit; a reader may hold it up, and the transaction stays open until it does not."""
        self._patiently(lambda: db.execute("COMMIT"))

    def _patiently(self, attempt: Callable[[], object]) -> None:
        """Repeat ``attempt`` while another process holds the lock, up to the timeout."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                attempt()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
                time.sleep(random.uniform(0.001, 0.02))  # noqa: S311 - spreads the waiters
            else:
                return

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into sentences."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # Python cannot decode SQLite's message where it quotes a damaged schema.
            raise LedgerError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        code = getattr(error, "sqlite_errorname", "")
        reasons = {
            "SQLITE_BUSY": f"has been locked by another process for {self._timeout:g} s; "
            "try again when that process has ended",
            "SQLITE_FULL": "could not be written because the disk is full; "
            "free some space and try again",
            "SQLITE_IOERR": "could not be read or written (disk full, quota or failing disk?); "
            "check the disk and try again",
            "SQLITE_READONLY_ROLLBACK": "was left in the middle of a spend; open it once with "
            "write access to the file and its directory",
            "SQLITE_READONLY_DBMOVED": "was moved or replaced while it was open; check what "
            "is there now and try again",
            "SQLITE_READONLY": "cannot be written; give yourself write access to the file "
            "and its directory",
            "SQLITE_CANTOPEN": "cannot be opened; check that you may read and write the file "
            "and its directory",
            "SQLITE_NOTADB": "is not a ledger; name the file that `lrm budget create` made",
            "SQLITE_CORRUPT": "is damaged; restore a copy whose head you know",
        }
        for prefix, reason in reasons.items():
            if code.startswith(prefix):
                return f"ledger {self.name} {reason}"
        return (
            f"ledger {self.name} is not a ledger, or is damaged; restore a copy whose head you know"
        )


def _is_busy(error: BaseException | None) -> bool:
    """Whether another process holds the lock; nothing was done then."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _is_empty(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,))


def _statements(script: str) -> Iterator[str]:
    """Split a script; ``executescript`` would commit the transaction that is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
