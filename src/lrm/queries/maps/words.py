"""Totals, identities, prefix sums and all ranges: maps that are known by a word.

Nothing of size queries × cells is built unless it is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lrm.errors import WorkloadError
from lrm.queries.maps.leading import Leading
from lrm.queries.maps.linear import Floats, Integers, LinearMap, StoredMap, WeightedRanges
from lrm.queries.maps.matrices import DenseMap, check_weights

LOOPED_COLUMNS = 32
"""Arrays of at least this number of columns are summed row by row."""


def chain_times(left: Floats, right: Floats, columns: Floats) -> Floats:
    """``G @ columns`` for the symmetric G with ``G_ij = left_i·right_j`` for i ≤ j, in O(n·c).

    >>> chain_times(np.ones(3), np.array([3.0, 2.0, 1.0]), np.eye(3))[0]
    array([3., 2., 1.])
    """
    u, v = left[:, None], right[:, None]
    product = u * columns
    running_totals(product)
    product *= v
    above = v * columns
    running_totals(above[::-1])
    above *= u
    product += above
    product -= (u * v) * columns
    return np.asarray(product)


def chain_blocks(left: Floats, right: Floats, size: int) -> Floats:
    """The diagonal blocks of the same G, blocks × size × size; n is a multiple of ``size``.

    >>> chain_blocks(np.ones(4), np.array([4.0, 3.0, 2.0, 1.0]), 2)[1]
    array([[2., 1.],
           [1., 1.]])
    """
    cell = np.arange(size)
    first, last = np.minimum.outer(cell, cell), np.maximum.outer(cell, cell)
    return np.asarray(left.reshape(-1, size)[:, first] * right.reshape(-1, size)[:, last])


def running_totals(columns: Floats) -> None:
    """Replace each row of an n×c array by the sum of the rows up to it.

    A loop over rows: along the first axis ``np.cumsum`` takes three times as long for hundreds of
    columns, since it goes through each column by itself.
    """
    if columns.shape[1] < LOOPED_COLUMNS:
        np.cumsum(columns, axis=0, out=columns)
        return
    for before, row in pairwise(columns):
        np.add(row, before, out=row)


@dataclass(frozen=True, eq=False)
class ZeroOneMap(LinearMap):
    """Ranges of cells, of weight 1, in a number that follows from that of the cells."""

    cells: int
    file_values: ClassVar[tuple[str, ...]] = ("cells",)
    is_word: ClassVar[bool] = True
    has_distinct_columns: ClassVar[bool] = True

    @abstractmethod
    def bounds(self, start: int, stop: int) -> tuple[Integers, Integers]:
        """First and last cell of the queries ``start:stop``."""

    def rows(self, start: int, stop: int) -> Floats:
        first, last = self.bounds(start, stop)
        cell = np.arange(self.cells)
        return ((cell >= first[:, None]) & (cell <= last[:, None])).astype(np.float64)

    def columns(self, indices: NDArray[np.intp]) -> LinearMap:
        first, last = self.bounds(0, self.shape[0])
        inside = (indices >= first[:, None]) & (indices <= last[:, None])
        return DenseMap(inside.astype(np.float64))

    def weighted_ranges(self, start: int = 0, stop: int | None = None) -> WeightedRanges:
        first, last = self.bounds(start, self.shape[0] if stop is None else stop)
        return WeightedRanges(first, last, np.broadcast_to(np.float64(1.0), len(first)))

    def sparse(self) -> sp.csr_array:
        first, last = self.bounds(0, self.shape[0])
        lengths = last - first + 1
        ends = np.cumsum(lengths)
        column = np.arange(ends[-1]) - np.repeat(ends - lengths - first, lengths)
        indptr = np.concatenate([[0], ends])
        return sp.csr_array((np.ones(len(column)), column, indptr), shape=self.shape)

    def written_out(self) -> DenseMap:
        return DenseMap(self.dense())

    def entrywise_apply(self, other: LinearMap, x: Floats) -> Floats:
        return self.apply(x) if other is self else super().entrywise_apply(other, x)

    def column_squared_sums(self) -> Floats:
        return self.column_absolute_sums()

    @cached_property
    def column_labels(self) -> Integers:
        return np.arange(self.cells)

    @cached_property
    def total_factor(self) -> float | None:
        return float(self.column_squared_sums()[0]) if self.cells == 1 else None

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        return 1.0, 1.0

    def is_integer(self) -> bool:
        return True

    def is_nonnegative(self) -> bool:
        return True

    def absolute(self) -> LinearMap:
        return self

    def squared(self) -> LinearMap:
        return self

    def contents(self) -> dict[str, Any]:
        return {"cells": self.cells}

    @classmethod
    def from_file(cls, stored: StoredMap) -> Self:
        return cls(stored.cells())


@dataclass(frozen=True, eq=False)
class Total(ZeroOneMap):
    """The sum of all cells.

    >>> Total(3).apply(np.array([1.0, 2.0, 3.0]))
    array([6.])
    """

    kind: ClassVar[str] = "total"
    has_distinct_columns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (1, self.cells))

    def bounds(self, start: int, stop: int) -> tuple[Integers, Integers]:
        first = np.zeros(stop - start, dtype=np.int64)
        return first, first + self.cells - 1

    def apply(self, x: Floats) -> Floats:
        return np.asarray(x.sum(axis=0, keepdims=True))

    def apply_transpose(self, y: Floats) -> Floats:
        return np.broadcast_to(y, (self.cells, *y.shape[1:])).copy()

    def gram(self) -> Floats:
        return np.ones((self.cells, self.cells))

    def gram_times(self, columns: Floats) -> Floats:
        return np.broadcast_to(columns.sum(axis=0), columns.shape).copy()

    def gram_chain(self) -> tuple[Floats, Floats]:
        return np.ones(self.cells), np.ones(self.cells)

    def column_absolute_sums(self) -> Floats:
        return np.ones(self.cells)

    @cached_property
    def column_labels(self) -> Integers:
        return np.zeros(self.cells, dtype=np.int64)

    @cached_property
    def total_factor(self) -> float:
        return 1.0

    @property
    def entry_count(self) -> int:
        return self.cells

    def merged_columns(self, labels: Integers, cells: int) -> LinearMap:
        del labels
        return self if cells == self.cells else Total(cells)


@dataclass(frozen=True, eq=False)
class Identity(ZeroOneMap):
    """Every cell by itself.

    >>> Identity(3).gram_times(np.ones((3, 1))).sum().item()
    3.0
    """

    kind: ClassVar[str] = "identity"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (self.cells, self.cells))

    def bounds(self, start: int, stop: int) -> tuple[Integers, Integers]:
        return np.arange(start, stop), np.arange(start, stop)

    def apply(self, x: Floats) -> Floats:
        return x

    def apply_transpose(self, y: Floats) -> Floats:
        return y

    def gram(self) -> Floats:
        return np.eye(self.cells)

    def gram_times(self, columns: Floats) -> Floats:
        return columns

    def column_absolute_sums(self) -> Floats:
        return np.ones(self.cells)

    @property
    def entry_count(self) -> int:
        return self.cells


@dataclass(frozen=True, eq=False)
class Prefix(ZeroOneMap):
    """Running totals: query i is the sum of cells 0 to i. Costs O(n) a product.

    >>> Prefix(4).apply(np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 1.,  3.,  6., 10.])
    """

    kind: ClassVar[str] = "prefix"
    has_closed_forms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (self.cells, self.cells))

    def apply(self, x: Floats) -> Floats:
        return np.cumsum(x, axis=0)

    def apply_transpose(self, y: Floats) -> Floats:
        return np.cumsum(y[::-1], axis=0)[::-1]

    def bounds(self, start: int, stop: int) -> tuple[Integers, Integers]:
        return np.zeros(stop - start, dtype=np.int64), np.arange(start, stop)

    def gram(self) -> Floats:
        cell = np.arange(self.cells, dtype=np.float64)
        return self.cells - np.maximum.outer(cell, cell)

    def gram_chain(self) -> tuple[Floats, Floats]:
        return np.ones(self.cells), self.column_absolute_sums()

    def column_absolute_sums(self) -> Floats:
        return np.arange(self.cells, 0, -1, dtype=np.float64)

    def known_singular_values(self) -> Floats:
        # The inverse Gram matrix is a second difference with one free end: its eigenvalues are
        # squared sines.
        n = self.cells
        angle = (2 * np.arange(1, n + 1) - 1) * np.pi / (2 * (2 * n + 1))
        return np.asarray(1 / (2 * np.sin(angle)))

    def block_energy(self, size: int) -> float:
        first, width, sum1, sum2 = _blocks(self.cells, size)
        rising = sum2 + 2 * sum1 + width  # Σ (a+1)²: totals that end inside the block
        energy = rising + width**2 * (self.cells - first - width)
        return float(energy.sum() / size)

    @property
    def entry_count(self) -> int:
        return self.cells * (self.cells + 1) // 2


@dataclass(frozen=True, eq=False)
class AllRanges(ZeroOneMap):
    """Every range [a, b] with 0 ≤ a ≤ b < n, in order of a, then b: n(n+1)/2 queries.

    >>> AllRanges(3).apply(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 7., 2., 6., 4.])
    """

    kind: ClassVar[str] = "all-ranges"
    has_closed_forms: ClassVar[bool] = True
    is_known_by_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (self.cells * (self.cells + 1) // 2, self.cells))

    def bounds(self, start: int, stop: int) -> tuple[Integers, Integers]:
        """First and last cell of the queries ``start:stop``."""
        n = self.cells
        query = np.arange(start, stop, dtype=np.int64)
        # Ranges that begin at cell a start at row a·n − a(a−1)/2; invert that by search.
        first_row = np.arange(n, dtype=np.int64)
        first_row = first_row * n - first_row * (first_row - 1) // 2
        first = np.searchsorted(first_row, query, side="right") - 1
        return first, first + query - first_row[first]

    def apply(self, x: Floats) -> Floats:
        total = np.concatenate([np.zeros((1, *x.shape[1:])), np.cumsum(x, axis=0)])
        first, last = self.bounds(0, self.shape[0])
        return np.asarray(total[last + 1] - total[first])

    def apply_transpose(self, y: Floats) -> Floats:
        first, last = self.bounds(0, self.shape[0])
        change = np.zeros((self.cells + 1, *y.shape[1:]))
        np.add.at(change, first, y)
        np.subtract.at(change, last + 1, y)
        return np.asarray(np.cumsum(change, axis=0)[:-1])

    def gram(self) -> Floats:
        cell = np.arange(self.cells, dtype=np.float64)
        first, last = np.minimum.outer(cell, cell), np.maximum.outer(cell, cell)
        return np.asarray((first + 1.0) * (self.cells - last))

    def gram_chain(self) -> tuple[Floats, Floats]:
        cell = np.arange(self.cells, dtype=np.float64)
        return cell + 1.0, self.cells - cell

    def gram_times(self, columns: Floats) -> Floats:
        if self.small_gram is not None:
            return self.small_gram @ columns
        return chain_times(*self.gram_chain(), columns)

    def column_absolute_sums(self) -> Floats:
        cell = np.arange(self.cells, dtype=np.float64)
        return (cell + 1) * (self.cells - cell)

    def known_singular_values(self) -> Floats:
        # As for prefix sums, with a second difference up to n + 1.
        n = self.cells
        angle = np.arange(1, n + 1) * np.pi / (2 * (n + 1))
        return np.asarray(np.sqrt(n + 1) / (2 * np.sin(angle)))

    def block_energy(self, size: int) -> float:
        first, width, sum1, sum2 = _blocks(self.cells, size)
        left, right = first + 1, self.cells - first  # W'W between cells i ≤ j is (i+1)(n−j)
        diagonal = width * left * right + (right - left) * sum1 - sum2
        pairs = left * right * sum1 - left * sum2 + right * ((width - 1) * sum1 - sum2)
        energy = diagonal + 2 * (pairs - (sum1**2 - sum2) / 2)
        return float(energy.sum() / size)

    @property
    def entry_count(self) -> int:
        return self.cells * (self.cells + 1) * (self.cells + 2) // 6


WORDS: dict[str, type[ZeroOneMap]] = {
    kind.kind: kind for kind in (Total, Identity, Prefix, AllRanges)
}
"""The maps over the values of an attribute that users name by a word."""

Word = Literal["total", "identity", "prefix", "all-ranges"]
Kind = Literal["identity", "prefix", "all-ranges", "rows"]

LARGEST_SIZE = 1 << 26
"""Values of one attribute: 67 million, 0.5 GB as counts."""


def kind_of(factor: LinearMap) -> str:
    """The word of a factor, or ``"rows"`` for a matrix, as files and labels spell it."""
    if isinstance(factor, Leading):
        return factor.inner.kind
    return factor.kind if factor.is_word else "rows"


def word_factor(word: str, size: int) -> LinearMap:
    """The factor that a word stands for.

    Examples
    --------
    >>> word_factor("prefix", 3).gram().tolist()
    [[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if word not in WORDS:
        words = ", ".join(map(repr, WORDS))
        raise WorkloadError(f"a factor must be an array or one of {words}, not {word!r}")
    _check_size(size)
    return WORDS[word](size)


def stored_word(word: str, size: int, queries: int) -> LinearMap:
    """The factor that a file names by a word: of all values, or of all but the last.

    Examples
    --------
    >>> stored_word("identity", 3, 3).kind, stored_word("identity", 3, 2).kind
    ('identity', 'leading')
    """
    factor = word_factor(word, size)
    if len(factor) != queries and size > 1 and word != Total.kind:
        return Leading(word_factor(word, size - 1))
    return factor


def make_factor(factor: ArrayLike | Word | LinearMap, size: int) -> LinearMap:
    """Return the factor that a word or an array stands for.

    Examples
    --------
    >>> make_factor([[1, 0], [1, 1]], 2).kind
    'dense'
    """
    if isinstance(factor, LinearMap):
        if factor.shape[1] != size:
            covers = factor.shape[1]
            raise WorkloadError(f"the factor covers {covers} values, the attribute has {size}")
        return factor
    if isinstance(factor, str):
        return word_factor(factor, size)
    try:
        rows = np.array(factor, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise WorkloadError(
            "a factor must be an array of numbers with rows of equal length, or a word"
        ) from None
    rows = np.atleast_2d(rows)
    _check_size(size)
    if rows.ndim != 2 or rows.shape[1] != size or not len(rows):
        raise WorkloadError(
            f"a factor over {size} values must have one row per query and "
            f"{size} columns, not the shape {rows.shape}"
        )
    check_weights(rows)
    rows.setflags(write=False)
    return DenseMap(rows)


def _check_size(size: int) -> None:
    if not 1 <= size <= LARGEST_SIZE:
        raise WorkloadError(
            f"an attribute must have between 1 and {LARGEST_SIZE:,} values, not {size:,}"
        )


def _blocks(cells: int, size: int) -> tuple[Floats, Floats, Floats, Floats]:
    """First cell and width of each block, and ``Σ a`` and ``Σ a²`` over a < width.

    Cells past the end count nothing.
    """
    first = np.arange(0, cells, size, dtype=np.float64)
    width = np.minimum(size, cells - first)
    return first, width, width * (width - 1) / 2, width * (width - 1) * (2 * width - 1) / 6
