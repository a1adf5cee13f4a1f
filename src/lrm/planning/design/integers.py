"""Bases: matrices that are measured exactly along an axis, and the one over a list of cells."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.planning.design.cells import CellMap
from lrm.planning.limits import ARRAY
from lrm.privacy.norms import Norm
from lrm.queries.maps.linear import Integers, LinearMap
from lrm.queries.maps.whole import WholeSums, whole_numbers

CARRIER_BITS = 62
"""Every true measurement must stay below 2^62: half of what a signed 64-bit integer holds."""


def row_divisors(rows: sp.csr_array) -> Integers:
    """The greatest common divisor of each row of whole numbers below 2^52; 1 for rows of zeros.

    >>> row_divisors(sp.csr_array(np.array([[4.0, 0.0, -6.0], [0.0, 0.0, 0.0], [0.0, 5.0, 5.0]])))
    array([2, 1, 5])
    """
    divisors = np.zeros(rows.shape[0], dtype=np.int64)
    places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    np.gcd.at(divisors, places, whole_numbers(rows.data))
    return np.maximum(divisors, 1)


class Basis(ABC):
    """A matrix over the values of one axis: in whole numbers, what is measured along it."""

    size: int
    """Number of values."""
    residual: ClassVar[bool] = False
    """Whether it sends a vector to 0, so that its measurements inform about themselves alone."""

    @property
    def is_whole(self) -> bool:
        """Whether its entries are whole numbers."""
        return True

    @property
    def scale(self) -> float:
        """What the entries are divided by to have columns of norm 1."""
        return 1.0

    @property
    @abstractmethod
    def height(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def peak(self) -> int:
        """Largest size of an entry."""

    @property
    def mirrored(self) -> bool:
        """Whether its values are mirror images of each other in a folded table."""
        return False

    @abstractmethod
    def column_norm(self, power: int) -> int:
        """Largest ``Σ|entry|^power`` of a column, exactly."""

    @abstractmethod
    def apply(self, X: NDArray[np.generic]) -> NDArray[np.generic]:
        """The matrix times X, in X's own integers: 64-bit ones or Python's."""

    def row_divisors(self) -> Integers:
        """What divides all entries of each row; one number if it is one for all."""
        return np.ones(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class CellBasis(Basis):
    """The matrix of a strategy over a list of cells, some of which are merged.

    The values of its axis are classes of cells that count alike (``labels``); of each class,
    the counts are multiplied by its factor and added to its merged cell, and the matrix is applied.

    Parameters
    ----------
    matrix
        Whole numbers below 2^52 in size, r × merged cells.
    cell_map
        How counts are merged before they are measured.
    row_rank
        The rank of the matrix, where it is known and below its number of columns.

    Examples
    --------
    >>> from lrm.queries.maps.matrices import DenseMap
    >>> cells = CellMap(2, np.array([0, 1, 1, 1]), np.array([1, 2, 2, 0]))
    >>> basis = CellBasis(DenseMap(np.array([[1.0, 3.0]])), cells)
    >>> basis.labels.tolist(), basis.column_norm(1), basis.apply(np.array([[5], [7]])).tolist()
    ([0, 1, 1, -1], 6, [[47]])
    """

    matrix: LinearMap
    cell_map: CellMap
    row_rank: int | None = None

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        if columns != self.cell_map.merged_size:
            raise WorkloadError(
                f"the strategy covers {columns} merged cells, but there are "
                f"{self.cell_map.merged_size}"
            )
        if self.row_rank is not None and not 1 <= self.row_rank <= min(rows, columns):
            raise WorkloadError(f"a strategy of shape {rows}×{columns} has no rank {self.row_rank}")
        object.__setattr__(self, "size", len(self._classes[1]))
        if self.column_norm(1) < 1:
            raise WorkloadError("the strategy measures nothing: all its weights are 0")

    @cached_property
    def _classes(self) -> tuple[Integers, Integers]:
        return self.cell_map.classes()

    @property
    def labels(self) -> Integers:
        """The class of each cell; −1 of those that count for nothing."""
        return self._classes[0]

    @property
    def height(self) -> int:
        return self.matrix.shape[0]

    @property
    def peak(self) -> int:
        """The most that a record moves one measurement by, or a merged count that none has."""
        # Merged counts themselves count too, where nothing measures them.
        peaks = np.maximum(self.matrix.integer_column_peaks(), 1)
        return WholeSums(((0, peaks),)).largest(self.cell_map.largest_factors())

    def column_norm(self, power: int) -> int:
        """The most that a record moves ``Σ|measurement|^power`` by, factors included."""
        factors = self.cell_map.largest_factors()
        return self.matrix.integer_column_sums(power).largest(factors**power)

    def row_divisors(self) -> Integers:
        """Those of the matrix; factors of merged cells could only make them larger."""
        if self.matrix.entry_count > ARRAY:
            return np.ones(1, dtype=np.int64)
        return row_divisors(self.matrix.sparse())

    def columns(self) -> Integers:
        """What a record of each merged cell moves at most; its ``peak`` must be below 2^63."""
        return self.matrix.dense().astype(np.int64) * self.cell_map.largest_factors()

    def apply(self, X: NDArray[np.generic]) -> NDArray[np.generic]:
        """The measurements of counts of the classes, in one column."""
        firsts = self._classes[1]
        index, factor = self.cell_map.index[firsts], self.cell_map.factor[firsts]
        if X.dtype != object:
            merged = np.zeros(self.cell_map.merged_size, dtype=np.int64)
            np.add.at(merged, index, factor * X[:, 0].astype(np.int64, copy=False))
            return self.matrix.apply_exactly(merged)[:, None]
        counts = [0] * self.cell_map.merged_size
        for cell, times, count in zip(index.tolist(), factor.tolist(), X[:, 0], strict=True):
            counts[cell] += times * int(count)
        rows = self.matrix.sparse()
        exact = []
        for start, stop in pairwise(rows.indptr.tolist()):
            entries = zip(rows.data[start:stop], rows.indices[start:stop], strict=True)
            exact.append(sum(int(weight) * counts[int(cell)] for weight, cell in entries))
        return np.array(exact, dtype=object)[:, None]

    def moves(self) -> Integers:
        """What a record of each class of cells moves, with its sign."""
        firsts = self._classes[1]
        index, factor = self.cell_map.index[firsts], self.cell_map.factor[firsts]
        return self.matrix.dense().astype(np.int64)[:, index] * factor

    def digest(self, bits: int, norm: Norm) -> str:
        """SHA-256 of the integers, their scale and body, and of how cells are merged for them."""
        parts = (self.matrix.digest, bits, self.row_rank, self.cell_map.merged_size, *norm.digests)
        seal = hashlib.sha256(json.dumps(parts).encode())
        for array in (self.cell_map.index, self.cell_map.factor):
            seal.update(hashlib.sha256(array.tobytes()).digest())
        return seal.hexdigest()
