"""Columns of several private tables that have one name: each statement means what DuckDB reads."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.domain.file import domain_text, parse_declared
from lrm.errors import LrmError

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")

REGION = "{name: region, kind: categories, values: [n, s, e], null: drop, outside: drop}"
TEXT = f"""
lrm-domain: 2
people: shop
tables:
  - {{name: customers, person: id, rows: one, attributes: [{REGION}]}}
  - {{name: accounts, person: id, rows: one, attributes: [{REGION}]}}
  - name: orders
    person: customer
    rows: {{most: 3}}
    attributes:
      - {REGION}
      - {{name: month, kind: integers, low: 1, high: 3, null: drop, outside: drop}}
      - {{name: hour, kind: integers, low: 0, high: 23, width: 6, null: drop, outside: drop}}
      - {{name: amount, kind: bins, edges: [0, 10, 100], null: drop, outside: drop}}
"""
SHOP = parse_declared(TEXT)
STATEMENTS = [
    "SELECT region, COUNT(*) AS n FROM accounts GROUP BY region ORDER BY region",
    "SELECT c.region, COUNT(*) AS n FROM orders o JOIN customers c ON o.customer = c.id GROUP BY 1",
    """SELECT a.region AS r, COUNT(*) AS n FROM customers c JOIN accounts a ON a.id = c.id
       WHERE c.region <> 'e' GROUP BY r ORDER BY n DESC""",
    """SELECT o.region, c.region AS home, COUNT(*) AS n FROM orders o
       JOIN customers c ON o.customer = c.id WHERE o.month > 1 GROUP BY o.region, c.region""",
    """SELECT COUNT(*) FILTER (WHERE c.region = 'n') AS n,
       COUNT(*) FILTER (WHERE o.region = 'n') AS m
       FROM orders o JOIN customers c ON o.customer = c.id""",
    """SELECT c.region, COUNT(DISTINCT o.customer) AS n FROM orders o
       JOIN customers c ON o.customer = c.id WHERE o.region = 's' GROUP BY c.region""",
    """SELECT o.region, COUNT(DISTINCT o.customer) AS n FROM orders o
       JOIN customers c ON o.customer = c.id WHERE c.region = 's' GROUP BY o.region""",
    """SELECT c.region, COUNT(*) / COUNT(DISTINCT o.customer) AS n FROM orders o
       JOIN customers c ON o.customer = c.id GROUP BY c.region""",
    """SELECT COUNT(*) AS n FROM customers c
       WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.region = 'n')""",
    """SELECT COUNT(*) AS n FROM (SELECT customer, COUNT(DISTINCT month) AS d FROM orders
       GROUP BY customer) t WHERE d >= 2""",
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    few = {"customers": 80, "accounts": 80}
    listed = {
        name: pd.DataFrame({"id": np.arange(size), "region": rng.choice(list("nse"), size)})
        for name, size in few.items()
    }
    customer = np.repeat(np.arange(80), rng.integers(0, 4, 80))
    rows = len(customer)
    listed["orders"] = pd.DataFrame(
        {
            "customer": customer,
            "region": rng.choice(list("nse"), rows),
            "month": rng.integers(1, 4, rows),
            "hour": rng.integers(0, 24, rows),
            "amount": rng.random(rows) * 100,
        }
    )
    return listed


def released(text, data):
    plan = lrm.plan(text, domain=SHOP, effort="quick")
    used = {table.name for table in plan.workload.domain.level.tables}
    given = {name: frame for name, frame in data.items() if name in used}
    return lrm.release(plan, given, epsilon=10**6, ledger=None)


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_column_is_that_of_its_table(text, data):
    with duckdb.connect() as db:
        for name, frame in data.items():
            db.register(name, frame)
        theirs = db.sql(text).df()
    mine = released(text, data)
    values = [v for v in np.asarray(mine.answers, dtype=float) if abs(v) > 0.3]
    numbers = theirs.select_dtypes("number").to_numpy(dtype=float).ravel()
    if "/" not in text:
        assert sorted(values) == pytest.approx(sorted(v for v in numbers if v), abs=0.3)
    else:
        frame = mine.frame("n").to_pandas().set_index("region")["n"].astype(float)
        for region, value in zip(theirs.iloc[:, 0], numbers, strict=True):
            assert frame[region] == pytest.approx(value, abs=0.05)


def test_levels_with_such_columns_are_written_and_read():
    batch = lrm.sql(STATEMENTS[3], SHOP)
    assert batch.domain.names == ("region", "customers.region", "month")
    assert parse_declared(domain_text(batch.domain)) == batch.domain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "SELECT region, COUNT(*) FROM orders o JOIN customers c ON customer = id GROUP BY 1",
            "orders and customers have a column of this name",
        ),
        (
            """SELECT COUNT(DISTINCT o.customer) FILTER (WHERE c.region = 'n') AS n FROM orders o
               JOIN customers c ON o.customer = c.id""",
            "put conditions on the person in WHERE",
        ),
        (
            """SELECT COUNT(*) FROM (SELECT customer, COUNT(DISTINCT hour) AS d FROM orders
               GROUP BY customer) t WHERE d > 1""",
            "cells of 'hour' hold several values each",
        ),
        (
            """SELECT COUNT(*) FROM (SELECT customer, COUNT(DISTINCT amount) AS d FROM orders
               GROUP BY customer) t WHERE d > 1""",
            "cells of 'amount' hold several values each",
        ),
    ],
)
def test_what_is_not_certain_is_an_error(text, words):
    with pytest.raises(LrmError, match=words):
        lrm.sql(text, SHOP)
