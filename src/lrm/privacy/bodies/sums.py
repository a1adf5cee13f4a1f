r"""Groups of measurements with independent noise: the norm is a weighted sum of norms.

    ‖z‖ = Σ_g s_g·‖z_g‖_g with shares s_g > 0, so that exp(−‖z‖/scale) = Π_g exp(−s_g·‖z_g‖_g/scale)

and the noise of each group is that of its own body at the scale scale/s_g. A record may move each
group by norm 1 if the shares sum to 1: this is how a budget is divided among groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import SYSTEM, Bits
from lrm.privacy.bodies.tables import MOST_FREE_CELLS

WHOLE = 1 << 24
"""What the shares of all groups sum to."""


@dataclass(frozen=True, eq=False)
class Groups(Body):
    """Independent noise on several groups of measurements.

    Parameters
    ----------
    bodies
        One per group, none of them groups themselves.
    shares
        Parts of `WHOLE`, one per group.

    Examples
    --------
    >>> from lrm.privacy.bodies.tables import Tables
    >>> half = Groups((Tables((1,), (False,), 1),) * 2, (WHOLE // 2, WHOLE // 2))
    >>> half.gauge([1, 1]), half.covariance.tolist()
    (Fraction(1, 1), [[8.0, 0.0], [0.0, 8.0]])
    """

    bodies: tuple[Body, ...]
    shares: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.bodies or len(self.bodies) != len(self.shares):
            raise WorkloadError("groups of measurements need one body and one share each")
        if any(isinstance(body, Groups) for body in self.bodies):
            raise WorkloadError("a group of measurements cannot consist of groups")
        if min(self.shares) < 1 or sum(self.shares) > WHOLE:
            raise WorkloadError("the shares of groups must be positive and sum to at most 1")
        if self.size > MOST_FREE_CELLS:
            raise WorkloadError(f"groups have at most {MOST_FREE_CELLS:,} measurements")

    def _parts(self) -> list[tuple[Body, int, slice]]:
        ends = list(accumulate(body.size for body in self.bodies))
        places = [slice(end - body.size, end) for end, body in zip(ends, self.bodies, strict=True)]
        return list(zip(self.bodies, self.shares, places, strict=True))

    @property
    def size(self) -> int:
        return sum(body.size for body in self.bodies)

    @property
    def variables(self) -> int:
        return sum(body.variables for body in self.bodies)

    def gauge(self, vector: Sequence[int]) -> Fraction:
        norms = (
            share * body.gauge(vector[part_slice]) for body, share, part_slice in self._parts()
        )
        return sum(norms, Fraction(0)) / WHOLE

    def holds(self, columns: Integers) -> bool:
        """Whether each group holds its part of every column, or the norms of all sum to 1."""
        if all(body.holds(columns[part_slice]) for body, _, part_slice in self._parts()):
            return True
        return super().holds(columns)

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        noise: list[int] = []
        for body, share, _ in self._parts():
            noise += body.draw(scale * WHOLE / share, bits)
        return noise

    @cached_property
    def covariance(self) -> Floats:
        matrix = np.zeros((self.size, self.size))
        for body, share, part_slice in self._parts():
            matrix[part_slice, part_slice] = body.covariance * (WHOLE / share) ** 2
        matrix.flags.writeable = False
        return matrix

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        values, totals = np.empty((count, self.size)), np.zeros(count)
        for body, share, part_slice in self._parts():
            part, total = body.simulate(count, rng)
            values[:, part_slice] = part * (WHOLE / share)
            totals += total
        return values, totals

    def same_law(self, rows: Floats) -> Floats:
        parts = [body.same_law(rows[:, part_slice]) for body, _, part_slice in self._parts()]
        return np.hstack(parts)

    @property
    def words(self) -> str:
        return f"{len(self.bodies)} groups: " + "; ".join(body.words for body in self.bodies)

    def pack(self, arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
        return {
            "kind": "groups",
            "shares": list(self.shares),
            "bodies": [body.pack(arrays, f"{prefix}-{g}") for g, body in enumerate(self.bodies)],
        }

    @property
    def digest(self) -> str:
        parts = [self.shares, [body.digest for body in self.bodies]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
