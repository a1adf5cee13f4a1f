"""Functions of numbers in bins: compiled where they have one value on each cell, and rightly."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest

from lrm.domain import Bins, Categories, Domain
from lrm.errors import SqlError
from lrm.queries.sql import sql

EDGES = [-60.0, -15.0, 0.0, 15.0, 60.0, 120.0, 1440.0]
DOMAIN = Domain([Bins("x", EDGES, null="cell", nan="cell", outside="cell")], "t")
VALUES = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    0.1,
    59.5,
    -0.0,
    *(
        one
        for edge in EDGES
        for one in (edge, math.nextafter(edge, -1e9) if edge else -1e-270, edge + 1e-9, edge + 1)
    ),
]
KNOWN = [
    "x / 60 >= 1",
    "x / 15.0 < 1",
    "15 <= x * 1",
    "-x <= 0",
    "x - 15 >= 0",
    "(x - 60) * 5 / 9 < 0",
    "FLOOR(x / 60) = 1",
    "FLOOR(x / 60) <> 1",
    "FLOOR(x / 60) IN (1, 0)",
    "FLOOR(x / 15) BETWEEN 0 AND 0",
    "FLOOR(x / 60) * 2 + 1 > 2",
    "NOT (CEIL(x / -60) >= 0) OR x IS NULL",
    "COALESCE(x, 15) >= 15",
    "COALESCE(x / 60, 2) >= 2",
    "GREATEST(x, 15) < 60",
    "LEAST(x, 15) >= 15",
    "ABS(x) < 1e9 AND x >= -60 AND x < 1440",
    "SIGN(x - 15) >= 0 AND x < 1440",
    "CASE WHEN x / 60 >= 2 THEN 'b' WHEN x >= 0 THEN 'a' END = 'a'",
    "FLOOR(x / 60) = 1 AND FLOOR(x / 60) + 1 = 2",
]


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?)", [[value] for value in VALUES])
    return connection, DOMAIN.count({"x": value} for value in VALUES)


@pytest.mark.parametrize("condition", KNOWN)
def test_a_function_is_what_duckdb_answers_next_to_every_edge(table, condition):
    connection, counts = table
    text = f"SELECT COUNT(*) FROM t WHERE {condition}"
    assert sql(text, DOMAIN).queries.apply(counts).tolist() == [
        connection.execute(text).fetchall()[0][0]
    ]


def test_groups_and_sums_of_functions(table):
    connection, counts = table
    text = "SELECT FLOOR(x / 60) AS h, COUNT(*), SUM(FLOOR(x / 60)) FROM t WHERE x >= 0 AND x < 120"
    batch = sql(f"{text} AND x < 1440 GROUP BY h", DOMAIN)
    got = dict(zip(batch.names, batch.queries.apply(counts).tolist(), strict=True))
    for hour, count, total in connection.execute(f"{text} GROUP BY h").fetchall():
        assert got[f"q1.1[h={hour}]"] == count
        assert got[f"q1.2[h={hour}]"] == total


@pytest.mark.parametrize("seed", range(40))
def test_what_is_compiled_is_never_wrong(table, seed):
    """Random chains compared with random constants: refused, or as DuckDB has it."""
    connection, counts = table
    draw = np.random.default_rng(seed)
    text = "x"
    for _ in range(draw.integers(1, 4)):
        number = draw.choice(["2", "15", "0.1", "-3", "60.0", "1e3"])
        text = str(
            draw.choice(
                [
                    f"({text} + {number})",
                    f"({text} * {number})",
                    f"({text} / {number})",
                    f"({number} - {text})",
                    f"FLOOR({text})",
                    f"ROUND({text}, 1)",
                    f"ABS({text})",
                    f"GREATEST({text}, {number})",
                    f"-({text})",
                ]
            )
        )
    operation = draw.choice(["<", "<=", ">", ">=", "=", "<>"])
    for constant in ["0", "1", "15", "-0.25", "60", "2.0", "900"]:
        query = f"SELECT COUNT(*) FROM t WHERE {text} {operation} {constant}"
        try:
            batch = sql(query, DOMAIN)
        except SqlError as error:
            assert "cuts through" in str(error) or "is not constant" in str(error)  # noqa: PT017
            continue
        want = connection.execute(query).fetchall()[0][0]
        assert batch.queries.apply(counts).tolist() == [want], query


def test_a_cast_that_may_be_null_is_not_taken_for_monotone():
    """TRY_CAST is NULL at both ends of [-200, 200) and a number between them."""
    domain = Domain([Bins("x", [-200, 200, 300]), Categories("g", ["a"])], "t")
    for text in ("COUNT(TRY_CAST(x AS TINYINT))", "COUNT_IF(TRY_CAST(x AS TINYINT) IS NULL)"):
        with pytest.raises(SqlError, match="is not constant"):
            sql(f"SELECT {text} FROM t", domain)
    with pytest.raises(SqlError, match="is not constant"):
        sql("SELECT COUNT(*) FROM t WHERE COALESCE(TRY_CAST(x AS TINYINT), 5) = 5", domain)


@pytest.mark.parametrize("text", ["AVG(x)", "SUM(x)", "SUM(CASE WHEN g = 'a' THEN x END)"])
def test_a_sum_over_a_cell_of_nan_is_refused_with_a_way_out(text):
    domain = Domain([Bins("x", [0, 10, 20], nan="cell"), Categories("g", ["a", "b"])], "t")
    with pytest.raises(SqlError, match=r"no number for the cell \(nan\) of 'x'.*filter it away"):
        sql(f"SELECT {text} FROM t", domain)
    sql(f"SELECT {text} FROM t WHERE x < 20", domain)


PRODUCT = Domain(
    [
        Bins("price", [0, 10, 20, 50], representatives=[4, 15, 30], null="cell"),
        Bins("rate", [-1, 0, 1]),
        Categories("items", [1, 2, 3]),
    ],
    "t",
)


@pytest.mark.parametrize(
    "expression",
    [
        "price * items",
        "price * rate",
        "price * rate * items",
        "2 * price * (1 - rate)",
        "price * items - rate",
        "(price + 5) * items",
    ],
)
def test_products_of_columns_are_those_of_representatives_with_an_honest_bound(expression):
    batch = sql(f"SELECT SUM({expression}) AS s, AVG({expression}) AS m FROM t", PRODUCT)
    total, mean = batch.derived
    middles = {"price": [4, 15, 30, None], "rate": [-0.5, 0.5], "items": [1, 2, 3]}
    queries = batch.queries.dense()
    (row,) = total.input_rows()[0].tolist()
    weights = queries[row].reshape(4, 2, 3) * total.inputs[0].scale
    draw = np.random.default_rng(3)
    for cell in np.ndindex(4, 2, 3):
        names = dict(zip(middles, cell, strict=True))
        values = {name: middles[name][place] for name, place in names.items()}
        want = 0.0 if values["price"] is None else eval(expression, {}, values)  # noqa: S307
        assert np.isclose(weights[cell], want)
        if values["price"] is None:
            continue
        for _ in range(20):
            real = dict(values)
            real["price"] = draw.uniform(*[0, 10, 20, 50][cell[0] : cell[0] + 2])
            real["rate"] = draw.uniform(*[-1, 0, 1][cell[1] : cell[1] + 2])
            assert abs(eval(expression, {}, real) - want) <= total.binning + 1e-9  # noqa: S307
    assert mean.binning <= total.binning + 1e-9


def test_a_product_of_a_column_with_itself_says_what_is_supported():
    with pytest.raises(SqlError, match="sums and products of different columns") as caught:
        sql("SELECT SUM(price * price) FROM t", PRODUCT)
    assert caught.value.code == "cut"
