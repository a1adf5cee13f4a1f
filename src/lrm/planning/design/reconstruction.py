"""Reconstruction: how answers follow from measurements, and how noise travels with them.

See ``docs/explanation/mechanism.md``.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from lrm.errors import WorkloadError
from lrm.planning.design.cells import reduce_rows
from lrm.planning.limits import ARRAY, BLOCK, MEMORY
from lrm.queries.maps.linear import (
    BLOCK_ENTRIES,
    Floats,
    Integers,
    LeftInverse,
    LinearMap,
    RowWeights,
)

EXACTNESS = 1e-9
"""Largest |W − B·L| relative to the largest weight of the query, of a plan that counts as exact."""

BLOCK_ANSWERS = 1 << 18
"""Answers that are computed and held at a time (2 MB per column)."""

SHORT_ROWS = 1 << 14
"""Rows in a short form that are looked at together."""

Answering = Callable[[int, int], Floats]
"""The answers ``start:stop`` of a batch, from one array of measurements."""


class Reconstruction(ABC):
    """B (queries × measurements) as an operator: ``answers = B·measurements``.

    Of a matrix over a list of cells (here), or of products of attributes, whose cells are never
    listed (`lrm.planning.design.products.reconstruction`).
    """

    @property
    def unweighed(self) -> Reconstruction:
        """These answers with norms for noise that is alike on all measurements."""
        return self

    given: LinearMap | None = None
    """B itself where a mechanism chose it; None where it is the least-squares one."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of queries and of measurements."""

    @abstractmethod
    def apply(self, measurements: Floats) -> Floats:
        """Answers to all queries from (noisy) measurements."""

    @property
    def is_blockwise(self) -> bool:
        """Whether some of the answers and errors can be had without a list of all."""
        return False

    def answering(self, measurements: Floats) -> Answering:
        """Answers from measurements for those who need some of them at a time."""
        answers = self.apply(measurements)
        return lambda start, stop: answers[start:stop]

    @abstractmethod
    def rows(self, start: int, stop: int) -> Floats:
        """Rows ``start:stop`` of B."""

    def rows_of(self, ranges: Sequence[tuple[int, int]]) -> Floats:
        """Rows of B in some ranges, one after the other.

        Columns of independent measurements that are 0 in all of these rows may be left out.
        """
        return np.vstack([self.rows(start, stop) for start, stop in ranges])

    def alike(self, index: Integers) -> tuple[Integers, Integers]:
        """The first of each kind of group of rows (groups × rows), and the kind of each group.

        In groups of one kind the rows are the same but for the order of the measurements, of which
        all have the same noise. Not every such group needs to be noticed.
        """
        numbers = np.arange(len(index))
        return numbers, numbers

    def row_ranges(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield ``(start, stop)`` of blocks of rows that are small enough to hold."""
        stop = self.shape[0] if stop is None else stop
        for first in range(start, stop, self.block_height):
            yield first, min(first + self.block_height, stop)

    def answer_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ``(start, stop)`` of blocks of answers that are computed together."""
        for first in range(0, self.shape[0], BLOCK_ANSWERS):
            yield first, min(first + BLOCK_ANSWERS, self.shape[0])

    @property
    def block_height(self) -> int:
        """Rows of a block that is small enough to hold."""
        return max(1, BLOCK_ENTRIES // self.shape[1])

    def row_weights(self, start: int, stop: int) -> Iterator[tuple[int, int, RowWeights | None]]:
        """Yield the weights of rows ``start:stop`` in parts, each with its first and last row.

        None where they would be too much work: norms alone must do then.
        """
        if math.prod(self.shape) > ARRAY:
            yield start, stop, None
            return
        for first, last in self.row_ranges(start, stop):
            yield first, last, RowWeights.of_rows(self.rows(first, last))

    @abstractmethod
    def matrix(self) -> Floats | sp.csr_array:
        """All of B; a `WorkloadError` where it is too large."""

    def squared_norms(self, start: int, stop: int) -> Floats:
        """‖B_i‖² of the queries ``start:stop``."""
        return self.row_squared_norms[start:stop]

    @property
    @abstractmethod
    def row_squared_norms(self) -> Floats:
        """‖B_i‖² of each query: the variance of its answer per unit of noise variance."""

    @property
    @abstractmethod
    def squared_norm(self) -> float:
        """``‖B‖_F²``: the total error per unit of noise variance."""

    @property
    @abstractmethod
    def residual(self) -> float:
        """Largest ``|W − B·L|``: how far one record can move an answer past the noise."""

    @property
    @abstractmethod
    def relative_residual(self) -> float:
        """The residual relative to the largest weight of its own query: small queries count too."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of all that decides the answers, beyond the queries and what is measured."""


@dataclass(frozen=True, eq=False)
class FlatReconstruction(Reconstruction):
    """B, m×r, over a list of cells: ``W·L⁺``, or a given matrix.

    Parameters
    ----------
    queries
        W over the merged cells.
    strategy
        L over the merged cells, in units where a record counts about 1.
    inverse
        L⁺, or None where ``given`` holds B.
    given
        B itself, where it is not the least-squares one.
    """

    queries: LinearMap
    strategy: LinearMap
    inverse: LeftInverse | None
    given: LinearMap | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.queries.shape[0], self.strategy.shape[0]

    @property
    def digest(self) -> str:
        if self.given is not None:
            return self.given.digest
        return hashlib.sha256(b"least squares").hexdigest()

    def apply(self, measurements: Floats) -> Floats:
        if self.given is not None:
            return self.given.apply(measurements)
        assert self.inverse is not None  # noqa: S101 - one of the two is set, by construction
        return self.queries.apply(self.inverse.estimate(measurements))

    def rows(self, start: int, stop: int) -> Floats:
        if self.given is not None:
            return self.given.rows(start, stop)
        assert self.inverse is not None  # noqa: S101
        return self.inverse.rows_times(self.queries.rows(start, stop))

    def matrix(self) -> Floats | sp.csr_array:
        m, r = self.shape
        if self.given is not None:
            return self.given.dense() if m * r <= MEMORY // 2 else self.given.sparse()
        if m * r > MEMORY // 2:
            raise WorkloadError(
                f"the reconstruction has {m:,} × {r:,} entries, too many for an array; "
                "use its products or blocks of its rows"
            )
        return self._explicit

    @cached_property
    def _explicit(self) -> Floats:
        matrix = np.vstack([self.rows(*block) for block in self.row_ranges()])
        matrix.flags.writeable = False
        return matrix

    @property
    def block_height(self) -> int:
        return max(1, BLOCK_ENTRIES // max(self.shape[1], self.queries.shape[1]))

    def row_weights(self, start: int, stop: int) -> Iterator[tuple[int, int, RowWeights | None]]:
        inverse = self.inverse
        count = None if inverse is None else inverse.weight_count(self.queries)
        if inverse is None or count is None or count >= math.prod(self.shape):
            yield from super().row_weights(start, stop)
        elif count > ARRAY:
            yield start, stop, None
        else:
            for first in range(start, stop, SHORT_ROWS):
                last = min(first + SHORT_ROWS, stop)
                yield first, last, inverse.row_weights(self.queries, first, last)

    @cached_property
    def row_squared_norms(self) -> Floats:
        known = None if self.inverse is None else self.inverse.row_squared_norms(self.queries)
        if known is not None:
            return known
        return np.concatenate([(self.rows(*b) ** 2).sum(axis=1) for b in self.row_ranges()])

    @cached_property
    def squared_norm(self) -> float:
        if self.inverse is not None:
            known = self.inverse.squared_norm(self.queries)
            if known is not None:
                return known
            if self.queries.is_known_by_gram:
                return float((self.inverse.rows_times(reduce_rows(self.queries)) ** 2).sum())
        return float(self.row_squared_norms.sum())

    @cached_property
    def residual(self) -> float:
        return self._residuals[0]

    @cached_property
    def relative_residual(self) -> float:
        return self._residuals[1]

    @cached_property
    def _residuals(self) -> tuple[float, float]:
        if self.inverse is not None and self._is_probed(self.inverse):
            gap = self._probe()  # an inverse of the integers themselves: exact but for rounding
            # Most that rounding may move a count that goes through a closed form and back.
            return (0.0, 0.0) if gap < 1e-9 else (math.inf, math.inf)
        if self.queries.is_known_by_gram and self.inverse is not None:
            # n rows with the same Gram matrix stand for those of the workload
            block = reduce_rows(self.queries)
            rebuilt = self.strategy.apply_transpose(self.inverse.rows_times(block).T).T
            gap = float(np.abs(block - rebuilt).max())
            return gap, gap
        gaps, sizes = [], []
        for start, stop in self.row_ranges():
            block = self.queries.rows(start, stop)
            rebuilt = self.strategy.apply_transpose(self.rows(start, stop).T).T
            gaps.append(np.abs(block - rebuilt).max(axis=1))
            sizes.append(np.abs(block).max(axis=1))
        moved, size = np.concatenate(gaps), np.concatenate(sizes)
        if self.given is not None:
            # Beside the noise of this answer at ε = 1, which does not follow the query's size.
            size = np.sqrt(self.row_squared_norms) * self.strategy.column_absolute_sums().max()
        return float(moved.max()), float((moved / np.where(size, size, 1)).max())

    def _is_probed(self, inverse: LeftInverse) -> bool:
        m, n = self.queries.shape
        return inverse.is_closed_form or (inverse.determines_cells and m * n > BLOCK)

    def _probe(self) -> float:
        """How far counts come back from their measurements, beside their size."""
        assert self.inverse is not None  # noqa: S101 - asked of closed forms
        counts = np.random.default_rng(0).uniform(-1.0, 1.0, self.strategy.shape[1])
        back = self.inverse.estimate(self.strategy.apply(counts))
        return float(np.abs(back - counts).max())


@dataclass(frozen=True, eq=False)
class WeighedReconstruction(Reconstruction):
    """B of another reconstruction, where the noise of the measurements is not alike.

    The answers are the same. Norms, which errors follow from, are ``b·C·bᵀ`` of each row b in the
    covariance C of the noise. Every measurement is in its place.

    Parameters
    ----------
    plain
        The reconstruction.
    covariance
        Returns C relative to a common variance: a matrix, or a variance for each measurement. It
        is called when errors are asked for.
    """

    plain: Reconstruction
    covariance: Callable[[], Floats]

    @property
    def shape(self) -> tuple[int, int]:
        return self.plain.shape

    @property
    def given(self) -> LinearMap | None:  # type: ignore[override]
        return self.plain.given

    def apply(self, measurements: Floats) -> Floats:
        return self.plain.apply(measurements)

    @property
    def is_blockwise(self) -> bool:
        return self.plain.is_blockwise

    def answering(self, measurements: Floats) -> Answering:
        return self.plain.answering(measurements)

    def rows(self, start: int, stop: int) -> Floats:
        return self.plain.rows(start, stop)

    @property
    def unweighed(self) -> Reconstruction:
        return self.plain.unweighed

    def matrix(self) -> Floats | sp.csr_array:
        return self.plain.matrix()

    @property
    def block_height(self) -> int:
        return self.plain.block_height

    def answer_ranges(self) -> Iterator[tuple[int, int]]:
        return self.plain.answer_ranges()

    def squared_norms(self, start: int, stop: int) -> Floats:
        covariance, parts = self.covariance(), [np.zeros(0)]
        for first, last in self.row_ranges(start, stop):
            rows = self.rows(first, last)
            images = rows @ covariance if covariance.ndim == 2 else rows * covariance
            parts.append(np.einsum("ij,ij->i", images, rows))
        return np.concatenate(parts)

    @cached_property
    def row_squared_norms(self) -> Floats:
        return self.squared_norms(0, self.shape[0])

    @cached_property
    def squared_norm(self) -> float:
        return float(self.row_squared_norms.sum())

    @property
    def residual(self) -> float:
        return self.plain.residual

    @property
    def relative_residual(self) -> float:
        return self.plain.relative_residual

    @property
    def digest(self) -> str:
        return self.plain.digest
