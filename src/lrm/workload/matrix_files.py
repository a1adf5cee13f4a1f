"""Matrices as NumPy and SciPy save them (``.npy``, ``.npz``), checked before they are built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import FileFormatError, WorkloadError
from lrm.files.npy import parse_npy
from lrm.files.zips import unpack_zip
from lrm.maps.matrices import check_compressed, check_coordinates

_MOST_SIDE = 1 << 40

Members = Mapping[str, NDArray[Any]]


def parse_npy_matrix(data: bytes) -> NDArray[Any]:
    """The array of numbers that a ``.npy`` file holds."""
    if data.startswith(b"PK"):
        raise WorkloadError("it holds several arrays; rename it to end in .npz")
    return _numbers(parse_npy(data))


def parse_npz_matrix(data: bytes) -> Any:
    """The sparse matrix, or the single array, that a ``.npz`` file holds."""
    if data.startswith(b"\x93NUMPY"):
        return parse_npy_matrix(data)
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
