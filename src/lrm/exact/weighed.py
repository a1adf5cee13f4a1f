"""Reconstruction where the noise of the measurements has several variances.

The answers are the same. Norms, which errors follow from, are those of rows whose entries are
multiplied by the relative standard deviations of their measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from lrm.exact.protocols import Answering, Reconstruction, RowWeights
from lrm.maps.linear import BLOCK_ENTRIES, Floats, LinearMap

__all__ = ["WeighedReconstruction"]


@dataclass(frozen=True, eq=False)
class WeighedReconstruction:
    """B of another reconstruction, with every measurement in its place.

    Implements `lrm.exact.protocols.Reconstruction`.

    Parameters
    ----------
    plain
        The reconstruction.
    ratios
        The variance of each measurement relative to a common one.
    """

    plain: Reconstruction
    ratios: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and of measurements."""
        return self.plain.shape

    @property
    def given(self) -> LinearMap | None:
        """B itself where a mechanism chose it."""
        return self.plain.given

    def apply(self, measurements: Floats) -> Floats:
        """Answers to all queries from (noisy) measurements."""
        return self.plain.apply(measurements)

    @property
    def is_blockwise(self) -> bool:
        """Whether some of the answers and errors can be had without a list of all."""
        return self.plain.is_blockwise

    def answering(self, measurements: Floats) -> Answering:
        """Answers from measurements for those who need some of them at a time."""
        return self.plain.answering(measurements)

    def rows(self, start: int, stop: int) -> Floats:
        """Rows ``start:stop`` of B."""
        return self.plain.rows(start, stop)

    def rows_of(self, ranges: Sequence[tuple[int, int]]) -> Floats:
        """Rows of B in some ranges, one after the other; no column is left out."""
        return np.vstack([self.rows(start, stop) for start, stop in ranges])

    def row_weights(self, start: int, stop: int) -> Iterator[tuple[int, int, RowWeights | None]]:
        """Yield the rows ``start:stop`` of B in blocks, as their weights."""
        for first, last in self._blocks(start, stop):
            yield first, last, RowWeights(self.rows(first, last), None, np.arange(last - first))

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        height = max(1, BLOCK_ENTRIES // self.shape[1])
        for first in range(start, stop, height):
            yield first, min(first + height, stop)

    def row_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ``(start, stop)`` of blocks of rows that are small enough to hold."""
        return self.plain.row_ranges()

    def matrix(self) -> Floats | sp.csr_array:
        """All of B; a `WorkloadError` where it is too large."""
        return self.plain.matrix()

    def squared_norms(self, start: int, stop: int) -> Floats:
        """``Σ_j B_ij²·ratio_j`` of the queries ``start:stop``."""
        norms = np.empty(stop - start)
        for first, last in self._blocks(start, stop):
            norms[first - start : last - start] = self.rows(first, last) ** 2 @ self.ratios
        return norms

    @cached_property
    def row_squared_norms(self) -> Floats:
        """The same of each query: the variance of its answer per unit of noise variance."""
        return self.squared_norms(0, self.shape[0])

    @cached_property
    def squared_norm(self) -> float:
        """The sum over all queries."""
        return float(self.row_squared_norms.sum())

    @property
    def residual(self) -> float:
        """Largest ``|W − B·L|``."""
        return self.plain.residual

    @property
    def relative_residual(self) -> float:
        """The residual relative to the largest weight of its own query."""
        return self.plain.relative_residual

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides the answers."""
        return self.plain.digest
