"""The discrete search over sets of attributes: which marginals are worth measuring.

A set of weight 0 is a local minimum under L1 sensitivity, so no gradient opens it. Moves change
the family of sets (add, merge, toggle one attribute, drop), all neighbours are scored at once in
closed form, the best ones are made together and descended on; kicks leave a local optimum.
It begins with greedy covers: few large sets that contain everything that is asked.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lrm.clock import UNLIMITED, Clock, Step
from lrm.planning.design.products.information import FixedBases, Neighbours
from lrm.planning.design.products.subsets import (
    Masks,
    SubsetIndex,
    bits_of,
    contained,
    masks_of,
    members_of,
    popcount,
)
from lrm.planning.limits import ARRAY
from lrm.planning.solvers import settings
from lrm.planning.solvers.products.descents import WeightedSets, descend_weights
from lrm.queries.maps.linear import TINY, Floats, Integers

#: A gain of the log error that is worth a move, or going on.
MOVE_GAIN = 1e-6


def maximal_sets(index: SubsetIndex) -> Masks:
    """The subsets that are contained in no other one (of large families, the largest only)."""
    masks = index.masks
    if len(masks) > 5000:
        return np.asarray(masks[index.sizes == index.sizes.max()])
    return np.asarray(masks[contained(masks, masks).sum(axis=1) == 1])


class SetSearch:
    """A search at a fixed point, from some families of sets; keeps the best one.

    The clock ticks after every descent, and may raise to end the search with the best so far.
    """

    def __init__(
        self, point: FixedBases, rng: np.random.Generator, clock: Clock = UNLIMITED
    ) -> None:
        self.point, self.rng, self._clock = point, rng, clock
        self.d = point.quadratic.d
        self.asked = point.quadratic.index.masks[point.v > 0]
        inside = members_of(self.asked, self.d)
        self.used = np.flatnonzero(inside.any(axis=0))
        # Whole sets, which inform about both, are left to the moves.
        odd = inside[:, -1] if point.quadratic.folded else np.zeros(len(inside), dtype=bool)
        self._needs = [need for need in (self.asked[~odd], self.asked[odd]) if len(need)]
        self.maximal = maximal_sets(SubsetIndex(self.asked, self.d))
        orders = inside[:, : self.d - 2 * point.quadratic.folded].sum(axis=1)
        # All tables of up to two of 70 attributes took 40 s for 0.3 % of the error.
        most = 1000 if orders.max(initial=0) <= 2 else settings.MANY_SUBSETS
        self.large = len(self.asked) > most
        # Noise on more than e¹⁵⁰ cells is not even looked at.
        self.huge = float(point.log_kappa[self.used].sum()) > 150.0
        self.best: WeightedSets | None = None

    @property
    def whole(self) -> Masks:
        """The family of one set: all attributes."""
        return np.asarray(np.bitwise_or.reduce(self.maximal, axis=0)[None])

    def offer(self, family: WeightedSets) -> WeightedSets:
        """Keep a family if it is the best so far."""
        if self.best is None or family.value < self.best.value:
            self.best = family
        self._clock.tick(Step.of_log("products", self.best.value))
        return family

    def descend(self, sets: Masks, theta: Floats, *, rough: bool = True) -> WeightedSets:
        """Descend on the weights of some sets and offer the end."""
        rounds, tolerance = (60, 1e-5) if rough else (500, 1e-9)
        return self.offer(
            descend_weights(
                self.point,
                sets,
                theta,
                tolerance=tolerance,
                max_rounds=rounds,
                clock=self._clock,
            )
        )

    def starts(self) -> list[Masks]:
        """Families to begin with: one set of all, the terms' own sets, and greedy covers."""
        families = [] if self.huge else [self.whole]
        supports = self.point.quadratic.supports
        if len(self.maximal) < len(supports) <= settings.MOST_SETS:
            families.append(supports)
        if self.large:
            families.extend(self._covers_of_many())
        elif len(self.maximal) > 1:
            if len(self.maximal) <= 600:
                families.append(self.maximal)
            families.extend(self._cover(power) for power in settings.COVER_POWERS)
            families.append(self._cover(sums=True))
        return families

    def _cover(
        self, power: float = 1.0, rng: np.random.Generator | None = None, *, sums: bool = False
    ) -> Masks:
        """A greedy cover of all that is asked; of folded tables, by sets of either kind."""
        covers = [greedy_cover(self.point, need, power, rng, sums=sums) for need in self._needs]
        self._clock.spend(sum(cover_work(len(cover)) for cover in covers))
        return np.concatenate(covers)

    def _covers_of_many(self) -> list[Masks]:
        """Covers by sets of k + 1 attributes from sums, or larger ones grown greedily.

        Sets of size s for subsets of size k over attributes of n values are worth
        ``C(s, k)²/n^(s−k)``; where s = k + 1 is best, sums pack them tighter than greed.
        """
        k = int(popcount(self.asked).max())
        n = float(np.exp(self.point.log_kappa[self.used].mean()))
        worth = [math.comb(s, k) ** 2 / n ** (s - k) for s in range(k + 1, k + 20)]
        if np.argmax(worth) == 0:
            return [self._cover(sums=True)]
        # Of two values, smaller sets were never worth the time: 3 to 9 % more error.
        return [self._cover(power) for power in ((1.0,) if n < 2.5 else (1.0, 1.15))]

    def random_start(self) -> Masks:
        """A greedy cover with random costs."""
        return self._cover(float(self.rng.uniform(0.8, 1.4)), self.rng)

    def climb(self, family: WeightedSets, most_steps: int = 200) -> WeightedSets:
        """Move to better neighbours until there is none; very many sets stay as they are."""
        if self.large or len(family.sets) > settings.MOST_SETS:
            return family
        for _ in range(most_steps):
            better = self._step(family)
            if better is None:
                break
            family = better
        return family

    def kick(self, family: WeightedSets, most_steps: int = 200) -> WeightedSets:
        """Drop a few sets at random, cover again what is uncovered, and climb."""
        count = len(family.sets)
        if self.large or count > settings.MOST_SETS:
            return family
        most = min(max(4, count // 10), count)
        gone = self.rng.choice(count, size=self.rng.integers(1, most + 1), replace=False)
        remaining = np.setdiff1d(np.arange(count), gone)
        sets, theta = family.sets[remaining], family.weights[remaining]
        need = self.asked[~contained(self.asked, sets).any(axis=1)]
        if len(need):
            power = float(self.rng.choice([0.7, 0.85, 1.0, 1.2, 1.5]))
            new = greedy_cover(self.point, need, power)
            self._clock.spend(cover_work(len(new)))
            typical = theta.mean() if len(theta) else 1.0
            sets = np.vstack([sets, new])
            theta = np.concatenate([theta, np.full(len(new), typical)])
        if not len(sets):
            return family
        return self.climb(self.descend(sets, theta), most_steps)

    def _step(self, family: WeightedSets) -> WeightedSets | None:
        moves = neighbours(family, self.used, self.d, self._pool(family))
        most = 30_000  # that are scored in one scan; of more, some are sampled
        if len(moves) > most:
            moves = moves.take(self.rng.choice(len(moves), most, replace=False))
        around = Neighbours(self.point, family.sets)
        values, weight = score_moves(around, family, moves)
        self._clock.spend(moves_work(len(self.asked), len(moves)))
        order = np.argsort(values)[:60]
        moves = Moves(moves.removed[order], moves.added[order], weight[order])
        settled = self._settle(around, family, moves)
        gains = family.value - settled
        if len(family.sets) > 20 and np.sum(gains > MOVE_GAIN) > 2:
            together = self._apply(family, moves, _disjoint(moves, gains))
            if together.value < family.value - max(MOVE_GAIN, float(gains.max())):
                return together
        for place in np.argsort(settled)[:3]:
            # A descent may still gain a little over settled weights.
            if gains[place] < -0.005:
                return None
            improved = self._apply(family, moves, [int(place)])
            if improved.value < family.value - MOVE_GAIN:
                return improved
        return None

    def _settle(self, around: Neighbours, family: WeightedSets, moves: Moves) -> Floats:
        theta = np.repeat(family.weights[:, None], len(moves), axis=1)
        for column in (0, 1):
            some = moves.removed[:, column] >= 0
            theta[moves.removed[some, column], np.flatnonzero(some)] = 0.0
        rounds = 25 if len(family.sets) <= 20 else 8
        self._clock.spend(settle_work(len(self.asked), len(family.sets), len(moves), rounds))
        settled = [
            around.settled(theta[:, part], moves.added[part], moves.weight[part], rounds)
            for part in around.chunks(len(moves))
        ]
        return np.concatenate(settled)

    def _apply(self, family: WeightedSets, moves: Moves, move_numbers: list[int]) -> WeightedSets:
        """Make the chosen moves together, and descend."""
        gone = moves.removed[move_numbers].ravel()
        remaining = np.setdiff1d(np.arange(len(family.sets)), gone)
        new = np.array([c for c in move_numbers if moves.weight[c] > 0], dtype=np.int64)
        sets = np.vstack([family.sets[remaining], moves.added[new]])
        theta = np.concatenate([family.weights[remaining], moves.weight[new]])
        sets, place = np.unique(sets, axis=0, return_inverse=True)
        return self.descend(sets, np.bincount(place.reshape(-1), theta).astype(np.float64))

    def _pool(self, family: WeightedSets) -> Masks:
        """Sets that may be added."""
        # Up to this many attributes every set is a candidate to add.
        if len(self.used) <= 11:
            k = len(self.used)
            inside = np.zeros((2**k, self.d), dtype=bool)
            inside[:, self.used] = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
            return masks_of(inside)
        some = np.concatenate([family.sets, self.maximal])
        sample = self.rng.integers(len(some), size=(1000, 2))
        unions = some[sample[:, 0]] | some[sample[:, 1]]
        meets = some[sample[:, 0]] & some[sample[:, 1]]
        lower = self.asked[self.rng.permutation(len(self.asked))[:500]]
        return np.unique(np.concatenate([unions, meets, lower]), axis=0)


def _disjoint(moves: Moves, gains: Floats) -> list[int]:
    """The best moves that remove different sets."""
    move_numbers: list[int] = []
    touched: set[int] = set()
    for place in np.argsort(-gains):
        gone = {int(i) for i in moves.removed[place] if i >= 0}
        if gains[place] <= MOVE_GAIN or len(move_numbers) >= 12:
            break
        if not gone & touched:
            move_numbers.append(int(place))
            touched |= gone
    return move_numbers


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes of a family: up to two sets go (−1: none), one comes with a weight (0: none)."""

    removed: Integers  # moves x 2
    added: Masks
    weight: Floats

    def __len__(self) -> int:
        return len(self.added)

    def take(self, numbers: Integers) -> Moves:
        """Some of the moves."""
        return Moves(self.removed[numbers], self.added[numbers], self.weight[numbers])

    @staticmethod
    def stack(parts: list[Moves]) -> Moves:
        """All moves of several lists."""
        return Moves(
            np.concatenate([part.removed for part in parts]),
            np.concatenate([part.added for part in parts]),
            np.concatenate([part.weight for part in parts]),
        )


def neighbours(family: WeightedSets, used: Integers, d: int, jumps: Masks) -> Moves:
    """Drop a set, toggle one attribute of a set, merge two sets, or add a set of ``jumps``."""
    sets, theta = family.sets, family.weights
    m = len(sets)
    each = np.arange(m)
    none = np.full(m, -1)
    parts = []
    if m > 1:
        parts.append(Moves(np.stack([each, none], axis=1), sets, np.zeros(m)))
    which, attribute = np.repeat(each, len(used)), np.tile(used, m)
    toggled = sets[which] ^ bits_of(d)[attribute]
    parts.append(Moves(np.stack([which, np.full(len(which), -1)], axis=1), toggled, theta[which]))
    first, second = np.triu_indices(m, 1)
    parts.append(
        Moves(
            np.stack([first, second], axis=1),
            sets[first] | sets[second],
            theta[first] + theta[second],
        )
    )
    new = np.full((len(jumps), 2), -1)
    parts.append(Moves(new, jumps, np.full(len(jumps), np.nan)))
    return Moves.stack(parts)


def score_moves(around: Neighbours, family: WeightedSets, moves: Moves) -> tuple[Floats, Floats]:
    """The log error after each move with the other weights as they are, and the added weight.

    The added weight is the best of a few: shares of the removed weights, or multiples of the
    mean weight.
    """
    steps = np.where(
        np.isnan(moves.weight)[:, None],
        family.weights.mean() * np.array([0.3, 1.0, 3.0]),
        np.nan_to_num(moves.weight)[:, None] * np.array([0.5, 0.75, 1.0]),
    )
    scored = [
        around.scored(family.weights, moves.removed[part], moves.added[part], steps[part])
        for part in around.chunks(len(moves))
    ]
    values, weights = zip(*scored, strict=True)
    return np.concatenate(values), np.concatenate(weights)


def greedy_cover(
    point: FixedBases,
    need: Masks,
    power: float = 1.0,
    rng: np.random.Generator | None = None,
    *,
    sums: bool = False,
) -> Masks:
    """Cover the subsets ``need`` by sets of small cost.

    If every subset A were answered from one set B alone, the error of the best weights would be
    ``(Σ_B c_B^⅓)³`` with ``c_B = Σ_A v_A / w_B``. So a set is worth the ratio of what its
    uncovered subsets would cost alone, ``Σ (v_A/w_A)^⅓``, to ``c_B^⅓``. Each set grows from a
    costly uncovered subset by one attribute at a time, while that ratio (with ``power`` on the
    cost) grows. With ``rng``, what a subset costs alone is taken up to a random factor, for
    other covers. With ``sums``, sets of attributes whose numbers sum to 0 come first.
    Cost: O(sets · attributes · needs) bit operations.
    """
    d = point.quadratic.d
    numbers = point.quadratic.index.find(need)
    v = np.where(numbers >= 0, point.v[np.maximum(numbers, 0)], 0.0)
    alone = np.cbrt(v / point.set_factors(need))
    alone = np.maximum(alone, 1e-12 * alone.max(initial=0.0) + TINY)
    if rng is not None:
        alone = alone * rng.uniform(0.5, 1.5, len(alone))
    if len(need) > settings.MANY_SUBSETS or sums:
        return _cover_many(point, need, v, alone, power, sums=sums)
    bits = bits_of(d)
    used = np.flatnonzero(members_of(need, d).any(axis=0))
    open_ = np.ones(len(need), dtype=bool)
    cover: list[Masks] = []
    order = np.argsort(-alone, kind="stable")
    for seed in order:
        if not open_[seed]:
            continue
        current = need[seed]
        best = 0.0
        while True:
            rest = used[(current[None] & bits[used]).sum(axis=1) == 0]
            trials = np.vstack([current[None], current[None] | bits[rest]])
            inside = contained(need[open_], trials)
            contained_sums = np.stack([v[open_], alone[open_]]) @ inside
            cost = np.cbrt(contained_sums[0] / point.set_factors(trials))
            worth = contained_sums[1] / np.maximum(cost, TINY) ** power
            place = int(np.argmax(worth))
            if place == 0 or worth[place] <= best * (1 + 1e-12):
                break
            current, best = trials[place], worth[place]
        open_ &= ~contained(need, current[None])[:, 0]
        cover.append(current)
    return np.unique(np.array(cover), axis=0)


def _cover_many(  # noqa: PLR0913 - one family of arrays
    point: FixedBases, need: Masks, v: Floats, alone: Floats, power: float, *, sums: bool
) -> Masks:
    """Cover very many subsets: those of the largest size in a dense symmetric tensor.

    161,700 triples of 100 attributes: about 60,000 sets in a few seconds.
    """
    d = point.quadratic.d
    inside = members_of(need, d)
    common = inside.all(axis=0)  # in every set; not worth an axis of the tensor
    inside[:, common] = False
    sizes = inside.sum(axis=1)
    k = int(sizes.max())
    if k < 2 or d**k > ARRAY:
        return need[sizes == k] if k > 1 else need
    top = np.flatnonzero(sizes == k)
    members = np.nonzero(inside[top])[1].reshape(len(top), k)
    # Costs and worths of all k-tuples, side by side: one look-up serves both.
    tensor = np.zeros((d,) * k + (2,))
    for order in itertools.permutations(range(k)):
        tensor[tuple(members[:, o] for o in order)] = np.stack([v[top], alone[top]], axis=1)
    kappa = np.exp(point.log_kappa)
    cover = _zero_sums(members, tensor, kappa) if sums else []
    for row in members[np.argsort(-alone[top], kind="stable")]:
        if tensor[tuple(row)][1] > 0:
            grown = _grow(row, tensor, kappa, power / 3)
            tensor[
                tuple(grown.reshape([-1 if j == i else 1 for j in range(k)]) for i in range(k))
            ] = 0.0
            cover.append(grown)
    rows = np.repeat(np.arange(len(cover)), [len(attributes) for attributes in cover])
    membership = np.zeros((len(cover), d), dtype=bool)
    membership[rows, np.concatenate(cover)] = True
    sets = masks_of(membership | common)
    return np.unique(np.concatenate([sets, _uncovered(point, need[sizes < k], sets)]), axis=0)


def _zero_sums(members: Integers, tensor: Floats, kappa: Floats) -> list[Integers]:
    """Sets of k + 1 attributes whose numbers sum to 0 modulo their count, where they are worth it.

    Any k members determine the last, so the sets share no k-subset, and all but about k/d of the
    k-subsets are in one: nearly a Steiner system, for every d (greedy growth covers 4 in 5). What
    is covered is cleared in ``tensor``.
    """
    d, k = len(kappa), members.shape[1]
    last = -members.sum(axis=1) % d
    proper = np.all(members != last[:, None], axis=1)
    sets = np.unique(np.sort(np.column_stack([members, last])[proper], axis=1), axis=0)
    subsets = [np.delete(sets, place, axis=1) for place in range(k + 1)]
    both = sum((tensor[tuple(subset.T)] for subset in subsets), np.zeros(()))
    size = kappa[sets].prod(axis=1)
    together = np.cbrt(both[:, 0] * size)
    worthwhile = sets[together < both[:, 1]]
    for place in range(k + 1):
        subset = np.delete(worthwhile, place, axis=1)
        for order in itertools.permutations(range(k)):
            tensor[tuple(subset[:, o] for o in order)] = 0.0
    return list(worthwhile)


@lru_cache(maxsize=64)
def _lower(size: int, k: int) -> tuple[Integers, ...]:
    """Positions of all k-subsets of ``size`` members."""
    return tuple(np.array(list(itertools.combinations(range(size), k))).T)


def _grow(members: Integers, tensor: Floats, kappa: Floats, power: float) -> Integers:
    """Add the attribute that makes a set most worth its cost, while one does."""
    k = tensor.ndim - 1
    both = tensor[tuple(members)]
    costs = math.prod(kappa[members].tolist()) * kappa
    ratio = both[1] / max(both[0] * costs[0] / kappa[0], TINY) ** power
    # What each attribute would add: all (k − 1)-subsets of the members with it.
    added = tensor[tuple(members[place] for place in _lower(k, k - 1))].sum(axis=0)
    attributes = members.tolist()
    while True:
        more = added + both
        ratios = more[:, 1] / np.maximum(more[:, 0] * costs, TINY) ** power
        ratios[attributes] = 0.0
        best = int(ratios.argmax())
        if not ratios[best] > ratio * (1 + 1e-12):
            return np.array(attributes)
        if k == 2:
            added += tensor[best]
        else:
            new = np.array(attributes)
            lower = (new[place] for place in _lower(len(attributes), k - 2))
            added += tensor[(*lower, best)].sum(axis=0)
        attributes.append(best)
        ratio, both = ratios[best], more[best]
        costs *= kappa[best]


def _uncovered(point: FixedBases, need: Masks, sets: Masks) -> Masks:
    """Those subsets that no set contains."""
    index = SubsetIndex(need, point.quadratic.d) if len(need) else None
    if index is None:
        return need
    alone: Masks = index.masks[np.asarray(index.inside(sets).sum(axis=1)).ravel() == 0]
    return alone


def moves_work(subsets: int, moves: int) -> float:
    """Seconds of the scores of all neighbours of a family."""
    return 2.7e-4 + 1.6e-8 * subsets * moves


def settle_work(subsets: int, sets: int, moves: int, rounds: int) -> float:
    """Seconds of some rounds on the weights of many families at once."""
    return 1.1e-4 + rounds * (3.7e-5 + subsets * moves * (4.0e-9 + 2.2e-10 * sets))


def cover_work(sets: int) -> float:
    """Seconds of a greedy cover that ended with this number of sets."""
    return 2.7e-4 + 5.6e-5 * sets
