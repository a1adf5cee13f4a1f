"""Every command on a plan over a domain of 10^12 and 10^30 cells: nothing is flattened."""

import csv
import json
import random

import pytest

DOMAIN = "lrm-domain: 1\ntable: t\nunit: row\nattributes:\n"
ATTRIBUTE = "  - {{name: a{0}, kind: integers, low: 0, high: 9, null: drop, outside: drop}}\n"
QUERIES = """
SELECT a0, a1, COUNT(*) AS n FROM t GROUP BY a0, a1;
SELECT a2, COUNT(*) AS m FROM t WHERE a3 < 5 GROUP BY a2;
"""


@pytest.fixture(params=[12, 30])
def released(request, run, in_folder):
    attributes = range(request.param)
    (in_folder / "domain.yaml").write_text(DOMAIN + "".join(map(ATTRIBUTE.format, attributes)))
    (in_folder / "queries.sql").write_text(QUERIES)
    rng = random.Random(0)  # noqa: S311 - rows of a test
    with (in_folder / "table.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([f"a{i}" for i in attributes])
        rows.writerows([rng.randrange(10) for _ in attributes] for _ in range(50))
    plan = ["plan", "queries.sql", "--domain", "domain.yaml", "--effort", "quick"]
    assert run(*plan, "-o", "plan.lrm").exit_code == 0
    made = run("budget", "create", "t", "--limit", "5", "--ledger", "ledger.sqlite")
    assert made.exit_code == 0, made.output
    release = ["release", "plan.lrm", "--table", "table.csv", "--epsilon", "1"]
    dry = run(*release, "--ledger", "ledger.sqlite", "--dry-run", "--json")
    assert len(json.loads(dry.stdout)["queries"]) == 110
    paid = run(*release, "--ledger", "ledger.sqlite", "-o", "answers.lrm", "--csv", "answers.csv")
    assert paid.exit_code == 0, paid.output
    return in_folder


def test_every_command_works_on_products(released, run):
    for command in [
        ["show", "plan.lrm"],
        ["show", "plan.lrm", "--json"],
        ["explain", "plan.lrm", "--epsilon", "1"],
        ["explain", "plan.lrm", "--epsilon", "1", "--json"],
        ["show", "answers.lrm", "--export", "facts.json", "--csv", "again.csv"],
        ["report", "answers.lrm", "-o", "release.html"],
        ["report", "plan.lrm", "--epsilon", "1", "-o", "plan.html"],
        ["compare", "queries.sql", "--domain", "domain.yaml", "--effort", "quick"],
        ["query", "answers.lrm", "SELECT a0, COUNT(*) AS k FROM t GROUP BY a0"],
        *(
            ["show", "answers.lrm", "--post-process", step, "--csv", f"{step}.csv"]
            for step in ("consistent", "non-negative", "integer")
        ),
    ]:
        done = run(*command)
        assert done.exit_code == 0, (command, done.output)
    facts = json.loads((released / "facts.json").read_text())
    assert len(facts["answers"]) == 110
    assert facts["measurements"]["groups"][0]["sets"]
    assert (released / "again.csv").read_text() == (released / "answers.csv").read_text()
    refused = run("query", "answers.lrm", "SELECT a7, a0, COUNT(*) AS k FROM t GROUP BY a7, a0")
    assert refused.exit_code == 2
    assert "does not determine 'k'" in " ".join(refused.output.split())
