"""Many processes, killed at any moment: never overspent, never corrupted, nothing lost."""

import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import pytest

from lrm.ledger import Ledger
from lrm.privacy.budget import PureDP
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()

TWO = ("2025-01", "2025-02")
"""Editions of a budget with an account for each month."""

RACER = Path(__file__).with_name("racer.py")


def start_racer(location, folder, number, *moment):
    command = [sys.executable, RACER, location, folder / f"report-{number}", folder / "go", *moment]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def reports(folder):
    return [line for file in folder.glob("report-*") for line in file.read_text().splitlines()]


def wait_until_ready(folder, count):
    deadline = time.monotonic() + 300
    while len(reports(folder)) < count:
        assert time.monotonic() < deadline, "the racers did not start"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("location", "editions"), [("sqlite", TWO), ("postgres", ())], indirect=["location"]
)
def test_processes_race_while_some_are_killed(location, tmp_path, editions, monkeypatch):
    monkeypatch.setenv("RACED", " ".join(editions))
    race(location, tmp_path, 12, 5, Fraction(1, 6) if editions else Fraction(1, 3), editions)


@pytest.mark.long
def test_twenty_processes_race_on_two_accounts_while_some_are_killed(
    location, tmp_path, monkeypatch
):
    monkeypatch.setenv("RACED", " ".join(TWO))
    race(location, tmp_path, 20, 8, Fraction(1, 2), TWO)


@pytest.mark.long
@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_fifty_processes_race_while_some_are_killed(location, tmp_path):
    race(location, tmp_path, 50, 20, 1)


def race(location, folder, processes, killed, limit, editions=()):
    ledger = Ledger.open(location)
    period = "month" if editions else None
    ledger.create("people", limit, "epsilon", unit=PrivacyUnit(period=period))
    chosen = random.sample(range(processes), killed)
    with ExitStack() as stack:
        racers = [
            stack.enter_context(
                start_racer(location, folder, number, *["victim"] * (number in chosen))
            )
            for number in range(processes)
        ]
        wait_until_ready(folder, processes)
        (folder / "go").touch()
        for number in chosen:
            time.sleep(random.uniform(0, 0.05))  # noqa: S311 - any moment will do
            racers[number].kill()
        outcomes = [racer.communicate(timeout=300)[1] for racer in racers]
    codes = [-signal.SIGKILL if number in chosen else 0 for number in range(processes)]
    assert [racer.returncode for racer in racers] == codes, outcomes
    check(ledger, folder, editions)


def check(ledger, folder, editions):
    entries = ledger.history("people")[1:]
    for edition in editions or [None]:
        budget = ledger.budget("people", edition)
        own = [entry for entry in entries if edition is None or entry.editions == (edition,)]
        assert budget.spent == sum(entry.amount for entry in own)
        assert 0 <= budget.remaining < Fraction(1, 350), "survivors went on until nothing fitted"
    ledger.verify()
    assert {entry.editions for entry in entries} == ({(each,) for each in editions} or {()})
    assert not [line for line in reports(folder) if line.startswith("refused")]
    reported = [line for line in reports(folder) if len(line.split()[0]) == 64]
    assert len(reported) == len(set(reported)) > 0
    charged = {" ".join([entry.digest, *entry.editions]) for entry in entries}
    assert set(reported) <= charged, "a success without its entry, or another account was charged"


@pytest.mark.parametrize(
    ("location", "moment", "left"),
    [
        ("sqlite", "locked", 1),
        ("sqlite", "insert", 1),
        ("sqlite", "commit", 1),
        ("sqlite", "reported", 0),
        ("postgres", "locked", 1),
        ("postgres", "reported", 0),
    ],
    indirect=["location"],
)
def test_killed_at_each_moment_of_a_spend(location, tmp_path, moment, left):
    """Before the commit there is no trace, after it there is the whole entry; the lock is free."""
    ledger = Ledger.open(location, timeout=10)
    ledger.create("people", 1, "epsilon")
    (tmp_path / "go").touch()
    with start_racer(location, tmp_path, 0, moment) as racer:
        racer.communicate(timeout=300)
    assert racer.returncode == -signal.SIGKILL
    assert (ledger.remaining("people") == 1) == bool(left)
    assert reports(tmp_path) == ["ready"]
    ledger.spend("people", PureDP(Fraction(1, 2)), unit=ROW, purpose="after the crash")
    ledger.verify()


def test_processes_that_make_the_same_ledger_agree(location):
    """Whoever comes first makes the budget; the others are told so, and nothing breaks."""
    code = (
        "import sys; from lrm.ledger import Ledger; from lrm.errors import LedgerError\n"
        "try: Ledger.open(sys.argv[1]).create('people', 1, 'epsilon')\n"
        "except LedgerError as e: sys.exit('already has a budget' not in str(e) and str(e))\n"
        "print('made')"
    )
    command = [sys.executable, "-c", code, location]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        makers = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(6)]
        outcomes = [maker.communicate(timeout=300) for maker in makers]
    assert [maker.returncode for maker in makers] == [0] * 6, outcomes
    assert sum("made" in said for said, _ in outcomes) == 1
    assert Ledger.open(location).remaining("people") == 1
    assert len(Ledger.open(location).history()) == 1
