"""Integer strategies: what is really measured, and what one record moves of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.exact.cells import CellMap
from lrm.exact.inverses import LeftInverse, left_inverse
from lrm.maps.linear import Floats, LinearMap

__all__ = ["CARRIER_BITS", "IntegerStrategy", "inverse_of", "unit_strategy"]

CARRIER_BITS = 62
"""Every true measurement must stay below 2^62: half of what a signed 64-bit integer holds."""


@dataclass(frozen=True, eq=False)
class IntegerStrategy:
    """What is really measured: integers on merged integer counts.

    Sensitivity and the largest number of records are read off the integers themselves,
    here and nowhere else, whether they were just rounded or come from a file.

    Parameters
    ----------
    matrix
        L·2^bits as whole numbers below 2^52 in size, r × merged cells.
    cells
        How counts are merged before they are measured.
    bits
        The binary exponent of the scale.
    row_rank
        The rank of the matrix, where it is known and below its number of columns.
    """

    matrix: LinearMap
    cells: CellMap
    bits: int
    row_rank: int | None = None

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        if columns != self.cells.merged_size:
            raise WorkloadError(
                f"the strategy covers {columns} merged cells, but there are "
                f"{self.cells.merged_size}"
            )
        if not 0 <= self.bits <= CARRIER_BITS:
            raise WorkloadError(f"bits must lie between 0 and {CARRIER_BITS}, not {self.bits}")
        if self.row_rank is not None and not 1 <= self.row_rank <= min(rows, columns):
            raise WorkloadError(f"a strategy of shape {rows}×{columns} has no rank {self.row_rank}")
        if self.sensitivity < 1:
            raise WorkloadError("the strategy measures nothing: all its weights are 0")

    @property
    def cell_count(self) -> int:
        """Number of original cells, which counts are given for."""
        return self.cells.size

    def sensitivity_for(self, noise: str) -> float:
        """Sensitivity in the norm that ``noise`` asks for, on the integers."""
        if noise == "laplace":
            return float(self.sensitivity)
        return math.sqrt(self.squared_l2_sensitivity)

    @cached_property
    def sensitivity(self) -> int:
        """Largest L1 norm of a column over the original cells: an exact integer."""
        return self._largest_column(1)

    @cached_property
    def squared_l2_sensitivity(self) -> int:
        """Largest squared L2 norm of a column over the original cells: an exact integer."""
        return self._largest_column(2)

    def _largest_column(self, power: int) -> int:
        """The most that one record moves ``Σ |measurement|^power`` by, factors included."""
        factors = self.cells.largest_factors()
        return self.matrix.integer_column_sums(power).largest(factors**power)

    @cached_property
    def max_records(self) -> int:
        """With at most this many records no measurement leaves 62 bits."""
        factors = self.cells.largest_factors()
        # Below 2^52·2^10: merged counts themselves count too, where nothing measures them.
        largest = int((np.maximum(self.matrix.integer_column_peaks(), 1) * factors).max())
        return (1 << CARRIER_BITS) // max(largest, 1)

    def measure(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true measurements, in exact 64-bit integers (see ``max_records``)."""
        return self.matrix.apply_exactly(self.cells.merge_counts(counts))

    def measure_clamped(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same with integers of any size, each clamped to 62 bits: slow, and safe."""
        merged = [0] * self.cells.merged_size
        for index, factor, count in zip(self.cells.index, self.cells.factor, counts, strict=True):
            merged[int(index)] += int(factor) * int(count)
        rows = self.matrix.sparse()
        limit = 1 << CARRIER_BITS
        clamped = []
        for start, stop in pairwise(rows.indptr.tolist()):
            entries = zip(rows.data[start:stop], rows.indices[start:stop], strict=True)
            exact = sum(int(weight) * merged[int(cell)] for weight, cell in entries)
            clamped.append(max(-limit, min(limit, exact)))
        return np.array(clamped, dtype=np.int64)

    def real_matrix(self) -> Floats | sp.csr_array:
        """L over the original cells, in units where a record counts 1: L_q·M / 2^bits."""
        whole = self.matrix.sparse() @ self.cells.matrix()
        scaled = whole * 2.0**-self.bits
        small = scaled.shape[0] * scaled.shape[1] <= 1 << 24
        return np.asarray(scaled.toarray()) if small else sp.csr_array(scaled)


def inverse_of(final: IntegerStrategy) -> LeftInverse:
    """The left inverse of the final integers, in units where a record counts about 1."""
    matrix = unit_strategy(final.matrix, final.bits)
    return left_inverse(matrix, rounding=2.0**-final.bits, rank=final.row_rank)


def unit_strategy(rounded: LinearMap, bits: int) -> LinearMap:
    """The rounded strategy back in units where a record counts about 1."""
    return rounded.scaled(2.0**-bits)
