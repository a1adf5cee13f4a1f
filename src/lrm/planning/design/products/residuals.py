"""Residual bases: one attribute without its total, for Gaussian noise.

With ``R·u = 0`` for a vector u, what is measured of a set informs about that set alone. In whole
numbers u is one exactly, so that the closed forms hold for the integers themselves.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.planning.design.products.basis import (
    LARGEST_ENTRY,
    Cost,
    Numbers,
    ProductBasis,
    most_rows,
)
from lrm.planning.design.products.quadratic import PairGram
from lrm.queries.maps.linear import TINY, Floats, Integers, LinearMap

FEW_VALUES = 16
"""Attributes of so few values get all the bits there are."""


@dataclass(frozen=True, eq=False)
class ResidualBasis(ProductBasis):
    """A matrix R with ``R·u = 0`` for a vector u (``null``) of positive sum.

    In real numbers its columns have L2 norm 1 at most. With ``h = u`` and ``κ = 1ᵀu``,
    ``G = RᵀR + 11ᵀ/κ`` is invertible and ``G·h = 1``. Without ``rows``, R is ``n·I − 11ᵀ`` and u
    is 1.

    Examples
    --------
    >>> ResidualBasis(3).apply(np.array([[5], [3], [1]])).ravel().tolist()
    [6, 0, -6]
    """

    size: int
    rows: Numbers | None = None
    null: Numbers | None = None
    residual: ClassVar[bool] = True
    kind: ClassVar[str] = "residual"

    def __post_init__(self) -> None:
        if self.rows is None or self.null is None:
            if self.rows is not None or self.null is not None or self.size < 1:
                raise WorkloadError("a residual basis needs rows together with a null vector")
            return
        if self.is_whole:
            self._check_whole(self.rows, self.null)
        self.rows.setflags(write=False)
        self.null.setflags(write=False)

    def _check_whole(self, rows: Integers, null: Integers) -> None:
        if rows.ndim != 2 or rows.shape[1] != self.size or not len(rows):
            raise WorkloadError("the rows of a residual basis must cover its values")
        if len(rows) < self.size - 1 or len(rows) > most_rows(self.size):
            raise WorkloadError("a residual basis has too few or too many rows for its values")
        if null.shape != (self.size,) or self.size > LARGEST_ENTRY >> 16:
            raise WorkloadError("the null vector of a residual basis must cover its values")
        # Not by absolute values, since that of -2^63 is itself; sums of the products below stay
        # within 2^61.
        limit = LARGEST_ENTRY >> 8
        for entries in (rows, null):
            if entries.min() <= -limit or entries.max() >= limit:
                raise WorkloadError("an entry of a residual basis is too large")
        if null.sum() < 1:
            raise WorkloadError("the null vector of a residual basis must have a positive sum")
        if np.any(rows @ null != 0):
            raise WorkloadError("a residual basis must send its null vector to 0 exactly")

    @classmethod
    def of_gram(cls, gram: Floats, inverse: Floats) -> ResidualBasis:
        """The real basis with ``RᵀR`` in proportion to ``G − 11ᵀ/κ``, G of unit diagonal."""
        h = inverse.sum(axis=1)
        kappa = float(h.sum())
        square = max(1.0 - 1.0 / kappa, TINY)
        basis = cls(len(h), _root(gram - 1.0 / kappa) / math.sqrt(square), h)
        # As it is: the inverse of RᵀR + 11ᵀ/κ would lose digits.
        basis.__dict__["_projector"] = square * (inverse - np.outer(h, h) / kappa)
        return basis

    @property
    def is_whole(self) -> bool:
        return self.rows is None or bool(self.rows.dtype.kind == "i")

    @property
    def plain(self) -> bool:
        """Whether it is the identity without its mean."""
        return self.rows is None

    @property
    def height(self) -> int:
        return self.size if self.rows is None else len(self.rows)

    @property
    def peak(self) -> int:
        return self.size if self.rows is None else super().peak

    @cached_property
    def scale(self) -> float:
        """Divided by it, columns have L2 norm 1 at most."""
        return (math.sqrt(self.column_norm(2)) or 1.0) if self.is_whole else 1.0

    def column_norm(self, power: int) -> int:
        n = self.size
        if self.rows is None:
            return int((n - 1) ** power) + n - 1
        return super().column_norm(power)

    @cached_property
    def inner_products(self) -> tuple[float, float, float]:
        n = self.size
        return super().inner_products if self.rows is not None else (n * (n - 1), -n, -n)

    def apply(self, X: NDArray[np.generic]) -> NDArray[np.generic]:
        if self.rows is None:
            return np.asarray(self.size * X - X.sum(axis=0, keepdims=True))
        return np.asarray(self.rows.astype(X.dtype) @ X)

    def contents(self) -> dict[str, Integers]:
        """Rows and null vector, where they are not those of the identity."""
        if self.rows is None or self.null is None:
            return {}
        return {"null": self.null, "rows": self.rows}

    @classmethod
    def from_file(cls, size: int, rows: int, take: Callable[..., Integers]) -> ResidualBasis:
        null = take(size)
        return cls(size, take(rows, size), null)

    @cached_property
    def h(self) -> Floats:
        return np.ones(self.size) if self.null is None else self.null.astype(np.float64)

    @property
    def _factor(self) -> float:
        """What ``I − 11ᵀ/n`` is multiplied by where there are no rows."""
        return self.size / self.scale

    def times(self, X: Floats) -> Floats:
        if self.rows is not None:
            return super().times(X)
        return np.asarray(self._factor * (X - X.mean(axis=0, keepdims=True)))

    def transpose_times(self, Y: Floats) -> Floats:
        return self.times(Y) if self.rows is None else super().transpose_times(Y)

    def projector_times(self, X: Floats) -> Floats:
        if self.rows is not None:
            return super().projector_times(X)
        return np.asarray((X - X.mean(axis=0, keepdims=True)) / self._factor**2)

    def spreads(self, factor: LinearMap, other: LinearMap) -> Floats:
        if self.rows is not None:
            return super().spreads(factor, other)
        products = factor.entrywise_apply(other, np.ones((self.size, 1)))[:, 0]
        both = self.size * self.means(factor) * self.means(other)
        return np.asarray((products - both) / self._factor**2)

    def trace(self, gram: PairGram) -> float:
        if self.rows is not None:
            return super().trace(gram)
        total = float(gram.times(np.ones((self.size, 1))).sum())
        return (float(gram.squares.sum()) - total / self.size) / self._factor**2

    def rounded(self, bits: int, cost: Cost, null: Integers | None = None) -> ResidualBasis:
        """Round it so that its null vector is one exactly: ``null``, where it is decided already.

        Where queries do not distinguish all values, it is that of a Gram that does.
        """
        best = ResidualBasis(self.size)
        if self.rows is None:
            return best
        # The cost does not count for subsets with rows of their own, which decide the null vector.
        least = cost(best) if null is None else math.inf
        gram = (1.0 - 1.0 / self.kappa) * self.rows.T @ self.rows + 1.0 / self.kappa
        # Shares of the identity in a Gram that is rounded, where less of it costs too much.
        for share in (0.0, 1e-4, 1e-3, 1e-2):
            blended = (1.0 - share) * gram + share * np.eye(self.size)
            h = np.linalg.solve(blended, np.ones(self.size)) if share else self.h
            rounded = round_residual(_root(blended, 0.0), np.asarray(h, float), bits, cost, null)
            if (rounded_cost := cost(rounded)) < least:
                best, least = rounded, rounded_cost
            # What rounding one basis must cost at least before another share is tried.
            if least <= 1.003 or (null is not None and best.rows is not None):
                break
        if null is not None and best.rows is None:  # few values: no row near to these is 0 on it
            rows = null.sum() * np.eye(self.size, dtype=np.int64) - null[:, None]
            best = ResidualBasis(self.size, rows, null)
        return best


def _root(gram: Floats, least: float = 1e-12) -> Floats:
    """S with ``SᵀS = G``, without the directions below a share of the largest."""
    values, vectors = np.linalg.eigh(gram)
    some = values > least * max(values[-1], TINY)
    return np.asarray(np.sqrt(values[some])[:, None] * vectors[:, some].T)


def round_residual(
    columns: Floats,
    null: Floats,
    bits: int,
    cost: Cost,
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
    # What the rounding of one basis may cost before another null vector is tried: it gains most of
    # the cost where values are few, and less than 0.0005 where they are many.
    enough = 1.0001 if columns.shape[1] <= FEW_VALUES else 1.001
    # Size of the largest entry of a rounded null vector, which is never finer than the rows.
    for u in [whole] if whole is not None else _null_vectors(null, min(2048, 1 << bits)):
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
    # Steps of the scaling that makes the columns of a residual basis equally long.
    for _ in range(30):
        norms = np.linalg.norm(columns - (columns @ u)[:, None] / u.sum(), axis=0)
        # Columns are equally long where the shortest has this share of the longest.
        if norms.min() > 0.9999 * norms.max():
            break
        columns = columns * np.sqrt(norms.max() / np.maximum(norms, 1e-3 * norms.max()))
    return columns


def _moved(columns: Floats, moves: Moves, bits: int) -> ResidualBasis | None:
    """Rounded rows with entries moved until they are orthogonal to u."""
    u = moves.u
    residual = columns - (columns @ u)[:, None] / u.sum()
    values, vectors = np.linalg.eigh(residual.T @ residual)
    nonzero = values > 1e-12 * values[-1]
    rows = np.sqrt(values[nonzero])[:, None] * vectors[:, nonzero].T
    # The fewer values, the wider the steps between rows that are orthogonal to u.
    # Bits of the entries of a rounded residual basis; more gain less than 1e-5 of the error.
    largest = 1 << (bits if len(u) <= FEW_VALUES else min(bits, 18))
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
    # Changes of a row that are all tried, where the values are few.
    reach = int((60_000 ** (1 / values) - 1) / 2)
    steps = np.arange(-reach, reach + 1)
    if not reach:
        return np.zeros((0, values), dtype=np.int64)
    return np.stack(np.meshgrid(*[steps] * values), -1).reshape(-1, values)


class Moves:
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
def _moves_of(u: tuple[int, ...]) -> Moves:
    """The moves of a null vector, which is tried again with other numbers of bits."""
    return Moves(np.array(u))
