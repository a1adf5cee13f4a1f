"""One answer of a statement → linear queries, or a formula of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lrm.batches.compiler.aggregates import Summand, Weighed, Weights
from lrm.batches.compiler.derivations import Asked, Centre, Leaf
from lrm.batches.compiler.grouping import GroupingSet
from lrm.batches.compiler.inputs import DerivedAnswer, Part, QuantileAnswer, reach
from lrm.batches.compiler.products import products_of
from lrm.batches.compiler.refusals import only, refuse

if TYPE_CHECKING:
    from lrm.batches.compiler.predicates import Scope
    from lrm.batches.terms import Names, Running
    from lrm.maps.products.combine import Product
    from lrm.workload import Step

__all__ = ["Answer", "Compiled"]

Fixed = tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """One aggregate of a statement, over all groups of its grouping sets."""

    names: Names
    sets: list[GroupingSet]
    products: list[Product]
    running: Running | None = None


@dataclass(frozen=True, eq=False)
class Compiled:
    """An answer that was taken apart, with the weights of its leaves."""

    names: Names
    sets: list[GroupingSet]
    asked: Asked
    weights: list[Weights]
    scope: Scope

    def answers(
        self, fixed: Fixed, tables: Sequence[Weighed]
    ) -> list[Answer | DerivedAnswer | QuantileAnswer]:
        """The answers in one group of the expressions that the statement is grouped by."""
        names = replace(self.names, fixed=(*self.names.fixed, *fixed))
        if self.asked.is_linear:
            products = self._products(self.weights[0], tables)
            return [Answer(names, self.sets, products)]
        ways = [self._way(tables, centred=False)]
        if any(leaf.counted is not None for leaf in self.asked.leaves):
            ways.append(self._way(tables, centred=True))
        return [self._derived(axes, names, ways) for axes in self.sets]

    def _derived(
        self,
        axes: GroupingSet,
        names: Names,
        ways: Sequence[tuple[list[Step], list[list[Product]]]],
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
        return DerivedAnswer(label, axes, made)

    def _part(self, leaf: Leaf, products: list[Product], axes: GroupingSet) -> Part:
        if leaf.window is None:
            return Part(axes, products)
        if len(self.sets) > 1:
            raise refuse("OVER beside several grouping sets", "write one statement per set")
        within = [self.scope.axis(node) for node in leaf.window.args.get("partition_by") or []]
        for axis in within:
            if axis not in axes:
                name = self.scope.domain.names[axis]
                raise refuse(f"PARTITION BY {name}", "it is not grouped by", leaf.window)
        only(leaf.window, "this", "partition_by", "over")
        return Part(tuple(sorted(within)), products, fixed=False)

    def _products(self, weights: Weights, tables: Sequence[Weighed]) -> list[Product]:
        return products_of(tuple(one.times(tables) for one in weights), self.scope)

    def _way(
        self, tables: Sequence[Weighed], *, centred: bool
    ) -> tuple[list[Step], list[list[Product]]]:
        """Formula and products; numbers of averages are added up from their centre where wanted.

        Noise on a sum of numbers far from 0 would be out of proportion to that of the counts.
        """
        leaves = self.asked.leaves
        parts = [
            self._products(own, tables if leaf.window is None else ())
            for leaf, own in zip(leaves, self.weights, strict=True)
        ]
        centres: dict[int, float] = {}
        for place, leaf in enumerate(leaves):
            if centred and leaf.counted is not None:
                first = next(k for k, one in enumerate(leaves) if one.counted == leaf.counted)
                low, high = reach(parts[first])
                centres[place] = (low + high) / 2 if max(-low, high) > 1 else 0.0
        moved = [
            self._products(_moved(leaf, place, self.weights, centres[place], first=leaves), tables)
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
        return (*weights[place], *_times(counts, -centre))
    plain = next(k for k, one in enumerate(first) if one.counted == leaf.counted)
    return (
        *weights[place],
        *_times(weights[plain], -2 * centre),
        *_times(counts, centre**2),
    )


def _times(weights: Weights, factor: float) -> Weights:
    return tuple(Summand(one.coefficient * factor, one.tables) for one in weights)


def _without_zero(steps: list[Step]) -> list[Step]:
    """The same formula without adding 0."""
    found: list[Step] = []
    for step in steps:
        if step == "+" and found and found[-1] == 0.0 and isinstance(found[-1], float):
            found.pop()
        else:
            found.append(step)
    return found
