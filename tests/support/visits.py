"""A small table of visits, its domain, and questions about it, for tests of commands."""

from pathlib import Path

from lrm.privacy.unit import PrivacyUnit

UNIT = PrivacyUnit("patient", 2)
DOMAIN = """\
lrm-domain: 1
table: visits
unit: {column: patient, max_rows: 2}
attributes:
  - {name: state, kind: categories, values: [NY, NJ], null: drop, outside: drop}
  - {name: age, kind: integers, low: 0, high: 29, width: 10, null: drop, outside: drop}
"""
QUERIES = """\
SELECT state, COUNT(*) AS n FROM visits GROUP BY ROLLUP (state);
SELECT COUNT(*) AS young FROM visits WHERE age < 10;
"""
BATCH = """\
lrm-batch: 1
queries:
  - {kind: total, importance: 4}
  - {kind: marginals, of: [[state]], name: by_state}
"""

RELEASE = ("release", "plan.lrm", "--table", "visits.csv", "--ledger", "l.sqlite")
GAUSSIAN = ("release", "gauss.lrm", "--table", "visits.csv", "--ledger", "l.sqlite")


def write_files():
    """Write domain, queries and table where the test is."""
    Path("domain.yaml").write_text(DOMAIN)
    Path("queries.sql").write_text(QUERIES)
    rows = [f"p{i % 40},{('NY', 'NJ', 'TX')[i % 3]},{i % 30},8213" for i in range(90)]
    Path("visits.csv").write_text("patient,state,age,salary\n" + "\n".join(rows) + "\n")


def fits(text):
    return all(len(line.rstrip()) <= 80 for line in text.splitlines())


def refused(result, code, *words):
    """The command ended with ``code`` and one sentence that holds ``words``."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("lrm: ")
    for word in words:
        assert word in lines[0], lines[0]
