"""Workloads from files: ``.npy``, ``.npz``, ``.csv`` and ``.parquet``, or a family's spelling."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import FileFormatError, WorkloadError
from lrm.files.npy import parse_npy
from lrm.files.parquet import parse_parquet
from lrm.files.reading import opening, read_bytes
from lrm.files.zips import unpack_zip
from lrm.privacy.amounts import spell
from lrm.queries.maps.matrices import DenseMap, check_compressed, check_coordinates
from lrm.queries.workload.core import Workload
from lrm.queries.workload.csv_text import read_csv
from lrm.queries.workload.specs import FAMILY_EXAMPLES, family_named, family_workload
from lrm.queries.workload.suspicion import warn_of_records

_MOST_SIDE = 1 << 40

Members = Mapping[str, NDArray[Any]]


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
    parsers: dict[str, Callable[[bytes], Workload]] = {
        ".npy": lambda data: Workload(_npy_matrix(data)),
        ".npz": lambda data: Workload(_npz_matrix(data)),
        ".parquet": lambda data: _from_table(parse_parquet(data)),
    }
    if family_named(text) and not path.exists():
        return family_workload(text)
    if suffix not in {".csv", *parsers}:
        raise WorkloadError(
            f"{text!r} is neither a file ending in .npy, .npz, .csv, .parquet "
            f"nor a family such as {', '.join(FAMILY_EXAMPLES)}"
        )
    with opening(path, "workload file"):
        return read_csv(path) if suffix == ".csv" else _blaming(path, parsers[suffix])


def _blaming(path: Path, make: Callable[[bytes], Workload]) -> Workload:
    """Say of every error which file it is about."""
    data = read_bytes(path, "workload file")
    try:
        workload = make(data)
    except WorkloadError as reason:
        raise WorkloadError(f"{path}: {reason}") from None
    except FileFormatError as reason:
        raise FileFormatError(
            f"{path} is damaged: {reason}; write it again (pickled objects are never read)"
        ) from None
    if isinstance(workload.queries, DenseMap):
        warn_of_records(workload.queries.dense(), str(path))
    return workload


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


def _npy_matrix(data: bytes) -> NDArray[Any]:
    """The array of numbers that a ``.npy`` file holds."""
    if data.startswith(b"PK"):
        raise WorkloadError("it holds several arrays; rename it to end in .npz")
    return _numbers(parse_npy(data))


def _npz_matrix(data: bytes) -> Any:
    """The sparse matrix, or the single array, that a ``.npz`` file holds."""
    if data.startswith(b"\x93NUMPY"):
        return _npy_matrix(data)
    members = {
        name.removesuffix(".npy"): parse_npy(part) for name, part in unpack_zip(data).items()
    }
    if "format" in members:
        return _sparse(members)
    if len(members) != 1:
        raise WorkloadError(
            f"expected a SciPy sparse matrix or a single array, got {len(members)} arrays; "
            "save the workload alone"
        )
    return _numbers(next(iter(members.values())))


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise WorkloadError(
            f"a workload needs real numbers, not values of type {array.dtype.name}; "
            "convert them to float64"
        )
    return array


def _sparse(members: Members) -> Any:
    """Build what ``scipy.sparse.save_npz`` wrote, with every index checked first."""
    form = _form(_part(members, "format"))
    shape = _shape(_part(members, "shape"))
    data = _numbers(_part(members, "data")).astype(np.float64)
    if form in {"csr", "csc"}:
        sides = shape if form == "csr" else (shape[1], shape[0])
        parts = data, _part(members, "indices"), _part(members, "indptr")
        if data.ndim != 1:
            raise FileFormatError("its values are not one list")
        check_compressed(*parts, sides)
        build = sp.csr_array if form == "csr" else sp.csc_array
        return build((data, *map(_native, parts[1:])), shape=shape)
    if form == "coo":
        places = _part(members, "row"), _part(members, "col")
        check_coordinates(data, places, shape)
        return sp.coo_array((data, tuple(map(_native, places))), shape=shape)
    raise WorkloadError(
        f"a sparse matrix is read in the forms csr, csc and coo, not {form}; "
        "convert it with scipy.sparse.csr_array before you save it"
    )


def _native(indices: NDArray[Any]) -> NDArray[np.int64]:
    """Checked indices in the only order of bytes that SciPy takes."""
    return indices.astype(np.int64)


def _part(members: Members, name: str) -> NDArray[Any]:
    if name not in members:
        raise FileFormatError(f"its array {name!r} is missing")
    return members[name]


def _form(array: NDArray[Any]) -> str:
    if array.shape != () or array.dtype.kind not in "SU":
        raise FileFormatError("its 'format' is not a word")
    word = array.item()
    form = word.decode("ascii", "replace") if isinstance(word, bytes) else str(word)
    return form if form.isalnum() and form.isascii() else "an unknown one"


def _shape(array: NDArray[Any]) -> tuple[int, int]:
    sides = array.tolist() if array.dtype.kind in "iu" and array.shape == (2,) else []
    if len(sides) != 2 or not all(1 <= side <= _MOST_SIDE for side in sides):
        raise FileFormatError("its 'shape' is not that of a matrix")
    return int(sides[0]), int(sides[1])
