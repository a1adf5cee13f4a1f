r"""The cube: noise for yes/no counts where a record is replaced, which may move all counts by 1.

    K = [−u, u]^k with ‖z‖ = max|z_i|/u

*Sampler.* Let S_1 < … < S_k be the partial sums of k exponential variables; give them to the
coordinates in random order with random signs. The largest has the density of a Gamma variable with
shape k, and given it the others are independent and uniform below it; so on each of the 2k faces
the density is ``e^−s·s^(k−1)/(k−1)!·s^−(k−1)``, which is ∝ exp(−max|z_i|).
See docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import SYSTEM, Bits, Terms, below, round_sums, shuffle

MOST_SIDES = 400
LARGEST_UNIT = 1 << 62


@dataclass(frozen=True, eq=False)
class Cube(Body):
    """All vectors whose entries are at most ``unit`` in size.

    Parameters
    ----------
    sides
        Number of measured integers.
    unit
        Half of the length of a side.

    Examples
    --------
    >>> Cube(3, 2).gauge([1, -2, 0]), Cube(3, 1).covariance[0].round(9).tolist()
    (Fraction(1, 1), [6.666666667, 0.0, 0.0])
    """

    sides: int
    unit: int

    def __post_init__(self) -> None:
        if not 1 <= self.sides <= MOST_SIDES or not 1 <= self.unit <= LARGEST_UNIT:
            raise WorkloadError(f"a cube has 1 to {MOST_SIDES} sides of 1 to 2^62")

    @property
    def size(self) -> int:
        return self.sides

    def gauge(self, vector: Sequence[int]) -> Fraction:
        return Fraction(max(abs(int(x)) for x in vector), self.unit)

    def holds_differences(self, columns: Integers) -> bool:
        lows = [min(0, *row) for row in columns.tolist()]
        highs = [max(0, *row) for row in columns.tolist()]
        return all(h - low <= 2 * self.unit for h, low in zip(highs, lows, strict=True))

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        order = list(range(self.size))
        shuffle(order, bits)
        sums: list[Terms] = []
        for rank in order:
            sign = 1 - 2 * below(2, bits)
            sums.append([(variable, sign) for variable in range(rank + 1)])
        return round_sums(sums, self.size, scale * self.unit, bits)

    def same_law(self, rows: Floats) -> Floats:
        return np.sort(np.abs(rows), axis=1)

    @cached_property
    def covariance(self) -> Floats:
        variance = (self.size + 1) * (self.size + 2) / 3.0 * float(self.unit) ** 2
        matrix = np.eye(self.size) * variance
        matrix.flags.writeable = False
        return matrix

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        sums = np.cumsum(rng.standard_exponential((count, self.size)), axis=1)
        totals = sums[:, -1].copy()
        signs = rng.integers(2, size=sums.shape) * 2.0 - 1.0
        return rng.permuted(sums, axis=1) * signs * float(self.unit), totals

    @property
    def words(self) -> str:
        return f"{self.size} yes/no counts of replaced records"

    def pack(self, arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
        del arrays, prefix
        return {"kind": "cube", "sides": self.sides, "unit": str(self.unit)}

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(["cube", self.size, self.unit]).encode()).hexdigest()
