"""Products of factors over several attributes that are treated as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from lrm.maps.products.factors import Factor, kronecker

__all__ = ["FusedFactor", "fuse_factors"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Linear = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class FusedFactor(Factor):
    """``W_1 ⊗ … ⊗ W_k`` over the combinations of values in C order, applied part by part.

    Examples
    --------
    >>> both = fuse_factors([Factor("prefix", 3), Factor("identity", 2)])
    >>> np.array_equal(both.dense(), np.kron(np.tri(3), np.eye(2)))
    True
    """

    parts: tuple[Factor, ...] = ()

    def __post_init__(self) -> None:
        if self.kind != "rows" or self.rows is not None:
            raise ValueError("a fused factor has the rows of its parts, and none of its own")
        if self.size != math.prod(part.size for part in self.parts):
            raise ValueError("a fused factor covers the combinations of the values of its parts")

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        """The smallest and the largest size of an entry that is not 0; (1, 1) without any."""
        least, most = zip(*(part.entry_range for part in self.parts), strict=True)
        return math.prod(least), math.prod(most)

    @property
    def key(self) -> tuple[str, int, bytes]:
        """Equal keys mean equal matrices."""
        return self.kind, len(self), repr([part.key for part in self.parts]).encode()

    def __len__(self) -> int:
        return math.prod(map(len, self.parts))

    def dense(self) -> Floats:
        """W as an array, queries x values."""
        return kronecker(part.dense() for part in self.parts)

    def part(self, start: int, stop: int) -> Factor:
        """The factor of rows ``start:stop`` alone."""
        if (start, stop) == (0, len(self)):
            return self
        places = np.unravel_index(np.arange(start, stop), [len(part) for part in self.parts])
        rows = np.ones((stop - start, 1))
        for part, place in zip(self.parts, places, strict=True):
            first, last = int(place.min()), int(place.max()) + 1
            own = part.part(first, last).dense()[place - first]
            rows = np.einsum("ij,ik->ijk", rows, own).reshape(len(rows), -1)
        return Factor("rows", self.size, rows)

    def times(self, X: Floats) -> Floats:
        """``W·X`` for X of values x anything."""
        return _along_each(X, self._sizes, [part.times for part in self.parts])

    def transpose_times(self, Y: Floats) -> Floats:
        """``Wᵀ·Y`` for Y of queries x anything."""
        lengths = [len(part) for part in self.parts]
        return _along_each(Y, lengths, [part.transpose_times for part in self.parts])

    def gram_times(self, X: Floats) -> Floats:
        """``WᵀW·X``."""
        return _along_each(X, self._sizes, [part.gram_times for part in self.parts])

    def entrywise_times(self, other: Factor, X: Floats) -> Floats:
        """``(W∘V)·X`` with the entrywise product of two factors of equally many rows."""
        if not isinstance(other, FusedFactor) or list(map(len, self.parts)) != list(
            map(len, other.parts)
        ):
            return super().entrywise_times(other, X)
        pairs = zip(self.parts, other.parts, strict=True)
        return _along_each(X, self._sizes, [partial(a.entrywise_times, b) for a, b in pairs])

    @cached_property
    def _sizes(self) -> list[int]:
        return [part.size for part in self.parts]

    @cached_property
    def squares(self) -> Floats:
        """Squared norms of the columns: the diagonal of WᵀW."""
        return np.asarray(kronecker(part.squares[None] for part in self.parts)[0])

    @cached_property
    def _gram(self) -> Floats:
        return kronecker(part.gram for part in self.parts)

    @cached_property
    def labels(self) -> Integers:
        """Equal labels for values with equal columns."""
        labels = np.zeros(1, dtype=np.int64)
        for part in self.parts:
            labels = (labels[:, None] * (int(part.labels.max()) + 1) + part.labels).reshape(-1)
        labels[self.squares == 0] = -1
        return np.unique(labels, return_inverse=True)[1].reshape(-1)

    @cached_property
    def total_factor(self) -> float | None:
        """The a with ``WᵀW = a·11ᵀ``, or None where W distinguishes some values."""
        return float(self.squares[0]) if np.all(self.labels == self.labels[0]) else None

    def some_rows(self, count: int) -> Factor:
        """About ``count`` of the queries, evenly spread; all of them where there are fewer."""
        if len(self) <= count:
            return self
        places = np.linspace(0, len(self) - 1, count).astype(np.int64)
        return Factor("rows", self.size, np.vstack([self.part(p, p + 1).dense() for p in places]))


def _along_each(X: Floats, lengths: Sequence[int], functions: Sequence[Linear]) -> Floats:
    """One linear function of columns along each axis that the rows of X are made of."""
    width = X.shape[1]
    table = X.reshape(*lengths, width)
    for axis, function in enumerate(functions):
        moved = np.moveaxis(table, axis, 0)
        columns = math.prod(moved.shape[1:])  # there may be none
        image = function(np.ascontiguousarray(moved).reshape(len(moved), columns))
        table = np.moveaxis(image.reshape(len(image), *moved.shape[1:]), 0, axis)
    return np.ascontiguousarray(table).reshape(math.prod(table.shape[:-1]), width)


def fuse_factors(parts: Sequence[Factor]) -> Factor:
    """One factor over the combinations of the values of all parts.

    Examples
    --------
    >>> fuse_factors([Factor("total", 3), Factor("total", 2)]).kind
    'total'
    """
    size = math.prod(part.size for part in parts)
    if len(parts) == 1:
        return parts[0]
    if all(part.kind == "total" for part in parts):
        return Factor("total", size)
    return FusedFactor("rows", size, parts=tuple(parts))
