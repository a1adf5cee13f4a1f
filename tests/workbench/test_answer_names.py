"""Two statements that call an answer by one name, from the editor to the released files."""

import contextlib
import csv

import pytest

from workbench.served import DOMAIN, lrm, serving, write_example

NAMES = {"domain": "domain.yaml", "batch": "questions.sql"}
SAME_NAME = """\
SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex;
SELECT sex, COUNT(*) AS n FROM visits WHERE age < 20 GROUP BY sex;
SELECT age, COUNT(*) AS n, COUNT_IF(sex = 'm') / COUNT(*) AS share FROM visits GROUP BY age;
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    write_example(folder)
    (folder / "questions.sql").write_text(SAME_NAME)
    with contextlib.chdir(folder), serving(folder) as served:
        served.key = served.must("enter", token=served.token)["key"]
        lrm("plan", "questions.sql", "--domain", "domain.yaml", "--effort", "quick", "-o", "p.lrm")
        served.folder = folder
        yield served


def test_each_statement_has_a_title_of_its_own(client):
    found = client.must("compile", **NAMES, domain_text=DOMAIN, batch_text=SAME_NAME)
    assert found["batch"]["problems"] == []
    titles = [one["title"] for one in found["batch"]["statements"]]
    assert titles[:2] == ["q1.n by sex", "q2.n by sex"]
    assert len(set(titles)) == 3


def test_errors_are_listed_for_each_statement(client):
    found = client.must("errors", plan="p.lrm", epsilon="1")
    titles = [one["title"] for one in found["facts"]]
    assert titles[:2] == ["q1.n by sex", "q2.n by sex"]
    assert len(set(titles)) == len(titles) == 4  # counts and shares of the third are two
    html = client.must("worst", plan="p.lrm", epsilon="1")["html"]
    assert "q1.n" in html
    assert "q2.n" in html


def test_the_release_keeps_the_answers_apart(client):
    budget = {"ledger": "budget.sqlite", "table": "visits", "limit": "2", "accounting": "epsilon"}
    client.must("create-budget", **NAMES, **budget)
    asked = {**NAMES, "plan": "p.lrm", "table": "visits.csv", "ledger": "budget.sqlite"}
    ticket = client.must("dry-run", **asked, epsilon="1")["ticket"]
    client.must("release", ticket=ticket)
    done = client.until("state", lambda state: state["release"]["state"] != "running")["release"]
    assert done["state"] == "done", done
    page = client.must("results", release="answers.lrm")["html"]
    assert all(title in page for title in ("q1.n by sex", "q2.n by sex", "q3.n and share by age"))
    with (client.folder / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    by_name = {}
    for row in rows:
        by_name.setdefault(row["query"], []).append(float(row["answer"]))
    assert {name: len(found) for name, found in by_name.items()} == {
        "q1.n": 2,
        "q2.n": 2,
        "q3.n": 3,
        "share": 3,
    }
    assert min(by_name["q1.n"]) > 200 > max(by_name["q2.n"])  # 300 and 100 rows
