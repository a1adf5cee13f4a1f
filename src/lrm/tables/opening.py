"""Opening a table from a path, a URL, or an object."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import glob
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from lrm.domain import CsvForm
from lrm.errors import TableError
from lrm.files.locations import shown
from lrm.tables.base import Table, guarded

ENGINES = (
    "lrm.tables.postgres_table",
    "lrm.tables.spark_table",
    "lrm.tables.duckdb_table",
)
"""One module per engine. Its ``open_source(source, name)`` returns None for other sources."""

SCHEMES = ("postgresql://", "postgres://", "spark:")
"""Beginnings of addresses that engines accept; others would be taken for file names."""

GROUP = "lrm.engines"
"""Entry points of engines in other packages: the scheme of their addresses, and a module with
``open_source``, as those of `ENGINES` have it."""


def open_table(source: object, name: str | None = None, *, csv: CsvForm | None = None) -> Table:
    """Open a private table for counting; no row is read.

    Parameters
    ----------
    source
        One of:

        - ``data.csv``, ``data.tsv``, ``data.csv.gz``, ``data.parquet``, or a pattern of such
          files, ``parts/*.parquet``;
        - a folder of Parquet files, or ``parts/**/*.parquet``, where folders ``year=2024`` below
          it are columns, read as what the domain declares;
        - ``file.duckdb::table`` or ``file.duckdb::schema.table``;
        - ``postgresql://user@host/db?table=schema.name``;
        - ``spark:schema.table`` or ``spark:parts.parquet``, in the active Spark session or,
          where there is none, in local mode;
        - ``SCHEME:…``, where a package with an engine for it is installed;
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
    for module in _modules(source):
        table: Table | None = module.open_source(source, name)
        if table is not None:
            return table
    what = repr(shown(source)) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    raise TableError(
        f"{what} is not a table that lrm can open; give a .csv or .parquet file, a folder "
        "of them, FILE.duckdb::TABLE, postgresql://HOST/DB?table=NAME, spark:TABLE, or a frame"
    )


def _modules(source: object) -> Iterator[Any]:
    """The engines that may open a source; those of other packages where one has its scheme."""
    if isinstance(source, (str, os.PathLike)):
        scheme = re.match(r"([a-z][a-z0-9+.-]*):(?!:)", str(os.fspath(source)))
        if scheme is not None and "://" not in str(source):
            engines = list(_installed(scheme[1]))
            if not engines and scheme[1] != "spark" and not glob(str(source).partition("::")[0]):  # noqa: PTH207 - a pattern
                raise TableError(
                    f"no installed package has an engine for {scheme[1]}: addresses, and there is "
                    "no such file"
                )
            yield from engines
    if not isinstance(source, str) or "://" not in source or source.startswith(SCHEMES):
        yield from map(import_module, ENGINES)
    if not isinstance(source, (str, os.PathLike)):
        yield from _installed()


def _installed(scheme: str | None = None) -> Iterator[Any]:
    for point in entry_points(group=GROUP):
        if scheme is None or point.name == scheme:
            yield guarded(f"loading the engine {point.name!r}", point.load)


def _open_csv(source: object, name: str | None, form: CsvForm) -> Table:
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if not isinstance(path, str) or "::" in path or "://" in path:
        raise TableError("csv= is only for CSV files; leave it out for other tables")
    opened: Table = import_module("lrm.tables.duckdb_table").open_csv(path, name, form)
    return opened
