"""Pairs of tables that differ by what a promise hides, and how each engine is given them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lrm
from engines import postgres_url
from lrm.domain import Bins, Categories, Domain, Integers, PrivacyUnit
from lrm.queries.sql import sql

ENGINES = ["csv", "parquet", "postgres", "spark"]

FEW_CELLS = """
SELECT state, COUNT(*) AS n FROM visits GROUP BY ROLLUP (state);
SELECT SUM(CASE WHEN age < 20 THEN 3 WHEN income >= 5 THEN -2 ELSE 0 END) AS mixed FROM visits;
SELECT COUNT(*) AS none FROM visits WHERE age IS NULL OR income >= 10 AND state = 'NY';
"""

STATES = ["NY", "NJ", *(f"S{number}" for number in range(80))]

# As many edges and values as make each engine count in its other way; all states but some are
# never distinguished.
MANY_BINS = f"""
SELECT income, COUNT(*) AS n FROM visits GROUP BY income;
SELECT COUNT(*) AS some FROM visits WHERE state IN ('NY', {", ".join(map(repr, STATES[9:60]))});
"""

# Over 21 million cells, so that marginals alone are counted.
PRODUCTS = """
SELECT state, income, COUNT(*) AS n FROM visits GROUP BY CUBE (state, income);
SELECT state, COUNT(*) AS some FROM visits WHERE age >= 20 GROUP BY state;
"""

NAN = float("nan")


def row(person, state, age, income):
    return {"person": person, "state": state, "age": age, "income": income}


BASE = [
    row("a", "NY", 3, 0.5),
    row("a", "NY", 3, 0.5),
    row("b", "NJ", 27, 5.0),
    row("b", "TX", None, NAN),
    row("b", None, 91, -1.0),
    row("c", "ny", 45, 20.0),
    row(None, "NY", 12, None),
]
FAR = [row("z", "NY", 5, 7.0), row("z", "NJ", 88, 11.0), row("z", "TX", None, NAN)]
NEAR = [row("z", "NJ", 31, 1.0), row("z", "NY", 1, 12.0), row("z", "NY", 1, 12.0)]
ODD = [
    row("z", "NY", 5, 7.0),
    row("z", None, None, None),
    row("z", "?", 1000, NAN),
    row("z", "NJ", -1, float("inf")),
    row(None, "NJ", 31, 1.0),
]

ROWS, EXCHANGED = PrivacyUnit(), PrivacyUnit(neighbours="substitute")
PEOPLE = PrivacyUnit("person", 2)
PEOPLE_EXCHANGED = PrivacyUnit("person", 2, "substitute")

PAIRS = {
    **{f"row {i} added": (ROWS, BASE, [*BASE, odd]) for i, odd in enumerate(ODD)},
    "last row removed": (ROWS, BASE[:1], []),
    "a copy added": (ROWS, BASE, [*BASE, BASE[0]]),
    "row exchanged": (EXCHANGED, [*BASE, FAR[0]], [*BASE, FAR[1]]),
    "row exchanged for one outside": (EXCHANGED, [*BASE, ODD[0]], [*BASE, ODD[2]]),
    "person of many rows added": (PEOPLE, BASE, [*BASE, *FAR, *NEAR]),
    "person inserted between others": (PEOPLE, BASE, [*NEAR, *BASE[:3], *FAR, *BASE[3:]]),
    "only person removed": (PEOPLE, NEAR, []),
    "person exchanged": (PEOPLE_EXCHANGED, [*BASE, *FAR], [*BASE, *NEAR, *NEAR]),
}


def domain_of(unit, batch="few cells"):
    """The public facts of the table, as coarse or as fine as a batch needs them."""
    if batch == "many bins":
        attributes = [
            Categories("state", STATES, {"NJ": ["?", "ny"]}, null="cell", outside="cell"),
            Bins("income", np.linspace(0, 20, 81), null="drop", nan="cell", outside="cell"),
        ]
    elif batch == "products":
        attributes = [
            Categories("state", STATES[:2], null="cell", outside="cell"),
            Integers("age", 0, 2**20 - 1, null="cell", outside="drop"),
            Bins("income", [0, 5, 10, 100], null="drop", nan="cell", outside="cell"),
        ]
    else:
        attributes = [
            Categories("state", STATES[:2], null="cell", outside="cell"),
            Integers("age", 0, 99, 10, null="cell", outside="drop"),
            Bins("income", [0, 5, 10, 100], null="drop", nan="cell", outside="cell"),
        ]
    return Domain(attributes, "visits", unit)


def plan_of(batch, unit, noise):
    """The batch as it will be measured."""
    text = {"many bins": MANY_BINS, "products": PRODUCTS}.get(batch, FEW_CELLS)
    workload = sql(text, domain_of(unit, batch))
    if batch == "products":
        return lrm.plan(workload, noise=noise, effort="quick")
    return lrm.plan(workload, "matrix", noise=noise)


def write(rows, engine):
    """Give the rows to an engine, in place of those before; return where they are."""
    if engine == "csv":
        lines = [",".join("" if v is None else str(v) for v in one.values()) + "\n" for one in rows]
        Path("visits.csv").write_text("person,state,age,income\n" + "".join(lines))
        return "visits.csv"
    if engine == "postgres":
        return _write_postgres(rows)
    types = {"person": pa.string(), "state": pa.string(), "age": pa.int64()}
    schema = pa.schema({**types, "income": pa.float64()})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), "visits.parquet")
    # The JVM does not follow this process to another folder.
    return f"spark:{Path('visits.parquet').resolve()}" if engine == "spark" else "visits.parquet"


def _write_postgres(rows):
    import psycopg

    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS audit CASCADE")
        db.execute("CREATE SCHEMA audit")
        columns = "person text, state text, age bigint, income double precision"
        db.execute(f"CREATE TABLE audit.visits ({columns})")
        with db.cursor() as cursor, cursor.copy("COPY audit.visits FROM STDIN") as copy:
            for one in rows:
                copy.write_row(list(one.values()))
    return url + ("&" if "?" in url else "?") + "table=audit.visits"
