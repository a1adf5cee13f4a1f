"""Bases of one attribute, in real and in whole numbers, and the one of marginals.

A basis S is a matrix over the values of an attribute, or of several fused into one. A search looks
for one in real numbers, whose columns have norm 1; `ProductBasis.rounded` makes whole numbers of
it, which are measured, and divided by their ``scale`` are real again. All kinds are in `KINDS` of
`lrm.planning.design.products.kinds`.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from lrm.errors import WorkloadError
from lrm.planning.design.integers import Basis, row_divisors
from lrm.planning.design.plus_rows import PlusRows, beside_identity, trace_gradient
from lrm.planning.design.products.quadratic import PairGram, sums_of_grams
from lrm.queries.maps.linear import Floats, Integers, LinearMap

Numbers = NDArray[Any]
"""Whole numbers or real ones."""

LARGEST_ENTRY = 1 << 31
"""Entries of whole bases lie below this."""

MOST_LISTED = 1 << 11
"""Values, or classes of cells, up to which inner products of all columns are written out."""

Cost = Callable[["ProductBasis"], float]
"""The error with a rounded basis, divided by that with the real one."""


def most_rows(values: int) -> int:
    """Rows that a basis may have; trees and optimised ones have fewer than two per value.

    Answers need the inverse of a matrix of rows x rows, which must not outgrow the basis.
    """
    return max(4 * values, 64)


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


class ProductBasis(Basis):
    """A basis of one attribute, and what answers and variances follow from.

    Of S, the matrix divided by ``scale``: with ``H = (SᵀS)⁻¹`` (or, of a residual basis R,
    ``H = (RᵀR + 11ᵀ/κ)⁻¹``), ``h = H·1``, ``κ = 1ᵀH1`` and ``P = H − h·hᵀ/κ``. Columns of S have
    norm 1: in L1, or, of a residual basis, in L2.

    A kind has to define ``apply``, ``contents``, ``from_file`` and ``rounded``, and one of
    residuals its ``h``. All else follows from the matrix as an array, in O(n³); a kind with a
    closed form overrides it.
    """

    kind: ClassVar[str]
    """What files call it."""

    @abstractmethod
    def rounded(self, bits: int, cost: Cost, null: Integers | None = None) -> ProductBasis:
        """The basis in whole numbers that are hardly above 2^bits, for a small ``cost``.

        A residual basis is 0 on ``null``, where that is decided already.
        """

    @abstractmethod
    def contents(self) -> dict[str, Integers]:
        """The arrays that define it; none of the usual one: the identity, perhaps less its mean."""

    @classmethod
    @abstractmethod
    def from_file(cls, size: int, rows: int, take: Callable[..., Integers]) -> Self:
        """Build it from the integers of `contents`, in the order of their names.

        ``take(*shape)`` has the next of them, and ``rows`` is the length of the array of that name.
        """

    @property
    def plain(self) -> bool:
        """Whether it is the usual one: the identity, or the identity without its mean."""
        return False

    @cached_property
    def inner_products(self) -> tuple[float, float, float]:
        """The largest inner product of a column with itself, the least of two columns, the largest.

        Those of two columns are of different ones; at most and at least where that is costly.
        """
        most = self.column_norm(2) if self.is_whole else 1
        peak = self.peak if self.is_whole else 1
        if self.size > MOST_LISTED or peak**2 * self.height >= 1 << 62:
            return most, -most, most
        columns = self._entries if self.is_whole else self._unit
        gram = columns.T @ columns
        others = gram[~np.eye(self.size, dtype=bool)]
        return most, others.min(initial=most), others.max(initial=-most)

    @cached_property
    def _entries(self) -> Integers:
        """The matrix in whole numbers."""
        return np.asarray(self.apply(np.eye(self.size, dtype=np.int64)), dtype=np.int64)

    @property
    def height(self) -> int:
        return len(self._entries)

    @property
    def peak(self) -> int:
        return int(np.abs(self._entries).max())

    def column_norm(self, power: int) -> int:
        return int((np.abs(self._entries).astype(object) ** power).sum(axis=0).max())

    def dense(self) -> Floats:
        """The matrix as an array; float64 holds whole entries exactly."""
        return self._entries.astype(np.float64) if self.is_whole else self.times(np.eye(self.size))

    @cached_property
    def _unit(self) -> Floats:
        """S as an array."""
        return np.asarray(self.apply(np.eye(self.size)), dtype=np.float64) / self.scale

    @cached_property
    def _inverse(self) -> Floats:
        """H as an array."""
        gram = self._unit.T @ self._unit
        if self.residual:
            gram = gram + 1.0 / self.kappa
        gram_factor(gram)
        return np.asarray(np.linalg.inv(gram))

    @cached_property
    def _projector(self) -> Floats:
        """P as an array."""
        return np.asarray(self._inverse - np.outer(self.h, self.h) / self.kappa)

    @property
    def h(self) -> Floats:
        """``H·1``."""
        return np.asarray(self._inverse.sum(axis=1))

    @cached_property
    def kappa(self) -> float:
        """``1ᵀH1``."""
        return float(self.h.sum())

    def times(self, X: Floats) -> Floats:
        """``S·X`` for X of values x anything."""
        return np.asarray(self._unit @ X)

    def transpose_times(self, Y: Floats) -> Floats:
        """``Sᵀ·Y``."""
        return np.asarray(self._unit.T @ Y)

    def projector_times(self, X: Floats) -> Floats:
        """``P·X``."""
        return np.asarray(self._projector @ X)

    def inverse_times(self, X: Floats) -> Floats:
        """``H·X``."""
        return np.asarray(self.projector_times(X) + np.outer(self.h, self.h @ X) / self.kappa)

    @cached_property
    def average(self) -> Floats:
        """``S·h/κ``."""
        return self.times(self.h[:, None])[:, 0] / self.kappa

    def means(self, factor: LinearMap) -> Floats:
        """``W·h/κ`` of each query of a factor."""
        return factor.apply(self.h[:, None])[:, 0] / self.kappa

    def image(self, factor: LinearMap) -> Floats:
        """``W·P·Sᵀ/κ`` of a factor."""
        return self.times(self.projector_times(factor.dense().T)).T / self.kappa

    def spreads(self, factor: LinearMap, other: LinearMap) -> Floats:
        """``diag(W·P·Vᵀ)``, row by row, of factors with as many rows."""
        image = self.projector_times(other.dense().T)
        return np.asarray(np.einsum("ij,ji->i", factor.dense(), image))

    def forms(self, factor: LinearMap, other: LinearMap) -> tuple[Floats, Floats]:
        """``diag(W·P·Vᵀ)/κ`` and ``(W·h)·(V·h)/κ²``, row by row."""
        spread = np.zeros(len(factor))
        if factor.total_factor is None and other.total_factor is None:  # else 0, since 1ᵀ·P = 0
            spread = self.spreads(factor, other) / self.kappa
        return spread, self.means(factor) * self.means(other)

    def cross_forms(self, factor: LinearMap, other: LinearMap) -> tuple[Floats, Floats]:
        """``W·P·Vᵀ/κ`` and ``W·h·(V·h)ᵀ/κ²``: each row with each."""
        spread = factor.apply(self.projector_times(other.dense().T)) / self.kappa
        return spread, np.outer(self.means(factor), self.means(other))

    def trace(self, gram: PairGram) -> float:
        """``tr(P·M)`` of a Gram M whose factors distinguish values."""
        return float(np.vdot(self._projector, gram.dense()))

    def numbers(self, grams: Sequence[PairGram]) -> tuple[Floats, Floats]:
        """``tr(P·M)/κ`` and ``hᵀ·M·h/κ²`` of each Gram M."""
        residual = [self.trace(gram) / self.kappa if gram.tells else 0.0 for gram in grams]
        mean = self.h / self.kappa
        total = [float(mean @ gram.times(mean[:, None])[:, 0]) for gram in grams]
        return np.array(residual), np.array(total)

    def statistics(self, grams: Sequence[PairGram]) -> GramForms:
        """Its `numbers`, as a search has them."""
        return GramForms.of(grams, self.kappa, *self.numbers(grams))


def gram_factor(gram: Floats) -> Floats:
    """The lower Cholesky factor of a Gram of about unit diagonal.

    Raises ``LinAlgError`` where the Gram is not positive definite in float64.
    """
    factor, failed = lapack.dpotrf(gram, lower=1)
    # Least squared pivot of a Gram of unit diagonal: what is below is rounding, and no digit of its
    # inverse is right. A search would take such an inverse for a small error.
    if failed or not float(np.diag(factor).min()) ** 2 > 1e-11:
        raise np.linalg.LinAlgError("the Gram of an attribute is not positive definite")
    return np.asarray(factor)


@dataclass(frozen=True, eq=False)
class MarginalBasis(ProductBasis):
    """``S = [diag(diagonal); rows]`` with entries ≥ 0, all of whose columns have one sum.

    In real numbers (`beside`) it is ``[I; Θ]·D`` with Θ ≥ 0 (p x n) and D such that the sums are 1.
    Products with H are by Woodbury in O(n·p²); nothing has the size n x n.

    Examples
    --------
    >>> MarginalBasis.identity(5).kappa
    5.0
    >>> MarginalBasis.beside(np.array([[1.0, 3.0]])).dense().tolist()
    [[0.5, 0.0], [0.0, 0.25], [0.5, 0.75]]
    """

    diagonal: Numbers
    rows: Numbers
    kind: ClassVar[str] = "marginal"

    def __post_init__(self) -> None:
        n = len(self.diagonal)
        if self.diagonal.ndim != 1 or not n or self.rows.ndim != 2 or self.rows.shape[1] != n:
            raise WorkloadError("a basis needs a diagonal, and rows of the same length")
        if self.is_whole:
            self._check_whole(n)
        self.diagonal.setflags(write=False)
        self.rows.setflags(write=False)
        object.__setattr__(self, "size", n)

    def _check_whole(self, n: int) -> None:
        if (self.diagonal < 1).any() or (self.rows < 0).any():
            raise WorkloadError("an integer basis needs a positive diagonal and rows >= 0")
        if max(self.diagonal.max(), self.rows.max(initial=0)) >= LARGEST_ENTRY:
            raise WorkloadError("an entry of an integer basis is too large")
        if len(self.rows) > most_rows(n):
            raise WorkloadError("an integer basis has too many rows for its values")
        sums = self.diagonal + self.rows.sum(axis=0)
        if not np.all(sums == sums[0]):
            raise WorkloadError("all columns of an integer basis must have the same sum")

    @classmethod
    def identity(cls, size: int) -> MarginalBasis:
        """The basis of classical marginals."""
        return cls(np.ones(size, dtype=np.int64), np.zeros((0, size), dtype=np.int64))

    @classmethod
    def beside(cls, extra_rows: Floats) -> MarginalBasis:
        """The real basis of the identity and the rows Θ ≥ 0."""
        if extra_rows.ndim != 2 or (extra_rows < 0).any():
            raise ValueError("extra rows must be a two-dimensional array of numbers >= 0")
        if not len(extra_rows):
            return cls.identity(extra_rows.shape[1])
        extra_rows.setflags(write=False)
        column_sums = 1.0 + extra_rows.sum(axis=0)
        basis = cls(1.0 / column_sums, extra_rows / column_sums)
        # Θ and the sums as they are: their quotients would lose the last digit.
        basis.__dict__.update(extra_rows=extra_rows, column_sums=column_sums)
        return basis

    @property
    def is_whole(self) -> bool:
        return bool(self.diagonal.dtype.kind == "i")

    @property
    def height(self) -> int:
        return self.size + len(self.rows)

    @property
    def scale(self) -> float:
        """The sum of every column."""
        return float(self.column_norm(1)) if self.is_whole else 1.0

    @property
    def peak(self) -> int:
        return int(max(self.diagonal.max(), self.rows.max(initial=0)))

    def column_norm(self, power: int) -> int:
        if power == 1:
            return int(self.diagonal[0] + self.rows[:, 0].sum())
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
        if self.plain:
            return self.diagonal[:1]
        return np.concatenate([self.diagonal, row_divisors(sp.csr_array(self.rows))])

    def dense(self) -> Floats:
        return np.vstack([np.diag(self.diagonal), self.rows]).astype(np.float64)

    def contents(self) -> dict[str, Integers]:
        """Diagonal and rows, where they are not those of the identity."""
        if self.plain and np.all(self.diagonal == 1):
            return {}
        return {"diagonal": self.diagonal, "rows": self.rows}

    @classmethod
    def from_file(cls, size: int, rows: int, take: Callable[..., Integers]) -> MarginalBasis:
        return cls(take(size), take(rows, size))

    def rounded(self, bits: int, cost: Cost, null: Integers | None = None) -> MarginalBasis:
        """Round by largest remainders to columns of sum 2^bits; an identity stays one, of sum 1."""
        del cost, null
        n = self.size
        if self.plain:
            return MarginalBasis.identity(n)
        shares = np.vstack([np.ones(n), self.extra_rows]) / self.column_sums
        entries = largest_remainders(shares, 1 << bits)
        # Full column rank needs a diagonal of at least 1.
        short = entries[0] < 1
        if short.any():
            takes = np.argmax(entries[:, short], axis=0)
            columns = np.flatnonzero(short)
            entries[takes, columns] -= 1
            entries[0, columns] += 1
        return MarginalBasis(entries[0], entries[1:])

    @property
    def plain(self) -> bool:
        """Whether S is the identity."""
        return len(self.rows) == 0

    @property
    def mirrored(self) -> bool:
        return self.plain and self.size == 2

    @cached_property
    def extra_rows(self) -> Floats:
        """Θ: the rows, relative to the diagonal."""
        return np.asarray(self.rows / self.diagonal)

    @cached_property
    def column_sums(self) -> Floats:
        """The diagonal of D⁻¹: the sums of the columns of ``[I; Θ]``."""
        return np.asarray(1.0 + self.extra_rows.sum(axis=0))

    @cached_property
    def kappa(self) -> float:
        return float(self.size) if self.plain else float(self.h.sum())

    @cached_property
    def plus(self) -> PlusRows:
        """H, by the Woodbury identity."""
        return beside_identity(self.extra_rows, self.column_sums)

    def inverse_times(self, X: Floats) -> Floats:
        solution = self.plus.inverse_times(X)
        # Entries of Θ from which ``H·X`` is refined: Woodbury's formula left answers 1e-6 off at
        # 1,023.
        if not self.plain and self.extra_rows.max() > 32.0:
            # The difference of Woodbury's formula has lost digits: one step of refinement.
            solution += self.plus.inverse_times(X - self.transpose_times(self.times(solution)))
        return solution

    @cached_property
    def solved_rows(self) -> Floats:
        """``M⁻¹·A`` of the Woodbury identity."""
        return self.plus.solve_inner(self.plus.dense_rows)

    @cached_property
    def h(self) -> Floats:
        return self.inverse_times(np.ones((self.size, 1)))[:, 0]

    def projector_times(self, X: Floats) -> Floats:
        return np.asarray(self.inverse_times(X) - np.outer(self.h, self.h @ X) / self.kappa)

    def times(self, X: Floats) -> Floats:
        scaled = X / self.column_sums[:, None]
        return np.vstack([scaled, self.extra_rows @ scaled])

    def transpose_times(self, Y: Floats) -> Floats:
        n = self.size
        return np.asarray(Y[:n] + self.extra_rows.T @ Y[n:]) / self.column_sums[:, None]

    def spreads(self, factor: LinearMap, other: LinearMap) -> Floats:
        scaled_rows = self.plus.dense_rows.T
        image = factor.apply(scaled_rows)
        image_other = image if other is factor else other.apply(scaled_rows)
        diagonal = factor.entrywise_apply(other, (self.column_sums**2)[:, None])[:, 0]
        solved = self.plus.solve_inner(image_other.T).T
        forms = diagonal - np.einsum("ij,ij->i", image, solved)
        return np.asarray(forms - self.kappa * self.means(factor) * self.means(other))

    def trace(self, gram: PairGram) -> float:
        return float(BasisStatistics(self, [gram]).residual[0]) * self.kappa

    def statistics(self, grams: Sequence[PairGram]) -> BasisStatistics:
        return BasisStatistics(self, grams)


class GramForms:
    """r and s of each Gram M of one attribute, from ``φ = tr(H·M)`` and ``ψ = hᵀ·M·h``.

    ``residual`` is ``r = (φ − ψ/κ)/κ`` (0 where M does not distinguish values), ``total`` is
    ``s = ψ/κ²``.
    """

    def __init__(self, grams: Sequence[PairGram], kappa: float, phi: Floats, psi: Floats) -> None:
        self.grams, self.kappa, self.phi, self.psi = grams, kappa, phi, psi
        self.tells = np.array([gram.tells for gram in grams], dtype=bool)
        self.total = psi / kappa**2
        self.residual = np.where(self.tells, (phi - psi / kappa) / kappa, 0.0)

    @classmethod
    def of(
        cls, grams: Sequence[PairGram], kappa: float, residual: Floats, total: Floats
    ) -> GramForms:
        """The forms with some r and s."""
        psi = total * kappa**2
        return cls(grams, kappa, residual * kappa + psi / kappa, psi)

    def slopes(
        self, by_residual: Floats, by_total: Floats, by_kappa: float
    ) -> tuple[Floats, Floats, float]:
        """α, β and γ of the derivative by H of a function of r, s and κ.

        ``dE = tr(Y·dH)`` with ``Y = Σ α·M + Σ β·(M·h·1ᵀ + 1·hᵀ·M) + γ·11ᵀ``.
        """
        kappa, by_residual = self.kappa, np.where(self.tells, by_residual, 0.0)
        gamma = by_kappa + float(
            by_residual @ (2 * self.psi / kappa - self.phi) / kappa**2
            - 2 * by_total @ self.psi / kappa**3
        )
        return by_residual / kappa, (by_total - by_residual) / kappa**2, gamma


class BasisStatistics(GramForms):
    """The Grams of one attribute under the identity and extra rows, and the gradient by those."""

    def __init__(self, basis: MarginalBasis, grams: Sequence[PairGram]) -> None:
        self.basis, self.grams = basis, grams
        if basis.plain:  # of the identity, h is all ones
            sums = sums_of_grams(grams)
            super().__init__(grams, basis.kappa, sums[:, 0], sums[:, 1])
            return
        square, h = basis.column_sums**2, basis.h
        phi = [
            float(square @ gram.squares) - float(np.vdot(basis.solved_rows.T, image[:, :-1]))
            for gram, image in zip(grams, self._images, strict=True)
        ]
        psi = [float(h @ image[:, -1]) for image in self._images]
        super().__init__(grams, basis.kappa, np.array(phi), np.array(psi))

    @cached_property
    def _images(self) -> list[Floats]:
        """``M·Aᵀ`` and ``M·h`` of each Gram."""
        X = np.column_stack([self.basis.plus.dense_rows.T, self.basis.h])
        return [gram.times(X) for gram in self.grams]

    def pull_back(self, by_residual: Floats, by_total: Floats, by_kappa: float) -> Floats:
        """The gradient by Θ ≥ 0 of a function of ``residual``, ``total`` and κ."""
        basis = self.basis
        A = basis.plus.dense_rows
        alpha, beta, gamma = self.slopes(by_residual, by_total, by_kappa)
        # Y of `slopes`, applied to Aᵀ.
        count, ones = A.sum(axis=1), np.ones(basis.size)
        YA = gamma * np.outer(ones, count)
        diagonal = np.full(basis.size, gamma)
        for gram, image, a, b in zip(self.grams, self._images, alpha, beta, strict=True):
            Mh = image[:, -1]
            YA += a * image[:, :-1] + b * (np.outer(Mh, count) + np.outer(ones, A @ Mh))
            diagonal += a * gram.squares + 2 * b * Mh
        Q = basis.plus.solve_inner(YA.T)
        middle = basis.plus.solve_inner((Q @ A.T).T)
        by_rows, by_scale = trace_gradient(basis.extra_rows, basis.column_sums, diagonal, Q, middle)
        return by_rows + by_scale
