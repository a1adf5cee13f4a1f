"""A people on the command line: one budget for all tables, plans, releases, reports."""

import json
import pathlib
import re

import duckdb
import pytest
from click.testing import CliRunner

import lrm
from engines import empty_postgres_database
from lrm.cli import main
from lrm.domain.file import parse_declared, parse_domain
from lrm.errors import DomainError
from people.shop import SHOP, TEXT, tables

PERSONS = """\
-- Customers by region
SELECT region, COUNT(*) AS customers FROM customers GROUP BY region;
-- Buyers by month
SELECT date_trunc('month', day) AS month, COUNT(DISTINCT customer) AS buyers
  FROM orders GROUP BY 1 ORDER BY 1;
SELECT AVG(n_orders) AS orders_per_customer FROM customers;
"""
EVENTS = "SELECT category, COUNT(*) AS orders FROM orders GROUP BY category;"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(TEXT)
    (tmp_path / "persons.sql").write_text(PERSONS)
    (tmp_path / "events.sql").write_text(EVENTS)
    for name, frame in tables().items():
        frame.to_csv(f"{name}.csv", index=False)

    def invoke(*words):
        result = CliRunner().invoke(main, list(words))
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return result

    return invoke


FILES = ("--table", "customers=customers.csv", "--table", "orders=orders.csv")


def release(run, plan, epsilon, *files, output):
    words = ("--epsilon", epsilon, "--ledger", "budget.sqlite", "-o", output)
    return run("release", plan, *files, *words)


def test_one_budget_for_all_tables(run):
    """Releases of two tables of the same people add up."""
    assert run("plan", "persons.sql", "--domain", "shop.yaml", "-o", "persons.lrm").exit_code == 0
    assert run("plan", "events.sql", "--domain", "shop.yaml", "-o", "events.lrm").exit_code == 0
    created = run(
        *("budget", "create", "shop", "--limit", "1"),
        *("--domain", "shop.yaml", "--ledger", "budget.sqlite"),
    )
    assert created.exit_code == 0, created.output
    assert release(run, "persons.lrm", "0.6", *FILES, output="p.lrm").exit_code == 0
    refused = release(run, "events.lrm", "0.5", *FILES[2:], output="e.lrm")
    assert refused.exit_code == 1
    assert "0.4" in refused.output
    assert release(run, "events.lrm", "0.4", *FILES[2:], output="e.lrm").exit_code == 0
    shown = run("show", "p.lrm").output
    assert "Customers by region" in shown
    assert "2025-02" in shown
    assert "all rows in all tables" in run("budget", "show", "--ledger", "budget.sqlite").output
    assert run("report", "e.lrm").exit_code == 0
    assert "At most 4 rows" in lrm.load_release("e.lrm").plan.unit.limit.capitalize()


def test_a_budget_of_one_table_is_not_charged_for_a_people(run):
    run("plan", "events.sql", "--domain", "shop.yaml", "-o", "events.lrm")
    words = ("--person", "customer", "--max-rows", "4", "--ledger", "budget.sqlite")
    run("budget", "create", "shop", "--limit", "1", *words)
    refused = release(run, "events.lrm", "0.4", *FILES[2:], output="e.lrm")
    assert refused.exit_code == 1
    assert "nothing follows" in refused.output


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("--table", "orders.csv"), "NAME=TABLE"),
        (("--table", "orders=orders.csv", "--table", "orders=visits.csv"), "twice"),
        (("--table", "order=orders.csv"), "has no table 'order'"),
        (("--table", "visits=visits.csv"), "--table orders=FILE"),
    ],
)
def test_tables_are_given_by_name(run, files, words):
    run("plan", "events.sql", "--domain", "shop.yaml", "-o", "events.lrm")
    refused = run("release", "events.lrm", *files, "--epsilon", "1", "--no-ledger", "-o", "e.lrm")
    assert refused.exit_code in {1, 2}
    assert words in refused.output


def test_the_domain_file_is_shown(run):
    shown = run("domain", "check", "shop.yaml").output
    assert "at most 4 rows per person (customer)" in shown
    assert "shop.yaml is complete" in shown


def test_a_people_is_written_and_read_again():
    from lrm.domain.file import domain_text

    assert parse_declared(domain_text(SHOP)) == SHOP
    level = SHOP.persons(["region", "travels"]).domain
    assert parse_domain(domain_text(level)) == level
    assert parse_domain(domain_text(level)).digest == level.digest


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    rows: one\n", "", "how many rows may one person have"),
        ("rows: {most: 4}", "rows: several", "expected one, or {most: 40}"),
        ("of: orders, value: count", "of: order, value: count", "no table is called 'order'"),
        ("value: count", "value: mean", "expected one of count"),
        ("clip: [0, 500],", "", "a sum needs clip"),
        ("column: day}", "column: date}", "no attribute 'date'"),
        ("name: n_orders", "name: region", "has a column of the same name"),
        (", kind: integers, low: 0, high: 8", "", "its values are not declared"),
    ],
)
def test_errors_of_the_domain_file(old, new, words):
    assert old in TEXT
    with pytest.raises(DomainError, match=words):
        parse_declared(TEXT.replace(old, new, 1))


def test_one_table_is_expected_elsewhere():
    with pytest.raises(DomainError, match="several tables of 'shop'"):
        parse_domain(TEXT)
    with pytest.raises(lrm.LrmError, match="write the queries in SQL"):
        lrm.plan([[1, 1], [1, 0]], domain=SHOP)


def left_out(data, most, cap=100):
    sizes = data["orders"].groupby("customer").size().clip(upper=cap)
    return int((sizes - most).clip(lower=0).sum())


@pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")
def test_limits_state_how_many_rows_they_leave_out(run):
    """One release about persons, charged to their budget: nothing is written into the domain."""
    words = ("domain", "limits", "shop.yaml", "--table", "orders=orders.csv")
    more = ("--candidates", "2,4", "--cap", "20", "--json")
    run(
        *("budget", "create", "shop", "--limit", "5000"),
        *("--domain", "shop.yaml", "--ledger", "budget.sqlite"),
    )
    before = pathlib.Path("shop.yaml").read_text()
    result = run(*words, *more, "--epsilon", "4000", "--ledger", "budget.sqlite")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    for entry in facts["limits"]:
        expected = left_out(tables(), entry["most"])
        assert entry["left_out"] == pytest.approx(expected, abs=0.5)
        assert entry["share"] == pytest.approx(expected / 150, abs=0.01)
        assert entry["low"] <= entry["left_out"] <= entry["high"]
    assert pathlib.Path("shop.yaml").read_text() == before
    shown = run("budget", "show", "--ledger", "budget.sqlite").output
    assert "1000" in shown.replace(",", "")
    plain = run(*words, *more[:-1], "--epsilon", "0.5", "--ledger", "budget.sqlite", "-o", "l.lrm")
    assert "rows left out" in plain.output
    assert "prefer one" in plain.output
    assert lrm.load_release("l.lrm").unit.people == "shop"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--table", "orders.csv", "--candidates", "4"), "NAME=TABLE"),
        (("--table", "order=orders.csv", "--candidates", "4"), "no table 'order'"),
        (("--table", "orders=orders.csv", "--candidates", "x"), "whole numbers"),
        (("--table", "orders=orders.csv", "--candidates", "100"), "above every candidate"),
        (("--table", "orders=orders.csv", "--candidates", "0"), "at least one row"),
    ],
)
def test_limits_that_cannot_be_compared(run, words, message):
    refused = run("domain", "limits", "shop.yaml", *words, "--epsilon", "1", "--no-ledger")
    assert refused.exit_code in {1, 2}
    assert message in refused.output


SCHEMA = """
CREATE TABLE customers (id bigint PRIMARY KEY, region text);
CREATE TABLE orders (
  order_id bigint PRIMARY KEY, buyer bigint REFERENCES customers (id), amount int);
CREATE TABLE cards (holder bigint UNIQUE REFERENCES customers (id), kind text);
CREATE TABLE items (order_id bigint REFERENCES orders (order_id), price int);
INSERT INTO customers VALUES (17, 'secret');
"""


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_a_draft_of_a_database_reads_its_catalogue_alone(run, engine):
    if engine == "duckdb":
        address = "shop.duckdb"
        with duckdb.connect(address) as db:
            db.execute(SCHEMA)
    else:
        import psycopg

        address = empty_postgres_database()
        with psycopg.connect(address, autocommit=True) as db:
            db.execute(SCHEMA)
    result = run("domain", "init", address, "--people", "shop")
    assert result.exit_code == 0, result.output
    text = result.output
    assert "secret" not in text
    _, *parts = re.split(r"^  - name: (\w+)\n", text, flags=re.MULTILINE)
    keys = re.compile(r"^    (?:person|rows): (\S+)", re.MULTILINE)
    drafted = {name: keys.findall(part) for name, part in zip(parts[::2], parts[1::2], strict=True)}
    assert drafted == {
        "cards": ['"holder"', "one"],
        "customers": ['"id"', "one"],
        "items": ["TODO", "TODO"],
        "orders": ['"buyer"', "TODO"],
    }
    assert text.count('"buyer"') == 1


def test_a_draft_of_several_tables_reads_names_and_types_alone(run):
    words = ("domain", "init", "customers.csv", "orders.csv", "--people", "shop")
    result = run(*words, "--kinds", "age=integers", "-o", "draft.yaml")
    assert result.exit_code == 0, result.output
    text = pathlib.Path("draft.yaml").read_text()
    assert "north" not in text
    assert text.count("person: TODO") == 2
    refused = run("domain", "check", "draft.yaml")
    assert refused.exit_code in {1, 2}
    assert "must be completed" in refused.output
    done = text.replace("person: TODO", "person: id", 1).replace("person: TODO", "person: customer")
    done = done.replace("rows: TODO ", "rows: one ", 1).replace("rows: TODO ", "rows: {most: 4} ")
    done = done.replace("values: TODO", "values: [a, b]").replace("low: TODO", "low: 0")
    pathlib.Path("done.yaml").write_text(done.replace("high: TODO", "high: 99"))
    checked = run("domain", "check", "done.yaml")
    assert "done.yaml is complete" in checked.output, checked.output
    assert run(*words[:4]).exit_code == 2
    assert "--people" in run(*words[:4]).output
