"""``-`` stands for standard input where queries or a domain are read."""

import pytest
from click.testing import CliRunner

from lrm.cli import main

DOMAIN = """\
lrm-domain: 1
table: t
unit: row
attributes:
  - {name: age, kind: integers, low: 0, high: 3, null: drop, outside: drop}
"""
SQL = "-- by age\nSELECT age, COUNT(*) AS n FROM t GROUP BY age"
YAML = "# total\nlrm-batch: 1\nqueries:\n  - {kind: total, name: all}"


def piped(text, *args):
    return CliRunner().invoke(main, args, input=text)


@pytest.mark.parametrize(
    ("text", "queries"), [(SQL, 4), (YAML, 1), ("1,1,0,0\n0,0,1,1", 2)], ids=["sql", "yaml", "csv"]
)
def test_queries(text, queries, in_folder):
    (in_folder / "domain.yaml").write_text(DOMAIN)
    args = ("plan", "-", "-m", "noise-on-data", "--domain", "domain.yaml", "-o", "plan.lrm")
    result = piped(text, *args)
    assert result.exit_code == 0, result.output
    assert f"queries         {queries:,}" in result.output


def test_domain(in_folder):
    (in_folder / "queries.sql").write_text(SQL)
    result = piped(DOMAIN, "plan", "queries.sql", "-m", "noise-on-data", "--domain", "-")
    assert result.exit_code == 0, result.output
    assert "standard input is complete" in piped(DOMAIN, "domain", "check", "-").output


def test_questions_to_a_release(in_folder):
    (in_folder / "domain.yaml").write_text(DOMAIN)
    (in_folder / "counts.csv").write_text("1\n2\n3\n4\n")
    piped(SQL, "plan", "-", "-m", "noise-on-data", "--domain", "domain.yaml", "-o", "plan.lrm")
    args = ("plan.lrm", "--counts", "counts.csv", "--epsilon", "1", "-o", "out.lrm", "--no-ledger")
    piped("", "release", *args)
    result = piped(
        "SELECT COUNT(*) AS old FROM t WHERE age >= 2", "query", "out.lrm", "--file", "-"
    )
    assert result.exit_code == 0, result.output
    assert "old" in result.output


@pytest.mark.parametrize(
    ("text", "args", "sentence"),
    [
        (SQL, ("plan", "-"), "--domain"),
        (SQL, ("plan", "-", "--domain", "-"), "only once"),
        (
            "SELECT MAX(age) FROM t",
            ("plan", "-", "--domain", "domain.yaml"),
            "standard input line 1",
        ),
        ("1,x\n", ("plan", "-"), "standard input: line 1"),
        (b"\xff\xfe", ("plan", "-"), "UTF-8"),
        ("attributes", ("domain", "check", "-"), "standard input"),
    ],
)
def test_errors_name_standard_input(text, args, sentence, in_folder):
    (in_folder / "domain.yaml").write_text(DOMAIN)
    result = piped(text, *args)
    assert result.exit_code == 2 or sentence == "UTF-8", result.output
    assert sentence in result.stderr
