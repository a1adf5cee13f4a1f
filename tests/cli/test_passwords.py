"""A password in the address of a table or ledger was on standard error.

It stood there for ``postgresql+psycopg://``, ``Postgresql://``, ``mysql://``, a leading blank, and
an ``@`` inside the password. Of an address nothing but its scheme is shown, whoever complains.
"""

import traceback

import pytest
from click.testing import CliRunner

from forked import run_forked
from lrm.cli import main
from lrm.errors import LedgerError, LrmError, TableError
from lrm.files.locations import shown
from lrm.ledger import Ledger
from lrm.tables import open_table

SECRET = "hunter2"

ADDRESSES = [
    "postgresql+psycopg://bob:hunter2@127.0.0.1:1/db?table=t",
    "Postgresql://bob:hunter2@127.0.0.1:1/db?table=t",
    " postgresql://bob:hunter2@127.0.0.1:1/db?table=t",
    "mysql://bob:hunter2@127.0.0.1/db",
    "mysql://bob:my hunter2@127.0.0.1/db",
    "postgresql://bob:x@hunter2@127.0.0.1:1/db?table=t",
    "postgresql://bob:x/hunter2@127.0.0.1:1/db?table=t",
    "postgresql://bob:12/hunter2@127.0.0.1:1/db?table=t",
    "postgresql://bob:[hunter2@127.0.0.1:1/db?table=t",
    "postgresql://bob:x#hunter2@127.0.0.1:1/db?table=t",
    "postgresql://bob:x?hunter2@127.0.0.1:1/db?table=t",
    "postgresql://127.0.0.1:1/db?table=t&password=hunter2",
    "postgresql://127.0.0.1:hunter2/db?table=t",
    "postgresql:bob:hunter2@127.0.0.1/db",
    "host=127.0.0.1 port=1 user=bob password=hunter2 dbname=db",
    "password = hunter2 host = 127.0.0.1",
    "bob:hunter2@127.0.0.1/db",
    "jdbc:postgresql://127.0.0.1/db?user=bob&password=hunter2",
    "spark:jdbc:postgresql://127.0.0.1/db?user=bob&password=hunter2",
    "s3://AKIA:hunter2@bucket/t.parquet",
    "https://bob:hunter2@example.org/t.csv",
    "mysql://bob:hunter2@127.0.0.1/db::t",
    "mysql://bob:hunter2@127.0.0.1/db.csv",
    "host=h password=hunter2.parquet",
]


def quiet(error):
    """Assert that neither the error nor anything it holds on to knows the password."""
    assert SECRET not in "".join(traceback.format_exception(error))
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_shows_a_password(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError) as caught:
        open_table(address)
    quiet(caught.value)
    with pytest.raises(LrmError) as caught:
        Ledger.open(address, timeout=1).budgets()
    quiet(caught.value)
    assert SECRET not in shown(address)
    assert list(tmp_path.iterdir()) == []


COMMANDS = [
    ("domain", "init", "{}"),
    ("domain", "init", "t.csv", "-o", "{}"),
    ("plan", "{}"),
    ("plan", "identity:2", "-o", "{}"),
    ("plan", "identity:2", "--output={}"),
    ("compare", "identity:2", "--mechanisms", "{}"),
    ("show", "{}"),
    ("report", "{}"),
    ("budget", "show", "--ledger", "{}"),
    ("budget", "create", "t", "--limit", "1", "--ledger={}"),
    ("release", "plan.lrm", "--table", "{}", "--epsilon", "1", "-o", "r.lrm", "--no-ledger"),
    ("release", "plan.lrm", "--counts", "{}", "--epsilon", "1", "-o", "r.lrm", "--no-ledger"),
    ("{}",),
    ("plan", "identity:2", "--{}"),
]


@pytest.mark.parametrize("args", COMMANDS, ids=lambda args: " ".join(args[:3]))
@pytest.mark.parametrize("debug", ["", "1"])
def test_no_command_prints_a_password(args, debug, plan_file, monkeypatch):
    monkeypatch.setenv("LRM_DEBUG", debug)
    for address in ADDRESSES:
        result = CliRunner().invoke(main, [arg.replace("{}", address) for arg in args])
        assert result.exit_code in {1, 2}
        if not debug or args[0] in {"domain", "budget", "release"}:
            assert SECRET not in result.output, address
        assert SECRET not in result.stdout + (result.stderr.splitlines() or [""])[-1], address


def test_the_environment_is_not_printed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for address in ADDRESSES:
        monkeypatch.setenv("LRM_LEDGER", address)
        result = CliRunner().invoke(main, ["budget", "show"])
        assert result.exit_code in {1, 2}
        assert SECRET not in result.output


def test_paths_are_shown_as_they_are():
    for path in ("visits.csv", "data/year=2024/user=5/*.parquet", "a.duckdb::main.t", "C:x", "a@b"):
        assert shown(path) == path
    with pytest.raises(TableError, match="no file matches 'data/key=1/"):
        open_table("data/key=1/x.parquet")


def test_a_ledger_says_why_it_cannot_be_reached_in_words_of_its_own():
    with pytest.raises(LedgerError, match="nothing answers at this host and port"):
        Ledger.open("postgresql://bob:hunter2@127.0.0.1:1/db", timeout=2).budgets()


def test_nothing_reaches_the_streams_of_the_process(tmp_path):
    """Drivers write to stderr by themselves; so look at a whole process."""
    for address in ADDRESSES[:6]:
        words = ["budget", "show", "--ledger", address]
        done = run_forked("import lrm.__main__; lrm.__main__.main()", words, tmp_path)
        assert done.returncode in {1, 2}
        assert SECRET not in done.stdout + done.stderr
