"""The weights of rows of B over products, by classes of rows and with multiplicities.

A row of B weighs what was measured of set B by ``θ_B·Σ_{A⊆B} (1/λ_A) ⊗ N_i`` (see
:mod:`lrm.exact.products.coefficients`). How wide the noise of an answer is depends on the weights
alone, not on their places: rows of a factor whose columns of ``N_i`` are the same in another
order are one class, and within a row equal columns are one, with a multiplicity. A cell of a
table over attributes with identity bases has one class and two columns per attribute, so that a
row over a million measurements is a handful of numbers.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.answers import Lattice
from lrm.exact.products.merged_terms import MergedTerms
from lrm.exact.protocols import RowWeights
from lrm.maps.linear import LinearMap

__all__ = ["WeightClasses"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_WORK = 1 << 24
"""Weights (classes times columns) of a whole batch: about ten seconds of intervals."""

SET_WORK = 64
"""What looking at one measured set for one class costs, in weights."""

MOST_FACTOR = 1 << 22
"""Entries (rows times measurements) of a factor whose rows are compared."""

DIGITS = 12
"""Digits to which weights are compared."""


@dataclass(frozen=True, eq=False)
class _Columns:
    """One class of rows on one axis: ``W·h/κ`` of each summand, and the distinct columns.

    ``columns[:, 0]`` is ``S·h/κ``, the others are the row of ``W·P·Sᵀ/κ`` of each summand.
    """

    means: Floats
    columns: Floats
    counts: Floats


@dataclass(frozen=True, eq=False)
class WeightClasses:
    """Rows of B of the terms of one group, by class."""

    lattice: Lattice
    merged: MergedTerms
    _axes: dict[tuple[int, tuple[LinearMap, ...]], tuple[Integers, list[_Columns]] | None] = field(
        default_factory=dict, repr=False
    )
    _totals: dict[int, _Columns] = field(default_factory=dict, repr=False)

    def of_term(self, term: int, rows: slice | None = None) -> RowWeights | None:
        """The weights of a term's rows; None where they would be too much work."""
        if self.lattice.residual:
            return None
        summands = self.merged.summands(term)
        axes = list(summands[0][1])
        known = [self._classes(k, tuple(product[k] for _, product in summands)) for k in axes]
        classes = [axis_class for axis_class in known if axis_class is not None]
        if len(classes) < len(axes):
            return None
        combos = math.prod(len(axis_class) for _, axis_class in classes)
        if combos * len(self.lattice.sets) * SET_WORK * self.merged.batch.terms > MOST_WORK:
            return None
        widths = [
            max(len(axis_class.counts) for axis_class in axis_part) for _, axis_part in classes
        ]
        if combos * self._entries(dict(zip(axes, widths, strict=True))) > (
            MOST_WORK / self.merged.batch.terms
        ):
            return None
        coefficients = np.array([coefficient for coefficient, _ in summands])
        weights = [
            self._weights(coefficients, dict(zip(axes, combo, strict=True)))
            for combo in itertools.product(*(axis_part for _, axis_part in classes))
        ]
        labels = [labels for labels, _ in classes]
        if rows is not None and labels:
            labels[0] = labels[0][rows]
        place = np.zeros((), dtype=np.int64)
        for axis_part, (_, several) in zip(labels, classes, strict=True):
            place = np.add.outer(place * len(several), axis_part)
        return _stacked(weights, place.reshape(-1))

    def _entries(self, widths: Mapping[int, int]) -> int:
        """The most columns of a row with this number of distinct columns on the axes of a term."""
        return sum(
            math.prod(widths[k] if k in widths else len(self._total(k).counts) for k in axis_set)
            for axis_set in self.lattice.sets
        )

    def _total(self, k: int) -> _Columns:
        """The columns of an axis that is summed out."""
        if k not in self._totals:
            basis = self.lattice.bases[k]
            average = basis.times(basis.h[:, None])[:, 0] / basis.kappa
            self._totals[k] = _columns(np.ones(1), average[:, None])
        return self._totals[k]

    def _classes(
        self, k: int, factors: tuple[LinearMap, ...]
    ) -> tuple[Integers, list[_Columns]] | None:
        """The class of each row of the factors on an axis, and the classes."""
        if (k, factors) not in self._axes:
            self._axes[k, factors] = self._compared(k, factors)
        return self._axes[k, factors]

    def _compared(
        self, k: int, factors: Sequence[LinearMap]
    ) -> tuple[Integers, list[_Columns]] | None:
        basis = self.lattice.bases[k]
        average = basis.times(basis.h[:, None])[:, 0] / basis.kappa
        if len(factors[0]) * len(average) * len(factors) > MOST_FACTOR:
            return None
        means = np.stack([f.apply(basis.h[:, None])[:, 0] / basis.kappa for f in factors])
        spread = [
            basis.times(basis.projector_times(f.dense().T)).T / basis.kappa
            if f.total_factor is None
            else np.zeros((len(f), len(average)))
            for f in factors
        ]
        numbers: dict[bytes, int] = {}
        distinct: list[_Columns] = []
        labels = np.empty(len(factors[0]), dtype=np.int64)
        for row in range(len(labels)):
            row_columns = _columns(
                means[:, row], np.stack([average, *(part[row] for part in spread)], 1)
            )
            key = b"".join(
                _rounded(part).tobytes() for part in (row_columns.means, row_columns.columns)
            )
            labels[row] = numbers.setdefault(key + row_columns.counts.tobytes(), len(distinct))
            if labels[row] == len(distinct):
                distinct.append(row_columns)
        return labels, distinct

    def _weights(self, coefficients: Floats, axes: Mapping[int, _Columns]) -> tuple[Floats, Floats]:
        """Distinct weights of one class of rows, and how often each occurs."""
        values, counts = [], []
        cores: dict[tuple[tuple[int, ...], int], tuple[Floats, Floats]] = {}
        for b, (axis_set, sign) in enumerate(
            zip(self.lattice.sets, self.lattice.folds.tolist(), strict=True)
        ):
            inner = tuple(sorted(axis_set & axes.keys()))
            if (inner, sign) not in cores:
                cores[inner, sign] = self._core(coefficients, axes, inner, sign)
            value, count = cores[inner, sign]
            value = value * self.lattice.weights[b]
            if sign:  # a cell and its mirror image are one measurement
                value, count = 2.0 * value, count / 2.0
            for k in sorted(axis_set - axes.keys()):
                total = self._total(k)
                value = np.multiply.outer(value, total.columns[:, 0]).reshape(-1)
                count = np.multiply.outer(count, total.counts).reshape(-1)
            values.append(value)
            counts.append(count)
        return _merged(np.abs(np.concatenate(values)), np.concatenate(counts))

    def _core(
        self, coefficients: Floats, axes: Mapping[int, _Columns], inner: tuple[int, ...], sign: int
    ) -> tuple[Floats, Floats]:
        """What the sets with these axes of a term have in common: values and multiplicities."""
        informations = self.lattice.over(inner)
        if sign:
            informations = np.where(self.lattice.signs(inner) == sign, informations, np.inf)
        total: Floats | float = 0.0
        for q, coefficient in enumerate(coefficients.tolist()):
            outer = math.prod(float(axes[k].means[q]) for k in axes if k not in inner)
            part = coefficient * outer / informations
            for k in inner:
                axis_columns = axes[k]
                both = np.stack(
                    [
                        axis_columns.means[q] * axis_columns.columns[:, 0],
                        axis_columns.columns[:, 1 + q],
                    ]
                )
                part = np.tensordot(part, both, axes=(0, 0))
            total = total + part
        count = np.ones(())
        for k in inner:
            count = np.multiply.outer(count, axes[k].counts)
        return np.asarray(total).reshape(-1), count.reshape(-1)


def _rounded(values: Floats) -> Floats:
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    return np.round(values / size, DIGITS) + 0.0  # no negative zeros


def _columns(means: Floats, columns: Floats) -> _Columns:
    _, first, counts = np.unique(_rounded(columns), axis=0, return_index=True, return_counts=True)
    return _Columns(means, columns[first], counts.astype(np.float64))


def _merged(values: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Equal weights as one, without those that are 0."""
    rounded = _rounded(values)
    _, first, place = np.unique(rounded, return_index=True, return_inverse=True)
    often = np.bincount(place.reshape(-1), counts).astype(np.float64)
    nonzero = rounded[first] > 0
    return values[first][nonzero], often[nonzero]


def _stacked(row_weights: Sequence[tuple[Floats, Floats]], place: Integers) -> RowWeights:
    width = max((len(values) for values, _ in row_weights), default=0)
    values, counts = np.zeros((2, len(row_weights), max(width, 1)))
    for row, (row_values, often) in enumerate(row_weights):
        values[row, : len(row_values)], counts[row, : len(row_values)] = row_values, often
    return RowWeights(values, counts, place)
