r"""The body of tables: every record adds 1 to at most one cell of each of several tables.

    K = conv(± all vectors with at most one 1 in each open table and exactly one in each closed)

A closed table counts every record once, so that all closed tables have one total; an open table
may leave records out. The norm is ``P + Q``, where P and Q are at least the sums of the positive
and of the negative entries of every table, and ``P − Q`` is the total where there is one. Special
cases: one open table is the cross-polytope (independent Laplace noise), k open tables of one cell
the hull of all yes/no patterns of k counts, closed tables the hull of one-way tables.

Sampler. Let m be the number of free cells of a table (all of an open one; all but the first of a
closed one, which follows from the total) and M their sum. Draw P and Q with density
``exp(−P − Q)·Π vol_i(P, Q)`` and the free cells of each table uniformly from the set in which
positive entries sum to at most P and negative ones to at most Q. Whatever lies in that set for
(P, Q) does so for larger ones, so that the density of the cells (with the total P − Q, where a
table is closed) is ``∫ exp(−P' − Q')`` over larger values: proportional to exp(−‖z‖_K).

    vol_i(P, Q) = Σ_a C(m, a)·P^a/a!·Q^(m−a)/(m−a)!

since C(m, a) sign patterns have a positive entries. So the numbers a_i of positive entries have
weights ``A!·(M − A)!·Π C(m_i, a_i)²`` with ``A = Σ a_i``; given them P is the sum of A + 1
exponential variables, and the positive entries of a table are differences of a_i of the A points
in which these variables divide [0, P]. Likewise Q. See docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.privacy.bodies.base import Body, Floats, Integers
from lrm.privacy.bodies.drawing import (
    SYSTEM,
    WORD_BITS,
    Bits,
    Terms,
    choose,
    round_sums,
    shuffle,
    words,
)

MOST_FREE_CELLS = 1000
"""Cells of all tables, whose covariances take seconds; plans have 800 at most."""

LARGEST_UNIT = 1 << 62

LISTED_TABLES = 6
"""Tables whose sizes are all named in words."""


@dataclass(frozen=True, eq=False)
class Tables(Body):
    """The hull of what a record can add to several tables, with both signs.

    Parameters
    ----------
    sizes
        Number of cells of each table, which are measured one after the other.
    closed
        Whether each table counts every record.
    unit
        What one record counts for in the measured integers.

    Examples
    --------
    >>> yes_no = Tables((1, 1, 1), (False,) * 3, 1)
    >>> yes_no.gauge([1, 1, 0]), yes_no.gauge([1, -1, 0])
    (Fraction(1, 1), Fraction(2, 1))
    >>> yes_no.covariance.round(9).tolist()
    [[5.0, 2.5, 2.5], [2.5, 5.0, 2.5], [2.5, 2.5, 5.0]]
    """

    sizes: tuple[int, ...]
    closed: tuple[bool, ...]
    unit: int

    def __post_init__(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.closed) or min(self.sizes) < 1:
            raise WorkloadError("a body of tables needs at least one table, each with a cell")
        if not 1 <= self.unit <= LARGEST_UNIT:
            raise WorkloadError("one record must count for 1 to 2^62 in the measured integers")
        if sum(self.sizes) > MOST_FREE_CELLS:
            raise WorkloadError(f"a body of tables has at most {MOST_FREE_CELLS:,} cells")

    @property
    def free(self) -> tuple[int, ...]:
        """Number of free cells of each table."""
        return tuple(n - is_closed for n, is_closed in zip(self.sizes, self.closed, strict=True))

    @property
    def has_total(self) -> bool:
        """Whether the total is part of the noise."""
        return any(self.closed)

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def variables(self) -> int:
        return sum(self.free) + 2

    def gauge(self, vector: Sequence[int]) -> Fraction:
        positive = negative = 0
        totals = set()
        for start, size, closed in self._places():
            table_cells = vector[start : start + size]
            if closed:
                totals.add(sum(table_cells))
            positive = max(positive, sum(x for x in table_cells if x > 0))
            negative = max(negative, -sum(x for x in table_cells if x < 0))
        if not totals:
            return Fraction(positive + negative, self.unit)
        if len(totals) > 1:
            raise WorkloadError("closed tables must have one common total")
        (total,) = totals
        larger = max(positive, negative + total)
        return Fraction(2 * larger - total, self.unit)

    def _places(self) -> list[tuple[int, int, bool]]:
        starts = [0, *accumulate(self.sizes)][:-1]
        return list(zip(starts, self.sizes, self.closed, strict=True))

    def draw(self, scale: Fraction, bits: Bits = SYSTEM) -> list[int]:
        positives = self._positives(bits)
        total = sum(self.free)
        above, below = sum(positives), total - sum(positives)
        cells = [list(range(m)) for m in self.free]
        for table_part in cells:
            shuffle(table_part, bits)
        terms: list[list[list[tuple[int, int]]]] = [[[] for _ in range(m)] for m in self.free]
        # The points that divide [0, P] belong to the tables in random order; likewise [0, Q].
        for sign, first, counts in (
            (1, 0, positives),
            (-1, above + 1, [m - a for m, a in zip(self.free, positives, strict=True)]),
        ):
            owners = [i for i, count in enumerate(counts) for _ in range(count)]
            shuffle(owners, bits)
            last = [first] * len(counts)
            for rank, i in enumerate(owners, start=first + 1):
                cell = cells[i].pop()
                terms[i][cell] = [(variable, sign) for variable in range(last[i], rank)]
                last[i] = rank
        sums: list[Terms] = [cell_terms for table_part in terms for cell_terms in table_part]
        if self.has_total:
            everything = [(v, 1) for v in range(above + 1)]
            everything += [(v, -1) for v in range(above + 1, above + below + 2)]
            sums.append(everything)
        rounded = round_sums(sums, total + 2, scale * self.unit, bits)
        return self._with_first_cells(rounded)

    def draw_facets(self, count: int, bits: Bits = SYSTEM) -> Integers:
        """Facets of the body of one open table: a random sign for each cell, as a binary digit."""
        return (words(count, bits) >> np.uint64(WORD_BITS - self.size)).astype(np.int64)

    def corners(self, numbers: Integers) -> Floats:
        """The vertices of such facets: cells with their signs."""
        signs = 1 - 2 * (numbers[:, None] >> np.arange(self.size) & 1)
        return np.asarray(np.eye(self.size) * (signs * float(self.unit))[:, :, None])

    def norms(self, vectors: Floats) -> Floats:
        """Of one open table."""
        return np.asarray(np.abs(vectors).sum(axis=1) / self.unit)

    @property
    def log_volume(self) -> float:
        """Of one open table."""
        return self.size * math.log(2 * self.unit) - math.lgamma(self.size + 1)

    def _with_first_cells(self, rounded: list[int]) -> list[int]:
        """All cells from the free ones and the total."""
        all_cells, place = [], 0
        for m, closed in zip(self.free, self.closed, strict=True):
            free_cells = rounded[place : place + m]
            all_cells += [rounded[-1] - sum(free_cells), *free_cells] if closed else free_cells
            place += m
        return all_cells

    def _positives(self, bits: Bits) -> list[int]:
        """The number of positive free cells of each table."""
        left = choose(self._totals, bits)
        positive_counts = []
        for i, m in enumerate(self.free):
            rest = self._suffixes[i + 1]
            a = choose(_cumulative(m, tuple(rest), left), bits)
            positive_counts.append(a)
            left -= a
        return positive_counts

    @cached_property
    def _suffixes(self) -> list[list[int]]:
        """Coefficients of Π Σ_a C(m, a)²·x^a over the tables from each one on."""
        suffixes = [[1]]
        for m in reversed(self.free):
            suffixes.append(_times(_squares(m), suffixes[-1]))
        return suffixes[::-1]

    @cached_property
    def _totals(self) -> list[int]:
        """Cumulative weights of the number A of positive free cells."""
        return list(accumulate(_weights(self._suffixes[0])))

    @cached_property
    def covariance(self) -> Floats:
        groups = _moments(self.free)
        k = sum(self.free)
        table = np.repeat(np.arange(len(self.free)), self.free)
        free_covariance = np.zeros((k + 1, k + 1))
        free_covariance[:k, :k] = groups.between[table[:, None], table]
        same = table[:, None] == table
        free_covariance[:k, :k][same] = groups.within[table[:, None], table][same]
        free_covariance[np.arange(k), np.arange(k)] = groups.variance[table]
        free_covariance[k, :k] = free_covariance[:k, k] = groups.with_total[table]
        free_covariance[k, k] = groups.total
        spread = self._spread()
        result = spread @ free_covariance @ spread.T * float(self.unit) ** 2
        result.flags.writeable = False
        return result

    def _spread(self) -> Floats:
        """All cells from the free ones and the total, as a matrix."""
        matrix = np.zeros((self.size, sum(self.free) + 1))
        place = 0
        for (start, size, closed), m in zip(self._places(), self.free, strict=True):
            matrix[start + closed : start + size, place : place + m] = np.eye(m)
            if closed:
                matrix[start, place : place + m] = -1.0
                matrix[start, -1] = 1.0
            place += m
        return matrix

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        weights = _weights(self._suffixes[0])
        sums = np.array([float(Fraction(w, sum(weights))) for w in weights])
        left = rng.choice(len(sums), count, p=sums / sums.sum())
        above = rng.standard_gamma(left + 1.0)
        below = rng.standard_gamma(sum(self.free) - left + 1.0)
        free = []
        for i, m in enumerate(self.free):
            chances = _conditional(m, tuple(self._suffixes[i + 1]))
            a = (rng.random(count)[:, None] >= chances[left]).sum(axis=1)
            left = left - a
            order = np.argsort(rng.random((count, m)), axis=1)
            positive = np.argsort(order, axis=1) < a[:, None]
            parts = rng.standard_exponential((count, m))
            rest = rng.standard_exponential((2, count))
            high = (parts * positive).sum(axis=1) + rest[0]
            low = (parts * ~positive).sum(axis=1) + rest[1]
            scale = np.where(positive, (above / high)[:, None], -(below / low)[:, None])
            free.append(parts * scale)
        values = np.column_stack([*free, above - below])
        return values @ self._spread().T * float(self.unit), above + below

    @property
    def pattern_unit(self) -> int:
        return self.unit if max(self.sizes) == 1 and not self.has_total else 0

    def same_law(self, rows: Floats) -> Floats:
        """Cells of a table are alike, and so are tables of one size."""
        ends = np.cumsum(self.sizes)
        kinds: dict[tuple[int, bool], list[int]] = {}
        for table, kind in enumerate(zip(self.sizes, self.closed, strict=True)):
            kinds.setdefault(kind, []).append(table)
        signed = []
        for sign in (1.0, -1.0):
            parts = []
            for (size, _), tables in kinds.items():
                cells = np.stack([rows[:, ends[t] - size : ends[t]] for t in tables], axis=1)
                cells = np.sort(sign * cells, axis=2)
                order = np.lexsort(np.moveaxis(cells, 2, 0)[::-1], axis=1)
                parts.append((tables, np.take_along_axis(cells, order[:, :, None], axis=1)))
            ordered = np.empty(rows.shape)
            for tables, cells in parts:
                for place, table in enumerate(tables):
                    ordered[:, ends[table] - self.sizes[table] : ends[table]] = cells[:, place]
            signed.append(ordered)
        plus, minus = signed
        differs = (plus != minus).argmax(axis=1)[:, None]
        less = np.take_along_axis(plus - minus, differs, axis=1) < 0
        return np.where(less, minus, plus)

    @property
    def words(self) -> str:
        if len(self.sizes) == 1:
            return f"a table of {self.size} cell{'s' if self.size > 1 else ''}"
        if not self.has_total and max(self.sizes) == 1:
            return f"{self.size} yes/no counts"
        if len(self.sizes) > LISTED_TABLES:
            least, most = min(self.sizes), max(self.sizes)
            cells = f"{most}" if least == most else f"{least} to {most}"
            return f"{len(self.sizes)} tables of {cells} cells"
        return "tables of " + ", ".join(map(str, self.sizes)) + " cells"

    def pack(self, arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
        del arrays, prefix
        return {
            "kind": "tables",
            "sizes": list(self.sizes),
            "closed": [int(is_closed) for is_closed in self.closed],
            "unit": str(self.unit),
        }

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.pack({}, "")).encode()).hexdigest()


def _squares(m: int) -> list[int]:
    return [math.comb(m, a) ** 2 for a in range(m + 1)]


def _times(first_factor: Sequence[int], two: Sequence[int]) -> list[int]:
    coefficients = [0] * (len(first_factor) + len(two) - 1)
    for i, x in enumerate(first_factor):
        for j, y in enumerate(two):
            coefficients[i + j] += x * y
    return coefficients


def _weights(coefficients: Sequence[int]) -> list[int]:
    """Weights of the number A of positive free cells: c_A·A!·(M − A)!."""
    most = len(coefficients) - 1
    return [c * math.factorial(a) * math.factorial(most - a) for a, c in enumerate(coefficients)]


@lru_cache(maxsize=4096)
def _cumulative(m: int, rest: tuple[int, ...], left: int) -> list[int]:
    """Cumulative weights of a for one table, where ``left`` are to be divided up."""
    return list(
        accumulate(
            c * rest[left - a] if 0 <= left - a < len(rest) else 0
            for a, c in enumerate(_squares(m))
        )
    )


def _conditional(m: int, rest: tuple[int, ...]) -> Floats:
    """Cumulative probabilities of a (columns, without the last) for each number left (rows)."""
    probabilities = np.ones((m + len(rest), m + 1))
    for left in range(m + len(rest)):
        sums = _cumulative(m, rest, left)
        probabilities[left] = [s / sums[-1] for s in sums]
    return probabilities[:, :-1]


@dataclass(frozen=True, eq=False)
class _Moments:
    """Second moments of free cells and of the total, for tables of some numbers of free cells."""

    variance: Floats
    within: Floats
    between: Floats
    with_total: Floats
    total: float


@lru_cache(maxsize=256)
def _moments(free: tuple[int, ...]) -> _Moments:
    """Second moments, to about 13 digits of the variances.

    All terms are positive quotients of whole numbers before some of their sums are subtracted from
    others, so float64 loses nothing but roundings. Of hundreds of cells, terms that underflow are
    less than 1e-100 of their sum.
    """
    every = [1]
    for m in free:
        every = _times(every, _squares(m))
    sums = _Sums(every)
    kinds = sorted(set(free) - {0})
    single: dict[int, tuple[float, float, float]] = {}
    pairs: dict[tuple[int, int], float] = {}
    for i, first in enumerate(kinds):
        rest = _without(every, first)
        single[first] = sums.single(first, rest)
        for second in kinds[i:]:
            if first != second or free.count(first) > 1:
                moment = sums.pair(first, second, _without(rest, second))
                pairs[first, second] = pairs[second, first] = moment
    count = len(free)
    within, between = np.zeros((count, count)), np.zeros((count, count))
    for i, first in enumerate(free):
        within[i, i] = single[first][1] if first else 0.0
        for j, second in enumerate(free):
            if i != j and first and second:
                between[i, j] = pairs[first, second]
    variance = np.array([single[m][0] if m else 0.0 for m in free])
    with_total = np.array([single[m][2] if m else 0.0 for m in free])
    return _Moments(variance, within, between, with_total, sums.total)


def _total_square(above: int, below: int) -> int:
    """E (P − Q)² for sums of above + 1 and below + 1 exponential variables."""
    square = (above + 1) * (above + 2) + (below + 1) * (below + 2)
    return square - 2 * (above + 1) * (below + 1)


def _without(coefficients: Sequence[int], m: int) -> list[int]:
    """The quotient of a polynomial by that of a table: exact, since it is one of its factors."""
    divisor, left = _squares(m), list(coefficients)
    quotient = [0] * (len(left) - m)
    for place in range(len(quotient)):
        quotient[place] = left[place]
        for i, x in enumerate(divisor):
            left[place + i] -= quotient[place] * x
    return quotient


def _shares_of_largest(numbers: Sequence[int]) -> tuple[Floats, int]:
    largest = max(numbers)
    return np.array([number / largest for number in numbers]), largest


class _Sums:
    """Means over the number A of positive free cells by its weights, those of ``every`` table."""

    def __init__(self, every: Sequence[int]) -> None:
        most = len(every) - 1
        weights = [math.factorial(a) * math.factorial(most - a) for a in range(most + 1)]
        self._scale = sum(map(mul, every, weights))
        squares = (_total_square(a, most - a) for a in range(most + 1))
        total = sum(map(mul, map(mul, every, weights), squares))
        self.total = total / self._scale
        shares, self._largest = _shares_of_largest(weights)
        above = np.arange(1.0, most + 2.0)
        below = above[::-1]
        # E P², E Q² and E PQ of sums of A + 1 and B + 1 exponential variables.
        products = (above * (above + 1), below * (below + 1), above * below)
        self._weighted = [shares * product for product in products]

    def _of_tables(self, rest: Sequence[int], *tables: int) -> list[Floats]:
        """E P², E Q² and E PQ by the number of positive cells of each of some tables.

        ``rest`` are the coefficients of all other tables.
        """
        others, factor = _shares_of_largest(rest)
        numbers, weights = np.zeros((), dtype=np.int64), np.ones(())
        for m in tables:
            of_table, largest = _shares_of_largest(_squares(m))
            factor *= largest
            numbers = numbers[..., None] + np.arange(m + 1)
            weights = weights[..., None] * of_table
        weights *= factor * self._largest / self._scale
        return [np.correlate(v, others, "valid")[numbers] * weights for v in self._weighted]

    def single(self, m: int, rest: Sequence[int]) -> tuple[float, float, float]:
        """Variance of a free cell, covariance of two of the same table, and with the total."""
        p, q, mixed = self._of_tables(rest, m)
        a = np.arange(m + 1.0)
        b = m - a
        variance = 2 * (a / ((a + 1) * (a + 2)) @ p + b / ((b + 1) * (b + 2)) @ q) / m
        with_total = (a / (a + 1) @ (p - mixed) + b / (b + 1) @ (q - mixed)) / m
        both_signs = a * (a - 1) / ((a + 1) * (a + 2)) @ p + b * (b - 1) / ((b + 1) * (b + 2)) @ q
        crossed = 2 * (a * b / ((a + 1) * (b + 1))) @ mixed
        within = (both_signs - crossed) / (m * (m - 1)) if m > 1 else 0.0
        return float(variance), float(within), float(with_total)

    def pair(self, first: int, second: int, rest: Sequence[int]) -> float:
        """Covariance of free cells of two tables."""
        p, q, mixed = self._of_tables(rest, first, second)
        a, e = np.arange(first + 1.0), np.arange(second + 1.0)
        above, above_second = a / (a + 1), e / (e + 1)
        below, below_second = above[::-1], above_second[::-1]
        both = above @ p @ above_second + below @ q @ below_second
        crossed = above @ mixed @ below_second + below @ mixed @ above_second
        return float(both - crossed) / (first * second)
