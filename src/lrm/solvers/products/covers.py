"""Greedy covers: few large sets of attributes that contain everything that is asked."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from lrm.solvers.products.marginals import Point
from lrm.solvers.products.subsets import (
    SubsetIndex,
    bits_of,
    contained,
    masks_of,
    members_of,
)

__all__ = ["greedy_cover"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Masks = NDArray[np.uint64]

#: Beyond this many subsets a cover looks its subsets up in a tensor,
MANY = 3000
#: of at most this many entries.
TENSOR = 20_000_000


def greedy_cover(
    point: Point, need: Masks, power: float = 1.0, rng: np.random.Generator | None = None
) -> Masks:
    """Cover the subsets ``need`` by sets of small cost.

    If every subset A were answered from one set B alone, the error of the best weights would be
    ``(Σ_B c_B^⅓)³`` with ``c_B = Σ_A v_A / w_B``. So a set is worth the ratio of what its
    uncovered subsets would cost alone, ``Σ (v_A/w_A)^⅓``, to ``c_B^⅓``. Each set grows from a
    costly uncovered subset by one attribute at a time, while that ratio (with ``power`` on the
    cost) grows. With ``rng``, what a subset costs alone is taken up to a random factor, for
    other covers. Cost: O(sets · attributes · needs) bit operations.
    """
    d = point.quadratic.d
    numbers = point.quadratic.index.find(need)
    v = np.where(numbers >= 0, point.v[np.maximum(numbers, 0)], 0.0)
    alone = np.cbrt(v / point.set_factors(need))
    alone = np.maximum(alone, 1e-12 * alone.max(initial=0.0) + 1e-300)
    if rng is not None:
        alone = alone * rng.uniform(0.5, 1.5, len(alone))
    if len(need) > MANY:
        return _cover_many(point, need, v, alone, power)
    bits = bits_of(d)
    used = np.flatnonzero(members_of(need, d).any(axis=0))
    open_ = np.ones(len(need), dtype=bool)
    chosen: list[NDArray[np.uint64]] = []
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
            sums = np.stack([v[open_], alone[open_]]) @ inside
            cost = np.cbrt(sums[0] / point.set_factors(trials))
            worth = sums[1] / np.maximum(cost, 1e-300) ** power
            place = int(np.argmax(worth))
            if place == 0 or worth[place] <= best * (1 + 1e-12):
                break
            current, best = trials[place], worth[place]
        open_ &= ~contained(need, current[None])[:, 0]
        chosen.append(current)
    return np.unique(np.array(chosen), axis=0)


def _cover_many(point: Point, need: Masks, v: Floats, alone: Floats, power: float) -> Masks:
    """The same for very many subsets: those of the largest size in a dense symmetric tensor.

    161,700 triples of 100 attributes: about 60,000 sets in a few seconds.
    """
    d = point.quadratic.d
    inside = members_of(need, d)
    sizes = inside.sum(axis=1)
    k = int(sizes.max())
    if k < 2 or d**k > TENSOR:
        return need[sizes == k] if k else need
    top = np.flatnonzero(sizes == k)
    members = np.nonzero(inside[top])[1].reshape(len(top), k)
    costs, worths = np.zeros((d,) * k), np.zeros((d,) * k)
    for order in itertools.permutations(range(k)):
        place = tuple(members[:, o] for o in order)
        costs[place], worths[place] = v[top], alone[top]
    kappa = np.exp(point.log_kappa)
    chosen = []
    for row in members[np.argsort(-alone[top], kind="stable")]:
        if worths[tuple(row)] > 0:
            grown = _grow(row.tolist(), costs, worths, kappa, power)
            worths[np.ix_(*[grown] * k)] = 0.0
            costs[np.ix_(*[grown] * k)] = 0.0
            chosen.append(grown)
    rows = np.repeat(np.arange(len(chosen)), [len(one) for one in chosen])
    found = np.zeros((len(chosen), d), dtype=bool)
    found[rows, np.concatenate(chosen)] = True
    sets = masks_of(found)
    return np.unique(np.concatenate([sets, _uncovered(point, need[sizes < k], sets)]), axis=0)


def _grow(  # noqa: PLR0913 - one family of arrays
    members: list[int], costs: Floats, worths: Floats, kappa: Floats, power: float
) -> list[int]:
    """Add the attribute that makes a set most worth its cost, while one does."""
    k = costs.ndim
    cost, worth = float(costs[tuple(members)]), float(worths[tuple(members)])
    size = float(np.prod(kappa[members]))
    ratio = worth / max(cost * size, 1e-300) ** (power / 3)
    while True:
        lower = tuple(np.array(list(itertools.combinations(members, k - 1))).T)
        more = worths[lower].sum(axis=0) + worth
        dear = costs[lower].sum(axis=0) + cost
        ratios = more / np.maximum(dear * size * kappa, 1e-300) ** (power / 3)
        ratios[members] = 0.0
        best = int(np.argmax(ratios))
        if not ratios[best] > ratio * (1 + 1e-12):
            return members
        members = [*members, best]
        ratio, worth, cost = float(ratios[best]), float(more[best]), float(dear[best])
        size *= float(kappa[best])


def _uncovered(point: Point, need: Masks, sets: Masks) -> Masks:
    """Those subsets that no set contains."""
    index = SubsetIndex(need, point.quadratic.d) if len(need) else None
    if index is None:
        return need
    return index.masks[np.asarray(index.inside(sets).sum(axis=1)).ravel() == 0]
