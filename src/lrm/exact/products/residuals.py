"""Residual bases in real numbers: one attribute without its total, for Gaussian noise.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.quadratic import PairGram
from lrm.maps.linear import LinearMap

__all__ = ["RealResidual"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RealResidual:
    """R with ``R·u = 0``, as `lrm.exact.products.basis.AnyBasis` describes it.

    With ``N = RᵀR``, ``h = u`` and ``κ = 1ᵀu``, ``G = N + 11ᵀ/κ`` is invertible and ``G·h = 1``.
    Without ``rows``, R is ``factor·(I − 11ᵀ/n)``.
    """

    size: int
    rows: Floats | None
    h: Floats
    factor: float = 1.0

    @property
    def mirrored(self) -> bool:
        """Residuals are not folded."""
        return False

    @cached_property
    def kappa(self) -> float:
        """``1ᵀh``."""
        return float(self.h.sum())

    @cached_property
    def _inverse(self) -> Floats:
        """``H = G⁻¹``, for rows that are given."""
        assert self.rows is not None  # noqa: S101 - asked where they are
        gram = self.rows.T @ self.rows
        gram += 1.0 / self.kappa
        return np.asarray(np.linalg.inv(gram))

    def times(self, X: Floats) -> Floats:
        """``R·X``."""
        if self.rows is None:
            return np.asarray(self.factor * (X - X.mean(axis=0, keepdims=True)))
        return np.asarray(self.rows @ X)

    def transpose_times(self, Y: Floats) -> Floats:
        """``Rᵀ·Y``."""
        return self.times(Y) if self.rows is None else np.asarray(self.rows.T @ Y)

    def projector_times(self, X: Floats) -> Floats:
        """``P·X`` with ``P = H − h·hᵀ/κ``."""
        if self.rows is None:
            return np.asarray((X - X.mean(axis=0, keepdims=True)) / self.factor**2)
        return np.asarray(self._inverse @ X - np.outer(self.h, self.h @ X) / self.kappa)

    def inverse_times(self, X: Floats) -> Floats:
        """``H·X``."""
        return np.asarray(self.projector_times(X) + np.outer(self.h, self.h @ X) / self.kappa)

    def forms(self, factor: LinearMap, other: LinearMap) -> tuple[Floats, Floats]:
        """``diag(W·P·Vᵀ)`` and ``(W·h)·(V·h)``, row by row."""
        mean, mean_other = (f.apply(self.h[:, None])[:, 0] for f in (factor, other))
        if self.rows is None:
            products = factor.entrywise_apply(other, np.ones((self.size, 1)))[:, 0]
            spread = (products - mean * mean_other / self.size) / self.factor**2
        else:
            image = self.projector_times(other.dense().T)
            spread = np.einsum("ij,ji->i", factor.dense(), image)
        return np.asarray(spread), np.asarray(mean * mean_other)

    def numbers(self, grams: Sequence[PairGram]) -> tuple[Floats, Floats]:
        """``tr(P·M)/κ`` and ``hᵀ·M·h/κ²`` of each Gram M."""
        residual, total = np.zeros(len(grams)), np.zeros(len(grams))
        for number, gram in enumerate(grams):
            psi = float(self.h @ gram.times(self.h[:, None])[:, 0])
            total[number] = psi / self.kappa**2
            if not gram.tells:
                continue
            if self.rows is None:
                spread = (float(gram.squares.sum()) - psi / self.size) / self.factor**2
            else:
                spread = float(np.vdot(self._inverse, gram.dense())) - psi / self.kappa
            residual[number] = spread / self.kappa
        return residual, total
