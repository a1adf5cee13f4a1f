"""Residual bases in integers: one attribute without its total, with an exact null vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.integers import ResidualBasis

__all__ = ["round_residual"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FINEST = 2048
"""Size of the largest entry of a rounded null vector."""

GOOD_ENOUGH = 1.0001
"""What the rounding of one basis may cost before another null vector is tried."""

BALANCING = 30
"""Steps of the scaling that makes the columns of a residual basis equally long."""

FEW_VALUES = 16
"""Attributes of so few values get all the bits there are."""

NEARBY = 60_000
"""Changes of a row that are all tried, where the values are few."""

MOST_BITS = 18
"""Bits of the entries of a rounded residual basis; more gain less than 1e-5 of the error."""


def round_residual(
    columns: Floats, null: Floats, bits: int, cost: Callable[[ResidualBasis], float]
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

    Notes
    -----
    Rows of R are rounded, and a few entries are moved until each is orthogonal to a rounded u.
    Few values leave few such rows, so several u are tried.
    """
    best = ResidualBasis(columns.shape[1])  # the identity, which needs no bits
    least = cost(best)
    for u in _null_vectors(null):
        rounded = _moved(_balanced(columns, u), u, bits)
        if rounded is not None and (candidate_cost := cost(rounded)) < least:
            best, least = rounded, candidate_cost
        if least <= GOOD_ENOUGH:
            break
    return best


def _null_vectors(null: Floats) -> Iterator[Integers]:
    """Yield integer vectors along ``null``, from the finest to the coarsest.

    Each is closer than all that are coarser. Few values have good coarse ones.
    """
    sizes = np.arange(1, FINEST + 1)
    targets = np.outer(sizes, null / np.abs(null).max())
    error = np.abs(np.rint(targets) - targets).max(axis=1) / sizes
    records, least = [], math.inf
    for row, row_error in zip(np.rint(targets).astype(np.int64), error, strict=True):
        if row_error < least and row.sum() > 0:
            least = row_error * (0.8 if len(null) <= FEW_VALUES else 0.5)
            records.append(row)
    yield from reversed(records)


def _balanced(columns: Floats, u: Integers) -> Floats:
    """S with its columns scaled so that ``S − S·u·1ᵀ/Σu`` has columns of one norm."""
    for _ in range(BALANCING):
        norms = np.linalg.norm(columns - (columns @ u)[:, None] / u.sum(), axis=0)
        columns = columns * np.sqrt(norms.max() / np.maximum(norms, 1e-3 * norms.max()))
    return columns


def _moved(columns: Floats, u: Integers, bits: int) -> ResidualBasis | None:
    """Rounded rows with entries moved until they are orthogonal to u."""
    residual = columns - (columns @ u)[:, None] / u.sum()
    values, vectors = np.linalg.eigh(residual.T @ residual)
    nonzero = values > 1e-12 * values[-1]
    rows = np.sqrt(values[nonzero])[:, None] * vectors[:, nonzero].T
    # The fewer values, the wider the steps between rows that are orthogonal to u.
    largest = 1 << (bits if len(u) <= FEW_VALUES else min(bits, MOST_BITS))
    scaled = rows * (largest / np.abs(rows).max())
    rounded = np.rint(scaled).astype(np.int64)
    moves = _Moves(u)
    if not all(moves.cancel(row, target) for row, target in zip(rounded, scaled, strict=True)):
        return None
    rounded = rounded[np.abs(rounded).max(axis=1) > 0]
    # Fewer rows could not distinguish all values.
    return ResidualBasis(len(u), rounded, u) if len(rounded) >= max(len(u) - 1, 1) else None


class _Moves:
    """Small changes of an integer row that make its product with u zero."""

    def __init__(self, u: Integers) -> None:
        self.u = u
        reach = int((NEARBY ** (1 / len(u)) - 1) / 2)
        steps = np.arange(-reach, reach + 1)
        self._nearby = None
        if reach:
            self._nearby = np.stack(np.meshgrid(*[steps] * len(u)), -1).reshape(-1, len(u))
            return
        # The shortest way from each product to 0, one entry moved by one at a time.
        size = np.abs(u)
        self._entries = {int(v): np.flatnonzero(size == v) for v in np.unique(size[size > 0])}
        values = np.array(list(self._entries))
        self._limit = 2 * int(values.max())
        self._next = np.zeros(2 * self._limit + 1, dtype=np.int64)
        reached = np.zeros(1, dtype=np.int64)
        while len(reached):
            ways = np.add.outer(np.append(values, -values), reached)
            moves = np.broadcast_to(np.append(values, -values)[:, None], ways.shape)
            new = (np.abs(ways) <= self._limit) & (ways != 0)
            reached, first = np.unique(ways[new], return_index=True)
            unseen = self._next[reached + self._limit] == 0
            reached, first = reached[unseen], first[unseen]
            self._next[reached + self._limit] = -moves[new][first]

    def cancel(self, row: Integers, target: Floats) -> bool:
        """Move entries of ``row`` until ``row·u = 0``; say whether that worked."""
        gap = int(row @ self.u)
        if self._nearby is not None:
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
