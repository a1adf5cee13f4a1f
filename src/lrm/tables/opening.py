"""Opening a table from a path, a URL, or an object."""

from __future__ import annotations

import os
from importlib import import_module

from lrm.errors import TableError
from lrm.tables.base import Table

__all__ = ["ENGINES", "open_table"]

ENGINES = (
    "lrm.tables.postgres_table",
    "lrm.tables.spark_table",
    "lrm.tables.duckdb_table",
)
"""One module an engine. Its ``open_source(source, name)`` returns None for what is not its own."""


def open_table(source: object, name: str | None = None) -> Table:
    """Open a private table for counting; no row is read.

    Parameters
    ----------
    source
        One of:

        - ``data.csv``, ``data.tsv``, ``data.csv.gz``, ``data.parquet``, or a pattern of such
          files, ``parts/*.parquet``;
        - ``file.duckdb::table`` or ``file.duckdb::schema.table``;
        - ``postgresql://user@host/db?table=schema.name``;
        - ``spark:schema.table`` or ``spark:parts.parquet``, in the active Spark session or,
          where there is none, in local mode;
        - a frame of pandas, Polars (also lazy), Arrow (also a dataset) or Spark.
    name
        What to call the table; by default the file's or table's own name.

    Raises
    ------
    TableError
        Where there is no such file, database or table, or its form is not known.
    MissingExtra
        Where the engine is not installed.
    """
    for engine in ENGINES:
        table: Table | None = import_module(engine).open_source(source, name)
        if table is not None:
            return table
    what = (
        repr(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    )
    raise TableError(
        f"{what} is no table that lrm can open; give a .csv or .parquet file, "
        "FILE.duckdb::TABLE, postgresql://HOST/DB?table=NAME, spark:TABLE, or a frame"
    )
