"""Integer strategies over products: what is counted, what is measured, how far a record moves it.

Of each set of axes the tabulation is counted, an integer basis is applied along each axis, and
the result is multiplied by a whole number: the weight of the set. All measurements of all sets
then carry noise of one scale, as those of a flat strategy do.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.errors import CountsError, WorkloadError
from lrm.exact.cells import CellMap
from lrm.exact.integers import CARRIER_BITS, IntegerStrategy
from lrm.exact.products.answers import Lattice
from lrm.exact.products.folding import FOLDS, fold, fold_rows, unfold
from lrm.exact.products.integers import IntegerBasis
from lrm.exact.products.reconstruction import ProductReconstruction
from lrm.exact.products.strategy import Axis, over_cells
from lrm.exact.protocols import Reconstruction
from lrm.maps.kron import kronecker
from lrm.maps.linear import LinearMap
from lrm.maps.matrices import DenseMap
from lrm.maps.products.map import ProductMap
from lrm.maps.products.tabulation import Tabulation, ValueLabels, tabulate

__all__ = ["MeasuredGroup", "MeasuredProducts"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_MEASUREMENTS = 1 << 30
"""Measurements of a strategy, and counts that it is made of; a release admits fewer."""

MOST_DENSE = 1 << 24
"""Entries of a strategy that is written out as an array."""


@dataclass(frozen=True, eq=False)
class MeasuredGroup:
    """Some sets of axes, each measured through one integer basis per axis.

    Parameters
    ----------
    terms
        The terms of the batch that are answered from this group.
    axes
        How values are merged, and attributes fused.
    bases
        One per axis.
    sets
        The axes of each set, ascending.
    factors
        What each set's integers are multiplied by.
    folds
        Whether each set's table is measured whole (0), or folded with a sign.
    """

    terms: Integers
    axes: tuple[Axis, ...]
    bases: tuple[IntegerBasis, ...]
    sets: tuple[tuple[int, ...], ...]
    factors: tuple[int, ...]
    folds: tuple[int, ...]

    def __post_init__(self) -> None:
        if [axis.size for axis in self.axes] != [basis.size for basis in self.bases]:
            raise WorkloadError("each axis needs a basis over its own values")
        measured = set(zip(self.sets, self.folds, strict=False))
        if not len(self.sets) == len(self.factors) == len(self.folds) == len(measured):
            raise WorkloadError("each set of axes must occur once per fold, with one factor")
        sets, flat = self._listed
        if flat.min(initial=0) < 0 or flat.max(initial=-1) >= len(self.axes):
            raise WorkloadError("a set must consist of axes of its group")
        if np.any(np.diff(flat + len(self.axes) * sets) < 1):
            raise WorkloadError("the axes of a set must be in order, each once")
        if any(not 1 <= factor < 1 << CARRIER_BITS for factor in self.factors):
            raise WorkloadError(f"factors of sets must lie between 1 and 2^{CARRIER_BITS}")
        if not set(self.folds) <= set(FOLDS):
            raise WorkloadError("a set must be measured whole (0) or folded with a sign (1 or -1)")
        if any(
            f and not self.mirrored(members)
            for members, f in zip(self.sets, self.folds, strict=True)
        ):
            raise WorkloadError("a folded set must have an axis of two values with the identity")

    def mirrored(self, members: Sequence[int]) -> list[int]:
        """Places of the mirrored axes among those of a set."""
        return [place for place, k in enumerate(members) if self.bases[k].mirrored]

    @cached_property
    def _listed(self) -> tuple[Integers, Integers]:
        """The axes of all sets, one after the other, with the number of their set before them."""
        lengths = np.fromiter(map(len, self.sets), dtype=np.int64, count=len(self.sets))
        flat = np.fromiter(itertools.chain.from_iterable(self.sets), dtype=np.int64)
        return np.repeat(np.arange(len(lengths)), lengths), flat

    def _sums(self, values: Floats) -> Floats:
        """The sum of ``values`` over the axes of each set."""
        sets, flat = self._listed
        return np.asarray(np.bincount(sets, values[flat], len(self.sets)), dtype=np.float64)

    def _products(self, values: Sequence[int]) -> list[int]:
        """The exact product of ``values`` over the axes of each set."""
        bits = np.array([int(value).bit_length() for value in values], dtype=np.float64)
        if max(bits.max(initial=0), self._sums(bits).max(initial=0)) > CARRIER_BITS:
            return [math.prod(values[k] for k in members) for members in self.sets]
        products = np.ones(len(self.sets), dtype=np.int64)
        sets, flat = self._listed
        np.multiply.at(products, sets, np.array(values)[flat])
        exact: list[int] = products.tolist()
        return exact

    def check_covers(self, sizes: Sequence[int]) -> None:
        """Refuse axes that do not cover each attribute once, value by value."""
        if sorted(i for axis in self.axes for i in axis.attributes) != list(range(len(sizes))):
            raise WorkloadError("the axes of a group must cover every attribute once")
        for axis in self.axes:
            for i, marks in zip(axis.attributes, axis.labels, strict=True):
                if len(marks) != sizes[i]:
                    raise WorkloadError("an axis must label every value of its attributes")

    @cached_property
    def tabulations(self) -> tuple[Tabulation, ...]:
        """What must be counted, one for each set."""
        labels = {
            i: marks
            for axis in self.axes
            for i, marks in zip(axis.attributes, axis.labels, strict=True)
        }
        every = ValueLabels(labels[i] for i in sorted(labels))
        return tuple(
            Tabulation(every, tuple(i for k in members for i in self.axes[k].attributes))
            for members in self.sets
        )

    @cached_property
    def heights(self) -> list[int]:
        """Number of measurements of each set; of a folded one, half of those of its table."""
        full_heights = self._products([basis.height for basis in self.bases])
        return [
            height // (2 if sign else 1)
            for height, sign in zip(full_heights, self.folds, strict=True)
        ]

    @property
    def cell_counts(self) -> list[int]:
        """Number of entries of each set's tabulation."""
        return self._products([axis.size for axis in self.axes])

    def norms(self, power: int) -> list[int]:
        """The most that a record moves ``Σ|measurement|^power`` of each set by."""
        known = self._products([basis.column_norm(power) for basis in self.bases])
        return [int(f) ** power * norm for f, norm in zip(self.factors, known, strict=True)]

    def peaks(self) -> list[int]:
        """The largest weight of each set, and of what comes before its factor."""
        known = self._products([max(basis.peak, 1) for basis in self.bases])
        return [factor * peak for factor, peak in zip(self.factors, known, strict=True)]

    def measure(self, entries: NDArray[np.generic], b: int) -> NDArray[np.generic]:
        """The measurements of set b from its tabulation, in the integers of ``entries``."""
        members = self.sets[b]
        table = entries.reshape([self.axes[k].size for k in members])
        for place, k in enumerate(members):
            moved = np.moveaxis(table, place, 0)
            image = self.bases[k].apply(moved.reshape(len(moved), -1))
            table = np.moveaxis(image.reshape(len(image), *moved.shape[1:]), 0, place)
        if self.folds[b]:
            table = fold(table, self.mirrored(members), self.folds[b])
        return np.asarray(table.reshape(-1) * self.factors[b])

    def table(self, measurements: Floats, b: int) -> Floats:
        """Measurements of set b, one array axis per axis of it; those of a folded one, unfolded."""
        shape, mirrored = [self.bases[k].height for k in self.sets[b]], self.mirrored(self.sets[b])
        if not self.folds[b]:
            return measurements.reshape(shape)
        shape[mirrored[0]] = 1
        return unfold(measurements.reshape(shape), mirrored, self.folds[b])

    def rows(self, b: int) -> Floats:
        """What set b measures, as an array: measurements x values of all axes, for small tables."""
        matrices = [
            basis.apply(np.eye(basis.size, dtype=np.int64)).astype(np.float64)
            if k in self.sets[b]
            else np.ones((1, basis.size))
            for k, basis in enumerate(self.bases)
        ]
        rows = self.factors[b] * kronecker(matrices)
        if self.folds[b]:
            axes = [self.sets[b][place] for place in self.mirrored(self.sets[b])]
            rows = fold_rows(rows, [len(matrix) for matrix in matrices], axes, self.folds[b])
        return rows

    def weights(self, bits: int) -> Floats:
        """θ of each set: its factor times the scales of its bases, relative to 2^bits."""
        scales = np.log([basis.scale for basis in self.bases])
        factors = np.array(self.factors, dtype=np.float64)
        return factors * np.exp(self._sums(scales)) * 2.0**-bits

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """Sets x axes."""
        members = np.zeros((len(self.sets), len(self.axes)), dtype=bool)
        members[self._listed] = True
        return members

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that is measured."""
        facts = [self.sets, [str(f) for f in self.factors], self.folds]
        seal = hashlib.sha256(json.dumps(facts).encode())
        seal.update(self.terms.tobytes())
        for axis, basis in zip(self.axes, self.bases, strict=True):
            seal.update(json.dumps(axis.attributes).encode())
            arrays = [*axis.labels, *(array for _, array in sorted(basis.contents().items()))]
            for array in arrays:
                seal.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return seal.hexdigest()


@dataclass(frozen=True, eq=False)
class MeasuredProducts:
    """What is really measured: integers on the tabulations of some groups.

    Sensitivity and the largest number of records are read off the integers themselves.

    Parameters
    ----------
    sizes
        Number of values of each attribute.
    groups
        What is measured.
    bits
        The binary exponent of the scale.
    residual
        Whether sets hold residuals, which inform about themselves alone, or marginals.
    combined
        Whether two groups are answered from both, by generalised least squares.
    """

    sizes: tuple[int, ...]
    groups: tuple[MeasuredGroup, ...]
    bits: int
    residual: bool
    combined: bool = False

    def __post_init__(self) -> None:
        if not self.groups or not 0 <= self.bits <= CARRIER_BITS:
            raise WorkloadError(f"bits must lie between 0 and {CARRIER_BITS}, not {self.bits}")
        for group in self.groups:
            group.check_covers(self.sizes)
        if self.combined and (len(self.groups) != 2 or self.residual):
            raise WorkloadError("two groups of marginals can be combined, and no others")
        if (self.combined or self.residual) and any(any(group.folds) for group in self.groups):
            raise WorkloadError("residuals and tables of combined groups cannot be folded")
        if self.measurement_count > MOST_MEASUREMENTS or self.cell_count > MOST_MEASUREMENTS:
            raise WorkloadError(
                f"the strategy has {self.measurement_count:,} measurements of {self.cell_count:,} "
                f"counts, more than {MOST_MEASUREMENTS:,}; choose best, or ask for smaller tables"
            )
        if self.sensitivity < 1:
            raise WorkloadError("the strategy measures nothing: all its weights are 0")
        if self.max_records < 1:
            raise WorkloadError("one record alone could move a measurement beyond 62 bits")

    @property
    def body(self) -> None:
        """No body: the noise on each integer is independent."""
        return None

    @property
    def noise(self) -> str:
        """The noise that the strategy was rounded for."""
        return "gaussian" if self.residual else "laplace"

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

    def sensitivity_for(self, noise: str) -> float:
        """Sensitivity in the norm that ``noise`` asks for, on the integers."""
        if noise == "laplace":
            return float(self.sensitivity)
        return math.sqrt(self.squared_l2_sensitivity)

    @cached_property
    def sensitivity(self) -> int:
        """The most that one record moves the measurements by in L1: an exact integer."""
        return sum(sum(group.norms(1)) for group in self.groups)

    @cached_property
    def squared_l2_sensitivity(self) -> int:
        """The same in squared L2."""
        return sum(sum(group.norms(2)) for group in self.groups)

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
        """The same with integers of any size, each clamped to 62 bits: slow, and safe."""
        limit = 1 << CARRIER_BITS
        parts = []
        # Set by set, since Python's integers take several times the memory.
        for part, (group, b) in zip(self._parts(entries), self._sets(), strict=True):
            exact_values = group.measure(part.astype(object), b).tolist()
            clamped = [max(-limit, min(limit, value)) for value in exact_values]
            parts.append(np.array(clamped, dtype=np.int64))
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

    def lattice(self, group: MeasuredGroup) -> Lattice:
        """What a group's sets tell, for unit noise on the integers divided by 2^bits."""
        bases = [basis.real() for basis in group.bases]
        return Lattice(
            bases,
            group.members,
            group.weights(self.bits),
            residual=self.residual,
            folds=np.array(group.folds, dtype=np.int64),
        )

    @property
    def wanted(self) -> tuple[Tabulation, ...]:
        """What an engine must count of a table."""
        return self.tabulations

    @property
    def merged_cell_count(self) -> int:
        """Number of cells that the queries distinguish."""
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
        """Answers to other queries over the same attributes, from the same measurements."""
        if not isinstance(queries, ProductMap) or queries.sizes != self.sizes:
            return self.flat().reconstruction_of(queries)
        return ProductReconstruction.over(self, queries.batch)

    def flat(self) -> IntegerStrategy:
        """The same as one matrix over a list of cells, for small tables."""
        cells = math.prod(self.sizes)
        if self.measurement_count * cells > MOST_DENSE:
            raise WorkloadError(
                f"the strategy has {self.measurement_count:,} measurements over {cells:,} cells, "
                "which are too many to be listed"
            )
        parts = [over_cells(group.rows(b), group.axes, self.sizes) for group, b in self._sets()]
        return IntegerStrategy(DenseMap(np.vstack(parts)), CellMap.trivial(cells), self.bits)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that is measured."""
        parts = [group.digest for group in self.groups]
        flags = [self.bits, self.residual, self.combined, self.sizes]
        return hashlib.sha256(json.dumps([flags, parts]).encode()).hexdigest()
