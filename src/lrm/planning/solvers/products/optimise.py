"""The whole search for a product strategy under Laplace noise: groups, fused axes, marginals.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lrm.clock import UNLIMITED, Clock, Step
from lrm.errors import StopSolver
from lrm.planning.design.products.combine import LEAST_GAIN, find_combination
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Group, ProductStrategy
from lrm.planning.solvers import settings
from lrm.planning.solvers.products.fusing import fuse_axes, fuse_long_axes
from lrm.planning.solvers.products.group import GroupSearch
from lrm.planning.solvers.products.grouping import (
    Grouping,
    best_axes,
    group_terms,
    joint_terms,
    without_joint,
)
from lrm.planning.solvers.settings import Effort, GroupEffort
from lrm.queries.maps.linear import Integers
from lrm.queries.maps.products.batch import ProductBatch


def optimise_products(  # noqa: PLR0913 - one family of arguments
    batch: ProductBatch,
    *,
    effort: Effort = "normal",
    seed: int = 0,
    clock: Clock = UNLIMITED,
    statements: Sequence[frozenset[int]] = (),
    classical: bool = False,
) -> ProductStrategy:
    """Search for the strategy of least error for a batch over a product of attributes.

    Values that no term can distinguish are merged; then weighted marginals over one optimised
    basis per attribute are searched for, for all terms together and, where factors of different
    fineness meet on an attribute, for groups of terms. How long it takes is decided by
    counted work. When the clock ends, the best so far is returned. There is always one: noise on
    data. ``statements`` are the terms of each, which may be kept together. ``classical`` keeps to
    identities and one group.

    Examples
    --------
    >>> from lrm.queries.maps.products.batch import cross_tabs
    >>> found = optimise_products(cross_tabs([3, 3, 3, 3], [1]), effort="quick")
    >>> round(found.error, 6)
    120.0
    """
    budget, clock = settings.BUDGETS[effort], clock.reporting(_Best())
    searching = clock.share(0.95)  # the rest is for combining groups
    rng = np.random.default_rng(seed)
    if classical:
        single_search = TermSearch(batch, frozenset(range(batch.terms)), rng, classical=True)
        return ProductStrategy.combine([single_search.run(effort, searching)])
    search = ProductSearch(batch, rng, seed, clock)
    search.quick(searching.part(settings.FIRST_SECONDS), statements)
    quick = search.best
    many = effort == "normal" and len(statements) > settings.MANY_STATEMENTS
    if effort == "quick" or many:
        return quick
    several = len(quick.groups) > 1
    left = budget.grouped_seconds - settings.FIRST_SECONDS if several else np.inf
    search.further(effort, searching.part(left))
    # Rounding to integers may cost as much as a smaller gain, and more for the one than the other.
    return search.best if search.best.error <= 0.999 * quick.error else quick


def solve_groups(
    batch: ProductBatch,
    groups: Sequence[frozenset[int]],
    *,
    seed: int = 0,
    clock: Clock = UNLIMITED,
) -> ProductStrategy:
    """The strategy for given groups of terms, each searched quickly, with their best shares."""
    rng = np.random.default_rng(seed)
    solved = [
        # Counted seconds of the search for one of several given groups.
        TermSearch(batch, terms, rng).run("quick", clock.part(1.0))
        for terms in groups
    ]
    return ProductStrategy.combine(solved)


class _Best:
    """Counts the steps of a search, and states its least error in each."""

    def __init__(self) -> None:
        self._count, self._error = 0, math.inf

    def __call__(self, step: Step) -> Step:
        self._count, self._error = self._count + 1, min(self._error, step.error)
        return replace(step, iteration=self._count, error=self._error)


class TermSearch:
    """The search for weighted marginals of some terms on their own merged values.

    It can go on with more effort, from the best so far.
    """

    def __init__(
        self,
        batch: ProductBatch,
        terms: frozenset[int],
        rng: np.random.Generator,
        *,
        classical: bool = False,
    ) -> None:
        self._numbers, self._rng, self._classical = np.array(sorted(terms)), rng, classical
        self._axes, self._reduced = best_axes(batch.take(self._numbers))
        # Folding opposes or adds what two values of several attributes have in common.
        self._folds = not classical and self._reduced.sizes.count(2) > 1
        self._searches: list[GroupSearch] = []

    def run(self, effort: Effort, clock: Clock) -> Group:
        """Search with some effort, after a quick search."""
        if effort != "quick" and not self._searches:
            self.run("quick", clock)
        return self.run_once(settings.BUDGETS[effort].group, clock)

    def run_once(self, effort: GroupEffort, clock: Clock) -> Group:
        """Search with some effort alone."""
        batch = self._reduced
        if not self._searches and self._folds and _are_folded(batch):
            folded = Quadratic(batch, folded=True)
            self._searches, self._folds = [GroupSearch(folded, self._rng, clock, effort)], False
        first = clock.share(0.5) if self._folds else clock
        if not self._searches:
            self._searches = [GroupSearch(Quadratic(batch), self._rng, first, effort)]
            if self._classical:
                self._searches[0].needy = []
        plain = self._searches[0]
        plain.go_on(effort, first)
        if self._folds:
            if len(self._searches) == 1:
                quadratic = Quadratic(batch, folded=True)
                self._searches.append(GroupSearch(quadratic, self._rng, clock, effort))
            if not plain.large:  # else a cover of their own was never worse
                self._searches[1].start_from(plain)
            self._searches[1].go_on(effort, clock)
        best = min(self._searches, key=lambda search: search.value)
        return Group(self._numbers, self._axes, best.result(), float(np.exp(best.value)))


def _are_folded(batch: ProductBatch) -> bool:
    """Whether folded tables are better than whole ones, and both would take seconds."""
    if max(batch.sizes) > 2 or batch.terms <= 500:
        return False
    orders = np.bincount(batch.term_of, batch.support().sum(axis=1))
    # Hundreds of tables of at most 3 attributes of two values are folded: 16 to 40 % less error
    # than whole tables over 40 to 200 attributes. Of four attributes folded ones have 10 to 20 %
    # more.
    return bool(orders.max() <= 3)


@dataclass(frozen=True)
class _Found:
    """A strategy, and the groups of terms that it was searched for."""

    parts: tuple[frozenset[int], ...]
    strategy: ProductStrategy


class ProductSearch:
    """The strategies that are found for a batch, for all terms together and for groups of them.

    The clock ends all work; a search may have less time.
    """

    def __init__(
        self, batch: ProductBatch, rng: np.random.Generator, seed: int, clock: Clock
    ) -> None:
        self.batch, self.rng, self._seed, self._whole = batch, rng, seed, clock
        self.effort: Effort = "quick"
        self.clock = clock
        self._everything = frozenset(range(batch.terms))
        self._searches: dict[frozenset[int], TermSearch] = {}
        self._groups: dict[tuple[frozenset[int], Effort], Group] = {}
        self._found: list[_Found] = []

    @property
    def best(self) -> ProductStrategy:
        """The best strategy; a combination of two groups only where it is clearly better."""
        strategies = [candidate.strategy for candidate in self._found]
        plain = [strategy for strategy in strategies if not strategy.combined]
        best = min(plain, key=lambda strategy: strategy.error)
        winner = min(strategies, key=lambda strategy: strategy.error)
        return winner if winner.error <= (1.0 - LEAST_GAIN) * best.error else best

    def quick(self, clock: Clock, statements: Sequence[frozenset[int]] = ()) -> None:
        """Search for one group, a split in two, and groups of terms that share little."""
        self.clock = clock
        hopeless, joint = False, joint_terms(self.batch)
        with contextlib.suppress(StopSolver):
            # Random numbers of its own: that for one group is then that of classical marginals.
            rng = np.random.default_rng([self._seed, 1])
            # Counted seconds of looks for each term; below, of the search for each group.
            looks = self._at_least(0.03 * self.batch.terms)
            grouping = group_terms(self.batch, looks, statements=statements)
            if grouping is not None:
                hopeless = bool(joint)
                if not joint:
                    full_root = grouping.root(self._everything)
                    hopeless = full_root**3 > 2.0 * grouping.whole_root**3
                self.clock = self._at_least(0.06 * len(grouping.groups))
                self._add(self._solve_each(grouping.groups, rng))
                self.clock = clock
                self._measure_apart(joint, statements)
        self.clock = clock
        if not hopeless:
            self._add([self._solve(self._everything)])
        with contextlib.suppress(StopSolver):
            split = () if joint else self._best_split()
            if split:
                self._add([self._solve(part) for part in split])
        for groups in self._near():
            self._fuse(groups)
        if hopeless and not (joint and self._found):
            everything = TermSearch(self.batch, self._everything, self.rng)
            brief = GroupEffort(0, 1, 6, 0, (10,), (3,), 0, 40)
            self._add([everything.run_once(brief, clock)])

    def _at_least(self, seconds: float) -> Clock:
        """A clock with so much work left, that of the first search if it has as much."""
        clock = self.clock
        return clock if clock.remaining_work() >= seconds else self._whole.part(seconds)

    def _measure_apart(
        self, joint: Sequence[frozenset[int]], statements: Sequence[frozenset[int]]
    ) -> None:
        """Add a strategy for joint terms by themselves, and all others as if alone, if any."""
        rest, others = without_joint(self.batch, joint, statements)
        if not joint or not len(rest):
            return
        search = ProductSearch(self.batch.take(rest), self.rng, self._seed, self._whole)
        search.quick(self.clock, others)
        groups = [replace(group, terms=rest[group.terms]) for group in search.best.groups]
        self._add([*groups, *(self._solve(terms) for terms in joint)])

    def further(self, effort: Effort, clock: Clock) -> None:
        """Go on with more effort where the least error is near."""
        self.effort, self.clock = effort, clock
        with contextlib.suppress(StopSolver):
            for groups in self._near():
                terms = [frozenset(group.terms.tolist()) for group in groups]
                # More combinations than before, and first: sets may take all the time.
                self._fuse(
                    [
                        self._groups.get((part, "quick"), group)
                        for part, group in zip(terms, groups, strict=True)
                    ]
                )
                finished = self._solve_each(terms)
                self._add(finished)
                self._fuse(finished)
        self._lengthen()

    def _add(self, groups: Sequence[Group]) -> None:
        """Keep the strategy of some groups, and where there are two, their combination."""
        parts = tuple(frozenset(group.terms.tolist()) for group in groups)
        strategy = ProductStrategy.combine(groups)
        if any(strategy.error == candidate.strategy.error for candidate in self._found):
            return  # the same groups
        self._found.append(_Found(parts, strategy))
        # Groups that are worse separately may be better together.
        with contextlib.suppress(StopSolver):
            if (
                strategy.is_combinable
                and (combination := find_combination(self.batch, strategy, self._whole)) is not None
            ):
                self._found.append(_Found(parts, combination.best()))

    def _near(self) -> list[tuple[Group, ...]]:
        """The groups of strategies that are near the best, the best first, each parts once."""
        least = min(candidate.strategy.error for candidate in self._found)
        near: dict[tuple[frozenset[int], ...], tuple[Group, ...]] = {}
        for candidate in sorted(self._found, key=lambda candidate: candidate.strategy.error):
            if candidate.strategy.error <= 1.05 * least:
                near.setdefault(candidate.parts, candidate.strategy.groups)
        return list(near.values())

    def _solve(self, terms: frozenset[int], rng: np.random.Generator | None = None) -> Group:
        """The best marginals for some terms."""
        if (terms, self.effort) not in self._groups:
            if terms not in self._searches:
                self._searches[terms] = TermSearch(self.batch, terms, rng or self.rng)
            solved = self._searches[terms].run(self.effort, self.clock)
            self._groups[terms, self.effort] = solved
        return self._groups[terms, self.effort]

    def _solve_each(
        self, term_sets: Sequence[frozenset[int]], rng: np.random.Generator | None = None
    ) -> list[Group]:
        """The best marginals for each of some groups, with a share of the time for each."""
        clock, groups = self.clock, []
        try:
            for place, terms in enumerate(term_sets):
                self.clock = clock.share(1 / (len(term_sets) - place))
                groups.append(self._solve(terms, rng))
        finally:
            self.clock = clock
        return groups

    def _fuse(self, groups: Sequence[Group]) -> None:
        """Add the groups with fused axes, where these are better."""
        self._add(
            [fuse_axes(self.batch, group, self.effort, self.rng, self.clock) for group in groups]
        )

    def _lengthen(self) -> None:
        """Add the best strategy so far with axes of thousands of combinations."""
        self._add(
            [
                fuse_long_axes(self.batch, group, self.effort, self.rng, self.clock)
                for group in self.best.groups
            ]
        )

    def _best_split(self) -> Sequence[frozenset[int]]:
        """The best split in two by the fineness of one attribute's factors, by rough looks.

        Only where some attribute is asked for at three degrees of fineness or more: tables and
        their totals alone did not gain from groups.
        """
        columns = list(_fineness(self.batch))
        if not columns:
            return ()
        rough = Grouping(self.batch, self.clock)
        best: Sequence[frozenset[int]] = ()
        least = rough.root(self._everything)
        for column in columns:
            for level in np.unique(column)[:-1]:
                parts = [
                    frozenset(np.flatnonzero(fine).tolist())
                    for fine in (column > level, column <= level)
                ]
                error = sum(map(rough.root, parts))
                if error < least:
                    best, least = parts, error
        return best


def _fineness(batch: ProductBatch) -> Iterator[Integers]:
    """Yield, by attribute, how many distinct columns each term's factor has, where that varies.

    One attribute at a time: all terms of 500 attributes would take half a gigabyte.
    """
    for i, choices in enumerate(batch.factors):
        distinct = np.array([int(f.column_labels.max()) + 1 for f in choices])
        if len(np.unique(distinct)) <= 2:
            continue
        column = np.zeros(batch.terms, dtype=np.int64)
        np.maximum.at(column, batch.term_of, distinct[batch.choice[:, i]])
        if len(np.unique(column)) > 2:
            yield column
