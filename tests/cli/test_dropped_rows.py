"""A release that counts nothing is noticed: by its plan before, and by its answers after.

The days of the table are not read with the declared format, so that the rules of the day drop every
row. Statements that do not use the day count them all the same.
"""

import json
from pathlib import Path

import pytest

import lrm

DOMAIN = """\
lrm-domain: 1
table: s
unit: row
csv: {delimiter: ";"}
attributes:
  - {name: sex, kind: categories, values: [f, m], null: drop, outside: drop}
  - {name: day, kind: dates, start: 2023-01-01, end: 2023-12-31, by: month, null: drop,
     outside: drop}
"""
PLAN = ("plan", "q.sql", "--domain", "d.yaml", "--effort", "quick", "-o", "p.lrm", "--force")
UNUSED = "SELECT sex, COUNT(*) AS n FROM s GROUP BY sex"
USED_IN_VAIN = "SELECT sex, COUNT(*) AS n FROM s WHERE day IS NULL OR day IS NOT NULL GROUP BY sex"
RELEASE = ("release", "p.lrm", "--table", "s.csv", "--epsilon", "0.5", "--no-ledger", "--force")


@pytest.fixture(autouse=True)
def files():
    Path("d.yaml").write_text(DOMAIN)
    Path("q.sql").write_text(USED_IN_VAIN)
    Path("s.csv").write_text("sex;day\n" + "f;03.05.2023\n" * 20_000)


def test_an_attribute_that_no_statement_uses_drops_no_rows(run):
    Path("q.sql").write_text(UNUSED)
    assert "warning" not in run(*PLAN).stdout
    assert lrm.load_plan("p.lrm").warnings == ()
    assert "warning" not in run(*RELEASE, "-o", "a.lrm").stdout
    women, men = lrm.load_release("a.lrm").answers
    assert abs(women - 20_000) < 100  # noise of scale 2: beyond with probability e^-50
    assert abs(men) < 100


def test_a_plan_names_the_attributes_that_drop_rows_in_vain(run):
    planned = run(*PLAN)
    assert "warning: rows are dropped by day " in planned.stdout
    (warning,) = lrm.load_plan("p.lrm").warnings
    assert "dropped by day " in warning
    assert json.loads(run(*PLAN, "--json").stdout)["warnings"] == [warning]
    assert f"warning: {warning}" in " ".join(run(*RELEASE, "--dry-run").stdout.split())
    assert json.loads(run(*RELEASE, "--dry-run", "--json").stdout)["warnings"] == [warning]
    Path("d.yaml").write_text(DOMAIN.replace("drop,\n     outside: drop", "cell, outside: cell"))
    for command in (PLAN, (*RELEASE, "--dry-run")):
        done = run(*command)
        assert done.exit_code == 0
        assert "warning" not in done.stdout


def test_a_large_domain_is_no_different(run):
    names = [f"a{i}" for i in range(40)]
    rules = "kind: integers, low: 0, high: 9, null: drop, outside: drop"
    more = "".join(f"  - {{name: {name}, {rules}}}\n" for name in names)
    Path("d.yaml").write_text(DOMAIN + more)
    Path("q.sql").write_text(UNUSED)
    assert "warning" not in run(*PLAN).stdout
    used = " AND ".join(f"{name} = {name}" for name in ("day", *names))
    Path("q.sql").write_text(f"SELECT sex, COUNT(*) AS n FROM s WHERE {used} GROUP BY sex")
    shown = " ".join(run(*PLAN).stdout.split())
    assert f"rows are dropped by day, {', '.join(names)} " in shown


def test_answers_that_are_all_about_zero_are_noticed(run):
    run(*PLAN)
    told = "no answer of this release is distinguishable from zero"
    runs = [run(*RELEASE, "-o", "a.lrm").stdout for _ in range(6)]
    assert any(told in one for one in runs)  # each with probability 0.98
    assert (told in str(lrm.load_release("a.lrm").warnings)) == (told in runs[-1])
    Path("d.yaml").write_text(DOMAIN.replace('";"}', '";", dates: "%d.%m.%Y"}'))
    run(*PLAN)
    done = run(*RELEASE, "-o", "a.lrm")
    assert done.exit_code == 0
    assert told not in done.stdout


def test_a_whole_release_says_which_rows_are_in_no_answer(run):
    Path("d.yaml").write_text(DOMAIN.replace('";"}', '";", dates: "%d.%m.%Y"}'))
    Path("q.sql").write_text(f"{UNUSED.replace('AS n', 'AS all_days')};\n{USED_IN_VAIN}")
    run(*PLAN)
    told = "without a declared value of sex or day are in no answer of a statement that uses"
    released = run(*RELEASE, "-o", "a.lrm").stdout
    assert told in " ".join(released.split())
    assert told in " ".join(run("show", "a.lrm").stdout.split())
    run("report", "a.lrm", "-o", "a.html")
    assert told in Path("a.html").read_text()
    further = run("query", "a.lrm", "SELECT COUNT(*) AS women FROM s WHERE sex = 'f'").stdout
    assert "without a declared value of sex are in no answer" in " ".join(further.split())
