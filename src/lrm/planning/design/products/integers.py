"""Integer bases: what is measured of one attribute, exactly.

Laplace noise asks for equal L1 norms of all columns, Gaussian noise for a vector that the basis
sends to 0 exactly, so that the closed forms hold for the integers themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.errors import WorkloadError
from lrm.planning.design.integers import ProductBasis, row_divisors
from lrm.planning.design.products.basis import Basis
from lrm.planning.design.products.residuals import RealResidual
from lrm.queries.maps.linear import Floats, Integers

LARGEST_ENTRY = 1 << 31
"""Entries of integer bases lie below this."""

MOST_ROWS = 4
"""Rows of a basis per value; trees and optimised bases have fewer than 2."""

FEW_ROWS = 64
"""Rows that a basis may have, whatever the number of its values."""


def largest_remainders(shares: Floats, total: int) -> Integers:
    """Round shares ≥ 0 that sum to 1 (along axis 0) to integers that sum to exactly ``total``.

    Examples
    --------
    >>> largest_remainders(np.array([0.5, 0.3, 0.2]), 7).tolist()
    [4, 2, 1]
    """
    scaled = shares * total
    floors = np.floor(scaled).astype(np.int64)
    missing = total - floors.sum(axis=0)
    order = np.argsort(-(scaled - floors), axis=0, kind="stable")
    rank = np.argsort(order, axis=0)
    return np.asarray(floors + (rank < missing))


@dataclass(frozen=True, eq=False)
class MarginalBasis(ProductBasis):
    """``S = [diag(diagonal); rows]`` in integers ≥ 0, all of whose columns sum to ``total``."""

    diagonal: Integers
    rows: Integers

    def __post_init__(self) -> None:
        n = len(self.diagonal)
        if self.diagonal.ndim != 1 or not n or self.rows.ndim != 2 or self.rows.shape[1] != n:
            raise WorkloadError("an integer basis needs a diagonal, and rows of the same length")
        if (self.diagonal < 1).any() or (self.rows < 0).any():
            raise WorkloadError("an integer basis needs a positive diagonal and rows >= 0")
        if max(self.diagonal.max(), self.rows.max(initial=0)) >= LARGEST_ENTRY:
            raise WorkloadError("an entry of an integer basis is too large")
        # The way back inverts a matrix of rows x rows, which must not outgrow the basis itself.
        if len(self.rows) > max(MOST_ROWS * n, FEW_ROWS):
            raise WorkloadError("an integer basis has too many rows for its values")
        sums = self.diagonal + self.rows.sum(axis=0)
        if not np.all(sums == sums[0]):
            raise WorkloadError("all columns of an integer basis must have the same sum")
        self.diagonal.setflags(write=False)
        self.rows.setflags(write=False)
        object.__setattr__(self, "size", n)

    @classmethod
    def identity(cls, size: int) -> MarginalBasis:
        """The basis of classical marginals."""
        return cls(np.ones(size, dtype=np.int64), np.zeros((0, size), dtype=np.int64))

    @property
    def height(self) -> int:
        return self.size + len(self.rows)

    @property
    def total(self) -> int:
        """The sum of every column."""
        return int(self.diagonal[0] + self.rows[:, 0].sum())

    @property
    def scale(self) -> float:
        """The real basis has columns of L1 norm 1."""
        return float(self.total)

    @property
    def peak(self) -> int:
        return int(max(self.diagonal.max(), self.rows.max(initial=0)))

    def column_norm(self, power: int) -> int:
        if power == 1:
            return self.total
        entries = np.vstack([self.diagonal, self.rows]).astype(object)
        return int((entries**power).sum(axis=0).max())

    def apply(self, X: NDArray[np.generic]) -> NDArray[np.generic]:
        diagonal_part = self.diagonal.astype(X.dtype)[:, None] * X
        return (
            np.concatenate([diagonal_part, self.rows.astype(X.dtype) @ X])
            if len(self.rows)
            else diagonal_part
        )

    def row_divisors(self) -> Integers:
        if not len(self.rows) and np.all(self.diagonal == self.diagonal[0]):
            return self.diagonal[:1]
        return np.concatenate([self.diagonal, row_divisors(sp.csr_array(self.rows))])

    def real(self) -> Basis:
        return Basis(self.rows / self.diagonal)

    @property
    def mirrored(self) -> bool:
        """Whether it is the identity of two values."""
        return self.size == 2 and not len(self.rows)

    def contents(self) -> dict[str, Integers]:
        """Diagonal and rows, where they are not those of the identity."""
        if not len(self.rows) and np.all(self.diagonal == 1):
            return {}
        return {"diagonal": self.diagonal, "rows": self.rows}


def round_basis(basis: Basis, column_sum: int) -> MarginalBasis:
    """Round a basis by largest remainders; the identity stays the identity, with sum 1."""
    n = basis.size
    if basis.plain:
        return MarginalBasis.identity(n)
    shares = np.vstack([np.ones(n), basis.extra_rows]) / basis.scale
    entries = largest_remainders(shares, column_sum)
    # Full column rank needs a diagonal of at least 1.
    short = entries[0] < 1
    if short.any():
        takes = np.argmax(entries[:, short], axis=0)
        columns = np.flatnonzero(short)
        entries[takes, columns] -= 1
        entries[0, columns] += 1
    return MarginalBasis(entries[0], entries[1:])


@dataclass(frozen=True, eq=False)
class ResidualBasis(ProductBasis):
    """An integer matrix R with ``R·u = 0`` for an integer vector u: what totals do not tell.

    The sum of u is positive. Without ``rows``, R is ``n·I − 11ᵀ`` and u is 1.

    Examples
    --------
    >>> ResidualBasis(3).apply(np.array([[5], [3], [1]])).ravel().tolist()
    [6, 0, -6]
    """

    size: int
    rows: Integers | None = None
    null: Integers | None = None

    def __post_init__(self) -> None:
        if self.rows is None or self.null is None:
            if self.rows is not None or self.null is not None or self.size < 1:
                raise WorkloadError("a residual basis needs rows together with a null vector")
            return
        if self.rows.ndim != 2 or self.rows.shape[1] != self.size or not len(self.rows):
            raise WorkloadError("the rows of a residual basis must cover its values")
        if len(self.rows) < self.size - 1 or len(self.rows) > max(MOST_ROWS * self.size, FEW_ROWS):
            raise WorkloadError("a residual basis has too few or too many rows for its values")
        if self.null.shape != (self.size,) or self.size > LARGEST_ENTRY >> 16:
            raise WorkloadError("the null vector of a residual basis must cover its values")
        # Not by absolute values, since that of -2^63 is itself; sums of the products below stay
        # within 2^61.
        limit = LARGEST_ENTRY >> 8
        for entries in (self.rows, self.null):
            if entries.min() <= -limit or entries.max() >= limit:
                raise WorkloadError("an entry of a residual basis is too large")
        if self.null.sum() < 1:
            raise WorkloadError("the null vector of a residual basis must have a positive sum")
        if np.any(self.rows @ self.null != 0):
            raise WorkloadError("a residual basis must send its null vector to 0 exactly")
        self.rows.setflags(write=False)
        self.null.setflags(write=False)

    @property
    def height(self) -> int:
        return self.size if self.rows is None else len(self.rows)

    @property
    def peak(self) -> int:
        return self.size if self.rows is None else int(np.abs(self.rows).max())

    @cached_property
    def scale(self) -> float:
        """The real basis has columns of L2 norm at most 1."""
        return math.sqrt(self.column_norm(2)) or 1.0

    def column_norm(self, power: int) -> int:
        n = self.size
        if self.rows is None:
            return int((n - 1) ** power) + n - 1
        return int((np.abs(self.rows).astype(object) ** power).sum(axis=0).max())

    def apply(self, X: NDArray[np.generic]) -> NDArray[np.generic]:
        if self.rows is None:
            return np.asarray(self.size * X - X.sum(axis=0, keepdims=True))
        return np.asarray(self.rows.astype(X.dtype) @ X)

    def real(self) -> RealResidual:
        if self.rows is None or self.null is None:
            return RealResidual(self.size, None, np.ones(self.size), self.size / self.scale)
        return RealResidual(self.size, self.rows / self.scale, self.null.astype(np.float64), 1.0)

    def contents(self) -> dict[str, Integers]:
        """Rows and null vector, where they are not those of the identity."""
        if self.rows is None or self.null is None:
            return {}
        return {"rows": self.rows, "null": self.null}
