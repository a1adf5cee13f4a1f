"""Neighbours of a family of sets, and their scores in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.marginals import Point
from lrm.exact.products.subsets import bits_of, contained
from lrm.solvers.products.weights import Family

__all__ = ["Moves", "neighbours", "score_moves"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Masks = NDArray[np.uint64]

#: Entries of the largest array of a scan.
CHUNK = 1 << 18


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


def neighbours(family: Family, used: Integers, d: int, jumps: Masks) -> Moves:
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


def score_moves(point: Point, family: Family, moves: Moves) -> tuple[Floats, Floats]:
    """The log error after each move with the other weights as they are, and the added weight.

    The added weight is the best of a few: shares of the removed weights, or multiples of the
    mean weight.
    """
    needed = point.v > 0
    masks, v = point.quadratic.index.masks[needed], point.v[needed][:, None]
    inside = contained(masks, family.sets).astype(np.float64)
    squares = family.weights**2 * point.set_factors(family.sets)
    information = inside @ squares
    m, weight_sum = len(family.sets), family.weights.sum()
    # A row of zeros stands for "nothing removed".
    part_of = np.hstack([inside * squares, np.zeros((len(masks), 1))])
    shares = np.append(family.weights, 0.0)
    factor = point.set_factors(moves.added)
    value, best = np.full(len(moves), np.inf), moves.weight.copy()
    jump = np.isnan(moves.weight)
    width = max(1, CHUNK // max(1, len(masks)))
    steps = np.where(
        jump[:, None],
        weight_sum / m * np.array([0.3, 1.0, 3.0]),
        np.nan_to_num(moves.weight)[:, None] * np.array([0.5, 0.75, 1.0]),
    )
    for first in range(0, len(moves), width):
        part = slice(first, first + width)
        gone = moves.removed[part]
        base = information[:, None] - part_of[:, gone[:, 0]] - part_of[:, gone[:, 1]]
        base[base < 1e-9 * information[:, None]] = 0.0
        new = contained(masks, moves.added[part]).astype(np.float64)
        left = weight_sum - shares[gone[:, 0]] - shares[gone[:, 1]]
        with np.errstate(divide="ignore"):
            for step in steps[part].T:
                cost = np.sum(v / (base + new * (step**2 * factor[part])), axis=0)
                tried = 2 * np.log(left + step) + np.log(cost)
                better = tried < value[part]
                value[part] = np.where(better, tried, value[part])
                best[part] = np.where(better, step, best[part])
    return value, best
