"""The private table of all cases, what is declared about it, and its form for each engine."""

from __future__ import annotations

import datetime as dt
import uuid
from functools import lru_cache
from urllib.parse import urlsplit

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import lrm
from engines import postgres_url

ROWS = 1500

REGIONS, SEXES = ("north", "east", "south", "west"), ("f", "m")
GRADES, AGES, HOURS, ZONES = 6, 20, 24, 200
EDGES = (-60, 0, 15, 60, 240)
KNOTS = (0, 10, 50, 200)

SHARES = 2.0**-20 * KNOTS[-1] * ROWS
"""How far a sum of numbers by knots may be from the sum of the numbers: shares are rounded."""

UNITS = {
    "row": lrm.PrivacyUnit(),
    "several rows": lrm.PrivacyUnit(None, 3),
    "person": lrm.PrivacyUnit("who", 2),
    "substitute": lrm.PrivacyUnit(None, 1, "substitute"),
    "person substitute": lrm.PrivacyUnit("who", 2, "substitute"),
}


@lru_cache(maxsize=1)
def rows() -> pa.Table:
    """The rows: at most two of each person, so that no limit leaves one out."""
    draw = np.random.default_rng(20240501)
    day = dt.date(2024, 1, 1)
    return pa.table(
        {
            "who": pa.array(draw.permutation(ROWS) // 2),
            "region": pa.array(draw.choice(REGIONS, ROWS, p=[0.4, 0.3, 0.2, 0.1]).tolist()),
            "sex": pa.array(draw.choice(SEXES, ROWS).tolist()),
            "grade": pa.array(draw.integers(0, GRADES, ROWS)),
            "age": pa.array(draw.integers(0, AGES, ROWS)),
            "hour": pa.array(draw.integers(0, HOURS, ROWS)),
            "zone": pa.array(draw.integers(0, ZONES, ROWS)),
            "day": pa.array([day + dt.timedelta(int(d)) for d in draw.integers(0, 366, ROWS)]),
            "delay": pa.array(np.round(draw.uniform(EDGES[0], EDGES[-1] - 1, ROWS), 2)),
            "cost": pa.array(np.round(draw.uniform(KNOTS[0], KNOTS[-1], ROWS), 2)),
        }
    )


_ATTRIBUTES = {
    "region": lrm.Categories("region", REGIONS),
    "sex": lrm.Categories("sex", SEXES),
    "grade": lrm.Integers("grade", 0, GRADES - 1),
    "age": lrm.Integers("age", 0, AGES - 1),
    "hour": lrm.Integers("hour", 0, HOURS - 1),
    "zone": lrm.Integers("zone", 0, ZONES - 1),
    "day": lrm.Dates("day", "2024-01-01", "2024-12-31", by="month"),
    "delay": lrm.Bins("delay", EDGES),
    "cost": lrm.Numbers("cost", KNOTS),
}

_NUMBERS = {"sums by bins": "delay", "sums by knots": "cost"}
"""The attribute that a kind of answer adds up."""


def domain_of(case) -> lrm.Domain:
    """What is declared for a case: one attribute, a few, or many."""
    more = _NUMBERS.get(case.answers)
    if case.batch == "one attribute":
        names = [more or "age"]
    elif case.batch == "product":
        names = ["region", "sex", "grade", "age", "hour", "zone", "day", "delay"]
        names += [more] if more == "cost" else []
    else:
        names = ["region", "sex", "grade", *([more] if more else [])]
    unit = UNITS[case.unit]
    if case.unit == "several rows":  # declared with the release
        unit = None
    return lrm.Domain([_ATTRIBUTES[name] for name in names], "visits", unit)


@lru_cache(maxsize=1)
def reference() -> duckdb.DuckDBPyConnection:
    """The rows in DuckDB, for the answers that SQL gives."""
    connection = duckdb.connect()
    connection.register("visits", rows())
    return connection


def cell_counts(domain) -> np.ndarray:
    """How many rows are in each cell, from DuckDB; ``delay`` by its bins."""
    columns = [_cell_sql(attribute) for attribute in domain.attributes]
    places = ", ".join(str(k + 1) for k in range(len(columns)))
    found = reference().execute(
        f"SELECT {', '.join(columns)}, COUNT(*) FROM visits GROUP BY {places}"
    )
    counts = np.zeros(domain.shape, dtype=np.int64)
    for *cell, count in found.fetchall():
        counts[tuple(cell)] = count
    return counts.ravel()


def _cell_sql(attribute) -> str:
    if isinstance(attribute, lrm.Categories):
        values = ", ".join(f"'{value}'" for value in attribute.values)
        return f"list_position([{values}], {attribute.name}) - 1"
    if isinstance(attribute, lrm.Bins):
        return " + ".join(f"({attribute.name} >= {edge})::INT" for edge in EDGES[1:-1])
    return attribute.name


class Library:
    """The table in the form of each engine, made when it is first asked for, and the last plan."""

    def __init__(self, folder, spark_session):
        self._folder, self._spark_session, self._forms = folder, spark_session, {}
        self._prepared = {}

    def prepared(self, case, prepare):
        """What is made once for all cases that differ in their sources alone."""
        if case.without_source not in self._prepared:
            self._prepared = {case.without_source: prepare()}  # cases alike follow each other
        return self._prepared[case.without_source]

    def form(self, source, domain):
        """The table, or the counts of a domain's cells, as ``lrm.release`` takes it."""
        if source == "counts":
            return cell_counts(domain)
        if source not in self._forms:
            self._forms[source] = getattr(self, f"_{source}")()
        return self._forms[source]

    def _arrow(self):
        return rows()

    def _pandas(self):
        return rows().to_pandas()

    def _polars(self):
        return pl.from_arrow(rows())

    def _csv(self):
        path = self._folder / "visits.csv"
        pyarrow.csv.write_csv(rows(), path)
        return str(path)

    def _parquet(self):
        path = self._folder / "visits.parquet"
        pq.write_table(rows(), path, row_group_size=400)
        return str(path)

    def _duckdb(self):
        path = self._folder / "visits.duckdb"
        with duckdb.connect(str(path)) as db:
            db.register("rows", rows())
            db.execute("CREATE TABLE visits AS FROM rows")
        return f"{path}::visits"

    def _postgres(self):
        import psycopg

        server, name = postgres_url(), f"matrix_{uuid.uuid4().hex}"
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        url = urlsplit(server)._replace(path=f"/{name}").geturl()
        kinds = "who bigint, region text, sex text, grade int, age int, hour int, zone int, "
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"CREATE TABLE visits ({kinds} day date, delay float8, cost float8)")
            with db.cursor() as cursor, cursor.copy("COPY visits FROM STDIN") as copy:
                for row in rows().to_pylist():
                    copy.write_row(list(row.values()))
        return url + ("&" if "?" in url else "?") + "table=visits"

    def _spark(self):
        return self._spark_session().read.parquet(self._parquet())
