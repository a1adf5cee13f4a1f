"""Axes: how a group of terms sees the attributes, and the terms over the values of these.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.planning.design.products.corners import at_corners, check_parts, find_parts
from lrm.planning.limits import ARRAY, BLOCK, MEMORY
from lrm.queries.maps.kron import Kron, kron, kronecker
from lrm.queries.maps.leading import Leading
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import FactorNumbers, ProductBatch
from lrm.queries.maps.products.values import KnownMerges, distinct_values, merge_values
from lrm.queries.maps.words import Total

MOST_CLASSED = 1 << 17
"""Combinations of values that may be in classes."""

MOST_BROADCAST = 16
"""Factors of a product that are added up along axes of their own: NumPy has 64 of these."""


Classes = Literal["fewer", "few", "listed"]
"""Which combinations are in classes: those of attributes on which products of one term differ, if
classes are far fewer where other terms are products over them, or if they are few; or those of all
attributes on which terms differ, if classes are few: then the cells are listed."""


@dataclass(frozen=True, eq=False)
class Axis:
    """How a group of terms sees one attribute, or several fused into one.

    ``labels[k]`` gives every value of attribute ``attributes[k]`` its merged value, or −1 where
    no query of the group counts it; the values of the axis are the combinations, in C order.
    For conditions on several attributes together, such as ``x > y``, ``classes`` gives every
    combination its class; the classes are then the values of the axis.

    Where queries are sums of a number, a value between two others counts as some ``parts`` of each
    (`corners`): corners x values, with the same sum of parts for every value. The corners are then
    the values of the axis, and a record counts for that number of parts.
    """

    attributes: tuple[int, ...]
    labels: tuple[Integers, ...]
    classes: Integers | None = None
    parts: Integers | None = None

    def __post_init__(self) -> None:
        for marks in self.labels:
            _check_labels(marks)
        if not 1 <= self.combinations <= MEMORY:
            raise WorkloadError(
                f"an axis must have between 1 and {MEMORY:,} merged values, not "
                f"{self.combinations:,}"
            )
        if self.classes is not None:
            _check_labels(self.classes)
            full = len(self.classes) == self.combinations <= MOST_CLASSED
            # A tabulation without this axis would count what a class of -1 drops.
            if not full or self.classes.min() < 0:
                raise WorkloadError(
                    f"an axis needs a class for each of at most {MOST_CLASSED:,} combinations"
                )
        if self.parts is not None:
            check_parts(self.parts, self._value_count)

    @cached_property
    def merged_sizes(self) -> tuple[int, ...]:
        """Number of merged values of each attribute."""
        return tuple(int(marks.max(initial=-1)) + 1 for marks in self.labels)

    @property
    def combinations(self) -> int:
        """Number of combinations of merged values: what is counted for the axis."""
        return math.prod(self.merged_sizes)

    @cached_property
    def _value_count(self) -> int:
        """Number of classes, or of combinations where there are none."""
        return self.combinations if self.classes is None else int(self.classes.max()) + 1

    @cached_property
    def size(self) -> int:
        """Number of values of the axis."""
        return self._value_count if self.parts is None else len(self.parts)

    @cached_property
    def whole(self) -> int:
        """Number of parts that a record counts for along this axis."""
        return 1 if self.parts is None else int(self.parts[:, 0].sum())

    @property
    def is_plain(self) -> bool:
        """Whether its values are the combinations of merged values themselves."""
        return self.classes is None and self.parts is None

    def by_value(self, table: NDArray[np.generic]) -> NDArray[np.generic]:
        """Columns of one entry per combination as columns of one per value of the axis: sums."""
        if self.classes is not None:
            sums = np.zeros((self._value_count, *table.shape[1:]), dtype=table.dtype)
            np.add.at(sums, self.classes, table)
            table = sums
        return table if self.parts is None else np.asarray(self.parts.astype(table.dtype) @ table)

    def factor(self, factors: Sequence[LinearMap]) -> LinearMap:
        """The factor on this axis of a product with ``factors`` on the original attributes."""
        merged = [
            factors[i].merged_columns(marks, size)
            for i, marks, size in zip(self.attributes, self.labels, self.merged_sizes, strict=True)
        ]
        return kron(merged)

    def keeps(self, place: int, factor: LinearMap) -> bool:
        """Whether a factor of one attribute is constant on merged values, zero on dropped ones."""
        marks, size = self.labels[place], self.merged_sizes[place]
        if factor.kind == "total":
            return bool((marks >= 0).all())
        if factor.is_word:
            unseen = factor.kind == Leading.kind and marks[-1] < 0
            return size == factor.shape[1] - unseen and not self._has_own_corners
        is_counted = marks >= 0
        rows = factor.dense()
        if np.any(rows[:, ~is_counted] != 0):
            return False
        columns = factor.merged_columns(marks, size)
        if not np.array_equal(columns.dense()[:, marks[is_counted]], rows[:, is_counted]):
            return False
        if self.parts is None or not self._has_own_corners:
            return True
        return at_corners(columns, self.parts) is not None

    @property
    def _has_own_corners(self) -> bool:
        """Whether its corners are those of one attribute: else terms are looked at as a whole."""
        return self.parts is not None and self.classes is None and len(self.labels) == 1


def _check_labels(marks: Integers) -> None:
    if marks.ndim != 1 or not len(marks) or not -1 <= marks.min() <= marks.max():
        raise WorkloadError("an axis needs one label per value, each at least -1")
    count = int(marks.max()) + 1
    if count > len(marks) or not np.bincount(marks[marks >= 0], minlength=count).all():
        raise WorkloadError("labels of merged values must be consecutive numbers from 0")


def axes_of(labels: Sequence[Integers]) -> tuple[Axis, ...]:
    """One axis per attribute."""
    return tuple(Axis((i,), (marks,)) for i, marks in enumerate(labels))


def on_axes(batch: ProductBatch, axes: Sequence[Axis]) -> ProductBatch:
    """The terms of a batch over the values of ``axes``.

    A `WorkloadError` where a term distinguishes combinations of one class, does not lie between
    corners as its values do, or would have its answers in another order.
    """
    if not _keep_order(batch, axes):
        raise WorkloadError("the axes of a group are in another order than the answers of a term")
    batch = _on_combinations(batch, axes)
    for k, axis in enumerate(axes):
        if axis.classes is not None:
            batch = _on_classes(batch, k, axis)
        if axis.parts is not None:
            batch = _on_corners(batch, k, axis.parts)
    return batch


def answerable_terms(batch: ProductBatch, axes: Sequence[Axis]) -> list[int]:
    """The terms that are constant on merged values and on classes, and zero on dropped values."""
    kept = [
        term
        for term in range(batch.terms)
        if all(
            axis.keeps(place, factors[i])
            for _, factors in batch.summands(term)
            for axis in axes
            for place, i in enumerate(axis.attributes)
        )
    ]
    if all(axis.is_plain for axis in axes) and _keep_order(batch.take(kept), axes):
        return kept
    answerable = []
    for term in kept:
        with contextlib.suppress(WorkloadError):
            on_axes(batch.take([term]), axes)
            answerable.append(term)
    return answerable


def _on_classes(batch: ProductBatch, k: int, axis: Axis) -> ProductBatch:
    """The terms of a batch over combinations, with classes in place of those of axis k.

    Products that agree on all other axes are added up first: it is their sum that has the same
    weight on all combinations of a class.
    """
    assert axis.classes is not None  # noqa: S101 - by the caller
    sums, size = _sums_along(batch, k), int(axis.classes.max()) + 1
    for rows in sums.values():
        merged = DenseMap(rows).merged_columns(axis.classes, size)
        if np.any(merged.dense()[:, axis.classes] != rows):
            raise WorkloadError("an axis has one class for combinations that queries distinguish")
    return _by_class(batch, k, axis.classes, sums)


def _by_class(batch: ProductBatch, k: int, classes: Integers, sums: SumsAlong) -> ProductBatch:
    """The terms of a batch over combinations by the classes of axis k, along which are ``sums``."""
    size = int(classes.max()) + 1
    numbers = FactorNumbers(
        [Total(size)] if i == k else choices for i, choices in enumerate(batch.factors)
    )
    choice, term_of = [], []
    for (term, other), rows in sums.items():
        merged = DenseMap(rows).merged_columns(classes, size)
        choice.append([*other[:k], numbers.number(k, merged), *other[k + 1 :]])
        term_of.append(term)
    return ProductBatch(
        numbers.factors,
        np.array(choice, dtype=np.int32).reshape(len(choice), len(batch.factors)),
        np.ones(len(choice)),
        np.array(term_of, dtype=np.int64),
        batch.weights,
    )


def _on_corners(batch: ProductBatch, k: int, parts: Integers) -> ProductBatch:
    """The terms of a batch over the values of axis k, with the corners of these in their place."""
    factors: list[LinearMap] = []
    present = set(batch.present(k).tolist())
    for f, factor in enumerate(batch.factors[k]):
        corners = Total(len(parts)) if f not in present else at_corners(factor, parts)
        if corners is None:
            raise WorkloadError("queries of an axis do not lie between its corners")
        factors.append(corners)
    return batch.over((*batch.factors[:k], tuple(factors), *batch.factors[k + 1 :]), batch.choice)


SumsAlong = dict[tuple[int, tuple[int, ...]], Floats]


def _sums_along(batch: ProductBatch, k: int) -> SumsAlong:
    """By term and choices of the other axes: the sum of its products along axis k, over values."""
    sums: SumsAlong = {}
    held = added = 0
    entries = [math.prod(factor.shape) for factor in batch.factors[k]]
    own = batch.choice[:, k].tolist()
    others = batch.choice.copy()
    others[:, k] = 0
    keys = list(zip(batch.term_of.tolist(), map(tuple, others.tolist()), strict=True))
    for key, number, coefficient in zip(keys, own, batch.coefficients.tolist(), strict=True):
        added += entries[number]
        held += 0 if key in sums else entries[number]
        # Entries that are written out to see which combinations are alike; and those that are added
        # up for it, over all products: a few seconds.
        if held > ARRAY or added > (1 << 30):
            raise WorkloadError("the queries of an axis with classes have too many entries")
        if key not in sums:
            sums[key] = np.zeros(batch.factors[k][number].shape)
        _add(sums[key], batch.factors[k][number], coefficient)
    for rows in sums.values():
        rows.setflags(write=False)  # maps of them need no copy
    return sums


def _add(rows: Floats, factor: LinearMap, coefficient: float) -> None:
    """Add a factor to rows; a product without writing it out along attributes it sums out."""
    if not isinstance(factor, Kron) or len(factor.parts) > MOST_BROADCAST:
        rows += coefficient * factor.dense()
        return
    shapes = [part.shape for part in factor.parts]
    product = np.ones([1] * (2 * len(shapes)))
    for i, part in enumerate(factor.parts):
        if part.kind != "total":
            own = [1] * product.ndim
            own[i], own[len(shapes) + i] = part.shape
            product = product * part.dense().reshape(own)
    heights, widths = zip(*shapes, strict=True)
    table = rows.reshape(*heights, *widths)
    table += coefficient * product


def merged_axes(
    batch: ProductBatch, known: KnownAxes | None = None
) -> tuple[tuple[Axis, ...], ProductBatch]:
    """Axes on which the terms of a batch have no two values alike, and the terms over these.

    Attributes on which the products of one term differ are one axis, whose classes are what the
    terms distinguish: that x > y has two of them, for any number of values. Where
    other terms are products over these attributes, only if classes are far fewer. Values that lie
    between others are parts of them.
    """
    known = KnownAxes() if known is None else known
    return _with_corners(batch, *_Joined.of(batch, known).over_axes(known.classes), known)


def _with_corners(
    batch: ProductBatch, axes: tuple[Axis, ...], merged: ProductBatch, known: KnownAxes
) -> tuple[tuple[Axis, ...], ProductBatch]:
    """Axes and the terms over these, with corners in place of values that lie between others."""
    if not known.corners:
        return axes, merged
    found: list[tuple[Integers, tuple[LinearMap, ...]] | None] = []
    for k, axis in enumerate(axes):
        if len(axis.attributes) > 1:
            found.append(_parts_of(merged, k))
            continue
        # The factors of one attribute are the same beside axes of several.
        key = axis.attributes[0], batch.present(axis.attributes[0]).tobytes()
        if key not in known.parts:
            known.parts[key] = _parts_of(merged, k)
        found.append(known.parts[key])
    if not any(found):
        return axes, merged
    pairs = list(zip(axes, merged.factors, found, strict=True))
    cornered = tuple(
        axis if some is None else replace(axis, parts=some[0]) for axis, _, some in pairs
    )
    factors = tuple(choices if some is None else some[1] for _, choices, some in pairs)
    return cornered, merged.over(factors, merged.choice)


def axis_choices(
    batch: ProductBatch, known: Sequence[KnownAxes] = ()
) -> Iterator[tuple[tuple[Axis, ...], ProductBatch]]:
    """Yield `merged_axes` of a batch, and those with other `Classes` where they differ.

    Neither is always better: two counts ``a = 1 OR b = 1`` and ``NOT (a = 1 OR b = 1)`` are two
    cells as classes and four as a product of two attributes, whose marginals are then lost.
    ``known`` are what was found for each of these kinds of classes; all kinds by default.
    """
    seen = set()
    joined: dict[bool, _Joined] = {}
    for one in known or [KnownAxes(classes=classes) for classes in get_args(Classes)]:
        listed = one.classes == "listed"
        if listed not in joined:
            joined[listed] = _Joined.of(batch, one)
        classed = joined[listed].attributes_in_classes(one.classes)
        if classed not in seen:
            yield _with_corners(batch, *joined[listed].over_axes(one.classes), one)
        seen.add(classed)


@dataclass(frozen=True, eq=False)
class KnownAxes:
    """What was found about the values of attributes, for other terms of the same batch.

    Without ``corners``, every merged value is one of its axis.
    """

    corners: bool = True
    classes: Classes = "fewer"
    merges: KnownMerges = field(default_factory=dict)
    parts: dict[tuple[int, bytes], tuple[Integers, tuple[LinearMap, ...]] | None] = field(
        default_factory=dict
    )
    _single: dict[tuple[int, int], Axis] = field(default_factory=dict)

    def axes_of(self, labels: Sequence[Integers]) -> tuple[Axis, ...]:
        """One axis per attribute, the same ones for the same labels of ``merges``."""
        for i, marks in enumerate(labels):
            if (i, id(marks)) not in self._single:  # ``merges`` keeps the labels
                self._single[i, id(marks)] = Axis((i,), (marks,))
        return tuple(self._single[i, id(marks)] for i, marks in enumerate(labels))


def _parts_of(batch: ProductBatch, k: int) -> tuple[Integers, tuple[LinearMap, ...]] | None:
    """The parts of the corners of an axis, and its factors over these; None where all are."""
    choices = batch.factors[k]
    parts = find_parts([choices[f] for f in batch.present(k).tolist()])
    if parts is None:
        return None
    factors = [at_corners(factor, parts) for factor in choices]
    complete = [factor for factor in factors if factor is not None]
    return (parts, tuple(complete)) if len(complete) == len(choices) else None


@dataclass(frozen=True, eq=False)
class _Joined:
    """The merged values of attributes, and the classes of combinations of some, if there are any.

    Parameters
    ----------
    axes, merged
        One axis per attribute, and the terms over these.
    axis
        That of the combinations of several attributes; None where there are no classes of them.
    fused, over
        All axes with that one, and the terms over these.
    sums
        The queries along that axis.
    classes
        The class of each combination.
    by_itself
        Whether no term is a product over these attributes.
    """

    axes: tuple[Axis, ...]
    merged: ProductBatch
    axis: Axis | None = None
    fused: tuple[Axis, ...] = ()
    over: ProductBatch | None = None
    sums: SumsAlong = field(default_factory=dict)
    classes: Integers | None = None
    by_itself: bool = False

    @classmethod
    def of(cls, batch: ProductBatch, known: KnownAxes) -> _Joined:
        """Attributes on which products of a term differ, or terms if combinations are listed."""
        reduction = merge_values(batch, known.merges)
        axes, merged = known.axes_of(reduction.labels), reduction.batch
        plain = cls(axes, merged)
        listed = known.classes == "listed"
        if batch.simple and not listed:
            return plain
        mixed = mixed_attributes(merged)
        together = np.flatnonzero(mixed.any(axis=0)).tolist()
        if listed:
            own = range(len(axes))
            together = [i for i in own if axes[i].size > 1 and len(merged.present(i)) > 1]
        size = math.prod(merged.sizes[i] for i in together)
        if len(together) < 2 or size > MOST_CLASSED:
            return plain
        if listed and size * merged.queries > BLOCK:
            return plain
        axis = Axis(tuple(together), tuple(reduction.labels[i] for i in together))
        fused = _fused(batch, axes, axis)
        try:
            over = _side_by_side(merged, fused)
            sums = _sums_along(over, fused.index(axis))
        except WorkloadError:
            return plain
        # With a total, no combination is dropped.
        classes, _ = distinct_values([Total(axis.combinations), *map(DenseMap, sums.values())])
        products = np.isin(batch.term_of, np.flatnonzero(~mixed.any(axis=1)))
        is_product = merged.support()[products][:, together]
        by_itself = listed or not is_product.any()
        return cls(axes, merged, axis, fused, over, sums, classes, by_itself)

    def attributes_in_classes(self, kind: Classes) -> tuple[int, ...]:
        """The attributes whose combinations are in classes; none where these are too many."""
        if self.axis is None or self.classes is None:
            return ()
        count = int(self.classes.max()) + 1
        # Classes of several terms that one axis may have whatever the number of combinations.
        few = count <= 512 or (self.merged.terms == 1 and kind != "listed")
        # How many times fewer classes there must be than combinations, where other terms are
        # products over the same attributes, or classes are many: they would lose the product that
        # they are.
        fewer = 1 if (self.by_itself or kind != "fewer") and few else 4
        if count == self.axis.combinations or count * fewer > self.axis.combinations:
            return ()
        return self.axis.attributes

    def over_axes(self, kind: Classes) -> tuple[tuple[Axis, ...], ProductBatch]:
        """Axes of merged values and of classes, and the terms over these."""
        if not self.attributes_in_classes(kind):
            return self.axes, self.merged
        assert self.axis and self.over and self.classes is not None  # noqa: S101, PT018
        joint = replace(self.axis, classes=self.classes)
        axes = tuple(joint if one is self.axis else one for one in self.fused)
        return axes, _by_class(self.over, self.fused.index(self.axis), self.classes, self.sums)


def _fused(batch: ProductBatch, axes: Sequence[Axis], axis: Axis) -> tuple[Axis, ...]:
    """The axes with one for several attributes, at the place of one of them.

    It is the first that leaves answers in their order: a condition has none of its own, so that an
    axis of a condition and of groups stands where the groups do.
    """
    orders = []
    for place in axis.attributes:
        before = [axes[i] for i in range(place) if i not in axis.attributes]
        after = [axes[i] for i in range(place + 1, len(axes)) if i not in axis.attributes]
        orders.append((*before, axis, *after))
    return next((order for order in orders if _keep_order(batch, order)), orders[0])


def mixed_attributes(batch: ProductBatch) -> NDArray[np.bool_]:
    """On which attributes the products of each term differ (terms x attributes)."""
    _, first = np.unique(batch.term_of, return_index=True)
    mixed = np.zeros((batch.terms, len(batch.factors)), dtype=bool)
    np.logical_or.at(mixed, batch.term_of, batch.choice != batch.choice[first][batch.term_of])
    return mixed


def _keep_order(batch: ProductBatch, axes: Sequence[Axis]) -> bool:
    """Whether answers are in the same order over axes as over attributes.

    Those of a product are in the order of its attributes with several queries: these must come in
    the same order along the axes.
    """
    order = [i for axis in axes for i in axis.attributes]
    if order == sorted(order):
        return True
    last = np.full(len(batch.choice), -1)
    for i in order:
        several = np.array([len(factor) > 1 for factor in batch.factors[i]])[batch.choice[:, i]]
        if np.any(several & (last > i)):
            return False
        last[several] = i
    return True


def _on_combinations(batch: ProductBatch, axes: Sequence[Axis]) -> ProductBatch:
    """The terms of a batch over the combinations of merged values of ``axes``."""
    choice, factors = batch.choice, []
    if [axis.attributes for axis in axes] != [(i,) for i in range(len(batch.factors))]:
        choice = np.zeros((len(batch.choice), len(axes)), dtype=np.int32)
    for k, axis in enumerate(axes):
        members = list(axis.attributes)
        rows, combos, place = _combinations(batch, members)
        numbers = np.zeros(len(combos), dtype=np.int32)
        axis_factors: list[LinearMap] = [Total(axis.combinations)]
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


def _side_by_side(merged: ProductBatch, axes: Sequence[Axis]) -> ProductBatch:
    """`on_axes` of terms whose values are merged already, without classes and corners."""
    if not _keep_order(merged, axes):
        raise WorkloadError("the axes of a group are in another order than the answers of a term")
    choice = np.zeros((len(merged.choice), len(axes)), dtype=np.int32)
    factors: list[tuple[LinearMap, ...]] = []
    for k, axis in enumerate(axes):
        members = list(axis.attributes)
        if len(members) == 1:
            choice[:, k] = merged.choice[:, members[0]]
            factors.append(merged.factors[members[0]])
            continue
        _, combos, place = _combinations(merged, members)
        numbers = np.zeros(len(combos), dtype=np.int32)
        together: list[LinearMap] = [Total(axis.combinations)]
        for number, combo in enumerate(combos.tolist()):
            if any(combo):
                numbers[number] = len(together)
                parts = zip(members, combo, strict=True)
                together.append(kron([merged.factors[i][f] for i, f in parts]))
        choice[:, k] = numbers[place]
        factors.append(tuple(together))
    return merged.over(tuple(factors), choice, checked=True)


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
        picks = [_selector(*pair) for pair in zip(axis.labels, axis.merged_sizes, strict=True)]
        if axis.classes is not None:
            picks = [_selector(axis.classes, int(axis.classes.max()) + 1) @ kronecker(picks)]
        if axis.parts is not None:
            picks = [axis.parts / axis.whole @ kronecker(picks)]
        selectors += picks
        order.extend(axis.attributes)
    cells = (rows @ kronecker(selectors)).reshape(len(rows), *[sizes[i] for i in order])
    cells = np.moveaxis(cells, range(1, len(order) + 1), [1 + i for i in order])
    return np.asarray(cells.reshape(len(rows), -1))


def _selector(marks: Integers, size: int) -> Floats:
    """Labels as a matrix of zeros and ones: labels x values."""
    selected = np.zeros((size, len(marks)))
    counted = np.flatnonzero(marks >= 0)
    selected[marks[counted], counted] = 1.0
    return selected
