"""Residual bases in integers: one attribute without its total, with an exact null vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from lrm.planning.design.products.integers import ResidualBasis
from lrm.queries.maps.linear import Floats, Integers

FINEST = 2048
"""Size of the largest entry of a rounded null vector, which is never finer than the rows."""

GOOD_ENOUGH, GOOD_ENOUGH_OF_MANY = 1.0001, 1.001
"""What the rounding of one basis may cost before another null vector is tried: it gains most of the
cost where values are few, and less than 0.0005 where they are many."""

BALANCING = 30
"""Steps of the scaling that makes the columns of a residual basis equally long."""

BALANCED = 0.9999
"""Columns are equally long where the shortest has this share of the longest."""

FEW_VALUES = 16
"""Attributes of so few values get all the bits there are."""

NEARBY = 60_000
"""Changes of a row that are all tried, where the values are few."""

MOST_BITS = 18
"""Bits of the entries of a rounded residual basis; more gain less than 1e-5 of the error."""


def round_residual(
    columns: Floats,
    null: Floats,
    bits: int,
    cost: Callable[[ResidualBasis], float],
    whole: Integers | None = None,
) -> ResidualBasis:
    """Round a basis S without its total, so that its null vector is one exactly.

    Parameters
    ----------
    columns
        S, whose columns have norm 1.
    null
        ``h = (SᵀS)⁻¹·1``: what the residual ``R = S − S·h·1ᵀ/κ`` sends to 0.
    bits
        Entries of the result are hardly above 2^bits.
    cost
        The error with a rounded basis, divided by the error with S.
    whole
        The null vector that the result must have, where it is decided already.

    Notes
    -----
    Rows of R are rounded, and a few entries are moved until each is orthogonal to a rounded u.
    Few values leave few such rows, so several u are tried.
    """
    best = ResidualBasis(columns.shape[1])  # the identity, which needs no bits
    least = cost(best) if whole is None else math.inf
    enough = GOOD_ENOUGH if columns.shape[1] <= FEW_VALUES else GOOD_ENOUGH_OF_MANY
    for u in [whole] if whole is not None else _null_vectors(null, min(FINEST, 1 << bits)):
        moves = _moves_of(tuple(u.tolist()))
        rounded = _moved(_balanced(columns, u), moves, bits) if moves.are_many else None
        if rounded is not None and (candidate_cost := cost(rounded)) < least:
            best, least = rounded, candidate_cost
        if least <= enough:
            break
    return best


def _null_vectors(null: Floats, finest: int) -> Iterator[Integers]:
    """Yield integer vectors along ``null``, from the finest to the coarsest.

    Each is closer than all that are coarser. Few values have good coarse ones.
    """
    sizes = np.arange(1, finest + 1)
    targets = np.outer(sizes, null / np.abs(null).max())
    error = np.abs(np.rint(targets) - targets).max(axis=1) / sizes
    records, least = [], math.inf
    for row, row_error in zip(np.rint(targets).astype(np.int64), error, strict=True):
        if row_error < least and row.sum() > 0:
            least = row_error * 0.5
            records.append(row)
    yield from reversed(records)


def _balanced(columns: Floats, u: Integers) -> Floats:
    """S with its columns scaled so that ``S − S·u·1ᵀ/Σu`` has columns of one norm."""
    for _ in range(BALANCING):
        norms = np.linalg.norm(columns - (columns @ u)[:, None] / u.sum(), axis=0)
        if norms.min() > BALANCED * norms.max():
            break
        columns = columns * np.sqrt(norms.max() / np.maximum(norms, 1e-3 * norms.max()))
    return columns


def _moved(columns: Floats, moves: _Moves, bits: int) -> ResidualBasis | None:
    """Rounded rows with entries moved until they are orthogonal to u."""
    u = moves.u
    residual = columns - (columns @ u)[:, None] / u.sum()
    values, vectors = np.linalg.eigh(residual.T @ residual)
    nonzero = values > 1e-12 * values[-1]
    rows = np.sqrt(values[nonzero])[:, None] * vectors[:, nonzero].T
    # The fewer values, the wider the steps between rows that are orthogonal to u.
    largest = 1 << (bits if len(u) <= FEW_VALUES else min(bits, MOST_BITS))
    scaled = rows * (largest / np.abs(rows).max())
    rounded = np.rint(scaled).astype(np.int64)
    if not all(moves.cancel(row, target) for row, target in zip(rounded, scaled, strict=True)):
        return None
    rounded = rounded[np.abs(rounded).max(axis=1) > 0]
    # Fewer rows could not distinguish all values.
    return ResidualBasis(len(u), rounded, u) if len(rounded) >= max(len(u) - 1, 1) else None


@lru_cache(maxsize=2)
def _nearby(values: int) -> Integers:
    """All small changes of a row of few values; none where the values are more."""
    reach = int((NEARBY ** (1 / values) - 1) / 2)
    steps = np.arange(-reach, reach + 1)
    if not reach:
        return np.zeros((0, values), dtype=np.int64)
    return np.stack(np.meshgrid(*[steps] * values), -1).reshape(-1, values)


class _Moves:
    """Small changes of an integer row that make its product with u zero."""

    def __init__(self, u: Integers) -> None:
        self.u, self._nearby = u, _nearby(len(u))
        if not len(self._nearby):
            self._find_ways()

    @property
    def are_many(self) -> bool:
        """Whether each product with u is expected to have a change that makes it zero."""
        products = self._nearby.max(initial=0) * np.abs(self.u).sum()
        return bool(len(self._nearby) >= 2 * products)

    def _find_ways(self) -> None:
        """Find the shortest way from each product to 0, one entry moved by one at a time."""
        size = np.abs(self.u)
        self._entries = {int(v): np.flatnonzero(size == v) for v in np.unique(size[size > 0])}
        values = np.array(list(self._entries))
        self._limit = 2 * int(values.max())
        self._next = np.zeros(2 * self._limit + 1, dtype=np.int64)
        reached = np.zeros(1, dtype=np.int64)
        while len(reached):
            found = []
            for value in np.append(values, -values).tolist():
                ways = reached + value
                ways = ways[(np.abs(ways) <= self._limit) & (ways != 0)]
                ways = ways[self._next[ways + self._limit] == 0]
                self._next[ways + self._limit] = -value
                found.append(ways)
            reached = np.concatenate(found)

    def cancel(self, row: Integers, target: Floats) -> bool:
        """Move entries of ``row`` until ``row·u = 0``; say whether that worked."""
        gap = int(row @ self.u)
        if len(self._nearby):
            fitting = self._nearby[self._nearby @ self.u == -gap]
            if len(fitting):
                row += fitting[np.argmin(((row + fitting - target) ** 2).sum(axis=1))]
            return len(fitting) > 0
        size = np.abs(self.u)
        while abs(gap) > 2 * int(size.max()):
            # Of the entries that bring the product nearer to 0, the one that costs least.
            step = -np.sign(self.u) * (1 if gap > 0 else -1)
            cost = (row + step - target) ** 2 - (row - target) ** 2
            j = int(np.argmin(np.where(size > 0, cost / np.maximum(size, 1), np.inf)))
            row[j] += step[j]
            gap += int(step[j] * self.u[j])
        while gap:
            move = int(self._next[gap + self._limit])
            if move == 0:
                return False
            entries = self._entries[abs(move)]
            step = np.sign(self.u[entries]) * (1 if move > 0 else -1)
            cost = (row - target)[entries] * step  # half of what the square grows by, less 1
            place = int(np.argmin(cost))
            row[entries[place]] += step[place]
            gap += move
        return True


@lru_cache(maxsize=64)
def _moves_of(u: tuple[int, ...]) -> _Moves:
    """The moves of a null vector, which is tried again with other numbers of bits."""
    return _Moves(np.array(u))
