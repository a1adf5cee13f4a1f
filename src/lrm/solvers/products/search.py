"""The discrete search over sets of attributes: which marginals are worth measuring.

A set of weight 0 is a local minimum under L1 sensitivity, so no gradient opens it. Moves change
the family of sets (add, merge, toggle one attribute, drop), all neighbours are scored at once in
closed form, the best ones are descended on; kicks leave a local optimum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lrm.solvers.products.covers import greedy_cover
from lrm.solvers.products.marginals import Point
from lrm.solvers.products.subsets import SubsetIndex, bits_of, contained, members_of, popcount
from lrm.solvers.products.weights import Family, descend_weights, score_families

__all__ = ["SetSearch", "maximal_sets"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Masks = NDArray[np.uint64]

#: Up to this many attributes every set is a candidate to add.
ALL_SETS = 13
#: Neighbours that are scored in one scan, at most; more are sampled.
MOST_MOVES = 6000
#: A relative gain of the error that is worth a move.
GAIN = 1e-6


def maximal_sets(index: SubsetIndex) -> Masks:
    """The subsets that are contained in no other one."""
    masks = index.masks
    if len(masks) > 5000:
        return masks[index.sizes == index.sizes.max()]
    return masks[contained(masks, masks).sum(axis=1) == 1]


class SetSearch:
    """A search at a fixed point, from some families of sets; keeps the best one.

    ``go_on`` is asked before every descent, and raises to end the search with the best so far.
    """

    def __init__(
        self, point: Point, rng: np.random.Generator, go_on: Callable[[float], None]
    ) -> None:
        self.point, self.rng, self._go_on = point, rng, go_on
        self.d = point.quadratic.d
        index = point.quadratic.index
        self.asked = index.masks[point.v > 0]
        self.used = np.flatnonzero(members_of(self.asked, self.d).any(axis=0))
        self.maximal = maximal_sets(SubsetIndex(self.asked, self.d))
        self.best: Family | None = None

    def offer(self, family: Family) -> Family:
        """Keep a family if it is the best so far."""
        if self.best is None or family.value < self.best.value:
            self.best = family
        self._go_on(self.best.value)
        return family

    def descend(self, sets: Masks, theta: Floats, *, rough: bool = True) -> Family:
        """Descend on the weights of some sets and offer the end."""
        rounds, tolerance = (60, 1e-5) if rough else (500, 1e-9)
        family = descend_weights(
            self.point, sets, theta, tolerance=tolerance, max_rounds=rounds
        )
        return self.offer(family)

    def starts(self) -> list[Masks]:
        """Families to begin with: one set of all, the maximal terms, and greedy covers."""
        whole = np.bitwise_or.reduce(self.maximal, axis=0)[None]
        found = [whole]
        if len(self.maximal) <= 600:
            found.append(self.maximal)
        found.extend(greedy_cover(self.point, self.asked, power) for power in (1.0, 0.8, 1.25))
        return found

    def climb(self, family: Family, most_steps: int = 400) -> Family:
        """Move to better neighbours until there is none."""
        for _ in range(most_steps):
            better = self._step(family)
            if better is None:
                break
            family = better
        return family

    def kick(self, family: Family) -> Family:
        """Drop a few sets at random, cover again what is uncovered, and climb."""
        count = len(family.sets)
        most = min(4, count)
        gone = self.rng.choice(count, size=self.rng.integers(1, most + 1), replace=False)
        kept = np.setdiff1d(np.arange(count), gone)
        sets, theta = family.sets[kept], family.weights[kept]
        need = self.maximal[~contained(self.maximal, sets).any(axis=1)]
        if len(need):
            power = float(self.rng.choice([0.7, 0.85, 1.0, 1.2, 1.5]))
            new = need if self.rng.random() < 0.3 else greedy_cover(self.point, need, power)
            typical = theta.mean() if len(theta) else 1.0
            sets = np.vstack([sets, new])
            theta = np.concatenate([theta, np.full(len(new), typical)])
        if not len(sets):
            return family
        return self.climb(self.descend(sets, theta))

    def _step(self, family: Family) -> Family | None:
        theta, added, start = self._neighbours(family)
        values, weights = score_families(self.point, family.sets, theta, added, start)
        order = np.argsort(values)[:40]
        refined, weights = score_families(
            self.point, family.sets, weights[:-1, order], added[order], weights[-1, order], 25
        )
        again = np.argsort(refined)[:3]
        for place in again:
            if not refined[place] < family.value + 0.01:
                return None
            alive = weights[:-1, place] > 0
            sets, ended = family.sets[alive], weights[:-1, place][alive]
            if weights[-1, place] > 0:
                sets = np.vstack([sets, added[order[place]][None]])
                ended = np.append(ended, weights[-1, place])
            found = self.descend(sets, np.maximum(ended, 1e-9))
            if found.value < family.value - GAIN:
                return found
        return None

    def _neighbours(self, family: Family) -> tuple[Floats, Masks, Floats]:
        """Weights of the present sets, added set, and its weight, for every move."""
        sets, theta = family.sets, family.weights
        m = len(sets)
        bits = bits_of(self.d)
        removed: list[tuple[int, ...]] = []
        added: list[NDArray[np.uint64]] = []
        start: list[float] = []
        for i in range(m):
            if m > 1:
                removed.append((i,))
                added.append(sets[i])
                start.append(0.0)
            for attribute in self.used:
                removed.append((i,))
                added.append(sets[i] ^ bits[attribute])
                start.append(theta[i])
        first, second = np.triu_indices(m, 1)
        for i, j in zip(first, second, strict=True):
            removed.append((i, j))
            added.append(sets[i] | sets[j])
            start.append(0.75 * (theta[i] + theta[j]))
        for mask, weight in self._jumps(family):
            removed.append(())
            added.append(mask)
            start.append(weight)
        chosen = np.arange(len(added))
        if len(added) > MOST_MOVES:
            chosen = np.sort(self.rng.choice(len(added), MOST_MOVES, replace=False))
        weights = np.repeat(theta[:, None], len(chosen), axis=1)
        for column, move in enumerate(chosen):
            weights[list(removed[move]), column] = 0.0
        return weights, np.array(added)[chosen], np.array(start)[chosen]

    def _jumps(self, family: Family) -> list[tuple[NDArray[np.uint64], float]]:
        """Sets to add, each with the best of a few weights."""
        pool = self._pool(family)
        index, v = self.point.quadratic.index, self.point.v
        problem = self.point.set_factors(family.sets)
        inside = contained(index.masks, family.sets).astype(np.float64)
        information = inside @ (family.weights**2 * problem)
        asked = v > 0
        information, v = information[asked], v[asked]
        before, inverse = np.sum(v / information), information
        best, weight = np.full(len(pool), np.inf), np.zeros(len(pool))
        own = self.point.set_factors(pool)
        chunk = max(1, (1 << 20) // max(1, len(v)))
        for first in range(0, len(pool), chunk):
            part = slice(first, first + chunk)
            new = contained(index.masks[asked], pool[part]).astype(np.float64)
            old = new.T @ (v / inverse)
            for tau in (0.05, 0.15, 0.4, 1.0, 2.0):
                # Only the subsets inside the new set change.
                after = np.einsum(
                    "ac,a,ac->c", new, v, 1.0 / (inverse[:, None] + tau**2 * own[part])
                )
                value = 2 * np.log1p(tau) + np.log(before - old + after)
                better = value < best[part]
                best[part] = np.where(better, value, best[part])
                weight[part] = np.where(better, tau, weight[part])
        order = np.argsort(best)[:300]
        return [(pool[place], float(weight[place])) for place in order]

    def _pool(self, family: Family) -> Masks:
        if len(self.used) <= ALL_SETS:
            return self._every_set()
        pairs = np.concatenate([family.sets, self.maximal])
        sample = self.rng.integers(len(pairs), size=(600, 2))
        unions = pairs[sample[:, 0]] | pairs[sample[:, 1]]
        meets = pairs[sample[:, 0]] & pairs[sample[:, 1]]
        return np.unique(np.concatenate([unions, meets, self.maximal[:2000]]), axis=0)

    def _every_set(self) -> Masks:
        k = len(self.used)
        numbers = np.arange(2**k)[:, None]
        inside = np.zeros((2**k, self.d), dtype=bool)
        inside[:, self.used] = (numbers >> np.arange(k)) & 1
        from lrm.solvers.products.subsets import masks_of

        return masks_of(inside)


def family_sizes(family: Family) -> Integers:
    """Number of attributes of each set."""
    return popcount(family.sets)
