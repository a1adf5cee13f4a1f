"""What every body knows: its norm, the law of its noise, and how to draw that exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lrm.privacy.bodies.drawing import SYSTEM, Bits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DIRECTIONS, ENTRIES = 1 << 15, 1 << 22
"""The most simulated directions that the law of an answer's noise is computed from, and the most
numbers in all of them."""


MOST_COLUMNS = 256
"""Different columns whose differences are looked at: some 33,000."""


class Body(ABC):
    """A symmetric convex body K in the coordinates of the measured integers.

    Its noise z has density ∝ exp(−‖z‖_K/s) at scale s. If every record moves the measurements
    by a vector in K, that is, of norm at most 1, then z at scale 1/ε keeps ε-differential privacy:
    by the triangle inequality the density of y + z changes by at most the factor e^ε.

    A body may lie in a subspace (tables with one common total); the noise and all that records
    move then lie in it as well.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of measured integers."""

    @property
    def variables(self) -> int:
        """Number of exponential variables of a draw."""
        return self.size

    @abstractmethod
    def gauge(self, vector: Sequence[int]) -> Fraction:
        """The norm ‖v‖_K of an integer vector, exactly, or an upper bound on it.

        Raises `lrm.errors.WorkloadError` for a vector outside the space of the body.
        """

    def holds(self, columns: Integers) -> bool:
        """Whether every column of an integer matrix has norm at most 1: exact."""
        return all(self.gauge([int(x) for x in column]) <= 1 for column in columns.T)

    def holds_differences(self, columns: Integers) -> bool:
        """Whether the difference of any two columns, or of one and 0, has norm at most 2: exact.

        False where the columns are too many, or where a difference is odd.
        """
        moves = np.unique(np.column_stack([columns, np.zeros(len(columns), np.int64)]), axis=1)
        if moves.shape[1] > MOST_COLUMNS or np.any(moves % 2):
            return False
        first, second = np.triu_indices(moves.shape[1], 1)
        halves = moves // 2  # first, since differences of integers of 62 bits need 64
        return self.holds(np.unique(halves[:, first] - halves[:, second], axis=1))

    @abstractmethod
    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        """Noise of density ∝ exp(−‖z‖_K/scale), rounded to whole numbers: exact."""

    simulated: ClassVar[bool] = False
    """Whether the covariance is simulated, which takes seconds."""

    @property
    @abstractmethod
    def covariance(self) -> Floats:
        """Covariance of the noise at scale 1, before it is rounded."""

    @abstractmethod
    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Noise at scale 1 in floating point, for errors and intervals; never for a release.

        Returns count × size values z and totals s. The totals have the Gamma distribution with
        shape ``variables`` and are independent of the directions z/s.
        """

    @cached_property
    def directions(self) -> Floats:
        """Simulated z/s, always the same ones: an answer with weights b has noise Gamma·(b·z/s)."""
        count = min(DIRECTIONS, max(1024, ENTRIES // self.size))
        values, totals = self.simulate(count, np.random.default_rng(25))
        unit_directions = values / totals[:, None]
        unit_directions.flags.writeable = False
        return unit_directions

    def same_law(self, rows: Floats) -> Floats:
        """Rows of weights, each replaced by one that the symmetries of the body turn it into.

        The noise of both has one law. Every body is symmetric about 0.
        """
        first = np.take_along_axis(rows, (rows != 0).argmax(axis=1)[:, None], axis=1)
        return np.asarray(np.where(first < 0, -rows, rows))

    def norms(self, vectors: Floats) -> Floats:
        """The norms of rows in float64, of bodies that may be leaves of a split hull."""
        raise NotImplementedError

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume, of the same bodies."""
        raise NotImplementedError

    @property
    def direction_weights(self) -> Floats | None:
        """Weights of the directions, which sum to 1; None where all are the same."""
        return None

    @property
    def standard_error(self) -> float:
        """Relative standard error of one variance, where it is simulated; 0 if it is exact.

        That is two standard errors of the standard deviation.
        """
        return 0.0

    @property
    def pattern_unit(self) -> int:
        """What one record counts for in the hull of yes/no patterns; 0 for other bodies."""
        return 0

    @property
    @abstractmethod
    def words(self) -> str:
        """What the body is, in a few words."""

    @abstractmethod
    def pack(self, arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
        """Plain facts that define the body; arrays go into ``arrays`` under ``prefix``."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of what defines the body."""
