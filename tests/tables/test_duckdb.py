"""Types and files that only DuckDB reads."""

import datetime as dt
import gzip
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.privacy.unit import GroupLimit
from lrm.tables import open_table
from lrm.tables.count import count_of
from lrm.tables.locate import locator
from lrm.tables.row_limit import RowLimit
from lrm.tables.tally import Tally

CELL = {"null": "cell", "outside": "cell"}
FLOATS = st.floats(allow_nan=False, width=64)


def beside(edges):
    """The edges and their neighbours; those of the largest floats are infinite."""
    with np.errstate(over="ignore"):
        return [edges, np.nextafter(edges, -math.inf), np.nextafter(edges, math.inf)]


@given(st.lists(FLOATS, min_size=2, max_size=60, unique=True), st.lists(FLOATS, max_size=60))
def test_locator_is_bisection(edges, values):
    edges = np.unique(np.array(edges) + 0.0)
    values = np.concatenate([np.array(values), *beside(edges)])
    expected = np.searchsorted(edges, values, side="right")
    np.testing.assert_array_equal(locator(edges)(values), expected)


@settings(max_examples=30)
@given(st.integers(1, 400), FLOATS.filter(lambda x: abs(x) < 1e100), st.floats(1e-6, 1e6))
def test_locator_on_even_edges(number, start, width):
    edges = np.unique(start + width * np.arange(number + 1))
    values = np.concatenate([*beside(edges), edges + width / 3, [math.inf, -math.inf]])
    expected = np.searchsorted(edges, values, side="right")
    np.testing.assert_array_equal(locator(edges)(values), expected)


TYPED = {
    "UTINYINT": ["0", "255", "7"],
    "TINYINT": ["-128", "127", "7"],
    "UBIGINT": ["0", "18446744073709551615", "9007199254740993"],
    "HUGEINT": [
        "170141183460469231731687303715884105727",
        "-1",
        "9007199254740993",
        "1" + "0" * 35,
    ],
    "UHUGEINT": ["340282366920938463463374607431768211455", "7", "9007199254740993"],
    "DECIMAL(4,1)": ["7.0", "7.1", "-999.9"],
    "DECIMAL(18,17)": ["7.00000000000000001", "0.1", "0.30000000000000004"],
    "DECIMAL(38,38)": ["0.1", "0.30000000000000000000000000000000000004", "0.0"],
    "DECIMAL(38,0)": ["7", "99999999999999999999999999999999999999", "9007199254740993"],
    "FLOAT": ["7", "0.1", "nan", "-inf"],
}


@pytest.mark.parametrize("type_text", TYPED)
def test_numbers_of_every_width(tmp_path, type_text):
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(f"CREATE TABLE t (x {type_text})")
        db.executemany(
            f"INSERT INTO t VALUES (?::VARCHAR::{type_text})", [[v] for v in TYPED[type_text]]
        )
        db.execute("INSERT INTO t VALUES (NULL)")
        rows = [{"x": value} for (value,) in db.execute("SELECT x FROM t").fetchall()]
    table = open_table(f"{path}::t")
    for attribute in (
        Integers("x", -128, 255, **CELL, nan="cell"),
        Integers("x", 7, 2**53 + 1, width=2**50, **CELL),
        Categories("x", [7, 2**53 + 1], **CELL),
        Bins("x", [0, 0.1, 0.3, 0.30000000000000004, 7, 2.0**53, 1e35], **CELL, nan="cell"),
        Bins("x", [number / 10 for number in range(101)], **CELL, nan="cell"),
    ):
        domain = Domain([attribute])
        table.check(domain)
        assert table.counts(domain)._open().tolist() == domain.count(rows).tolist(), attribute


def test_texts_and_times_of_other_types(tmp_path):
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(
            "CREATE TABLE t AS SELECT 'b'::ENUM('a', 'b') AS e,"
            " '2024-05-01 23:59:59'::TIMESTAMP_NS AS ns,"
            " 'infinity'::DATE AS never, '-infinity'::TIMESTAMP AS always"
        )
    table = open_table(f"{path}::main.t")
    span = ("2024-01-01", "2024-12-31")
    domain = Domain(
        [
            Categories("e", ["a", "b"]),
            Dates("ns", *span, "month"),
            Dates("never", *span, "year", **CELL),
            Dates("always", *span, "year", **CELL),
        ]
    )
    counted = table.counts(domain)._open().reshape(domain.shape)
    assert counted.sum() == 1
    assert counted[1, 4, 2, 1] == 1  # b, May, above, below


def test_csv_is_read_by_what_is_declared(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(
        "﻿who,age,wage,born,sex\r\n"
        'a,"007", 1e3 ,2024-01-31,""\r\n'
        "b,7.0,nan,2024-02-30,f\r\n"  # no such day
        "c,seven,-inf,2024-01-01T23:00:00-05:00,f \r\n"  # the next day in UTC
        "d,,,,\r\n"
        "too,few\r\n"
        "e,1e400,0x10,31.01.2024,F\r\n"
        "far,too,many,fields,in,this,line\r\n"
        "f,1_000,1_000,2024-1-1,f\r\n"
    )
    table = open_table(path)
    domain = Domain([Integers("age", 0, 9, **CELL)])
    assert table.counts(domain)._open().tolist() == [0] * 7 + [2, 0, 0, 0, 1, 4, 1]
    domain = Domain([Bins("wage", [0, 1000, 2000], **CELL, nan="cell")])
    assert table.counts(domain)._open().tolist() == [0, 1, 1, 0, 4, 1, 1]
    domain = Domain([Dates("born", "2024-01-01", "2024-01-31", **CELL)])
    counted = table.counts(domain)._open()
    assert (counted[30], counted[1], counted[-1], counted[-2]) == (1, 1, 1, 5)
    domain = Domain([Categories("sex", ["f", ""], **CELL)])
    assert table.counts(domain)._open().tolist() == [2, 1, 4, 1]


def test_csv_types_and_form_do_not_depend_on_rows(tmp_path):
    path = tmp_path / "x.csv"
    texts = ["1;2,a", "3;4,b", "5|6,c"]
    path.write_text("x,y\n" + "\n".join(texts) + "\n")
    domain = Domain([Categories("y", ["a", "b", "c"])])
    assert open_table(path).counts(domain)._open().tolist() == [1, 1, 1]
    assert dict(open_table(path).columns()) == {"x": "text (CSV)", "y": "text (CSV)"}


def test_tabs_compression_and_odd_file_names(tmp_path):
    domain = Domain([Integers("a", 1, 3)])
    (tmp_path / "x[1].tsv").write_text("a\tb\n1\tx\n3\t\n")
    assert open_table(tmp_path / "x[1].tsv").counts(domain)._open().tolist() == [1, 0, 1]
    with gzip.open(tmp_path / "y.csv.gz", "wt") as opened:
        opened.write("a,b\n2,x\n")
    assert open_table(tmp_path / "y.csv.gz").counts(domain)._open().tolist() == [0, 1, 0]


def test_pandas_columns_of_objects_follow_the_plain_rules():
    frame = pd.DataFrame(
        {
            "x": pd.Series([1, "1", None, float("nan"), 2.0, True, pd.NA, pd.NaT], dtype=object),
            "day": pd.Series([dt.date(2024, 1, 1), pd.NaT, "2024-01-01", None] * 2, dtype=object),
        }
    )
    domain = Domain([Integers("x", 1, 2, null="cell")])
    assert open_table(frame).counts(domain)._open().tolist() == [1, 1, 4]  # NaN is NULL
    domain = Domain([Dates("day", "2024-01-01", "2024-01-01", null="cell")])
    assert open_table(frame).counts(domain)._open().tolist() == [2, 4]
    persons = Domain([Dates("day", "2024-01-01", "2024-01-01")], unit=PrivacyUnit("x", 1))
    assert open_table(frame).counts(persons)._open().tolist() == [1]  # of 1 and 2.0; 2.0 is no name


def test_categorical_frames():
    frame = pd.DataFrame({"x": pd.Categorical(["a", None, "b"]), "y": [0.5, math.nan, 1.5]})
    domain = Domain([Categories("x", ["b"], **CELL), Bins("y", [0, 1], **CELL, nan="cell")])
    rows = [{"x": "a", "y": 0.5}, {"x": None, "y": math.nan}, {"x": "b", "y": 1.5}]
    expected = domain.count([rows[0], {"x": None, "y": None}, rows[2]])
    assert open_table(frame).counts(domain)._open().tolist() == expected.tolist()
    polars = pl.DataFrame(
        {"x": ["a", None, "b"], "y": [0.5, None, 1.5]}, schema_overrides={"x": pl.Categorical}
    )
    assert open_table(polars).counts(domain)._open().tolist() == expected.tolist()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 2)), max_size=60),
    st.integers(1, 4),
    st.none()
    | st.builds(
        GroupLimit, st.sampled_from("xy"), st.integers(1, 3), st.none() | st.integers(1, 3)
    ),
)
def test_rows_of_a_person_are_chosen_however_batches_are_cut(rows, max_rows, by):
    """The choice is that of plain Python, for batches of any size; y = 2 is dropped."""
    attributes = [Integers("x", 0, 3), Integers("y", 0, 1)]
    domain = Domain(attributes, unit=PrivacyUnit("who", max_rows, by=by)).with_rest([1])
    expected = domain.count([{"who": who, "x": x, "y": y} for who, x, y in rows], b"key").tolist()
    rows = sorted((who, int(y == 2), 3 * x + y) for who, x, y in rows)
    for size in (1, 2, 7, 60):
        count = count_of(domain, None)
        tally = Tally(count)
        with RowLimit(tally, count, b"key") as limit:
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                persons = pa.array([who for who, _, _ in part], pa.int64())
                later, cells = np.array([row[1:] for row in part], dtype=np.int64).T
                limit.add(persons, [cells], later)
        assert tally.true_counts()._open().tolist() == expected


@pytest.mark.parametrize("max_rows", [1, 3])
def test_one_person_changes_counts_by_at_most_the_declared_bound(max_rows):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"who": rng.integers(0, 30, 400), "x": rng.random(400)})
    bins = {8: np.linspace(0, 1, 9), 200: np.linspace(0, 1, 201)}
    for edges in bins.values():
        domain = Domain([Bins("x", edges)], unit=PrivacyUnit("who", max_rows))
        whole = open_table(frame).counts(domain)._open()
        for person in range(0, 30, 7):
            less = open_table(frame.filter(pl.col("who") != person)).counts(domain)._open()
            assert np.abs(whole - less).sum() <= max_rows
