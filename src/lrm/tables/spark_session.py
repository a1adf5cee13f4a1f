"""The Spark session that a table is opened in, and what a new one may write to stderr."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lrm.errors import TableError
from lrm.tables.base import load_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

LOGGING = Path(__file__).with_name("spark_log4j2.properties")
_SUBMIT = "SPARK_SUBMIT_OPTS"
_SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def session() -> SparkSession:
    """The active session or, where there is none, a new one: in local mode unless configured."""
    sql = load_engine("pyspark.sql")
    try:
        active: SparkSession | None = sql.SparkSession.getActiveSession()
        if active is not None:
            return active
        with _errors_alone():
            built: SparkSession = (
                sql.SparkSession.builder.appName("lrm").config(map=_SETTINGS).getOrCreate()
            )
    except Exception as error:  # noqa: BLE001 - no row is near; the usual cause is reported
        kind = type(error).__name__
    else:
        return built
    raise TableError(f"Spark could not be started ({kind}); it needs Java 17 or later")


@contextmanager
def _errors_alone() -> Iterator[None]:
    """Let the JVM that starts meanwhile log errors only, unless its logging is configured.

    Its options come from the environment: as a setting of the session they would replace
    those that an installation gives to every driver.
    """
    before = os.environ.get(_SUBMIT)
    if not _configured():
        os.environ[_SUBMIT] = f"{before or ''} -Dlog4j2.configurationFile={LOGGING.as_uri()}"
    try:
        with warnings.catch_warnings():
            # pyspark imports its own test tools, which warn of a newer pandas; none is used here.
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
            yield
    finally:
        if before is None:
            os.environ.pop(_SUBMIT, None)
        else:
            os.environ[_SUBMIT] = before


def _configured() -> bool:
    """Whether Spark's logging is configured."""
    option_texts = (os.environ.get(name, "") for name in (_SUBMIT, "PYSPARK_SUBMIT_ARGS"))
    home, folder = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    places = [Path(folder)] if folder else [Path(home) / "conf"] if home else []
    files = (file for place in places for file in place.glob("log4j2.*"))
    return any("log4j" in options for options in option_texts) or any(files)
