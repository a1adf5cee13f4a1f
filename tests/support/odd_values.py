"""Random tables whose values are random bits, and how each engine is given them."""

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from engines import postgres_url
from lrm.domain import Bins, Categories, Dates, Domain, Integers, Numbers, PrivacyUnit

TYPES = {
    "who": pa.string(),
    "number": pa.int64(),
    "text": pa.string(),
    "flag": pa.bool_(),
    "small": pa.int8(),
    "whole": pa.int64(),
    "large": pa.uint64(),
    "real": pa.float64(),
    "single": pa.float32(),
    "price": pa.decimal128(12, 2),
    "exact": pa.decimal128(38, 10),
    "day": pa.date32(),
    "ms": pa.timestamp("ms"),
    "at": pa.timestamp("us"),
    "moment": pa.timestamp("us", tz="UTC"),
    "ns": pa.timestamp("ns"),
}
ENDS = [0, 1, -1, 5, 2**62, -(2**62), 2**63 - 1, -(2**63), 1 - 2**63]
WORDS = [b"", b"a", b"b", b"A", b"a ", "é".encode(), "e\u0301".encode(), b"\0", b"x" * 300]
BYTES = [*WORDS, b"\xff", b"a\xff", b"\xed\xa0\x80", b"\xc3", b"'", b'"', b"\\", b"\r\n"]
OBJECTS = [None, math.nan, pd.NA, pd.NaT, "a", "\ud800", b"\xff", 1, 2.5, 5.0, True, [1], {}, 1j]
OBJECTS += [Decimal("sNaN"), Decimal(5), 10**400, math.inf, dt.date(2024, 5, 1), object()]
OBJECTS += [dt.datetime.max.replace(tzinfo=dt.UTC), np.datetime64("NaT"), uuid.UUID(int=7)]


def value(rng, name):
    """The bits of one value, as an integer or as bytes; or None."""
    kind = TYPES[name]
    if rng.random() < 0.1:
        return None
    if kind == pa.string():
        return rng.choice([rng.choice(BYTES), rng.choice(WORDS), rng.randbytes(rng.randint(0, 6))])
    if kind == pa.bool_():
        return rng.random() < 0.5
    bits = kind.bit_width
    if pa.types.is_timestamp(kind) and rng.random() < 0.5:  # a day near those declared
        per_day = 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return rng.randint(19_700, 20_200) * per_day + rng.choice([-1, 0, 1])
    if pa.types.is_floating(kind) and rng.random() < 0.5:
        made = rng.choice([0.0, -0.0, 1.0, 5.0, 2.5, math.nan, math.inf, -math.inf, 5e-324])
        form = "<d" if bits == 64 else "<f"
        return int.from_bytes(struct.pack(form, made), "little", signed=True)
    small = rng.randint(-3, 12) * (10**kind.scale if pa.types.is_decimal(kind) else 1)
    made = rng.choice([rng.choice(ENDS), rng.getrandbits(bits), small])
    return (made + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def row(rng, **given):
    return {name: value(rng, name) for name in TYPES} | given


def arrow(rows):
    """Rows as an Arrow table of exactly those bits."""
    return pa.table({name: _array(kind, [r[name] for r in rows]) for name, kind in TYPES.items()})


def _array(kind, values):
    if kind == pa.string():
        return pa.array(values, pa.binary()).view(pa.string())
    if kind == pa.bool_():
        return pa.array(values, kind)
    width = kind.bit_width // 8
    bits = b"".join((v or 0).to_bytes(width, "little", signed=True) for v in values)
    valid = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(bits)])


def valid(rows, *, text=True):
    """The same rows with decimals within their precision, and text that is UTF-8 without NUL."""
    return [{name: _valid(TYPES[name], v, text) for name, v in r.items()} for r in rows]


def _valid(kind, made, text):
    if isinstance(made, bytes) and text:
        return made.decode("utf-8", "replace").replace("\0", "?").encode()
    if made is not None and pa.types.is_decimal(kind):
        return max(-(10**kind.precision) + 1, min(made, 10**kind.precision - 1))
    return made


def given_to(engine, rows, folder, options):
    """Give the rows to an engine, in place of those before; return the source."""
    if engine in {"parquet", "dataset", "spark"}:
        # Spark's own reader of Parquet fails on some decimals, and on times in other units.
        table = arrow(valid(rows, text=False)) if engine == "spark" else arrow(rows)
        kept = table.drop_columns(["ms", "ns"]) if engine == "spark" else table
        pq.write_table(kept, folder / "x.parquet", **options)
    return {
        "parquet": lambda: folder / "x.parquet",
        "dataset": lambda: ds.dataset(folder / "x.parquet"),
        "spark": lambda: f"spark:{folder}/x.parquet",
        "arrow": lambda: arrow(rows),
        "pandas": lambda: arrow(rows).to_pandas(types_mapper=pd.ArrowDtype),
        "objects": lambda: _objects(rows),
        "polars": lambda: pl.from_arrow(arrow(valid(rows))),
        "duckdb": lambda: _duckdb(arrow(valid(rows)), folder / "x.duckdb"),
        "postgres": lambda: _postgres(valid(rows)),
    }[engine]()


def _objects(rows):
    """A pandas frame of Python objects: those that a row says, else its bits."""
    kept = {name: [r.get(f"object {name}", r[name]) for r in rows] for name in TYPES}
    return pd.DataFrame({name: pd.Series(made, dtype=object) for name, made in kept.items()})


def _duckdb(table, path):
    import duckdb

    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as db:
        db.register("rows", table)
        db.execute("CREATE TABLE t AS FROM rows")
    return f"{path}::t"


_POSTGRES = {
    "who": "text",
    "number": "bigint",
    "text": "text",
    "flag": "boolean",
    "small": "smallint",
    "whole": "bigint",
    "large": "numeric",
    "real": "double precision",
    "single": "real",
    "price": "numeric(12,2)",
    "exact": "numeric",
    "day": "date",
    "ms": "timestamp(3)",
    "at": "timestamp",
    "moment": "timestamptz",
    "ns": "timestamp",
}


def _postgres(rows):
    import psycopg

    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS odd_values CASCADE")
        db.execute("CREATE SCHEMA odd_values")
        columns = ", ".join(f"{name} {kind}" for name, kind in _POSTGRES.items())
        db.execute(f"CREATE TABLE odd_values.t ({columns})")
        with db.cursor() as cursor, cursor.copy("COPY odd_values.t FROM STDIN") as copy:
            for r in rows:
                copy.write_row([_written(TYPES[name], r[name]) for name in _POSTGRES])
    return url + ("&" if "?" in url else "?") + "table=odd_values.t"


def _written(kind, made):
    """A value as PostgreSQL's text."""
    if made is None or isinstance(made, bool):
        return made
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return _day(made if pa.types.is_date32(kind) else made // (86_400 * 10**6))
    if pa.types.is_floating(kind):
        width = kind.bit_width // 8
        bits = made.to_bytes(width, "little", signed=True)
        return repr(struct.unpack("<d" if width == 8 else "<f", bits)[0])
    if pa.types.is_decimal(kind):
        return str(Decimal(made).scaleb(-kind.scale))
    return made.decode() if isinstance(made, bytes) else str(made)


def _day(days):
    """A day as PostgreSQL's text, far ones cut to what its types hold."""
    if not -2_000_000 < days < 2_000_000:
        return "infinity" if days > 0 else "-infinity"
    ordinal = days + dt.date(1970, 1, 1).toordinal()
    if not 0 < ordinal <= dt.date.max.toordinal():
        return "4713-01-01 BC" if days < 0 else "20000-01-01"
    return dt.date.fromordinal(ordinal).isoformat()


def domain(rng, engine, unit):
    """A domain of one or two random attributes."""

    def rules(*names):
        return {name: rng.choice(["drop", "cell", "cell"]) for name in names}

    edges = [[0, 1, 5], np.linspace(-5, 15, 81), [-1e300, 0, 5e-324, 7]]
    made = [
        Categories("text", ["a", "é", *map(str, range(rng.choice([0, 90])))], **rules("null")),
        Categories("text", ["", "b"], **rules("null", "outside")),
        Categories("flag", [True], **rules("null", "outside")),
        *(
            Integers(name, 0, top, rng.randint(1, top // 9), **rules("null", "outside", "nan"))
            for top in (9, 90)
            for name in ("small", "whole", "large", "real", "single", "price", "exact")
        ),
        *(
            Bins(name, rng.choice(edges), **rules("null", "outside", "nan"))
            for name in ("whole", "large", "real", "single", "price", "exact")
        ),
        *(
            Numbers(
                name,
                rng.choice([[0, 5], [-1e300, -1, 0, 5e-324, 7, 1e300], [0.1, 2.5, 5]]),
                outside=rng.choice(["clip", "drop"]),
                **rules("null", "nan"),
            )
            for name in ("small", "whole", "large", "real", "single", "price", "exact")
        ),
        *(Categories(name, [5, 0, 2**53 + 1], **rules("outside")) for name in ("whole", "exact")),
        *(
            Dates(name, "2024-01-01", "2024-12-31", rng.choice(["day", "year"]), **rules("outside"))
            for name in ("day", "ms", "at", "moment", "ns")
        ),
        Dates("at", "0001-01-01", "9999-12-31", "year", **rules("null", "outside")),
    ]
    if engine == "spark":
        made = [attribute for attribute in made if attribute.name not in {"ms", "ns"}]
    chosen = rng.sample(made, rng.randint(1, 2))
    distinct = {attribute.name: attribute for attribute in chosen if attribute.size < 5000}
    return Domain(distinct.values() or [made[1]], unit=unit)


def unit(rng):
    """Rows, or persons by text or by number."""
    column = rng.choice([None, "who", "number"])
    rows = 1 if column is None else rng.randint(1, 3)
    return PrivacyUnit(column, rows, "substitute")
