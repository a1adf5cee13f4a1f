"""``WᵀW`` as an operator, at the resolution of single cells and of blocks of neighbouring cells.

A descent over rows in addition to the identity (`lrm.planning.solvers.extra_rows`) needs the
workload only through ``WᵀW`` applied to a few columns. For prefix sums and all ranges these are two
cumulative sums; for ranges in general, and for queries that are nearly such, the differences of
neighbouring columns of W are sparse where W is not; for anything else W itself is applied twice.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from lrm.clock import work_of
from lrm.planning.design.plus_rows import SPARSE_SHARE, PlusRows
from lrm.queries.maps.linear import Floats, Integers, LinearMap, WeightedRanges
from lrm.queries.maps.words import chain_times, running_totals

CHAIN_PASSES = 6
"""Times that two running totals and what surrounds them go over an array."""


class GramOperator(ABC):
    """``E·WᵀW·Eᵀ``, where E adds up the cells of each block.

    Parameters
    ----------
    widths
        Number of cells of each block.
    energies
        ``Σ_j (WᵀW)_jj`` over the cells j of each block.
    """

    widths: Floats
    energies: Floats

    @property
    def cells(self) -> int:
        """Number of blocks."""
        return len(self.widths)

    @abstractmethod
    def times(self, columns: Floats) -> Floats:
        """The operator applied to the columns of a blocks × c array."""

    def work(self, columns: int) -> float:
        """Counted work of `times` for this number of columns; by default that of an array."""
        return work_of(1.0 * self.cells * self.cells * columns)

    @abstractmethod
    def coarser(self, factor: int) -> GramOperator:
        """The operator with ``factor`` neighbouring blocks in one."""

    def through(self, plus: PlusRows) -> tuple[float, Floats, Floats]:
        """``tr(M⁻¹·A·G·Aᵀ)``, ``Q = M⁻¹·A·G`` and ``M⁻¹·A·G·Aᵀ·M⁻¹`` for rows as arrays."""
        A = plus.dense_rows
        Q = plus.solve_inner(self.times(np.ascontiguousarray(A.T)).T)
        return float(np.vdot(A, Q)), Q, plus.solve_inner((Q @ A.T).T)


@dataclass(frozen=True, eq=False)
class ChainGram(GramOperator):
    """``G_ij = left_i · right_j`` for i ≤ j, and something more on the diagonal."""

    widths: Floats
    energies: Floats
    left: Floats
    right: Floats
    excess: Floats

    def times(self, columns: Floats) -> Floats:
        product = chain_times(self.left, self.right, columns)
        product += self.excess[:, None] * columns
        return product

    def work(self, columns: int) -> float:
        return work_of(0.0, CHAIN_PASSES * self.cells * columns)

    def coarser(self, factor: int) -> ChainGram:
        starts = np.arange(0, self.cells, factor)
        widths, energies, left, right = (
            np.add.reduceat(values, starts)
            for values in (self.widths, self.energies, self.left, self.right)
        )
        running = np.cumsum(self.left)
        block = np.arange(self.cells) // factor
        before = running - self.left - (running - self.left)[starts][block]
        inside = np.add.reduceat(self.excess + self.right * (self.left + 2 * before), starts)
        return ChainGram(widths, energies, left, right, inside - left * right)


@dataclass(frozen=True, eq=False)
class FactorGram(GramOperator):
    """``G = VᵀV`` for a matrix V, sparse or dense."""

    widths: Floats
    energies: Floats
    factor: Floats | sp.csr_array

    @cached_property
    def _differences(self) -> sp.csr_array | None:
        """D with ``V = D·(running totals)``, where it has far fewer entries than V."""
        return None if isinstance(self.factor, np.ndarray) else _few_differences(self.factor)

    def through(self, plus: PlusRows) -> tuple[float, Floats, Floats]:
        if self._differences is not None:
            return super().through(plus)
        # Two products of rows × cells × queries; all else has the size of the queries.
        C = np.asarray(plus.scaled @ self.factor.T)
        Z = plus.solve_inner(C)
        return float(np.vdot(C, Z)), np.asarray(Z @ self.factor), Z @ Z.T

    def times(self, columns: Floats) -> Floats:
        differences = self._differences
        if differences is None:
            return np.asarray(self.factor.T @ (self.factor @ columns))
        return _through_differences(differences, columns)

    def work(self, columns: int) -> float:
        return work_of(2.0 * self.factor.shape[0] * self.cells * columns)

    def coarser(self, factor: int) -> FactorGram:
        cells = self.cells
        starts = np.arange(0, cells, factor)
        blocks = sp.csr_array(
            (np.ones(cells), (np.arange(cells), np.arange(cells) // factor)),
            shape=(cells, len(starts)),
        )
        return FactorGram(
            np.add.reduceat(self.widths, starts),
            np.add.reduceat(self.energies, starts),
            _compact(self.factor @ blocks),
        )


def _few_differences(matrix: sp.csr_array) -> sp.csr_array | None:
    """The differences of neighbouring columns, where they have far fewer entries."""
    last = sp.csr_array((matrix.shape[0], 1))
    differences = sp.csr_array(matrix - sp.hstack([matrix[:, 1:], last], format="csr"))
    differences.eliminate_zeros()
    return differences if 3 * differences.nnz < matrix.nnz else None


def _compact(matrix: Floats | sp.csr_array) -> Floats | sp.csr_array:
    """An array, or a sparse matrix of few entries or of few differences."""
    if isinstance(matrix, np.ndarray):
        return matrix
    few = matrix.nnz < SPARSE_SHARE * matrix.shape[0] * matrix.shape[1]
    if few or _few_differences(matrix) is not None:
        return sp.csr_array(matrix)
    return np.asarray(matrix.toarray())


@dataclass(frozen=True, eq=False)
class RangeGram(GramOperator):
    """``WᵀW`` of ranges of cells, through the differences of neighbouring columns of W alone.

    Parameters
    ----------
    ranges
        The queries.
    lone_energies
        ``(WᵀW)_jj`` of each cell j.
    size
        Cells of a block; of the last, whatever is left.
    """

    ranges: WeightedRanges
    lone_energies: Floats
    size: int = 1

    @cached_property
    def _starts(self) -> Integers:
        """The first cell of each block."""
        return np.arange(0, len(self.lone_energies), self.size)

    @cached_property
    def widths(self) -> Floats:  # type: ignore[override]
        return np.diff(self._starts, append=len(self.lone_energies)).astype(np.float64)

    @cached_property
    def energies(self) -> Floats:  # type: ignore[override]
        return np.asarray(np.add.reduceat(self.lone_energies, self._starts))

    @cached_property
    def _differences(self) -> sp.csr_array:
        """D with ``V = D·(running totals)``: what a range covers of a block, and of the next.

        These differ at most where the range begins and ends.
        """
        ranges, blocks = self.ranges, len(self._starts)
        first, last = ranges.first // self.size, ranges.last // self.size
        # One place for each difference: where a range ends near its beginning, twice the same.
        places = np.sort(np.stack([first - 1, first, last - 1, last]), axis=0)
        new = np.diff(places, axis=0, prepend=-2) != 0
        query = np.broadcast_to(np.arange(len(first)), places.shape)
        new &= places >= 0
        place, query = places[new], query[new]
        values = self._covered(query, place) - self._covered(query, place + 1)
        return sp.csr_array((values, (query, place)), shape=(len(first), blocks))

    def _covered(self, query: Integers, block: Integers) -> Floats:
        """The cells of a block that a query covers, times its weight."""
        low = np.maximum(self.ranges.first[query], block * self.size)
        high = np.minimum(self.ranges.last[query] + 1, (block + 1) * self.size)
        return np.asarray(np.maximum(high - low, 0) * self.ranges.weights[query])

    def times(self, columns: Floats) -> Floats:
        return _through_differences(self._differences, columns)

    def work(self, columns: int) -> float:
        entries = CHAIN_PASSES * self.cells + 2 * len(self.ranges.first)
        return work_of(0.0, entries * columns)

    def coarser(self, factor: int) -> RangeGram:
        return RangeGram(self.ranges, self.lone_energies, self.size * factor)


def _through_differences(differences: sp.csr_array, columns: Floats) -> Floats:
    """``VᵀV @ columns`` for ``V = D·(running totals)``."""
    totals = columns.copy()
    running_totals(totals)
    image = np.asarray(differences.T @ (differences @ totals))
    running_totals(image[::-1])
    return image


def gram_operator(queries: LinearMap) -> GramOperator:
    """``WᵀW`` of a map at the resolution of single cells.

    >>> from lrm.queries.maps.words import Prefix
    >>> gram_operator(Prefix(3)).times(np.eye(3))
    array([[3., 2., 1.],
           [2., 2., 1.],
           [1., 1., 1.]])
    """
    structured = structured_gram(queries)
    if structured is not None:
        return structured
    energies = queries.column_squared_sums()
    return FactorGram(np.ones(queries.shape[1]), energies, _compact(queries.sparse()))


def structured_gram(queries: LinearMap) -> GramOperator | None:
    """``WᵀW`` of prefix sums, all ranges or some ranges, which takes O(cells + queries) a column.

    None for all other maps.
    """
    chain = queries.gram_chain()
    if chain is not None:
        cells = queries.shape[1]
        return ChainGram(np.ones(cells), queries.column_squared_sums(), *chain, np.zeros(cells))
    ranges = queries.weighted_ranges()
    return None if ranges is None else RangeGram(ranges, queries.column_squared_sums())
