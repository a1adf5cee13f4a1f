"""One answer of a statement → linear queries, or a formula of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lrm.batches.compiler.asked import Asked, Centre, Leaf
from lrm.batches.compiler.binned import UNBOUNDED, cell_ends, ordered_cells
from lrm.batches.compiler.expressions import shown
from lrm.batches.compiler.grouping import GroupingSet, Keys
from lrm.batches.compiler.inputs import DerivedAnswer, Part, QuantileAnswer, reach
from lrm.batches.compiler.products import products_of
from lrm.batches.compiler.refusals import refuse
from lrm.batches.compiler.summands import Weighed, Weights, multiplied
from lrm.batches.terms import Running
from lrm.workload import Formula

if TYPE_CHECKING:
    from sqlglot import exp

    from lrm.batches.compiler.predicates import Scope
    from lrm.batches.terms import Names
    from lrm.maps.products.combine import Product
    from lrm.workload import Step

__all__ = ["Answer", "Compiled", "Weighted"]

Fixed = tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """One aggregate of a statement, over all groups of its grouping sets."""

    names: Names
    sets: list[GroupingSet]
    products: list[Product]
    running: Running | None = None


Weighted = tuple[Weights, Weights | None]
"""The weights of a leaf, and where it adds up numbers in bins how far each may be off."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """An answer that was taken apart, with the weights of its leaves."""

    names: Names
    sets: list[GroupingSet]
    asked: Asked
    weights: list[Weighted]
    scope: Scope
    keys: Keys

    def answers(
        self, fixed: Fixed, tables: Sequence[Weighed]
    ) -> list[Answer | DerivedAnswer | QuantileAnswer]:
        """The answers in one group of the expressions that the statement is grouped by."""
        names = replace(self.names, fixed=(*self.names.fixed, *fixed))
        if self.asked.column is not None:
            products = self._products(self.weights[0][0], tables)
            return [self._quantile(axes, names, products) for axes in self.sets]
        binning = self._binning(tables)
        if self.asked.is_linear and binning is None:
            products = self._products(self.weights[0][0], tables)
            return [Answer(names, self.sets, products)]
        ways = [self._way(tables, centred=False)]
        if any(leaf.counted is not None for leaf in self.asked.leaves):
            ways.append(self._way(tables, centred=True))
        found = [self._derived(axes, names, ways, binning) for axes in self.sets]
        (steps, parts), *_ = found[0].ways
        if len(found) == 1 and binning is None and steps == [0] and parts[0].axes == self.sets[0]:
            part = parts[0]  # running totals are linear
            return [Answer(names, self.sets, part.products, part.running)]
        return list(found)

    def _quantile(self, axes: GroupingSet, names: Names, products: list[Product]) -> QuantileAnswer:
        column, level = self.asked.column, self.asked.level
        assert column is not None  # noqa: S101 - asked of quantiles
        assert level is not None  # noqa: S101 - same
        axis = self.scope.axis(column)
        attribute = self.scope.domain.attributes[axis]
        if axis in axes:
            raise refuse(f"a quantile of {column.name} by {column.name}", "group by others", column)
        cells, lows, highs = cell_ends(attribute, column)
        rows = np.zeros((len(cells), attribute.size))
        for place, cell in enumerate(cells):
            rows[place:, cell] = 1.0
        labels = tuple(f"up to {attribute.labels[cell]}" for cell in cells)
        part = Part(tuple(sorted((*axes, axis))), products, Running(axis, rows, labels))
        ends = tuple(lows.tolist()), tuple(highs.tolist())
        return QuantileAnswer(names.label(self.scope.domain, axes), axes, level, part, *ends)

    def _derived(
        self,
        axes: GroupingSet,
        names: Names,
        ways: Sequence[tuple[list[Step], list[list[Product]]]],
        binning: float | None,
    ) -> DerivedAnswer:
        label = names.label(self.scope.domain, axes)
        made = [
            (
                steps,
                [
                    self._part(leaf, products, axes)
                    for leaf, products in zip(self.asked.leaves, parts, strict=True)
                ],
            )
            for steps, parts in ways
        ]
        return DerivedAnswer(label, axes, made, binning, not self.asked.is_average)

    def _binning(self, tables: Sequence[Weighed]) -> float | None:
        """How far representatives of bins may move what one row adds, or a whole average."""
        bounds = [
            None if error is None else max(map(abs, reach(self._products(error, tables))))
            for _, error in self.weights
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
        steps, _ = self._way(tables, centred=False)
        formula = Formula(tuple(steps))
        (value, gradient), _ = formula.core.dual(inputs)
        moved = sum(abs(float(gradient[k, 0])) * (bound or 0.0) for k, bound in enumerate(bounds))
        return moved * float(formula.steepness(value)[0])

    def _part(self, leaf: Leaf, products: list[Product], axes: GroupingSet) -> Part:
        window = leaf.window
        if leaf.apart and window is not None:
            raise refuse("OVER in a subquery", "write it in the statement itself", window)
        if window is None:
            return Part((), products, fixed=False) if leaf.apart else Part(axes, products)
        if len(self.sets) > 1:
            raise refuse("OVER beside several grouping sets", "write one statement per set", window)
        within, fixed = self._partition(leaf, axes)
        order = window.args.get("order")
        running = None
        if order is not None:
            running = self._running(order, window)
            if running.axis not in axes or running.axis in within:
                name = self.scope.domain.names[running.axis]
                raise refuse(f"OVER (ORDER BY {name})", "order by one of the groups", window)
            if window.args.get("spec") is not None and {*within, running.axis} != set(axes):
                raise refuse("ROWS in OVER (…)", "partition by all other groups", window)
            within = [*within, running.axis]
        elif window.args.get("spec") is not None:
            raise refuse("ROWS or RANGE without ORDER BY", "leave it out", window)
        return Part(tuple(sorted(within)), products, running, fixed=fixed)

    def _partition(self, leaf: Leaf, axes: GroupingSet) -> tuple[list[int], bool]:
        """The attributes that a window is over, and whether all expressions of groups are too."""
        assert leaf.window is not None  # noqa: S101 - asked of windows
        names = {text: text for text in self.keys} | {
            name: text for text, (name, _) in self.keys.items()
        }
        within, keys = [], set()
        for node in leaf.window.args.get("partition_by") or []:
            if shown(node) in names:
                keys.add(names[shown(node)])
                continue
            within.append(axis := self.scope.axis(node))
            if axis not in axes:
                name = self.scope.domain.names[axis]
                raise refuse(f"PARTITION BY {name}", "it is not grouped by", leaf.window)
        if keys and len(keys) < len(self.keys):
            raise refuse("PARTITION BY some of the expressions", "name all or none", leaf.window)
        return within, bool(keys)

    def _running(self, order: exp.Expr, window: exp.Expr) -> Running:
        """Running totals over the cells of an attribute, in its order."""
        spec = window.args.get("spec")
        if spec is not None and (
            spec.args.get("start") != "UNBOUNDED"
            or spec.args.get("start_side") != "PRECEDING"
            or spec.args.get("end") not in (None, "CURRENT ROW")
        ):
            raise refuse("this frame of OVER (…)", "write UNBOUNDED PRECEDING", window)
        if len(order.expressions) != 1:
            raise refuse("OVER (ORDER BY several)", "order by one of the groups", window)
        (by,) = order.expressions
        axis = self.scope.axis(by.this)
        attribute = self.scope.domain.attributes[axis]
        order_of, null = ordered_cells(attribute, by)
        places = [[cell] for cell in (reversed(order_of) if by.args.get("desc") else order_of)]
        places = [null, *places] if by.args.get("nulls_first") else [*places, null]
        rows = np.zeros((attribute.size, attribute.size))
        seen: list[int] = []
        for cells in places:
            seen += cells
            for cell in cells:
                rows[cell, seen] = 1.0
        return Running(axis, rows, attribute.labels)

    def _products(self, weights: Weights, tables: Sequence[Weighed]) -> list[Product]:
        return products_of(tuple(one.times(tables) for one in weights), self.scope)

    def _is_fixed(self, leaf: Leaf) -> bool:
        return leaf.in_groups or (not leaf.apart and self._partition(leaf, self.sets[0])[1])

    def _way(
        self, tables: Sequence[Weighed], *, centred: bool
    ) -> tuple[list[Step], list[list[Product]]]:
        """Formula and products; numbers of averages are added up from their centre where wanted.

        Noise on a sum of numbers far from 0 would be out of proportion to that of the counts.
        """
        leaves = self.asked.leaves
        weights = [own for own, _ in self.weights]
        parts = [
            self._products(own, tables if self._is_fixed(leaf) else ())
            for leaf, own in zip(leaves, weights, strict=True)
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
                () if leaf.apart else tables,
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
