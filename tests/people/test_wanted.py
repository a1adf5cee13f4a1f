"""Twenty-five statements that people want about persons: answered as DuckDB does, or refused."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.domain.file import parse_declared

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")

SHOP = parse_declared("""\
lrm-domain: 2
people: shop
tables:
  - name: customers
    person: id
    rows: one
    attributes:
      - {name: region, kind: categories, values: [north, south, east], null: drop, outside: drop}
      - {name: size, kind: integers, low: 1, high: 5, null: drop, outside: drop}
  - name: orders
    person: customer
    rows: {most: 40}
    attributes:
      - {name: day, kind: dates, start: 2025-01-01, end: 2025-06-30, by: day,
         null: drop, outside: drop}
      - {name: category, kind: categories, values: [food, travel, online],
         null: drop, outside: drop}
      - {name: country, kind: categories, values: [be, fr, nl], null: drop, outside: drop}
      - {name: amount, kind: integers, low: 0, high: 99, null: drop, outside: drop}
      - {name: rating, kind: integers, low: 1, high: 5, null: drop, outside: drop}
      - {name: fraud, kind: categories, values: [true, false], null: drop, outside: drop}
  - name: visits
    person: customer
    rows: {most: 40}
    attributes:
      - {name: page, kind: categories, values: [home, shop], null: drop, outside: drop}
features:
  - {name: n_orders, of: orders, value: count, kind: integers, low: 0, high: 30}
  - {name: spend, of: orders, value: sum, column: amount, clip: [0, 99],
     kind: integers, low: 0, high: 500}
""")

ANSWERED = {
    1: "SELECT COUNT(DISTINCT customer) AS n FROM orders WHERE day >= '2025-04-01'",
    2: "SELECT country, COUNT(DISTINCT customer) AS n FROM orders GROUP BY country",
    3: """SELECT date_trunc('month', day) AS month, COUNT(DISTINCT customer) AS mau FROM orders
        GROUP BY 1 ORDER BY 1""",
    4: """SELECT COUNT(*) AS regulars FROM
        (SELECT customer FROM orders GROUP BY customer HAVING COUNT(*) >= 3) t""",
    5: """SELECT n, COUNT(*) AS k FROM
        (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) t GROUP BY n ORDER BY n""",
    6: """SELECT AVG(spend) AS a FROM
        (SELECT customer, SUM(amount) AS spend FROM orders GROUP BY customer) t""",
    7: """SELECT CASE WHEN spend < 100 THEN 'low' WHEN spend < 300 THEN 'mid' ELSE 'high' END
        AS band, COUNT(*) AS k, SUM(spend) AS volume
        FROM (SELECT customer, SUM(amount) AS spend FROM orders GROUP BY customer) t GROUP BY 1""",
    8: """SELECT category, SUM(amount) / COUNT(DISTINCT customer) AS arpu FROM orders
        GROUP BY category""",
    9: """SELECT date_trunc('month', first_day) AS cohort, COUNT(*) AS k FROM
        (SELECT customer, MIN(day) AS first_day FROM orders GROUP BY 1) t GROUP BY 1""",
    10: """WITH f AS (SELECT customer, date_trunc('month', MIN(day)) AS cohort
        FROM orders GROUP BY 1)
        SELECT cohort, date_trunc('month', o.day) AS month, COUNT(DISTINCT o.customer) AS active
        FROM orders o JOIN f USING (customer) GROUP BY 1, 2""",
    11: """SELECT r, f, COUNT(*) AS k FROM (SELECT customer,
        CASE WHEN MAX(day) >= '2025-06-01' THEN 'recent' ELSE 'lapsed' END AS r,
        CASE WHEN COUNT(*) >= 5 THEN 'often' ELSE 'rare' END AS f
        FROM orders GROUP BY customer) t GROUP BY r, f""",
    12: """SELECT COUNT(*) AS both_of FROM (SELECT customer FROM orders GROUP BY customer
        HAVING COUNT_IF(category = 'travel') > 0 AND COUNT_IF(fraud) > 0) t""",
    13: """SELECT COUNT(*) AS converted FROM (SELECT customer,
        MIN(day) FILTER (WHERE category = 'online') AS a,
        MIN(day) FILTER (WHERE category = 'travel') AS b FROM orders GROUP BY 1) t WHERE b > a""",
    16: """SELECT c.size, o.category, AVG(o.rating) AS g FROM orders o
        JOIN customers c ON o.customer = c.id GROUP BY 1, 2""",
    17: """SELECT c.region, COUNT(*) FILTER (WHERE o.fraud) * 1.0 / COUNT(*) AS rate
        FROM customers c JOIN orders o ON o.customer = c.id GROUP BY c.region""",
    18: """SELECT c.region, COUNT(*) AS never FROM customers c WHERE NOT EXISTS
        (SELECT 1 FROM visits v WHERE v.customer = c.id) GROUP BY c.region""",
    19: """SELECT category, COUNT(*) AS k FROM (SELECT customer, category, SUM(amount) AS s
        FROM orders WHERE rating >= 2 GROUP BY 1, 2) t WHERE s >= 90 GROUP BY category""",
    20: """SELECT category, AVG(rating) AS g FROM (SELECT *, ROW_NUMBER() OVER
        (PARTITION BY customer ORDER BY rating DESC) AS rn FROM orders) t WHERE rn = 1
        GROUP BY category""",
    21: """SELECT c.size, AVG(o.amount) AS a FROM orders o JOIN customers c ON o.customer = c.id
        GROUP BY 1""",
    22: """SELECT m, MEDIAN(total) AS a FROM (SELECT customer, date_trunc('month', day) AS m,
        SUM(amount) AS total FROM orders GROUP BY 1, 2) t GROUP BY m""",
}

REFUSED = {
    14: (
        """SELECT CASE WHEN gap < 2 THEN 0 ELSE 1 END AS g, COUNT(*) AS n FROM (SELECT
        date_diff('day', LAG(day) OVER (PARTITION BY customer ORDER BY day), day) AS gap
        FROM orders) t WHERE gap IS NOT NULL GROUP BY 1""",
        "over the rows of a person",
    ),
    15: (
        """SELECT COUNT(DISTINCT a.customer) AS n FROM orders a JOIN orders b
        ON a.customer = b.customer AND a.day < b.day AND a.country <> b.country""",
        "joined by the person alone",
    ),
    23: (
        """SELECT SUM(spend) FILTER (WHERE d = 10) / SUM(spend) AS share FROM (SELECT
        SUM(amount) AS spend, NTILE(10) OVER (ORDER BY SUM(amount)) AS d
        FROM orders GROUP BY customer) t""",
        "several persons",
    ),
    24: (
        """SELECT merchant, COUNT(*) AS n, COUNT(DISTINCT customer) AS k FROM orders
        GROUP BY merchant ORDER BY n DESC LIMIT 50""",
        "declares no attribute 'merchant'",
    ),
    25: (
        """SELECT lower(street) AS s, COUNT(*) AS n FROM visits WHERE page = 'home'
        GROUP BY 1 HAVING COUNT(*) >= 20 ORDER BY n DESC""",
        "street",
    ),
}
"""Statements with the words of the error that says why."""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    persons, orders = 60, 400
    days = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 181, orders), unit="D")
    return {
        "customers": pd.DataFrame(
            {
                "id": np.arange(persons),
                "region": rng.choice(["north", "south", "east"], persons),
                "size": rng.integers(1, 6, persons),
            }
        ),
        "orders": pd.DataFrame(
            {
                "customer": rng.integers(0, persons, orders),
                "day": days,
                "category": rng.choice(["food", "travel", "online"], orders),
                "country": rng.choice(["be", "fr", "nl"], orders),
                "amount": rng.integers(0, 100, orders),
                "rating": rng.integers(1, 6, orders),
                "fraud": rng.random(orders) < 0.2,
            }
        ).drop_duplicates(["customer", "rating"]),
        "visits": pd.DataFrame(
            {
                "customer": rng.integers(0, persons, 50),
                "page": rng.choice(["home", "shop"], 50),
            }
        ),
    }


def test_every_statement_is_answered_or_refused():
    assert sorted([*ANSWERED, *REFUSED]) == list(range(1, 26))
    assert len(ANSWERED) >= 20


@pytest.mark.parametrize("number", ANSWERED)
def test_statements_mean_what_they_mean_in_sql(number, data):
    text = ANSWERED[number]
    con = duckdb.connect()
    for name, frame in data.items():
        con.register(name, frame)
    reference = con.execute(text).df()
    reference = reference.sort_values(list(reference.columns))
    workload = lrm.sql(text, SHOP)
    names = {table.name for table in workload.domain.level.tables}
    plan = lrm.plan(workload, effort="quick")
    given = {name: frame for name, frame in data.items() if name in names}
    release = lrm.release(plan, given, epsilon=10**6, ledger=None)
    frame = release.frame().to_pandas()
    (statement,) = plan.workload.tables
    for name in statement.answers:
        mine = frame[name].astype(float)
        if "MEDIAN" in text:  # of an even number of persons, the least noise moves it to either
            both = zip(frame[f"{name}_low"], frame[f"{name}_high"], reference[name], strict=True)
            assert all(low - 1 <= value <= high + 1 for low, high, value in both)
            continue
        # Groups that nobody is in have no row in SQL.
        mine = sorted(value for value in mine if np.isfinite(value) and abs(value) > 0.01)
        theirs = sorted(value for value in reference[name].astype(float) if value)
        assert mine == pytest.approx(theirs, rel=0.01, abs=0.3)


@pytest.mark.parametrize("number", REFUSED)
def test_what_cannot_be_answered_says_why(number):
    text, words = REFUSED[number]
    with pytest.raises(lrm.LrmError, match=words):
        lrm.sql(text, SHOP)
