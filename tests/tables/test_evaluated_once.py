"""A row has one set of values in a count, even where its values come from a changing function.

Otherwise it is in one table and not in another, and moves more than its own counts.
"""

import secrets
import sys
import warnings

import duckdb
import numpy as np
import polars as pl
import pytest

from engines import empty_postgres_database
from lrm.domain import Bins, Categories, Domain, Integers, PrivacyUnit
from lrm.privacy.mechanism import shown_to_owner
from lrm.queries.maps.products.tabulation import Tabulation
from lrm.tables import open_table

ROWS = 600
ATTRIBUTES = {
    "few cells": Integers("a", 0, 1),
    "many edges": Bins("a", np.linspace(0, 2, 150).tolist()),
    "long list": Categories("a", (0, 1, *range(100, 200))),
}
UNITS = {
    "row": PrivacyUnit(),
    "person": PrivacyUnit("who", 3),
    "changing person": PrivacyUnit("changing", 3),
}


def drawn(number):
    return secrets.randbelow(4) + 0 * number


def duckdb_view(request):
    path = str(request.getfixturevalue("tmp_path") / "t.duckdb")
    with duckdb.connect(path) as db:
        db.execute("CREATE MACRO drawn() AS CAST(floor(random() * 4) AS INT)")
        db.execute(
            "CREATE VIEW v AS SELECT drawn() AS a, 0 AS b, n % 97 AS who, "
            f"nullif(drawn(), 0) AS changing FROM range({ROWS}) AS s(n)"
        )
    return path + "::v"


def polars_plan(request):
    del request
    number, changing = pl.col("n"), pl.col("n").map_elements(drawn, return_dtype=pl.Int64)
    return pl.LazyFrame({"n": range(ROWS)}).select(
        a=changing, b=0 * number, who=number % 97, changing=changing.replace(0, None)
    )


def postgres_view(request):
    del request
    import psycopg

    url = empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "CREATE FUNCTION drawn(n int) RETURNS int LANGUAGE sql STABLE "  # it is not stable
            "AS 'SELECT CAST(floor(random() * 4) AS int) + 0 * n'"
        )
        db.execute(
            "CREATE VIEW v AS SELECT drawn(n) AS a, 0 AS b, n % 97 AS who, "
            f"nullif(drawn(n), 0) AS changing FROM generate_series(1, {ROWS}) AS s(n)"
        )
    return url + ("&" if "?" in url else "?") + "table=v"


def spark_plan(request):
    from pyspark.sql import functions

    spark = request.getfixturevalue("spark")
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)

    def changed(number):
        from secrets import randbelow

        return randbelow(4) + 0 * number

    with warnings.catch_warnings():  # PySpark has doubts about pandas 3
        warnings.simplefilter("ignore", FutureWarning)
        changing = functions.udf(changed, "int")  # not declared as nondeterministic
    return spark.range(ROWS).select(
        changing("id").alias("a"),
        functions.lit(0).alias("b"),
        (functions.col("id") % 97).alias("who"),
        functions.nullif(changing("id"), functions.lit(0)).alias("changing"),
    )


SOURCES = (duckdb_view, polars_plan, postgres_view, spark_plan)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("source", SOURCES)
def test_tables_of_a_changing_column_have_the_same_rows(request, source, unit, attribute):
    domain = Domain([ATTRIBUTES[attribute], Integers("b", 0, 1)], unit=UNITS[unit])
    size = domain.shape[0]
    by_a = Tabulation((np.arange(size), np.zeros(2, dtype=int)), by=(0,))
    by_b = Tabulation((np.zeros(size, dtype=int), np.arange(2)), by=(1,))
    table = open_table(source(request))
    table.check(domain, [by_a, by_b])
    counts = shown_to_owner(table.counts(domain, [by_a, by_b]))
    assert counts[:size].sum() == counts[size:].sum()
    most = {"row": ROWS, "person": 97 * 3, "changing person": 4 * 3}[unit]
    assert 0 < counts[:size].sum() <= most
    if unit == "row":  # each is inside with probability 1/2: a false alarm has probability 10^-9
        assert abs(counts[:size].sum() - ROWS / 2) < 75
