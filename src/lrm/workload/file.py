"""Workloads from files: ``.npy``, ``.npz``, ``.csv`` and ``.parquet``, or a family's spelling."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lrm.errors import FileFormatError, WorkloadError
from lrm.workload.core import Workload
from lrm.workload.csv_text import read_csv
from lrm.workload.specs import FAMILY_EXAMPLES, family_named, family_workload

__all__ = ["read_workload"]

_DAMAGE = (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""What numpy and zipfile raise on files that are broken, cut short, or hold pickles."""


def read_workload(source: str | os.PathLike[str]) -> Workload:
    """Read a batch of queries from a file, or make one of a family.

    Parameters
    ----------
    source
        A file with one row a query and one column a cell, or a family such as
        ``"prefix:64"``. The ending of the name says what the file is:

        ``.npy``
            a NumPy array;
        ``.npz``
            a SciPy sparse matrix (``scipy.sparse.save_npz``), or a single array;
        ``.csv``
            numbers; a first line of cell labels and a first column of query names are
            recognised by not being numbers, or by an empty corner;
        ``.parquet``
            columns of numbers; a first column of text holds the names of the queries.

    Raises
    ------
    WorkloadError
        When the contents are no workload; the message names the file and the line.
    FileFormatError
        When the file is missing, unreadable or damaged.

    Examples
    --------
    >>> read_workload("prefix:4")
    <Workload: 4 queries over 4 cells (prefix)>
    """
    text = os.fspath(source)
    path = Path(text)
    suffix = path.suffix.lower()
    readers = {".npy": _read_npy, ".npz": _read_npz, ".csv": read_csv, ".parquet": _read_parquet}
    if family_named(text) and not path.exists():
        return family_workload(text)
    if suffix not in readers:
        raise WorkloadError(
            f"{text!r} is neither a file ending in {', '.join(readers)} "
            f"nor a family such as {', '.join(FAMILY_EXAMPLES)}"
        )
    try:
        return readers[suffix](path)
    except FileNotFoundError:
        raise FileFormatError(f"no workload file at {path}; check the name") from None
    except OSError as reason:
        raise FileFormatError(
            f"cannot read the workload {path}: {reason.strerror or 'it is no such file'}"
        ) from reason
    except MemoryError as reason:
        raise FileFormatError(
            f"{path} is damaged, or its array does not fit the memory; save it as a sparse .npz"
        ) from reason


def _named(path: Path, queries: Any, names: list[str] | None = None) -> Workload:
    """Make the workload, with the file's name in front of what is wrong with it."""
    try:
        return Workload(queries, names=names)
    except WorkloadError as reason:
        raise WorkloadError(f"{path}: {reason}") from None


def _checked_numbers(path: Path, array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        raise WorkloadError(
            f"{path}: a workload needs real numbers, but its values are of type "
            f"{array.dtype.name}; convert them to float64"
        )
    return array


def _read_npy(path: Path) -> Workload:
    try:
        with path.open("rb") as file:  # np.load leaves a damaged file open
            array = np.load(file, allow_pickle=False)
    except _DAMAGE as reason:
        raise _damaged(path, "a NumPy array of numbers", "numpy.save") from reason
    if not isinstance(array, np.ndarray):  # a zip under a wrong name
        raise WorkloadError(f"{path} holds several arrays; rename it to end in .npz")
    return _named(path, _checked_numbers(path, array))


def _read_npz(path: Path) -> Workload:
    members: list[str] = []
    try:
        with path.open("rb") as file:  # np.load leaves a damaged file open
            bundle = np.load(file, allow_pickle=False)
            array = bundle if isinstance(bundle, np.ndarray) else None
            if array is None:
                members = list(bundle.files)
                array = bundle[members[0]] if len(members) == 1 else None
        if array is None and "format" in members:
            array = sp.load_npz(path)
    except (*_DAMAGE, TypeError, AttributeError, IndexError) as reason:
        raise _damaged(path, "arrays of numbers", "scipy.sparse.save_npz") from reason
    if array is None:
        raise WorkloadError(
            f"{path}: expected a SciPy sparse matrix or a single array, but it holds "
            f"{len(members)} arrays; save the workload alone"
        )
    return _named(path, _checked_numbers(path, array))


def _damaged(path: Path, expected: str, writer: str) -> FileFormatError:
    return FileFormatError(
        f"{path} is damaged or does not hold {expected} (pickled objects are never read); "
        f"write it again with {writer}"
    )


def _read_parquet(path: Path) -> Workload:
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for this kind of file only
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    if not path.is_file():
        raise FileNotFoundError(path)
    try:
        table = pq.read_table(path)
    except pa.ArrowException as reason:
        raise FileFormatError(
            f"{path} is damaged or is no Parquet file; write it again"
        ) from reason
    names = None
    if table.num_columns and _is_text(table.schema.field(0).type):
        names = table.column(0).to_pylist()
        if None in names:
            raise WorkloadError(f"{path}: row {names.index(None) + 1} has no query name")
        table = table.drop_columns([table.column_names[0]])
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_truth(kind)):
            raise WorkloadError(
                f"{path}: column {name!r} holds {kind}, but every column after the names "
                "must hold numbers, one column a cell"
            )
        if column.null_count:
            raise WorkloadError(f"{path}: column {name!r} has empty places; write 0 where none")
        columns.append(np.asarray(column.to_numpy(), dtype=np.float64))
    if not columns:
        raise WorkloadError(f"{path}: expected one column of numbers a cell, but none came")
    return _named(path, np.column_stack(columns), names)


def _is_truth(kind: Any) -> bool:
    return str(kind) == "bool"


def _is_text(kind: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - for Parquet files only

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
