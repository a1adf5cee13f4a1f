"""Each engine had its own idea of who is the same person.

In PostgreSQL a column of type ``citext``, or with a nondeterministic collation, holds 'Ann' and
'ann' for one person; they were counted as two, with twice the rows that a person may have. In a
pandas frame the ids 1 and '1' were two persons. Now a person is named by one exact text
(`lrm.domain.persons`), and a column that compares otherwise is refused before anything is spent.
"""

import uuid

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines import empty_postgres_database
from lrm.domain import Domain, Integers, PrivacyUnit, persons
from lrm.domain.persons import LONGEST_NAME, person_name
from lrm.errors import TableError
from lrm.privacy.unit import GroupLimit
from lrm.tables import open_table
from lrm.tables.count import count_of


def kept(source, max_rows=1):
    """How many rows are counted of a table with columns who and x."""
    domain = Domain([Integers("x", 0, 9)], unit=PrivacyUnit("who", max_rows))
    table = open_table(source)
    table.check(domain)
    return int(table.counts(domain)._open().sum())


@pytest.fixture
def postgres():
    import psycopg

    url = empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as db:
        yield db, url + ("&" if "?" in url else "?") + "table=t"


@pytest.fixture
def case_insensitive(postgres):
    """A nondeterministic collation, or one that the catalogue says is, on a server without ICU."""
    import psycopg

    db, _ = postgres
    loose = "provider = icu, locale = 'und-u-ks-level2', deterministic = FALSE"
    try:
        db.execute(f"CREATE COLLATION loose ({loose})")
    except psycopg.errors.FeatureNotSupported:
        db.execute('CREATE COLLATION loose FROM "C"')
        db.execute("UPDATE pg_collation SET collisdeterministic = FALSE WHERE collname = 'loose'")
    return "loose"


@pytest.mark.parametrize("column", ["text COLLATE {}", "named", "renamed"])
def test_a_nondeterministic_collation_is_refused(postgres, case_insensitive, column):
    db, address = postgres
    db.execute(f"CREATE DOMAIN named AS text COLLATE {case_insensitive}")
    db.execute("CREATE DOMAIN renamed AS named")
    db.execute(f"CREATE TABLE t (who {column.format(case_insensitive)}, x integer)")
    with pytest.raises(TableError, match=r"'who' .* treats different texts as equal"):
        kept(address)


@pytest.mark.parametrize("column", ["citext", "named"])
def test_citext_is_refused(postgres, column):
    """The extension, or a type of its name where the server comes without it."""
    db, address = postgres
    offered = db.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'citext'").fetchone()
    if offered:
        db.execute("CREATE EXTENSION citext")
    else:
        db.execute("CREATE TYPE citext")
        for way in ("in", "out"):
            types = ("cstring", "citext") if way == "in" else ("citext", "cstring")
            db.execute(
                f"CREATE FUNCTION citext{way}({types[0]}) RETURNS {types[1]} LANGUAGE internal"
                f" IMMUTABLE STRICT AS 'text{way}'"
            )
        db.execute("CREATE TYPE citext (INPUT = citextin, OUTPUT = citextout, LIKE = text)")
    db.execute("CREATE DOMAIN named AS citext")
    db.execute(f"CREATE TABLE t (who {column}, x integer)")
    with pytest.raises(TableError, match=r"'who' .* has type .*treats different texts as equal"):
        kept(address)


def test_collations_of_duckdb_and_spark_are_refused(tmp_path, spark):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as db:
        db.execute("CREATE TABLE t (who VARCHAR COLLATE NOCASE, x INTEGER, y VARCHAR)")
        db.execute("CREATE VIEW v AS SELECT who || 'x' AS who, x FROM t")
        db.execute("CREATE VIEW w AS SELECT y AS who, x FROM t")
    frame = spark.sql("SELECT 'a' COLLATE UTF8_LCASE AS who, 1 AS x")
    for source in (f"{tmp_path}/x.duckdb::t", f"{tmp_path}/x.duckdb::v", frame):
        with pytest.raises(TableError, match="treats different texts as equal"):
            kept(source)
    assert kept(f"{tmp_path}/x.duckdb::w") == 0


@pytest.mark.parametrize(
    "column", ["real", "numeric", "numeric(9,2)", "boolean", "date", "timestamptz", "jsonb", "inet"]
)
def test_types_without_an_exact_text_are_refused_in_postgres(postgres, column):
    db, address = postgres
    db.execute(f"CREATE TABLE t (who {column}, x integer)")
    with pytest.raises(TableError, match="has no exact text"):
        kept(address)


@pytest.mark.parametrize(
    "kind", [pa.float64(), pa.decimal128(9, 2), pa.bool_(), pa.date32(), pa.list_(pa.int8())]
)
def test_types_without_an_exact_text_are_refused_in_files_and_frames(tmp_path, kind):
    table = pa.table({"who": pa.nulls(2, kind), "x": [1, 2]})
    pq.write_table(table, tmp_path / "x.parquet")
    for source in (tmp_path / "x.parquet", table, pl.from_arrow(table)):
        with pytest.raises(TableError, match="has no exact text"):
            kept(source)


UUID = uuid.UUID("550E8400-E29B-41D4-A716-446655440000")
LONG = "ä" * LONGEST_NAME


def test_objects_with_one_text_are_one_person():
    """1 and '1'; a UUID and its text; bytes and the text that they spell."""
    same = [1, "1", b"1"], [UUID, str(UUID)], [LONG, LONG.encode()]
    for values in same:
        frame = pd.DataFrame({"who": pd.Series(values, dtype=object), "x": 1})
        assert kept(frame) == 1
    apart = [
        "1",
        "01",
        " 1",
        "Ann",
        "ann",
        "e\u0301",
        "\u00e9",
        "",
        "\ud800",
        10**400,
        LONG,
        LONG[1:],
    ]
    frame = pd.DataFrame({"who": pd.Series(apart, dtype=object), "x": 1})
    assert kept(frame) == len(apart)


def test_objects_that_name_nobody_drop_their_row():
    """Unhashable ones too, which raised errors after payment."""
    nobody = [None, float("nan"), pd.NA, pd.NaT, 1.0, True, ["a"], {"a": 1}, object(), 2**5000]
    frame = pd.DataFrame({"who": pd.Series([*nobody, "a"], dtype=object), "x": 1})
    assert kept(frame, 99) == 1
    assert [person_name(value) for value in nobody] == [None] * len(nobody)


def test_every_engine_names_persons_alike(tmp_path, spark, postgres, fixed_key):
    """Ids as text, whole numbers, UUIDs and bytes: with one key, the same rows of each person."""
    db, address = postgres
    rows = [(f"p{i % 7}", i % 7, i % 3, i % 10) for i in range(200)]
    uuids = [uuid.UUID(int=0xABC + i % 5) for i in range(200)]
    columns = {
        "text": [r[0] for r in rows],
        "whole": [r[1] for r in rows],
        "long": [LONG + r[0] for r in rows],
        "bytes": [bytes([0xFF, r[2]]) for r in rows],
        "x": [r[3] for r in rows],
    }
    table = pa.table(columns | {"uuid": [str(u) for u in uuids]})
    pq.write_table(table, tmp_path / "x.parquet")
    db.execute(
        "CREATE TABLE t (text text, whole numeric(5,0), long text, bytes bytea, x int, uuid uuid)"
    )
    with db.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
        for row in table.to_pylist():
            copy.write_row([row[name] for name in table.column_names])
    with duckdb.connect(str(tmp_path / "x.duckdb")) as made:
        path = tmp_path / "x.parquet"
        made.execute(f"CREATE TABLE t AS SELECT * REPLACE (uuid::UUID AS uuid) FROM '{path}'")
    objects = pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in columns.items()}
        | {"uuid": pd.Series(uuids, dtype=object)}
    )
    sources = [path, f"{tmp_path}/x.duckdb::t", table, pl.from_arrow(table), objects, address]
    sources.append(spark.read.parquet(str(path)))
    for name in ("text", "whole", "long", "bytes", "uuid"):
        domain = Domain([Integers("x", 0, 9)], unit=PrivacyUnit(name, 4))
        records = [row | {"uuid": u} for row, u in zip(table.to_pylist(), uuids, strict=True)]
        expected = domain.count(records).tolist()
        for source in sources:
            opened = open_table(source)
            opened.check(domain)
            assert opened.counts(domain)._open().tolist() == expected, (name, type(source))


def test_the_key_is_in_no_text_of_a_statement(postgres):
    """Others see statements, and servers log them."""
    db, address = postgres
    db.execute("CREATE TABLE t (who text, x int)")
    domain = Domain([Integers("x", 0, 9)], unit=PrivacyUnit("who", 1))
    query = open_table(address)._query(count_of(domain, None), empty=False).query
    assert "sha256(" in query
    assert persons.fresh_key().hex() not in query.lower()


@pytest.mark.parametrize("by", [None, GroupLimit("x", 1, 1)])
def test_the_key_is_in_no_plan(spark, by):
    """Spark logs plans, and shows them on its page."""
    frame = spark.sql("SELECT 'Ann' AS who, 1 AS x")
    domain = Domain([Integers("x", 0, 9)], unit=PrivacyUnit("who", 2, by=by))
    counted = open_table(frame)._counted(count_of(domain, None), empty=False)
    result = counted.frame.collect()
    plan = str(counted.frame._jdf.queryExecution())
    assert len(result) == 1
    assert "sha2(" in plan
    assert persons.fresh_key().hex() not in plan.lower()
