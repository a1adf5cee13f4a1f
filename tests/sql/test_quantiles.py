"""Quantiles on exact counts are those of DuckDB: between two rows, or of one row."""

from __future__ import annotations

import random

import duckdb
import pytest

from lrm.domain import Categories, Domain, Integers
from lrm.queries.sql import sql
from sql_answers import Table

DOMAIN = Domain([Categories("g", ["a", "b", "c"]), Integers("x", -3, 40, null="cell")], "t")
QUANTILES = [
    "MEDIAN(x)",
    "QUANTILE_CONT(x, 0.25)",
    "QUANTILE_CONT(x, 0.9)",
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY x)",
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY x DESC)",
    "QUANTILE_DISC(x, 0.25)",
    "QUANTILE_DISC(x, 0.1)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x DESC)",
    "PERCENTILE_DISC(0.2) WITHIN GROUP (ORDER BY x DESC)",
    "MEDIAN(x) FILTER (WHERE x > 5)",
]


def _table(seed):
    make = random.Random(seed)  # noqa: S311 - not a secret
    rows = [
        (group, None if make.random() < 0.1 else make.randint(-3, 40))
        for group in "abc"
        for _ in range(make.randint(1, 12))
    ]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (g VARCHAR, x BIGINT)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    cells = [[DOMAIN.attributes[k].cell_of(row[k]) for k in range(2)] for row in rows]
    return Table(connection, DOMAIN, cells)


@pytest.mark.parametrize("seed", range(25))
def test_a_quantile_of_exact_counts_is_that_of_duckdb(seed):
    table = _table(seed)
    for quantile in QUANTILES:
        text = f"SELECT g, {quantile} AS q FROM t GROUP BY g"
        theirs = dict(table.connection.execute(text).fetchall())
        ours = table.exact(sql(text, DOMAIN))["q"]
        for ((_, group),), (value, _) in ours.items():
            want = theirs.get(group)
            if want is None:
                assert value != value  # noqa: PLR0124 - not a number
            else:
                assert value == pytest.approx(float(want), abs=1e-6), (quantile, seed, group)
