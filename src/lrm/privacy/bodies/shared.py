r"""Tables that share attributes: a body of tables for each value of what they share.

    K = conv(± all that a record can add to tables A×B, A×C, A×D, …)

Any two of the tables have the same attributes A in common. A record has one value a of them, and
adds 1 to one cell of each table, all with the value a. So K is the hull of bodies K_a in
coordinates of their own, each that of closed tables B, C, D (`Tables`). The norm is the sum of
theirs, and their noises are independent. See docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import SYSTEM, Bits
from lrm.privacy.bodies.tables import MOST_FREE_CELLS, Tables


def shared_attributes(tables: Sequence[Sequence[int]]) -> frozenset[int] | None:
    """The attributes that any two of several tables share; None where these differ.

    >>> sorted(shared_attributes([(0, 1), (0, 2)])), shared_attributes([(0, 1), (0, 2), (1, 2)])
    ([0], None)
    """
    sets = [frozenset(table) for table in tables]
    shared = frozenset.intersection(*sets)
    own = sum(len(attributes) for attributes in sets) - len(sets) * len(shared)
    apart = own == len(frozenset.union(*sets)) - len(shared)
    return shared if apart and all(attributes > shared for attributes in sets) else None


@dataclass(frozen=True, eq=False)
class SharedTables(Body):
    """The hull of what a record can add to tables that share attributes, with both signs.

    Parameters
    ----------
    tables
        The attributes of each table, ascending, each with its number of values. Cells are measured
        table by table, in C order.
    unit
        What one record counts for in the measured integers.

    Examples
    --------
    >>> body = SharedTables((((0, 2), (1, 2)), ((0, 2), (2, 2))), 1)
    >>> body.gauge([1, 0, 0, 0, 0, 1, 0, 0]), body.gauge([1, 0, -1, 0, 0, 1, 0, -1])
    (Fraction(1, 1), Fraction(2, 1))
    """

    tables: tuple[tuple[tuple[int, int], ...], ...]
    unit: int

    def __post_init__(self) -> None:
        values: dict[int, int] = {}
        for table in self.tables:
            attributes = [i for i, _ in table]
            if attributes != sorted(set(attributes)) or any(n < 1 for _, n in table):
                raise WorkloadError("attributes of a table must be in order, each with a value")
            if any(values.setdefault(i, n) != n for i, n in table):
                raise WorkloadError("an attribute must have one number of values in all tables")
        if len(self.tables) < 2 or not self._shared:
            raise WorkloadError("any two of the tables must have the same attributes in common")
        if self.size > MOST_FREE_CELLS:
            raise WorkloadError(f"a body of tables has at most {MOST_FREE_CELLS:,} cells")
        Tables((1,), (True,), self.unit)  # checks the unit

    @cached_property
    def _shared(self) -> frozenset[int] | None:
        return shared_attributes([[i for i, _ in table] for table in self.tables])

    @cached_property
    def _part(self) -> Tables:
        """The body of each value of the shared attributes."""
        sizes = [
            math.prod(n for i, n in table if i not in (self._shared or ())) for table in self.tables
        ]
        return Tables(tuple(sizes), (True,) * len(sizes), self.unit)

    @cached_property
    def _places(self) -> Integers:
        """The coordinates of each value of the shared attributes, one row per value."""
        shared, parts, start = self._shared or (), [], 0
        for table in self.tables:
            order = sorted(range(len(table)), key=lambda p: (table[p][0] not in shared, p))
            numbers = np.arange(math.prod(n for _, n in table)).reshape([n for _, n in table])
            count = math.prod(n for i, n in table if i in shared)
            parts.append(start + numbers.transpose(order).reshape(count, -1))
            start += numbers.size
        return np.hstack(parts)

    @property
    def size(self) -> int:
        return sum(math.prod(n for _, n in table) for table in self.tables)

    @property
    def variables(self) -> int:
        return len(self._places) * self._part.variables

    def gauge(self, vector: Sequence[int]) -> Fraction:
        parts = ([vector[p] for p in places] for places in self._places.tolist())
        return sum((self._part.gauge(part) for part in parts), Fraction(0))

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        noise = [0] * self.size
        for places in self._places.tolist():
            for place, value in zip(places, self._part.draw(scale, bits), strict=True):
                noise[place] = value
        return noise

    @cached_property
    def covariance(self) -> Floats:
        matrix = np.zeros((self.size, self.size))
        for places in self._places:
            matrix[np.ix_(places, places)] = self._part.covariance
        matrix.flags.writeable = False
        return matrix

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        values, totals = np.empty((count, self.size)), np.zeros(count)
        for places in self._places:
            values[:, places], part_totals = self._part.simulate(count, rng)
            totals += part_totals
        return values, totals

    @property
    def words(self) -> str:
        return f"{self._part.words} for each of {len(self._places)} common values"

    def pack(self, arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
        del arrays, prefix
        return {
            "kind": "shared tables",
            "tables": [list(itertools.chain.from_iterable(table)) for table in self.tables],
            "unit": str(self.unit),
        }

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.pack({}, "")).encode()).hexdigest()
