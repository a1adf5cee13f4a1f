"""Signals that end a release: one line that says what was paid and saved, no hidden file."""

import signal
from fractions import Fraction
from pathlib import Path

import pytest

import lrm
from forked import run_forked
from lrm.ledger import Ledger
from visits import RELEASE, UNIT, write_files

ENTRY = """
import os, signal, sys
number, moment = int(sys.argv.pop(1)), sys.argv.pop(1)

def then(function):
    def called(*args, **kwargs):
        result = function(*args, **kwargs)
        os.kill(os.getpid(), number)
        return result
    return called

def first(function):
    def called(*args, **kwargs):
        os.kill(os.getpid(), number)
        return function(*args, **kwargs)
    return called

# As in a terminal, whatever the tests themselves inherited (nohup ignores SIGHUP).
usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
signal.signal(number, signal.SIG_IGN if moment == "ignored" else usual)
if moment in ("counting", "ignored"):
    from lrm.tables.duckdb_table import DuckDbTable
    DuckDbTable.counts = first(DuckDbTable.counts)
if moment == "writing":
    os.fsync = then(os.fsync)
if moment == "saved":
    from lrm.cli import release
    release._print_release = first(release._print_release)

from lrm.__main__ import main
main()
"""

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture
def ledger(tmp_path, monkeypatch, visits_plans):
    monkeypatch.chdir(tmp_path)
    write_files()
    Path("plan.lrm").write_bytes(visits_plans["plan.lrm"])
    kept = Ledger.open("l.sqlite")
    kept.create("visits", "1", "epsilon", unit=UNIT)
    return kept


def ended(number, moment, *more):
    command = (*RELEASE, "--epsilon", "0.25", "-o", "out.lrm", *more)
    done = run_forked(ENTRY, [str(int(number)), moment, *command], Path("streams"))
    assert "Traceback" not in done.stderr
    assert not [path.name for path in Path().iterdir() if path.name.startswith(".out")]
    return done


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("moment", ["counting", "writing"])
def test_before_the_release_is_saved_it_says_what_was_paid(ledger, number, moment):
    done = ended(number, moment)
    assert done.returncode == CODES[number], done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("lrm: interrupted")
    assert "the budget of" in done.stderr
    assert ledger.remaining("visits") == Fraction(3, 4)
    assert not Path("out.lrm").exists()


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("replaced", [False, True])
def test_after_the_release_is_saved_its_file_is_named(ledger, number, replaced):
    if replaced:
        Path("out.lrm").write_text("older")
    done = ended(number, "saved", *(["--force"] if replaced else []))
    assert done.returncode == CODES[number]
    assert "the release was saved to out.lrm" in done.stderr
    assert len(lrm.load_release("out.lrm").answers)
    assert ledger.remaining("visits") == Fraction(3, 4)


def test_a_file_that_was_there_before_is_not_taken_for_the_release(ledger):
    Path("out.lrm").write_text("older")
    done = ended(signal.SIGTERM, "counting", "--force")
    assert "saved to" not in done.stderr
    assert "the budget of" in done.stderr
    assert Path("out.lrm").read_text() == "older"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_the_caller_ignores_stays_ignored(ledger, number):
    """As under nohup, or in the background of a script."""
    done = ended(number, "ignored")
    assert done.returncode == 0, done.stderr
    assert Path("out.lrm").exists()
    assert ledger.remaining("visits") == Fraction(3, 4)


def test_a_second_file_that_cannot_be_written_leaves_the_first_one_named(ledger, monkeypatch):
    from click.testing import CliRunner

    from lrm.cli import main
    from lrm.errors import FileFormatError

    def full(*args, **kwargs):
        raise FileFormatError("cannot write out.csv: No space left on device")

    monkeypatch.setattr("lrm.views.outputs.csv_files.write", full)
    command = (*RELEASE, "--epsilon", "0.25", "-o", "out.lrm", "--csv", "out.csv")
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    assert "No space left on device; the release was saved to out.lrm" in done.stderr
