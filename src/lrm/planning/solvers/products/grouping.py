"""Which terms share a group: greedy insertion by the error of strategies over identities.

Groups with errors e_g at the whole budget have the error ``(Σ e_g^⅓)³`` together under Laplace
noise, and ``(Σ e_g^½)²`` under Gaussian noise. So a term belongs where it adds least to the sum of
these roots: to some group, or to one of its own.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lrm.clock import Clock, Step
from lrm.errors import StopSolver
from lrm.planning.design.products.axes import (
    Axis,
    Classes,
    KnownAxes,
    axis_choices,
    merged_axes,
    mixed_attributes,
)
from lrm.planning.design.products.information import FixedBases
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.solvers import settings
from lrm.planning.solvers.products.search import SetSearch
from lrm.queries.maps.linear import Integers
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.values import merge_values

RootOf = Callable[[ProductBatch], float]


def marginals_root(batch: ProductBatch) -> float:
    """The cube root of the error of a few families of marginals, the best of them."""
    rng = np.random.default_rng(0)
    search = SetSearch(FixedBases.at(Quadratic(batch)), rng)
    starts = [] if search.huge else [search.whole]
    # More maximal sets of a group are not weighed.
    if 1 < len(search.maximal) <= 200:
        starts.append(search.maximal)
    for start in starts or search.starts()[:1]:
        search.descend(start, np.ones(len(start)))
    assert search.best is not None  # noqa: S101 - starts are never empty
    return float(np.cbrt(search.best.error))


def best_axes(
    batch: ProductBatch, root_of: RootOf = marginals_root
) -> tuple[tuple[Axis, ...], ProductBatch]:
    """Axes on which rough looks have less error, and the terms of a batch over these."""
    choices = list(axis_choices(batch))
    if len(choices) == 1:
        return choices[0]
    return min(choices, key=lambda choice: root_of(choice[1]))


class Grouping:
    """Groups of terms, and the root of the error of each, as rough looks find it.

    ``root_of`` takes the terms of a group over merged values.
    """

    def __init__(
        self,
        batch: ProductBatch,
        clock: Clock,
        root_of: RootOf = marginals_root,
        *,
        corners: bool = True,
    ) -> None:
        self._batch, self._clock, self._root_of = batch, clock, root_of
        self._known: dict[frozenset[int], float] = {}
        self._uses = _uses(batch)
        kinds: tuple[Classes, ...] = ("fewer",) if batch.simple else ("fewer", "few")
        known = KnownAxes(corners)
        self._axes = tuple(replace(known, classes=classes) for classes in kinds)
        self.groups: list[frozenset[int]] = []
        self._items: list[frozenset[int]] = []

    def root(self, terms: frozenset[int]) -> float:
        """The root of the error of some terms alone; 0 without any."""
        if not terms:
            return 0.0
        if terms not in self._known:
            self._clock.spend(look_work(len(terms), len(self._batch.sizes)))
            self._clock.tick(Step("products", 0))
            choices = axis_choices(self._batch.take(sorted(terms)), self._axes)
            self._known[terms] = min(self._root_of(reduced) for _, reduced in choices)
        return self._known[terms]

    def without_groups(self) -> Grouping:
        """One without groups that shares what is known about sets of terms."""
        other = copy(self)
        other.groups = []
        return other

    @property
    def whole_root(self) -> float:
        """The root of the error of all groups with their best weights."""
        return sum(self.root(group) for group in self.groups)

    def insert(self, item: frozenset[int]) -> None:
        """Put an item where it adds least, among the groups that ask for the most alike."""
        best, least = None, self.root(item)
        for place in self._likely(item):
            added = self.root(self.groups[place] | item) - self.root(self.groups[place])
            if added < least:
                best, least = place, added
        if best is None:
            self.groups.append(item)
        else:
            self.groups[best] |= item

    def _likely(self, item: frozenset[int]) -> list[int]:
        """The groups whose attributes are most those of the item."""
        most = 8
        if len(self.groups) <= most:
            return list(range(len(self.groups)))
        asked = self._attributes(item)
        uses = np.array([self._attributes(group) for group in self.groups])
        alike = (uses & asked).sum(axis=1) / np.maximum((uses | asked).sum(axis=1), 1)
        order = np.argsort(-alike, kind="stable")[:most]
        return [int(place) for place in order]

    def _attributes(self, terms: frozenset[int]) -> NDArray[np.bool_]:
        return np.asarray(self._uses[sorted(terms)].any(axis=0))

    def insert_all(self, items: Iterable[frozenset[int]]) -> None:
        """Put items where they add least, those of large errors first."""
        self._items = sorted(items, key=self.root, reverse=True)
        for item in self._items:
            self.insert(item)

    def move_all(self, rounds: int) -> None:
        """Take items out again, one by one, and put them where they add least, in rounds."""
        for _ in range(rounds):
            before, groups = self.whole_root, list(self.groups)
            try:
                for item in self._items:
                    self.groups = [left for group in self.groups if (left := group - item)]
                    self.insert(item)
            except StopSolver:
                self.groups = groups
                return
            if self.whole_root > 0.999 * before:
                return


def group_terms(
    batch: ProductBatch,
    clock: Clock,
    root_of: RootOf = marginals_root,
    statements: Sequence[frozenset[int]] = (),
    *,
    corners: bool = True,
) -> Grouping | None:
    """Groups of terms that share little, or None where one group is as good.

    Looks are at corners, or at all merged values: identities over these are other guesses.

    The clock ticks before each look, and may raise. Cost: a look of some milliseconds for
    each pair of an item and a group. An item is the terms that ask the same of all attributes.
    Where these are many, it is the terms that ask for the same attributes, or those of a statement:
    whichever leads to less.
    """
    items = differing_terms(batch)
    coarse = len(items) > settings.MANY_ITEMS
    kinds = [_by_attributes(batch, items), list(statements)] if coarse else [items]
    if joint := joint_terms(batch):
        rest = frozenset(range(batch.terms)).difference(*joint)
        kinds.append([rest, *joint] if rest else joint)
    best, grouping = None, Grouping(batch, clock, root_of, corners=corners)
    for some in kinds:
        if len(some) < 2:
            continue
        grouping = grouping.without_groups()
        try:
            grouping.insert_all(some)
        except StopSolver:
            if best is None:
                raise
            break
        if best is None or grouping.whole_root < best.whole_root:
            best = grouping
    if best is not None and coarse:
        # Rounds in which attributes or statements are moved between groups: 16 % less error on the
        # shop report, 2 to 3 % less on two others.
        best.move_all(2)
    return best if best is not None and len(best.groups) > 1 else None


def joint_terms(batch: ProductBatch) -> list[frozenset[int]]:
    """Terms with conditions on several long attributes together, such as ``x > y``.

    Those about the same attributes are together. Alone, they distinguish few classes of very many
    combinations of values; with others, each combination must be measured.
    """
    if batch.simple:
        return []
    # Terms that count no cell would be a group without measurements.
    idle = frozenset(batch.idle_terms().tolist())
    mixed = mixed_attributes(batch)
    mixed[list(idle)] = False
    sizes = np.array(merge_values(batch).batch.sizes, dtype=np.float64)
    joint = []
    for attributes in np.unique(mixed[mixed.any(axis=1)], axis=0):
        if float(np.prod(sizes[attributes])) > settings.OWN_CELLS:
            terms = np.flatnonzero((mixed == attributes).all(axis=1))
            axes, _ = merged_axes(batch.take(terms))
            if any(axis.classes is not None for axis in axes):
                joint.append(frozenset(terms.tolist()))
    if joint and idle.issuperset(frozenset(range(batch.terms)).difference(*joint)):
        joint[0] |= idle
    return joint


def without_joint(
    batch: ProductBatch, joint: Sequence[frozenset[int]], statements: Sequence[frozenset[int]]
) -> tuple[Integers, list[frozenset[int]]]:
    """The terms that are not joint, and the statements by the numbers of these terms."""
    rest = np.array(sorted(frozenset(range(batch.terms)).difference(*joint)), dtype=np.int64)
    number = {term: place for place, term in enumerate(rest.tolist())}
    some = (frozenset(number[t] for t in terms if t in number) for terms in statements)
    return rest, [terms for terms in some if terms]


def differing_terms(batch: ProductBatch) -> list[frozenset[int]]:
    """The terms that choose the same factors, together; [] where groups would gain nothing."""
    same: dict[tuple[bytes, ...], list[int]] = {}
    if not _differ(batch):
        return []
    for term in range(batch.terms):
        rows: Iterable[bytes] = (batch.choice[s].tobytes() for s in batch.summand_numbers(term))
        same.setdefault(tuple(sorted(rows)), []).append(term)
    # Terms that count no cell would be a group without measurements.
    empty = frozenset(batch.idle_terms().tolist())
    asking = [frozenset(terms) for terms in same.values() if not empty.issuperset(terms)]
    return [asking[0] | empty, *asking[1:]] if asking else []


def _by_attributes(batch: ProductBatch, items: list[frozenset[int]]) -> list[frozenset[int]]:
    """Items that ask for the same attributes, together."""
    uses = _uses(batch)
    same: dict[bytes, frozenset[int]] = {}
    for item in items:
        key = uses[list(item)].any(axis=0).tobytes()
        same[key] = same.get(key, frozenset()) | item
    return list(same.values())


def _uses(batch: ProductBatch) -> NDArray[np.bool_]:
    """The attributes that each term asks for (terms × attributes)."""
    uses = np.zeros((batch.terms, len(batch.sizes)), dtype=bool)
    np.logical_or.at(uses, batch.term_of, batch.support())
    return uses


def _differ(batch: ProductBatch) -> bool:
    """Whether some attribute is asked for in two ways that are no totals.

    Tables and their totals alone do not gain from groups: their sets are chosen together.
    """
    return any(
        len([f for f in batch.present(i).tolist() if choices[f].total_factor is None]) > 1
        for i, choices in enumerate(batch.factors)
    )


def look_work(terms: int, attributes: int) -> float:
    """Seconds of a rough look at a group of terms, its merged values included."""
    return 1.3e-3 + 4e-6 * terms * attributes
