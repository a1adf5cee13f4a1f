"""Greedy covers: few large sets of attributes that contain everything that is asked.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.marginals import Point
from lrm.exact.products.subsets import (
    SubsetIndex,
    bits_of,
    contained,
    masks_of,
    members_of,
)
from lrm.maps.linear import TINY
from lrm.solvers import settings

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Masks = NDArray[np.uint64]

#: Entries of the tensor in which many subsets are looked up.
TENSOR = 20_000_000


def greedy_cover(
    point: Point,
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
    cover: list[NDArray[np.uint64]] = []
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
    point: Point, need: Masks, v: Floats, alone: Floats, power: float, *, sums: bool
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
    if k < 2 or d**k > TENSOR:
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


def _uncovered(point: Point, need: Masks, sets: Masks) -> Masks:
    """Those subsets that no set contains."""
    index = SubsetIndex(need, point.quadratic.d) if len(need) else None
    if index is None:
        return need
    alone: Masks = index.masks[np.asarray(index.inside(sets).sum(axis=1)).ravel() == 0]
    return alone
