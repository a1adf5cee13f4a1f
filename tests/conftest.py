"""Fixtures that tests of several folders share, one Spark session for the whole process first."""

import os
import platform
import shutil
import signal

if platform.machine() in {"x86_64", "AMD64"}:
    # OpenBLAS has code of its own for each kind of processor, which rounds differently, and a
    # search then ends elsewhere. One kind, which processors since 2013 can run, for all tests.
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")

import pytest
from hypothesis import HealthCheck, settings

from engines import missing
from long_runs import new_cases
from lrm.domain import persons

# A shell that starts a run in the background has it ignore Ctrl-C, and so would the commands that
# tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long one example takes depends on what else the machine does: no test fails for that.
# The same examples on every machine, so that a run that passes passes again; a whole
# `make test-long` draws new ones each time.
BUSY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", **BUSY, derandomize=True)
settings.register_profile("new cases", **BUSY)
settings.load_profile("new cases" if new_cases() else "repeatable")


def pytest_collection_modifyitems(items):
    """Tests of Spark come first, then those in a browser: the first process then runs them all.

    A session of Spark takes several seconds to start and a gigabyte. Some tests in a browser take
    twenty seconds, in which at the end of the run another process would have nothing to do.
    """
    items.sort(key=lambda item: (not _needs_spark(item), "tab" not in _fixtures(item)))


def _needs_spark(item):
    return "spark" in item.name or "spark" in _fixtures(item)


def _fixtures(item):
    return getattr(item, "fixturenames", ())


@pytest.fixture
def fixed_key(monkeypatch):
    """The same rows of each person are chosen in every count."""
    monkeypatch.setattr(persons, "fresh_key", lambda: bytes(range(16)))


@pytest.fixture
def plain_interrupts():
    """Python's own handler of Ctrl-C: a Spark session of an earlier test has set another."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A Spark session in local mode, whose settings are not those that counts should need."""
    if shutil.which("java") is None:
        missing("Spark needs Java, and there is none")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        missing("pyspark is not installed")
    settings = {
        # Many short queries: compiling them well costs more than running them.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "Pacific/Auckland",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    yield session
    session.stop()
