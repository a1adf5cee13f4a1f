"""Linear maps: the queries of a workload as an operator first, a matrix on demand.

A map of shape ``(m, n)`` answers ``m`` queries over ``n`` cells. Dense and sparse
matrices are maps; prefix sums and all ranges are maps that never build their
matrix. Code that needs numbers asks for the least that is sufficient: a product,
a block of rows, some columns, the Gram matrix ``WᵀW``.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lrm.errors import WorkloadError
from lrm.maps.sparse_format import as_csr
from lrm.maps.whole import WholeSums, exact_totals, whole_numbers

__all__ = [
    "AllRanges",
    "DenseMap",
    "Floats",
    "LinearMap",
    "Prefix",
    "SparseMap",
    "as_map",
    "check_weights",
]

Floats = NDArray[np.float64]

BLOCK_ENTRIES = 1 << 22
"""How many float64 entries (32 MB) one block of rows may have."""


class LinearMap(ABC):
    """``m`` linear queries over ``n`` cells."""

    shape: tuple[int, int]
    kind: ClassVar[str]
    """The name of the form, as files spell it."""

    @abstractmethod
    def apply(self, x: Floats) -> Floats:
        """``W @ x`` for a vector or an n×c matrix."""

    @abstractmethod
    def apply_transpose(self, y: Floats) -> Floats:
        """``W.T @ y`` for a vector or an m×c matrix."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Floats:
        """Rows ``start:stop`` as a dense array."""

    @abstractmethod
    def columns(self, indices: NDArray[np.intp]) -> LinearMap:
        """Restrict the map to some cells."""

    @abstractmethod
    def gram(self) -> Floats:
        """``WᵀW`` as a dense n×n array."""

    @abstractmethod
    def column_absolute_sums(self) -> Floats:
        """``Σᵢ |Wᵢⱼ|`` for each cell j."""

    @abstractmethod
    def column_squared_sums(self) -> Floats:
        """``Σᵢ Wᵢⱼ²`` for each cell j."""

    def squared_norm(self) -> float:
        """``‖W‖_F²``."""
        return float(self.column_squared_sums().sum())

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """Everything that defines the map: plain values and arrays."""

    def dense(self) -> Floats:
        """The whole matrix; only solvers may ask for it."""
        return self.rows(0, self.shape[0])

    def sparse(self) -> sp.csr_array:
        """The whole matrix with compressed rows."""
        return sp.csr_array(self.dense())

    def integer_column_sums(self, power: int) -> WholeSums:
        """``Σᵢ |Wᵢⱼ|^power`` for each cell j, exactly.

        What privacy rests on: no float is rounded and no integer wraps around. A map that
        holds anything but whole numbers below 2^52 is refused.
        """
        matrix = self.sparse()
        sizes = np.abs(whole_numbers(matrix.data))
        return exact_totals(sizes, matrix.indices, self.shape[1], power)

    def integer_column_peaks(self) -> NDArray[np.int64]:
        """``maxᵢ |Wᵢⱼ|`` for each cell j, of whole numbers below 2^52."""
        matrix = self.sparse()
        peaks = np.zeros(self.shape[1], dtype=np.int64)
        np.maximum.at(peaks, matrix.indices, np.abs(whole_numbers(matrix.data)))
        return peaks

    def apply_exactly(self, x: NDArray[np.int64]) -> NDArray[np.int64]:
        """``W @ x`` in 64-bit integers, for whole weights."""
        matrix = self.sparse()
        whole = sp.csr_array(
            (whole_numbers(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        return np.asarray(whole @ x)

    def scaled(self, factor: float) -> LinearMap:
        """``factor`` times the map."""
        return DenseMap(self.dense() * factor)

    def rounded(self, factor: float) -> LinearMap:
        """``factor`` times the map, rounded to whole numbers."""
        return DenseMap(np.rint(self.dense() * factor))

    def row_blocks(self, width: int | None = None) -> Iterator[tuple[int, Floats]]:
        """Yield ``(start, rows)`` in blocks that stay small compared with ``width`` columns."""
        m, n = self.shape
        height = max(1, BLOCK_ENTRIES // max(n, width or 0, 1))
        for start in range(0, m, height):
            yield start, self.rows(start, min(start + height, m))

    def is_integer(self) -> bool:
        """Whether every weight is a whole number of modest size (below 2³¹)."""
        return all(_is_whole(block) for _, block in self.row_blocks())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the form and its contents."""
        seal = hashlib.sha256(f"{self.kind}:{self.shape}".encode())
        for name, value in sorted(self.contents().items()):
            seal.update(name.encode())
            if isinstance(value, np.ndarray):
                seal.update(str(value.dtype).encode() + str(value.shape).encode())
                seal.update(np.ascontiguousarray(value).tobytes())
            else:
                seal.update(repr(value).encode())
        return seal.hexdigest()


def _is_whole(values: Floats) -> bool:
    return bool(np.all(np.abs(values) < 2.0**31) and np.all(values == np.rint(values)))


@dataclass(frozen=True, eq=False)
class DenseMap(LinearMap):
    """A map held as its matrix."""

    matrix: Floats
    kind: ClassVar[str] = "dense"

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64, order="C")
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "shape", matrix.shape)

    def apply(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ x)

    def apply_transpose(self, y: Floats) -> Floats:
        return np.asarray(self.matrix.T @ y)

    def rows(self, start: int, stop: int) -> Floats:
        return self.matrix[start:stop]

    def columns(self, indices: NDArray[np.intp]) -> DenseMap:
        return DenseMap(self.matrix[:, indices])

    def gram(self) -> Floats:
        return np.asarray(self.matrix.T @ self.matrix)

    def column_absolute_sums(self) -> Floats:
        return np.asarray(np.abs(self.matrix).sum(axis=0))

    def column_squared_sums(self) -> Floats:
        return np.asarray((self.matrix**2).sum(axis=0))

    def contents(self) -> dict[str, Any]:
        return {"matrix": self.matrix}


@dataclass(frozen=True, eq=False)
class SparseMap(LinearMap):
    """A map held as a compressed sparse matrix (rows compressed)."""

    matrix: sp.csr_array
    kind: ClassVar[str] = "sparse"

    def __post_init__(self) -> None:
        matrix = as_csr(self.matrix)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "shape", matrix.shape)

    def apply(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ x)

    def apply_transpose(self, y: Floats) -> Floats:
        return np.asarray(self.matrix.T @ y)

    def rows(self, start: int, stop: int) -> Floats:
        return np.asarray(self.matrix[start:stop].toarray())

    def sparse(self) -> sp.csr_array:
        return self.matrix

    def columns(self, indices: NDArray[np.intp]) -> SparseMap:
        return SparseMap(sp.csr_array(sp.csc_array(self.matrix)[:, indices]))

    def scaled(self, factor: float) -> SparseMap:
        return SparseMap(sp.csr_array(self.matrix * factor))

    def rounded(self, factor: float) -> SparseMap:
        whole = sp.csr_array(self.matrix, copy=True)
        whole.data = np.rint(whole.data * factor)
        return SparseMap(whole)

    def gram(self) -> Floats:
        return np.asarray((self.matrix.T @ self.matrix).toarray())

    def column_absolute_sums(self) -> Floats:
        return np.asarray(abs(self.matrix).sum(axis=0)).ravel()

    def column_squared_sums(self) -> Floats:
        return np.asarray(self.matrix.power(2).sum(axis=0)).ravel()

    def is_integer(self) -> bool:
        return _is_whole(self.matrix.data)

    def contents(self) -> dict[str, Any]:
        return {
            "data": self.matrix.data,
            "indices": self.matrix.indices.astype(np.int64),
            "indptr": self.matrix.indptr.astype(np.int64),
            "shape": tuple(int(side) for side in self.shape),
        }


@dataclass(frozen=True, eq=False)
class Prefix(LinearMap):
    """Running totals: query i is the sum of cells 0 to i. Costs O(n) a product.

    >>> Prefix(4).apply(np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 1.,  3.,  6., 10.])
    """

    cells: int
    kind: ClassVar[str] = "prefix"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (self.cells, self.cells))

    def apply(self, x: Floats) -> Floats:
        return np.cumsum(x, axis=0)

    def apply_transpose(self, y: Floats) -> Floats:
        return np.cumsum(y[::-1], axis=0)[::-1]

    def rows(self, start: int, stop: int) -> Floats:
        return (np.arange(self.cells) <= np.arange(start, stop)[:, None]).astype(np.float64)

    def columns(self, indices: NDArray[np.intp]) -> LinearMap:
        return DenseMap((indices <= np.arange(self.cells)[:, None]).astype(np.float64))

    def gram(self) -> Floats:
        cell = np.arange(self.cells, dtype=np.float64)
        return self.cells - np.maximum.outer(cell, cell)

    def column_absolute_sums(self) -> Floats:
        return np.arange(self.cells, 0, -1, dtype=np.float64)

    def column_squared_sums(self) -> Floats:
        return self.column_absolute_sums()  # every weight is 0 or 1

    def is_integer(self) -> bool:
        return True

    def contents(self) -> dict[str, Any]:
        return {"cells": self.cells}


@dataclass(frozen=True, eq=False)
class AllRanges(LinearMap):
    """Every range [a, b] with 0 ≤ a ≤ b < n, in order of a, then b: n(n+1)/2 queries.

    >>> AllRanges(3).apply(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 7., 2., 6., 4.])
    """

    cells: int
    kind: ClassVar[str] = "all-ranges"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (self.cells * (self.cells + 1) // 2, self.cells))

    def bounds(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last cell of the queries ``start:stop``."""
        n = self.cells
        query = np.arange(start, stop, dtype=np.int64)
        # Ranges that begin at cell a start at row a·n − a(a−1)/2; invert that by search.
        first_row = np.arange(n, dtype=np.int64)
        first_row = first_row * n - first_row * (first_row - 1) // 2
        first = np.searchsorted(first_row, query, side="right") - 1
        return first, first + query - first_row[first]

    def apply(self, x: Floats) -> Floats:
        total = np.concatenate([np.zeros((1, *x.shape[1:])), np.cumsum(x, axis=0)])
        first, last = self.bounds(0, self.shape[0])
        return np.asarray(total[last + 1] - total[first])

    def apply_transpose(self, y: Floats) -> Floats:
        first, last = self.bounds(0, self.shape[0])
        change = np.zeros((self.cells + 1, *y.shape[1:]))
        np.add.at(change, first, y)
        np.subtract.at(change, last + 1, y)
        return np.asarray(np.cumsum(change, axis=0)[:-1])

    def rows(self, start: int, stop: int) -> Floats:
        first, last = self.bounds(start, stop)
        cell = np.arange(self.cells)
        return ((cell >= first[:, None]) & (cell <= last[:, None])).astype(np.float64)

    def columns(self, indices: NDArray[np.intp]) -> LinearMap:
        first, last = self.bounds(0, self.shape[0])
        inside = (indices >= first[:, None]) & (indices <= last[:, None])
        return DenseMap(inside.astype(np.float64))

    def gram(self) -> Floats:
        cell = np.arange(self.cells, dtype=np.float64)
        first, last = np.minimum.outer(cell, cell), np.maximum.outer(cell, cell)
        return np.asarray((first + 1.0) * (self.cells - last))

    def column_absolute_sums(self) -> Floats:
        cell = np.arange(self.cells, dtype=np.float64)
        return (cell + 1) * (self.cells - cell)

    def column_squared_sums(self) -> Floats:
        return self.column_absolute_sums()  # every weight is 0 or 1

    def is_integer(self) -> bool:
        return True

    def contents(self) -> dict[str, Any]:
        return {"cells": self.cells}


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
        except (TypeError, ValueError) as reason:
            raise WorkloadError(
                "a workload needs numbers in rows of equal length; "
                "an entry is not a number, or the rows differ in length"
            ) from reason
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
