"""What can go wrong around a ledger: one clear sentence, nothing overspent, nothing broken."""

import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from engines import empty_postgres_database
from lrm.errors import LedgerError
from lrm.ledger import Ledger
from lrm.privacy.budget import PureDP
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()

TENTH = PureDP(Fraction(1, 10))
SLIVER = PureDP(Fraction(1, 1000))
NOBODY = 65534


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "ledger.sqlite"
    Ledger.open(made).create("people", 1, "epsilon")
    return made


def spend(path, privacy=TENTH, **options):
    return Ledger.open(path, **options).spend("people", privacy, unit=ROW, purpose="a release")


@contextmanager
def ordinary_user():
    """Run as a user whom file permissions bind, which they do not bind root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def small_disk(size):
    """Let no file grow beyond ``size`` bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_at_any_moment(path):
    """The limit creeps up until everything fits; each try spends wholly or not at all."""
    successes, failures = 0, []
    for size in range(0, 90_000, 1_500):
        with small_disk(size):
            try:
                spend(path, SLIVER)
                successes += 1
            except LedgerError as error:
                failures.append(str(error))
        assert Ledger.open(path).remaining("people") == 1 - successes * SLIVER.epsilon
    assert successes > 5
    assert len(failures) > 5
    assert all(re.search(r"ledger\.sqlite could not be [^\n]*(full|disk)", f) for f in failures)
    Ledger.open(path).verify()


def test_a_full_disk_while_the_ledger_is_made(tmp_path):
    path = tmp_path / "ledger.sqlite"
    failures = 0
    for size in range(0, 120_000, 2_000):
        with small_disk(size):
            try:
                Ledger.open(path).create("people", 1, "epsilon")
            except LedgerError:
                failures += 1
            else:
                break
    assert failures > 5
    assert spend(path).amount == Fraction(1, 10)
    Ledger.open(path).verify()


class FailingDisk(sqlite3.Connection):
    """A connection whose COMMIT ends with an error, after it was done or before."""

    is_done = True

    def execute(self, sql, *values):
        if sql != "COMMIT":
            return super().execute(sql, *values)
        if self.is_done:
            super().execute(sql)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_DIR_FSYNC"
        raise error


@pytest.mark.parametrize("is_done", [True, False])
def test_a_disk_that_fails_at_the_end_of_a_commit(path, monkeypatch, is_done):
    """The entry may be there, and may be gone after a power cut: nobody is told otherwise."""
    connect = sqlite3.connect
    monkeypatch.setattr(FailingDisk, "is_done", is_done)
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=FailingDisk, **k))
        with pytest.raises(LedgerError, match="failing disk") as caught:
            spend(path)
    assert caught.value.charge == ("unknown" if is_done else "none")
    assert ("`lrm budget history` shows an entry 2" in str(caught.value)) == is_done
    assert len(Ledger.open(path).history("people")) == 1 + is_done


def test_full_is_called_full(path):
    with closing(sqlite3.connect(path)) as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    ledger = Ledger.open(path)
    connect = ledger._store._connect

    def connect_to_full(mode):
        db = connect(mode)
        db.execute(f"PRAGMA max_page_count = {pages}")
        return db

    ledger._store._connect = connect_to_full

    def fill():
        for _ in range(500):
            ledger.spend("people", SLIVER, unit=ROW, purpose="a long purpose " * 20 + "end")

    with pytest.raises(LedgerError, match="because the disk is full; free some space"):
        fill()
    Ledger.open(path).verify()


@pytest.fixture
def shared_folder():
    """A folder that an ordinary user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_ledger_can_be_read_and_not_spent(shared_folder):
    path = shared_folder / "ledger.sqlite"
    Ledger.open(path).create("people", 1, "epsilon")
    path.chmod(0o444)
    shared_folder.chmod(0o555)
    with ordinary_user():
        for ask in (lambda: spend(path), lambda: Ledger.open(path).create("b", 1, "rho")):
            with pytest.raises(LedgerError, match=r"^ledger [^\n]*(write access|read and write)"):
                ask()
        assert Ledger.open(path).remaining("people") == 1
        Ledger.open(path).verify()
    shared_folder.chmod(0o755)
    path.chmod(0o000)
    with ordinary_user(), pytest.raises(LedgerError, match="check that you may read"):
        Ledger.open(path).verify()


def test_a_folder_that_may_not_be_written(shared_folder):
    shared_folder.chmod(0o555)
    with ordinary_user(), pytest.raises(LedgerError, match="check that you may read and write"):
        Ledger.open(shared_folder / "ledger.sqlite").create("people", 1, "epsilon")
    assert not list(shared_folder.iterdir())


def test_a_folder_that_may_not_be_entered(shared_folder):
    path = shared_folder / "ledger.sqlite"
    Ledger.open(path).create("people", 1, "epsilon")
    shared_folder.chmod(0o000)
    with ordinary_user(), pytest.raises(LedgerError, match=r"opened \(Permission denied\); check"):
        Ledger.open(path).verify()
    shared_folder.chmod(0o755)


@pytest.mark.parametrize("content", [b"hello, this is a text file\n" * 300, b"\x00" * 5000])
def test_a_file_that_is_no_database(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for ask in (lambda: spend(path), lambda: Ledger.open(path).create("people", 1, "epsilon")):
        with pytest.raises(LedgerError, match="is not a ledger"):
            ask()
    assert path.read_bytes() == content


def test_another_database_is_left_alone(tmp_path):
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE head (version)")
    content = path.read_bytes()
    for ask in (lambda: spend(path), lambda: Ledger.open(path).create("people", 1, "epsilon")):
        with pytest.raises(LedgerError, match="is a SQLite file but not a ledger"):
            ask()
    assert path.read_bytes() == content


def test_an_empty_file_is_no_ledger_until_one_is_made(tmp_path):
    path = tmp_path / "empty.sqlite"
    path.touch()
    with pytest.raises(LedgerError, match="not a ledger"):
        spend(path)
    Ledger.open(path).create("people", 1, "epsilon")
    spend(path)


def test_missing_places(tmp_path):
    with pytest.raises(LedgerError, match="directory that does not exist"):
        Ledger.open(tmp_path / "absent" / "ledger.sqlite").create("people", 1, "epsilon")
    with pytest.raises(LedgerError, match="is a directory"):
        Ledger.open(tmp_path).create("people", 1, "epsilon")


def test_a_damaged_file(path):
    spend(path)
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"^ledger [^\n]*damaged"):
        spend(path)


def test_a_damaged_schema_whose_error_cannot_be_decoded(path):
    content = path.read_bytes()
    assert content.count(b"CREATE TABLE entries (") == 1
    path.write_bytes(
        content.replace(b"CREATE TABLE entries (", b"CREATE TABLE \xbb\xff\xbbr\xbbs (((")
    )
    for ask in (lambda: spend(path), Ledger.open(path).verify):
        with pytest.raises(LedgerError, match=r"^ledger [^\n]*damaged"):
            ask()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_newer_format_is_left_alone(engine, path):
    location = str(path) if engine == "sqlite" else empty_postgres_database()
    ledger = Ledger.open(location)
    if engine == "sqlite":
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("DROP TRIGGER head_follows")
            db.execute("UPDATE head SET version = 3")
    else:
        ledger.create("people", 1, "epsilon")
        with psycopg.connect(location, autocommit=True) as db:
            db.execute("ALTER TABLE lrm_ledger.head DISABLE TRIGGER ALL")
            db.execute("UPDATE lrm_ledger.head SET version = 3")
    for ask in (
        ledger.verify,
        lambda: ledger.spend("people", TENTH, unit=ROW, purpose="x"),
        lambda: ledger.create("b", 1, "rho"),
    ):
        with pytest.raises(LedgerError, match="has format version 3, but this lrm knows version 2"):
            ask()


def test_a_lock_that_is_held_too_long(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"locked by another process for 0\.3 s"):
            spend(path, timeout=0.3)
        assert Ledger.open(path).remaining("people") == 1, "reading goes on"
    spend(path)


def test_a_reader_waits_until_pages_are_written(path):
    """Then nobody can read; the lock may be taken when a reader has connected already."""
    ledger = Ledger.open(path, timeout=120)
    connect = ledger._store._connect
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        unlock = threading.Timer(0.5, holder.execute, ["ROLLBACK"])

        def connect_and_lock(mode):
            db = connect(mode)
            holder.execute("BEGIN EXCLUSIVE")
            unlock.start()
            return db

        ledger._store._connect = connect_and_lock
        assert ledger.remaining("people") == 1
        unlock.join()


def test_a_postgres_lock_that_is_held_too_long():
    location = empty_postgres_database()
    Ledger.open(location).create("people", 1, "epsilon")
    with psycopg.connect(location) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(1819438385)")
        with pytest.raises(LedgerError, match=r"locked by another process for 0\.3 s"):
            spend(location, timeout=0.3)
        assert Ledger.open(location).remaining("people") == 1, "reading goes on"
    spend(location)


def test_a_postgres_user_with_few_rights_may_spend_and_nothing_else():
    location = empty_postgres_database()
    Ledger.open(location).create("people", 1, "epsilon")
    with psycopg.connect(location, autocommit=True) as db:
        db.execute("DROP ROLE IF EXISTS releaser")
        db.execute("CREATE ROLE releaser LOGIN")
        db.execute("GRANT USAGE ON SCHEMA lrm_ledger TO releaser")
        db.execute("GRANT SELECT ON ALL TABLES IN SCHEMA lrm_ledger TO releaser")
    releaser = location.replace("postgres:@", "releaser@")
    assert releaser != location
    with pytest.raises(LedgerError, match="may not be used by this user"):
        spend(releaser)
    with psycopg.connect(location, autocommit=True) as db:
        db.execute("GRANT INSERT ON lrm_ledger.entries TO releaser")
    assert spend(releaser).amount == Fraction(1, 10)
    with psycopg.connect(releaser) as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute("UPDATE lrm_ledger.head SET count = 0")
    Ledger.open(location).verify()


def test_a_postgres_server_that_only_reads():
    location = empty_postgres_database()
    Ledger.open(location).create("people", 1, "epsilon")
    option = "options=-c%20default_transaction_read_only%3Don"
    standby = f"{location}{'&' if '?' in location else '?'}{option}"
    with pytest.raises(LedgerError, match="is read-only; name the primary server"):
        spend(standby)
    assert Ledger.open(standby).remaining("people") == 1
    assert spend(location).amount == Fraction(1, 10)


def test_a_server_that_is_not_there_and_a_password_that_stays_secret():
    with pytest.raises(LedgerError, match="could not be used") as caught:
        spend("postgresql://me:hunter2@127.0.0.1:1/db", timeout=2)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(LedgerError, match="URL cannot be read"):
        Ledger.open("postgresql://[broken")


def test_ctrl_c_is_heard_while_waiting_for_the_lock(path):
    code = (
        "import sys; from fractions import Fraction; from lrm.ledger import Ledger\n"
        "from lrm.privacy.budget import PureDP\n"
        "from lrm.privacy.unit import PrivacyUnit\n"
        "half = PureDP(Fraction(1, 2))\n"
        "print('ready', flush=True)\n"
        "ledger = Ledger.open(sys.argv[1], timeout=60)\n"
        "ledger.spend('people', half, unit=PrivacyUnit(), purpose='x')"
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with child:
            child.stdout.readline()
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=120)
    assert b"KeyboardInterrupt" in said
    assert Ledger.open(path).remaining("people") == 1
    spend(path)
