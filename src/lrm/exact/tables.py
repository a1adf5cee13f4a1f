"""One-way tables of several attributes, measured together with the noise of one body.

Cells of the product of the attributes are never listed: a record adds 1 to one cell of the table of
each attribute, or is counted nowhere.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from lrm.errors import CountsError, WorkloadError
from lrm.exact.cells import CellMap
from lrm.exact.integers import CARRIER_BITS, IntegerStrategy
from lrm.exact.products.strategy import Axis
from lrm.exact.shaped import ShapedReconstruction, shaped_reconstruction
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.matrices import DenseMap
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.map import ProductMap
from lrm.maps.products.tabulation import Tabulation, ValueLabels, tabulate
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.sums import Groups
from lrm.privacy.bodies.tables import Tables

__all__ = ["MeasuredTables", "one_way_rows", "table_coordinates"]

Integers = NDArray[np.int64]

MOST_DENSE = 1 << 24
"""Entries of arrays that are written out: queries, or measurements over all cells."""


@dataclass(frozen=True, eq=False)
class MeasuredTables:
    """What is really measured: the counts of each table times 2^bits.

    Implements `lrm.exact.protocols.Measured`.

    Parameters
    ----------
    labels
        For each attribute, the merged value of each of its values; −1 where records with it are
        counted in no table.
    tables
        The attributes whose tables are measured, in the order of the body.
    bits
        The binary exponent of the scale.
    body
        Tables of these sizes, or groups of them, where one record counts for 2^bits.
    """

    labels: tuple[Integers, ...]
    tables: tuple[int, ...]
    bits: int
    body: Body

    def __post_init__(self) -> None:
        for marks in self.labels:
            Axis((0,), (marks,))  # consecutive labels
        if len(set(self.tables)) != len(self.tables) or not self.tables:
            raise WorkloadError("the tables of a body must be of different attributes")
        if not all(0 <= i < len(self.labels) for i in self.tables):
            raise WorkloadError("a table of a body is of an attribute that is not there")
        if not 0 <= self.bits <= CARRIER_BITS - 1:
            raise WorkloadError(f"bits must lie between 0 and {CARRIER_BITS - 1}, not {self.bits}")
        self._check_body()

    def _check_body(self) -> None:
        """Refuse a body that is not that of these tables: a record moves each by 2^bits or 0."""
        parts = self.body.bodies if isinstance(self.body, Groups) else (self.body,)
        sizes: list[int] = []
        for part in parts:
            if not isinstance(part, Tables) or part.unit != 1 << self.bits:
                raise WorkloadError("a record moves the measurements beyond the body of the noise")
            sizes += part.sizes
        if sizes != [self._size(i) for i in self.tables]:
            raise WorkloadError("the body of the noise is not that of the tables")

    def _size(self, attribute: int) -> int:
        return int(self.labels[attribute].max()) + 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return tuple(len(marks) for marks in self.labels)

    @cached_property
    def wanted(self) -> tuple[Tabulation, ...]:
        """What an engine must count of a table."""
        every = ValueLabels(marks.copy() for marks in self.labels)
        return tuple(Tabulation(every, (i,)) for i in self.tables)

    @property
    def cell_count(self) -> int:
        """Number of entries of all tables."""
        return sum(self._size(i) for i in self.tables)

    @property
    def measurement_count(self) -> int:
        """Number of measurements: the same."""
        return self.cell_count

    @property
    def merged_cell_count(self) -> int:
        """Number of cells that the queries distinguish."""
        return math.prod(self._size(i) for i in range(len(self.labels)))

    @property
    def sensitivity(self) -> int:
        """2^bits, which stands for the norm 1 that a record moves the measurements by."""
        return 1 << self.bits

    @property
    def squared_l2_sensitivity(self) -> int:
        """The most that one record moves the measurements by in squared L2."""
        return len(self.tables) << (2 * self.bits)

    def sensitivity_for(self, noise: str) -> float:
        """Sensitivity in the norm that ``noise`` asks for, on the integers."""
        if noise == "gaussian":
            return math.sqrt(self.squared_l2_sensitivity)
        return float(self.sensitivity)

    @property
    def max_records(self) -> int:
        """With at most this many records no measurement leaves 62 bits."""
        return 1 << (CARRIER_BITS - self.bits)

    def records(self, entries: Integers) -> int:
        """The largest number of records that a table counts, in exact integers."""
        return max(sum(int(count) for count in part.tolist()) for part in self._parts(entries))

    def _parts(self, entries: Integers) -> list[Integers]:
        ends = np.cumsum([self._size(i) for i in self.tables])[:-1]
        return np.split(entries, ends)

    def measure(self, entries: Integers) -> Integers:
        """The true measurements, in exact 64-bit integers (see ``max_records``)."""
        return np.asarray(entries << self.bits)

    def measure_clamped(self, entries: Integers) -> NDArray[np.int64]:
        """The same in integers of any size; with a body they are not clamped."""
        return np.array([int(count) << self.bits for count in entries.tolist()], dtype=object)

    def counts_of(self, cells: Integers) -> Integers:
        """The entries of all tables from counts of all cells."""
        if sum(cells.tolist()) > 1 << CARRIER_BITS:  # sums must not wrap around
            raise CountsError(
                f"the plan admits at most {self.max_records:,} records, but there are more; "
                "plan again with a larger max_records"
            )
        return tabulate(self.wanted, cells, self.sizes)

    def reconstruction_of(self, queries: LinearMap) -> ShapedReconstruction | None:
        """Least-squares answers to one-way queries; None where others are among them."""
        if not isinstance(queries, ProductMap) or queries.sizes != self.sizes:
            return None
        rows = one_way_rows(queries.batch, self.labels, self.tables)
        if rows is None:
            return None
        strategy = np.vstack(table_coordinates([self._size(i) for i in self.tables]))
        step = 2.0**-self.bits
        return shaped_reconstruction(
            DenseMap(rows), DenseMap(strategy), self.body, self.sensitivity, step
        )

    def flat(self) -> IntegerStrategy:
        """The same as one matrix over a list of cells, for small products."""
        cells = math.prod(self.sizes)
        if self.measurement_count * cells > MOST_DENSE:
            raise WorkloadError(
                f"the strategy has {self.measurement_count:,} measurements over {cells:,} cells, "
                "which are too many to be listed"
            )
        counted = [(marks >= 0)[None].astype(np.float64) for marks in self.labels]
        rows = []
        for i in self.tables:
            indicators = (self.labels[i] == np.arange(self._size(i))[:, None]).astype(np.float64)
            rows.append(reduce(np.kron, [*counted[:i], indicators, *counted[i + 1 :]]))
        matrix = DenseMap(np.vstack(rows) * 2.0**self.bits)
        return IntegerStrategy(matrix, CellMap.trivial(cells), self.bits, None, self.body)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that is measured."""
        parts = [self.bits, self.tables, self.sizes, self.body.digest]
        seal = hashlib.sha256(json.dumps(parts).encode())
        for marks in self.labels:
            seal.update(hashlib.sha256(np.ascontiguousarray(marks).tobytes()).digest())
        return seal.hexdigest()


def table_coordinates(sizes: list[int]) -> list[Floats]:
    """The cells of tables with one total, by the total and all cells of each but the first."""
    count = 1 + sum(n - 1 for n in sizes)
    coordinates, start = [], 1
    for n in sizes:
        table_matrix = np.zeros((n, count))
        table_matrix[0, 0] = 1.0
        table_matrix[0, start : start + n - 1] = -1.0
        table_matrix[1:, start : start + n - 1] = np.eye(n - 1)
        coordinates.append(table_matrix)
        start += n - 1
    return coordinates


def one_way_rows(
    batch: ProductBatch, labels: tuple[Integers, ...], tables: tuple[int, ...]
) -> Floats | None:
    """The queries of a batch by the total and the cells of tables; None where some are not one-way.

    Every product must be a total in all attributes but one, which has a table.
    """
    sizes = {i: int(labels[i].max()) + 1 for i in range(len(labels))}
    coordinates = dict(zip(tables, table_coordinates([sizes[i] for i in tables]), strict=True))
    count = 1 + sum(sizes[i] - 1 for i in tables)
    queries = batch.term_queries()
    if int(queries.sum()) * count > MOST_DENSE or (batch.choice != 0).sum(axis=1).max() > 1:
        return None
    rows = np.zeros((int(queries.sum()), count))
    starts = np.concatenate([[0], np.cumsum(queries)])
    for product, coefficient in enumerate(batch.coefficients.tolist()):
        term = int(batch.term_of[product])
        place = slice(int(starts[term]), int(starts[term + 1]))
        attributes = np.flatnonzero(batch.choice[product])
        if not len(attributes):
            rows[place, 0] += coefficient
            continue
        i = int(attributes[0])
        factor = batch.factors[i][int(batch.choice[product, i])]
        if i not in coordinates or not Axis((i,), (labels[i],)).keeps(0, factor):
            return None
        rows[place] += coefficient * (
            factor.merged_columns(labels[i], sizes[i]).dense() @ coordinates[i]
        )
    return rows
