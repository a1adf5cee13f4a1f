"""One basis per attribute: the identity and a few more rows, with columns of L1 norm 1.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lrm.planning.design.plus_rows import PlusRows, beside_identity, trace_gradient
from lrm.planning.design.products.quadratic import PairGram
from lrm.queries.maps.linear import Floats, LinearMap

STEEP = 32.0
"""Entries of Θ from which ``H·X`` is refined: Woodbury's formula left answers 1e-6 off at 1,023."""


class AnyBasis(ABC):
    """What answers and variances need to know of a basis S of one attribute.

    With ``H = (SᵀS)⁻¹`` (or, of a residual basis R, ``H = (RᵀR + 11ᵀ/κ)⁻¹``), ``h = H·1``,
    ``κ = 1ᵀH1`` and ``P = H − h·hᵀ/κ``.
    """

    size: int
    """Number of values."""

    @property
    @abstractmethod
    def h(self) -> Floats:
        """``H·1``."""

    @cached_property
    def kappa(self) -> float:
        """``1ᵀH1``."""
        return float(self.h.sum())

    @property
    def mirrored(self) -> bool:
        """Whether its values are mirror images of each other in a folded table."""
        return False

    @abstractmethod
    def times(self, X: Floats) -> Floats:
        """``S·X`` for X of values x anything."""

    @abstractmethod
    def transpose_times(self, Y: Floats) -> Floats:
        """``Sᵀ·Y``."""

    @abstractmethod
    def projector_times(self, X: Floats) -> Floats:
        """``P·X``."""

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

    @abstractmethod
    def spreads(self, factor: LinearMap, other: LinearMap) -> Floats:
        """``diag(W·P·Vᵀ)``, row by row, of factors with as many rows."""

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

    @abstractmethod
    def trace(self, gram: PairGram) -> float:
        """``tr(P·M)`` of a Gram M whose factors distinguish values."""

    def numbers(self, grams: Sequence[PairGram]) -> tuple[Floats, Floats]:
        """``tr(P·M)/κ`` and ``hᵀ·M·h/κ²`` of each Gram M."""
        residual = [self.trace(gram) / self.kappa if gram.tells else 0.0 for gram in grams]
        mean = self.h / self.kappa
        total = [float(mean @ gram.times(mean[:, None])[:, 0]) for gram in grams]
        return np.array(residual), np.array(total)


@dataclass(frozen=True, eq=False)
class Basis(AnyBasis):
    """``S = [I; Θ]·D`` with Θ ≥ 0 (p x n) and D such that every column of S has L1 norm 1.

    Members are those of `AnyBasis`, by Woodbury in O(n·p²); nothing has the size n x n.

    Examples
    --------
    >>> Basis(np.zeros((0, 5))).kappa
    5.0
    """

    extra_rows: Floats

    def __post_init__(self) -> None:
        if self.extra_rows.ndim != 2 or (self.extra_rows < 0).any():
            raise ValueError("extra rows must be a two-dimensional array of numbers >= 0")
        self.extra_rows.setflags(write=False)
        object.__setattr__(self, "size", self.extra_rows.shape[1])

    @property
    def plain(self) -> bool:
        """Whether S is the identity."""
        return len(self.extra_rows) == 0

    @property
    def mirrored(self) -> bool:
        return self.plain and self.size == 2

    @cached_property
    def scale(self) -> Floats:
        """The diagonal of D⁻¹."""
        return np.asarray(1.0 + self.extra_rows.sum(axis=0))

    @cached_property
    def plus(self) -> PlusRows:
        """H, by the Woodbury identity."""
        return beside_identity(self.extra_rows, self.scale)

    def inverse_times(self, X: Floats) -> Floats:
        solution = self.plus.inverse_times(X)
        if not self.plain and self.extra_rows.max() > STEEP:
            # The difference of Woodbury's formula has lost digits: one step of refinement.
            scaled = solution / self.scale[:, None]
            gram = (scaled + self.extra_rows.T @ (self.extra_rows @ scaled)) / self.scale[:, None]
            solution += self.plus.inverse_times(X - gram)
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
        scaled = X / self.scale[:, None]
        return np.vstack([scaled, self.extra_rows @ scaled])

    def transpose_times(self, Y: Floats) -> Floats:
        n = self.size
        return np.asarray(Y[:n] + self.extra_rows.T @ Y[n:]) / self.scale[:, None]

    def spreads(self, factor: LinearMap, other: LinearMap) -> Floats:
        scaled_rows = self.plus.dense_rows.T
        image = factor.apply(scaled_rows)
        image_other = image if other is factor else other.apply(scaled_rows)
        diagonal = factor.entrywise_apply(other, (self.scale**2)[:, None])[:, 0]
        solved = self.plus.solve_inner(image_other.T).T
        forms = diagonal - np.einsum("ij,ij->i", image, solved)
        return np.asarray(forms - self.kappa * self.means(factor) * self.means(other))

    def dense(self) -> Floats:
        """S as an array."""
        return np.vstack([np.eye(self.size), self.extra_rows]) / self.scale

    def trace(self, gram: PairGram) -> float:
        return float(BasisStatistics(self, [gram]).residual[0]) * self.kappa


def identity_basis(n: int) -> Basis:
    """The basis of classical marginals."""
    return Basis(np.zeros((0, n)))


class BasisStatistics:
    """``φ = tr(H·M)`` and ``ψ = hᵀ·M·h`` for each Gram M of one attribute, and the reconstruction.

    ``residual`` is ``(φ − ψ/κ)/κ`` (0 where M does not distinguish values), ``total`` is ``ψ/κ²``.
    """

    def __init__(self, basis: Basis, grams: Sequence[PairGram]) -> None:
        self.basis, self.grams = basis, grams
        A, h, kappa = basis.plus.dense_rows, basis.h, basis.kappa
        X = np.column_stack([A.T, h])
        self._images = [gram.times(X) for gram in grams]
        square = basis.scale**2
        phi = [
            float(square @ gram.squares) - float(np.vdot(basis.solved_rows.T, image[:, :-1]))
            for gram, image in zip(grams, self._images, strict=True)
        ]
        self.phi = np.array(phi)
        self.psi = np.array([float(h @ image[:, -1]) for image in self._images])
        self.tells = np.array([gram.tells for gram in grams], dtype=bool)
        self.total = self.psi / kappa**2
        self.residual = np.where(self.tells, (self.phi - self.psi / kappa) / kappa, 0.0)

    def pull_back(self, by_residual: Floats, by_total: Floats, by_kappa: float) -> Floats:
        """The gradient by Θ ≥ 0 of a function of ``residual``, ``total`` and κ."""
        basis = self.basis
        kappa, A = basis.kappa, basis.plus.dense_rows
        by_residual = np.where(self.tells, by_residual, 0.0)
        alpha = by_residual / kappa
        beta = (by_total - by_residual) / kappa**2
        gamma = by_kappa + float(
            by_residual @ (2 * self.psi / kappa - self.phi) / kappa**2
            - 2 * by_total @ self.psi / kappa**3
        )
        # dE = tr(Y·dH) with Y = Σ α·M + Σ β·(M·h·1ᵀ + 1·hᵀ·M) + γ·11ᵀ, applied to Aᵀ.
        count, ones = A.sum(axis=1), np.ones(basis.size)
        YA = gamma * np.outer(ones, count)
        diagonal = np.full(basis.size, gamma)
        for gram, image, a, b in zip(self.grams, self._images, alpha, beta, strict=True):
            Mh = image[:, -1]
            YA += a * image[:, :-1] + b * (np.outer(Mh, count) + np.outer(ones, A @ Mh))
            diagonal += a * gram.squares + 2 * b * Mh
        Q = basis.plus.solve_inner(YA.T)
        middle = basis.plus.solve_inner((Q @ A.T).T)
        by_rows, by_scale = trace_gradient(basis.extra_rows, basis.scale, diagonal, Q, middle)
        return by_rows + by_scale
