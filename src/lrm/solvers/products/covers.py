"""Greedy covers: few large sets of attributes that contain everything that is asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lrm.solvers.products.marginals import Point
from lrm.solvers.products.subsets import bits_of, contained, members_of

__all__ = ["greedy_cover"]

Floats = NDArray[np.float64]
Masks = NDArray[np.uint64]


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
    index = point.quadratic.index
    d = point.quadratic.d
    numbers = index.find(need)
    v = np.where(numbers >= 0, point.v[np.maximum(numbers, 0)], 0.0)
    alone = np.cbrt(v / point.set_factors(need))
    alone = np.maximum(alone, 1e-12 * alone.max(initial=0.0) + 1e-300)
    if rng is not None:
        alone = alone * rng.uniform(0.5, 1.5, len(alone))
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
