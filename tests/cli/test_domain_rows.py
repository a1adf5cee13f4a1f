"""``lrm domain check --rows``: what the data owner sees of a table before any budget is spent."""

import json
from pathlib import Path

import pytest

from visits import refused

DOMAIN = """\
lrm-domain: 1
table: s
unit: {column: who, max_rows: 2}
csv: {delimiter: ";"}
attributes:
  - {name: sex, kind: categories, values: [f, m], null: drop, outside: drop}
  - {name: day, kind: dates, start: 2023-01-01, end: 2023-12-31, by: month,
     null: drop, outside: drop}
  - {name: ok, kind: categories, values: [true, false], null: drop, outside: cell}
  - {name: n, kind: integers, low: 0, high: 5, null: drop, outside: drop}
"""
ROWS = """\
who;sex;day;ok;n
a;f;03.05.2023;ja;1
a;m;04.05.2023;nein;9
;w;;true;x
a;f;03.05.2024;;nan
b;f;3.5.2023;t;2
"""
CHECK = ("domain", "check", "d.yaml", "--table", "s.csv")


@pytest.fixture(autouse=True)
def files():
    Path("d.yaml").write_text(DOMAIN)
    Path("s.csv").write_text(ROWS)


def declare_dates():
    Path("d.yaml").write_text(DOMAIN.replace('";"}', '";", dates: "%d.%m.%Y"}'))


def test_dates_that_cannot_be_read_are_noticed(run):
    plain = run(*CHECK)
    assert plain.exit_code == 0
    assert "no value was read" in plain.stdout
    result = run(*CHECK, "--rows")
    assert result.exit_code == 1
    assert "none has a declared value of day" in result.stderr
    assert "csv: dates" in result.stderr


def test_rows_are_counted_by_what_they_hold(run):
    declare_dates()
    result = run(*CHECK, "--rows", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["rows"]
    assert "owner's eyes only" in found["warning"]
    assert (found["rows"], found["counted"], found["nobody"]) == (5, 2, 1)
    keys = ("kept", "declared", "null", "nan", "outside", "unreadable")
    assert {one["name"]: tuple(one[key] for key in keys) for one in found["attributes"]} == {
        "sex": (4, 4, 0, 0, 1, 0),
        "day": (3, 3, 1, 0, 1, 0),
        "ok": (4, 2, 1, 0, 0, 2),
        "n": (2, 2, 0, 1, 1, 1),
    }
    assert "values that cannot be read: ok (2), n (1)" in result.stderr


def test_it_says_for_whom_it_is(run):
    declare_dates()
    result = run(*CHECK, "--rows")
    assert result.exit_code == 0
    assert "for the data owner's eyes only" in result.stdout
    assert "a release would count 2 of 5 rows" in result.stdout
    help_text = " ".join(run("domain", "check", "--help").stdout.split())
    assert "must not be published" in help_text


def test_it_needs_a_table(run):
    refused(run("domain", "check", "d.yaml", "--rows"), 2, "--table")
