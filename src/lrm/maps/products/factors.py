"""Factors: the small query matrix that a term asks of one attribute."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrm.errors import WorkloadError
from lrm.maps.matrices import check_weights

__all__ = ["LARGEST_SIZE", "PIECE", "Factor", "Kind", "Word", "kronecker", "make_factor"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Word = Literal["total", "identity", "prefix", "all-ranges"]
Kind = Literal["total", "identity", "prefix", "all-ranges", "rows"]

LARGEST_SIZE = 1 << 26
"""Values of one attribute: 67 million, 0.5 GB as counts."""

#: Up to this many values a Gram matrix is kept dense: 2 MB, and faster than cumulative sums.
DENSE_VALUES = 512

#: Entries of two factors that are multiplied in one piece.
PIECE = 1 << 22


@dataclass(frozen=True, eq=False)
class Factor:
    """A query matrix W over the ``size`` values of one attribute.

    The words stand for a row of ones, the identity, all prefix sums and all ranges; ``rows`` is
    None for them, and nothing of size queries x values is built unless it is asked for.

    Examples
    --------
    >>> Factor("prefix", 3).gram.tolist()
    [[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    """

    kind: Kind
    size: int
    rows: Floats | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.size <= LARGEST_SIZE:
            raise WorkloadError(
                f"an attribute must have between 1 and {LARGEST_SIZE:,} values, not {self.size:,}"
            )
        if (self.kind == "rows") != (self.rows is not None):
            raise WorkloadError("only a factor of kind 'rows' has rows")
        if self.rows is not None:
            if self.rows.ndim != 2 or self.rows.shape[1] != self.size or not len(self.rows):
                raise WorkloadError(
                    f"a factor over {self.size} values must have one row per query and "
                    f"{self.size} columns, not the shape {self.rows.shape}"
                )
            check_weights(self.rows)
            self.rows.setflags(write=False)

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        """The smallest and the largest size of an entry that is not 0; (1, 1) without any."""
        if self.rows is None:
            return 1.0, 1.0
        filled = np.abs(self.rows[self.rows != 0])
        return (float(filled.min()), float(filled.max())) if len(filled) else (1.0, 1.0)

    @property
    def key(self) -> tuple[str, int, bytes]:
        """Equal keys mean equal matrices."""
        content = b"" if self.rows is None else hashlib.sha256(self.rows.tobytes()).digest()
        return self.kind, len(self), content

    def __len__(self) -> int:
        match self.kind:
            case "total":
                return 1
            case "all-ranges":
                return self.size * (self.size + 1) // 2
            case "rows" if self.rows is not None:
                return len(self.rows)
            case _:
                return self.size

    def dense(self) -> Floats:
        """W as an array, queries x values."""
        n = self.size
        match self.kind:
            case "total":
                return np.ones((1, n))
            case "identity":
                return np.eye(n)
            case "prefix":
                return np.tri(n)
            case "all-ranges":
                first, last = np.triu_indices(n)
                values = np.arange(n)
                inside = (values >= first[:, None]) & (values <= last[:, None])
                return inside.astype(np.float64)
            case _:
                return np.asarray(self.rows)

    def part(self, start: int, stop: int) -> Factor:
        """The factor of rows ``start:stop`` alone.

        >>> Factor("prefix", 3).part(1, 2).dense().tolist()
        [[1.0, 1.0, 0.0]]
        """
        if (start, stop) == (0, len(self)):
            return self
        n = self.size
        match self.kind:
            case "identity":
                rows = np.eye(stop - start, n, start)
            case "prefix":
                rows = np.tri(stop - start, n, start)
            case "all-ranges":
                first, last = (place[start:stop, None] for place in np.triu_indices(n))
                rows = ((np.arange(n) >= first) & (np.arange(n) <= last)).astype(np.float64)
            case _:
                rows = self.dense()[start:stop].copy()
        return Factor("rows", n, rows)

    def times(self, X: Floats) -> Floats:
        """``W·X`` for X of values x anything."""
        match self.kind:
            case "total":
                return np.asarray(X.sum(axis=0, keepdims=True))
            case "identity":
                return X
            case "prefix":
                return np.cumsum(X, axis=0)
            case "all-ranges":
                upto = np.concatenate([np.zeros_like(X[:1]), np.cumsum(X, axis=0)])
                first, last = np.triu_indices(self.size)
                return np.asarray(upto[last + 1] - upto[first])
            case _:
                return np.asarray(np.asarray(self.rows) @ X)

    def transpose_times(self, Y: Floats) -> Floats:
        """``Wᵀ·Y`` for Y of queries x anything."""
        match self.kind:
            case "total":
                return np.broadcast_to(Y, (self.size, *Y.shape[1:])).copy()
            case "identity":
                return Y
            case "prefix":
                return np.cumsum(Y[::-1], axis=0)[::-1]
            case "all-ranges":
                first, last = np.triu_indices(self.size)
                change = np.zeros((self.size + 1, *Y.shape[1:]))
                np.add.at(change, first, Y)
                np.subtract.at(change, last + 1, Y)
                return np.asarray(np.cumsum(change, axis=0)[:-1])
            case _:
                return np.asarray(np.asarray(self.rows).T @ Y)

    def entrywise_times(self, other: Factor, X: Floats) -> Floats:
        """``(W∘V)·X`` with the entrywise product of two factors of equally many rows.

        Examples
        --------
        >>> pairs = Factor("rows", 2, np.array([[2.0, 3.0]]))
        >>> pairs.entrywise_times(pairs, np.eye(2)).tolist()
        [[4.0, 9.0]]
        """
        if other is self and self.rows is None:
            return self.times(X)  # entries are 0 or 1
        found, height = np.empty((len(self), X.shape[1])), max(1, PIECE // self.size)
        for start in range(0, len(self), height):
            stop = min(start + height, len(self))
            product = self.part(start, stop).dense() * other.part(start, stop).dense()
            found[start:stop] = product @ X
        return found

    @cached_property
    def squares(self) -> Floats:
        """Squared norms of the columns: the diagonal of WᵀW."""
        place = np.arange(1.0, self.size + 1)
        match self.kind:
            case "total" | "identity":
                return np.ones(self.size)
            case "prefix":
                return place[::-1].copy()
            case "all-ranges":
                return place * place[::-1]
            case _:
                return np.asarray(np.einsum("ij,ij->j", self.dense(), self.dense()))

    @property
    def gram(self) -> Floats:
        """WᵀW, dense; kept where that takes no more memory than W itself, about."""
        if self.rows is not None and 2 * len(self.rows) < self.size:
            return np.asarray(self.rows.T @ self.rows)
        return self._gram

    @cached_property
    def _gram(self) -> Floats:
        n = self.size
        place = np.arange(1.0, n + 1)
        match self.kind:
            case "total":
                return np.ones((n, n))
            case "identity":
                return np.eye(n)
            case "prefix":
                return np.asarray(np.minimum.outer(place[::-1], place[::-1]))
            case "all-ranges":
                return np.asarray(
                    np.minimum.outer(place, place) * np.minimum.outer(place[::-1], place[::-1])
                )
            case _:
                return np.asarray(np.asarray(self.rows).T @ np.asarray(self.rows))

    def gram_times(self, X: Floats) -> Floats:
        """``WᵀW·X``, through the dense Gram matrix only where that is small."""
        if self.kind == "identity":
            return X
        if self.kind == "total":
            return np.broadcast_to(X.sum(axis=0), X.shape).copy()
        if self.size <= DENSE_VALUES and 2 * len(self) >= self.size:
            return np.asarray(self.gram @ X)
        if self.kind == "all-ranges":  # n²/2 queries: none of them is written out
            place = np.arange(1.0, self.size + 1)[:, None]
            below = np.cumsum(place * X, axis=0)
            weighted = place[::-1] * X
            above = weighted.sum(axis=0) - np.cumsum(weighted, axis=0)
            return np.asarray(place[::-1] * below + place * above)
        return self.transpose_times(self.times(X))

    @cached_property
    def row_sums(self) -> Floats:
        """``W·1``."""
        return self.times(np.ones((self.size, 1)))[:, 0]

    @cached_property
    def labels(self) -> Integers:
        """Equal labels for values with equal columns."""
        if self.kind == "total":
            return np.zeros(self.size, dtype=np.int64)
        if self.rows is None:
            return np.arange(self.size)
        labels = np.zeros(self.size, dtype=np.int64)
        for row in self.rows:  # sorting numbers is ten times as fast as sorting columns
            own = np.unique(row, return_inverse=True)[1].reshape(-1)
            pairs = labels * (int(own.max()) + 1) + own
            labels = np.unique(pairs, return_inverse=True)[1].reshape(-1)
            if labels.max() == self.size - 1:
                break  # all columns differ already
        return labels

    @cached_property
    def total_factor(self) -> float | None:
        """The a with ``WᵀW = a·11ᵀ``, or None where W distinguishes some values."""
        if self.kind == "total" or self.size == 1:
            return float(self.squares[0])
        if self.rows is None:
            return None
        alike = np.all(self.rows == self.rows[:, :1])
        return float(self.squares[0]) if alike else None

    def some_rows(self, count: int) -> Factor:
        """About ``count`` of the queries, evenly spread; all of them where there are fewer.

        Examples
        --------
        >>> Factor("all-ranges", 1000).some_rows(3).rows.sum(axis=1).tolist()
        [1.0, 1.0, 1000.0]
        """
        if len(self) <= count:
            return self
        values = np.arange(self.size)
        last = np.linspace(0, self.size - 1, count).astype(np.int64)[:, None]
        match self.kind:
            case "identity":
                chosen = values == last
            case "prefix":
                chosen = values <= last
            case "all-ranges":
                first = np.minimum(last, self.size - 1 - last)
                chosen = (values >= first) & (values <= last)
            case _:
                places = np.linspace(0, len(self) - 1, count).astype(np.int64)
                return Factor("rows", self.size, np.asarray(self.rows)[places])
        return Factor("rows", self.size, chosen.astype(np.float64))

    def merged(self, labels: Integers, values: int) -> Factor:
        """The same queries over ``values`` merged values; −1 labels a value that is dropped."""
        if self.kind == "total":
            return self if values == self.size else Factor("total", values)
        if values == self.size and np.array_equal(labels, np.arange(values)):
            return self
        kept = labels >= 0
        columns = np.zeros((len(self), values))
        columns[:, labels[kept]] = self.dense()[:, kept]
        return Factor("rows", values, columns)


def kronecker(arrays: Iterable[Floats]) -> Floats:
    """The Kronecker product of all arrays.

    Examples
    --------
    >>> kronecker([np.array([[1.0, 2.0]]), np.array([[1.0], [3.0]])]).tolist()
    [[1.0, 2.0], [3.0, 6.0]]
    """
    product: Floats = np.ones((1, 1))
    for array in arrays:
        # np.kron does the same, with an overhead that small arrays feel.
        both = product[:, None, :, None] * array[None, :, None, :]
        product = both.reshape(len(product) * len(array), -1)
    return product


def make_factor(factor: ArrayLike | Word | Factor, size: int) -> Factor:
    """Return the factor that a word or an array stands for.

    Examples
    --------
    >>> make_factor([[1, 0], [1, 1]], 2).kind
    'rows'
    """
    if isinstance(factor, Factor):
        if factor.size != size:
            raise WorkloadError(f"the factor covers {factor.size} values, the attribute has {size}")
        return factor
    if isinstance(factor, str):
        if factor not in get_args(Word):
            words = ", ".join(map(repr, get_args(Word)))
            raise WorkloadError(f"a factor must be an array or one of {words}, not {factor!r}")
        return Factor(cast("Kind", factor), size)
    try:
        rows = np.array(factor, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise WorkloadError(
            "a factor must be an array of numbers with rows of equal length, or a word"
        ) from None
    return Factor("rows", size, np.atleast_2d(rows))
