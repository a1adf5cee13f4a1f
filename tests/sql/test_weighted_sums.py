"""Weighted sums: one factor by knots or in bins, others of whole numbers, against the numbers."""

import numpy as np
import pyarrow as pa
import pytest

import lrm
from lrm.domain import Bins, Categories, Domain, Integers, Numbers
from lrm.errors import SqlError
from lrm.queries.sql import sql

DOMAIN = Domain(
    [
        Categories("g", ["a", "b"]),
        Integers("weight", 1, 4),
        Numbers("income", [0, 10, 30, 70]),
        Bins("fee", [0, 10, 20, 50]),
        Numbers("rate", [0, 1, 2]),
    ],
    "t",
)
HALF = 15  # of the widest bin of the fee
WEIGHTED = {
    "SUM(weight * income)": lambda t: t["weight"] * t["income"],
    "SUM(weight * (income - 10) / 4.0)": lambda t: t["weight"] * (t["income"] - 10) / 4,
    "SUM(CASE WHEN weight < 3 THEN weight * income ELSE 0 END)": lambda t: np.where(
        t["weight"] < 3, t["weight"] * t["income"], 0
    ),
    "SUM(weight * weight * rate)": lambda t: t["weight"] ** 2 * t["rate"],
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    return {
        "g": np.array(["a", "b"])[rng.integers(0, 2, 200)],
        "weight": rng.integers(1, 5, 200),
        "income": rng.uniform(0, 70, 200),
        "fee": rng.uniform(0, 50, 200),
        "rate": rng.uniform(0, 2, 200),
    }


def _released(rows, answers):
    listed = ", ".join(f"{answer} AS a{place}" for place, answer in enumerate(answers))
    plan = lrm.plan(lrm.sql(f"SELECT g, {listed} FROM t GROUP BY g", DOMAIN), "noise-on-data")
    with pytest.warns(lrm.errors.PrivacyWarning):
        return lrm.release(plan, pa.table(rows), epsilon=10**6, ledger=None).frame().rows()


def test_weighted_sums_of_numbers_by_knots_are_those_of_the_numbers(rows):
    for line in _released(rows, WEIGHTED):
        here = {name: column[rows["g"] == line[0]] for name, column in rows.items()}
        expected = [total(here).sum() for total in WEIGHTED.values()]
        assert np.allclose(line[1::4], expected, 1e-3)  # each has an error and an interval


def test_a_weighted_sum_of_bins_is_as_near_as_its_note_says(rows):
    batch = sql("SELECT SUM(weight * fee) AS s FROM t", DOMAIN)
    assert batch.derived[0].note.endswith(f"moves each row by at most {4 * HALF}")
    for line in _released(rows, ["SUM(weight * fee)"]):
        here = rows["g"] == line[0]
        true = (rows["weight"] * rows["fee"])[here].sum()
        assert abs(line[1] - true) <= rows["weight"][here].sum() * HALF


def test_a_product_of_two_numbers_by_knots_is_refused_by_their_names():
    with pytest.raises(SqlError, match="'income' and 'rate' are declared by knots"):
        sql("SELECT SUM(income * rate) FROM t", DOMAIN)
