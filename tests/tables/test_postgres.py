"""Types that only PostgreSQL has."""

import math
import os
import socket

import pytest

from engines import empty_postgres_database
from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.errors import TableError
from lrm.tables import open_table
from proxy import Proxy

# macOS has another name for the seconds of silence after which the system asks
IDLE = getattr(socket, "TCP_KEEPIDLE", None) or socket.TCP_KEEPALIVE
OPTIONS = (IDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
CELL = {"null": "cell", "outside": "cell"}


@pytest.fixture
def database():
    import psycopg

    url = empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as db:
        yield db, url + ("&" if "?" in url else "?") + "table="


def counted(address, attribute, **unit):
    domain = Domain([attribute], unit=PrivacyUnit(**unit))
    table = open_table(address)
    table.check(domain)
    return table.counts(domain)._open().tolist()


def test_padding_enumerations_and_domains(database):
    db, url = database
    db.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    db.execute("CREATE DOMAIN age_type AS numeric(5,1) CHECK (VALUE >= 0)")
    db.execute("CREATE TABLE t (p char(5), m mood, a age_type, b varchar(9))")
    db.execute(
        "INSERT INTO t VALUES ('ab', 'ok', 7, 'x'), ('ab ', 'sad', 7.5, 'X'), "
        "(NULL, NULL, NULL, NULL)"
    )
    assert counted(url + "t", Categories("p", ["ab", "ab   "], **CELL)) == [2, 0, 0, 1]
    assert counted(url + "t", Categories("m", ["ok"], **CELL)) == [1, 1, 1]
    assert counted(url + "t", Integers("a", 0, 9, width=10, **CELL)) == [1, 0, 0, 1, 1]
    assert counted(url + "t", Categories("b", ["x", "y"], **CELL)) == [1, 0, 1, 1]
    many = [f"v{number}" for number in range(80)]
    assert counted(url + "public.t", Categories("b", ["x", *many], outside="cell"))[0] == 1
    bound = Categories("p", ["ab"])
    assert counted(url + "t", bound, column="b", max_rows=1) == [2]


def test_numbers_beyond_float64_and_dates_beyond_the_calendar(database):
    db, url = database
    db.execute("CREATE TABLE t (n numeric, f real, d date, s timestamptz)")
    db.execute(
        "INSERT INTO t SELECT n::numeric, 'NaN', 'infinity', '-infinity' FROM unnest(ARRAY["
        "'1e400', '-1e400', '1e-400', '-1e-400', 'NaN', 'Infinity', '-Infinity', '0',"
        "'1.7976931348623158e308', '1.7976931348623159e308', '3e-324', '2e-324'"
        "]) AS n"
    )
    rules = {**CELL, "nan": "cell"}
    tiny = Bins("n", [-1e300, 0.0, 5e-324, 1.0, 1.7e308, math.inf], **rules)
    values = [
        math.inf,
        -math.inf,
        0.0,
        -0.0,
        math.nan,
        math.inf,
        -math.inf,
        0.0,
        1.7976931348623157e308,
        math.inf,
        5e-324,
        0.0,
    ]
    expected = Domain([tiny]).count([{"n": value} for value in values]).tolist()
    assert counted(url + "t", tiny) == expected
    assert counted(url + "t", Integers("n", -1, 1, **rules)) == [0, 1, 0, 2, 4, 4, 1, 0]
    assert counted(url + "t", Bins("f", [0, 1], **rules)) == [0, 0, 0, 0, 12, 0]
    assert counted(url + "t", Dates("d", "2024-01-01", "2024-12-31", "year", **CELL)) == [
        0,
        0,
        12,
        0,
        0,
    ]
    assert counted(url + "t", Dates("s", "2024-01-01", "2024-12-31", "month", **CELL))[12] == 12


def test_the_connection_can_only_read(database):
    db, url = database
    db.execute("CREATE TABLE t (x integer)")
    db.execute("CREATE TABLE seen (x integer)")
    db.execute(
        "CREATE FUNCTION spy() RETURNS integer LANGUAGE sql AS"
        " 'INSERT INTO seen VALUES (1) RETURNING 1'"
    )
    db.execute("CREATE VIEW v AS SELECT spy() AS x FROM (VALUES (1)) AS rows")
    with pytest.raises(TableError, match="ReadOnlySqlTransaction"):
        counted(url + "v", Integers("x", 0, 1))
    assert db.execute("SELECT count(*) FROM seen").fetchone() == (0,)


def test_a_missing_table_and_a_wrong_password(database):
    _, url = database
    with pytest.raises(TableError, match="has no table 'people'"):
        open_table(url + "people")
    with pytest.raises(TableError, match="cannot be reached") as caught:
        open_table("postgresql://someone:secret@127.0.0.1:1/db?table=t")
    assert "secret" not in str(caught.value)


def test_classes_of_errors_have_a_sentence_and_no_value(database, monkeypatch):
    from lrm.tables import postgres_table

    db, url = database
    db.execute("CREATE TABLE t (x integer, secret text)")
    db.execute("INSERT INTO t VALUES (1, '47-11')")
    table = open_table(url + "t")
    domain = Domain([Integers("x", 0, 1)])
    db.execute("DROP TABLE t")
    with pytest.raises(TableError, match="failed with UndefinedTable: there is no such table or"):
        table.check(domain)
    db.execute(
        "CREATE VIEW t AS SELECT CAST(secret AS integer) AS y FROM (VALUES ('a')) AS v(secret)"
    )
    db.execute("ALTER ROLE CURRENT_USER SET statement_timeout = '20ms'")
    try:
        db.execute("CREATE VIEW slow AS SELECT 1 AS x, pg_sleep(5)::text AS s")
        slow = open_table(url + "slow")
        with pytest.raises(
            TableError, match="QueryCanceled: the statement was cancelled, by state"
        ):
            slow.counts(Domain([Categories("s", ["a"])]))
    finally:
        db.execute("ALTER ROLE CURRENT_USER RESET statement_timeout")
    with pytest.raises(TableError, match="failed with InvalidTextRepresentation; the engine's own"):
        open_table(url + "t").counts(Domain([Integers("y", 0, 1)]))
    monkeypatch.setattr(postgres_table, "LEAST_VERSION", 99)
    with pytest.raises(TableError, match="and lrm needs PostgreSQL 99 or later"):
        open_table(url + "t")


@pytest.mark.parametrize("size", [1, 40, 1 << 20])
def test_blocks_of_any_size_have_the_same_rows(database, size, monkeypatch):
    from lrm.tables import postgres_table

    monkeypatch.setattr(postgres_table, "COPIED_BYTES", max(size, 45))
    db, url = database
    db.execute("CREATE TABLE t AS SELECT n % 100 AS x FROM generate_series(0, 999) AS s(n)")
    assert counted(url + "t", Integers("x", 0, 99)) == [10] * 100


def test_a_server_that_is_gone_ends_a_count_within_a_minute(database, monkeypatch):
    """The system would ask after two hours of silence; what the address says goes before."""
    import psycopg

    db, url = database
    db.execute("CREATE TABLE t AS SELECT 1 AS x")
    connect, asked = psycopg.connect, []

    def watched(*args, **kwargs):
        made = connect(*args, **kwargs)
        with socket.socket(fileno=os.dup(made.fileno())) as own:
            asked.append([own.getsockopt(socket.IPPROTO_TCP, option) for option in OPTIONS])
        return made

    monkeypatch.setattr(psycopg, "connect", watched)
    with Proxy(url, stop=None) as proxy:
        address = f"{proxy.url}&keepalives_interval=7&table=t"
        assert counted(address, Integers("x", 0, 1)) == [0, 1]
    assert asked == [[30, 7, 3]] * 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_is_lost_while_rows_are_counted(database, when):
    db, url = database
    db.execute("CREATE TABLE t AS SELECT 1 AS x")
    with Proxy(url, stop=None) as proxy:
        table = open_table(f"{proxy.url}&table=t")
    with Proxy(url, b"COPY (", when=when) as proxy:
        table._url = proxy.url
        with pytest.raises(TableError, match="OperationalError: the connection was lost") as caught:
            table.counts(Domain([Integers("x", 0, 1)]))
    assert "127.0.0.1" not in str(caught.value)
