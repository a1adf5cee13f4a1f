"""Parquet files as one table: a file, a pattern, or a folder, perhaps partitioned as Hive does it.

Below a folder, ``year=2024/state=NY/part-0.parquet`` has the columns ``year`` and ``state``. The
names of folders are texts, and guessing a type from all of them would make the type of a column
depend on the data. So they are read as the texts of a CSV file are, as whatever the domain
declares (`lrm.tables.csv_values`). They are as private as rows: no message shows one.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lrm.domain import Domain
from lrm.errors import TableError
from lrm.files.locations import shown
from lrm.tables.arrow_rows import ArrowRows
from lrm.tables.base import Column, column_names, guarded, load_engine
from lrm.tables.duckdb_connection import connection, describe
from lrm.tables.duckdb_reading import SQL, Needed, Reading, Source, reading_of
from lrm.tables.duckdb_sources import files_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BATCH_ROWS = 1 << 17
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder of rows whose value is NULL, as Hive, Spark, Arrow and DuckDB write it."""

FILE_NUMBER = "file_index"
"""DuckDB's column of the place of a row's file in the list."""


@dataclass(frozen=True)
class PartFile:
    """A file, its place below the given folder, and the values in the names of its folders."""

    path: str
    values: tuple[tuple[str, str | None], ...]  # a column's name and its text

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that the folders state."""
        return tuple(key for key, _ in self.values)

    @property
    def label(self) -> str:
        """The path for messages, without the values of partition columns."""
        return repr(re.sub(r"=[^/]*(?=/)", "=…", self.path) if self.values else self.path)


def part_files(pattern: str) -> tuple[PartFile, ...]:
    """The files of a path, a pattern or a folder, with their partition columns.

    Partition columns are those of the folders below the one that is given: of a pattern, below the
    last folder before its first wildcard.
    """
    root = Path(pattern)
    if not root.is_dir():
        files = files_of(pattern)
        exact = Path(pattern).is_file()
        wild = re.search(r"[*?\[]", pattern)
        start = len(pattern) if wild is None else wild.start()
        root = Path(pattern if exact else pattern[:start]).parent
    else:
        _refuse_table_formats(root)
        files = files_of(f"{glob.escape(str(root))}/**/*.parquet")
    folders = {file: Path(os.path.relpath(file, root)).parts[:-1] for file in files}
    parts = tuple(
        PartFile(file, _values(below))
        for file, below in folders.items()
        if not any(map(_is_hidden, below))
    )
    if not parts:
        raise TableError(f"{shown(pattern)!r} has no Parquet files but hidden ones")
    if any(part.keys != parts[0].keys for part in parts):
        raise TableError(
            f"files of {shown(pattern)!r} are in folders of different columns (NAME=VALUE); give a "
            "pattern or a folder whose files all have the same columns"
        )
    return parts


def _is_hidden(folder: str) -> bool:
    """Whether a folder holds what is being written or was set aside, by the rule of Spark."""
    return folder.startswith(".") or (folder.startswith("_") and "=" not in folder)


def _refuse_table_formats(root: Path) -> None:
    """Refuse folders whose files alone are not the table: some hold rows that were removed."""
    for name, folder in (("Delta", "_delta_log"), ("Iceberg", "metadata"), ("Hudi", ".hoodie")):
        found = root / folder
        if found.is_dir() and (name != "Iceberg" or any(found.glob("*.metadata.json"))):
            raise TableError(
                f"{str(root)!r} is a table of {name}, whose Parquet files may hold rows that were "
                "removed; read it with Spark (spark:TABLE), or write its rows to Parquet"
            )


def _values(folders: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """What folders such as ``year=2024`` say, as texts."""
    pairs = [folder.partition("=") for folder in folders if folder.find("=") > 0]
    try:
        values = [(_text(key), _text(value)) for key, _, value in pairs]
    except UnicodeError:
        raise TableError(
            "a folder NAME=VALUE of the Parquet files is not text in UTF-8 (it is not shown)"
        ) from None
    names = [key.casefold() for key, _ in values]
    if len(set(names)) < len(names):
        raise TableError("folders of the Parquet files state a column twice (NAME=VALUE)")
    return tuple((key, None if value == NO_VALUE else value) for key, value in values)


def _text(part: str) -> str:
    """A part of a folder's name as it was before its odd characters were written as %41."""
    text = unquote(part, errors="strict")
    text.encode()  # an error where the name of the folder is not UTF-8
    if "\0" in text:
        raise UnicodeError
    return text


class ParquetFiles(Source):
    """Parquet files with one schema, and the columns that their folders state."""

    def __init__(self, pattern: str) -> None:
        self._files = part_files(pattern)
        self.label = Path(pattern).name or Path(pattern).resolve().name
        self._partitions = tuple(
            Column(name, "text (folder)", "raw") for name in self._files[0].keys
        )
        self._columns = (*self._describe(self._files[0]), *self._partitions)

    def _describe(self, file: PartFile) -> tuple[Column, ...]:
        """The columns of one file; those that its folders state are no columns of its own."""

        def look() -> tuple[Column, ...]:
            with connection() as db:
                return describe(db, self._relation([file]))

        columns = guarded(f"reading the schema of {file.label}", look)
        names = {column.name.casefold() for column in columns}
        reserved = [column.name for column in self._partitions]
        for name in [*reserved, FILE_NUMBER] if reserved else []:
            if name.casefold() in names:
                raise TableError(
                    f"file {file.label} has a column {name!r}, which its folders state too"
                    if name in reserved
                    else f"file {file.label} has a column {name!r}, which DuckDB needs for folders"
                )
        return columns

    @staticmethod
    def _relation(files: Sequence[PartFile]) -> str:
        # Where a filter skips parts of a file, their greatest number must not be taken for that
        # of NaNs, too. A bracket in a file's name would be taken for a pattern.
        listed = ", ".join(SQL.text(glob.escape(file.path)) for file in files)
        return f"read_parquet([{listed}], hive_partitioning = false, can_have_nan = true)"

    def check(self, needed: Sequence[Column], domain: Domain) -> None:  # noqa: ARG002
        """Every file has the columns, of one type: a cast between types may fail on a value."""
        for file in self._files:
            columns = self._describe(file)
            reading = f"reading the schema of {file.label}"
            own_names = guarded(reading, partial(_own_names, file.path))
            for column in needed:
                if column in self._partitions:
                    continue
                if column not in columns:
                    raise TableError(
                        f"file {file.label} has no column {column.name!r} of type "
                        f"{column.type_text}, as {self._files[0].label} has"
                    )
                # DuckDB renames the second of two equal names, and Arrow does not.
                if (
                    own_names.count(column.name) > 1
                    or own_names[columns.index(column)] != column.name
                ):
                    raise TableError(
                        f"file {file.label} has several columns that may be called "
                        f"{column.name!r}; write it with names that differ in more than case"
                    )

    def ways(self) -> Sequence[Callable[..., Reading]]:
        return (self._read, self._by_arrow)

    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """By DuckDB's own reader, which refuses some values, such as text that is not UTF-8."""
        relation = self._relation(self._files)
        stated = [column for column in self._partitions if column in needed.values()]
        if stated:
            db.register("lrm_folders", self._folders())
            # The texts of folders are values of a table that is joined, and never SQL.
            listed = [
                f"folders.p{self._partitions.index(column)} AS {SQL.name(column.name)}"
                if column in stated
                else f"f.{SQL.name(column.name)}"
                for column in dict.fromkeys(needed.values())
            ]
            relation = (
                f"(SELECT {', '.join(listed)} FROM {relation} AS f "  # noqa: S608 - quoted parts
                f"JOIN lrm_folders AS folders ON folders.number = f.{FILE_NUMBER})"
            )
        return reading_of(db, relation, domain, needed, empty=empty)

    def _folders(self) -> Any:
        """What the folders of each file say, by the file's number."""
        pa = load_engine("pyarrow")
        numbers = {"number": pa.array(range(len(self._files)), pa.uint64())}
        texts = {
            f"p{place}": pa.array([file.values[place][1] for file in self._files], pa.string())
            for place in range(len(self._partitions))
        }
        return pa.table(numbers | texts)

    def _by_arrow(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """By Arrow's reader, which accepts every value and takes 1.5 times as long."""
        pa, parquet = load_engine("pyarrow"), load_engine("pyarrow.parquet")
        stated = {column.name for column in self._partitions}
        stored = [name for name in column_names(needed) if name not in stated]

        def opened(file: PartFile) -> Any:
            # As integers of 96 bits, Arrow would let times after 2262 wrap around.
            return parquet.ParquetFile(file.path, coerce_int96_timestamp_unit="us")

        def batches() -> Iterator[Any]:
            for file in () if empty else self._files:
                with opened(file) as rows:
                    for batch in rows.iter_batches(BATCH_ROWS, columns=stored):
                        columns = {name: batch.column(name) for name in stored}
                        for name, text in file.values:
                            columns[name] = pa.repeat(pa.scalar(text, pa.string()), len(batch))
                        yield pa.record_batch(columns)

        with opened(self._files[0]) as first:
            types = {field.name: field.type for field in first.schema_arrow}
        rows = ArrowRows(domain, needed, types)
        db.register("lrm_parquet", rows.reader(batches()))
        return rows.reading("lrm_parquet")


def _own_names(file: str) -> list[str]:
    """The names of columns as a Parquet file states them."""
    return list(load_engine("pyarrow.parquet").read_schema(file).names)
