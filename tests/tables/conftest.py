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


def _made(request, made, folder):
    form = request.param
    return build(form, made, folder, request.getfixturevalue("spark") if form == "spark" else None)


@pytest.fixture(scope="session", params=FORMS)
def awkward(request, tmp_path_factory):
    """The awkward table in one form, and its rows in plain Python."""
    return request.param, *_made(request, rows(400, 0), tmp_path_factory.mktemp("awkward"))


@pytest.fixture(params=[*FORMS, *ARROW_FORMS])
def empty(request, tmp_path):
    """The same table without rows."""
    return _made(request, [], tmp_path)[0]
