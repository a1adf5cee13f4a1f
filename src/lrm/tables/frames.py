"""Frames in memory (pandas, Polars, Arrow) and datasets of Arrow, read by DuckDB as Arrow."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from lrm.domain import Domain
from lrm.errors import TableError
from lrm.tables.arrow_columns import column_of
from lrm.tables.arrow_rows import ArrowRows, holds_objects
from lrm.tables.base import Column, column_names, guarded, load_engine
from lrm.tables.duckdb_reading import Needed, Reading, Source

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def is_frame(value: object) -> bool:
    """Whether ``value`` is a frame of pandas, Polars or Arrow."""
    home = type(value).__module__.partition(".")[0]
    frame_types = {"DataFrame", "LazyFrame", "Table", "RecordBatch", "Dataset", "FileSystemDataset"}
    frame_types |= {"InMemoryDataset", "UnionDataset"}
    return home in {"pandas", "polars", "pyarrow"} and type(value).__name__ in frame_types


class FrameSource(Source):
    """A frame in memory, or a dataset of Arrow, whose batches are read as they are needed."""

    label = "frame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._types: dict[str, Any] = {}
        self._columns = guarded("reading the frame's schema", self._look)

    def _look(self) -> tuple[Column, ...]:
        names = _names(self._frame)
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise TableError(f"the frame has column {min(twice)!r} twice; name each once")
        return tuple(map(self._classify, names))

    def _classify(self, name: str) -> Column:
        if _is_pandas(self._frame) and holds_objects(self._frame[name]):
            return Column(name, str(self._frame[name].dtype), "cells")
        try:
            self._types[name] = _column(_empty(self._frame), name).type
            return column_of(name, self._types[name])
        except Exception:  # noqa: BLE001 - a type that Arrow does not know
            return Column(name, "a type unknown to Arrow", "other")

    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """Make the needed columns known as an Arrow table; a dataset is read in batches."""
        rows = ArrowRows(domain, needed, self._types)
        frame = _empty(self._frame) if empty else self._frame
        if hasattr(frame, "collect"):  # lazy: its plan is run once, for all columns
            frame = frame.select(column_names(needed)).collect()
        if _is_dataset(frame):
            batches = frame.scanner(columns=column_names(needed)).to_batches()
            db.register("lrm_frame", rows.reader(batches))
        else:
            db.register("lrm_frame", rows.table(partial(_column, frame)))
        return rows.reading("lrm_frame")


def _is_dataset(frame: Any) -> bool:
    return type(frame).__name__.endswith("Dataset")


def _names(frame: Any) -> list[str]:
    if hasattr(frame, "collect_schema"):  # Polars
        return list(frame.collect_schema().names())
    if _is_pandas(frame):
        return [name for name in frame.columns if isinstance(name, str)]
    return list(frame.schema.names)


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.startswith("pandas")


def _empty(frame: Any) -> Any:
    if _is_dataset(frame):
        return frame.schema.empty_table()
    return frame.slice(0, 0) if hasattr(frame, "slice") else frame.head(0)


def _column(frame: Any, name: str) -> Any:
    """One column as Arrow; of pandas as it is, where it holds Python objects."""
    if hasattr(frame, "collect_schema"):
        frame = frame.lazy().select(name).collect()  # a frame in memory is not copied
        if str(frame.schema[name]).startswith("Object"):
            raise TypeError("to Arrow, Polars hands the addresses of Python objects")
        return frame[name].to_arrow()
    if not _is_pandas(frame):
        return frame.column(name)
    column = frame[name]
    if holds_objects(column):
        return column
    if str(column.dtype) in {"Float32", "Float64"}:  # some versions have NaN as well as a mask
        column = column.to_numpy(column.dtype.numpy_dtype, na_value=math.nan)
    # What pandas holds for missing becomes NULL: also NaN of NumPy's floats, which have no NULL.
    return load_engine("pyarrow").Array.from_pandas(column)
