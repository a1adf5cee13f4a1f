"""The whole search for a product strategy under Laplace noise: groups, fused axes, marginals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lrm.errors import StopSolver
from lrm.exact.products.combine import LEAST_GAIN, find_combination
from lrm.exact.products.quadratic import Quadratic
from lrm.exact.products.strategy import Group, ProductStrategy, axes_of
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.values import merge_values
from lrm.solvers.products.fusing import fuse_axes, fuse_long_axes
from lrm.solvers.products.group import EFFORTS, Effort, GroupEffort, GroupSearch
from lrm.solvers.products.grouping import Grouping, differing_terms, group_terms
from lrm.solvers.products.watch import Watch, forever
from lrm.solvers.progress import OnStep, ignore_step

__all__ = ["optimise_products"]

Integers = NDArray[np.int64]

#: A quick look at a group, to compare splits.
SCOUT = GroupEffort(0, 1, 6, 0, (10,), (3,), 0, 40)
#: One group for all terms so far above several is searched for quickly, not thoroughly.
HOPELESS = 2.0
#: Groups so far above the best known are not searched for thoroughly.
NEAR = 1.1
#: More terms that ask different things are not searched for one by one.
MOST_APART = 12
#: Share of the time for the search; the rest is for combining what it found.
SEARCH_SHARE = 0.95
#: Seconds that may go into which of them share optimised bases, by effort; 0: none do.
BASES_SECONDS: dict[Effort, float] = {
    "quick": 0.0,
    "brief": 0.0,
    "normal": 15.0,
    "thorough": 120.0,
}


def optimise_products(  # noqa: PLR0913 - each is a choice of the caller
    batch: ProductBatch,
    *,
    effort: Effort = "normal",
    seed: int = 0,
    on_step: OnStep = ignore_step,
    remaining: Callable[[], float] = forever,
    classical: bool = False,
) -> ProductStrategy:
    """Search for the strategy of least error for a batch over a product of attributes.

    Values that no term can tell apart are merged; then weighted marginals over one optimised
    basis per attribute are searched for, for all terms together and, where factors of different
    fineness meet on an attribute, for groups of terms. ``remaining`` returns the seconds that
    are left; when it reaches 0, or when ``on_step`` raises ``StopSolver``, the best so far is
    returned. There is always one: noise on data. ``classical`` keeps to identities and one group.

    Examples
    --------
    >>> from lrm.maps.products.batch import cross_tabs
    >>> found = optimise_products(cross_tabs([3, 3, 3, 3], [1]), effort="quick")
    >>> round(found.error, 6)
    120.0
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, not {effort!r}")
    clock = Watch(on_step, remaining)
    watch = clock.part(SEARCH_SHARE * clock.remaining()) if remaining() < np.inf else clock
    rng = np.random.default_rng(seed)
    everything = frozenset(range(batch.terms))
    if classical:
        best = _solve(batch, everything, EFFORTS[effort], rng, watch, classical=True)
        return replace(ProductStrategy.combine([best]), interrupted=watch.stopped)
    groups = _Groups(batch, effort, rng, watch)
    # Random numbers of its own: the search for one group is then that of classical marginals.
    grouped = _grouped(groups, np.random.default_rng([seed, 1]))
    if grouped is not None and grouped.hopeless:
        found = [ProductStrategy.combine(grouped.groups)]
    else:
        whole = groups.solve(everything, EFFORTS[effort])
        found = [ProductStrategy.combine([whole])]
    with contextlib.suppress(StopSolver):
        split = _best_split(batch, watch)
        if split:
            groups.finish(found, [groups.solve(part, EFFORTS["quick"]) for part in split])
        elif grouped is None or not grouped.hopeless:
            found.append(ProductStrategy.combine([groups.fused(whole)]))
    if grouped is not None:
        groups.finish(found, grouped.groups)
        if grouped.hopeless:
            found.append(ProductStrategy.combine([groups.solve(everything, SCOUT)]))
    else:
        with contextlib.suppress(StopSolver):
            groups.finish(found, _by_bases(groups, np.random.default_rng([seed, 2])))
    groups.lengthen(found)
    winner = _combined(batch, found, clock)
    return replace(winner, interrupted=watch.stopped)


def _combined(
    batch: ProductBatch, found: Sequence[ProductStrategy], watch: Watch
) -> ProductStrategy:
    """The best strategy, or the best combination of two groups where that is clearly better.

    Groups that are worse apart may be better together, so all of them are combined.
    """
    best = min(found, key=lambda strategy: strategy.error)
    combined = []
    with contextlib.suppress(StopSolver):
        for strategy in found:
            combination = find_combination(batch, strategy, watch)
            if combination is not None:
                combined.append(combination.best())
    winner = min([best, *combined], key=lambda strategy: strategy.error)
    return winner if winner.error <= (1.0 - LEAST_GAIN) * best.error else best


class _Groups:
    """Searches for groups of terms, each of them once per effort."""

    def __init__(
        self, batch: ProductBatch, effort: Effort, rng: np.random.Generator, watch: Watch
    ) -> None:
        self.batch, self.effort, self.rng, self.watch = batch, effort, rng, watch
        self._known: dict[tuple[frozenset[int], GroupEffort], Group] = {}

    def solve(
        self, terms: frozenset[int], effort: GroupEffort, rng: np.random.Generator | None = None
    ) -> Group:
        """The best marginals for some terms."""
        if (terms, effort) not in self._known:
            found = _solve(self.batch, terms, effort, rng or self.rng, self.watch)
            self._known[terms, effort] = found
        return self._known[terms, effort]

    def fused(self, group: Group) -> Group:
        """The group with fused axes, where these are better."""
        return fuse_axes(self.batch, group, self.effort, self.rng, self.watch)

    def finish(self, found: list[ProductStrategy], groups: Sequence[Group]) -> None:
        """Add the strategy of some groups, and where it is near the best, what effort finds."""
        if not groups:
            return
        least = min(strategy.error for strategy in found)
        found.append(ProductStrategy.combine(groups))
        if found[-1].error > NEAR * least:
            return
        with contextlib.suppress(StopSolver):
            terms = [frozenset(group.terms.tolist()) for group in groups]
            finished = [self.solve(own, EFFORTS[self.effort]) for own in terms]
            found.append(ProductStrategy.combine(finished))
            found.append(ProductStrategy.combine([self.fused(group) for group in finished]))

    def lengthen(self, found: list[ProductStrategy]) -> None:
        """Add the best strategy so far with axes of thousands of combinations."""
        best = min(found, key=lambda strategy: strategy.error)
        longer = [
            fuse_long_axes(self.batch, group, self.effort, self.rng, self.watch)
            for group in best.groups
        ]
        found.append(ProductStrategy.combine(longer))


@dataclass(frozen=True)
class _Grouped:
    """Groups after a quick search, and whether one group for all is far above them."""

    groups: list[Group]
    hopeless: bool


def _grouped(groups: _Groups, rng: np.random.Generator) -> _Grouped | None:
    """Groups of terms that share little; None where there are none, or no time."""
    with contextlib.suppress(StopSolver):
        grouping = group_terms(groups.batch, groups.watch)
        if grouping is not None:
            whole = grouping.root(frozenset(range(groups.batch.terms)))
            found = [groups.solve(terms, EFFORTS["quick"], rng) for terms in grouping.groups]
            return _Grouped(found, whole**3 > HOPELESS * grouping.whole_root**3)
    return None


def _by_bases(groups: _Groups, rng: np.random.Generator) -> list[Group]:
    """Groups of terms that would share no good bases, after a quick search; [] without any.

    Over identities one group may seem best although different factors of an attribute want
    different bases.
    """
    items = differing_terms(groups.batch)
    if not 1 < len(items) <= MOST_APART:
        return []

    def root_of(reduced: ProductBatch) -> float:
        search = GroupSearch(Quadratic(reduced), rng, groups.watch, SCOUT)
        search.run()
        return float(np.exp(search.value / 3))

    time = groups.watch.part(BASES_SECONDS[groups.effort])
    grouping = Grouping(groups.batch, time, root_of)
    with contextlib.suppress(StopSolver):
        items.sort(key=grouping.root)
        while items:
            grouping.insert(items[-1])
            items.pop()
    apart = grouping.groups + items  # where there was no time, terms stay apart
    return [groups.solve(terms, SCOUT, rng) for terms in apart]


def _solve(  # noqa: PLR0913 - one family of arguments
    batch: ProductBatch,
    terms: frozenset[int],
    effort: GroupEffort,
    rng: np.random.Generator,
    watch: Watch,
    *,
    classical: bool = False,
) -> Group:
    """Weighted marginals for some terms on their own merged values."""
    numbers = np.array(sorted(terms))
    reduced = merge_values(batch.take(numbers))
    # Folding opposes or adds what two values of several attributes have in common.
    folds = not classical and reduced.batch.sizes.count(2) > 1
    first = watch.part(watch.remaining() / 2) if folds else watch
    search = GroupSearch(Quadratic(reduced.batch), rng, first, effort)
    if classical:
        search.needy = []
    search.run()
    if folds:
        folded = GroupSearch(Quadratic(reduced.batch, folded=True), rng, watch, effort)
        folded.start_from(search)
        folded.run()
        search = min(search, folded, key=lambda one: one.value)
    axes = axes_of(reduced.labels)
    return Group(numbers, axes, search.result(), float(np.exp(search.value)))


def _fineness(batch: ProductBatch) -> Integers:
    """Number of distinct columns of each term's factor, terms x attributes."""
    counts = np.zeros((batch.terms, len(batch.factors)), dtype=np.int64)
    for i, choices in enumerate(batch.factors):
        distinct = np.array([int(f.labels.max()) + 1 for f in choices])
        np.maximum.at(counts[:, i], batch.term_of, distinct[batch.choice[:, i]])
    return counts


def _best_split(batch: ProductBatch, watch: Watch) -> Sequence[frozenset[int]]:
    """The best split in two by the fineness of one attribute's factors, by rough looks.

    Only where some attribute is asked for at three degrees of fineness or more: tables and their
    totals alone did not gain from groups.
    """
    counts, rough = _fineness(batch), Grouping(batch, watch)
    best: Sequence[frozenset[int]] = ()
    least = rough.root(frozenset(range(batch.terms)))
    for column in counts.T:
        levels = np.unique(column)
        for level in levels[:-1] if len(levels) > 2 else ():
            parts = [
                frozenset(np.flatnonzero(fine).tolist())
                for fine in (column > level, column <= level)
            ]
            error = sum(map(rough.root, parts))
            if error < least:
                best, least = parts, error
    return best
