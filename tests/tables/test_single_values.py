"""Single values raised errors, before payment or after it.

Before: a Parquet timestamp out of range failed ``--dry-run``, as DuckDB's EXPLAIN met it in the
file's statistics; one int in a pandas categorical changed the column's type. After: text that is
not UTF-8 in Parquet, timestamps in seconds or milliseconds that overflow as microseconds, Spark's
instants near the end of their range, ``Decimal('sNaN')``, unhashable ids, an id of 250 MB. Whether
a run fails told that such a value is there. Now each follows the declared rule for values outside
the domain, and ``check`` tries the very query of ``counts`` on an empty table.
"""

import datetime as dt
import math
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lrm.cli import main
from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.domain.file import domain_text
from lrm.errors import TableError
from lrm.tables import open_table

CELL = {"null": "cell", "outside": "cell"}
ALL = {**CELL, "nan": "cell"}
YEAR = Dates("x", "2024-01-01", "2024-12-31", "year", **CELL)  # 2024, below, above, invalid, null
DAYS = Dates("x", "2024-01-01", "2024-12-31", "year", time=False, **CELL)
LETTERS = Categories("x", ["a", "é"], **CELL)
DIGIT = Integers("x", 0, 9, 10, **ALL)  # 0..9, below, above, invalid, nan, null


def counted(source, attribute, **unit):
    domain = Domain([attribute], unit=PrivacyUnit(**unit))
    table = open_table(source)
    table.check(domain)
    return table.counts(domain)._open().tolist()


def sources(table, folder):
    """The forms in which a table of Arrow reaches DuckDB."""
    pq.write_table(table, folder / "x.parquet")
    yield folder / "x.parquet"
    yield table
    yield ds.dataset(folder / "x.parquet")
    yield table.to_pandas(types_mapper=pd.ArrowDtype)


def stamps(unit, numbers, zone=None):
    return pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, tz=zone))


FAR = 2**62
MAX = 2**63 - 1


@pytest.mark.parametrize("zone", [None, "UTC", "Mars/Phobos"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_timestamps_at_the_ends_of_64_bits(tmp_path, unit, zone):
    """Statistics of the file and values alike; a zone that nobody knows is no matter."""
    table = pa.table({"x": stamps(unit, [0, None, FAR, -FAR, MAX, -MAX, -MAX - 1], zone)})
    for source in sources(table, tmp_path):
        assert counted(source, YEAR) == [0, 4, 2, 0, 1]


def test_seconds_days_and_their_fractions():
    table = pa.table({"x": stamps("s", [FAR, -FAR, 1704067200, 1704067199])})
    assert counted(table, YEAR) == [1, 2, 1, 0, 0]
    assert counted(pl.from_arrow(pa.table({"x": stamps("ms", [FAR])})), YEAR) == [0, 0, 1, 0, 0]
    assert counted(pd.DataFrame({"x": np.array([FAR, 0], "M8[s]")}), YEAR) == [0, 1, 1, 0, 0]
    table = pa.table({"x": pa.array([MAX, -MAX, 1704067200001], pa.int64()).view(pa.date64())})
    assert counted(table, YEAR) == [1, 1, 1, 0, 0]
    ends = [2**31 - 1, -(2**31), 1 - 2**31]
    table = pa.table({"x": pa.array(ends, pa.int32()).cast(pa.date32())})
    assert counted(table, YEAR) == [0, 2, 1, 0, 0]


def test_the_last_nanosecond_of_a_day_is_on_that_day(tmp_path):
    """DuckDB rounds to microseconds, and so to the next day."""
    table = pa.table({"x": stamps("ns", [1704067199999999999, -1])})
    for source in sources(table, tmp_path):
        assert counted(source, YEAR) == [0, 2, 0, 0, 0]


def test_timestamps_stored_in_duckdb(tmp_path):
    for unit, name in (("s", "TIMESTAMP_S"), ("ms", "TIMESTAMP_MS"), ("ns", "TIMESTAMP_NS")):
        path = tmp_path / f"{unit}.duckdb"
        with duckdb.connect(str(path)) as db:
            db.register("rows", pa.table({"x": stamps(unit, [FAR, -FAR, MAX, -MAX, None])}))
            db.execute("CREATE TABLE t AS FROM rows")
            assert db.execute("DESCRIBE t").fetchone()[1] == name
        assert counted(f"{path}::t", YEAR) == [0, 2, 2, 0, 1]


NOT_TEXT = [b"a", b"\xff\xfe", b"a\xff", b"\xc3\xa9", b"\xed\xa0\x80", None]


@pytest.mark.parametrize("stored", [pa.string(), pa.large_string()])
def test_text_that_is_not_utf8(tmp_path, stored):
    binary = pa.binary() if stored == pa.string() else pa.large_binary()
    table = pa.table({"x": pa.array(NOT_TEXT, binary).view(stored), "y": range(6)})
    many = Categories("x", ["a", "é", *map(str, range(90))], **CELL)
    for source in sources(table, tmp_path):
        assert counted(source, LETTERS) == [1, 1, 3, 1]
        assert counted(source, many)[-2:] == [3, 1]
        # As the name of a person it is bytes like any other.
        assert sum(counted(source, Integers("y", 0, 5), column="x", max_rows=1)) == 5


def test_other_ways_to_hold_text():
    views = pa.array(["a", "long" * 20, None], pa.string_view())
    assert counted(pa.table({"x": views}), LETTERS) == [1, 0, 1, 1]
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "q"]))
    assert counted(pa.table({"x": coded}), LETTERS) == [1, 0, 1, 2]
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 4], pa.array(["a", None, "q"]))
    assert counted(pa.table({"x": runs}), LETTERS) == [2, 0, 1, 1]


BEYOND = [5, 2**127 - 1, -(2**127), 10**14]


@pytest.mark.parametrize(("precision", "scale"), [(38, 10), (38, 38), (12, 2)])
def test_decimals_beyond_their_precision(tmp_path, precision, scale):
    """Bits that no decimal of the type has: DuckDB failed, or read other memory."""
    bits = b"".join(number.to_bytes(16, "little", signed=True) for number in BEYOND)
    decimal = pa.decimal128(precision, scale)
    array = pa.Array.from_buffers(decimal, len(BEYOND), [None, pa.py_buffer(bits)])
    for source in sources(pa.table({"x": array}), tmp_path):
        for attribute in (DIGIT, Bins("x", [0, 1, 2], **ALL), Bins("x", np.arange(99), **ALL)):
            assert sum(counted(source, attribute)) == len(BEYOND)


class Raises:
    """An object that cannot be looked at."""

    def __eq__(self, other):
        raise RuntimeError

    def __hash__(self):
        raise RuntimeError


OBJECTS = [
    *[1, "1", None, math.nan, pd.NA, pd.NaT, Decimal("sNaN"), Decimal("NaN"), [1], {}, Raises()],
    *[10**400, -(10**400), Decimal("1e999999"), math.inf, np.float32(2), np.datetime64("NaT")],
    *[True, dt.date(2024, 1, 1), dt.datetime.max.replace(tzinfo=dt.UTC), "\ud800", b"\xff", 1j],
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=5))),
]


@pytest.mark.parametrize("attribute", [YEAR, LETTERS, DIGIT, Bins("x", [0, 5], **ALL)])
def test_every_python_object_is_in_a_cell(attribute):
    frame = pd.DataFrame({"x": pd.Series(OBJECTS, dtype=object), "y": 1})
    assert sum(counted(frame, attribute)) == len(OBJECTS)
    ids = counted(frame, Integers("y", 1, 1), column="x", max_rows=1)
    assert ids == [5]  # 1 and '1' are one person; then ±10**400, '\ud800' and b'\xff'


def test_one_value_does_not_change_the_type_of_a_categorical():
    for values in (["a", "q", None], ["a", 1, None], ["a", pd.Timestamp(0), None]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype="category")})
        assert counted(frame, LETTERS) == [1, 0, 1, 1]
        assert dict(open_table(frame).columns()) == {"x": "category"}
    numbers = pd.DataFrame({"x": pd.Series([3, None, 3, 11], dtype="category")})
    assert counted(numbers, DIGIT) == [2, 0, 1, 0, 0, 1]


@pytest.mark.slow
def test_a_name_and_a_text_of_250_megabytes(tmp_path):
    huge = "u" * 250_000_000
    named = pa.table({"who": [huge, "v", None], "x": ["a", "é", "é"]})
    assert counted(named, LETTERS, column="who", max_rows=1)[:2] == [1, 1]
    pq.write_table(pa.table({"x": [huge, "é", "a"]}), tmp_path / "x.parquet")
    assert counted(tmp_path / "x.parquet", LETTERS)[:2] == [1, 1]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_instants_and_texts_of_spark(spark, tmp_path, ansi):
    texts = pa.array([*NOT_TEXT, None], pa.binary()).view(pa.string())
    numbers = [MAX, -MAX, -MAX - 1, 0, -1, 1704067200000000, None]
    table = pa.table({"x": stamps("us", numbers, "UTC"), "y": texts})
    pq.write_table(table, tmp_path / "x.parquet")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert counted(f"spark:{tmp_path}/x.parquet", YEAR) == [1, 4, 1, 0, 1]
        letters = Categories("y", LETTERS.values, **CELL)
        assert counted(f"spark:{tmp_path}/x.parquet", letters) == [1, 1, 3, 2]
        ids = counted(f"spark:{tmp_path}/x.parquet", letters, column="y", max_rows=1)
        assert ids == [1, 1, 3, 0]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_check_tries_the_query_of_counts(tmp_path):
    """No row is looked at: what a view does to its rows is met by ``counts`` alone."""
    with duckdb.connect(str(tmp_path / "x.duckdb")) as db:
        db.execute("CREATE VIEW v AS SELECT error('a row was read')::INTEGER AS x FROM range(9)")
    table = open_table(f"{tmp_path}/x.duckdb::v")
    table.check(Domain([Integers("x", 0, 9)]))
    with pytest.raises(TableError, match="counting table 'v' failed"):
        table.counts(Domain([Integers("x", 0, 9)]))


def test_the_command_ends_alike_whatever_one_value_is(tmp_path, monkeypatch):
    """Dry run and release, by exit code and messages."""
    (tmp_path / "d.yaml").write_text(domain_text(Domain([DAYS], "t")))
    (tmp_path / "q.sql").write_text("SELECT x, COUNT(*) AS n FROM t GROUP BY x")

    monkeypatch.chdir(tmp_path)

    def lrm(*args):
        return CliRunner().invoke(main, args)

    made = lrm("plan", "q.sql", "--domain", "d.yaml", "-o", "p.lrm", "-m", "noise-on-data")
    assert made.exit_code == 0, made.stderr
    seen = []
    for number in (0, FAR):
        pq.write_table(pa.table({"x": stamps("ms", [0, number])}), tmp_path / "t.parquet")
        common = ["release", "p.lrm", "--table", "t.parquet", "--epsilon", "1", "--no-ledger"]
        dry, done = lrm(*common, "--dry-run"), lrm(*common, "-o", "r.lrm", "--force")
        seen.append((dry.exit_code, dry.stdout, dry.stderr, done.exit_code, done.stderr))
    assert seen[0] == seen[1]
    assert (seen[0][0], seen[0][3]) == (0, 0), seen[0]
