"""The record of a product strategy: groups of terms, each with its own weighted marginals.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.exact.products.marginals import Marginals
from lrm.maps.kron import kron, kronecker
from lrm.maps.linear import Floats, Integers, LinearMap
from lrm.maps.products.batch import ProductBatch
from lrm.maps.words import Total

MOST_VALUES = 1 << 27
"""Merged values of an axis: 1 GiB of counts."""


@dataclass(frozen=True, eq=False)
class Axis:
    """How a group of terms sees one attribute, or several fused into one.

    ``labels[k]`` gives every value of attribute ``attributes[k]`` its merged value, or −1 where
    no query of the group counts it; the values of the axis are the combinations, in C order.
    """

    attributes: tuple[int, ...]
    labels: tuple[Integers, ...]

    def __post_init__(self) -> None:
        for marks in self.labels:
            if marks.ndim != 1 or not len(marks) or not -1 <= marks.min() <= marks.max():
                raise WorkloadError("an axis needs one label per value, each at least -1")
            count = int(marks.max()) + 1
            if count > len(marks) or len(np.unique(marks[marks >= 0])) != count:
                raise WorkloadError("labels of merged values must be consecutive numbers from 0")
        if not 1 <= self.size <= MOST_VALUES:
            raise WorkloadError(
                f"an axis must have between 1 and {MOST_VALUES:,} merged values, not {self.size:,}"
            )

    @cached_property
    def merged_sizes(self) -> tuple[int, ...]:
        """Number of merged values of each attribute."""
        return tuple(int(marks.max(initial=-1)) + 1 for marks in self.labels)

    @property
    def size(self) -> int:
        """Number of values of the axis."""
        return math.prod(self.merged_sizes)

    def factor(self, factors: Sequence[LinearMap]) -> LinearMap:
        """The factor on this axis of a product with ``factors`` on the original attributes."""
        merged = [
            factors[i].merged_columns(marks, size)
            for i, marks, size in zip(self.attributes, self.labels, self.merged_sizes, strict=True)
        ]
        return kron(merged)

    def answers(self, factors: Sequence[LinearMap]) -> bool:
        """Whether the factors are constant on merged values and zero on dropped ones."""
        return all(self.keeps(place, factors[i]) for place, i in enumerate(self.attributes))

    def keeps(self, place: int, factor: LinearMap) -> bool:
        """Whether a factor of one attribute is constant on merged values, zero on dropped ones."""
        marks, size = self.labels[place], self.merged_sizes[place]
        if factor.kind == "total":
            return bool((marks >= 0).all())
        if factor.is_word:
            return size == factor.shape[1]
        is_counted = marks >= 0
        rows = factor.dense()
        if np.any(rows[:, ~is_counted] != 0):
            return False
        columns = factor.merged_columns(marks, size).dense()
        return np.array_equal(columns[:, marks[is_counted]], rows[:, is_counted])


def axes_of(labels: Sequence[Integers]) -> tuple[Axis, ...]:
    """One axis per attribute."""
    return tuple(Axis((i,), (marks,)) for i, marks in enumerate(labels))


@dataclass(frozen=True, eq=False)
class Group:
    """Some terms, the axes they see, and the marginals that answer them.

    ``error`` is ``‖B‖²`` of these terms alone, at sensitivity 1; ``weight`` is the share of the
    whole sensitivity.
    """

    terms: Integers
    axes: tuple[Axis, ...]
    marginals: Marginals
    error: float
    weight: float = 1.0

    def reduced(self, batch: ProductBatch) -> ProductBatch:
        """The group's terms over its axes."""
        return on_axes(batch.take(self.terms), self.axes)


def on_axes(batch: ProductBatch, axes: Sequence[Axis]) -> ProductBatch:
    """The terms of a batch over the values of ``axes``."""
    choice, factors = batch.choice, []
    if [axis.attributes for axis in axes] != [(i,) for i in range(len(batch.factors))]:
        choice = np.zeros((len(batch.choice), len(axes)), dtype=np.int32)
    for k, axis in enumerate(axes):
        members = list(axis.attributes)
        rows, combos, place = _combinations(batch, members)
        numbers = np.zeros(len(combos), dtype=np.int32)
        axis_factors: list[LinearMap] = [Total(axis.size)]
        for number, combo in enumerate(combos):
            combo_factors: list[LinearMap] = [batch.factors[0][0]] * len(batch.factors)
            for i, f in zip(members, combo, strict=True):
                combo_factors[i] = batch.factors[i][f]
            if any(f != 0 for f in combo):
                numbers[number] = len(axis_factors)
                axis_factors.append(axis.factor(combo_factors))
        if not np.array_equal(choice[rows, k], numbers[place]):
            choice = choice.copy() if choice is batch.choice else choice
            choice[rows, k] = numbers[place]
        factors.append(tuple(axis_factors))
    return batch.over(tuple(factors), choice)


def _combinations(
    batch: ProductBatch, members: Sequence[int]
) -> tuple[Integers, NDArray[np.int32], Integers]:
    """The products with other factors than totals, their distinct choices, and the number of each.

    Without a sort for one attribute.
    """
    if len(members) != 1:
        combos, place = np.unique(batch.choice[:, members], axis=0, return_inverse=True)
        return np.arange(len(batch.choice)), combos, place.reshape(-1)
    rows, choices = batch.chosen(members[0])
    present = np.flatnonzero(np.bincount(choices, minlength=1))
    numbers = np.zeros(int(present.max(initial=0)) + 1, dtype=np.int64)
    numbers[present] = np.arange(len(present))
    return rows, present[:, None].astype(np.int32), numbers[choices]


def over_cells(rows: Floats, axes: Sequence[Axis], sizes: Sequence[int]) -> Floats:
    """Rows over the values of some axes as rows over all cells of the original attributes."""
    selectors: list[Floats] = []
    order: list[int] = []
    for axis in axes:
        for marks, size in zip(axis.labels, axis.merged_sizes, strict=True):
            pick = np.zeros((size, len(marks)))
            counted = np.flatnonzero(marks >= 0)
            pick[marks[counted], counted] = 1.0
            selectors.append(pick)
        order.extend(axis.attributes)
    cells = (rows @ kronecker(selectors)).reshape(len(rows), *[sizes[i] for i in order])
    cells = np.moveaxis(cells, range(1, len(order) + 1), [1 + i for i in order])
    return np.asarray(cells.reshape(len(rows), -1))


def group_weights(errors: Sequence[float]) -> tuple[float, Floats]:
    """The least total error of groups that share one budget, and their shares of it.

    Minimises ``Σ e_g/ω_g²`` over ``Σ ω_g = 1``: ``ω_g ∝ e_g^⅓``, total ``(Σ e_g^⅓)³``.

    Examples
    --------
    >>> group_weights([1.0, 8.0])[0], group_weights([1.0, 8.0])[1].round(3).tolist()
    (27.0, [0.333, 0.667])
    """
    roots = np.cbrt(np.asarray(errors))
    root_sum = float(roots.sum())
    if root_sum == 0:
        return 0.0, np.full(len(roots), 1.0 / max(1, len(roots)))
    return root_sum**3, roots / root_sum


@dataclass(frozen=True, eq=False)
class ProductStrategy:
    """What is measured for a batch over a product: groups whose weights sum to 1.

    ``error`` is ``‖B‖²·Δ²`` of the whole batch. Each group is answered from its own measurements,
    or (``combined``) two groups from both, by generalised least squares.
    """

    groups: tuple[Group, ...]
    error: float
    combined: bool = False

    @classmethod
    def combine(cls, groups: Sequence[Group]) -> ProductStrategy:
        """Give the groups their best weights."""
        error, shares = group_weights([group.error for group in groups])
        weighed = zip(groups, shares.tolist(), strict=True)
        return cls(tuple(replace(group, weight=weight) for group, weight in weighed), error)

    def dense(self, sizes: Sequence[int]) -> Floats:
        """All measurements over all original cells; for small tables."""
        parts = []
        for group in self.groups:
            rows = group.weight * group.marginals.dense()
            parts.append(over_cells(rows, group.axes, sizes))
        return np.vstack(parts)
