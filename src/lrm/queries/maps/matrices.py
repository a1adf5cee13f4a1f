"""Matrices as maps, dense and sparse, and those that users bring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lrm.errors import FileFormatError, WorkloadError
from lrm.queries.maps.linear import (
    MOST_SIDE,
    Floats,
    Integers,
    LinearMap,
    StoredMap,
    WeightedRanges,
    is_whole,
)

SPARSE_BELOW = 0.25
"""A matrix with a smaller share of non-zeros is compact in sparse form."""

MOST_EMPTY_ROWS = 1 << 22
"""Rows of a sparse map beyond its number of entries: a few bytes pack any number of them."""

_COMPRESSED = {"csr": 0, "csc": 1}
"""Which side of the shape each compressed form walks along."""


@dataclass(frozen=True, eq=False)
class _MatrixMap(LinearMap):
    """What dense and sparse matrices have in common."""

    matrix: Any

    def apply(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ x)

    def apply_transpose(self, y: Floats) -> Floats:
        return np.asarray(self.matrix.T @ y)

    def written_out(self) -> Self:
        return self

    def compact(self, *, drop_idle: bool) -> LinearMap:
        matrix = self.sparse()
        busy = np.flatnonzero(np.diff(matrix.indptr))
        if drop_idle and len(busy) < matrix.shape[0]:
            matrix = matrix[busy]
        if matrix.nnz < SPARSE_BELOW * matrix.shape[0] * matrix.shape[1]:
            return SparseMap(matrix)
        return DenseMap(matrix.toarray())

    @abstractmethod
    def _each(self, function: Callable[[Floats], Floats]) -> Self:
        """The matrix with a function of each entry; that of 0 is 0."""

    def scaled(self, factor: float) -> Self:
        return self._each(lambda entries: entries * factor)

    def rounded(self, factor: float) -> Self:
        return self._each(lambda entries: np.rint(entries * factor))

    def absolute(self) -> Self:
        return self._each(np.abs)

    def squared(self) -> Self:
        return self._each(np.square)

    def column_absolute_sums(self) -> Floats:
        return np.asarray(abs(self.matrix).sum(axis=0)).ravel()

    def column_squared_sums(self) -> Floats:
        return np.asarray((self.matrix**2).sum(axis=0)).ravel()


@dataclass(frozen=True, eq=False)
class DenseMap(_MatrixMap):
    """A map held as its matrix."""

    matrix: Floats
    kind: ClassVar[str] = "dense"

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=np.float64, order="C")
        if matrix.flags.writeable:
            matrix = matrix.copy()
            matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "shape", matrix.shape)

    def rows(self, start: int, stop: int) -> Floats:
        return self.matrix[start:stop]

    def columns(self, indices: NDArray[np.intp]) -> DenseMap:
        return DenseMap(self.matrix[:, indices])

    @cached_property
    def entry_count(self) -> int:
        return int(np.count_nonzero(self.matrix))

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        sizes = np.abs(self.matrix[self.matrix != 0])
        return (float(sizes.min()), float(sizes.max())) if len(sizes) else (1.0, 1.0)

    def sparse(self) -> sp.csr_array:
        return sp.csr_array(self.matrix)

    def sparse_columns(self) -> sp.csc_array:
        return sp.csc_array(self.matrix)

    def _each(self, function: Callable[[Floats], Floats]) -> DenseMap:
        return DenseMap(function(self.matrix))

    def scale_rows(self, factors: Floats) -> DenseMap:
        return DenseMap(self.matrix * factors[:, None])

    def scale_columns(self, factors: Floats) -> DenseMap:
        return DenseMap(self.matrix * factors)

    def gram(self) -> Floats:
        return np.asarray(self.matrix.T @ self.matrix)

    def contents(self) -> dict[str, Any]:
        return {"matrix": self.matrix}

    @classmethod
    def from_file(cls, stored: StoredMap) -> DenseMap:
        matrix = stored.array("matrix", "f8", stored.shape)
        if 0 in matrix.shape:
            raise FileFormatError(f"the {stored.name} is empty")
        check_weights(matrix)
        return DenseMap(matrix)


@dataclass(frozen=True, eq=False)
class SparseMap(_MatrixMap):
    """A map held as a compressed sparse matrix (rows compressed)."""

    matrix: sp.csr_array
    kind: ClassVar[str] = "sparse"
    file_values: ClassVar[tuple[str, ...]] = ("shape",)

    def __post_init__(self) -> None:
        matrix = as_csr(self.matrix)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "shape", matrix.shape)

    def rows(self, start: int, stop: int) -> Floats:
        return np.asarray(self.matrix[start:stop].toarray())

    def sparse(self) -> sp.csr_array:
        return self.matrix

    def columns(self, indices: NDArray[np.intp]) -> SparseMap:
        return SparseMap(sp.csr_array(sp.csc_array(self.matrix)[:, indices]))

    def _each(self, function: Callable[[Floats], Floats]) -> SparseMap:
        matrix = self.matrix
        data = function(matrix.data)
        return SparseMap(sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape))

    def scale_rows(self, factors: Floats) -> SparseMap:
        return SparseMap(sp.csr_array(sp.diags_array(factors) @ self.matrix))

    def scale_columns(self, factors: Floats) -> SparseMap:
        return SparseMap(sp.csr_array(self.matrix @ sp.diags_array(factors)))

    def is_expansion_of(
        self, merged: LinearMap, index: Integers, factor: Integers, most: float
    ) -> bool:
        again = merged.sparse_columns()[:, index] @ sp.diags_array(factor.astype(np.float64))
        gap = abs(self.matrix - sp.csr_array(again))
        sizes = abs(self.matrix).max(axis=1).toarray().ravel()
        return bool(np.all(gap.max(axis=1).toarray().ravel() <= most * sizes))

    def single_cell_rows(self) -> Integers | None:
        single = np.flatnonzero(np.diff(self.matrix.indptr) == 1)
        owner = np.full(self.shape[1], -1, dtype=np.int64)
        owner[self.matrix.indices[self.matrix.indptr[single]]] = single
        return None if np.any(owner < 0) else owner

    def weighted_ranges(self, start: int = 0, stop: int | None = None) -> WeightedRanges | None:
        ranges = self._weighted_ranges
        return None if ranges is None else ranges.part(slice(start, stop))

    def sparse_rows(self, start: int, stop: int) -> sp.csr_array:
        return sp.csr_array(self.matrix[start:stop])

    @cached_property
    def _weighted_ranges(self) -> WeightedRanges | None:
        matrix = self.matrix
        lengths = np.diff(matrix.indptr).astype(np.int64)
        if not lengths.all():
            return None
        first = matrix.indices[matrix.indptr[:-1]].astype(np.int64)
        last = matrix.indices[matrix.indptr[1:] - 1].astype(np.int64)
        weights = matrix.data[matrix.indptr[:-1]]
        if not np.array_equal(last - first + 1, lengths):
            return None
        if np.any(matrix.data != np.repeat(weights, lengths)):
            return None
        return WeightedRanges(first, last, weights)

    @property
    def entry_count(self) -> int:
        return int(self.matrix.nnz)

    def gram(self) -> Floats:
        return np.asarray((self.matrix.T @ self.matrix).toarray())

    def is_integer(self) -> bool:
        return is_whole(self.matrix.data)

    def is_nonnegative(self) -> bool:
        return bool(np.all(self.matrix.data >= 0))

    def contents(self) -> dict[str, Any]:
        return {
            "data": self.matrix.data,
            "indices": self.matrix.indices.astype(np.int64),
            "indptr": self.matrix.indptr.astype(np.int64),
            "shape": tuple(int(side) for side in self.shape),
        }

    @classmethod
    def from_file(cls, stored: StoredMap) -> SparseMap:
        sides = stored.facts.integers("shape", 1, MOST_SIDE)
        if len(sides) != 2 or sides[1] != stored.shape[1]:
            raise FileFormatError(f"the {stored.name} has the wrong shape {sides}")
        data = stored.array("data", "f8", (None,))
        indices = stored.array("indices", "i8", (None,))
        indptr = stored.array("indptr", "i8", (None,))
        check_weights(data)
        if sides[0] > max(len(data), MOST_EMPTY_ROWS):
            raise FileFormatError(f"the {stored.name} has {sides[0]:,} rows, most of them empty")
        # Before SciPy sees them: building a matrix alone already follows its indices.
        check_compressed(data, indices, indptr, sides)
        sparse_map = SparseMap(sp.csr_array((data, indices, indptr), shape=sides))
        check_weights(sparse_map.matrix.data)  # duplicates were summed
        return sparse_map


def as_map(queries: LinearMap | ArrayLike | sp.sparray | sp.spmatrix) -> LinearMap:
    """Take queries in any form and check them: two dimensions, not empty, finite.

    >>> as_map([[1, 0], [1, 1]]).shape
    (2, 2)
    """
    if isinstance(queries, LinearMap):
        return queries
    if sp.issparse(queries):
        checked: LinearMap = SparseMap(queries)
        values = checked.contents()["data"]
    else:
        try:
            values = np.asarray(queries, dtype=np.float64)
        except (TypeError, ValueError):
            # NumPy's own error would quote the entry, which may be private.
            raise WorkloadError(
                "a workload needs numbers in rows of equal length; "
                "an entry is not a number, or the rows differ in length"
            ) from None
        if values.ndim != 2:
            raise WorkloadError(
                "a workload is a matrix with one row per query and one column per cell, "
                f"not an array of {values.ndim} dimension(s); reshape it to (queries, cells)"
            )
        checked = DenseMap(values)
    if 0 in checked.shape:
        raise WorkloadError(
            f"a workload needs at least one query and one cell, but its shape is {checked.shape}"
        )
    check_weights(values)
    return checked


def check_weights(values: Floats) -> None:
    """Refuse weights that are not finite, or so large or small that squares of them are not."""
    if not np.all(np.isfinite(values)):
        raise WorkloadError("a workload needs finite numbers, not NaN or infinity")
    if np.abs(values).max(initial=0.0) > 1e100 or np.any((values != 0) & (np.abs(values) < 1e-100)):
        raise WorkloadError(
            "a weight must be 0 or between 1e-100 and 1e100 in absolute value; scale the queries"
        )


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
