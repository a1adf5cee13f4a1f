"""The search for the weighted marginals of one group of terms: sets, weights and bases.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from lrm.clock import Clock
from lrm.errors import StopSolver
from lrm.planning.design.products.basis import MarginalBasis, ProductBasis
from lrm.planning.design.products.information import FixedBases
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Marginals
from lrm.planning.design.products.subsets import masks_of, members_of
from lrm.planning.solvers import settings
from lrm.planning.solvers.products.descents import WeightedSets, descend_jointly, own_basis
from lrm.planning.solvers.products.search import MOVE_GAIN, SetSearch
from lrm.planning.solvers.settings import GroupEffort


def marginals_of(
    quadratic: Quadratic, family: WeightedSets, bases: Sequence[ProductBasis]
) -> Marginals:
    """Weighted sets of a quadratic, perhaps a folded one, as a strategy."""
    if not quadratic.folded:
        return Marginals(family.sets, family.weights, tuple(bases))
    members = members_of(family.sets, quadratic.d)
    folds = np.where(quadratic.unfolded(family.sets), 0, np.where(members[:, -1], -1, 1))
    # Without attributes of two values, even and whole are the same.
    masks = masks_of(members[:, :-2])
    keys = np.column_stack([masks, folds.astype(np.uint64)])  # −1 becomes the largest number
    _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    weights = np.bincount(place.reshape(-1), family.weights).astype(np.float64)
    return Marginals(masks[first], weights, tuple(bases)[:-2], folds[first])


class GroupSearch:
    """Searches for the strategy of least error for one V; keeps the best at all times."""

    def __init__(
        self, quadratic: Quadratic, rng: np.random.Generator, clock: Clock, effort: GroupEffort
    ) -> None:
        self.quadratic, self.rng, self.clock, self.effort = quadratic, rng, clock, effort
        self.needy = [
            i for i in range(quadratic.d) if quadratic.needs_basis(i) and quadratic.affords_basis(i)
        ]
        self.plain = tuple(MarginalBasis.identity(n) for n in quadratic.sizes)
        search = SetSearch(FixedBases.at(quadratic), rng)
        self.large = search.large
        # One set with identities is noise on data: there is always something to return. Where
        # that is hopeless, or the sets are too many to be moved, it is a greedy cover.
        starts = search.starts() if self.large or search.huge else [search.whole]
        candidates = [search.descend(start, np.ones(len(start))) for start in starts]
        self.family, self.bases = min(candidates, key=lambda family: family.value), self.plain

    @property
    def value(self) -> float:
        """Log error of the best so far."""
        return self.family.value

    def result(self) -> Marginals:
        """The best so far."""
        return marginals_of(self.quadratic, self.family, self.bases)

    def start_from(self, other: GroupSearch) -> None:
        """Begin with what was found for whole tables, all of them folded both ways."""
        members = members_of(other.family.sets, other.quadratic.d)
        both = np.repeat(np.eye(2, dtype=bool), len(members), axis=0)
        sets = masks_of(np.hstack([np.tile(members, (2, 1)), both]))
        fixed = [
            MarginalBasis.identity(n) if n <= 2 else basis
            for n, basis in zip(self.quadratic.sizes, (*other.bases, *self.plain[-2:]), strict=True)
        ]
        with contextlib.suppress(StopSolver), self._searching(fixed) as search:
            search.climb(search.descend(sets, np.ones(len(sets))), self.effort.steps)

    def go_on(self, effort: GroupEffort, clock: Clock) -> None:
        """Search from the best so far, with other effort."""
        self.effort, self.clock = effort, clock
        self.run()

    def run(self) -> None:
        """Search until nothing gains or the clock ends."""
        with contextlib.suppress(StopSolver):
            if not self.large:
                self._from_identities()
            if self.needy:
                self._from_own_bases()
                self._from_random_bases()
            if not self.large:
                self._alternate()
                self._refine()

    def offer(self, family: WeightedSets, bases: Sequence[MarginalBasis]) -> bool:
        """Keep a strategy if it is the best so far."""
        if family.value >= self.family.value - 1e-12:
            return False
        self.family, self.bases = family, tuple(bases)
        return True

    @contextlib.contextmanager
    def _searching(self, bases: Sequence[MarginalBasis]) -> Iterator[SetSearch]:
        """A search at fixed bases, whose best is offered however it ends."""
        search = SetSearch(FixedBases.at(self.quadratic, bases), self.rng, self.clock)
        try:
            yield search
        finally:
            if search.best is not None:
                self.offer(search.best, bases)

    def _sets_at(
        self, bases: Sequence[MarginalBasis], *, climbs: int, randoms: int
    ) -> WeightedSets:
        """The best family at fixed bases, from all kinds of starts."""
        with self._searching(bases) as search:
            candidates = [search.descend(s, np.ones(len(s))) for s in search.starts()]
            if len(search.maximal) > 1 and not search.large:
                sampled = (search.random_start() for _ in range(randoms))
                candidates += [search.descend(s, np.ones(len(s))) for s in sampled]
            candidates.sort(key=lambda family: family.value)
            for family in candidates[:climbs]:
                search.climb(family, self.effort.steps)
        assert search.best is not None  # noqa: S101 - starts are never empty
        return search.best

    @property
    def _is_small(self) -> bool:
        """Whether sets are folded, and so few that more of them are tried in a second."""
        return self.quadratic.folded and self.quadratic.d <= settings.FEW_ATTRIBUTES

    def _from_identities(self) -> None:
        # Fewer where bases will be optimised, unless that is quick or the values are only two.
        few = self.effort.kicks > 0 and any(self.quadratic.sizes[i] > 2 for i in self.needy)
        climbs = 1 if few else self.effort.climbs
        randoms = self.effort.starts // (3 if few else 1)
        if self._is_small:
            climbs, randoms = max(climbs, 5), max(randoms, 24)
        self._sets_at(self.plain, climbs=climbs, randoms=randoms)

    def _from_own_bases(self) -> None:
        """Bases from each attribute's own problem; equal attributes share one."""
        point = FixedBases.at(self.quadratic)
        shared: dict[tuple[object, ...], MarginalBasis] = {}
        bases = list(self.plain)
        for i in self.needy:
            n = self.quadratic.sizes[i]
            grams = [self.quadratic.grams[g] for g in self.quadratic.of_attribute(i)]
            key = (n, *(gram.left.digest for gram in grams), *(gram.right.digest for gram in grams))
            if key not in shared:
                shares = (
                    self.effort.shares
                    if n > settings.FEW_VALUES
                    else (*self.effort.shares, 4, 2, 16)
                )
                rows = [max(1, min(n // share, 16)) for share in shares]
                shared[key] = own_basis(point, i, self.rng, rows, self.clock)
            bases[i] = shared[key]
        family = self._sets_at(bases, climbs=1, randoms=self.effort.starts // 3)
        self._joint(family, bases)

    def _from_random_bases(self) -> None:
        """One product of all attributes, whose bases start from random rows."""
        for rows in self.effort.rows:
            bases = list(self.plain)
            for i in self.needy:
                n = self.quadratic.sizes[i]
                bases[i] = MarginalBasis.beside(self.rng.random((max(1, min(rows, n // 2)), n)))
            search = SetSearch(FixedBases.at(self.quadratic, bases), self.rng, self.clock)
            if search.huge:
                return
            family, _ = self._joint(search.descend(search.whole, np.ones(1)), bases)
            if family.value > self.value + np.log(4.0):
                return

    @property
    def _rounds(self) -> int:
        """Rounds of a joint descent; more of them where one takes a millisecond."""
        few = sum(self.quadratic.sizes[i] for i in self.needy) <= settings.FEW_VALUES * 2
        return max(self.effort.rounds, 200) if few else self.effort.rounds

    def _joint(
        self, family: WeightedSets, bases: Sequence[MarginalBasis], rounds: int | None = None
    ) -> tuple[WeightedSets, tuple[MarginalBasis, ...]]:
        if all(basis.plain for basis in bases):
            return family, tuple(bases)
        optimum = descend_jointly(
            self.quadratic,
            family,
            bases,
            clock=self.clock,
            max_rounds=self._rounds if rounds is None else rounds,
        )
        self.offer(*optimum)
        return optimum

    def _alternate(self) -> None:
        """Sets at the best bases, then bases at the best sets, until nothing gains."""
        for _ in range(6):
            before = self.value
            with self._searching(self.bases) as search:
                search.climb(search.offer(self.family), self.effort.steps)
            self._joint(self.family, self.bases)
            if self.value > before - MOVE_GAIN:
                break

    def _refine(self) -> None:
        """Kicks of the sets and exchanges of rows, in turn, until neither gains."""
        misses, exchanges = 0, 0
        most, each = (
            (max(3 * self.effort.kicks, 60), 20) if self._is_small else (self.effort.kicks, 5)
        )
        kicks = min(most, each * len(self.family.sets))
        while misses < kicks or (self.needy and exchanges < self.effort.exchanges):
            before, work = self.value, self.clock.work
            if misses < kicks:
                self._kick(10)
            if self.needy and exchanges < self.effort.exchanges:
                middle = self.value
                self._exchange()
                exchanges = 0 if self.value < middle - MOVE_GAIN else exchanges + 1
            # Where kicks take long, a counted second of them stands for 20: all tables of up to two
            # of 40 attributes of ten values took 20 s, 17 of them for nothing.
            missed = max(10, round(20.0 * (self.clock.work - work)))
            misses = 0 if self.value < before - MOVE_GAIN else misses + missed
        with self._searching(self.bases) as search:
            search.descend(self.family.sets, self.family.weights, rough=False)
        self._joint(self.family, self.bases, 300)

    def _kick(self, count: int) -> None:
        before = self.value
        with self._searching(self.bases) as search:
            search.offer(self.family)
            for _ in range(count):
                search.kick(search.best or self.family, 20)
        if self.value < before:
            self._joint(self.family, self.bases, 60)

    def _exchange(self) -> None:
        """Change the rows of one basis (add, drop or renew some), and descend jointly."""
        i = int(self.rng.choice(self.needy))
        rows, n = self.bases[i].extra_rows, self.quadratic.sizes[i]
        kind = self.rng.integers(3)
        if kind > 0 and len(rows):
            gone = self.rng.choice(len(rows), size=min(len(rows), int(kind)), replace=False)
            rows = np.delete(rows, gone, axis=0)
        if kind != 1:
            new = self.rng.random((int(self.rng.integers(1, 4)), n))
            rows = np.vstack([rows, new * self.rng.uniform(0.1, 0.6)])
        bases = list(self.bases)
        bases[i] = MarginalBasis.beside(rows)
        self._joint(self.family, bases)
