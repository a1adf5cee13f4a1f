"""A ledger in a PostgreSQL database, shared by a team.

It lives in its own schema, ``lrm_ledger``. Writers queue at an advisory lock, and
the database accepts an entry only if it follows the head that its writer saw, so
that even a client that ignores the lock cannot spend the same amount twice. Those
who only release need ``USAGE`` on the schema and ``SELECT, INSERT`` on its tables:
the triggers run as the owner.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lrm.errors import ChargeUnknown, LedgerError
from lrm.files.locations import shown, unescaped_password, why_unreachable
from lrm.ledger.entries import GENESIS, Row, Snapshot, stored_row
from lrm.ledger.silence import Watch
from lrm.ledger.store import COLUMNS, CREATE_HINT, DEFAULT_TIMEOUT, SCHEMA_VERSION, version_error

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x6C726D31

_SCHEMA = f"""
CREATE SCHEMA lrm_ledger;
CREATE TABLE lrm_ledger.head (
  id integer PRIMARY KEY CHECK (id = 1),
  version integer NOT NULL,
  count bigint NOT NULL,
  digest text NOT NULL
);
CREATE TABLE lrm_ledger.entries (
  sequence bigint PRIMARY KEY,
  kind text NOT NULL,
  table_name text NOT NULL,
  accounting text NOT NULL,
  unit text NOT NULL,
  amount text NOT NULL,
  promise text NOT NULL,
  purpose text NOT NULL,
  time text NOT NULL,
  previous text NOT NULL,
  digest text NOT NULL UNIQUE
);
INSERT INTO lrm_ledger.head VALUES (1, {SCHEMA_VERSION}, 0, '{GENESIS}');
CREATE FUNCTION lrm_ledger.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE FUNCTION lrm_ledger.follow() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  UPDATE lrm_ledger.head SET count = NEW.sequence, digest = NEW.digest
  WHERE NEW.sequence = count + 1 AND NEW.previous = digest;
  IF NOT FOUND THEN RAISE EXCEPTION 'an entry must follow the head'; END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION lrm_ledger.head_follows() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  IF NEW.version <> OLD.version OR NEW.count <> OLD.count + 1 OR pg_trigger_depth() < 2
  THEN RAISE EXCEPTION 'the head only follows a new entry'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER entries_follow BEFORE INSERT ON lrm_ledger.entries
  FOR EACH ROW EXECUTE FUNCTION lrm_ledger.follow();
CREATE TRIGGER entries_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON lrm_ledger.entries
  FOR EACH STATEMENT EXECUTE FUNCTION lrm_ledger.refuse();
CREATE TRIGGER head_stays BEFORE INSERT OR DELETE OR TRUNCATE ON lrm_ledger.head
  FOR EACH STATEMENT EXECUTE FUNCTION lrm_ledger.refuse();
CREATE TRIGGER head_follows BEFORE UPDATE ON lrm_ledger.head
  FOR EACH ROW EXECUTE FUNCTION lrm_ledger.head_follows();
"""  # noqa: S608 - constants of this package

_VALUES = ", ".join(["%s"] * 11)


_GRACE = 1.0
"""Seconds after the timeout in which the server may answer that the lock was not free."""


class _ConnectionLost(LedgerError):  # noqa: N818 - says what happened
    """The connection failed, so that what was sent last may or may not have arrived."""


class PostgresStore:
    """Rows in the database at ``url``; waits up to ``timeout`` seconds for its lock."""

    def __init__(self, url: str, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._driver = _driver()
        self._url = url
        self._timeout = timeout
        _check(self._driver, url)

    @property
    def _most_idle(self) -> float:
        """After how many seconds the server ends a transaction whose client is gone."""
        return max(5.0, self._timeout)

    @property
    def name(self) -> str:
        """What may be shown of the address: its scheme."""
        return shown(self._url)

    def prepare(self) -> None:
        """Create an empty ledger if there is none; leave an existing one unchanged."""
        with self._transaction("READ COMMITTED", lock=True) as db:
            schema_row = db.execute("SELECT to_regnamespace('lrm_ledger') IS NOT NULL").fetchone()
            if schema_row == (False,):
                db.execute(_SCHEMA)
            self._check_schema(db)

    def read(self) -> Snapshot:
        """Return all rows and the head, as of one moment."""
        with self._transaction("REPEATABLE READ", lock=False) as db:
            return self._snapshot(db)

    def append(self, decide: Callable[[Snapshot], Row]) -> Row:
        """Add the row that ``decide`` makes of the present state, in one transaction.

        Where the connection is lost once COMMIT may have been sent, the ledger is asked again over
        another one whether the row is there.
        """
        row = None
        try:
            with self._transaction("READ COMMITTED", lock=True) as db:
                made = decide(self._snapshot(db))
                db.execute(
                    f"INSERT INTO lrm_ledger.entries ({COLUMNS}) VALUES ({_VALUES})",  # noqa: S608
                    made.values(),
                )
                row = made  # what follows is COMMIT
        except _ConnectionLost as lost:
            if row is None:
                raise LedgerError(f"{lost}; nothing was charged") from None
        else:
            return made
        return self._committed(row)

    def _committed(self, row: Row) -> Row:
        """Return a row whose COMMIT was not answered, if the ledger has it.

        The transaction that wrote it held the lock of writers until it ended, on the server too,
        which ends one that nobody talks to: once this one has the lock, the row is there or never
        will be.
        """
        try:
            with self._transaction("READ COMMITTED", lock=True, patience=self._most_idle) as db:
                found = db.execute(
                    "SELECT digest FROM lrm_ledger.entries WHERE sequence = %s", (row.sequence,)
                ).fetchone()
        except LedgerError as error:
            raise ChargeUnknown(
                f"the connection to ledger {self.name} was lost while it was charged, and the "
                f"ledger could not be asked again ({error}): it may be charged; "
                f"`lrm budget history` shows an entry {row.sequence} of {row.time} if it was"
            ) from None
        if found != (row.digest,):
            raise LedgerError(
                f"the connection to ledger {self.name} was lost before the charge was committed; "
                "nothing was charged; try again"
            )
        return row

    def _snapshot(self, db: "psycopg.Connection[Any]") -> Snapshot:
        self._check_schema(db)
        count, digest = db.execute("SELECT count, digest FROM lrm_ledger.head").fetchone() or (
            0,
            "",
        )
        rows = db.execute(f"SELECT {COLUMNS} FROM lrm_ledger.entries ORDER BY sequence")  # noqa: S608
        return Snapshot(tuple(map(stored_row, rows)), count, digest)

    def _check_schema(self, db: "psycopg.Connection[Any]") -> None:
        head = db.execute("SELECT version FROM lrm_ledger.head").fetchone()
        if head is None or head[0] != SCHEMA_VERSION:
            raise LedgerError(version_error(self.name, head and head[0]))

    @contextmanager
    def _transaction(
        self, isolation: str, *, lock: bool, patience: float = 0.0
    ) -> Iterator["psycopg.Connection[Any]"]:
        """Open a connection with one transaction; committed on disk when the block has ended.

        It waits ``patience`` longer than the timeout for the lock.
        """
        wait = self._timeout + patience
        lost = False
        try:
            with (
                self._driver.connect(
                    self._url, connect_timeout=max(2, int(self._timeout)), autocommit=True
                ) as db,
                Watch(db, wait + _GRACE),
                db.transaction(),
            ):
                db.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
                if lock:
                    db.execute("SET LOCAL synchronous_commit = on")
                    db.execute(f"SET LOCAL lock_timeout = {max(1, int(wait * 1000))}")
                    idle = int(self._most_idle * 1000)
                    db.execute(f"SET LOCAL idle_in_transaction_session_timeout = {idle}")
                    db.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
                yield db
        except self._driver.Error as error:
            reason = self._explain(error)
            # An error of the server has a state; without one the connection itself has failed.
            lost = isinstance(error, self._driver.OperationalError) and error.sqlstate is None
            lost = lost or isinstance(error, self._driver.errors.AdminShutdown)
        else:
            return
        # Without the driver's own words, which may quote the URL.
        raise _ConnectionLost(reason) if lost else LedgerError(reason)

    def _explain(self, error: Exception) -> str:
        errors = self._driver.errors
        match error:
            case errors.LockNotAvailable():
                reason = (
                    f"has been locked by another process for {self._timeout:g} s; "
                    "try again when that process has ended"
                )
            case errors.UndefinedTable() | errors.InvalidSchemaName():
                return f"there is no ledger at {self.name}; {CREATE_HINT}"
            case errors.DiskFull():
                reason = "could not be written because its disk is full; free some space there"
            case errors.ReadOnlySqlTransaction():
                reason = "is read-only; name the primary server"
            case errors.InsufficientPrivilege():
                reason = "may not be used by this user; ask its owner for SELECT and INSERT"
            case _:
                message = (
                    error.diag.message_primary if isinstance(error, self._driver.Error) else None
                )
                message = " ".join(message.split()) if message else why_unreachable(str(error))
                reason = f"could not be used: {message}"
        return f"ledger {self.name} {reason}"


def _driver() -> ModuleType:
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        raise LedgerError(
            "a ledger in PostgreSQL needs the package psycopg; "
            "install it with `pip install 'psycopg[binary]'`"
        ) from None
    return psycopg


def _check(driver: ModuleType, url: str) -> None:
    try:
        parts = {} if unescaped_password(url) else driver.conninfo.conninfo_to_dict(url)
    except driver.Error:
        parts = {}
    if not parts:
        raise LedgerError(
            "the ledger's PostgreSQL URL cannot be read; write it as "
            "postgresql://user@host:5432/database, and @ and / in a password as %40 and %2F"
        )
