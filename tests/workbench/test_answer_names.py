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


def test_a_title_leaves_out_the_number_of_its_statement(client):
    found = client.must("compile", **NAMES, domain_text=DOMAIN, batch_text=SAME_NAME)
    assert found["batch"]["problems"] == []
    statements = found["batch"]["statements"]
    titles = ["n by sex", "n by sex", "n and share by age"]
    assert [one["title"] for one in statements] == titles
    assert len({one["line"] for one in statements}) == 3


def test_errors_are_listed_for_each_statement(client):
    found = client.must("errors", plan="p.lrm", epsilon="1")
    assert [one["title"] for one in found["facts"]][:2] == ["n by sex", "n by sex"]
    assert len({one["name"] for one in found["facts"]}) == 3
    assert len(found["facts"]) == 4  # counts and shares of the third are two
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
    assert page.count("n by sex") > 1
    assert "n and share by age" in page
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
