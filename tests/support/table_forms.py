"""The forms in which a table reaches each engine, with what plain Python sees there."""

import csv
import datetime as dt
import re
import uuid
from decimal import Decimal
from urllib.parse import urlsplit

import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from engines import postgres_url
from lrm.tables import open_table
from lrm.testing.table import SCHEMA, WEIRD, arrow

FORMS = ["parquet", "csv", "duckdb", "pandas objects", "postgres", "spark"]
"""Each reads values in a way of its own, and is tried with every domain."""

ARROW_FORMS = ["arrow", "dataset", "pandas", "polars", "polars lazy", "parquet files"]
"""These reach DuckDB as Arrow or Parquet too, and are tried with some domains."""

_POSTGRES = (
    "who bigint, alias text, state text, flag boolean, age integer, huge bigint, "
    "income double precision, ratio real, price numeric(12,2), exact numeric, "
    "day date, at timestamp, moment timestamptz"
)


def build(form, made, folder, spark=None):
    """Return the table ``made`` in one form, and its rows as plain Python sees them there."""
    table = arrow(made)
    if form == "pandas objects":
        frame = table.to_pandas()
        frame["who"] = pd.Series([row["who"] for row in made], dtype=object)
        return open_table(frame), _plain(frame)
    if form == "csv":
        path = folder / "table.csv"
        read = write_csv(path, made)
        return open_table(path), read
    if form == "postgres":
        return open_table(write_postgres(made)), made
    frames = {
        "arrow": lambda: table,
        "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.from_arrow(table),
        "polars lazy": lambda: pl.from_arrow(table).lazy(),
    }
    if form in frames:
        return open_table(frames[form]()), made
    return _from_file(form, table, folder, spark), made


def _from_file(form, table, folder, spark):
    half = len(table) // 2
    for name, part in {"all": table, "part1": table[:half], "part2": table[half:]}.items():
        pq.write_table(part, folder / f"{name}.parquet", row_group_size=64)
    if form == "spark":
        return open_table(spark.read.parquet(str(folder / "all.parquet")), name="awkward")
    if form == "duckdb":
        return open_table(write_duckdb(folder / "x.duckdb", table))
    if form == "dataset":
        return open_table(ds.dataset(folder / "all.parquet"))
    return open_table(
        str(folder / {"parquet": "all.parquet", "parquet files": "part?.parquet"}[form])
    )


def _plain(frame):
    """Rows of a pandas frame; a missing value is None."""
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def write_csv(path, made):
    """Write rows as CSV, every text in quotes and NULL as nothing; return them as read back.

    A record is one line, so that a text can hold no line break.
    """
    made = [{name: _one_line(value) for name, value in row.items()} for row in made]
    lines = [",".join('"' + name.replace('"', '""') + '"' for name in SCHEMA.names)]
    lines += [",".join(_field(row[name]) for name in SCHEMA.names) for row in made]
    path.write_text("\n".join(lines) + "\n", newline="")
    with path.open(newline="") as opened:
        assert next(csv.reader(opened)) == SCHEMA.names
    return [{name: _read(value) for name, value in row.items()} for row in made]


def _one_line(value):
    return value.replace("\n", " ") if isinstance(value, str) else value


def _field(value):
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, bool):
        return "True" if value else "f"
    if isinstance(value, dt.datetime):
        shifted = (
            value
            if value.tzinfo is None
            else value.astimezone(dt.timezone(dt.timedelta(hours=5.5)))
        )
        return shifted.isoformat(sep=" " if value.second else "T")
    return f" {value:f} " if isinstance(value, Decimal) else str(value)


def _read(value):
    """A decimal is read as a whole number where it is written as one, else as float64."""
    if not isinstance(value, Decimal):
        return value
    text = f"{value:f}"
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def write_duckdb(path, table):
    """Store the table in a DuckDB file, with a collation that must not matter."""
    import duckdb

    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as db:
        db.register("rows", table)
        db.execute("CREATE SCHEMA odd")
        db.execute('CREATE TABLE odd."ta.ble" AS FROM rows')
        db.execute('ALTER TABLE odd."ta.ble" ALTER state TYPE VARCHAR COLLATE NOCASE')
    return f'{path}::odd."ta.ble"'


def write_postgres(made):
    """Store the rows in PostgreSQL and return the table's address."""
    import psycopg

    server = postgres_url()
    # A database of its own: other tests empty the one that they share.
    name = f"tables_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    weird = '"' + WEIRD.replace('"', '""') + '"'
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE SCHEMA odd")
        db.execute(f'CREATE TABLE odd."Ta.ble" ({_POSTGRES}, {weird} text)')
        with db.cursor() as cursor, cursor.copy('COPY odd."Ta.ble" FROM STDIN') as copy:
            for row in made:
                copy.write_row([row[name] for name in SCHEMA.names])
    return url + ("&" if "?" in url else "?") + 'table=odd."Ta.ble"'
