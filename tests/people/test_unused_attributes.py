"""What an attribute drops is dropped from the statements that use it, and from no other."""

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
      - {name: region, kind: categories, values: [north, south], null: drop, outside: drop}
      - {name: size, kind: integers, low: 1, high: 3, null: drop, outside: drop}
  - name: orders
    person: customer
    rows: {most: 5}
    attributes:
      - {name: month, kind: integers, low: 1, high: 3, null: drop, outside: drop}
      - {name: amount, kind: numbers, knots: [0, 50, 100], null: drop, outside: drop}
""")

CUSTOMERS = pd.DataFrame(
    {
        "id": range(1, 9),
        "region": ["north", "south", None, "north", "west", "south", "north", None],
        "size": [1, 2, 3, None, 2, 9, 3, 1],
    }
)
ORDERS = pd.DataFrame(
    {
        "customer": [1, 1, 2, 3, 3, 4, 5, 5, 6, 99],  # nobody is 99
        "month": [1, 2, None, 3, 3, 1, 2, 7, 1, 2],
        "amount": [10.0, None, 50.0, 100.0, 5.0, -1.0, 30.0, 20.0, 500.0, 40.0],
    }
)

ANSWERS = {
    "SELECT COUNT(*) AS persons FROM customers": [8],
    "SELECT region, COUNT(*) AS by_region FROM customers GROUP BY region": [3, 2],
    "SELECT size, COUNT(*) AS by_size FROM customers GROUP BY size": [2, 2, 2],
    "SELECT COUNT(*) AS orders FROM orders": [10],
    "SELECT month, COUNT(*) AS by_month FROM orders GROUP BY month": [3, 3, 2],
    "SELECT SUM(amount) AS total FROM orders": [255],
    """SELECT region, COUNT(*) AS orders_by_region FROM orders
    JOIN customers ON orders.customer = customers.id GROUP BY region""": [3, 2],
}

ORDER_STATEMENTS = [text for text in ANSWERS if "orders" in text]


@pytest.mark.parametrize("statements", [list(ANSWERS), ORDER_STATEMENTS], ids=["both", "rows"])
@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_other_statements_do_not_change_a_statement(statements, noise, tmp_path):
    plan = lrm.plan("; ".join(statements), domain=SHOP, noise=noise, effort="quick")
    plan.save(tmp_path / "plan.lrm")
    plan = lrm.load_plan(tmp_path / "plan.lrm")
    amount = {"epsilon": 10**6} if noise == "pure" else {"rho": 10**11}
    tables = {"customers": CUSTOMERS, "orders": ORDERS}
    release = lrm.release(plan, tables, ledger=None, **amount)
    release.save(tmp_path / "release.lrm")
    release = lrm.load_release(tmp_path / "release.lrm")
    expected = [number for text in statements for number in ANSWERS[text]]
    assert release.answers.round().tolist() == expected
    further = release.query("SELECT COUNT(*) AS n FROM orders")
    assert further.answers.round().tolist() == [10]
