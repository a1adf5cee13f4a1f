"""A SQLite ledger could be overspent through a second name of the same file.

SQLite keeps its journal beside the name by which a file was opened. Through a hard link, or
through a single file that was mounted into a container, each name had a write-ahead log of its
own: 200 spends of 0.01 succeeded on a limit of 1, and ``verify`` found nothing. Now a file with
a second name is refused by every operation, also when the name appears later; a symbolic link is
followed to the one real name; a folder may be mounted as often as one likes.
"""

import os
import random
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from engines import missing
from lrm.errors import BudgetExceeded, LedgerError
from lrm.ledger import Ledger, sqlite
from lrm.privacy.budget import PureDP
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()
TENTH = PureDP(Fraction(1, 10))
RACER = Path(__file__).with_name("racer.py")
SECOND = r"has 2 names \(hard links\)[^\n]*remove all names but one"
MOUNTED = "is a file that is mounted by itself"


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "ledger.sqlite"
    Ledger.open(made).create("people", 1, "epsilon")
    return made


def spend(path, **options):
    return Ledger.open(path, **options).spend("people", TENTH, unit=ROW, purpose="a release")


def spend_all(*paths):
    """Spend a tenth through each path in turn until it is refused; return how many there were."""
    count = 0
    while True:
        try:
            spend(paths[count % len(paths)])
        except BudgetExceeded:
            return count
        count += 1


def refused_everywhere(path, sentence):
    ledger = Ledger.open(path)
    for ask in (
        ledger.verify,
        ledger.budgets,
        lambda: spend(path),
        lambda: ledger.create("others", 1, "epsilon"),
    ):
        with pytest.raises(LedgerError, match=sentence):
            ask()


def test_a_hard_link_is_refused_through_both_names(path, tmp_path):
    (tmp_path / "other").mkdir()
    second = tmp_path / "other" / "budget.sqlite"
    os.link(path, second)
    refused_everywhere(path, SECOND)
    refused_everywhere(second, SECOND)
    second.unlink()
    assert spend_all(path) == 10


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists descriptors so")
def test_checks_leave_no_descriptor_open(path):
    ledger = Ledger.open(path)
    ledger.verify()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        ledger.verify()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@pytest.fixture
def waits(monkeypatch):
    """Set once a ledger has found its file locked."""
    noted = threading.Event()

    def sleep(seconds):
        noted.set()
        time.sleep(seconds)

    monkeypatch.setattr(sqlite, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    return noted


def test_a_link_that_appears_while_a_spend_waits(path, tmp_path, waits):
    """The file is looked at again once the lock is held."""
    refusals = []

    def wait_and_spend():
        try:
            spend(path, timeout=200)
        except LedgerError as error:
            refusals.append(str(error))

    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=wait_and_spend)
        waiting.start()
        assert waits.wait(120)
        os.link(path, tmp_path / "second.sqlite")
        holder.execute("ROLLBACK")
        waiting.join(timeout=300)
    assert len(refusals) == 1
    assert "hard links" in refusals[0]
    (tmp_path / "second.sqlite").unlink()
    assert Ledger.open(path).remaining("people") == 1


def test_a_file_that_is_replaced_while_a_spend_waits(path, tmp_path, waits):
    """What is spent on a file that nobody can find again must not count as spent."""
    shutil.copy(path, tmp_path / "copy.sqlite")
    refusals = []

    def wait_and_spend():
        try:
            spend(path, timeout=200)
        except LedgerError as error:
            refusals.append(str(error))

    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=wait_and_spend)
        waiting.start()
        assert waits.wait(120)
        (tmp_path / "copy.sqlite").replace(path)
        holder.execute("ROLLBACK")
        waiting.join(timeout=300)
    assert len(refusals) == 1
    assert "moved or replaced while it was open" in refusals[0]
    assert spend_all(path) == 10


def test_symbolic_links_lead_to_one_name(path, tmp_path):
    (tmp_path / "link.sqlite").symlink_to(path)
    (tmp_path / "folder").symlink_to(tmp_path)
    names = path, tmp_path / "link.sqlite", tmp_path / "folder" / "ledger.sqlite"
    assert {Ledger.open(name).name for name in names} == {str(path.resolve())}
    assert spend_all(*names) == 10


UNSHARE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else []), "sh", "-ec"]
"""Runs a script in a namespace of its own: what it mounts is seen by nobody else."""


@pytest.fixture
def mounts(tmp_path):
    """A folder to mount things in; skips where the machine does not let tests mount."""
    place = tmp_path / "mounted"
    place.mkdir()
    probe = [*UNSHARE, f"mount --bind {shlex.quote(str(place))} {shlex.quote(str(place))}"]
    try:
        done = subprocess.run(probe, capture_output=True, check=False, timeout=120)
    except OSError:
        missing("there is no unshare command, with which a mount would be made")
    if done.returncode:
        missing("this machine does not let tests make a mount")
    return place


def mounted(source, target, *command):
    """A command that runs where ``source`` is mounted on ``target`` too."""
    words = shlex.join(map(str, command))
    return [*UNSHARE, f"mount --bind {shlex.join([str(source), str(target)])}; exec {words}"]


def said_by(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


SPEND_ALL = (
    "import sys; from fractions import Fraction as F\n"
    "from lrm.errors import LedgerError\n"
    "from lrm.ledger import Ledger\n"
    "from lrm.privacy.budget import PureDP\n"
    "from lrm.privacy.unit import PrivacyUnit\n"
    "done = 0\n"
    "try:\n"
    "  for turn in range(40):\n"
    "    ledger = Ledger.open(sys.argv[1 + turn % (len(sys.argv) - 1)])\n"
    "    ledger.spend('people', PureDP(F(1, 10)), unit=PrivacyUnit(), purpose='x'); done += 1\n"
    "except LedgerError as error: print(done, error)\n"
)


def test_a_file_that_is_mounted_by_itself_is_refused(path, mounts):
    again = mounts / "ledger.sqlite"
    again.touch()
    said = said_by(mounted(path, again, sys.executable, "-c", SPEND_ALL, again))
    assert said.startswith("0 ")
    assert MOUNTED in said
    assert spend_all(path) == 10, "outside, where it is no mount, it goes on"


def test_a_folder_may_be_mounted_twice(path, mounts):
    again = mounts / path.name
    said = said_by(mounted(path.parent, mounts, sys.executable, "-c", SPEND_ALL, path, again))
    assert said.startswith("10 ")
    assert "0 epsilon left" in said


def start_racer(location, folder, number, start):
    command = [sys.executable, RACER, location, folder / f"report-{number}", folder / start]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def reports(folder):
    return [line for file in folder.glob("report-*") for line in file.read_text().splitlines()]


def wait_for(folder, count, what):
    deadline = time.monotonic() + 200
    while sum(what(line) for line in reports(folder)) < count:
        assert time.monotonic() < deadline, "the racers did not get so far"
        time.sleep(0.02)


def is_digest(line):
    return len(line) == 64


def race(path, second, folder, processes, killed):
    """Half of the processes spend by one name, half by another that appears during the race."""
    ledger = Ledger.open(path)
    ledger.create("people", 1, "epsilon")
    with ExitStack() as stack:
        racers = [
            stack.enter_context(
                start_racer((path, second)[n % 2], folder, n, ("go", "go-too")[n % 2])
            )
            for n in range(processes)
        ]
        wait_for(folder, processes, lambda line: line == "ready")
        (folder / "go").touch()
        wait_for(folder, 5, is_digest)
        victims = random.sample(racers, killed)
        for victim in victims[: killed // 2]:
            time.sleep(random.uniform(0, 0.02))  # noqa: S311 - any moment will do
            victim.kill()
        os.link(path, second)
        (folder / "go-too").touch()
        for victim in victims[killed // 2 :]:
            time.sleep(random.uniform(0, 0.02))  # noqa: S311 - any moment will do
            victim.kill()
        outcomes = [racer.communicate(timeout=300)[1] for racer in racers]
    assert all(racer.returncode in {0, -signal.SIGKILL} for racer in racers), outcomes
    second.unlink()
    ledger.verify()
    entries = {entry.digest: entry.amount for entry in ledger.history("people")[1:]}
    assert sum(entries.values()) == ledger.budget("people").spent <= 1
    assert set(filter(is_digest, reports(folder))) <= set(entries), "a success without its entry"
    refusals = [line for line in reports(folder) if line.startswith("refused")]
    assert refusals, "nobody met the second name"
    assert all("hard links" in line for line in refusals)


def test_processes_race_through_two_names(tmp_path):
    race(tmp_path / "ledger.sqlite", tmp_path / "second.sqlite", tmp_path, 6, 2)


def race_through_a_mount(path, mounts, folder, processes, killed):
    """Half of the processes see the folder under another name: one ledger, spent exactly."""
    ledger = Ledger.open(path)
    ledger.create("people", 1, "epsilon")
    again = mounts / path.name
    with ExitStack() as stack:
        racers = []
        for n in range(processes):
            rest = folder / f"report-{n}", folder / "go"
            command = [sys.executable, RACER, path, *rest]
            if n % 2:
                command = mounted(path.parent, mounts, sys.executable, RACER, again, *rest)
            racers.append(stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE)))
        wait_for(folder, processes, lambda line: line == "ready")
        (folder / "go").touch()
        for victim in random.sample(racers, killed):
            time.sleep(random.uniform(0, 0.05))  # noqa: S311 - any moment will do
            victim.kill()
        outcomes = [racer.communicate(timeout=300)[1] for racer in racers]
    assert all(racer.returncode in {0, -signal.SIGKILL} for racer in racers), outcomes
    ledger.verify()
    entries = {entry.digest: entry.amount for entry in ledger.history("people")[1:]}
    assert 0 <= 1 - sum(entries.values()) < Fraction(1, 350), "until nothing fitted"
    assert set(filter(is_digest, reports(folder))) <= set(entries), "a success without its entry"
    assert not [line for line in reports(folder) if line.startswith("refused")]


@pytest.fixture
def ledger_folder(tmp_path):
    folder = tmp_path / "ledger"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.long
def test_fifty_processes_race_through_a_mounted_folder(ledger_folder, mounts, tmp_path):
    race_through_a_mount(ledger_folder / "ledger.sqlite", mounts, tmp_path, 50, 20)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("attempt", range(3))
def test_fifty_processes_race_through_two_names_while_some_are_killed(tmp_path, attempt):
    race(tmp_path / "ledger.sqlite", tmp_path / "second.sqlite", tmp_path, 50, 20)


def killed_within_a_commit(path):
    """Leave a journal behind, as a process does that dies while SQLite writes its pages."""
    code = (
        "import os, signal, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA cache_size = 1')\n"
        "db.execute('BEGIN IMMEDIATE')\n"
        "db.execute('DROP TRIGGER entries_keep')\n"
        'db.execute("UPDATE entries SET purpose = hex(randomblob(30000))")\n'
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert Path(f"{path}-journal").stat().st_size > 0
    assert path.read_bytes() != before


def test_a_journal_that_was_left_behind_is_rolled_back(path):
    for _ in range(4):
        spend(path)
    head = Ledger.open(path).head()
    killed_within_a_commit(path)
    assert Ledger.open(path).verify() == head
    assert spend_all(path) == 6


def test_a_ledger_that_was_switched_to_a_log_is_refused(path):
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    refused_everywhere(path, "switched to a write-ahead log by another program; switch it back")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    assert spend_all(path) == 10


def test_a_ledger_of_the_first_version_is_refused_with_what_to_do(tmp_path):
    """It was kept in a write-ahead log, and did not know whom its limit protects."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA application_id = 1819438385;"
            "CREATE TABLE head (id INTEGER, version INTEGER, count INTEGER, digest TEXT);"
            "CREATE TABLE entries (sequence INTEGER, unit TEXT);"
            "INSERT INTO head VALUES (1, 1, 0, '');"
        )
    refused_everywhere(path, "version 1, but this lrm knows version 2; create a new ledger whose")


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_what_is_no_regular_file_is_refused_without_opening_it(tmp_path, kind):
    path = tmp_path / "place"
    if kind == "pipe":
        os.mkfifo(path)  # opening it would wait for ever
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/null")
    refused_everywhere(path, "is not a regular file|is a directory")
