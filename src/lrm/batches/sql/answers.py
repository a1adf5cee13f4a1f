"""One answer of a statement → linear queries, or a formula of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.sql import expr as ir
from lrm.batches.sql.binned import UNBOUNDED, cell_ends
from lrm.batches.sql.expr import shown
from lrm.batches.sql.formulas import Asked, Centre, Leaf, method_of
from lrm.batches.sql.groups import GroupingSet, Keys
from lrm.batches.sql.inputs import DerivedAnswer, Part, QuantileAnswer, reach
from lrm.batches.sql.products import products_of
from lrm.batches.sql.refusals import refuse
from lrm.batches.sql.summands import Weighed, Weights, multiplied
from lrm.batches.sql.windows import KeyGroup, Window, window_of
from lrm.batches.terms import Rows
from lrm.workload import Formula

if TYPE_CHECKING:
    from lrm.batches.sql.cells import Cells
    from lrm.batches.sql.present import GroupBlock
    from lrm.batches.terms import Names
    from lrm.maps.products.combine import Product
    from lrm.workload import Step

__all__ = ["Answer", "Compiled", "Weighted"]


@dataclass(frozen=True, eq=False)
class Answer:
    """One aggregate of a statement, over the groups of its grouping sets."""

    names: Names
    blocks: list[GroupBlock]
    products: list[Product]


LONG = 1 << 20
"""Weights of running totals that are written out, with no row more than is asked."""

Weighted = tuple[Weights, Weights | None]
"""The weights of a leaf, and where it adds up numbers in bins how far each may be off."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """An answer that was decomposed, with the weights of its leaves."""

    names: Names
    sets: list[GroupingSet]
    asked: Asked
    weights: list[Weighted]
    cells: Cells
    keys: Keys
    groups: Sequence[KeyGroup]

    def answers(
        self, group: KeyGroup, blocks: list[GroupBlock]
    ) -> list[Answer | DerivedAnswer | QuantileAnswer]:
        """The answers in one group of the expressions that the statement is grouped by.

        ``blocks`` are the groups of its attributes that are there.
        """
        names = replace(self.names, fixed=(*self.names.fixed, *group.labels))
        if not blocks:
            return []
        if self.asked.quantile is not None:
            products = self._products(self.weights[0][0], group.tables)
            return [self._quantile(block, names, products) for block in blocks]
        binning = self._binning(group)
        if self.asked.is_linear and binning is None:
            products = self._products(self.weights[0][0], group.tables)
            return [Answer(names, blocks, products)]
        ways = [self._way(group, centred=False)]
        if any(leaf.counted is not None for leaf in self.asked.leaves):
            ways.append(self._way(group, centred=True))
        found = [self._derived(block, names, ways, binning) for block in blocks]
        plain = binning is None and len(self.sets) == 1
        if plain and all(_is_part(one, self.sets[0]) for one in found):
            parts = [one.ways[0][1][0] for one in found]  # running totals are linear
            return [Answer(names, [(one.axes, one.rows)], one.products) for one in parts]
        return list(found)

    def _quantile(self, block: GroupBlock, names: Names, products: list[Product]) -> QuantileAnswer:
        axes, kept = block
        quantile = self.asked.quantile
        assert quantile is not None  # noqa: S101 - asked of quantiles
        assert quantile.level is not None  # noqa: S101 - same
        column = quantile.args[0]
        if not isinstance(column, ir.Attribute):
            advice = "quantiles are of attributes declared as integers or bins"
            raise refuse("quantile", f"a quantile of {shown(column)}", advice, column)
        axis = column.axis
        attribute = self.cells.domain.attributes[axis]
        if axis in axes:
            found = f"a quantile of {column.name} by {column.name}"
            raise refuse("quantile", found, "group by others", column)
        cells, lows, highs = cell_ends(attribute, column)
        order = np.array(cells, dtype=np.intp)
        if len(cells) * attribute.size > LONG and np.array_equal(order, np.arange(len(cells))):
            # All prefixes of a long attribute need no array, with those of NULL after the others.
            order = np.arange(attribute.size)
            products = [_plain_until(len(cells), axis, one) for one in products]
        labels = tuple(f"up to {attribute.labels[cell]}" for cell in order)
        running = Rows(axis, order, np.zeros_like(order), np.arange(len(order)), labels)
        part = Part(tuple(sorted((*axes, axis))), products, (*kept, running))
        label = names.label(self.cells.domain, axes, kept)
        ends = tuple(lows.tolist()), tuple(highs.tolist())
        return QuantileAnswer(label, axes, quantile.level, part, axis, method_of(quantile), *ends)

    def _derived(
        self,
        block: GroupBlock,
        names: Names,
        ways: Sequence[tuple[list[Step], list[list[Product]]]],
        binning: float | None,
    ) -> DerivedAnswer:
        axes, kept = block
        label = names.label(self.cells.domain, axes, kept)
        made = [
            (
                steps,
                [self._part(place, products, block) for place, products in enumerate(parts)],
            )
            for steps, parts in ways
        ]
        return DerivedAnswer(label, axes, made, binning, not self.asked.is_average)

    def _binning(self, group: KeyGroup) -> float | None:
        """How far representatives of bins may move what one row adds, or a whole average."""
        bounds = [
            None
            if error is None
            else max(map(abs, reach(self._products(error, self._tables(place, group)))))
            for place, (_, error) in enumerate(self.weights)
        ]
        known = [bound for bound in bounds if bound]
        if not known:
            return None
        if max(known) >= UNBOUNDED**0.5:
            return math.inf
        if any(leaf.square for leaf in self.asked.leaves) and self.asked.is_average:
            return math.sqrt(2.0) * max(known)  # n/(n − 1) is at most 2 in a sample
        if not self.asked.is_average:
            return max(known)
        # A linear combination of averages: its gradient is the same everywhere.
        counts = {leaf.counted for leaf in self.asked.leaves}
        inputs = np.array([[1.0 if k in counts else 0.0] for k in range(len(bounds))])
        steps, _ = self._way(group, centred=False)
        formula = Formula(tuple(steps))
        (value, gradient), _ = formula.core.dual(inputs)
        moved = sum(abs(float(gradient[k, 0])) * (bound or 0.0) for k, bound in enumerate(bounds))
        return moved * float(formula.steepness(value)[0])

    def _part(self, place: int, products: list[Product], block: GroupBlock) -> Part:
        axes, kept = block
        window = self._windows.get(place)
        if window is None:
            apart = self.asked.leaves[place].apart
            return Part((), products, fixed=False) if apart else Part(axes, products, kept)
        rows = {one.axis: one for one in kept if one.axis in window.within}
        running = window.running
        if running is not None:
            own = rows.get(running.axis)
            rows[running.axis] = running if own is None else running.taken(own.order)
        asked = tuple(sorted(rows.values(), key=lambda one: one.axis))
        return Part(tuple(sorted(window.within)), products, asked, fixed=window.by_keys)

    @cached_property
    def _windows(self) -> dict[int, Window]:
        """What each leaf with a window adds up over."""
        found = {}
        for place, leaf in enumerate(self.asked.leaves):
            if leaf.window is None:
                continue
            if leaf.apart:
                advice = "write it in the statement itself"
                raise refuse("window", "OVER in a subquery", advice, leaf.window)
            if len(self.sets) > 1:
                way_out = "write one statement per set"
                raise refuse("window", "OVER beside several grouping sets", way_out, leaf.window)
            axes = self.sets[0]
            found[place] = window_of(leaf.window, axes, self.keys, self.groups, self.cells.domain)
        return found

    def _tables(self, place: int, group: KeyGroup) -> Sequence[Weighed]:
        """The cells of the groups that a leaf is of."""
        window = self._windows.get(place)
        if window is not None:
            return window.tables(group)
        return () if self.asked.leaves[place].apart else group.tables

    def _products(self, weights: Weights, tables: Sequence[Weighed]) -> list[Product]:
        return products_of(tuple(one.times(tables) for one in weights), self.cells)

    def _way(self, group: KeyGroup, *, centred: bool) -> tuple[list[Step], list[list[Product]]]:
        """Formula and products; numbers of averages are added up from their centre where wanted.

        Noise on a sum of numbers far from 0 would be out of proportion to that of the counts.
        """
        leaves = self.asked.leaves
        weights = [own for own, _ in self.weights]
        parts = [
            self._products(own, self._tables(place, group)) for place, own in enumerate(weights)
        ]
        centres: dict[int, float] = {}
        for place, leaf in enumerate(leaves):
            if centred and leaf.counted is not None:
                first = next(k for k, one in enumerate(leaves) if one.counted == leaf.counted)
                low, high = reach(parts[first])
                centres[place] = (low + high) / 2 if max(-low, high) > 1 else 0.0
        moved = [
            self._products(
                _moved(leaf, place, weights, centres[place], first=leaves),
                self._tables(place, group),
            )
            if centres.get(place)
            else parts[place]
            for place, leaf in enumerate(leaves)
        ]
        steps: list[Step] = []
        for step in self.asked.steps:
            if isinstance(step, Centre):
                steps.append(centres.get(step.leaf, 0.0))
            else:
                steps.append(step)
        return _without_zero(steps), moved


def _is_part(one: DerivedAnswer, axes: GroupingSet) -> bool:
    """Whether a derived answer is one of its linear parts."""
    (steps, parts), *_ = one.ways
    return steps == [0] and parts[0].axes == axes


def _plain_until(count: int, axis: int, one: Product) -> Product:
    """A product with the same weights on the first cells, and the constant one beyond them."""
    coefficient, vectors = one
    vector = vectors.get(axis)
    if vector is None or np.any(vector[:count] != vector[0]) or not vector[0]:
        return one
    others = {other: weights for other, weights in vectors.items() if other != axis}
    return coefficient * float(vector[0]), others


def _moved(
    leaf: Leaf, place: int, weights: Sequence[Weights], centre: float, first: Sequence[Leaf]
) -> Weights:
    """``Σ(x − c)``, or ``Σ(x − c)² = Σx² − 2c·Σx + c²·n``, of the numbers that a leaf adds up."""
    assert leaf.counted is not None  # noqa: S101 - asked of averages
    counts = weights[leaf.counted]
    if not leaf.square:
        return (*weights[place], *multiplied(counts, -centre))
    plain = next(k for k, one in enumerate(first) if one.counted == leaf.counted)
    return (
        *weights[place],
        *multiplied(weights[plain], -2 * centre),
        *multiplied(counts, centre**2),
    )


def _without_zero(steps: list[Step]) -> list[Step]:
    """The same formula without adding 0."""
    found: list[Step] = []
    for step in steps:
        if step == "+" and found and found[-1] == 0.0 and isinstance(found[-1], float):
            found.pop()
        else:
            found.append(step)
    return found
