"""Kronecker products of maps, applied part by part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.words import Total

Linear = Callable[[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Kron(LinearMap):
    """``W_1 ⊗ … ⊗ W_k`` over the combinations of cells in C order, applied part by part.

    Examples
    --------
    >>> from lrm.queries.maps.words import Identity, Prefix
    >>> both = kron([Prefix(3), Identity(2)])
    >>> np.array_equal(both.dense(), np.kron(np.tri(3), np.eye(2)))
    True
    """

    parts: tuple[LinearMap, ...]
    kind: ClassVar[str] = "kron"

    def __post_init__(self) -> None:
        heights, widths = zip(*(part.shape for part in self.parts), strict=True)
        object.__setattr__(self, "shape", (math.prod(heights), math.prod(widths)))

    def _sides(self, axis: int) -> list[int]:
        return [part.shape[axis] for part in self.parts]

    def apply(self, x: Floats) -> Floats:
        return _along_each(x, self._sides(1), [part.apply for part in self.parts])

    def apply_transpose(self, y: Floats) -> Floats:
        return _along_each(y, self._sides(0), [part.apply_transpose for part in self.parts])

    def gram_times(self, columns: Floats) -> Floats:
        return _along_each(columns, self._sides(1), [part.gram_times for part in self.parts])

    def entrywise_apply(self, other: LinearMap, x: Floats) -> Floats:
        if not isinstance(other, Kron) or list(map(len, self.parts)) != list(map(len, other.parts)):
            return super().entrywise_apply(other, x)
        pairs = zip(self.parts, other.parts, strict=True)
        return _along_each(x, self._sides(1), [partial(a.entrywise_apply, b) for a, b in pairs])

    def dense(self) -> Floats:
        return kronecker(part.dense() for part in self.parts)

    def rows(self, start: int, stop: int) -> Floats:
        places = np.unravel_index(np.arange(start, stop), self._sides(0))
        rows = np.ones((stop - start, 1))
        for part, place in zip(self.parts, places, strict=True):
            first, last = int(place.min()), int(place.max()) + 1
            part_rows = part.rows(first, last)[place - first]
            rows = np.einsum("ij,ik->ijk", rows, part_rows).reshape(len(rows), -1)
        return rows

    def written_out(self) -> DenseMap:
        return DenseMap(self.dense())

    def gram(self) -> Floats:
        return kronecker(part.gram() for part in self.parts)

    def column_absolute_sums(self) -> Floats:
        return self._of_columns([part.column_absolute_sums() for part in self.parts])

    def column_squared_sums(self) -> Floats:
        return self._of_columns([part.column_squared_sums() for part in self.parts])

    @staticmethod
    def _of_columns(values: Sequence[Floats]) -> Floats:
        return np.asarray(kronecker(part_values[None] for part_values in values)[0])

    @cached_property
    def column_labels(self) -> Integers:
        labels = np.zeros(1, dtype=np.int64)
        for part in self.parts:
            part_labels = part.column_labels
            labels = (labels[:, None] * (int(part_labels.max()) + 1) + part_labels).reshape(-1)
        labels[self.column_squared_sums() == 0] = -1
        return np.unique(labels, return_inverse=True)[1].reshape(-1)

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        least, most = zip(*(part.entry_range for part in self.parts), strict=True)
        return math.prod(least), math.prod(most)

    @property
    def entry_count(self) -> int:
        return math.prod(part.entry_count for part in self.parts)

    def contents(self) -> dict[str, Any]:
        return {"parts": [part.digest for part in self.parts]}


def along(table: NDArray[Any], axis: int, function: Linear) -> NDArray[Any]:
    """A linear function of columns, applied along one axis of an array."""
    moved = np.moveaxis(table, axis, 0)
    columns = math.prod(moved.shape[1:])  # there may be none
    image = function(np.ascontiguousarray(moved).reshape(len(moved), columns))
    return np.moveaxis(image.reshape(len(image), *moved.shape[1:]), 0, axis)


def _along_each(X: Floats, lengths: Sequence[int], functions: Sequence[Linear]) -> Floats:
    """One linear function of columns along each axis that the rows of X are made of."""
    table = X.reshape(*lengths, *X.shape[1:])
    for axis, function in enumerate(functions):
        table = along(table, axis, function)
    height = math.prod(table.shape[: len(functions)])
    return np.ascontiguousarray(table).reshape(height, *X.shape[1:])


def kron(parts: Sequence[LinearMap]) -> LinearMap:
    """One map over the combinations of the cells of all parts.

    Examples
    --------
    >>> kron([Total(3), Total(2)])
    Total(cells=6)
    """
    if len(parts) == 1:
        return parts[0]
    if all(part.kind == "total" for part in parts):
        return Total(math.prod(part.shape[1] for part in parts))
    return Kron(tuple(parts))


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
