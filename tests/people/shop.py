"""A shop for tests: customers, their orders and their visits."""

import numpy as np
import pandas as pd

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
