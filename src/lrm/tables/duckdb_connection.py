"""Connections to DuckDB, each for one call.

A database takes 13 ms to open and a cursor of it 0.2 ms, so all calls share one. What a cursor
registers and creates is its own and goes with it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from lrm.tables.base import Column, load_engine
from lrm.tables.duckdb_sql import column_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class _Database:
    """A DuckDB of its own: bounded memory, a private folder to spill to, no downloads.

    It is closed, and its folder removed, once nothing refers to it, and at the end of the process.
    """

    def __init__(self) -> None:
        duckdb = load_engine("duckdb")
        folder = tempfile.mkdtemp(prefix="lrm-")
        config = {
            "temp_directory": folder,
            "memory_limit": f"{256 + 128 * (os.cpu_count() or 1)}MB",
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        self.db: DuckDBPyConnection = duckdb.connect(":memory:", config=config)
        self.close = weakref.finalize(self, _close, self.db, folder)
        _databases.add(self)
        self.db.execute("SET GLOBAL TimeZone = 'UTC'")  # without GLOBAL, not for its cursors
        # The least and greatest numbers that Parquet files state leave NaN out. Folding
        # comparisons by them would let one row move every NaN to another cell.
        self.db.execute("SET disabled_optimizers = 'statistics_propagation'")
        self.db.execute("SET enable_external_file_cache = false")


def _close(db: DuckDBPyConnection, folder: str) -> None:
    db.close()
    shutil.rmtree(folder, ignore_errors=True)


def _leave_to_parent() -> None:
    """Do not close what another thread used during a fork: the parent does, and has its threads."""
    for database in _databases:
        database.close.atexit = False


_databases: weakref.WeakSet[_Database] = weakref.WeakSet()
_shared = cache(_Database)
# A forked process has none of the threads of a database that it inherits.
os.register_at_fork(before=_shared.cache_clear, after_in_child=_leave_to_parent)


@contextmanager
def connection(*, alone: bool = False) -> Iterator[DuckDBPyConnection]:
    """Connect to the database of this process, or to one ``alone`` that is closed afterwards."""
    database = _Database() if alone else _shared()
    try:
        with database.db.cursor() as db:
            yield db
    except BaseException:
        _shared.cache_clear()  # after some errors DuckDB refuses everything that follows
        raise
    finally:
        if alone:
            database.close()


def describe(db: DuckDBPyConnection, relation: str) -> tuple[Column, ...]:
    """Names and types of a relation's columns; no row is read."""
    described = db.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()  # noqa: S608 - quoted parts
    return tuple(column_of(name, type_text) for name, type_text, *_ in described)
