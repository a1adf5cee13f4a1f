"""Residuals for Gaussian noise in real numbers: attributes without their totals, and strategies.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack

from lrm.planning.design.products.basis import AnyBasis
from lrm.planning.design.products.parts import OwnRows
from lrm.planning.design.products.quadratic import PairGram
from lrm.planning.design.products.strategy import Axis
from lrm.planning.design.products.subsets import Masks, members_of, sums_over
from lrm.planning.design.products.trees import RealTree
from lrm.queries.maps.linear import TINY, Floats, Integers, LinearMap

LEAST_PIVOT = 1e-11
"""Least squared pivot of a Gram of unit diagonal: what is below is rounding, and no digit of its
inverse is right. A search would take such an inverse for a small error."""


def gram_factor(gram: Floats) -> Floats:
    """The lower Cholesky factor of a Gram of about unit diagonal.

    Raises ``LinAlgError`` where the Gram is not positive definite in float64.
    """
    factor, failed = lapack.dpotrf(gram, lower=1)
    if failed or not float(np.diag(factor).min()) ** 2 > LEAST_PIVOT:
        raise np.linalg.LinAlgError("the Gram of an attribute is not positive definite")
    return np.asarray(factor)


@dataclass(frozen=True, eq=False)
class RealResidual(AnyBasis):
    """R with ``R·u = 0``, as `lrm.planning.design.products.basis.AnyBasis` describes it.

    With ``N = RᵀR``, ``h = u`` (``null``) and ``κ = 1ᵀu``, ``G = N + 11ᵀ/κ`` is invertible and
    ``G·h = 1``. Without ``rows``, R is ``factor·(I − 11ᵀ/n)``.
    """

    size: int
    rows: Floats | None
    null: Floats
    factor: float = 1.0

    @property
    def h(self) -> Floats:
        return self.null

    @cached_property
    def _projector(self) -> Floats:
        """P, for rows that are given."""
        assert self.rows is not None  # noqa: S101 - asked where they are
        gram = self.rows.T @ self.rows + 1.0 / self.kappa
        gram_factor(gram)
        return np.asarray(np.linalg.inv(gram) - np.outer(self.h, self.h) / self.kappa)

    def times(self, X: Floats) -> Floats:
        if self.rows is None:
            return np.asarray(self.factor * (X - X.mean(axis=0, keepdims=True)))
        return np.asarray(self.rows @ X)

    def transpose_times(self, Y: Floats) -> Floats:
        return self.times(Y) if self.rows is None else np.asarray(self.rows.T @ Y)

    def projector_times(self, X: Floats) -> Floats:
        if self.rows is None:
            return np.asarray((X - X.mean(axis=0, keepdims=True)) / self.factor**2)
        return np.asarray(self._projector @ X)

    def spreads(self, factor: LinearMap, other: LinearMap) -> Floats:
        if self.rows is not None:
            image = self.projector_times(other.dense().T)
            return np.asarray(np.einsum("ij,ji->i", factor.dense(), image))
        products = factor.entrywise_apply(other, np.ones((self.size, 1)))[:, 0]
        both = self.size * self.means(factor) * self.means(other)
        return np.asarray((products - both) / self.factor**2)

    def trace(self, gram: PairGram) -> float:
        if self.rows is not None:
            return float(np.vdot(self._projector, gram.dense()))
        total = float(gram.times(np.ones((self.size, 1))).sum())
        return (float(gram.squares.sum()) - total / self.size) / self.factor**2


@dataclass(frozen=True, eq=False)
class GramBasis:
    """A Gram of unit diagonal over one attribute; the identity has ``columns`` None.

    ``columns`` is S (r x n) with columns of L2 norm 1. Of an attribute of many values, ``levels``
    are the weights of a tree, ``G = norm²·RᵀR + 11ᵀ/κ`` with its R (`trees`).
    """

    size: int
    columns: Floats | None = None
    levels: Floats | None = None

    @property
    def plain(self) -> bool:
        """Whether it is the identity."""
        return self.columns is None and self.levels is None

    @cached_property
    def gram(self) -> Floats:
        """``G = SᵀS``."""
        if self.levels is not None:
            rows = self.norm * RealTree(self.size, self.levels).times(np.eye(self.size))
            return np.asarray(rows.T @ rows + 1.0 / self.kappa)
        columns = np.eye(self.size) if self.columns is None else self.columns
        return np.asarray(columns.T @ columns)

    @cached_property
    def inverse(self) -> Floats:
        """``H = G⁻¹``."""
        if self.columns is None:
            return np.eye(self.size)
        low = np.tril(lapack.dpotri(gram_factor(self.gram), lower=1)[0])
        return np.asarray(low + np.tril(low, -1).T, dtype=np.float64)

    @cached_property
    def h(self) -> Floats:
        """``H·1``."""
        if self.levels is not None:
            return RealTree(self.size, self.levels).h
        return np.ones(self.size) if self.columns is None else self.inverse.sum(axis=1)

    @cached_property
    def kappa(self) -> float:
        """``1ᵀH1``."""
        return float(self.h.sum())

    def blended(self, share: float) -> GramBasis:
        """The basis of ``(1 − share)·G + share·I``, which distinguishes all values."""
        values, vectors = np.linalg.eigh((1.0 - share) * self.gram + share * np.eye(self.size))
        columns = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        return GramBasis(self.size, columns)

    def residual_rows(self) -> Floats:
        """R with ``RᵀR = G − 11ᵀ/κ``."""
        values, vectors = np.linalg.eigh(self.gram - 1.0 / self.kappa)
        nonzero = values > 1e-12 * max(values[-1], TINY)
        return np.asarray(np.sqrt(values[nonzero])[:, None] * vectors[:, nonzero].T)

    @property
    def norm(self) -> float:
        """The L2 norm of the columns of R."""
        return math.sqrt(max(1.0 - 1.0 / self.kappa, TINY))

    def residual(self) -> RealResidual | RealTree:
        """R with columns of norm 1."""
        if self.levels is not None:
            return RealTree(self.size, self.levels)
        rows = None if self.columns is None else self.residual_rows() / self.norm
        return RealResidual(self.size, rows, self.h, 1.0 / self.norm)


@dataclass(frozen=True, eq=False)
class GaussianStrategy:
    """Residuals of subsets A with weights ω (their sum of squares makes sensitivity 1).

    ``error`` is ``‖B‖²·Δ²``; ``bound`` is proven for every strategy, 0 where none is known. Subsets
    in ``own`` have rows of their own in place of the product of the bases', of the same norm; these
    are 0 on ``nulls``, whole numbers near to the h of their attributes.
    """

    axes: tuple[Axis, ...]
    bases: tuple[GramBasis, ...]
    subsets: Masks
    weights: Floats
    error: float
    bound: float
    own: Mapping[tuple[int, ...], OwnRows] = field(default_factory=dict)
    nulls: Mapping[int, Integers] = field(default_factory=dict)

    @property
    def norms(self) -> Floats:
        """The L2 norm of the columns of each subset's measurements."""
        logs = np.log([basis.norm for basis in self.bases])
        return self.weights * np.exp(sums_over(members_of(self.subsets, len(self.bases)), logs))

    @property
    def centres(self) -> list[Floats]:
        """``u_i`` of each attribute, of sum 1."""
        nulls = (self.nulls.get(i, basis.h) for i, basis in enumerate(self.bases))
        return [np.asarray(u / u.sum()) for u in nulls]


@dataclass(frozen=True, eq=False)
class GaussianGroups:
    """Groups of terms, each with residuals of its own over its own merged values.

    With errors e_g at the whole sensitivity, shares ω_g (``Σ ω_g² = 1``) have the error
    ``Σ e_g/ω_g²``, which is least, ``(Σ sqrt(e_g))²``, at ``ω_g² ∝ sqrt(e_g)``.
    """

    terms: tuple[Integers, ...]
    groups: tuple[GaussianStrategy, ...]
    bound: float = 0.0
    name: ClassVar[str] = "residuals"
    combined: ClassVar[bool] = False  # each group is answered from itself

    @property
    def error(self) -> float:
        """``‖B‖²·Δ²`` of the whole batch."""
        return sum(math.sqrt(group.error) for group in self.groups) ** 2

    @property
    def shares(self) -> Floats:
        """ω of each group."""
        roots = np.array([group.error for group in self.groups]) ** 0.25
        size = float(np.linalg.norm(roots))
        return roots / size if size > 0 else np.ones(len(roots)) / math.sqrt(len(roots))
