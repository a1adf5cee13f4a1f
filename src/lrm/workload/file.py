"""Workloads from files: ``.npy``, ``.npz``, ``.csv`` and ``.parquet``, or a family's spelling."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lrm.errors import FileFormatError, WorkloadError
from lrm.files.parquet import parse_parquet
from lrm.files.reading import opening, read_bytes
from lrm.privacy.amounts import spell
from lrm.workload.core import Workload
from lrm.workload.csv_text import read_csv
from lrm.workload.matrix_files import parse_npy_matrix, parse_npz_matrix
from lrm.workload.specs import FAMILY_EXAMPLES, family_named, family_workload


def read_workload(source: str | os.PathLike[str]) -> Workload:
    """Read a batch of queries from a file, or make one of a family.

    Parameters
    ----------
    source
        A file with one row per query and one column per cell, or a family such as
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
        When the contents are not a workload; the message names the file and the line.
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
    with opening(path, "workload file"):
        return readers[suffix](path)


def _blaming(path: Path, make: Callable[[], Workload]) -> Workload:
    """Say of every error which file it is about."""
    try:
        return make()
    except WorkloadError as reason:
        raise WorkloadError(f"{path}: {reason}") from None
    except FileFormatError as reason:
        raise FileFormatError(
            f"{path} is damaged: {reason}; write it again (pickled objects are never read)"
        ) from None


def _read_npy(path: Path) -> Workload:
    data = read_bytes(path, "workload file")
    return _blaming(path, lambda: Workload(parse_npy_matrix(data)))


def _read_npz(path: Path) -> Workload:
    data = read_bytes(path, "workload file")
    return _blaming(path, lambda: Workload(parse_npz_matrix(data)))


def _read_parquet(path: Path) -> Workload:
    data = read_bytes(path, "workload file")
    return _blaming(path, lambda: _from_table(parse_parquet(data)))


def _from_table(table: Any) -> Workload:
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, for this kind of file only

    names = None
    if table.num_columns and _is_text(table.schema.field(0).type):
        names = table.column(0).to_pylist()
        if None in names:
            raise WorkloadError(f"row {names.index(None) + 1} has no query name")
        table = table.remove_column(0)
    columns = []
    for number, column in enumerate(table.columns):
        kind, name = column.type, spell(table.schema.field(number).name)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_truth(kind)):
            raise WorkloadError(
                f"column {name} holds {spell(kind)}, but every column after the names "
                "must hold numbers, one column per cell"
            )
        if column.null_count:
            raise WorkloadError(f"column {name} has empty places; write 0 for a weight of zero")
        columns.append(np.asarray(column.to_numpy(), dtype=np.float64))
    if not columns:
        raise WorkloadError("expected one column of numbers per cell, got none")
    return Workload(np.column_stack(columns), names=names)


def _is_truth(kind: Any) -> bool:
    return str(kind) == "bool"


def _is_text(kind: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - for Parquet files only

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
