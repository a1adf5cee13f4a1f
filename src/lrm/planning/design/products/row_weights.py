"""Rows of B over products: written out, or their weights by classes with multiplicities.

A row of B weighs what was measured of set B by ``θ_B·Σ_{A⊆B} (1/λ_A) ⊗ N_i``. How wide the noise of
an answer is depends on the weights alone, not on their places: rows of a factor whose columns of
``N_i`` are the same in another order are one class, and within a row equal columns are one, with a
multiplicity. A cell of a table over attributes with identity bases has one class and two columns
per attribute, so that a row over a million measurements is a handful of numbers.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lrm.planning.design.products.folding import fold_rows
from lrm.planning.design.products.information import Information, support_of
from lrm.planning.limits import ARRAY, BLOCK
from lrm.queries.maps.linear import Floats, Integers, LinearMap, RowWeights
from lrm.queries.maps.products.batch import Factors, Products


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

    by_subset: Information
    terms: int
    """Number of terms of the whole batch, which share the work."""
    _axes: dict[tuple[int, tuple[LinearMap, ...]], tuple[Integers, list[_Columns]] | None] = field(
        default_factory=dict, repr=False
    )
    _totals: dict[int, _Columns] = field(default_factory=dict, repr=False)

    def of_term(self, summands: Products, rows: Sequence[slice] = ()) -> RowWeights | None:
        """The weights of a term's rows; None where they would be too much work."""
        if self.by_subset.residual:
            return None
        axes = list(summands[0][1])
        known = [self._classes(k, tuple(product[k] for _, product in summands)) for k in axes]
        classes = [axis_class for axis_class in known if axis_class is not None]
        if len(classes) < len(axes):
            return None
        combos = math.prod(len(axis_class) for _, axis_class in classes)
        # What looking at one measured set for one class costs, in weights.
        if combos * len(self.by_subset.sets) * 64 * self.terms > ARRAY:
            return None
        widths = [
            max(len(axis_class.counts) for axis_class in axis_part) for _, axis_part in classes
        ]
        if combos * self._entries(dict(zip(axes, widths, strict=True))) > (ARRAY / self.terms):
            return None
        coefficients = np.array([coefficient for coefficient, _ in summands])
        weights = [
            self._weights(coefficients, dict(zip(axes, combo, strict=True)))
            for combo in itertools.product(*(axis_part for _, axis_part in classes))
        ]
        labels = [labels for labels, _ in classes]
        labels[: len(rows)] = [axis[some] for axis, some in zip(labels, rows, strict=False)]
        place = np.zeros((), dtype=np.int64)
        for axis_part, (_, several) in zip(labels, classes, strict=True):
            place = np.add.outer(place * len(several), axis_part)
        return _stacked(weights, place.reshape(-1))

    def _entries(self, widths: Mapping[int, int]) -> int:
        """The most columns of a row with this number of distinct columns on the axes of a term."""
        return sum(
            math.prod(widths[k] if k in widths else len(self._total(k).counts) for k in axis_set)
            for axis_set in self.by_subset.sets
        )

    def _total(self, k: int) -> _Columns:
        """The columns of an axis that is summed out."""
        if k not in self._totals:
            self._totals[k] = _columns(np.ones(1), self.by_subset.bases[k].average[:, None])
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
        basis = self.by_subset.bases[k]
        average = basis.average
        if len(factors[0]) * len(average) * len(factors) > BLOCK:
            return None
        means = np.stack([basis.means(f) for f in factors])
        spread = [
            basis.image(f) if f.total_factor is None else np.zeros((len(f), len(average)))
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
            zip(self.by_subset.sets, self.by_subset.folds.tolist(), strict=True)
        ):
            inner = tuple(sorted(axis_set & axes.keys()))
            if (inner, sign) not in cores:
                inverses = self.by_subset.inverses_in(b, inner)
                cores[inner, sign] = _core(coefficients, axes, inner, inverses)
            value, count = cores[inner, sign]
            value = value * self.by_subset.weights[b]
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
    coefficients: Floats, axes: Mapping[int, _Columns], inner: tuple[int, ...], inverses: Floats
) -> tuple[Floats, Floats]:
    """What the sets with these axes of a term have in common: values and multiplicities."""
    total: Floats | float = 0.0
    for q, coefficient in enumerate(coefficients.tolist()):
        outer = math.prod(float(axes[k].means[q]) for k in axes if k not in inner)
        part = coefficient * outer * inverses
        for k in inner:
            columns = axes[k].columns
            both = np.stack([axes[k].means[q] * columns[:, 0], columns[:, 1 + q]])
            part = np.tensordot(part, both, axes=(0, 0))
        total = total + part
    count = np.ones(())
    for k in inner:
        count = np.multiply.outer(count, axes[k].counts)
    return np.asarray(total).reshape(-1), count.reshape(-1)


def _rounded(values: Floats) -> Floats:
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    # Digits to which weights are compared.
    return np.round(values / size, 12) + 0.0  # no negative zeros


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
    values = np.concatenate([np.zeros(0), *(values for values, _ in row_weights)])
    counts = np.concatenate([np.zeros(0), *(often for _, often in row_weights)])
    ends = np.cumsum([len(values) for values, _ in row_weights], dtype=np.int64)
    return RowWeights(values, counts, ends, place)


def term_sets(by_subset: Information, products: Products) -> set[int]:
    """The sets of a group whose measurements count in the answers of a sum of products."""
    return {b for _, factors in products for b in _used_sets(by_subset, factors)}


def add_term_rows(
    coefficient_rows: Floats,
    places: Mapping[int, slice],
    by_subset: Information,
    products: Products,
) -> None:
    """Add the rows of B of a sum of products to the columns of each set that counts in it.

    The estimate of a product weighs what was measured of set B (for unit noise) by
    ``θ_B·Σ_{A⊆B} (1/λ_A) ⊗ N_i``, where ``N_i`` is ``W·P·Sᵀ/κ`` for i in A, ``W·h/κ`` times
    ``(S·h/κ)ᵀ`` for the rest of B, and ``W·h/κ`` elsewhere.
    """
    for coefficient, factors in products:
        used = _used_sets(by_subset, factors)
        for b, rows in zip(used, _set_rows(by_subset, factors, used), strict=True):
            part = coefficient_rows[:, places[b]]
            part += rows if coefficient == 1.0 else coefficient * rows


def product_rows(by_subset: Information, factors: Factors) -> Floats:
    """The rows of B of one product over a group's axes."""
    return np.hstack(list(_set_rows(by_subset, factors, range(len(by_subset.sets)))))


def _inner(by_subset: Information, factors: Factors, b: int) -> tuple[int, ...]:
    """The axes of a set on which a product distinguishes values."""
    return tuple(i for i in support_of(factors) if i in by_subset.sets[b])


def _used_sets(by_subset: Information, factors: Factors) -> list[int]:
    """The sets that hold information about a product; the rows of all others are 0."""
    numbers = range(len(by_subset.sets))
    return [b for b in numbers if by_subset.inverses_in(b, _inner(by_subset, factors, b)).any()]


def _set_rows(by_subset: Information, factors: Factors, sets: Iterable[int]) -> Iterator[Floats]:
    """Yield the rows of B of one product, over the measurements of one set after the other."""
    bases, places = by_subset.bases, {i: place for place, i in enumerate(factors)}
    means = {i: bases[i].means(factor) for i, factor in factors.items()}
    both = {
        i: np.stack([np.outer(means[i], bases[i].average), bases[i].image(factors[i])])
        for i in support_of(factors)
    }
    count = math.prod(map(len, factors.values()))
    for b in sets:
        inner = _inner(by_subset, factors, b)
        # One array axis for each factor of the product, then one for each member of the set.
        rows, order = by_subset.inverses_in(b, inner) * float(by_subset.weights[b]), []
        for i in inner:
            rows = np.tensordot(rows, both[i], axes=(0, 0))
            order += [places[i], len(places) + i]
        for i in factors:
            if i not in inner:
                rows = np.multiply.outer(rows, means[i])
                order.append(places[i])
        members = sorted(by_subset.sets[b])
        for i in members:
            if i not in inner:
                rows = np.multiply.outer(rows, bases[i].average)
                order.append(len(places) + i)
        rows = rows.transpose(np.argsort(order)).reshape(count, -1)
        if by_subset.folds[b]:
            heights = [len(bases[i].average) for i in members]
            rows = fold_rows(rows.T, heights, by_subset.mirrored(b), int(by_subset.folds[b])).T
        yield rows @ by_subset.unmixing[b] if b in by_subset.unmixing else rows
