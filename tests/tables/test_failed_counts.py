"""A count that fails after the charge: one charge, stated, and the same key never charges again."""

import threading
from fractions import Fraction

import pytest

import lrm
from engines import empty_postgres_database
from lrm.domain import Domain, Integers
from lrm.errors import AlreadyCharged, TableError
from lrm.tables import open_table

DOMAIN = Domain([Integers("x", 0, 1)], "t")


def fails_once(table, tmp_path, sentence):
    """Release twice under one key: the count fails, and the second time nothing is charged."""
    plan = lrm.plan("SELECT x, COUNT(*) AS n FROM t GROUP BY x", domain=DOMAIN)
    ledger = lrm.Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("t", 1)
    call = {"epsilon": "0.1", "ledger": ledger, "key": "nightly"}
    with pytest.raises(TableError, match=sentence) as failed:
        lrm.release(plan, table, **call)
    assert failed.value.charge == "made"
    with pytest.raises(AlreadyCharged):
        lrm.release(plan, table, **call)
    assert ledger.remaining("t") == Fraction(9, 10)


def test_a_statement_timeout_on_postgres(tmp_path):
    import psycopg

    url = empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE VIEW t AS SELECT length(pg_sleep(5)::text) AS x")
        db.execute("ALTER ROLE CURRENT_USER SET statement_timeout = '50ms'")
        try:
            table = url + ("&" if "?" in url else "?") + "table=t"
            fails_once(table, tmp_path, "QueryCanceled: the statement was cancelled")
        finally:
            db.execute("ALTER ROLE CURRENT_USER RESET statement_timeout")


def test_a_cancelled_job_on_spark(spark, tmp_path):
    context = spark.sparkContext
    done = threading.Event()

    def cancel():
        while not done.wait(0.02):
            if context.statusTracker().getActiveJobsIds():
                context.cancelAllJobs()

    slow = "CAST(pmod(hash(sha2(CAST(id AS STRING), 256)), 2) AS INT) AS x"
    checked = open_table(spark.range(30_000_000).selectExpr(slow))
    checked._check = lambda *args: None  # the job of the check is not the one to cancel
    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        fails_once(checked, tmp_path, "counting table 'frame' on Spark failed")
    finally:
        done.set()
        canceller.join()
