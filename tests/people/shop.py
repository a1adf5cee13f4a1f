"""A shop for tests: customers, their orders and their visits."""

import duckdb
import numpy as np
import pandas as pd

from engines import empty_postgres_database
from lrm.domain.file import parse_declared

TEXT = """\
lrm-domain: 2
people: shop
tables:
  - name: customers
    person: id
    rows: one
    attributes:
      - {name: region, kind: categories, values: [north, south, east], null: drop, outside: drop}
      - {name: age, kind: integers, low: 18, high: 97, null: drop, outside: drop}
  - name: orders
    person: customer
    rows: {most: 4}
    attributes:
      - {name: day, kind: dates, start: 2025-01-01, end: 2025-03-31, by: day,
         null: drop, outside: drop}
      - {name: category, kind: categories, values: [food, travel, books],
         null: drop, outside: drop}
      - {name: amount, kind: bins, edges: [0, 10, 100, 1000], null: drop, outside: drop}
  - name: visits
    person: customer
    rows: {most: 6}
    attributes:
      - {name: page, kind: categories, values: [home, shop], null: drop, outside: drop}
features:
  - {name: n_orders, of: orders, value: count, kind: integers, low: 0, high: 8}
  - {name: spend, of: orders, value: sum, column: amount, clip: [0, 500],
     kind: integers, low: 0, high: 2000}
  - {name: first_day, of: orders, value: min, column: day}
  - {name: travels, of: orders, value: exists, where: "category = 'travel'"}
"""

SHOP = parse_declared(TEXT)


def tables(seed: int = 0, customers: int = 60, orders: int = 150) -> dict[str, pd.DataFrame]:
    """Rows of the three tables; some orders are of nobody who is a customer."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 90, orders), unit="D")
    return {
        "customers": pd.DataFrame(
            {
                "id": np.arange(customers),
                "region": rng.choice(["north", "south", "east"], customers),
                "age": rng.integers(18, 98, customers),
            }
        ),
        "orders": pd.DataFrame(
            {
                "customer": rng.integers(0, customers + 5, orders),
                "day": days,
                "category": rng.choice(["food", "travel", "books"], orders),
                "amount": np.round(rng.random(orders) * 900, 2),
            }
        ),
        "visits": pd.DataFrame(
            {
                "customer": rng.integers(0, customers, orders // 2),
                "page": rng.choice(["home", "shop"], orders // 2),
            }
        ),
    }


def stored(data, source, folder):
    """The tables as files, frames, or tables of a database, by their names."""
    if source == "pandas":
        return dict(data)
    if source == "postgres":
        return in_postgres(data)
    places = {}
    database = folder / "shop.duckdb"
    for name, frame in data.items():
        if source == "csv":
            places[name] = str(folder / f"{name}.csv")
            frame.to_csv(places[name], index=False)
        elif source in {"parquet", "spark"}:
            path = str(folder / f"{name}.parquet")
            frame.to_parquet(path, index=False, coerce_timestamps="us")
            places[name] = f"spark:{path}" if source == "spark" else path
        else:
            with duckdb.connect(str(database)) as db:
                db.register("frame", frame)
                db.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM frame")
            places[name] = f"{database}::{name}"
    return places


TYPES = {"int64": "bigint", "Int64": "bigint", "float64": "double precision"}


def in_postgres(data):
    """The tables in the database of the tests."""
    import psycopg

    url = empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as db:
        for name, frame in data.items():
            kinds = [TYPES.get(str(kind), "text") for kind in frame.dtypes]
            kinds = ["timestamp" if c == "day" else k for c, k in zip(frame, kinds, strict=True)]
            listed = ", ".join(f"{c} {k}" for c, k in zip(frame, kinds, strict=True))
            db.execute(f"CREATE TABLE {name} ({listed})")
            with db.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in frame.astype(object).where(frame.notna(), None).to_numpy().tolist():
                    copy.write_row(row)
    joint = "&" if "?" in url else "?"
    return {name: f"{url}{joint}table={name}" for name in data}
