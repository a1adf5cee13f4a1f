"""Statements about persons with rows in several tables: errors, and time from plan to release.

``python -m benchmarks people`` generates a shop (customers, orders, visits) and prints

- the root mean square error of seven statements about persons at ε = 1, with both objectives and
  both noises, beside an even split of the budget among the statements planned one by one;
- the same with statements about rows in the batch: the share of each level, beside even shares;
- CPU seconds of a plan and of a release from tables in memory;
- errors of tables of events with Gaussian noise, at most one row of a person in each month, beside
  those of c rows anywhere;
- with ``--rows 10000000``, CPU seconds of the counts of a level from a DuckDB database, beside the
  same features and statements by hand.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lrm
from lrm.domain.file import parse_declared
from lrm.planning.design.products.rounding import round_products
from lrm.planning.design.row_limits import RowLimits
from lrm.planning.plan.levels import LevelsPlan
from lrm.planning.solvers.products.gaussian import optimise_gaussian_groups
from lrm.privacy.norms import L2
from lrm.queries.maps.products.batch import cross_tabs
from lrm.tables.people import open_people

PERSONS = """\
SELECT region, COUNT(*) AS customers FROM customers GROUP BY region;
SELECT region, CASE WHEN age < 25 THEN 'a' WHEN age < 35 THEN 'b' WHEN age < 45 THEN 'c'
  WHEN age < 55 THEN 'd' WHEN age < 65 THEN 'e' ELSE 'f' END AS age_group, COUNT(*) AS by_age
  FROM customers GROUP BY 1, 2;
SELECT day AS month, COUNT(DISTINCT customer) AS buyers FROM orders GROUP BY day;
SELECT category, COUNT(DISTINCT customer) AS buyers_of FROM orders GROUP BY category;
SELECT n_orders, COUNT(*) AS with_orders FROM customers GROUP BY n_orders;
SELECT cohort, COUNT(*) AS started FROM (SELECT customer, MIN(day) AS cohort FROM orders
  GROUP BY customer) t GROUP BY cohort;
SELECT region, CASE WHEN spend < 50 THEN 'a' WHEN spend < 100 THEN 'b' WHEN spend < 200 THEN 'c'
  WHEN spend < 400 THEN 'd' ELSE 'e' END AS band, COUNT(*) AS by_spend
  FROM customers GROUP BY 1, 2
"""
"""Seven statements about persons, with 104 answers (105 with those who never ordered)."""

ROWS = """\
SELECT category, day AS month, COUNT(*) AS orders FROM orders GROUP BY category, day;
SELECT c.region, COUNT(*) AS orders_by_region FROM orders o JOIN customers c ON o.customer = c.id
  GROUP BY c.region;
SELECT page, COUNT(*) AS visits FROM visits GROUP BY page
"""
"""Statements about rows of two tables."""

CATEGORIES = [f"c{number}" for number in range(11)]

SHOP = parse_declared(f"""\
lrm-domain: 2
people: shop
tables:
  - name: customers
    person: id
    rows: one
    attributes:
      - {{name: region, kind: categories, values: [n, e, s, w], null: drop, outside: drop}}
      - {{name: age, kind: integers, low: 18, high: 97, null: drop, outside: drop}}
  - name: orders
    person: customer
    rows: {{most: 12}}
    attributes:
      - {{name: day, kind: dates, start: 2025-01-01, end: 2025-12-31, by: month,
         null: drop, outside: drop}}
      - {{name: category, kind: categories, values: [{", ".join(CATEGORIES)}],
         null: drop, outside: drop}}
      - {{name: amount, kind: integers, low: 0, high: 199, null: drop, outside: drop}}
  - name: visits
    person: customer
    rows: {{most: 20}}
    attributes:
      - {{name: page, kind: categories, values: [home, item, cart], null: drop, outside: drop}}
features:
  - {{name: n_orders, of: orders, value: count, kind: integers, low: 0, high: 20}}
  - {{name: spend, of: orders, value: sum, column: amount, clip: [0, 199],
     kind: integers, low: 0, high: 999}}
""")


def shop(customers: int, orders: int, visits: int) -> dict[str, Any]:
    """Generated tables: a few customers have many orders."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    busy = rng.gamma(0.7, 1.0, customers)
    buyers = rng.choice(customers, orders, p=busy / busy.sum())
    days = np.datetime64("2025-01-01") + rng.integers(0, 365, orders)
    return {
        "customers": pa.table(
            {
                "id": np.arange(customers),
                "region": pa.array(["n", "e", "s", "w"]).take(
                    pa.array(rng.integers(0, 4, customers))
                ),
                "age": rng.integers(18, 98, customers),
            }
        ),
        "orders": pa.table(
            {
                "customer": buyers,
                "day": pa.array(days),
                "category": pa.array(CATEGORIES).take(pa.array(rng.integers(0, 11, orders))),
                "amount": rng.integers(0, 200, orders),
            }
        ),
        "visits": pa.table(
            {
                "customer": rng.integers(0, customers, visits),
                "page": pa.array(["home", "item", "cart"]).take(
                    pa.array(rng.integers(0, 3, visits))
                ),
            }
        ),
    }


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print the CPU seconds of a block."""
    start = time.process_time()
    yield
    print(f"  {what:52} {time.process_time() - start:8.2f} CPU s", flush=True)


def rmse(plan: lrm.Plan, amount: Fraction) -> float:
    """Root mean square error of the shown counts."""
    privacy = plan.measured.norm.guarantee(amount)
    return plan.accuracy(privacy).root_mean_squared_error


def errors() -> dict[str, lrm.Plan]:
    """Print errors of the statements about persons; return the plans."""
    single = [part.strip() for part in PERSONS.split(";")]
    plans = {}
    for noise in ("pure", "gaussian"):
        squares, count = 0.0, 0
        for text in single:
            alone = lrm.plan(text, domain=SHOP, noise=noise)
            size = alone.workload.shape[0]
            squares += rmse(alone, Fraction(1, len(single))) ** 2 * size
            count += size
        even = (squares / count) ** 0.5
        for objective in ("total", "balanced"):
            name = f"{noise}, {objective}"
            with measured(f"plan ({name})"):
                plans[name] = lrm.plan(PERSONS, domain=SHOP, noise=noise, objective=objective)
            error = rmse(plans[name], Fraction(1))
            ratios = plans[name].statement_ratios
            typical = (
                ""
                if ratios is None
                else f", of even split {ratios.min():.2f} to {ratios.max():.2f}"
            )
            print(
                f"    {plans[name].workload.shape[0]} answers: rmse {error:.2f}, even split "
                f"{even:.2f}, ratio {error / even:.2f}{typical}"
            )
    return plans


def levels() -> lrm.Plan:
    """Print the shares of a batch about persons and rows."""
    with measured("plan of persons and rows of two tables"):
        plan = lrm.plan(PERSONS + ";" + ROWS, domain=SHOP)
    even = [Fraction(1, len(plan.levels))] * len(plan.levels)
    other = LevelsPlan.of(plan.workload, plan.levels, even, plan.objective)
    scores = [float((made.statement_ratios**2).mean()) for made in (plan, other)]
    shares = ", ".join(f"{float(share):.3f}" for share in plan.shares)
    print(f"    shares {shares}: mean squared ratio {scores[0]:.3f}, even shares {scores[1]:.3f}")
    return plan


def by_group() -> None:
    """Print errors of all tables of up to two of 12 months, 8 and 10 values at ρ = 1/2."""
    batch, size = cross_tabs([12, 8, 10], [0, 1, 2]), 960
    single = round_products(batch, optimise_gaussian_groups(batch))
    for most in (3, 6, 12):
        limit = replace(lrm.GroupLimit("month", 1), size=12, stride=size // 12)
        unit = lrm.PrivacyUnit("customer", most, by=limit)
        limited = optimise_gaussian_groups(batch, limits=partial(RowLimits.on, unit=unit))
        planned = round_products(batch, limited, None, L2(unit))
        rmse = [
            math.sqrt(made.squared_norm * moved / 4**made.measured.bits / batch.queries)
            for made, moved in (
                (planned, planned.measured.squared_l2_moved(unit, 0)),
                (single, single.measured.squared_l2_moved(unit, 0)),
                (single, single.measured.squared_l2_sensitivity * most**2),
            )
        ]
        print(
            f"    at most {most:2} rows, one per month: rmse {rmse[0]:.2f}, of the plan for single "
            f"rows {rmse[1]:.2f}, with {most} rows anywhere {rmse[2]:.2f}"
        )


FEATURES_BY_HAND = """
CREATE TEMP TABLE features AS
SELECT c.region, c.age, coalesce(o.n, 0) AS n, o.spend, o.cohort, o.months, o.categories
FROM customers c LEFT JOIN (
  SELECT customer, count(*) AS n, sum(amount) AS spend, min(day) AS cohort,
    bit_or(1 << month(day)) AS months,
    bit_or(1 << CAST(substr(category, 2) AS INTEGER)) AS categories
  FROM orders GROUP BY customer) o ON o.customer = c.id
"""
"""The features of the seven statements, by hand."""

BY_HAND = (
    "SELECT region, count(*) FROM features GROUP BY 1",
    "SELECT region, age // 10, count(*) FROM features GROUP BY 1, 2",
    "SELECT m, count(*) FROM features, range(1, 13) r(m) WHERE months & (1 << m) > 0 GROUP BY m",
    "SELECT k, count(*) FROM features, range(11) r(k) WHERE categories & (1 << k) > 0 GROUP BY k",
    "SELECT n, count(*) FROM features GROUP BY 1",
    "SELECT date_trunc('month', cohort), count(*) FROM features GROUP BY 1",
    "SELECT region, least(spend // 50, 8), count(*) FROM features GROUP BY 1, 2",
)
"""The seven statements over these, by hand."""


def counting(rows: int, plan: lrm.Plan) -> None:
    """Print the time of counting from a DuckDB database, and that of a query by hand."""
    import duckdb

    tables = shop(max(rows // 10, 1), rows, 1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shop.duckdb"
        with duckdb.connect(str(file)) as db:
            for name, table in tables.items():
                db.register("frame", table)
                db.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")  # noqa: S608 - own names
        del tables
        with duckdb.connect(str(file), read_only=True) as db, measured("queries by hand"):
            db.execute(FEATURES_BY_HAND)
            for text in BY_HAND:
                db.execute(text).fetchall()
        level = plan.workload.domain.level
        opened = open_people(level, {t.name: f"{file}::{t.name}" for t in level.tables})
        with measured(f"counts from {rows:,} orders"):
            opened.counts(plan.workload.domain, plan.measured.tabulations)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks people", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=0, help="orders of a DuckDB database, 0 for none"
    )
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    lrm.plan("SELECT COUNT(*) AS n FROM customers", domain=SHOP)  # imports
    if chosen.rows:
        counting(chosen.rows, lrm.plan(PERSONS, domain=SHOP, effort="quick"))
        return
    plans = errors()
    both = levels()
    by_group()
    tables = shop(40_000, 186_397, 388_407)
    print(f"{sum(len(table) for table in tables.values()):,} rows")
    two = {name: tables[name] for name in ("customers", "orders")}
    with measured("release of persons"):
        lrm.release(plans["pure, balanced"], two, epsilon=1, ledger=None)
    with measured("release of persons and rows"):
        lrm.release(both, tables, epsilon=1, ledger=None)


if __name__ == "__main__":
    main()
