"""Reductions per attribute that lose nothing: values that no term can distinguish are one.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.queries.maps.linear import Integers, LinearMap, combined_labels
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.words import Total

MergedFactors = tuple[tuple[LinearMap, ...], Integers, NDArray[np.int32]]
KnownMerges = dict[tuple[int, bytes], MergedFactors]
"""By attribute and the numbers of the factors that are present."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """A batch over merged values, and the merged value of every value.

    ``labels[i][value]`` is −1 where no query counts the value at all.
    """

    batch: ProductBatch
    labels: tuple[Integers, ...]

    @property
    def cells(self) -> int:
        """Number of cells of the product of the merged attributes."""
        return math.prod(self.batch.sizes)


def distinct_values(factors: Sequence[LinearMap]) -> tuple[Integers, int]:
    """Label the values of one attribute so that equal labels have equal columns in all factors.

    Returns the labels, in order of first appearance, and their number; −1 labels values whose
    columns are all zero.

    Examples
    --------
    >>> from lrm.queries.maps.matrices import DenseMap
    >>> labels, count = distinct_values([DenseMap(np.array([[0.0, 1, 1, 0]]))])
    >>> labels.tolist(), count
    ([-1, 0, 0, -1], 1)
    """
    size = factors[0].shape[1]
    each = (factor.column_labels for factor in factors if factor.kind != "total")
    labels = combined_labels(each, size)
    used = np.zeros(size, dtype=bool)
    for factor in factors:
        if used.all():
            break
        used |= factor.column_squared_sums() > 0
    if not used.any():
        used[:1] = True  # all queries are zero: keep one value, so that a product has cells
    firsts = np.unique(labels[used], return_index=True)
    order = np.argsort(firsts[1], kind="stable")
    rank = np.full(labels.max() + 1, -1)
    rank[firsts[0][order]] = np.arange(len(order))
    return np.where(used, rank[labels], -1), len(order)


def merge_values(batch: ProductBatch, known: KnownMerges | None = None) -> Reduction:
    """Merge the values that no term can distinguish; drop those that no query counts.

    A table has the same answers as its merged table, cell by cell of every term, and a record
    still is one record (or none). So no strategy over the full table has less error than the
    best over the merged one. ``known`` keeps what is found, for other terms of the same batch.
    """
    merged, labels, choice = [], [], batch.choice
    known = {} if known is None else known
    for i, choices in enumerate(batch.factors):
        present = batch.present(i)
        key = i, present.tobytes()
        if key not in known:
            known[key] = _merged_factors(choices, present)
        factors, marks, numbers = known[key]
        at, old_numbers = batch.chosen(i)
        renumbered = numbers[old_numbers]
        if not np.array_equal(
            renumbered, old_numbers
        ):  # else 500 attributes would be copied for nothing
            choice = choice.copy() if choice is batch.choice else choice
            choice[at, i] = renumbered
        merged.append(factors)
        labels.append(marks)
    return Reduction(batch.over(tuple(merged), choice, checked=True), tuple(labels))


def _merged_factors(choices: Sequence[LinearMap], present: Integers) -> MergedFactors:
    """The factors that are present over merged values; labels; and new numbers of factors."""
    marks, count = distinct_values([choices[f] for f in present] or [choices[0]])
    numbers = np.zeros(len(choices), dtype=np.int32)
    factors: list[LinearMap] = [Total(count)]
    for f in present:
        if choices[f].kind != "total":
            numbers[f] = len(factors)
            factors.append(choices[f].merged_columns(marks, count))
    return tuple(factors), marks, numbers
