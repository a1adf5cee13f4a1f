"""Frames in memory (pandas, Polars, Arrow), read by DuckDB through Arrow.

A column of pandas that holds Python objects has no type, and guessing one from its values
would let a count depend on them. Such a column is placed in cells by the plain Python rules
of its attribute instead: slower, and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lrm.domain import Attribute, Domain
from lrm.domain.persons import person_name
from lrm.errors import TableError
from lrm.tables.base import Column, guarded, load_engine
from lrm.tables.duckdb_connection import connection, describe

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["FrameSource", "is_frame"]


def is_frame(value: object) -> bool:
    """Whether ``value`` is a frame of pandas, Polars or Arrow."""
    home = type(value).__module__.partition(".")[0]
    wanted = {"DataFrame", "LazyFrame", "Table", "RecordBatch", "Dataset", "FileSystemDataset"}
    wanted |= {"InMemoryDataset", "UnionDataset"}
    return home in {"pandas", "polars", "pyarrow"} and type(value).__name__ in wanted


class FrameSource:
    """A frame in memory, or a dataset of Arrow, whose batches are read as they are needed."""

    label = "frame"

    def __init__(self, frame: Any) -> None:
        self._pa = load_engine("pyarrow")
        self._frame = frame
        self._columns = guarded("reading the frame's schema", self._look)

    def _look(self) -> tuple[Column, ...]:
        names = _names(self._frame)
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise TableError(f"the frame has column {min(twice)!r} twice; name each once")
        with connection() as db:
            return tuple(self._classify(db, name) for name in names)

    def _classify(self, db: DuckDBPyConnection, name: str) -> Column:
        if _holds_objects(self._frame, name):
            return Column(name, "object", "cells")
        try:
            empty = self._pa.table({"x": _arrow_column(self._pa, _empty(self._frame), name)})
            db.register("lrm_empty", empty)
            return replace(describe(db, "lrm_empty")[0], name=name)
        except Exception:  # noqa: BLE001 - a type that Arrow or DuckDB does not know
            return Column(name, "a type unknown to DuckDB", "other")

    def columns(self, domain: Domain | None = None) -> tuple[Column, ...]:  # noqa: ARG002 - the frame says
        return self._columns

    def check(self, needed: Sequence[Column], domain: Domain) -> None:
        """Nothing fails later that `columns` does not show."""

    def relation(self, db: DuckDBPyConnection, domain: Domain, *, schema_only: bool) -> str:
        """Make the needed columns known as an Arrow table; a dataset is read in batches."""
        if _is_dataset(self._frame):
            db.register("lrm_frame", self._frame)
            return "lrm_frame"
        frame = _empty(self._frame) if schema_only else self._frame
        wanted = {attribute.name: attribute for attribute in domain.attributes}
        unit = domain.unit.column
        if hasattr(frame, "collect"):  # lazy: its plan is run once, for all columns
            frame = frame.select(list({*wanted} | ({unit} if unit else set()))).collect()
        columns = {} if unit is None else {unit: self._persons(frame, unit, wanted)}
        columns |= {name: self._values(frame, attribute) for name, attribute in wanted.items()}
        db.register("lrm_frame", self._pa.table(columns))
        return "lrm_frame"

    def _values(self, frame: Any, attribute: Attribute) -> Any:
        if not _holds_objects(frame, attribute.name):
            return _arrow_column(self._pa, frame, attribute.name)
        column = frame[attribute.name]
        values = column.to_numpy(dtype=object, copy=True)
        values[column.isna().to_numpy()] = None
        return self._pa.array(map(attribute.cell_of, values), type=self._pa.int64())

    def _persons(self, frame: Any, name: str, attributes: dict[str, Attribute]) -> Any:
        if not _holds_objects(frame, name):
            return _arrow_column(self._pa, frame, name)
        if name in attributes:
            raise TableError(
                f"column {name!r} names the privacy unit, is an attribute, and holds Python "
                "objects; give it a type, as with frame.astype({...})"
            )
        return self._pa.array(map(person_name, frame[name]), type=self._pa.large_binary())


def _is_dataset(frame: Any) -> bool:
    return type(frame).__name__.endswith("Dataset")


def _names(frame: Any) -> list[str]:
    if hasattr(frame, "collect_schema"):  # Polars
        return list(frame.collect_schema().names())
    if type(frame).__module__.startswith("pandas"):
        return [name for name in frame.columns if isinstance(name, str)]
    return list(frame.schema.names)


def _holds_objects(frame: Any, name: str) -> bool:
    return type(frame).__module__.startswith("pandas") and str(frame[name].dtype) == "object"


def _empty(frame: Any) -> Any:
    if _is_dataset(frame):
        return frame.schema.empty_table()
    return frame.slice(0, 0) if hasattr(frame, "slice") else frame.head(0)


def _arrow_column(pa: Any, frame: Any, name: str) -> Any:
    """One column as Arrow. NumPy's NaN is how pandas writes NULL, and becomes NULL."""
    if hasattr(frame, "collect_schema"):
        frame = frame.lazy().select(name).collect()  # a frame in memory is not copied
        return frame[name].to_arrow()
    if type(frame).__module__.startswith("pandas"):
        return pa.Array.from_pandas(frame[name])
    return frame.column(name)
