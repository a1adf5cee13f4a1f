"""NaN and NULL in frames: what a frame library calls missing is NULL, and NaN elsewhere is a value.

Each frame is compared with what DuckDB itself says about it: ``x IS NULL`` and ``isnan(x)``.
"""

import math
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lrm
from lrm.domain import Bins, Domain, Integers
from lrm.tables import open_table

VALUES = [1.0, math.nan, None, 7.0, math.nan]
RULES = {"null": "cell", "nan": "cell", "outside": "cell"}
ARROW = pa.array(VALUES, pa.float64())
DIVIDED = pd.Series([1.0, 0.0, None, 7.0, 0.0], dtype="Float64") / pd.Series(
    [1.0, 0.0, 1.0, 1.0, 0.0], dtype="Float64"
)

FRAMES = {
    "pandas float64": pd.DataFrame({"x": VALUES}),
    "pandas float32": pd.DataFrame({"x": np.array(VALUES, dtype="f4")}),
    "pandas float16": pd.DataFrame({"x": np.array(VALUES, dtype="f2")}),
    "pandas Float64": pd.DataFrame({"x": DIVIDED}),
    "pandas object": pd.DataFrame({"x": pd.Series(VALUES, dtype=object)}),
    "pandas category": pd.DataFrame({"x": pd.Categorical(VALUES)}),
    "pandas of Arrow": pd.DataFrame({"x": pd.Series(ARROW, dtype=pd.ArrowDtype(pa.float64()))}),
    "Polars": pl.DataFrame({"x": VALUES}, schema={"x": pl.Float64}, strict=False),
    "Polars lazy": pl.DataFrame({"x": VALUES}, schema={"x": pl.Float64}).lazy(),
    "Polars from pandas": pl.from_pandas(pd.DataFrame({"x": VALUES})),
    "Arrow": pa.table({"x": ARROW}),
    "Arrow from pandas": pa.Table.from_pandas(pd.DataFrame({"x": VALUES})),
}


def expected(frame):
    """Rows that are numbers, NaN and NULL, as DuckDB reads the frame."""
    read = "SELECT count(x) - count_if(isnan(x)), count_if(isnan(x)), count_if(x IS NULL) FROM "
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    return duckdb.sql(read + "(SELECT CAST(x AS DOUBLE) AS x FROM frame)").fetchall()[0]


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("attribute", [Bins("x", [0, 9], **RULES), Integers("x", 0, 8, 9, **RULES)])
def test_a_frame_is_counted_as_duckdb_reads_it(name, attribute):
    frame = FRAMES[name]
    counts = open_table(frame).counts(Domain([attribute]))._open()
    numbers, _, _, _, nan, null = counts.tolist()
    assert (numbers, nan, null) == expected(frame)
    missing = 3 if name in {"Polars from pandas", "Arrow from pandas"} else 1
    assert null == (3 if name.split()[0] == "pandas" and "Arrow" not in name else missing)


def test_many_edges_take_another_way_to_the_same_cells():
    attribute = Bins("x", np.linspace(0, 9, 200), **RULES)
    for name, frame in FRAMES.items():
        counts = open_table(frame).counts(Domain([attribute]))._open().tolist()
        assert (sum(counts[:-2]), *counts[-2:]) == expected(frame), name


def test_decimals_of_pandas():
    values = [Decimal(1), Decimal("NaN"), Decimal("sNaN"), None]
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    counts = open_table(frame).counts(Domain([Bins("x", [0, 9], **RULES)]))._open().tolist()
    assert counts == [1, 0, 0, 0, 0, 3]


def test_sql_means_the_same_on_a_pandas_frame_as_in_duckdb():
    """COUNT(x), IS NULL and comparisons, at a budget that leaves nearly no noise."""
    frame = pd.DataFrame({"delay": [20.0, math.nan, 3.0, math.nan, 15.0, 0.0]})
    domain = Domain([Integers("delay", 0, 30, **RULES)], "flights")
    text = """SELECT COUNT(delay) AS n FROM flights;
SELECT COUNT(*) AS missing FROM flights WHERE delay IS NULL;
SELECT COUNT(*) AS late FROM flights WHERE delay >= 15;"""
    plan = lrm.plan(lrm.sql(text, domain), effort="quick")
    with pytest.warns(lrm.errors.PrivacyWarning):
        answers = lrm.release(plan, frame, epsilon=1000, ledger=None).answers
    with duckdb.connect() as db:
        db.register("flights", frame)
        direct = [db.execute(one).fetchall()[0][0] for one in text.split(";")[:3]]
    assert answers.round().tolist() == direct == [4, 2, 2]
