"""One group of measurements: integer bases over axes, and sets of axes with whole weights."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.planning.design.integers import CARRIER_BITS, Basis
from lrm.planning.design.products.axes import Axis
from lrm.planning.design.products.basis import ProductBasis
from lrm.planning.design.products.folding import fold, fold_rows, unfold
from lrm.planning.design.products.parts import LEAST_SINGULAR
from lrm.privacy.laws import MOST_STEPS
from lrm.queries.maps.kron import along, kronecker
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.tabulation import Tabulation, ValueLabels
from lrm.queries.maps.whole import LARGEST_WHOLE

MOST_MIXED = 1 << 10
"""Rows and columns of a set's mix, and values of its axes: a second for each inverse."""


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
    mixes
        By number of a set, an integer matrix: its sums of the set's measurements are measured in
        place of these (for Gaussian noise on queries that are no products).
    """

    terms: Integers
    axes: tuple[Axis, ...]
    bases: tuple[Basis, ...]
    sets: tuple[tuple[int, ...], ...]
    factors: tuple[int, ...]
    folds: tuple[int, ...]
    mixes: Mapping[int, Integers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if [axis.size for axis in self.axes] != [basis.size for basis in self.bases]:
            raise WorkloadError("each axis needs a basis over its own values")
        if not all(basis.is_whole for basis in self.bases):
            raise WorkloadError("bases that are measured have whole entries; round them first")
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
        if not set(self.folds) <= {0, 1, -1}:
            raise WorkloadError("a set must be measured whole (0) or folded with a sign (1 or -1)")
        if any(
            f and not self.mirrored(members)
            for members, f in zip(self.sets, self.folds, strict=True)
        ):
            raise WorkloadError("a folded set must have an axis of two values with the identity")
        for b, mix in self.mixes.items():
            self._check_mix(b, mix)

    def _check_mix(self, b: int, mix: Integers) -> None:
        """Refuse a mix whose sums might not be exact in float64, or that is too large."""
        if not 0 <= b < len(self.sets) or self.folds[b]:
            raise WorkloadError("a mix must belong to a set that is measured whole")
        height = math.prod(self.bases[k].height for k in self.sets[b])
        values = math.prod(self.axes[k].size for k in self.sets[b])
        if mix.ndim != 2 or mix.shape[1] != height or not len(mix):
            raise WorkloadError("the rows of a mix must cover the measurements of its set")
        if max(len(mix), height, values) > MOST_MIXED:
            raise WorkloadError(f"a mix is limited to {MOST_MIXED:,} rows, columns and values")
        # Python's integers: the size of -2^63 has no 64-bit integer.
        largest = max(abs(int(mix.min())), abs(int(mix.max())))
        peak = math.prod(self.bases[k].peak for k in self.sets[b])
        if largest * peak * height >= LARGEST_WHOLE:
            raise WorkloadError("an entry of a mix is too large")
        mix.setflags(write=False)

    def _mixed(self, b: int) -> DenseMap:
        """The integer matrix over the values of a mixed set's axes; float64 holds it exactly."""
        matrices = (self.product_bases[k].dense() for k in self.sets[b])
        return DenseMap(self.mixes[b] @ kronecker(matrices))

    @property
    def product_bases(self) -> tuple[ProductBasis, ...]:
        """The bases of a group over products."""
        return cast("tuple[ProductBasis, ...]", self.bases)

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
        return [math.prod(values[k] for k in members) for members in self.sets]

    @cached_property
    def _wholes(self) -> list[int]:
        """Number of parts that a record counts for in each set."""
        return self._products([axis.whole for axis in self.axes])

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
            len(self.mixes[b]) if b in self.mixes else height // (2 if sign else 1)
            for b, (height, sign) in enumerate(zip(full_heights, self.folds, strict=True))
        ]

    @property
    def cell_counts(self) -> list[int]:
        """Number of entries of each set's tabulation."""
        return self._products([axis.combinations for axis in self.axes])

    def norms(self, power: int) -> list[int]:
        """The most that a record moves ``Σ|measurement|^power`` of each set by."""
        known = self._products([basis.column_norm(power) for basis in self.bases])
        for b in self.mixes:
            matrix = self._mixed(b)
            ones = np.ones(matrix.shape[1], dtype=np.int64)
            known[b] = matrix.integer_column_sums(power).largest(ones)
        # What a value between corners moves is a mean of what these move, times its parts.
        moved = zip(self.factors, self._wholes, known, strict=True)
        return [(int(f) * whole) ** power * norm for f, whole, norm in moved]

    def divisors(self) -> list[Integers]:
        """What divides all values of the measurements of each set; one number if it is one for all.

        That of a folded set is one for all: it divides cells and their mirror images. Residuals
        have none, since they are measured with Gaussian noise, on all integers.
        """
        axis_divisors = [basis.row_divisors() for basis in self.bases]
        set_divisors = []
        for members, factor, height, sign in zip(
            self.sets, self.factors, self.heights, self.folds, strict=True
        ):
            parts = [axis_divisors[k] for k in members]
            if sign or height > MOST_STEPS:
                parts = [np.gcd.reduce(part, keepdims=True) for part in parts]
            elif any(len(part) > 1 for part in parts):
                heights = [self.bases[k].height for k in members]
                parts = [np.broadcast_to(part, n) for part, n in zip(parts, heights, strict=True)]
            product = np.array([factor], dtype=np.int64)
            for part in parts:
                product = np.multiply.outer(product, part).ravel()
            set_divisors.append(product)
        return set_divisors

    def peaks(self) -> list[int]:
        """The largest weight of each set, and of what comes before its factor."""
        known = self._products([max(basis.peak, 1) for basis in self.bases])
        for b in self.mixes:
            known[b] = max(known[b], int(self._mixed(b).integer_column_peaks().max()))
        every = zip(self.factors, self._wholes, known, strict=True)
        return [factor * whole * peak for factor, whole, peak in every]

    def measure(self, entries: NDArray[np.generic], b: int) -> NDArray[np.generic]:
        """The measurements of set b from its tabulation, in the integers of ``entries``."""
        members = self.sets[b]
        table = entries.reshape([self.axes[k].combinations for k in members])
        for place, k in enumerate(members):
            if not self.axes[k].is_plain:
                table = along(table, place, self.axes[k].by_value)
            table = along(table, place, self.bases[k].apply)
        if self.folds[b]:
            table = fold(table, self.mirrored(members), self.folds[b])
        values = table.reshape(-1)
        if b in self.mixes:
            values = self.mixes[b].astype(entries.dtype) @ values
        return np.asarray(values * self.factors[b])

    def table(self, measurements: Floats, b: int) -> Floats:
        """Measurements of set b, one array axis per axis of it; those of a folded one, unfolded.

        Those of a mixed one are estimated by least squares.
        """
        if b in self.mixes:
            measurements = self.unmixing[b] @ measurements
        shape, mirrored = [self.bases[k].height for k in self.sets[b]], self.mirrored(self.sets[b])
        if not self.folds[b]:
            return measurements.reshape(shape)
        shape[mirrored[0]] = 1
        return unfold(measurements.reshape(shape), mirrored, self.folds[b])

    @cached_property
    def unmixing(self) -> dict[int, Floats]:
        """The matrix from what is measured of each mixed set to the product's measurements."""
        inverses = {}
        for b, mix in self.mixes.items():
            spaces = [_column_space(self.product_bases[k].dense()) for k in self.sets[b]]
            space = kronecker(spaces)
            inverses[b] = space @ np.linalg.pinv(mix @ space, LEAST_SINGULAR)
        return inverses

    def rows(self, b: int) -> Floats:
        """What set b measures, as an array: measurements x values of all axes, for small tables."""
        matrices = [
            basis.dense() if k in self.sets[b] else np.ones((1, basis.size))
            for k, basis in enumerate(self.product_bases)
        ]
        rows = self.factors[b] * self._wholes[b] * kronecker(matrices)
        if b in self.mixes:
            rows = self.mixes[b] @ rows
        if self.folds[b]:
            axes = [self.sets[b][place] for place in self.mirrored(self.sets[b])]
            rows = fold_rows(rows, [len(matrix) for matrix in matrices], axes, self.folds[b])
        return rows

    def weights(self, bits: int) -> Floats:
        """θ of each set: its factor times the scales of its bases, relative to 2^bits."""
        pairs = zip(self.axes, self.bases, strict=True)
        scales = np.log([axis.whole * basis.scale for axis, basis in pairs])
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
        for axis, basis in zip(self.axes, self.product_bases, strict=True):
            seal.update(json.dumps(axis.attributes).encode())
            further = [array for array in (axis.classes, axis.parts) if array is not None]
            contents = [array for _, array in sorted(basis.contents().items())]
            arrays = [*axis.labels, *further, *contents]
            for array in arrays:
                seal.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        for b, mix in sorted(self.mixes.items()):
            seal.update(json.dumps([b, mix.shape]).encode() + np.ascontiguousarray(mix).tobytes())
        return seal.hexdigest()


def _column_space(matrix: Floats) -> Floats:
    """An orthonormal basis of the columns' span."""
    vectors, singular, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(vectors[:, singular > LEAST_SINGULAR * singular[0]])
