"""All counts of a process share one DuckDB: none finds anything that another left there."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forked import run_forked
from lrm.domain import Domain, Integers, PrivacyUnit
from lrm.errors import TableError
from lrm.queries.sql.evaluation import memory_database
from lrm.tables import duckdb_connection, open_table
from lrm.tables.duckdb_connection import connection

DOMAIN = Domain([Integers("x", 0, 3)])


def counts(source, domain=DOMAIN):
    table = open_table(source)
    table.check(domain)
    return table.counts(domain)._open().tolist()


@pytest.fixture
def opened(monkeypatch):
    """The databases that are opened from now on."""
    databases = []
    really = duckdb.connect

    def connect(*args, **kwargs):
        databases.append(args)
        return really(*args, **kwargs)

    monkeypatch.setattr(duckdb, "connect", connect)
    monkeypatch.setattr(duckdb_connection, "_shared", cache(duckdb_connection._Database))
    return databases


def test_tables_are_counted_with_one_database(opened, tmp_path):
    rows = pa.table({"x": [1, 1, 3], "who": [1, 1, 2]})
    pq.write_table(rows, tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("x\n1\n1\n3\n")
    for source in (rows, tmp_path / "x.parquet", tmp_path / "x.csv", rows.to_pandas()):
        assert counts(source) == [0, 2, 0, 1]
    assert counts(rows, Domain(DOMAIN.attributes, unit=PrivacyUnit("who", 1))) == [0, 1, 0, 1]
    assert len(opened) == 1


def test_what_a_count_registers_goes_with_it():
    with connection() as first, connection() as second:
        first.register("lrm_frame", pa.table({"x": [1]}))
        first.execute("CREATE TEMP TABLE lrm_empty AS SELECT 1")
        for name in ("lrm_frame", "lrm_empty"):
            with pytest.raises(duckdb.CatalogException):
                second.execute(f"FROM {name}")


def test_a_file_that_changed_is_read_again_though_its_size_and_time_did_not(tmp_path):
    path = tmp_path / "x.parquet"
    for values in ([1] * 1000, [2] * 1000):
        pq.write_table(pa.table({"x": values}), path, compression="none", use_dictionary=False)
        os.utime(path, (0, 0))
        counted = counts(path)
    assert counted == [0, 0, 1000, 0]


def test_a_database_that_met_an_error_is_not_used_again(opened):
    for _ in range(2):
        with pytest.raises(duckdb.CatalogException), connection() as db:
            db.execute("FROM nothing")
    assert len(opened) == 2


def test_time_zones_of_the_machine_do_not_matter(monkeypatch, opened):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    zone = "SELECT current_setting('TimeZone')"
    with connection() as db:
        assert db.execute(zone).fetchall() == [("UTC",)]
    assert memory_database.__wrapped__().cursor().execute(zone).fetchall() == [("UTC",)]
    assert len(opened) == 2


def test_threads_count_at_once():
    frames = [pa.table({"x": [number % 4] * (number + 1)}) for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for number, counted in enumerate(pool.map(counts, frames)):
            assert counted[number % 4] == sum(counted) == number + 1


def test_a_database_file_is_free_between_calls(tmp_path):
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE t AS SELECT 2 AS x")
    table = open_table(f"{path}::t")
    with pytest.raises(TableError):
        table.check(Domain([Integers("y", 0, 3)]))
    table.check(DOMAIN)
    assert table.counts(DOMAIN)._open().tolist() == [0, 0, 1, 0]
    write = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('INSERT INTO t VALUES (3)')"
    assert run_forked(write, [str(path)], tmp_path / "streams").returncode == 0
    assert table.counts(DOMAIN)._open().tolist() == [0, 0, 1, 1]


FORK = """
import os, sys, tempfile
import pyarrow as pa
from lrm.domain import Domain, Integers
from lrm.tables import open_table

def count():
    table = open_table(pa.table({"x": [1, 1]}))
    counts = table.counts(Domain([Integers("x", 0, 1)]))._open().tolist()
    os.write(1, f"{counts}\\n".encode())  # a whole line at once: two processes write

tempfile.tempdir = sys.argv[1]
count()
child = os.fork()
count()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_counts_and_ends_and_leaves_no_folder(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    done = run_forked(FORK, [str(folder)], tmp_path / "streams")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["[0, 2]"] * 3
    assert list(folder.iterdir()) == []


BUSY = """
import os, sys, tempfile, threading
from lrm.tables.duckdb_connection import connection

def count():
    with connection() as db:
        db.execute("CREATE TEMP TABLE x AS FROM range(100000)")
        forked.set()
        ended.wait()
        print(db.execute("SELECT count(*) FROM x").fetchall(), os.listdir(sys.argv[1]) != [])

tempfile.tempdir = sys.argv[1]
forked, ended = threading.Event(), threading.Event()
thread = threading.Thread(target=count)
thread.start()
forked.wait()
child = os.fork()
if not child:
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
ended.set()
thread.join()
"""


def test_a_fork_while_another_thread_counts_leaves_that_database_alone(tmp_path):
    """Closing it in the new process, which has none of its threads, ended that by a signal."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    done = run_forked(BUSY, [str(folder)], tmp_path / "streams")
    assert done.stdout.splitlines() == ["0", "[(100000,)] True"]
    assert list(folder.iterdir()) == []
