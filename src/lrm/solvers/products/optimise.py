"""The whole search for a product strategy under Laplace noise: groups, fused axes, marginals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lrm.errors import StopSolver
from lrm.exact.products.basis import Basis, identity_basis
from lrm.exact.products.combine import combine_groups
from lrm.exact.products.marginals import Marginals, Point
from lrm.exact.products.quadratic import Quadratic
from lrm.exact.products.strategy import Axis, Group, ProductStrategy, axes_of, on_axes
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.values import merge_values
from lrm.solvers.augmented import optimise_augmented
from lrm.solvers.products.group import EFFORTS, Effort, GroupEffort, GroupSearch
from lrm.solvers.products.grouping import Grouping, differing_terms, group_terms
from lrm.solvers.products.search import SetSearch
from lrm.solvers.products.watch import Watch, forever
from lrm.solvers.progress import OnStep, ignore_step
from lrm.solvers.starts import random_rows

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
#: Seconds that may go into which of them share optimised bases, by effort; 0: none do.
BASES_SECONDS: dict[Effort, float] = {"quick": 0.0, "normal": 15.0, "thorough": 120.0}
#: Most values of a fused axis, by effort.
FUSED: dict[Effort, int] = {"quick": 128, "normal": 640, "thorough": 1200}
#: Rows of a fused basis start as n/share random ones.
FUSED_SHARES: dict[Effort, tuple[int, ...]] = {
    "quick": (16,),
    "normal": (16, 12),
    "thorough": (16, 12, 24, 8, 16, 12),
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
    watch = Watch(on_step, remaining)
    rng = np.random.default_rng(seed)
    everything = np.arange(batch.terms)
    if classical:
        best = _solve(batch, everything, EFFORTS[effort], rng, watch, classical=True)
        return replace(ProductStrategy.combine([best]), interrupted=watch.stopped)
    # Random numbers of its own: the search for one group is then that of classical marginals.
    grouped = _grouped(batch, np.random.default_rng([seed, 1]), watch)
    hopeless = grouped is not None and grouped.hopeless
    whole = _solve(batch, everything, SCOUT if hopeless else EFFORTS[effort], rng, watch)
    found = [ProductStrategy.combine([whole])]
    with contextlib.suppress(StopSolver):
        split = _best_split(batch, rng, watch)
        if split is not None:
            _finish(found, batch, split, effort, rng, watch)
        elif merge_values(batch).cells <= FUSED[effort]:
            found.append(ProductStrategy.combine([_fused(batch, whole, effort, rng, watch)]))
    if grouped is not None:
        _finish(found, batch, grouped.groups, effort, rng, watch)
    else:
        with contextlib.suppress(StopSolver):
            apart = _by_bases(batch, effort, np.random.default_rng([seed, 2]), watch)
            _finish(found, batch, apart, effort, rng, watch)
    # Groups that are worse apart may be better together, so all of them are combined.
    for strategy in list(found):
        combination = combine_groups(batch, strategy)
        if combination is not None:
            found.append(combination.best())
    winner = min(found, key=lambda strategy: strategy.error)
    return replace(winner, interrupted=watch.stopped)


@dataclass(frozen=True)
class _Grouped:
    """Groups after a quick search, and whether one group for all is far above them."""

    groups: list[Group]
    hopeless: bool


def _grouped(batch: ProductBatch, rng: np.random.Generator, watch: Watch) -> _Grouped | None:
    """Groups of terms that share little; None where there are none, or no time."""
    with contextlib.suppress(StopSolver):
        grouping = group_terms(batch, watch)
        if grouping is not None:
            whole = grouping.root(frozenset(range(batch.terms)))
            groups = [
                _solve(batch, np.array(sorted(terms)), EFFORTS["quick"], rng, watch)
                for terms in grouping.groups
            ]
            return _Grouped(groups, whole**3 > HOPELESS * grouping.whole_root**3)
    return None


def _by_bases(
    batch: ProductBatch, effort: Effort, rng: np.random.Generator, watch: Watch
) -> list[Group]:
    """Groups of terms that would share no good bases, after a quick search; [] without any.

    Over identities one group may seem best although different factors of an attribute want
    different bases.
    """
    items = differing_terms(batch)
    if not 1 < len(items) <= MOST_APART:
        return []

    def root_of(reduced: ProductBatch) -> float:
        search = GroupSearch(Quadratic(reduced), rng, watch, SCOUT)
        search.run()
        return float(np.exp(search.value / 3))

    grouping = Grouping(batch, watch.part(BASES_SECONDS[effort]), root_of)
    with contextlib.suppress(StopSolver):
        items.sort(key=grouping.root)
        while items:
            grouping.insert(items[-1])
            items.pop()
    groups = grouping.groups + items  # where there was no time, terms stay apart
    return [_solve(batch, np.array(sorted(terms)), SCOUT, rng, watch) for terms in groups]


def _finish(  # noqa: PLR0913, PLR0917 - one family of arguments
    found: list[ProductStrategy],
    batch: ProductBatch,
    groups: list[Group],
    effort: Effort,
    rng: np.random.Generator,
    watch: Watch,
) -> None:
    """Add the strategy of some groups, and where it is near the best, what more effort finds."""
    if not groups:
        return
    least = min(strategy.error for strategy in found)
    found.append(ProductStrategy.combine(groups))
    if found[-1].error > NEAR * least:
        return
    with contextlib.suppress(StopSolver):
        finished = [_solve(batch, group.terms, EFFORTS[effort], rng, watch) for group in groups]
        found.append(ProductStrategy.combine(finished))
        fused = [_fused(batch, group, effort, rng, watch) for group in finished]
        found.append(ProductStrategy.combine(fused))


def _solve(  # noqa: PLR0913 - one family of arguments
    batch: ProductBatch,
    terms: Integers,
    effort: GroupEffort,
    rng: np.random.Generator,
    watch: Watch,
    *,
    classical: bool = False,
) -> Group:
    """Weighted marginals for some terms on their own merged values."""
    reduced = merge_values(batch.take(terms))
    search = GroupSearch(Quadratic(reduced.batch), rng, watch, effort)
    if classical:
        search.needy = []
    search.run()
    # Folding opposes or adds what two values of several attributes have in common.
    if not classical and reduced.batch.sizes.count(2) > 1:
        folded = GroupSearch(Quadratic(reduced.batch, folded=True), rng, watch, effort)
        folded.start_from(search)
        folded.run()
        search = min(search, folded, key=lambda one: one.value)
    axes = axes_of(reduced.labels)
    return Group(terms, axes, search.result(), float(np.exp(search.value)))


def _fineness(batch: ProductBatch) -> Integers:
    """Number of distinct columns of each term's factor, terms x attributes."""
    counts = np.zeros((batch.terms, len(batch.factors)), dtype=np.int64)
    for i, choices in enumerate(batch.factors):
        distinct = np.array([int(f.labels.max()) + 1 for f in choices])
        np.maximum.at(counts[:, i], batch.term_of, distinct[batch.choice[:, i]])
    return counts


def _best_split(batch: ProductBatch, rng: np.random.Generator, watch: Watch) -> list[Group] | None:
    """The best split in two by the fineness of one attribute's factors, after a quick search.

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
    return [_solve(batch, np.array(sorted(part)), SCOUT, rng, watch) for part in best] or None


def _fused(
    batch: ProductBatch, group: Group, effort: Effort, rng: np.random.Generator, watch: Watch
) -> Group:
    """One fused axis with an optimised basis, if it is small enough; else the group itself.

    Axes on which all terms ask the same stay apart, since a product is as good there, but only
    the first and the last ones: answers are in the order of the attributes, so those that are
    fused must be consecutive.
    """
    own = batch.take(group.terms)
    alike = [
        axis.size > 1 and len(np.unique(own.choice[:, axis.attributes[0]])) == 1
        for axis in group.axes
    ]
    if all(alike):
        return group
    first, last = alike.index(False), len(alike) - alike[::-1].index(False)
    together = group.axes[first:last]
    fused = Axis(
        tuple(axis.attributes[0] for axis in together), tuple(axis.labels[0] for axis in together)
    )
    if fused.size > FUSED[effort] or sum(axis.size > 1 for axis in together) < 2:
        return group
    axes = (*group.axes[:first], fused, *group.axes[last:])
    return _flat_search(own, group, axes, first, effort, rng, watch)


def _flat_search(  # noqa: PLR0913, PLR0917 - one family of arguments
    own: ProductBatch,
    group: Group,
    axes: tuple[Axis, ...],
    place: int,
    effort: Effort,
    rng: np.random.Generator,
    watch: Watch,
) -> Group:
    """Optimise the basis of the fused axis, number ``place``, beside identities on the others."""
    reduced = on_axes(own, axes)
    alone = replace(
        reduced,
        factors=reduced.factors[place : place + 1],
        choice=reduced.choice[:, place : place + 1],
    )
    W = np.asarray(np.linalg.qr(alone.dense(), mode="r"))
    n = W.shape[1]
    quadratic = Quadratic(reduced)
    best = group
    for share in FUSED_SHARES[effort]:
        start = np.abs(random_rows(max(2, n // share), n, rng, size=0.5))
        found = optimise_augmented(
            W,
            start,
            nonnegative=True,
            tolerance=1e-6,
            max_rounds=800,
            on_step=lambda step: watch(float(np.log(step.error))),
        )
        bases = [identity_basis(axis.size) for axis in axes]
        bases[place] = Basis(found.extra_rows)
        search = SetSearch(Point.at(quadratic, bases), rng, lambda _: None)
        family = search.climb(search.descend(search.starts()[0], np.ones(1)))
        if family.error < best.error:
            marginals = Marginals(family.sets, family.weights, tuple(bases))
            best = Group(group.terms, axes, marginals, family.error)
        watch(float(np.log(best.error)))
    return best
