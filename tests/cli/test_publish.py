"""One command for a publication: safe to repeat, and to kill."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import lrm as package
from forked import run_forked
from lrm.ledger import Ledger
from lrm.privacy.budget import PureDP

DOMAIN = """
lrm-domain: 1
table: orders
unit: {column: customer, max_rows: 4}
editions: {by: month, date: day}
attributes:
  - {name: day, kind: dates, start: edition, by: day, time: false, null: drop, outside: drop}
  - {name: category, kind: categories, values: [books, food, toys], null: drop, outside: drop}
"""
REPORT = """
SELECT day, COUNT(*) AS orders FROM orders GROUP BY day;
SELECT category, COUNT(*) AS n FROM orders GROUP BY category;
"""


@pytest.fixture
def shop(tmp_path, run):
    """A shop's files and its budget; returns the arguments of the command for an edition."""
    g = np.random.default_rng(1)
    frame = pd.DataFrame({"customer": g.integers(0, 300, 2000)})
    days = np.datetime64("2025-01-01") + g.integers(0, 120, 2000).astype("timedelta64[D]")
    frame["day"] = days.astype("datetime64[s]")
    frame["category"] = g.choice(["books", "food", "toys"], 2000)
    frame.to_parquet(tmp_path / "orders.parquet")
    (tmp_path / "shop.yaml").write_text(DOMAIN)
    (tmp_path / "report.sql").write_text(REPORT)
    ledger = str(tmp_path / "ledger.sqlite")
    run("budget", "create", "orders", "--limit", "1", "--domain", "shop.yaml", "--ledger", ledger)
    files = ["--domain", "shop.yaml", "--table", "orders.parquet", "--ledger", ledger]
    files += ["--folder", "editions", "--epsilon", "0.4"]
    return lambda edition, *more: ["publish", "report.sql", *files, "--edition", edition, *more]


def charges(tmp_path):
    return [e.editions for e in Ledger.open(tmp_path / "ledger.sqlite").history() if e.editions]


def test_an_edition_is_published_once(shop, run, tmp_path):
    first = run(*shop("2025-01"))
    assert first.exit_code == 0, first.output
    folder = tmp_path / "editions"
    page, csv = folder / "2025-01.html", folder / "2025-01" / "orders.csv"
    assert "2025-01" in page.read_text()
    assert csv.read_text().count("\n") == 32
    content = (folder / "2025-01.lrm").read_bytes()
    page.unlink()
    again = run(*shop("2025-01"))
    assert "was published before; nothing was charged" in again.output
    assert page.exists()
    assert (folder / "2025-01.lrm").read_bytes() == content
    assert json.loads(run(*shop("2025-01", "--json")).stdout)["charged"] is False
    plans = list((folder / "plans").iterdir())
    assert run(*shop("2025-03")).exit_code == 0
    assert list((folder / "plans").iterdir()) == plans, "months of 31 days share a plan"
    release = package.load_release(folder / "2025-03.lrm")
    assert release.plan.workload.domain.editions.edition == "2025-03"
    assert "2025-03-31" in str(release.to_pandas())
    assert charges(tmp_path) == [("2025-01",), ("2025-03",)]
    files = ["editions/2025-03.lrm", "editions/2025-01.lrm"]
    series = run("report", *files, "-o", "series.html")
    assert "the series of 2 editions, 2025-01 to 2025-03, is in series.html" in series.output
    assert "at most ε = 0.8 for somebody who is in all 2 editions" in page_text(tmp_path)
    assert run("report", *files).exit_code == 2, "it needs a name"
    assert run("report", *files, "-o", "series.html").exit_code == 2, "it exists"
    mixed = run("report", files[0], f"editions/plans/{plans[0].name}", "-o", "other.html")
    assert mixed.exit_code == 1
    assert "plan" in mixed.output
    assert not (tmp_path / "other.html").exists()


def page_text(tmp_path):
    return (tmp_path / "series.html").read_text()


def test_lost_answers_need_a_word_for_a_second_charge(shop, run, tmp_path):
    run(*shop("2025-02"))
    folder = tmp_path / "editions"
    (folder / "2025-02.lrm").unlink()
    lost = run(*shop("2025-02", "--json"))
    assert lost.exit_code == 3
    assert "edition 2025-02 was charged 0.4 epsilon" in lost.output
    assert json.loads(lost.stdout)["error"]["charge"] == "made"
    before = (folder / "2025-02.html").read_text()
    assert run(*shop("2025-02", "--charge-again")).exit_code == 0
    assert (folder / "2025-02.html").read_text() != before
    assert run(*shop("2025-02", "--charge-again")).exit_code == 0, "there is a release now"
    assert charges(tmp_path) == [("2025-02",)] * 2
    (folder / "2025-02.lrm").unlink()
    spent = run(*shop("2025-02", "--charge-again"))
    assert spent.exit_code == 1
    assert "0.2 epsilon left of 1 in 2025-02" in spent.output


def test_what_is_wrong_is_said_before_a_charge(shop, run, tmp_path):
    (tmp_path / "editions").mkdir()
    (tmp_path / "table.md").write_text("{{ months }}")
    (tmp_path / "sentence.md").write_text("Text\n\nThere were {{ n }} orders.")
    for more, message in [
        (["--text", "absent.md"], "absent.md"),
        (["--text", "table.md"], "table.md, line 1: no statement is called 'months'"),
        (["--text", "sentence.md"], "sentence.md, line 3: 'n' is a table"),
        (["--delta", "1e-9"], "takes pure releases only"),
        (["--table", "absent.parquet"], "give --table once"),
    ]:
        failed = run(*shop("2025-01", *more))
        assert failed.exit_code in {1, 2}
        assert message in failed.output
    assert "is not a month" in run(*shop("2025-1")).output
    (tmp_path / "editions" / "2025-01.lrm").write_bytes(b"another file")
    assert run(*shop("2025-01")).exit_code == 1
    assert charges(tmp_path) == []


def test_the_page_of_an_edition_has_numbers_in_sentences(shop, run, tmp_path):
    (tmp_path / "report.sql").write_text("SELECT COUNT(*) AS n FROM orders;\n" + REPORT)
    (tmp_path / "page.md").write_text("There were {{ q1.n }} orders.\n\n{{ orders }}")
    made = run(*shop("2025-01", "--text", "page.md"))
    assert made.exit_code == 0, made.output
    page = (tmp_path / "editions" / "2025-01.html").read_text()
    assert re.search(r"There were [\d,.]+ \(± [\d,.]+; processed [\d,.]+\) orders", page)


def test_a_table_in_the_folder_of_an_edition_is_left_there(shop, run, tmp_path):
    place = tmp_path / "editions" / "2025-01" / "orders.parquet"
    place.parent.mkdir(parents=True)
    (tmp_path / "orders.parquet").rename(place)
    args = shop("2025-01")
    args[args.index("orders.parquet")] = "editions/2025-01/*.parquet"
    result = run(*args)
    assert (result.exit_code, charges(tmp_path)) == (2, [])
    assert "--table editions/2025-01/*.parquet name the same file" in result.stderr
    assert place.exists()


def test_another_report_is_no_repetition(shop, run, tmp_path):
    """Whatever decides the answers; in a folder of its own another report is published."""
    assert run(*shop("2025-02", "--epsilon", "0.2")).exit_code == 0
    files = {file: file.read_bytes() for file in (tmp_path / "editions").rglob("*.lrm")}
    report, domain = tmp_path / "report.sql", tmp_path / "shop.yaml"
    weighted = "-- importance: 9" + REPORT
    days = REPORT.strip().splitlines()[0]
    for text, declared, more, message in [
        (days, DOMAIN, [], "with other statements"),
        (weighted, DOMAIN, [], "with other importances"),
        (REPORT, DOMAIN.replace("toys", "games"), [], "with another domain"),
        (days, DOMAIN.replace("toys", "games"), ["--charge-again"], "with another domain"),
        (REPORT, DOMAIN, ["--epsilon", "0.1"], "with ε = 0.2, not ε = 0.1"),
        (REPORT, DOMAIN, ["--confidence", "2"], "confidence must be between 0 and 1"),
        (REPORT, DOMAIN, ["--rho", "0.1"], "either rho, or epsilon"),
    ]:
        report.write_text(text)
        domain.write_text(declared)
        refused = run(*shop("2025-02", "--epsilon", "0.2", *more))
        assert refused.exit_code == 2, refused.output
        assert message in refused.output
        assert all(file.read_bytes() == content for file, content in files.items())
    assert charges(tmp_path) == [("2025-02",)]
    domain.write_text(DOMAIN)
    report.write_text(weighted)
    assert run(*shop("2025-02", "--epsilon", "0.2", "--folder", "weighted")).exit_code == 0
    again = run(*shop("2025-02", "--epsilon", "0.2", "--folder", "weighted"))
    assert "nothing was charged" in again.output
    report.write_text(REPORT)
    lost = run(*shop("2025-02", "--epsilon", "0.2", "--folder", "absent"))
    assert lost.exit_code == 3, "the same report, whose answers are elsewhere"
    assert charges(tmp_path) == [("2025-02",)] * 2


def test_a_plan_is_kept_for_the_same_importances(shop, run, tmp_path):
    plans = tmp_path / "editions" / "plans"
    assert run(*shop("2025-01")).exit_code == 0
    (tmp_path / "report.sql").write_text("-- importance: 9" + REPORT)
    assert run(*shop("2025-03")).exit_code == 0
    assert len(list(plans.iterdir())) == 2
    release = package.load_release(tmp_path / "editions" / "2025-03.lrm")
    first, other = release.plan.importances
    assert first == 9 * other


def test_a_key_of_an_older_version_counts(shop, run, tmp_path):
    """It names no report, so that it may be that of the one that is repeated."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    unit = package.read_domain(tmp_path / "shop.yaml").unit
    facts = {"unit": unit, "purpose": "plan", "editions": ("2025-01",), "key": "report: 2025-01"}
    ledger.spend("orders", PureDP(Fraction(1, 10)), **facts)
    assert run(*shop("2025-01")).exit_code == 3
    assert run(*shop("2025-01", "--charge-again")).exit_code == 0


def test_rows_of_an_edition_are_checked(shop, run):
    check = ("domain", "check", "shop.yaml", "--table", "orders.parquet")
    assert "orders.parquet has its columns" in run(*check).output
    assert "name it, such as --edition 2025-03" in run(*check, "--rows").output
    assert run(*check, "--rows").exit_code == 2
    counted = run(*check, "--rows", "--edition", "2025-02")
    assert counted.exit_code == 0, counted.output
    assert "a release of 2025-02 would count" in counted.output


KILLED = """
import json, os, signal, sys
fatal, folder, moments = sys.argv.pop(1), os.getcwd(), []

def step(name):
    moments.append(name)
    if fatal in {str(len(moments)), name}:
        os.kill(os.getpid(), signal.SIGKILL)

def watch(event, args):
    path = str(args[0]) if args else ""
    writes = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)
    if writes and os.path.abspath(path).startswith(folder):
        step(f"write {path}")
    elif event == "os.rename":
        step(f"rename to {os.path.basename(str(args[1]))}")
    elif event in {"os.mkdir", "os.remove", "shutil.rmtree", "sqlite3.connect"}:
        step(f"{event} {path}")

import lrm.ledger.core as core
after_commit = core.read_entry

def read_entry(row):
    step("charged")
    return after_commit(row)

core.read_entry = read_entry
sys.addaudithook(watch)
from lrm.__main__ import main
try:
    main()
finally:
    os.write(1, json.dumps(moments).encode())
"""
"""``lrm publish`` that is killed at its n-th change of a file, or right after its charge."""


def killed(arguments, moment, folder):
    """Kill a publication at one moment; return its moments where it ended first."""
    done = run_forked(KILLED, [moment, *arguments], folder / "streams")
    if done.returncode == 0:
        return json.loads(done.stdout[done.stdout.index("[") :])
    assert done.returncode == -signal.SIGKILL, done.stderr
    return None


def repeated(shop, run, tmp_path, edition):
    """Repeat a publication that was killed: one charge, unless a second is asked for."""
    saved = tmp_path / "editions" / f"{edition}.lrm"
    before = saved.read_bytes() if saved.exists() else None
    ended = run(*shop(edition))
    assert charges(tmp_path).count((edition,)) == 1
    if ended.exit_code == 3:
        assert not saved.exists()
        assert run(*shop(edition, "--charge-again")).exit_code == 0
        assert charges(tmp_path).count((edition,)) == 2
    else:
        assert ended.exit_code == 0, ended.output
        assert before in {None, saved.read_bytes()}, "another release of the same charge"
    charged = [e for e in Ledger.open(tmp_path / "ledger.sqlite").history() if e.editions]
    head = package.load_release(saved).ledger_head
    assert head == [entry for entry in charged if entry.editions == (edition,)][-1].head
    assert (tmp_path / "editions" / edition / "orders.csv").exists()
    assert (tmp_path / "editions" / f"{edition}.html").exists()
    return ended.exit_code


@pytest.mark.slow
def test_killed_at_chosen_moments_and_repeated(shop, run, tmp_path):
    """Before the charge, right after it, when the release is saved, and among the tables."""
    codes = []
    for month, moment in enumerate(
        ("2", "charged", "rename to {}.html", "rename to orders.csv"), 1
    ):
        edition = f"2025-{month:02}"
        assert killed(shop(edition), moment.format(edition), tmp_path) is None
        codes.append(repeated(shop, run, tmp_path, edition))
    assert codes == [0, 3, 0, 0]


@pytest.mark.long
def test_killed_at_every_moment_and_repeated(shop, run, tmp_path):
    moment, codes, edition = 1, [], "2020-01"
    while killed(shop(edition), str(moment), tmp_path) is None:
        codes.append(repeated(shop, run, tmp_path, edition))
        moment += 1
        edition = f"{2020 + moment // 12}-{1 + moment % 12:02}"
    assert moment > 10
    assert set(codes) == {0, 3}


@pytest.mark.long
def test_killed_at_random_moments_and_repeated(shop, run, tmp_path):
    """Whenever it is killed, a repetition never charges again without the explicit word."""
    code = f"import sys; sys.argv[1:] = {shop('2025-04')!r}; from lrm.__main__ import main; main()"
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code.replace("2025-04", "2024-12")], check=True)
    usual = time.monotonic() - began
    moments = random.Random(time.time_ns())  # noqa: S311
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
            try:
                process.communicate(timeout=moments.uniform(0.3, 1.0) * usual)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
    ended = run(*shop("2025-04"))
    assert ended.exit_code in {0, 3}
    assert charges(tmp_path).count(("2025-04",)) == 1
    saved = tmp_path / "editions" / "2025-04.lrm"
    assert saved.exists() == (ended.exit_code == 0)
    if saved.exists():
        head = Ledger.open(tmp_path / "ledger.sqlite").history()[-1].head
        assert package.load_release(saved).ledger_head == head
        assert (tmp_path / "editions" / "2025-04" / "orders.csv").read_text().count("\n") == 31
