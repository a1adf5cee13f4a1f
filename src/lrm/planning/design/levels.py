"""Answers over several levels of a people from the measurements of each.

Levels are measured one by one, each with noise of its own, and every query is answered from the
measurements of its level. So B is block diagonal but for the order of its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import scipy.sparse as sp

from lrm.errors import WorkloadError
from lrm.planning.design.reconstruction import Answering, Reconstruction
from lrm.planning.limits import MEMORY
from lrm.privacy.norms import Norm
from lrm.queries.maps.linear import Floats
from lrm.queries.workload.levels import Places


@dataclass(frozen=True, eq=False)
class LevelsReconstruction(Reconstruction):
    """B over the measured integers of all levels, one level after the other.

    Parameters
    ----------
    parts
        The reconstruction of each level.
    steps
        What one measured integer of each level counts for.
    variances
        What norms of the rows of each level are multiplied by: the variance of its noise.
    places
        Which level each query is of.
    """

    parts: tuple[Reconstruction, ...]
    steps: tuple[float, ...]
    variances: tuple[float, ...]
    places: Places

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), self._starts[-1]

    @cached_property
    def _starts(self) -> list[int]:
        """Where the measurements of each level begin."""
        return list(accumulate((part.shape[1] for part in self.parts), initial=0))

    def apply(self, measurements: Floats) -> Floats:
        return self.answering(measurements)(0, self.shape[0])

    @property
    def is_blockwise(self) -> bool:
        return all(part.is_blockwise for part in self.parts)

    def answering(self, measurements: Floats) -> Answering:
        own = np.split(measurements, self._starts[1:-1])
        of_part = [
            part.answering(values * step)
            for part, values, step in zip(self.parts, own, self.steps, strict=True)
        ]

        def answers(start: int, stop: int) -> Floats:
            pieces = [of_part[p](first, last) for p, first, last in self.places.pieces(start, stop)]
            return np.concatenate([np.zeros(0), *pieces])

        return answers

    def rows(self, start: int, stop: int) -> Floats:
        block, row = np.zeros((stop - start, self.shape[1])), 0
        for p, first, last in self.places.pieces(start, stop):
            columns = slice(self._starts[p], self._starts[p + 1])
            block[row : row + last - first, columns] = (
                self.parts[p].rows(first, last) * self.steps[p]
            )
            row += last - first
        return block

    def matrix(self) -> Floats | sp.csr_array:
        if self.shape[0] * self.shape[1] > MEMORY // 2:
            raise WorkloadError("the reconstruction is too large for an array; use its rows")
        return self.rows(0, self.shape[0])

    def squared_norms(self, start: int, stop: int) -> Floats:
        pieces = [
            self.parts[p].squared_norms(first, last) * self.variances[p]
            for p, first, last in self.places.pieces(start, stop)
        ]
        return np.concatenate([np.zeros(0), *pieces])

    @cached_property
    def row_squared_norms(self) -> Floats:
        return self.squared_norms(0, self.shape[0])

    @cached_property
    def squared_norm(self) -> float:
        pairs = zip(self.parts, self.variances, strict=True)
        return sum(part.squared_norm * variance for part, variance in pairs)

    @property
    def residual(self) -> float:
        return max(part.residual for part in self.parts)

    @property
    def relative_residual(self) -> float:
        return max(part.relative_residual for part in self.parts)

    @cached_property
    def digest(self) -> str:
        parts = [part.digest for part in self.parts]
        return hashlib.sha256(repr([parts, self.places.runs]).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class LevelsMeasured:
    """What is measured of several levels, as far as reports speak of all of them together.

    One person moves the measurements of a level by its sensitivity times the most rows that a
    person has in it; in units of the noise, by the share of the level. Shares add up to at most 1.
    """

    measurement_count: int
    cell_count: int
    merged_cell_count: int
    max_records: int
    digest: str
    norm: Norm
    bits: int = 0
    body: None = None
    tabulations: Sequence[None] = ()

    @property
    def real_sensitivity(self) -> float:
        """How far one person moves the measurements, in units of their noise."""
        return 1.0
