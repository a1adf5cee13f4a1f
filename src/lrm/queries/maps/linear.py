"""Linear maps: the queries of a workload as an operator first, a matrix on demand.

A map of shape ``(m, n)`` answers ``m`` queries over ``n`` cells. Dense and sparse matrices are
maps (`matrices`); totals, identities, prefix sums and all ranges (`words`), trees (`levels`) and
products of attributes (`products`) are maps that never build their matrix. Code that needs numbers
asks for the least that is sufficient: a product, a block of rows, some columns, the Gram matrix
``WᵀW``.

A map answers for itself. Code for queries and strategies never asks of which kind it is; code for
products asks it of factors alone. A new kind says what defines it (`contents`, which `from_file`
reads back) and how it is written out as a matrix, and overrides the methods for which it has a
closed form. `lrm.queries.maps.files.KINDS` lists the kinds that files may hold.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.queries.maps.whole import WholeSums, exact_totals, whole_numbers

if TYPE_CHECKING:
    from lrm.files.facts import Arrays, Facts

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK_ENTRIES = 1 << 22
"""How many float64 entries (32 MB) one block of rows may have."""

TINY = 1e-300
"""A number that stands for 0 where one is divided by or a logarithm taken."""

CANCELLED = 1e-7
"""A difference that is a smaller share of its terms than this has lost too many digits."""


SMALL_CELLS = 512
"""Up to this many cells ``WᵀW`` is kept: 2 MB, and faster than cumulative sums."""

CHECKED_AT_ONCE = 1 << 18
"""Entries of the matrix that are compared in one piece."""


MOST_COUNTED = 1 << 16
"""The most numbers whose distinct values are found by a table, without sorting."""

MOST_PAIRED = 1 << 62
"""Tuples of labels that 64-bit integers number."""

MOST_SIDE = 1 << 40
"""Rows or columns that a file may state."""

Shape = tuple[int | None, int | None]
"""Rows and columns; None stands for any number."""


@dataclass(frozen=True)
class StoredMap:
    """What a file holds of a map: anything, for anybody may have written it.

    Parameters
    ----------
    name
        The name of the map in the file, for errors.
    facts
        Its plain values, those that its class names in ``file_values``.
    arrays, shape
        The arrays of the file, and the shape that the map must have.
    """

    name: str
    facts: Facts
    arrays: Arrays
    shape: Shape

    def array(self, key: str, kind: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """The array ``key`` of ``contents``, of float64 (``"f8"``) or int64 (``"i8"``)."""
        return self.arrays.take(f"{self.name}-{key}", kind, shape)

    def cells(self, key: str = "cells") -> int:
        """The plain value ``key``, a number of cells that is not above that of the shape."""
        return self.facts.integer(key, 1, self.shape[1] or MOST_SIDE)


@dataclass(frozen=True, eq=False)
class WeightedRanges:
    """Queries that each sum a range of neighbouring cells, times a weight.

    ``first`` and ``last`` are cells of the range, for each query.
    """

    first: Integers
    last: Integers
    weights: Floats

    def part(self, queries: slice) -> WeightedRanges:
        """Some of the queries."""
        return WeightedRanges(self.first[queries], self.last[queries], self.weights[queries])


class LinearMap(ABC):
    """``m`` linear queries over ``n`` cells.

    A kind must have ``shape``, ``kind``, ``contents`` and ``written_out``, and ``file_values`` and
    ``from_file`` to be saved. All else has a default that asks the matrix.
    """

    shape: tuple[int, int]
    kind: ClassVar[str]
    """The name of the form, as files spell it."""
    file_values: ClassVar[tuple[str, ...]] = ()
    """Names of the plain values in ``contents``; whatever else it has is an array."""
    has_closed_forms: ClassVar[bool] = False
    """Whether ``known_singular_values``, ``block_energy`` and ``gram`` take no matrix.

    All three must be overridden then; ``gram`` is free of rounding. Over more than
    ``settings.LONG_CELLS`` cells ``best`` measures trees, whose errors follow from them, and there
    importance is not supported."""
    is_known_by_gram: ClassVar[bool] = False
    """Whether n rows with the same Gram matrix should replace the rows."""
    has_distinct_columns: ClassVar[bool] = False
    """Whether no two columns are multiples of each other, by construction."""
    is_word: ClassVar[bool] = False
    """Whether its number of cells is all that there is to know about it, as of ``words.WORDS``."""

    def __len__(self) -> int:
        """Number of queries."""
        return self.shape[0]

    def __bool__(self) -> bool:
        """A map is something, even where its queries are too many for ``len``."""
        return True

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """Everything that defines the map: plain values of JSON, and arrays of float64 or int64."""

    @classmethod
    def from_file(cls, stored: StoredMap) -> LinearMap:
        """Build the map from its ``contents`` in a file, which is not trusted.

        Every number is bounded before an array of that size is made; the shape is compared
        afterwards (`lrm.queries.maps.files.unpack_map`).
        """
        raise NotImplementedError(f"{cls.kind} cannot be read from files: {stored.name}")

    @abstractmethod
    def written_out(self) -> LinearMap:
        """Return the map as a dense or sparse matrix.

        The defaults below call it each time, ``row_blocks`` once per block: cache the matrix, or
        override ``rows`` too.
        """

    def apply(self, x: Floats) -> Floats:
        """``W @ x`` for a vector or an n×c matrix."""
        return self.written_out().apply(x)

    def apply_transpose(self, y: Floats) -> Floats:
        """``W.T @ y`` for a vector or an m×c matrix."""
        return self.written_out().apply_transpose(y)

    def rows(self, start: int, stop: int) -> Floats:
        """Rows ``start:stop`` as a dense array."""
        return self.written_out().rows(start, stop)

    def columns(self, indices: NDArray[np.intp]) -> LinearMap:
        """Restrict the map to some cells."""
        return self.written_out().columns(indices)

    def gram(self) -> Floats:
        """``WᵀW`` as a dense n×n array."""
        return self.written_out().gram()

    def column_absolute_sums(self) -> Floats:
        """``Σᵢ |Wᵢⱼ|`` for each cell j."""
        return self.written_out().column_absolute_sums()

    def column_power_sums(self, order: int) -> Floats:
        """``Σ|w|^order`` of each column: for 1 its L1 norm, for 2 its squared L2 norm."""
        return self.column_absolute_sums() if order == 1 else self.column_squared_sums()

    def column_squared_sums(self) -> Floats:
        """``Σᵢ Wᵢⱼ²`` for each cell j."""
        return self.written_out().column_squared_sums()

    def sparse(self) -> sp.csr_array:
        """The whole matrix with compressed rows."""
        return self.written_out().sparse()

    def squared_norm(self) -> float:
        """``‖W‖_F²``."""
        return float(self.column_squared_sums().sum())

    def gram_times(self, columns: Floats) -> Floats:
        """``WᵀW @ columns`` for an n×c matrix, through ``WᵀW`` only where that is small."""
        if self.small_gram is not None:
            return self.small_gram @ columns
        return self.apply_transpose(self.apply(columns))

    @cached_property
    def gram_sums(self) -> tuple[float, float]:
        """``‖W‖_F²`` and ``‖W·1‖²``: the trace of ``WᵀW``, and the sum of its entries."""
        return self.squared_norm(), float(np.vdot(self.row_totals, self.row_totals))

    @cached_property
    def row_totals(self) -> Floats:
        """``W·1``."""
        return self.apply(np.ones(self.shape[1]))

    @cached_property
    def small_gram(self) -> Floats | None:
        """``WᵀW``, cached where it is small and saves work."""
        return self.gram() if self.shape[1] <= min(SMALL_CELLS, 2 * self.shape[0]) else None

    def entrywise_apply(self, other: LinearMap, x: Floats) -> Floats:
        """``(W∘V) @ x`` for an n×c matrix, with the entrywise product of two maps of one shape."""
        result = np.empty((self.shape[0], x.shape[1]))
        for start, block in self.row_blocks():
            stop = start + len(block)
            result[start:stop] = (block * other.rows(start, stop)) @ x
        return result

    @cached_property
    def column_labels(self) -> Integers:
        """Equal numbers for equal columns, from 0."""
        # A batch may have 20,000 conditions, each a factor of one row.
        if self.shape[0] == 1 or (self.kind == "dense" and self.shape[0] <= 64):
            return labels_of_columns(self.dense())
        columns = self.sparse_columns()
        columns.eliminate_zeros()
        columns.sort_indices()
        return equal_columns(columns)

    @cached_property
    def total_factor(self) -> float | None:
        """The a with ``WᵀW = a·11ᵀ``, or None where W distinguishes some cells."""
        # Ended by the first row that is not constant: labels of 100,000 columns took a minute.
        if any(np.any(block != block[:, :1]) for _, block in self.row_blocks()):
            return None
        return float(self.column_squared_sums()[0])

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        """The smallest and the largest size of an entry that is not 0; (1, 1) without any."""
        sizes = np.abs(self.sparse().data)
        sizes = sizes[sizes > 0]
        return (float(sizes.min()), float(sizes.max())) if len(sizes) else (1.0, 1.0)

    def merged_columns(self, labels: Integers, cells: int) -> LinearMap:
        """The queries over merged cells: each number from 0 labels some of the cells.

        −1 labels a cell that is dropped.
        """
        if cells == self.shape[1] and np.array_equal(labels, np.arange(cells)):
            return self
        labelled_cells = np.flatnonzero(labels >= 0)
        places = np.full(cells, -1)
        places[labels[labelled_cells]] = labelled_cells
        if places.min() < 0:
            raise ValueError("a merged cell has no cell")
        return self.columns(places)

    def gram_chain(self) -> tuple[Floats, Floats] | None:
        """Vectors u and v with ``(WᵀW)_ij = u_i·v_j`` for i ≤ j, where there are such."""
        return None

    def dense(self) -> Floats:
        """The whole matrix; only solvers may ask for it."""
        return self.rows(0, self.shape[0])

    def sparse_columns(self) -> sp.csc_array:
        """The whole matrix with compressed columns."""
        return sp.csc_array(self.sparse())

    def integer_column_sums(self, power: int) -> WholeSums:
        """``Σᵢ |Wᵢⱼ|^power`` for each cell j, exactly.

        What privacy rests on: no float is rounded and no integer wraps around. A map that
        holds anything but whole numbers below 2^52 is refused.
        """
        matrix = self.sparse()
        sizes = np.abs(whole_numbers(matrix.data))
        return exact_totals(sizes, matrix.indices, self.shape[1], power)

    def integer_column_peaks(self) -> Integers:
        """``maxᵢ |Wᵢⱼ|`` for each cell j, of whole numbers below 2^52."""
        matrix = self.sparse()
        peaks = np.zeros(self.shape[1], dtype=np.int64)
        np.maximum.at(peaks, matrix.indices, np.abs(whole_numbers(matrix.data)))
        return peaks

    def apply_exactly(self, x: Integers) -> Integers:
        """``W @ x`` in 64-bit integers, for whole weights."""
        matrix = self.sparse()
        integer_matrix = sp.csr_array(
            (whole_numbers(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        return np.asarray(integer_matrix @ x)

    def scaled(self, factor: float) -> LinearMap:
        """``factor`` times the map."""
        return self.written_out().scaled(factor)

    def rounded(self, factor: float) -> LinearMap:
        """``factor`` times the map, rounded to whole numbers."""
        return self.written_out().rounded(factor)

    def scale_rows(self, factors: Floats) -> LinearMap:
        """The map with each query multiplied by a factor."""
        return self.written_out().scale_rows(factors)

    def scale_columns(self, factors: Floats) -> LinearMap:
        """The map with each cell multiplied by a factor."""
        return self.written_out().scale_columns(factors)

    def absolute(self) -> LinearMap:
        """The map of ``|Wᵢⱼ|``."""
        return self.written_out().absolute()

    def squared(self) -> LinearMap:
        """The map of ``Wᵢⱼ²``."""
        return self.written_out().squared()

    def compact(self, *, drop_idle: bool) -> LinearMap:
        """The map in the form that takes less memory; rows of zeros may go where they are idle."""
        return self.written_out().compact(drop_idle=drop_idle)

    def is_expansion_of(
        self, merged: LinearMap, index: Integers, factor: Integers, most: float
    ) -> bool:
        """Whether each column j is ``factor[j]`` times column ``index[j]`` of ``merged``.

        Weights may differ by ``most`` of the largest one of their query.
        """
        for start, block in self.row_blocks():
            again = merged.rows(start, start + len(block))[:, index] * factor
            sizes = np.abs(block).max(axis=1, keepdims=True)
            if np.any(np.abs(block - again) > most * sizes):
                return False
        return True

    def known_inverse(self) -> LeftInverse | None:
        """The closed form of the left inverse, where there is one."""
        return None

    def single_cell_rows(self) -> Integers | None:
        """For each cell a row that holds this cell alone, where that is cheap to see."""
        return None

    def known_singular_values(self) -> Floats | None:
        """The min(m, n) singular values, largest first, of maps with closed forms alone."""
        return None

    def block_energy(self, size: int) -> float:
        """``Σ ‖W·1_block‖² / size`` over blocks of ``size`` cells, of maps with closed forms."""
        raise NotImplementedError(f"{self.kind} has no closed form for blocks of {size} cells")

    def weighted_ranges(self, start: int = 0, stop: int | None = None) -> WeightedRanges | None:
        """The ranges of cells of the queries ``start:stop``, where every query of all is one."""
        del start, stop
        return None

    def proportional_columns(self) -> tuple[Integers, Floats]:
        """Equal labels for columns that are multiples of each other; the first entry of each.

        Divided by its first entry, a column is equal to the last bit to every multiple of it. That
        entry is 0 for a column of zeros.
        """
        columns = self.sparse_columns()
        columns.eliminate_zeros()
        columns.sort_indices()
        lengths = np.diff(columns.indptr)
        used = lengths > 0
        lead = np.zeros(self.shape[1])
        lead[used] = columns.data[columns.indptr[:-1][used]]
        scaled = columns.copy()
        scaled.data = scaled.data / np.repeat(lead, lengths)
        return equal_columns(scaled), lead

    def sparse_rows(self, start: int, stop: int) -> sp.csr_array:
        """Rows ``start:stop`` without their zeros."""
        return sp.csr_array(self.rows(start, stop))

    @property
    def entry_count(self) -> int:
        """Number of weights that ``sparse`` holds, at most."""
        return self.shape[0] * self.shape[1]

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield ``(start, rows)`` in blocks that stay small."""
        m, n = self.shape
        height = max(1, BLOCK_ENTRIES // max(n, 1))
        for start in range(0, m, height):
            yield start, self.rows(start, min(start + height, m))

    def is_integer(self) -> bool:
        """Whether every weight is a whole number of modest size (below 2³¹)."""
        return all(is_whole(block) for _, block in self.row_blocks())

    def is_nonnegative(self) -> bool:
        """Whether no weight is below 0."""
        return all(bool(np.all(block >= 0)) for _, block in self.row_blocks())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the form and its contents."""
        seal = hashlib.sha256(f"{self.kind}:{self.shape}".encode())
        for name, value in sorted(self.contents().items()):
            seal.update(name.encode())
            if isinstance(value, np.ndarray):
                seal.update(str(value.dtype).encode() + str(value.shape).encode())
                seal.update(np.ascontiguousarray(value).tobytes())
            else:
                seal.update(repr(value).encode())
        return seal.hexdigest()


@dataclass(frozen=True, eq=False)
class RowWeights:
    """The weights of some rows of B, whatever their order: what the law of the noise follows from.

    Parameters
    ----------
    values
        Sizes of weights, one class of rows that have the same ones after the other.
    counts
        How often each occurs in a row; None where each occurs once.
    ends
        Where each class ends in ``values``.
    place
        The class of each row.
    """

    values: Floats
    counts: Floats | None
    ends: Integers
    place: Integers

    @classmethod
    def of_rows(cls, values: Floats, counts: Floats | None = None) -> RowWeights:
        """The weights of rows that are given as arrays, without those that are 0."""
        sizes = np.abs(values)
        nonzero = sizes > 0 if counts is None else (sizes > 0) & (counts > 0)
        ends = np.cumsum(nonzero.sum(axis=1))
        often = None if counts is None else counts[nonzero]
        return cls(sizes[nonzero], often, ends, np.arange(len(values)))


class LeftInverse(ABC):
    """L⁺ of a strategy L (r×n), as products: from measurements back to cells and queries."""

    determines_cells: bool = True
    """Whether L⁺·L is the identity."""

    @abstractmethod
    def rows_times(self, rows: Floats) -> Floats:
        """``rows @ L⁺`` for a c×n block: the rows of B for these queries."""

    @abstractmethod
    def estimate(self, measurements: Floats) -> Floats:
        """``L⁺ @ measurements``: least-squares estimates of the cells."""

    @property
    def is_closed_form(self) -> bool:
        """Whether nothing was decomposed: exact but for rounding."""
        return False

    def row_squared_norms(self, queries: LinearMap) -> Floats | None:
        """``‖(W·L⁺)_i‖²`` of each query, where it is known without ``W·L⁺``."""
        del queries
        return None

    def squared_norm(self, queries: LinearMap) -> float | None:
        """``‖W·L⁺‖_F²``, where it is known without ``W·L⁺``."""
        del queries
        return None

    def weight_count(self, queries: LinearMap) -> int | None:
        """How many weights ``row_weights`` has for all queries; None where it has none for any."""
        del queries
        return None

    def row_weights(self, queries: LinearMap, start: int, stop: int) -> RowWeights:
        """The weights of the rows ``start:stop`` of ``W·L⁺``, without their places."""
        raise NotImplementedError(f"the rows {start}:{stop} of {queries.kind} have no short form")


def is_whole(values: Floats) -> bool:
    """Whether every number is whole and of modest size (below 2³¹)."""
    return bool(np.all(np.abs(values) < 2.0**31) and np.all(values == np.rint(values)))


def labels_of_columns(rows: Floats) -> Integers:
    """Number the columns of a few rows in their order, from 0, equal ones alike.

    >>> labels_of_columns(np.array([[1.0, 0, 1, 2], [0, 5, 0, 1]])).tolist()
    [1, 0, 1, 2]
    """
    each = (_labels_of_row(row) for row in rows)
    return combined_labels(each, rows.shape[1])


def _labels_of_row(row: Floats) -> Integers:
    """The rank of each entry among those that differ."""
    low, high = float(row.min()), float(row.max())
    is_low = row == low
    if np.all(is_low | (row == high)):  # a condition
        return np.asarray(~is_low, dtype=np.int64)
    if high - low < MOST_COUNTED:
        steps = (row - low).astype(np.int64)
        if np.array_equal(steps + low, row):  # whole numbers
            return _consecutive(steps, int(high - low) + 1)
    return np.unique(row, return_inverse=True)[1].astype(np.int64)


def combined_labels(each: Iterable[Integers], size: int) -> Integers:
    """Number the tuples of several labels from 0, in their order.

    Tuples as numbers: sorting these is 100 times as fast as sorting columns.
    """
    labels, most = np.zeros(size, dtype=np.int64), 1
    for more in each:
        count = int(more.max()) + 1
        if most * count > MOST_PAIRED or most <= MOST_COUNTED < most * count:
            labels = _consecutive(labels, most)
            most = int(labels.max()) + 1
            if most == size:
                return labels  # all differ already
        labels, most = labels * count + more, most * count
    return _consecutive(labels, most)


def _consecutive(labels: Integers, most: int) -> Integers:
    """The rank of each label, all below ``most``, among those that differ."""
    if most > max(MOST_COUNTED, len(labels)):
        return np.unique(labels, return_inverse=True)[1].reshape(-1)
    # Much faster than a sort.
    occurs = np.zeros(most, dtype=bool)
    occurs[labels] = True
    return (np.cumsum(occurs) - 1)[labels]


def equal_columns(columns: sp.csc_array) -> Integers:
    """Number the columns from 0, equal ones alike.

    Method: group by a random projection, then verify each group entry by entry. Cost:
    O(non-zeros). The matrix must hold no zeros and its indices must be sorted.

    >>> equal_columns(sp.csc_array(np.array([[1.0, 0, 1, 2], [0, 0, 0, 1]]))).tolist()
    [1, 0, 1, 2]
    """
    rng = np.random.default_rng(20120827)  # any fixed seed: groups are verified below
    keys = columns.T @ rng.random((columns.shape[0], 2))[:, 0]
    # ``columns.T @ …`` adds in the order of the rows, so equal columns get equal sums.
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    labels = group.reshape(-1).astype(np.int64)
    strangers = np.flatnonzero(~_same_as(columns, first[labels]))
    if len(strangers):  # a collision: keep it separate
        labels[strangers] = len(first) + np.arange(len(strangers))
        labels = np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return labels


def _same_as(columns: sp.csc_array, model: Integers) -> NDArray[np.bool_]:
    """Whether each column j equals column ``model[j]``, entry by entry."""
    lengths = np.diff(columns.indptr)
    same: NDArray[np.bool_] = lengths == lengths[model]
    checked = np.flatnonzero(same & (model != np.arange(len(model))) & (lengths > 0))
    # In pieces that fit the cache: 20 million entries at once took four times as long.
    pieces = 1 + int(lengths[checked].sum()) // CHECKED_AT_ONCE
    for part in np.array_split(checked, pieces):
        if not len(part):
            continue
        sizes = lengths[part]
        start = np.cumsum(sizes) - sizes
        place = np.arange(sizes.sum())
        places = place + np.repeat(columns.indptr[part] - start, sizes)
        other = place + np.repeat(columns.indptr[model[part]] - start, sizes)
        equal = columns.indices[places] == columns.indices[other]
        equal &= columns.data[places] == columns.data[other]
        same[part] = np.logical_and.reduceat(equal, start)
    return same
