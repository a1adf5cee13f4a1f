"""The real command in a process of its own."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import lrm
from lrm.cli import progress
from lrm.clock import Step
from lrm.views import progress as lines

LRM = [sys.executable, "-m", "lrm"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}


def run(*args, **options):
    return subprocess.run(
        [*LRM, *args], capture_output=True, text=True, env=ENVIRONMENT, check=False, **options
    )


def test_from_matrix_to_answers():
    Path("w.csv").write_text("query,NY,NJ,CA,WA\nall,1,1,1,1\neast,1,1,0,0\nwest,0,0,1,1\n")
    Path("c.csv").write_text("patients\n120\n80\n200\n50\n")
    planned = run("plan", "w.csv", "-o", "plan.lrm")
    assert planned.returncode == 0, planned.stderr
    assert planned.stderr == ""
    release = ("release", "plan.lrm", "--counts", "c.csv", "--epsilon", "1", "--no-ledger")
    released = run(*release, "-o", "answers.lrm", "--json")
    assert released.returncode == 0, released.stderr
    assert [row["name"] for row in json.loads(released.stdout)["answers"]] == [
        "all",
        "east",
        "west",
    ]
    assert sorted(path.name for path in Path().iterdir()) == [
        "answers.lrm",
        "c.csv",
        "plan.lrm",
        "w.csv",
    ]


def test_errors_go_to_stderr_with_their_exit_code():
    wrong = run("plan", "prefix:0")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("lrm: ")
    assert wrong.stderr.count("\n") == 1
    missing = run("show", "missing.lrm")
    assert (missing.returncode, missing.stdout) == (1, "")


@pytest.mark.parametrize("wanted", [None, "3"])
def test_a_command_has_one_blas_thread_unless_another_number_is_asked_for(wanted):
    """With two on a busy machine, loading a release took ten times as long."""
    environment = {name: value for name, value in ENVIRONMENT.items() if "NUM_THREADS" not in name}
    if wanted is not None:
        environment["OMP_NUM_THREADS"] = wanted
    code = (
        "import contextlib, os, sys; sys.argv = ['lrm', '--version']\n"
        "from lrm.__main__ import main\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "print(os.environ['OMP_NUM_THREADS'], 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{wanted or 1} False"


def test_a_reader_that_leaves_early_is_no_error():
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*LRM, "completion", "bash"], stdout=writing, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    os.close(reading)
    os.close(writing)
    _, errors = process.communicate(timeout=300)
    assert errors == b""


def test_a_terminal_without_greek_letters_is_no_error():
    done = subprocess.run(
        [*LRM, "plan", "identity:2"],
        capture_output=True,
        env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"error at ? = 1" in done.stdout


def test_interrupting_a_search_keeps_the_best_so_far():
    """On a terminal the progress line appears; Ctrl-C then ends with a plan."""
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(
        [*LRM, "plan", "wrange:256x1024", "--effort", "thorough", "-o", "plan.lrm", "--json"],
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**ENVIRONMENT, "TERM": "xterm"},
    )
    os.close(stderr)
    shown = b""
    while b"best error" not in shown:
        shown += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    drain = threading.Thread(target=_read_all, args=(terminal,))
    drain.start()
    output, _ = process.communicate(timeout=300)
    drain.join()
    os.close(terminal)
    assert process.returncode == 0
    assert json.loads(output)["interrupted"]
    assert Path("plan.lrm").exists()


def _read_all(terminal):
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while os.read(terminal, 4096):
            pass


class Terminal:
    """A stream that says it is a terminal."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize("patience", [0.0, 100.0])
def test_progress_appears_on_a_terminal_after_a_while(monkeypatch, patience):
    terminal = Terminal()
    monkeypatch.setattr(lines, "PATIENCE", patience)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with lines.ProgressLine("plan best") as on_step:
        time.sleep(0.01)
        on_step(Step("polish", 7, 19.0))
        time.sleep(0.2)
    assert ("polish, round 7, best error 38/ε²" in terminal.text) == (patience == 0.0)


@pytest.mark.parametrize("patience", [0.0, 100.0])
def test_work_that_takes_a_while_is_named_on_a_terminal(monkeypatch, patience):
    """Explaining, releasing and reporting have no rounds to report, and show what they do."""
    terminal = Terminal()
    monkeypatch.setattr(lines, "PATIENCE", patience)
    monkeypatch.setattr(progress, "BEGAN", time.monotonic())
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")

    def interrupted():
        deadline = time.monotonic() + (30.0 if patience == 0.0 else 0.1)
        with progress.waiting("errors"):
            while "errors; Ctrl-C ends it" not in terminal.text and time.monotonic() < deadline:
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ("errors; Ctrl-C ends it" in terminal.text) == (patience == 0.0)
    shown = terminal.text
    time.sleep(0.2)
    assert terminal.text == shown  # the line is gone


def test_progress_counts_the_records_of_a_privacy_unit():
    """As the error of the finished plan does: five rows of a person have 25 times the error."""
    line = lines.ProgressLine("plan", "laplace", 5)
    assert "best error 950/ε²" in line._describe(Step("polish", 7, 19.0))
    line = lines.ProgressLine("plan", "gaussian", 5)
    assert "best error 237.5/ρ" in line._describe(Step("polish", 7, 19.0))


@pytest.mark.parametrize("shown", [True, False])
def test_a_plan_in_python_shows_its_progress_unless_told_not_to(monkeypatch, shown):
    terminal = Terminal()
    monkeypatch.setattr(lines, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    lrm.plan(lrm.families.prefix(32), effort="quick", progress=shown)
    assert ("Ctrl-C keeps it" in terminal.text) == shown
    silent = Terminal()
    monkeypatch.setattr("sys.stderr", silent)
    lrm.plan(lrm.families.prefix(32), effort="quick", on_step=lambda _: None)
    assert not silent.text
