"""Columns of times: the cell of each timestamp is the same on every source."""

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lrm
from engines import empty_postgres_database
from lrm.domain import CsvForm, Dates, Domain
from lrm.domain.file import domain_text, read_domain
from lrm.errors import DomainError, TableWarning
from lrm.tables import open_table

CELL = {"null": "cell", "outside": "cell"}
SPAN = "1969-12-31", "1970-01-02"
TIMES = [
    None,
    *("0001-01-01 00:00:00", "1969-12-30 23:59:59.999999", "1969-12-31 00:00:00"),
    *("1969-12-31 23:14:59.999999", "1969-12-31 23:15:00", "1969-12-31 23:59:59.999999"),
    *("1970-01-01 00:00:00", "1970-01-01 00:14:59", "1970-01-02 05:59:59.999999"),
    *("1970-01-02 06:00:00", "1970-01-02 23:59:59.999999", "1970-01-03 00:00:00"),
    "9999-12-31 23:59:59",
]
VALUES = [None if text is None else dt.datetime.fromisoformat(text) for text in TIMES]
STEPS = ["hour", "6 hours", "15 minutes", "minute", "day", "month"]


def attribute(by):
    span = ("1969-12-01", "1970-01-31") if by == "month" else SPAN
    return Dates("ts", *span, by, time=True, **CELL)


def _frame(unit=None, zone=None):
    column = pa.array(VALUES, pa.timestamp("us", tz=zone))
    kept = column if unit is None else column.cast(pa.timestamp(unit, tz=zone), safe=False)
    return pa.table({"ts": kept})


def _csv(folder):
    (folder / "x.csv").write_text("ts\n" + "\n".join(text or "" for text in TIMES) + "\n")


def _sources(folder):
    """Frames and files, each with the unit of its times."""
    for unit in ("us", "s", "ms"):
        yield _frame(unit), unit
        with duckdb.connect(str(folder / f"{unit}.duckdb")) as db:
            db.register("rows", _frame(unit))
            db.execute("CREATE TABLE t AS FROM rows")
        yield folder / f"{unit}.duckdb::t", unit
    yield _frame(zone="Asia/Kolkata"), "us"
    yield pl.from_arrow(_frame()), "us"
    yield _frame().to_pandas(types_mapper=pd.ArrowDtype), "us"
    yield pd.DataFrame({"ts": pd.Series(VALUES, dtype=object)}), "us"
    for zone in (None, "UTC"):
        pq.write_table(_frame(zone=zone), folder / f"{zone}.parquet")
        yield folder / f"{zone}.parquet", "us"


def counted(source, by):
    domain = Domain([attribute(by)])
    table = open_table(source)
    table.check(domain)
    return table.counts(domain)._open().tolist()


def expected(by, unit="us"):
    values = _frame(unit).column("ts").to_pylist()
    return Domain([attribute(by)]).count({"ts": value} for value in values).tolist()


def test_the_reference_places_times_by_hand():
    cells = attribute("6 hours")
    found = [cells.cell_of(value) for value in VALUES]
    assert found == [15, 12, 12, 0, 3, 3, 3, 4, 4, 8, 9, 11, 13, 13]
    assert cells.cell_of(dt.date(1970, 1, 1)) == 4
    assert (
        cells.cell_of(dt.datetime(1970, 1, 1, 5, 30, tzinfo=dt.timezone(dt.timedelta(hours=6))))
        == 3
    )
    assert cells.cell_of("1970-01-01") == 14


@pytest.mark.parametrize("by", STEPS)
def test_every_frame_and_file_has_the_counts_of_the_reference(tmp_path, by):
    for source, unit in _sources(tmp_path):
        assert counted(source, by) == expected(by, unit), source


def test_nanoseconds_are_rounded_down(tmp_path):
    bits = [-1, 0, 3_600_000_000_000 - 1, 3_600_000_000_000, 86_400_000_000_000 - 1, None]
    table = pa.table({"ts": pa.array(bits, pa.int64()).cast(pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "ns.parquet")
    with duckdb.connect(str(tmp_path / "ns.duckdb")) as db:
        db.register("rows", table)
        db.execute("CREATE TABLE t AS FROM rows")
    hours = Dates("ts", "1969-12-31", "1970-01-01", "hour", **CELL)
    wanted = [0] * 52
    for cell, count in ((23, 1), (24, 2), (25, 1), (47, 1), (51, 1)):
        wanted[cell] = count
    domain = Domain([hours])
    for source in (table, table.to_pandas(), tmp_path / "ns.parquet", f"{tmp_path}/ns.duckdb::t"):
        assert open_table(source).counts(domain)._open().tolist() == wanted


@pytest.mark.parametrize("by", ["hour", "15 minutes", "day"])
def test_csv_files_in_their_own_form_and_in_others(tmp_path, by):
    _csv(tmp_path)
    assert counted(tmp_path / "x.csv", by) == expected(by)
    texts = ["31.12.1969 23:15", "1.1.1970 00:00", "01.01.1970 25:00", "01.01.1970"]
    (tmp_path / "form.csv").write_text("ts\n" + "\n".join(texts) + "\n")
    domain = Domain([attribute(by)], csv=CsvForm(dates="%d.%m.%Y %H:%M"))
    cells = [attribute(by).cell_of(value) for value in (VALUES[5], dt.date(1970, 1, 1))]
    got = open_table(tmp_path / "form.csv").counts(domain)._open()
    assert got[cells].tolist() == [1, 1]
    assert got[attribute(by).special_cell("(invalid)")] == 2


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
def test_postgres(kind):
    import psycopg

    url = empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SET TIME ZONE 'UTC'")
        db.execute(f"CREATE TABLE t (ts {kind})")
        for text in TIMES:
            db.execute("INSERT INTO t VALUES (%s)", [text])
    address = url + ("&" if "?" in url else "?") + "table=t"
    for by in STEPS:
        assert counted(address, by) == expected(by)


def test_spark(spark):
    rows = " UNION ALL ".join(
        "SELECT NULL AS ts" if text is None else f"SELECT TIMESTAMP_NTZ '{text}' AS ts"
        for text in TIMES
    )
    local = spark.sql(rows)
    instants = spark.sql(rows.replace("TIMESTAMP_NTZ '", "TIMESTAMP '").replace("' AS", " UTC' AS"))
    for by in ("hour", "15 minutes", "day"):
        assert counted(local, by) == expected(by)
        assert counted(instants, by) == expected(by)


def plan_of(**rules):
    return lrm.plan("SELECT COUNT(*) FROM t", domain=Domain([Dates("ts", *SPAN, **rules)], "t"))


def test_a_release_warns_where_times_are_declared_as_days(tmp_path):
    """Comparisons would see the day of each timestamp alone, without a word."""
    for source in (_frame(), _frame(zone="UTC"), _frame().to_pandas(types_mapper=pd.ArrowDtype)):
        with pytest.warns(TableWarning, match=r"'ts' .* time: true"):
            lrm.release(plan_of(), source, epsilon=1, ledger=None)
        for told in ({"time": True}, {"time": False}):
            lrm.release(plan_of(**told), source, epsilon=1, ledger=None)
    days = pa.table({"ts": np.array(["1970-01-01"], "M8[D]")})
    lrm.release(plan_of(), days, epsilon=1, ledger=None)


@pytest.mark.filterwarnings("ignore::lrm.errors.ReleaseWarning")  # of one row, with noise
def test_a_csv_form_with_hours_warns_too(tmp_path):
    (tmp_path / "x.csv").write_text("ts\n01.01.1970 10:00\n")
    domain = Domain([Dates("ts", *SPAN)], "t", csv=CsvForm(dates="%d.%m.%Y %H:%M"))
    plan = lrm.plan("SELECT COUNT(*) FROM t", domain=domain)
    with pytest.warns(TableWarning, match="'ts'"):
        lrm.release(plan, tmp_path / "x.csv", epsilon=1, ledger=None)


@pytest.mark.parametrize("by", ["second", "7 hours", "0 minutes", "25 hours", "", 5])
def test_steps_divide_a_day(by):
    with pytest.raises(DomainError, match="by must be"):
        Dates("ts", *SPAN, by)


def test_domains_of_times_are_read_back(tmp_path):
    domain = Domain(
        [Dates("ts", *SPAN, "30 minutes", null="cell"), Dates("at", *SPAN, time=True)], "t"
    )
    text = domain_text(domain)
    (tmp_path / "d.yaml").write_text(text)
    again = read_domain(tmp_path / "d.yaml")
    assert again == domain
    assert again.digest == domain.digest
    days = Domain([Dates("ts", *SPAN)], "t")
    assert Domain([Dates("ts", *SPAN, time=True)], "t").digest != days.digest
