"""Connections to DuckDB, each a database of its own that lives for one call."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lrm.tables.base import Column, load_engine
from lrm.tables.duckdb_sql import column_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["connection", "describe"]


@contextmanager
def connection() -> Iterator[DuckDBPyConnection]:
    """Open a DuckDB of its own: bounded memory, a private folder to spill to, no downloads."""
    duckdb = load_engine("duckdb")
    threads = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="lrm-") as folder:
        config: dict[str, Any] = {
            "temp_directory": folder,
            "memory_limit": f"{256 + 128 * threads}MB",
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        }
        with duckdb.connect(":memory:", config=config) as db:
            db.execute("SET TimeZone = 'UTC'")
            # The least and greatest numbers that Parquet files state leave NaN out. Folding
            # comparisons by them would let one row move every NaN to another cell.
            db.execute("SET disabled_optimizers = 'statistics_propagation'")
            yield db


def describe(db: DuckDBPyConnection, relation: str) -> tuple[Column, ...]:
    """Names and types of a relation's columns; no row is read."""
    described = db.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()  # noqa: S608 - quoted parts
    return tuple(column_of(name, type_text) for name, type_text, *_ in described)
