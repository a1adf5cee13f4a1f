"""Ctrl-C did not end ``lrm compare``, and 0.05 s after the start it printed a traceback.

Solvers took Ctrl-C for a wish to end with the best so far, so a comparison went on with the next
mechanism; and modules were imported where nothing listened. Now it ends every command at every
moment with one line and exit code 130, and leaves nothing half-written. `lrm plan` takes the first
Ctrl-C for the wish to have the best so far, and ends at the second.
"""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import lrm
from lrm.cli.endings import paying
from lrm.errors import TableError
from lrm.ledger import Ledger
from lrm.planning.plan.comparison import Contest
from lrm.planning.plan.planner import plan
from visits import RELEASE, write_files

ENTRY = """
import sys
import lrm.__main__

class Up:
    def find_spec(self, name, *rest):
        if name == "lrm.cli":
            sys.meta_path.remove(self)
            print("up", flush=True)

sys.meta_path.insert(0, Up())
lrm.__main__.main()
"""
"""The command, which says when its handler is in place: Python's own start is Python's."""


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def interrupted(*args, after, times=1):
    """Run a command and press Ctrl-C; return its exit code and both streams."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENTRY, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    for _ in range(times):
        time.sleep(after)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def check_ended(code, err):
    """It ended with one line, or was done before."""
    assert "Traceback" not in err, err
    assert code in {0, 130}, err
    if code == 130:
        assert err.startswith("lrm: interrupted"), err
        assert err.count("\n") == 1, err
    assert not [p for p in Path().rglob(".*") if p.is_file() and p.name != ".lock"]


def moments(count, longest):
    """Moments after the start, most of them early: that is where modules are imported."""
    dice = random.Random(13)  # noqa: S311 - moments, no secrets
    return [longest * dice.random() ** 3 for _ in range(count)]


@pytest.mark.parametrize("after", [0.0, 0.05, *moments(4, 3.0)])
def test_compare_ends_at_any_moment(after):
    code, out, err = interrupted("compare", "wrange:200x400", after=after)
    assert code == 130, err  # it would take minutes
    check_ended(code, err)
    assert out == ""


@pytest.mark.parametrize("after", moments(3, 1.5))
def test_a_release_says_what_it_may_have_paid(after):
    write_files()
    batch = lrm.load_plan(planned())
    Ledger.open("l.sqlite").create("visits", "1", "epsilon", unit=batch.unit)
    code, _, err = interrupted(*RELEASE, "--epsilon", "0.5", "-o", "out.lrm", after=after)
    check_ended(code, err)
    spent = Ledger.open("l.sqlite").budget("visits").spent
    if code == 130 and spent:
        assert "the budget of" in err or "the release was saved to out.lrm" in err
    assert Path("out.lrm").exists() <= bool(spent)


def test_what_an_engine_makes_of_ctrl_c_says_what_may_be_paid(monkeypatch):
    """DuckDB raises errors of its own, which said nothing of the budget."""

    def handler(*_):
        raise AssertionError

    handler.pressed = signal.SIGINT
    monkeypatch.setattr(signal, "getsignal", lambda _: handler)
    with pytest.raises(TableError) as caught, paying("l.sqlite", ["out.lrm"]):
        raise TableError("counting failed")
    assert any("may be charged" in note for note in caught.value.__notes__)


def planned():

    batch = lrm.sql(Path("queries.sql").read_text(), lrm.read_domain("domain.yaml"))
    plan(batch, effort="quick").save("plan.lrm")
    return "plan.lrm"


@pytest.mark.parametrize("after", moments(2, 2.0))
def test_other_commands_end_too(after):
    plan(np.eye(4), "noise-on-data").save("p.lrm")
    for args in (
        ("report", "p.lrm", "--force"),
        ("explain", "p.lrm", "--epsilon", "1", "--plot", "p.svg"),
    ):
        check_ended(*interrupted(*args, after=after)[::2])


def test_a_plan_ends_at_the_second():
    """That it keeps the best so far at the first is tested on a terminal, in tests/cli."""
    args = ("plan", "wrange:256x1024", "--effort", "thorough", "-o", "plan.lrm")
    code, _, err = interrupted(*args, after=0.4, times=12)
    check_ended(code, err)


@pytest.mark.usefixtures("plain_interrupts")
def test_ctrl_c_in_python_is_heard_by_a_comparison():
    def press(step):
        signal.raise_signal(signal.SIGINT)

    contest = Contest(np.tri(12))
    with pytest.raises(KeyboardInterrupt):
        contest.enter("best", on_step=press)
    with pytest.raises(KeyboardInterrupt):
        contest.enter("lowrank", on_step=press)


@pytest.mark.usefixtures("plain_interrupts")
def test_a_plan_in_python_is_interrupted_and_the_exception_has_the_best_so_far():
    """A line after it, such as a release that spends budget, must not run."""
    pressed = []

    def press(step):
        pressed.append(step)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        lrm.plan(np.tri(12), on_step=press)
    made = caught.value.plan
    assert made.details["interrupted"]
    assert made.expected_squared_error(1) > 0
    assert len(pressed) == 1
    assert signal.getsignal(signal.SIGINT) is before

    def press_twice(step):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        lrm.plan(np.tri(12), on_step=press_twice)
    assert signal.getsignal(signal.SIGINT) is before
