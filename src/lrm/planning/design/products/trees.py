"""Residuals of an attribute of many values for Gaussian noise: differences along a binary tree.

The n values are the leaves of a binary tree of depth k, ``2^(k−1) < n ≤ 2^k = κ``: the first of
them in pairs at depth k, the others alone at depth k − 1. A row of R is the difference of the two
halves of a node, times the weight w_ℓ of its level ℓ (pairs have level 0). A column has one entry
per level, so its L2 norm is that of w, and ``R·u = 0`` where u is 1 for values in pairs and 2 for
the others: a node's halves hold equal parts of u.

Since halves follow from totals and differences, ``P = H − u·uᵀ/κ = K·Kᵀ`` with the columns
``±u/(2^(ℓ+1)·w_ℓ)`` over the two halves of each node. A product with R or P takes O(n) operations
per column, and nothing of size n × n is built. With ``e_ℓ`` from `level_spreads`,
``tr(P·WᵀW) = Σ e_ℓ/w_ℓ²``, which is least at ``w_ℓ ∝ e_ℓ^(1/4)``.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from lrm.errors import WorkloadError
from lrm.planning.design.products.basis import Cost, Numbers, ProductBasis
from lrm.planning.design.products.quadratic import PairGram
from lrm.planning.limits import ARRAY, BLOCK, MEMORY
from lrm.queries.maps.levels import range_energy
from lrm.queries.maps.linear import Floats, Integers, LinearMap, WeightedRanges


def tree_levels(size: int) -> int:
    """Number of levels of a tree with ``size`` leaves.

    >>> [tree_levels(n) for n in (2, 3, 4, 5)]
    [1, 2, 2, 3]
    """
    return max(1, (size - 1).bit_length())


def _paired(size: int) -> int:
    """How many values are in pairs at the lowest level."""
    return 2 * size - (1 << tree_levels(size))


def _shares(size: int) -> Floats:
    """U: 1 for values in pairs, 2 for the others."""
    shares = np.full(size, 2.0)
    shares[: _paired(size)] = 1.0
    return shares


def _differences(X: Numbers) -> list[Numbers]:
    """The differences of the halves of all nodes, level by level, pairs first."""
    paired = _paired(len(X))
    left, right = X[0:paired:2], X[1:paired:2]
    levels, totals = [np.asarray(left - right)], np.concatenate([left + right, X[paired:]])
    while len(totals) > 1:
        left, right = totals[0::2], totals[1::2]
        levels.append(np.asarray(left - right))
        totals = np.asarray(left + right)
    return levels


def _spread(levels: Sequence[Floats], size: int) -> Floats:
    """The transpose of `_differences`: each node's number, added to its left and from its right."""
    sums: Floats = np.zeros((1, *levels[-1].shape[1:]))
    for numbers in reversed(levels[1:]):
        below = np.empty((2 * len(sums), *sums.shape[1:]))
        below[0::2], below[1::2] = sums + numbers, sums - numbers
        sums = below
    paired = _paired(size)
    spread = np.empty((size, *sums.shape[1:]))
    spread[0:paired:2] = sums[: paired // 2] + levels[0]
    spread[1:paired:2] = sums[: paired // 2] - levels[0]
    spread[paired:] = sums[paired // 2 :]
    return spread


def _spans(size: int) -> Floats:
    """Leaves of a whole node of each level, pairs first."""
    return np.asarray(2.0 ** np.arange(1, tree_levels(size) + 1))


@dataclass(frozen=True, eq=False)
class TreeBasis(ProductBasis):
    """R with one weight per level, pairs first; real weights have L2 norm 1.

    Examples
    --------
    >>> TreeBasis(3, np.array([2, 3])).apply(np.array([[5], [4], [1]])).ravel().tolist()
    [2, 24]
    >>> tree = TreeBasis(3, np.array([0.6, 0.8]))
    >>> tree.times(np.eye(3)).tolist()
    [[0.6, -0.6, 0.0], [0.8, 0.8, -0.8]]
    >>> tree.times(tree.h[:, None]).ravel().tolist()
    [0.0, 0.0]
    """

    size: int
    weights: Numbers
    residual: ClassVar[bool] = True
    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        if self.size < 2 or self.weights.shape != (tree_levels(self.size),):
            raise WorkloadError("a residual tree needs two values, and one weight per level")
        # Weights of levels lie below this.
        if self.is_whole and not 1 <= self.weights.min() <= self.weights.max() < (1 << 23):
            raise WorkloadError("the weights of a residual tree must be positive and below 2^23")
        self.weights.setflags(write=False)

    @property
    def is_whole(self) -> bool:
        return bool(self.weights.dtype.kind == "i")

    @property
    def height(self) -> int:
        return self.size - 1

    @property
    def peak(self) -> int:
        return int(self.weights.max())

    @cached_property
    def scale(self) -> float:
        """Divided by it, columns have L2 norm 1 at most."""
        return math.sqrt(self.column_norm(2)) if self.is_whole else 1.0

    def column_norm(self, power: int) -> int:
        return sum(weight**power for weight in self.weights.tolist())

    def apply(self, X: Numbers) -> Numbers:
        levels = zip(_differences(X), self.weights.astype(X.dtype), strict=True)
        return np.concatenate([numbers * weight for numbers, weight in levels])

    def contents(self) -> dict[str, Integers]:
        return {"levels": self.weights}

    @classmethod
    def from_file(cls, size: int, rows: int, take: Callable[..., Integers]) -> TreeBasis:
        del rows
        return cls(size, take(tree_levels(size)))

    def rounded(self, bits: int, cost: Cost, null: Integers | None = None) -> TreeBasis:
        """Round the weights, so that the others follow the largest to 1/4096."""
        del cost, null
        # Bits of the largest weight of a tree; the others follow it to 1/4096.
        scaled = (1 << min(bits, 12)) / self.weights.max() * self.weights
        return TreeBasis(self.size, np.maximum(np.rint(scaled), 1).astype(np.int64))

    @cached_property
    def unit_weights(self) -> Floats:
        """The weights of the real basis."""
        return np.asarray(self.weights / self.scale)

    @cached_property
    def h(self) -> Floats:
        return _shares(self.size)

    def times(self, X: Floats) -> Floats:
        levels = zip(_differences(X), self.unit_weights, strict=True)
        return np.concatenate([weight * numbers for numbers, weight in levels])

    def transpose_times(self, Y: Floats) -> Floats:
        nodes = 1 << np.arange(tree_levels(self.size) - 2, -1, -1)
        parts = np.split(Y, np.cumsum([_paired(self.size) // 2, *nodes])[:-1])
        levels = [weight * part for part, weight in zip(parts, self.unit_weights, strict=True)]
        return _spread(levels, self.size)

    def contrasts(self, X: Floats) -> list[Floats]:
        """``Kᵀ·X``, level by level."""
        differences = _differences(self.h.reshape(-1, *[1] * (X.ndim - 1)) * X)
        divisors = _spans(self.size) * self.unit_weights
        return [np.asarray(part / by) for part, by in zip(differences, divisors, strict=True)]

    def projector_times(self, X: Floats) -> Floats:
        divisors = _spans(self.size) * self.unit_weights
        levels = [part / by for part, by in zip(self.contrasts(X), divisors, strict=True)]
        return np.asarray(self.h.reshape(-1, *[1] * (X.ndim - 1)) * _spread(levels, self.size))

    def spreads(self, factor: LinearMap, other: LinearMap) -> Floats:
        ranges = factor.weighted_ranges() if factor is other else None
        spread = np.zeros(len(factor))
        if ranges is not None:
            for part in _blocks(len(factor)):
                levels = _of_ranges(ranges.part(part), self.size)
                spread[part] = levels @ self.unit_weights**-2.0
            return spread
        for start, rows in factor.row_blocks():
            stop = start + len(rows)
            left = self.contrasts(rows.T)
            right = left if factor is other else self.contrasts(other.rows(start, stop).T)
            for a, b in zip(left, right, strict=True):
                spread[start:stop] += np.einsum("ij,ij->j", a, b)
        return spread

    def trace(self, gram: PairGram) -> float:
        if gram.left is gram.right:
            return float(level_spreads(gram.left) @ self.unit_weights**-2.0)
        return float(self.spreads(gram.left, gram.right).sum())


def is_tractable(gram: PairGram) -> bool:
    """Whether the errors of a Gram's queries under a tree take little work."""
    if not gram.tells:
        return True
    factor, entries = gram.left, math.prod(gram.left.shape)
    if factor is not gram.right or factor.kind == "all-ranges":
        return factor is gram.right or entries <= MEMORY // 2
    are_few = 2 * len(factor) <= ARRAY
    return entries <= MEMORY // 2 or (are_few and factor.weighted_ranges() is not None)


_SPREADS: WeakKeyDictionary[LinearMap, Floats] = WeakKeyDictionary()


def level_spreads(factor: LinearMap) -> Floats:
    """``e_ℓ`` of each level: ``tr(P·WᵀW)`` where the squared weights of levels are 1; kept.

    Ranges take O(queries) per level, all ranges O(values), other factors O(queries · values).
    """
    if factor not in _SPREADS:
        size = factor.shape[1]
        ranges = None if factor.kind == "all-ranges" else factor.weighted_ranges()
        sums = np.zeros(tree_levels(size))
        if factor.kind == "all-ranges":
            sums = _of_all_ranges(size)
        elif ranges is not None:
            for part in _blocks(len(factor)):
                sums += _of_ranges(ranges.part(part), size).sum(axis=0)
        else:
            plain = TreeBasis(size, np.ones(tree_levels(size)))
            for _, rows in factor.row_blocks():
                sums += [float(np.vdot(c, c)) for c in plain.contrasts(rows.T)]
        _SPREADS[factor] = sums
    return _SPREADS[factor]


def _blocks(count: int) -> Iterator[slice]:
    height = BLOCK // 16  # of one number per level
    for start in range(0, count, height):
        yield slice(start, start + height)


def _leaves_before(values: Integers, size: int) -> Integers:
    """Leaves of a whole tree before a value: one that is not in a pair has two of them."""
    paired = _paired(size)
    return np.where(values < paired, values, 2 * values - paired)


def _of_all_ranges(size: int) -> Floats:
    """The sum of `_of_ranges` over all ranges.

    A range is the difference of two of the n + 1 prefixes. With the leaves F that these have in a
    block, the squares of all differences add up to ``(n + 1)·ΣF² − (ΣF)²``.
    """
    ends = _leaves_before(np.arange(size + 1), size)
    energies = []
    for span in [1, *_spans(size).astype(np.int64).tolist()]:
        block, inside = ends // span, (ends % span).astype(np.float64)
        blocks = (1 << tree_levels(size)) // span
        beyond = np.cumsum(np.bincount(block, minlength=blocks + 1)[::-1])[::-1][1:]
        first = np.bincount(block, inside, blocks + 1)[:blocks] + span * beyond
        second = np.bincount(block, inside**2, blocks + 1)[:blocks] + float(span) ** 2 * beyond
        energies.append(float(np.sum((size + 1) * second - first**2)) / span)
    return np.asarray(-np.diff(energies) / _spans(size))


def _of_ranges(ranges: WeightedRanges, size: int) -> Floats:
    """What each range of values has on each level (ranges × levels)."""
    low, high = _leaves_before(ranges.first, size), _leaves_before(ranges.last + 1, size) - 1
    leaves, spans = WeightedRanges(low, high, ranges.weights), _spans(size)
    energies = [range_energy(leaves, int(span)) for span in [1, *spans]]
    return np.asarray(-np.diff(np.stack(energies, axis=1), axis=1) / spans)
