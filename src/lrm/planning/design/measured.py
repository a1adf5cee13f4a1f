"""What is really measured: integers, whose sensitivity is read off the integers themselves.

Of each set of axes the tabulation is counted, an integer basis is applied along each axis, and
the result is multiplied by a whole number: the weight of the set. All measurements of all sets
carry noise of one scale. A strategy over a list of cells is one group of one set, whose basis is
the matrix of the strategy.

See ``docs/explanation/exact-noise.md``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import CountsError, WorkloadError
from lrm.planning.design.cells import CellMap, over_merged
from lrm.planning.design.groups import MeasuredGroup
from lrm.planning.design.integers import CARRIER_BITS, CellBasis
from lrm.planning.design.inverses import left_inverse
from lrm.planning.design.products.axes import Axis, over_cells
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.information import Information
from lrm.planning.design.products.reconstruction import ProductReconstruction
from lrm.planning.design.reconstruction import (
    FlatReconstruction,
    Reconstruction,
    WeighedReconstruction,
)
from lrm.planning.design.row_limits import squared_moved
from lrm.planning.design.shaped import (
    product_rows,
    shaped_reconstruction,
    table_places,
    table_rows,
)
from lrm.planning.limits import ARRAY, MEMORY
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.shared import SharedTables
from lrm.privacy.bodies.sums import Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.laws import MOST_STEPS
from lrm.privacy.norms import L1, BodyNorm, Norm
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.linear import Floats, Integers, LeftInverse, LinearMap
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.combine import weigh_terms
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.products.tabulation import Tabulation, tabulate

MOST_MEASUREMENTS = 1 << 30
"""Measurements of a strategy, and counts that it is made of; a release admits fewer."""


def plain_tables(tables: Sequence[tuple[int, ...]]) -> list[int | list[int]]:
    """Attributes of tables for a file or a digest: a number for a table of one attribute."""
    return [table[0] if len(table) == 1 else list(table) for table in tables]


@dataclass(frozen=True, eq=False)
class Measured:
    """What is really measured: integers on the tabulations of some groups.

    Sensitivity and the largest number of records are read off the integers themselves, here and
    nowhere else, whether they were just rounded or come from a file.

    Parameters
    ----------
    sizes
        Number of values of each attribute; of a list of cells, their number alone.
    groups
        What is measured.
    bits
        The binary exponent of the scale: a measured integer counts for 2^−bits.
    norm
        The norm in which records move the measurements, which decides the noise. A body must hold
        all that one record moves.
    combined
        Whether two groups are answered from both, by generalised least squares.
    """

    sizes: tuple[int, ...]
    groups: tuple[MeasuredGroup, ...]
    bits: int
    norm: Norm = field(default_factory=L1)
    combined: bool = False

    @classmethod
    def of_cells(
        cls,
        matrix: LinearMap,
        cell_map: CellMap,
        bits: int,
        row_rank: int | None = None,
        norm: Norm | None = None,
    ) -> Measured:
        """A strategy over a list of cells.

        Parameters
        ----------
        matrix
            L·2^bits as whole numbers below 2^52 in size, r × merged cells.
        cell_map
            How counts are merged before they are measured.
        row_rank
            The rank of the matrix, where it is known and below its number of columns.
        bits, norm
            As above.
        """
        basis = CellBasis(matrix, cell_map, row_rank)
        axis = Axis((0,), (basis.labels,))
        group = MeasuredGroup(np.zeros(0, dtype=np.int64), (axis,), (basis,), ((0,),), (1,), (0,))
        return cls((cell_map.size,), (group,), bits, norm or L1())

    @classmethod
    def of_tables(
        cls, labels: Sequence[Integers], tables: Sequence[tuple[int, ...]], bits: int, body: Body
    ) -> Measured:
        """Tables of one or more attributes each, measured with the noise of one body.

        Cells of the product are never listed: a record adds 2^bits to one measurement of each
        table, or to none.

        Parameters
        ----------
        labels
            For each attribute, the merged value of each of its values; −1 where records with it
            are counted in no table.
        tables
            The attributes of each table, ascending, in the order of the body.
        bits
            The binary exponent of the scale.
        body
            Tables of these sizes, or groups of them, where one record counts for 2^bits.
        """
        axes = tuple(Axis((i,), (marks,)) for i, marks in enumerate(labels))
        bases = tuple(MarginalBasis.identity(axis.size) for axis in axes)
        factors, none = (1 << bits,) * len(tables), np.zeros(0, dtype=np.int64)
        group = MeasuredGroup(none, axes, bases, tuple(tables), factors, (0,) * len(tables))
        return cls(tuple(map(len, labels)), (group,), bits, BodyNorm(body))

    def __post_init__(self) -> None:
        if not self.groups or not 0 <= self.bits <= CARRIER_BITS:
            raise WorkloadError(f"bits must be between 0 and {CARRIER_BITS}, not {self.bits}")
        for group in self.groups:
            group.check_covers(self.sizes)
        if self.combined:
            self._check_combined()
        if (self.combined or self.residual) and any(any(group.folds) for group in self.groups):
            raise WorkloadError("residuals and tables of combined groups cannot be folded")
        if not self.residual and any(group.mixes for group in self.groups):
            raise WorkloadError("residuals alone can be mixed")
        if self.measurement_count > MOST_MEASUREMENTS or self.cell_count > MOST_MEASUREMENTS:
            raise WorkloadError(
                f"the strategy has {self.measurement_count:,} measurements of {self.cell_count:,} "
                f"counts, more than {MOST_MEASUREMENTS:,}; choose best, or ask for smaller tables"
            )
        if self.sensitivity < 1:
            raise WorkloadError("the strategy measures nothing: all its weights are 0")
        if self.max_records < 1:
            raise WorkloadError("one record alone could move a measurement beyond 62 bits")
        if isinstance(self.norm, BodyNorm):
            self._check_body(self.norm)

    def _check_combined(self) -> None:
        if len(self.groups) != 2 or self.residual:
            raise WorkloadError("two groups of marginals can be combined, and no others")
        if not all(axis.is_plain for group in self.groups for axis in group.axes):
            raise WorkloadError("groups with classes or corners cannot be combined")

    def _check_body(self, norm: BodyNorm) -> None:
        """Refuse a body that does not hold what a record of every cell moves: exact."""
        body = norm.shape
        if body.size != self.measurement_count:
            raise WorkloadError("the body of the noise must have one coordinate per measurement")
        if self.cells is not None:
            columns = max(self.cells.matrix.shape[1], self.cells.size if norm.replaced else 1)
            # Columns are checked one by one, in an array of 1 GiB.
            if columns > min(1 << 20, MEMORY // body.size):
                raise WorkloadError("the strategy has too many merged cells for noise with a body")
        if norm.replaced:
            if self.cells is None or not body.holds_differences(self.cells.moves()):
                raise WorkloadError("replacing a record moves the measurements beyond the body")
        elif self.is_mixed:
            self._check_mixed(body)
        elif self.cells is None:
            (group,) = self.groups
            self._check_tables(group, body.bodies if isinstance(body, Groups) else (body,))
        elif not body.holds(self.cells.columns()):
            raise WorkloadError("a record moves the measurements beyond the body of the noise")

    def _check_mixed(self, body: Body) -> None:
        """Refuse a body that is not of an L1 norm for all groups but the last, and its tables.

        A record moves the first part by at most the sum of what it moves each group by in L1.
        Shares sum to at most 1, so that the whole is at most 1 if each part is.
        """
        *plain, last = self.groups
        if not isinstance(body, Groups) or self.residual or self.combined:
            raise WorkloadError("groups with noise of their own need a body for each")
        first, *others = body.bodies
        heights = sum(sum(group.heights) for group in plain)
        if not isinstance(first, Tables) or (first.sizes, first.closed) != ((heights,), (False,)):
            raise WorkloadError("the first body must be that of independent noise")
        if first.unit < sum(sum(group.norms(1)) for group in plain):
            raise WorkloadError("a record moves the measurements beyond the body of the noise")
        self._check_tables(last, others)

    def _check_tables(self, group: MeasuredGroup, bodies: Sequence[Body]) -> None:
        """Refuse bodies that are not of the tables: a record moves each by 2^bits or 0."""
        unit = 1 << self.bits
        plain = not (self.residual or any(group.folds) or set(group.factors) != {unit})
        plain = plain and all(axis.is_plain for axis in group.axes)
        if not plain or any(basis.column_norm(1) != 1 for basis in group.bases):
            raise WorkloadError("noise with a body needs plain tables, or cells")
        left = list(zip(group.sets, group.heights, strict=True))
        for part in bodies:
            if not isinstance(part, Tables | SharedTables) or part.unit != unit:
                raise WorkloadError("a record moves the measurements beyond the body of the noise")
            count = len(part.sizes if isinstance(part, Tables) else part.tables)
            part_tables, left = left[:count], left[count:]
            # A record adds 2^bits to one cell of every table, or to none (see `Tabulation`).
            wanted: object = tuple(
                tuple((k, group.bases[k].height) for k in members) for members, _ in part_tables
            )
            if isinstance(part, Tables):
                wanted = tuple(height for _, height in part_tables)
            if wanted != (part.sizes if isinstance(part, Tables) else part.tables):
                raise WorkloadError("the body of the noise is not that of the tables")
        if left:
            raise WorkloadError("the body of the noise is not that of the tables")

    @property
    def cells(self) -> CellBasis | None:
        """The matrix of a strategy over a list of cells; None where products are measured."""
        basis = self.groups[0].bases[0]
        return basis if isinstance(basis, CellBasis) else None

    @property
    def is_mixed(self) -> bool:
        """Whether several groups have noise of their own: the last is of tables with a body."""
        return self.body is not None and len(self.groups) > 1

    @property
    def tables(self) -> tuple[tuple[Integers, ...], tuple[tuple[int, ...], ...]]:
        """The labels and the tables that `of_tables` was given."""
        (group,) = self.groups
        return tuple(axis.labels[0] for axis in group.axes), group.sets

    @cached_property
    def residual(self) -> bool:
        """Whether sets hold residuals, which inform about themselves alone, or marginals."""
        return any(basis.residual for group in self.groups for basis in group.bases)

    @property
    def body(self) -> Body | None:
        """The body of shaped noise; None for noise that is independent on each integer."""
        return self.norm.body

    @cached_property
    def tabulations(self) -> tuple[Tabulation, ...]:
        """What must be counted, in the order in which ``measure`` takes the entries."""
        return tuple(table for group in self.groups for table in group.tabulations)

    @cached_property
    def cell_count(self) -> int:
        """Number of entries of all tabulations."""
        return sum(sum(group.cell_counts) for group in self.groups)

    @cached_property
    def measurement_count(self) -> int:
        """Number of measurements."""
        return sum(sum(group.heights) for group in self.groups)

    @property
    def real_sensitivity(self) -> float:
        """Sensitivity in the norm, in units where a record counts about 1."""
        return self.norm.sensitivity(self) / 2.0**self.bits

    def moved(self, unit: PrivacyUnit, bits: int) -> int:
        """The most that one unit moves the measurements by, in L1 or in the norm of the body.

        Counts are in units of ``2^−bits`` of a record.
        """
        return self.sensitivity * (unit.factor << bits)

    def squared_l2_moved(self, unit: PrivacyUnit, bits: int) -> int:
        """The most that one unit moves the measurements by, in squared L2."""
        return self._squared_l2_of(unit) << 2 * bits

    def _squared_l2_of(self, unit: PrivacyUnit) -> int:
        """The most that a unit moves them by in whole records, by limits of rows by group too."""
        of_rows = self.squared_l2_sensitivity * unit.factor**2
        by = unit.by
        if by is None or self.body is not None:
            return of_rows
        key = (unit, by.size, by.axis, by.stride)
        if key not in self._by_group:
            self._by_group[key] = squared_moved(self.groups, self.sizes, unit)
        by_group = self._by_group[key]
        return of_rows if by_group is None else min(of_rows, by_group)

    @cached_property
    def _by_group(self) -> dict[object, int | None]:
        """What limits by group say of units."""
        return {}

    @cached_property
    def sensitivity(self) -> int:
        """The most that one record moves the measurements by in L1: an exact integer.

        With a body, 2^bits stands for its norm 1, which no record exceeds.
        """
        if self.body is not None:
            return 1 << self.bits
        return sum(sum(group.norms(1)) for group in self.groups)

    @cached_property
    def squared_l2_sensitivity(self) -> int:
        """The most that one record moves the measurements by in squared L2: an exact integer."""
        return sum(sum(group.norms(2)) for group in self.groups)

    @cached_property
    def divisors(self) -> Integers:
        """What divides every value of each measurement; one number where it is the same for all.

        Values are sums of counts times weights, so what divides the weights divides them. 1 divides
        all, and stands for those of many measurements with different divisors.
        """
        sets = [entry for group in self.groups for entry in group.divisors()]
        if all(len(entry) == 1 and entry[0] == sets[0][0] for entry in sets):
            return sets[0]
        if self.measurement_count > MOST_STEPS:
            return np.ones(1, dtype=np.int64)
        heights = (height for group in self.groups for height in group.heights)
        return np.concatenate([np.broadcast_to(e, n) for e, n in zip(sets, heights, strict=True)])

    @cached_property
    def max_records(self) -> int:
        """With at most this many records no measurement leaves 62 bits."""
        largest = max((max(group.peaks(), default=1) for group in self.groups), default=1)
        return (1 << CARRIER_BITS) // max(largest, 1)

    def records(self, entries: Integers) -> int:
        """The largest number of records that a tabulation counts, in exact integers."""
        return max(sum(int(count) for count in part.tolist()) for part in self._parts(entries))

    def _parts(self, entries: NDArray[np.generic]) -> list[NDArray[np.generic]]:
        ends = np.cumsum([table.size for table in self.tabulations])[:-1]
        return np.split(entries, ends)

    def measure(self, entries: Integers) -> Integers:
        """The true measurements, in exact 64-bit integers (see ``max_records``)."""
        parts = [
            group.measure(part, b)
            for part, (group, b) in zip(self._parts(entries), self._sets(), strict=True)
        ]
        return np.concatenate(parts).astype(np.int64, copy=False)

    def measure_clamped(self, entries: Integers) -> Integers:
        """The true measurements in integers of any size, each clamped to 62 bits: slow, and safe.

        With a body they are not clamped: each by itself, that could increase the distance of
        neighbours in its norm.
        """
        limit = 1 << CARRIER_BITS
        parts = []
        # Set by set, since Python's integers take several times the memory.
        for part, (group, b) in zip(self._parts(entries), self._sets(), strict=True):
            exact_values = group.measure(part.astype(object), b).tolist()
            if self.body is None:
                exact_values = [max(-limit, min(limit, value)) for value in exact_values]
            parts.append(np.array(exact_values, dtype=np.int64 if self.body is None else object))
        return np.concatenate(parts)

    def _sets(self) -> Iterator[tuple[MeasuredGroup, int]]:
        for group in self.groups:
            for b in range(len(group.sets)):
                yield group, b

    def split(self, measurements: Floats) -> list[list[Floats]]:
        """Measurements by group and set, in the shape of each set's table."""
        group_tables, start = [], 0
        for group in self.groups:
            tables = []
            for b, height in enumerate(group.heights):
                tables.append(group.table(measurements[start : start + height], b))
                start += height
            group_tables.append(tables)
        return group_tables

    def by_subset(self, group: MeasuredGroup) -> Information:
        """What a group's sets tell, for unit noise on the integers divided by 2^bits."""
        return Information(
            group.product_bases,
            group.members,
            group.weights(self.bits),
            residual=self.residual,
            folds=np.array(group.folds, dtype=np.int64),
            unmixing=group.unmixing,
        )

    @property
    def merged_cell_count(self) -> int:
        """Number of cells that the queries distinguish."""
        if self.cells is not None:
            return self.cells.cell_map.merged_size
        return max(math.prod(axis.size for axis in group.axes) for group in self.groups)

    def counts_of(self, cells: Integers) -> Integers:
        """The entries of all tabulations from counts of all cells."""
        # Entries are sums in 64 bits, which must not wrap around.
        if sum(cells.tolist()) > 1 << CARRIER_BITS:
            raise CountsError(
                f"the plan admits at most {self.max_records:,} records, but there are more; "
                "plan again with a larger max_records"
            )
        return tabulate(self.tabulations, cells, self.sizes)

    def reconstruction_of(self, queries: LinearMap) -> Reconstruction | None:
        """Least-squares answers to queries over the original cells.

        None where the queries distinguish cells that are measured as one. What the measurements do
        not determine shows in the residual.
        """
        if self.cells is not None:
            merged = over_merged(queries, self.cells.cell_map)
            return None if merged is None else self.reconstruct(merged)
        if not isinstance(queries, ProductMap) or queries.sizes != self.sizes:
            return self.flat().reconstruction_of(queries)
        if self.body is not None and not self.is_mixed:
            return self._from_tables(queries, self.body)
        return self._weighed(ProductReconstruction.over(self, queries.batch))

    def planned_reconstruction(
        self, queries: LinearMap, importance: Floats | None, given: LinearMap | None = None
    ) -> Reconstruction:
        """Answers to the queries that the strategy was planned for, as their groups answer them.

        ``given`` is B where a mechanism chose it, over a list of cells.
        """
        if given is not None and self.cells is None:
            raise WorkloadError("a plan over products has no reconstruction of its own")
        if isinstance(queries, ProductMap) and (self.is_mixed or self._is_plain_product):
            terms = weigh_terms(queries.batch, importance)
            plain = ProductReconstruction(terms.unweighted, self)
            return self._weighed(plain)
        if given is not None and self.cells is not None:
            merged = over_merged(queries, self.cells.cell_map)
            if merged is not None:
                return FlatReconstruction(merged, self.real_map, None, given)
        reconstruction = self.reconstruction_of(queries) if given is None else None
        if reconstruction is None:
            raise WorkloadError("the plan merges cells that its own queries distinguish")
        return reconstruction

    @property
    def _is_plain_product(self) -> bool:
        return self.cells is None and self.body is None

    def _weighed(self, plain: Reconstruction) -> Reconstruction:
        """The reconstruction with the norms of noise that groups have for themselves.

        Tables that count the same records have noise with the same total, so that least squares
        answers their queries in one way, whatever it weighs.
        """
        body = self.body
        if body is None:
            return plain
        return WeighedReconstruction(plain, lambda: body.covariance / (2.0 * self.sensitivity**2))

    def _from_tables(self, queries: ProductMap, body: Body) -> Reconstruction | None:
        """Least-squares answers to queries over tables; None where others are among them."""
        labels, tables = self.tables
        rows = table_rows(queries.batch, labels, tables)
        if rows is None:
            return None
        sizes = [axis.size for axis in self.groups[0].axes]
        places = table_places(tables, sizes)
        strategy = [product_rows({i: np.eye(sizes[i]) for i in table}, places) for table in tables]
        measured = DenseMap(np.vstack(strategy))
        return shaped_reconstruction(DenseMap(rows), measured, body, self.sensitivity)

    def reconstruct(self, queries: LinearMap) -> Reconstruction:
        """Least-squares answers to queries over the merged cells of a list."""
        if self.body is not None:
            return shaped_reconstruction(queries, self.real_map, self.body, self.sensitivity)
        return FlatReconstruction(queries, self.real_map, self.left_inverse())

    @property
    def _listed(self) -> CellBasis:
        """The strategy as one matrix over a list of cells."""
        basis = self.flat().cells
        assert basis is not None  # noqa: S101 - it is flat
        return basis

    @cached_property
    def real_map(self) -> LinearMap:
        """L over the merged cells of a list, in units where a record counts about 1."""
        return self._listed.matrix.scaled(2.0**-self.bits)

    def real_matrix(self) -> Floats | sp.csr_array:
        """L over the original cells, in units where a record counts 1: L_q·M / 2^bits."""
        basis = self._listed
        scaled = basis.matrix.sparse() @ basis.cell_map.matrix() * 2.0**-self.bits
        small = scaled.shape[0] * scaled.shape[1] <= ARRAY
        return np.asarray(scaled.toarray()) if small else sp.csr_array(scaled)

    def left_inverse(self) -> LeftInverse:
        """L⁺ of the final integers, in the units of ``real_map``."""
        return left_inverse(self.real_map, rounding=2.0**-self.bits, rank=self._listed.row_rank)

    def flat(self) -> Measured:
        """The strategy as one matrix over a list of cells; a `WorkloadError` if it is too large."""
        if self.cells is not None:
            return self
        cells = math.prod(self.sizes)
        if self.measurement_count * cells > ARRAY:
            raise WorkloadError(
                f"the strategy has {self.measurement_count:,} measurements over {cells:,} cells, "
                "which are too many to be listed"
            )
        parts = [over_cells(group.rows(b), group.axes, self.sizes) for group, b in self._sets()]
        # A value between corners has some of the parts of a record: whole numbers, but for the
        # rounding of the quotient.
        matrix = DenseMap(np.rint(np.vstack(parts)))
        return Measured.of_cells(matrix, CellMap.trivial(cells), self.bits, None, self.norm)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that decides what is measured."""
        if self.cells is not None:
            return self.cells.digest(self.bits, self.norm)
        if self.body is not None and not self.is_mixed:
            labels, tables = self.tables
            facts = [self.bits, plain_tables(tables), self.sizes, self.body.digest]
            seal = hashlib.sha256(json.dumps(facts).encode())
            for marks in labels:
                seal.update(hashlib.sha256(np.ascontiguousarray(marks).tobytes()).digest())
            return seal.hexdigest()
        parts = [group.digest for group in self.groups]
        flags = [self.bits, self.residual, self.combined, self.sizes, *self.norm.digests]
        return hashlib.sha256(json.dumps([flags, parts]).encode()).hexdigest()
