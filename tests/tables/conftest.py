"""The awkward table in every form, each made once; Spark is started once."""

import shutil

import pytest

from awkward_table import rows
from engines import missing
from table_forms import ARROW_FORMS, FORMS, build


@pytest.fixture(scope="session")
def spark():
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
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def library(request, tmp_path_factory):
    """Makes the awkward table in a form, or finds the one that it made before."""
    tables = {}

    def find(form):
        if form not in tables:
            tables[form] = _made(request, form, rows(400, 0), tmp_path_factory.mktemp("awkward"))
        return tables[form]

    return find


def _made(request, form, made, folder):
    return build(form, made, folder, request.getfixturevalue("spark") if form == "spark" else None)


@pytest.fixture(params=FORMS)
def awkward(request, library):
    """The awkward table in one form, and its rows in plain Python."""
    return request.param, *library(request.param)


@pytest.fixture(params=[*FORMS, *ARROW_FORMS])
def empty(request, tmp_path):
    """The same table without rows."""
    return _made(request, request.param, [], tmp_path)[0]
