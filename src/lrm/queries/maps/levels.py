"""Strategies that weigh whole levels of a tree, without their matrix.

Split n cells into blocks of s₀ = 1, s₁ = b₁, s₂ = b₁b₂, … cells. Let A_ℓ be the
projector that replaces each cell by the average of its level-ℓ block. A strategy that
measures all blocks of a level with one weight has a Gram matrix in these projectors,

    LᵀL = Σ_ℓ λ_ℓ (A_ℓ − A_{ℓ+1}),        A_{h+1} = 0,

and so have its inverse, with 1/λ_ℓ, and its error. Both the tree of block totals
(hierarchical mechanism) and the tree of block contrasts (Haar wavelet) are of this form.
A product with the inverse costs O(n·levels); nothing of size n×n is ever built.

With ``G⁻¹ = Σ_ℓ (1/λ_ℓ)(A_ℓ − A_{ℓ+1})`` the squared norm of B, and of each
of its rows, follows from how much of W each block average sees:
``‖B‖² = Σ_ℓ (1/λ_ℓ)(a_ℓ − a_{ℓ+1})`` with ``a_ℓ = tr(W A_ℓ Wᵀ)``. For a matrix a_ℓ takes the sums
over blocks, each from those of the level below: O(m·n) for all levels together, O(entries) for
each level of a sparse one. For ranges it takes O(m) for each level. For prefix sums and all ranges
a_ℓ is a sum of polynomials over blocks: O(n) for all levels together.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import ConvergenceError, WorkloadError
from lrm.queries.maps.linear import (
    MOST_SIDE,
    Floats,
    Integers,
    LeftInverse,
    LinearMap,
    RowWeights,
    StoredMap,
    WeightedRanges,
)
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.whole import WholeSums, equal_totals, whole_numbers

SPARE_LEAVES = 64
"""Upper bound on the leaves of a tree per cell, or ``MOST_SPARE_LEAVES`` in all."""

MOST_SPARE_LEAVES = 1 << 20
MOST_LEVELS = 64

SPARSE_PAYS = 8
"""How many times fewer entries than places a matrix must have to be summed by its entries."""


@dataclass(frozen=True, eq=False)
class LevelMap(LinearMap):
    """Blocks of a tree over the cells, one weight per level, from the leaves up.

    Parameters
    ----------
    cells
        Number of cells n. Where n is not the product of the fan-outs, the tree stands
        over more cells, whose count is 0.
    fanouts
        Children of a node at each level, leaves first.
    weights
        One weight per level (leaves first, root last); a level of weight 0 is not measured.
    contrast
        False: a row is the weighted total of a block. True (fan-out 2 only): a row is the
        weighted difference of the two halves of a block, the last weight is the total's,
        and the first is unused and 0.

    >>> LevelMap(4, (2, 2), (1.0, 0.0, 2.0)).dense()
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.],
           [2., 2., 2., 2.]])
    """

    cells: int
    fanouts: tuple[int, ...]
    weights: tuple[float, ...]
    contrast: bool = False
    kind: ClassVar[str] = "levels"
    file_values: ClassVar[tuple[str, ...]] = ("cells", "fanouts", "weights", "contrast")

    def __post_init__(self) -> None:
        expected = len(self.fanouts) + 1 + self.contrast
        if len(self.fanouts) > MOST_LEVELS:
            raise WorkloadError(f"a tree has at most {MOST_LEVELS} levels")
        if len(self.weights) != expected:
            raise WorkloadError(f"{expected} levels need {expected} weights")
        if not all(math.isfinite(weight) for weight in self.weights) or not any(self.weights):
            raise WorkloadError("the weights of a tree must be finite, and one of them not 0")
        if min(self.fanouts, default=2) < 2:
            raise WorkloadError("every node of a tree needs at least 2 children")
        if self.contrast and (set(self.fanouts) - {2} or self.weights[0] != 0):
            raise WorkloadError("contrasts need fan-out 2 everywhere and no weight on the leaves")
        if not 1 <= self.cells <= self.leaves:
            raise WorkloadError(f"a tree of {self.leaves} leaves cannot cover {self.cells} cells")
        if self.leaves > max(MOST_SPARE_LEAVES, SPARE_LEAVES * self.cells):
            raise WorkloadError(
                f"a tree of {self.leaves:,} leaves is too large for {self.cells:,} cells; "
                "choose a smaller fan-out"
            )
        object.__setattr__(self, "shape", (self._row_count(), self.cells))

    @property
    def leaves(self) -> int:
        """Number of leaves, at least the number of cells."""
        return prod(self.fanouts)

    def _measured(self) -> list[tuple[int, float, bool]]:
        """``(block size, weight, is contrast)`` of the measured levels."""
        sizes = level_sizes(self.fanouts)
        if not self.contrast:
            levels = [(size, w, False) for size, w in zip(sizes, self.weights, strict=True)]
        else:
            levels = [(s, w, True) for s, w in zip(sizes, self.weights[:-1], strict=True)]
            levels.append((sizes[-1], self.weights[-1], False))
        return [level for level in levels if level[1] != 0]

    def _row_count(self) -> int:
        return sum(self.leaves // size for size, _, _ in self._measured())

    def eigenvalues(self) -> Floats:
        """λ_ℓ of LᵀL on the part of level ℓ that the level above does not see."""
        sizes = np.array(level_sizes(self.fanouts), dtype=np.float64)
        weights = np.array(self.weights)
        if not self.contrast:
            return np.cumsum(weights**2 * sizes)
        within = weights[1:-1] ** 2 * sizes[1:]
        return np.append(within, weights[-1] ** 2 * sizes[-1])

    def column_norm(self, order: int = 1) -> float:
        """L1 (or L2) norm of a column of the whole tree: every column has the same."""
        return float(np.linalg.norm([weight for _, weight, _ in self._measured()], ord=order))

    def with_weights(self, weights: tuple[float, ...]) -> LevelMap:
        """Return a tree of this shape with other weights."""
        return LevelMap(self.cells, self.fanouts, weights, self.contrast)

    def scaled(self, factor: float) -> LevelMap:
        return self.with_weights(tuple(weight * factor for weight in self.weights))

    def rounded(self, factor: float) -> LevelMap:
        return self.with_weights(tuple(float(np.rint(w * factor)) for w in self.weights))

    def written_out(self) -> SparseMap:
        return SparseMap(self.sparse())

    def compact(self, *, drop_idle: bool) -> LevelMap:
        del drop_idle  # its closed forms need every block
        return self

    def known_inverse(self) -> LevelInverse:
        if not np.all(self.eigenvalues() > 0):
            raise ConvergenceError("this tree does not determine its cells: a level has no weight")
        return LevelInverse(self)

    @property
    def entry_count(self) -> int:
        return self.cells * (len(self.fanouts) + 1)

    def reconstruction_squared_norm(self, queries: LinearMap) -> float:
        """``‖B‖_F²`` of the least-squares reconstruction of queries from this tree."""
        return float(np.sum(level_energies(queries, self.fanouts) / self.eigenvalues()))

    def over_all_leaves(self) -> LevelMap:
        """Return the tree of this shape with a cell for every leaf."""
        return LevelMap(self.leaves, self.fanouts, self.weights, self.contrast)

    def apply(self, x: Floats) -> Floats:
        return np.concatenate([weight * sums for weight, sums in self._block_sums(x)])

    def integer_column_sums(self, power: int) -> WholeSums:
        total = sum(abs(weight) ** power for weight in self._whole_weights())
        return equal_totals(total, self.cells)

    def integer_column_peaks(self) -> Integers:
        return np.full(self.cells, max(map(abs, self._whole_weights())), dtype=np.int64)

    def _whole_weights(self) -> list[int]:
        """The weights as Python's integers: a cell is in one block of each level."""
        return [int(weight) for weight in whole_numbers(np.array(self.weights, dtype=np.float64))]

    def apply_exactly(self, x: Integers) -> Integers:
        self._whole_weights()
        return np.concatenate([int(weight) * sums for weight, sums in self._block_sums(x)])

    def _block_sums(self, x: NDArray[Any]) -> Iterator[tuple[float, NDArray[Any]]]:
        """The weight of each measured level, and the totals or contrasts of its blocks."""
        padded = np.zeros((self.leaves, *x.shape[1:]), dtype=x.dtype)
        padded[: self.cells] = x
        for size, weight, contrast in self._measured():
            if contrast:
                halves = padded.reshape(-1, 2, size // 2, *x.shape[1:]).sum(axis=2)
                yield weight, halves[:, 0] - halves[:, 1]
            else:
                yield weight, padded.reshape(-1, size, *x.shape[1:]).sum(axis=1)

    def apply_transpose(self, y: Floats) -> Floats:
        cells = np.zeros((self.leaves, *y.shape[1:]))
        start = 0
        for size, weight, contrast in self._measured():
            stop = start + self.leaves // size
            block = weight * y[start:stop]
            if contrast:
                halves = np.stack([block, -block], axis=1).reshape(-1, *y.shape[1:])
                cells += np.repeat(halves, size // 2, axis=0)
            else:
                cells += np.repeat(block, size, axis=0)
            start = stop
        return cells[: self.cells]

    def solve_gram(self, x: Floats) -> Floats:
        """``(LᵀL)⁻¹ x`` over all leaves, for x given on all leaves."""
        inverse = 1.0 / self.eigenvalues()
        change = np.diff(inverse, prepend=0.0)  # Σ (1/λ_ℓ)(A_ℓ − A_{ℓ+1}), summed by parts
        result = np.zeros_like(x)
        for size, step in zip(level_sizes(self.fanouts), change, strict=True):
            mean = x.reshape(-1, size, *x.shape[1:]).mean(axis=1)
            result += step * np.repeat(mean, size, axis=0)
        return result

    def sparse(self) -> sp.csr_array:
        blocks = []
        for size, weight, contrast in self._measured():
            cell = np.arange(self.cells)
            value = np.full(self.cells, weight)
            if contrast:
                value[(cell % size) >= size // 2] *= -1
            shape = (self.leaves // size, self.cells)
            blocks.append(sp.csr_array((value, (cell // size, cell)), shape=shape))
        return sp.csr_array(sp.vstack(blocks))

    def column_absolute_sums(self) -> Floats:
        return np.full(self.cells, self.column_norm())

    def column_squared_sums(self) -> Floats:
        return np.full(self.cells, self.column_norm(2) ** 2)

    def is_integer(self) -> bool:
        return DenseMap(np.array([self.weights])).is_integer()

    def contents(self) -> dict[str, Any]:
        return {
            "cells": self.cells,
            "fanouts": self.fanouts,
            "weights": self.weights,
            "contrast": self.contrast,
        }

    @classmethod
    def from_file(cls, stored: StoredMap) -> LevelMap:
        return LevelMap(
            stored.cells(),
            stored.facts.integers("fanouts", 2, MOST_SIDE)[: MOST_LEVELS + 1],
            stored.facts.numbers("weights"),
            stored.facts.flag("contrast"),
        )


@dataclass(frozen=True, eq=False)
class LevelInverse(LeftInverse):
    """L⁺ of a tree with one weight per level, in closed form."""

    tree: LevelMap

    @property
    def is_closed_form(self) -> bool:
        return True

    def rows_times(self, rows: Floats) -> Floats:
        padded = np.zeros((self.tree.leaves, len(rows)))
        padded[: self.tree.cells] = rows.T
        return self.tree.over_all_leaves().apply(self.tree.solve_gram(padded)).T

    def estimate(self, measurements: Floats) -> Floats:
        right = self.tree.over_all_leaves().apply_transpose(measurements)
        return self.tree.solve_gram(right)[: self.tree.cells]

    def row_squared_norms(self, queries: LinearMap) -> Floats | None:
        ranges = queries.weighted_ranges()
        if ranges is None:
            return None
        return range_squared_norms(ranges, self.tree.fanouts, self.tree.eigenvalues())

    def squared_norm(self, queries: LinearMap) -> float | None:
        if not queries.has_closed_forms:
            return None
        return self.tree.reconstruction_squared_norm(queries)

    def weight_count(self, queries: LinearMap) -> int | None:
        levels = len(self.tree.fanouts)
        if queries.weighted_ranges(0, 0) is None:
            return None
        # About half of the pairs of levels of one end have weights.
        return queries.shape[0] * (2 * levels + 1 if self.tree.contrast else (levels + 1) ** 2)

    def row_weights(self, queries: LinearMap, start: int, stop: int) -> RowWeights:
        ranges = queries.weighted_ranges(start, stop)
        assert ranges is not None  # noqa: S101 - by weight_count
        first, beyond, factors = ranges.first, ranges.last + 1, ranges.weights[:, None]
        if self.tree.contrast:
            return RowWeights.of_rows(factors * contrast_weights(first, beyond, self.tree))
        values, counts = block_weights(first, beyond, self.tree)
        return RowWeights.of_rows(factors * values, counts)


def level_sizes(fanouts: tuple[int, ...]) -> tuple[int, ...]:
    """Block sizes of the levels, from the leaves up.

    >>> level_sizes((2, 3))
    (1, 2, 6)
    """
    return tuple(prod(fanouts[:level]) for level in range(len(fanouts) + 1))


def _matrix_energies(rows: Floats | sp.csr_array, fanouts: tuple[int, ...]) -> Floats:
    """``a_ℓ`` of some queries, for every level: each from the sums over blocks of the one below."""
    energies = [float((rows**2).sum())]
    for fanout, size in zip(fanouts, level_sizes(fanouts)[1:], strict=True):
        cells = np.arange(rows.shape[1])
        shape = (rows.shape[1], -(-rows.shape[1] // fanout))
        rows = rows @ sp.csr_array((np.ones(len(cells)), (cells, cells // fanout)), shape=shape)
        energies.append(float((rows**2).sum()) / size)
    return np.array(energies)


def level_energies(queries: LinearMap, fanouts: tuple[int, ...]) -> Floats:
    """``a_ℓ − a_{ℓ+1}`` of every level, leaves first."""
    ranges = None if queries.has_closed_forms else queries.weighted_ranges()
    if queries.has_closed_forms:
        seen = np.array([queries.block_energy(size) for size in level_sizes(fanouts)])
    elif ranges is not None:
        seen = np.array([range_energy(ranges, size).sum() for size in level_sizes(fanouts)])
    elif SPARSE_PAYS * queries.entry_count < prod(queries.shape):
        seen = _matrix_energies(queries.sparse(), fanouts)
    else:
        parts = [_matrix_energies(rows, fanouts) for _, rows in queries.row_blocks()]
        seen = np.sum(parts, axis=0)
    return -np.diff(seen, append=0.0)


def range_squared_norms(
    ranges: WeightedRanges, fanouts: tuple[int, ...], eigenvalues: Floats
) -> Floats:
    """Squared norm of the row of B for each range of cells."""
    inverse = np.diff(1.0 / eigenvalues, prepend=0.0)
    steps = [*zip(level_sizes(fanouts), inverse, strict=True)]
    result = np.zeros(len(ranges.first))
    for start in range(
        0, len(result), 1 << 14
    ):  # what stays in the cache takes a third of the time
        part = slice(start, start + (1 << 14))
        for size, step in steps:
            result[part] += step * range_energy(ranges.part(part), size)
    return result


def range_energy(ranges: WeightedRanges, size: int) -> Floats:
    """``wᵀA w`` for ranges w of cells: whole blocks, and the two ends."""
    first, last = ranges.first, ranges.last
    low, high = first // size, last // size
    inside = (last - first + 1) ** 2 / size
    head = (low + 1) * size - first
    tail = last + 1 - high * size
    across = (head**2 + tail**2) / size + (high - low - 1) * size
    return np.asarray(np.where(low == high, inside, across) * ranges.weights**2)


def _covered(first: Integers, beyond: Integers, block: Integers, size: int) -> Floats:
    """How many cells of each block lie in ``first:beyond``."""
    inside = np.minimum(beyond, (block + 1) * size) - np.maximum(first, block * size)
    return np.asarray(np.maximum(inside, 0), dtype=np.float64)


def contrast_weights(first: Integers, beyond: Integers, tree: LevelMap) -> Floats:
    """The weights in B of the ranges ``first:beyond``, from a tree of contrasts.

    Of contrasts only those of the two blocks of a level count that an end of the range cuts: all
    others see the same in both halves. A contrast weighs ``w·(l − r)/λ``, where l and r are the
    cells of its halves in the range.
    """
    sizes, inverse = level_sizes(tree.fanouts), 1.0 / tree.eigenvalues()
    columns = [tree.weights[-1] * inverse[-1] * (beyond - first)]
    for level in range(1, len(sizes)):
        half, factor = sizes[level - 1], tree.weights[level] * inverse[level - 1]
        for end in (first, beyond):
            left = end // sizes[level] * 2
            seen = _covered(first, beyond, left, half) - _covered(first, beyond, left + 1, half)
            if end is beyond:  # the block of both ends counts once
                seen[first // sizes[level] == beyond // sizes[level]] = 0.0
            columns.append(factor * seen)
    return np.column_stack(columns)


def block_weights(first: Integers, beyond: Integers, tree: LevelMap) -> tuple[Floats, Floats]:
    """The different weights in B of the ranges ``first:beyond`` from a tree, and how often each is.

    With ``(LᵀL)⁻¹ = Σ_ℓ d_ℓ·A_ℓ`` and ``D_k = d_0 + … + d_k``, a block of level k and size s
    weighs ``w_k·s·(D_k·f + Σ_{ℓ>k} d_ℓ·f_ℓ)``, where f is its share in the range and f_ℓ that of
    the block of level ℓ that holds it. Where no end of the range cuts it, f is 0 or 1, and so are
    all f_ℓ below the first block that is cut; so blocks of one level below one cut block have two
    weights. One block per end and level is cut at most, and the root stands for one.
    """
    sizes = level_sizes(tree.fanouts)
    sums = 1.0 / tree.eigenvalues()  # D_0, D_1, …
    steps = np.diff(sums, prepend=0.0)
    top = len(sizes) - 1
    blocks = [[end // size for size in sizes] for end in (first, beyond)]
    cut: list[list[NDArray[np.bool_]]] = [[], []]
    for level, size in enumerate(sizes):
        by_first = (first % size != 0) | (level == top)
        same = by_first & (blocks[0][level] == blocks[1][level])
        cut[0].append(by_first)
        cut[1].append((beyond % size != 0) & ~same)
    values: list[Floats] = []
    counts: list[Floats] = []
    for ends_cut, ends_blocks in zip(cut, blocks, strict=True):
        above = np.zeros(len(first))  # Σ d_ℓ·f_ℓ of the level and those above
        for level in range(top, -1, -1):
            size, block = sizes[level], ends_blocks[level]
            share = _covered(first, beyond, block, size) / size
            is_cut = ends_cut[level].astype(np.float64)
            values.append(tree.weights[level] * size * (sums[level] * share + above))
            counts.append(is_cut)
            above = above + steps[level] * share
            if not level:
                continue
            child, fanout = sizes[level - 1], tree.fanouts[level - 1]
            low, high = block * fanout, (block + 1) * fanout
            whole = np.minimum(beyond // child, high) - np.maximum(-(-first // child), low)
            whole = np.maximum(whole, 0)
            cut_children = sum(
                (some_cut[level - 1] & (some_blocks[level - 1] // fanout == block)).astype(np.int64)
                for some_cut, some_blocks in zip(cut, blocks, strict=True)
            )
            for below in range(level):
                often = is_cut * (child // sizes[below])
                factor = tree.weights[below] * sizes[below]
                values += [factor * (sums[level - 1] + above), factor * above]
                counts += [often * whole, often * (fanout - whole - cut_children)]
    return np.column_stack(values), np.column_stack(counts)
