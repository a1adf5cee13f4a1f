"""Integer strategies: what is really measured, and what one record moves of it."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import mul

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.exact.cells import CellMap, over_merged
from lrm.exact.inverses import left_inverse
from lrm.exact.reconstruction import FlatReconstruction
from lrm.exact.shaped import shaped_reconstruction
from lrm.maps.linear import Floats, LeftInverse, LinearMap
from lrm.privacy.bodies.base import Body

__all__ = ["CARRIER_BITS", "IntegerStrategy"]

CARRIER_BITS = 62
"""Every true measurement must stay below 2^62: half of what a signed 64-bit integer holds."""

MOST_SHAPED_CELLS = 1 << 20
"""Merged cells of a strategy with a body, whose columns are checked one by one."""


@dataclass(frozen=True, eq=False)
class IntegerStrategy:
    """What is really measured: integers on merged integer counts.

    Implements `lrm.exact.protocols.Measured` with a matrix over a list of cells.

    Sensitivity and the largest number of records are read off the integers themselves,
    here and nowhere else, whether they were just rounded or come from a file.

    Parameters
    ----------
    matrix
        L·2^bits as whole numbers below 2^52 in size, r × merged cells.
    cell_map
        How counts are merged before they are measured.
    bits
        The binary exponent of the scale.
    row_rank
        The rank of the matrix, where it is known and below its number of columns.
    body
        The body of shaped noise, which must hold all that one record moves; None for noise
        that is independent on each integer.
    """

    matrix: LinearMap
    cell_map: CellMap
    bits: int
    row_rank: int | None = None
    body: Body | None = None

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        if columns != self.cell_map.merged_size:
            raise WorkloadError(
                f"the strategy covers {columns} merged cells, but there are "
                f"{self.cell_map.merged_size}"
            )
        if not 0 <= self.bits <= CARRIER_BITS:
            raise WorkloadError(f"bits must be between 0 and {CARRIER_BITS}, not {self.bits}")
        if self.row_rank is not None and not 1 <= self.row_rank <= min(rows, columns):
            raise WorkloadError(f"a strategy of shape {rows}×{columns} has no rank {self.row_rank}")
        largest = self._largest_column(1)
        if largest < 1:
            raise WorkloadError("the strategy measures nothing: all its weights are 0")
        if largest > 1 << CARRIER_BITS:
            self._check_products()
        if self.body is not None:
            self._check_body(self.body)

    def _check_products(self) -> None:
        """Refuse weights whose products with the factors of their cells wrap around in 64 bits."""
        peaks = self.matrix.integer_column_peaks().tolist()
        if max(map(mul, peaks, self.cell_map.largest_factors().tolist())) > 1 << CARRIER_BITS:
            raise WorkloadError(f"a record moves a measurement by more than 2^{CARRIER_BITS}")

    def _check_body(self, body: Body) -> None:
        """Refuse a body that does not hold what a record of every cell moves: exact."""
        if body.size != self.matrix.shape[0] or self.matrix.shape[1] > MOST_SHAPED_CELLS:
            raise WorkloadError("the body of the noise must have one coordinate per measurement")
        entries = self.matrix.dense().astype(np.int64)
        if not body.holds(entries * self.cell_map.largest_factors()):
            raise WorkloadError("a record moves the measurements beyond the body of the noise")

    @property
    def cell_count(self) -> int:
        """Number of original cells, which counts are given for."""
        return self.cell_map.size

    @property
    def wanted(self) -> CellMap:
        """What an engine must count of a table."""
        return self.cell_map

    def counts_of(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts that ``measure`` takes, from counts of all cells: the same."""
        return cells

    def records(self, counts: NDArray[np.int64]) -> int:
        """How many records were counted, in exact integers."""
        return sum(counts.tolist())  # Python's: the sum itself must not wrap around

    @property
    def merged_cell_count(self) -> int:
        """Number of cells that the queries distinguish."""
        return self.cell_map.merged_size

    @property
    def measurement_count(self) -> int:
        """Number of measurements r."""
        return self.matrix.shape[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the integers, and of how cells are merged for them."""
        parts: tuple[object, ...]
        parts = (self.matrix.digest, self.bits, self.row_rank, self.cell_map.merged_size)
        if self.body is not None:
            parts = (*parts, self.body.digest)
        seal = hashlib.sha256(json.dumps(parts).encode())
        for array in (self.cell_map.index, self.cell_map.factor):
            seal.update(hashlib.sha256(array.tobytes()).digest())
        return seal.hexdigest()

    def sensitivity_for(self, noise: str) -> float:
        """Sensitivity in the norm that ``noise`` asks for, on the integers."""
        if noise != "gaussian":
            return float(self.sensitivity)
        return math.sqrt(self.squared_l2_sensitivity)

    @cached_property
    def sensitivity(self) -> int:
        """Largest L1 norm of a column over the original cells: an exact integer.

        With a body, 2^bits stands for its norm 1, which no column exceeds.
        """
        return self._largest_column(1) if self.body is None else 1 << self.bits

    @cached_property
    def squared_l2_sensitivity(self) -> int:
        """Largest squared L2 norm of a column over the original cells: an exact integer."""
        return self._largest_column(2)

    def _largest_column(self, power: int) -> int:
        """The most that one record moves ``Σ |measurement|^power`` by, factors included."""
        factors = self.cell_map.largest_factors()
        return self.matrix.integer_column_sums(power).largest(factors**power)

    @cached_property
    def max_records(self) -> int:
        """With at most this many records no measurement leaves 62 bits."""
        factors = self.cell_map.largest_factors()
        # Merged counts themselves count too, where nothing measures them.
        largest = int((np.maximum(self.matrix.integer_column_peaks(), 1) * factors).max())
        return (1 << CARRIER_BITS) // max(largest, 1)

    def measure(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true measurements, in exact 64-bit integers (see ``max_records``)."""
        return self.matrix.apply_exactly(self.cell_map.merge_counts(counts))

    def measure_clamped(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same with integers of any size, each clamped to 62 bits: slow, and safe.

        With a body they are not clamped: each by itself, that could move neighbours further apart
        in its norm.
        """
        merged = [0] * self.cell_map.merged_size
        for index, factor, count in zip(
            self.cell_map.index, self.cell_map.factor, counts, strict=True
        ):
            merged[int(index)] += int(factor) * int(count)
        rows = self.matrix.sparse()
        limit = 1 << CARRIER_BITS
        clamped = []
        for start, stop in pairwise(rows.indptr.tolist()):
            entries = zip(rows.data[start:stop], rows.indices[start:stop], strict=True)
            exact = sum(int(weight) * merged[int(cell)] for weight, cell in entries)
            clamped.append(exact if self.body else max(-limit, min(limit, exact)))
        return np.array(clamped, dtype=object if self.body else np.int64)

    def real_matrix(self) -> Floats | sp.csr_array:
        """L over the original cells, in units where a record counts 1: L_q·M / 2^bits."""
        cell_matrix = self.matrix.sparse() @ self.cell_map.matrix()
        scaled = cell_matrix * 2.0**-self.bits
        small = scaled.shape[0] * scaled.shape[1] <= 1 << 24
        return np.asarray(scaled.toarray()) if small else sp.csr_array(scaled)

    @cached_property
    def real_map(self) -> LinearMap:
        """L over the merged cells, in units where a record counts about 1: L_q / 2^bits."""
        return self.matrix.scaled(2.0**-self.bits)

    def left_inverse(self) -> LeftInverse:
        """L⁺ of the final integers, in the units of ``real_map``."""
        return left_inverse(self.real_map, rounding=2.0**-self.bits, rank=self.row_rank)

    def reconstruction_of(self, queries: LinearMap) -> FlatReconstruction | None:
        """Least-squares answers to queries over the original cells.

        None where they distinguish cells that are measured as one.
        """
        merged = over_merged(queries, self.cell_map)
        if merged is None:
            return None
        return self.reconstruct(merged)

    def reconstruct(self, queries: LinearMap) -> FlatReconstruction:
        """Least-squares answers to queries over the merged cells."""
        if self.body is None:
            return FlatReconstruction(queries, self.real_map, self.left_inverse())
        step = 2.0**-self.bits
        return shaped_reconstruction(queries, self.real_map, self.body, self.sensitivity, step)

    def flat(self) -> IntegerStrategy:
        """Itself: a matrix over a list of cells."""
        return self
