"""Opening a table from a path, a URL, or an object."""

from __future__ import annotations

import os
from importlib import import_module

from lrm.domain import CsvForm
from lrm.errors import TableError
from lrm.files.locations import shown
from lrm.tables.base import Table

ENGINES = (
    "lrm.tables.postgres_table",
    "lrm.tables.spark_table",
    "lrm.tables.duckdb_table",
)
"""One module per engine. Its ``open_source(source, name)`` returns None for other sources."""

SCHEMES = ("postgresql://", "postgres://", "spark:")
"""Beginnings of addresses that engines accept; others would be taken for file names."""


def open_table(source: object, name: str | None = None, *, csv: CsvForm | None = None) -> Table:
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
    csv
        Open files of any name as CSV files written in this form. The domain is the usual place to
        declare it (`lrm.domain.CsvForm`).

    Raises
    ------
    TableError
        Where there is no such file, database or table, or its form is not known.
    MissingExtra
        Where the engine is not installed.
    """
    if csv is not None:
        return _open_csv(source, name, csv)
    refused = isinstance(source, str) and "://" in source and not source.startswith(SCHEMES)
    for engine in () if refused else ENGINES:
        table: Table | None = import_module(engine).open_source(source, name)
        if table is not None:
            return table
    what = repr(shown(source)) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    raise TableError(
        f"{what} is not a table that lrm can open; give a .csv or .parquet file, "
        "FILE.duckdb::TABLE, postgresql://HOST/DB?table=NAME, spark:TABLE, or a frame"
    )


def _open_csv(source: object, name: str | None, form: CsvForm) -> Table:
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if not isinstance(path, str) or "::" in path or "://" in path:
        raise TableError("csv= is only for CSV files; leave it out for other tables")
    opened: Table = import_module("lrm.tables.duckdb_table").open_csv(path, name, form)
    return opened
