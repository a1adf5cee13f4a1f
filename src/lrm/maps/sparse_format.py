"""Sparse matrices from outside: every index is checked before SciPy follows it.

SciPy's compiled routines trust the index arrays of a matrix. One index out of range makes
them read or write outside their arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import WorkloadError

__all__ = ["as_csr", "check_compressed", "check_coordinates"]

_COMPRESSED = {"csr": 0, "csc": 1}
"""Which side of the shape each compressed form walks along."""


def as_csr(matrix: Any) -> sp.csr_array:
    """A copy of any SciPy sparse matrix with compressed rows, once its indices are checked."""
    if matrix.ndim != 2:
        raise WorkloadError(
            f"a sparse matrix needs two dimensions, not {matrix.ndim}; reshape it to "
            "(queries, cells)"
        )
    if matrix.dtype.kind not in "biuf":
        raise WorkloadError(
            f"a sparse matrix needs real numbers, not values of type {matrix.dtype.name}; "
            "convert them to float64"
        )
    form = matrix.format
    if form in _COMPRESSED:
        major = _COMPRESSED[form]
        sides = matrix.shape[major], matrix.shape[1 - major]
        check_compressed(matrix.data, matrix.indices, matrix.indptr, sides)
    elif form == "bsr":
        _check_blocks(matrix)
    elif form == "coo":
        check_coordinates(matrix.data, matrix.coords, matrix.shape)
    rows = sp.csr_array(matrix, dtype=np.float64, copy=True)
    if form not in _COMPRESSED:  # the other forms are checked by what they become
        check_compressed(rows.data, rows.indices, rows.indptr, rows.shape)
    return rows


def check_compressed(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], sides: tuple[int, int]
) -> None:
    """Refuse compressed rows (or columns) whose parts do not fit each other.

    Parameters
    ----------
    data, indices, indptr
        As SciPy names them; ``data`` may hold a block for each entry.
    sides
        The number of compressed rows, and of columns.
    """
    _check_vectors(indices, indptr)
    major, minor = sides
    if len(indptr) != major + 1:
        raise _broken(f"{major} rows need {major + 1} row limits, not {len(indptr)}")
    if len(data) != len(indices):
        raise _broken(f"it has {len(data)} values at {len(indices)} places")
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(indptr[1:] < indptr[:-1]):
        raise _broken("its row limits do not rise from 0 to the number of values")
    _check_range(indices, minor)


def check_coordinates(data: NDArray[Any], places: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    """Refuse a list of entries of which one lies outside ``shape``."""
    _check_vectors(*places)
    for place, side in zip(places, shape, strict=True):
        if len(place) != len(data):
            raise _broken(f"it has {len(data)} values at {len(place)} places")
        _check_range(place, side)


def _check_blocks(matrix: Any) -> None:
    if matrix.data.ndim != 3 or 0 in matrix.data.shape[1:]:
        raise _broken("its blocks are empty")
    tall, wide = matrix.data.shape[1:]
    rows, columns = matrix.shape
    if rows % tall or columns % wide:
        raise _broken("its blocks do not fit its shape")
    sides = rows // tall, columns // wide
    check_compressed(matrix.data, matrix.indices, matrix.indptr, sides)


def _check_vectors(*parts: NDArray[Any]) -> None:
    for part in parts:
        if part.ndim != 1 or part.dtype.kind not in "iu":
            raise _broken("its indices are not lists of integers")


def _check_range(indices: NDArray[Any], side: int) -> None:
    if len(indices) and not (indices.min() >= 0 and indices.max() < side):
        raise _broken(f"an index is outside 0 to {side - 1}")


def _broken(sentence: str) -> WorkloadError:
    return WorkloadError(f"the sparse matrix is damaged: {sentence}")
