"""Queries over the first cells of an attribute: the last cell, which is not displayed, counts 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.queries.maps.linear import Floats, Integers, LinearMap, WeightedRanges
from lrm.queries.maps.matrices import DenseMap, SparseMap


@dataclass(frozen=True, eq=False)
class Leading(LinearMap):
    """The queries of a word over all cells but the last.

    >>> from lrm.queries.maps.words import Identity
    >>> Leading(Identity(2)).dense().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    inner: LinearMap
    kind: ClassVar[str] = "leading"
    is_word: ClassVar[bool] = True

    def __post_init__(self) -> None:
        rows, cells = self.inner.shape
        object.__setattr__(self, "shape", (rows, cells + 1))

    def contents(self) -> dict[str, Any]:
        return {"kind": self.inner.kind, "cells": self.shape[1]}

    def written_out(self) -> SparseMap:
        return self._written_out

    @cached_property
    def _written_out(self) -> SparseMap:
        return SparseMap(self.sparse())

    def apply(self, x: Floats) -> Floats:
        return self.inner.apply(x[:-1])

    def apply_transpose(self, y: Floats) -> Floats:
        image = self.inner.apply_transpose(y)
        return np.concatenate([image, np.zeros((1, *image.shape[1:]))])

    def rows(self, start: int, stop: int) -> Floats:
        return np.pad(self.inner.rows(start, stop), ((0, 0), (0, 1)))

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        for start, block in self.inner.row_blocks():
            yield start, np.pad(block, ((0, 0), (0, 1)))

    def columns(self, indices: NDArray[np.intp]) -> LinearMap:
        last = self.shape[1] - 1
        if not np.any(indices == last):
            return self.inner.columns(indices)
        padded = self.inner.columns(np.minimum(indices, last - 1))
        return padded.scale_columns((indices != last).astype(np.float64))

    def merged_columns(self, labels: Integers, cells: int) -> LinearMap:
        if labels[-1] < 0:
            return self.inner.merged_columns(labels[:-1], cells)
        if cells == self.shape[1] and np.array_equal(labels, np.arange(cells)):
            return self
        return super().merged_columns(labels, cells)

    def gram(self) -> Floats:
        return np.pad(self.inner.gram(), ((0, 1), (0, 1)))

    def gram_times(self, columns: Floats) -> Floats:
        image = self.inner.gram_times(columns[:-1])
        return np.concatenate([image, np.zeros((1, *image.shape[1:]))])

    def gram_chain(self) -> tuple[Floats, Floats] | None:
        chain = self.inner.gram_chain()
        return None if chain is None else (np.append(chain[0], 0.0), np.append(chain[1], 0.0))

    def column_absolute_sums(self) -> Floats:
        return np.append(self.inner.column_absolute_sums(), 0.0)

    def column_squared_sums(self) -> Floats:
        return np.append(self.inner.column_squared_sums(), 0.0)

    def sparse(self) -> sp.csr_array:
        matrix = self.inner.sparse()
        return sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=self.shape)

    @cached_property
    def column_labels(self) -> Integers:
        labels = self.inner.column_labels
        return np.append(labels, labels.max() + 1)

    @cached_property
    def total_factor(self) -> float | None:
        return None

    @cached_property
    def entry_range(self) -> tuple[float, float]:
        return self.inner.entry_range

    def weighted_ranges(self, start: int = 0, stop: int | None = None) -> WeightedRanges | None:
        return self.inner.weighted_ranges(start, stop)

    @property
    def entry_count(self) -> int:
        return self.inner.entry_count

    def is_integer(self) -> bool:
        return self.inner.is_integer()

    def is_nonnegative(self) -> bool:
        return self.inner.is_nonnegative()

    def absolute(self) -> LinearMap:
        return self

    def squared(self) -> LinearMap:
        return self


def leading(factor: LinearMap) -> LinearMap:
    """The queries of a factor over one more cell, which counts 0 in all of them.

    >>> from lrm.queries.maps.words import Prefix, Total
    >>> leading(Prefix(2)).kind, leading(Total(2)).dense().tolist()
    ('leading', [[1.0, 1.0, 0.0]])
    """
    if factor.is_word and factor.kind not in {"total", Leading.kind}:
        return Leading(factor)
    if isinstance(factor, SparseMap):
        matrix = factor.matrix
        shape = (matrix.shape[0], matrix.shape[1] + 1)
        return SparseMap(sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape))
    return DenseMap(np.pad(factor.dense(), ((0, 0), (0, 1))))
