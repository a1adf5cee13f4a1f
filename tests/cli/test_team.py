"""A team's way: the table and the ledger in PostgreSQL, with the same plan as for a file."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

import lrm
from engines import empty_postgres_database
from lrm.ledger import Ledger
from visits import UNIT, refused

pytestmark = pytest.mark.usefixtures("planned")


@pytest.fixture
def url(visits_files):
    """A database with the table of visits."""
    address = empty_postgres_database()
    import psycopg

    with Path("visits.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("CREATE TABLE visits (patient text, state text, age int, salary int)")
        db.cursor().executemany("INSERT INTO visits VALUES (%s, %s, %s, %s)", rows)
    return address


def test_table_and_ledger_in_one_database(run, url):
    ledger = Ledger.open(url)
    ledger.create("visits", "1", "epsilon", unit=UNIT)
    separator = "&" if "?" in url else "?"
    table = f"{url}{separator}table=visits"
    args = ("release", "plan.lrm", "--table", table, "--ledger", url, "--epsilon", "0.25")
    planned = run(*args, "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert ledger.remaining("visits") == 1
    done = run(*args, "-o", "out.lrm")
    assert done.exit_code == 0, done.output
    assert ledger.remaining("visits") == Fraction(3, 4)
    assert lrm.load_release("out.lrm").ledger_head == ledger.head()
    wrong = (*args[:3], f"{url}{separator}table=people", *args[4:], "-o", "none.lrm")
    refused(run(*wrong), 1, "people")
    assert ledger.remaining("visits") == Fraction(3, 4)
