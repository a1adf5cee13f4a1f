"""The suite of every engine, on tables of SQLite."""

import sqlite3
from contextlib import closing

import pytest

from lrm import testing
from lrm.errors import TableError
from lrm.tables import open_table

TYPES = {
    "who": "INTEGER",
    "alias": "TEXT",
    "state": "TEXT",
    "age": "INT",
    "huge": "INTEGER",
    "income": "REAL",
    "ratio": "REAL",
    testing.SCHEMA.names[-1]: "TEXT COLLATE NOCASE",
}


def store(rows, folder):
    """Write a STRICT table; what SQLite has no type for becomes a text that nobody may count."""
    path = folder / f"awkward{len(rows)}.db"
    names = testing.SCHEMA.names
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    columns = [f"{q} {TYPES.get(name, 'ANY')}" for q, name in zip(quoted, names, strict=True)]
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE IF EXISTS awkward")
        db.execute(f"CREATE TABLE awkward ({', '.join(columns)}) STRICT")
        kept = [
            [row[n] if n in TYPES or row[n] is None else str(row[n]) for n in names] for row in rows
        ]
        db.executemany(f"INSERT INTO awkward VALUES ({', '.join('?' * len(names))})", kept)
        db.commit()
    stored = [{n: None if row[n] != row[n] else row[n] for n in names} for row in rows]
    return open_table(f"sqlite:{path}::awkward"), stored


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sqlite")
    return {len(rows): store(rows, folder) for rows in ([], testing.rows(400, 0))}


@pytest.mark.parametrize("case", testing.cases(), ids=str)
def test_conformance(case, stored):
    case.run(lambda rows: stored[len(rows)], columns=TYPES)


def test_tables_without_types_are_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        db.execute("CREATE TABLE loose (age INTEGER)")
        db.execute("CREATE VIEW v AS SELECT 1 AS age")
    for table in ("loose", "v", "nobody"):
        with pytest.raises(TableError, match="STRICT"):
            open_table(f"sqlite:{tmp_path}/x.db::{table}")
    with pytest.raises(TableError, match="expected sqlite:FILE"):
        open_table("sqlite:nowhere.db::t")
