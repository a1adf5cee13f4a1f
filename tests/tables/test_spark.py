"""What only Spark has: its own types, tables of its catalogue, and a cluster's settings."""

import os
import re
import subprocess
import sys

import pytest

from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.errors import TableError
from lrm.tables import open_table, spark_table
from lrm.tables.spark_session import LOGGING, _configured

CELL = {"null": "cell", "outside": "cell"}


def test_views_files_and_odd_columns(spark, tmp_path, monkeypatch):
    frame = spark.sql(
        "SELECT 1 AS `a.b`, CAST('x' AS STRING) COLLATE UTF8_LCASE AS t, "
        "TIMESTAMP '2024-05-01 01:00:00 Pacific/Auckland' AS at, X'00' AS bytes"
    )
    frame.createOrReplaceTempView("people")
    domain = Domain(
        [
            Integers("a.b", 0, 1),
            Categories("t", ["X", "x"], **CELL),
            Dates("at", "2024-04-01", "2024-05-31", "month"),
        ],
        unit=PrivacyUnit("bytes", 1),
    )
    view = open_table("spark:people")
    view.check(domain)
    assert (view.name, open_table(frame, name="mine").name) == ("people", "mine")
    counted = view.counts(domain)._open().reshape(domain.shape)
    assert counted.sum() == counted[1, 1, 0] == 1  # x is not X, and it is April in UTC
    path = str(tmp_path / "people.parquet")
    frame.select("`a.b`").write.parquet(path)
    plain = Domain([Bins("a.b", [0, 1, 2])])
    assert open_table(f"spark:{path}").counts(plain)._open().tolist() == [0, 1]
    with pytest.raises(TableError, match=r"on Spark failed with .*: there is no such table or"):
        open_table("spark:nobody")
    with pytest.raises(TableError, match=r"AnalysisException: there is no such path, or"):
        open_table(f"spark:{path}/nothing")
    monkeypatch.setattr(spark_table, "LEAST_VERSION", 99)
    with pytest.raises(TableError, match=r"this is Spark \d.*, and lrm needs Spark 99"):
        open_table("spark:people")
    assert frame.sparkSession.conf.get("spark.sql.session.timeZone") == "Pacific/Auckland"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_settings_of_the_session_do_not_matter(spark, ansi):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame = spark.sql(
            "SELECT * FROM VALUES (CAST('1e300' AS DOUBLE), 'a\\\\b'), (7D, 'c') AS t(x, s)"
        )
        domain = Domain([Integers("x", 0, 9, **CELL), Categories("s", ["a\\b", "c"])])
        counted = open_table(frame).counts(domain)._open().reshape(domain.shape)
        assert (counted[11, 0], counted[7, 1], counted.sum()) == (1, 1, 2)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


QUIET = """
import lrm.tables.spark_session as started
spark = started.session()
log = spark._jvm.org.slf4j.LoggerFactory.getLogger("org.apache.spark.Somewhere")
log.warn("a warning"), log.error("an error")
try:
    spark.sql("SELECT raise_error(concat('47', 11 + id)) FROM range(1)").collect()
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.slow  # starts a JVM of its own
def test_a_session_that_lrm_starts_logs_errors_alone_and_no_value(spark, tmp_path):
    quick_start = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    done = subprocess.run(
        [sys.executable, "-c", QUIET],
        cwd=tmp_path,
        env=os.environ | quick_start,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "SparkRuntimeException\n"
    lines = [line for line in done.stderr.splitlines() if "incubator modules" not in line]  # Java's
    assert len(lines) == 2
    assert lines[0].endswith(" ERROR Somewhere: an error")
    assert re.search(r" ERROR TaskSetManager: Task \d+ in stage 0.0 failed 1 times", lines[1])


def test_a_logging_of_ones_own_is_left_alone(tmp_path, monkeypatch):
    assert "error" in LOGGING.read_text()
    for name in ("SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not _configured()
    (tmp_path / "log4j2.properties").write_text("rootLogger.level = info\n")
    assert _configured()
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dlog4j2.configurationFile=mine.xml")
    assert _configured()


def test_files_as_they_are_need_no_checkpoint(spark, tmp_path):
    """Only where nothing is computed from a row, reading it anew gives the same values."""
    path = str(tmp_path / "numbers.parquet")
    spark.range(10).selectExpr("id", "id % 3 AS kind").write.parquet(path)
    files = spark.read.parquet(path)
    files.createOrReplaceTempView("files_as_they_are")
    scans = [files, spark.table("files_as_they_are"), files.selectExpr("kind AS k", "id")]
    assert all(map(spark_table.is_scan, scans))
    others = [files.selectExpr("rand() AS id"), files.where("id > 1"), files.limit(3)]
    others += [spark.range(3), files.repartition(2), files.union(files)]
    assert not any(map(spark_table.is_scan, others))
    domain = Domain([Integers("kind", 0, 1, outside="cell")])
    counts = [open_table(f).counts(domain)._open().tolist() for f in (files, files.union(files))]
    assert counts == [[4, 3, 0, 3, 0], [8, 6, 0, 6, 0]]


def test_a_table_that_spark_connect_looks_for_late(spark):
    """Its frames are plans that nobody has checked: what is wrong is found with the schema."""

    class Late:
        sparkSession = spark  # noqa: N815 - Spark's own name

        @property
        def schema(self):
            return spark.table("nobody_has_this").schema

    with pytest.raises(TableError, match=r"schema of 'late' on Spark .*no such table"):
        spark_table.SparkTable(Late(), "late")
