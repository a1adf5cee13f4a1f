"""Weighted marginals over one basis per attribute: the error in closed form, and its gradient.

For some sets B of attributes, measure ``θ_B · ⊗_{i∈B} S_i ⊗_{i∉B} 1ᵀ``. With the numbers r and s
of :class:`~lrm.planning.design.products.basis.BasisStatistics` and ``w_B = Π_{i∈B} 1/κ_i``::

    λ_A = Σ_{B⊇A} θ_B²·w_B        v_A = Σ_j c_j Π_{i∈A} r_ij Π_{i∈supp∖A} s_ij
    err = (Σ_B θ_B)² · Σ_A v_A/λ_A

``SᵀS`` and ``11ᵀ`` are diagonalised together by congruence, so nothing has the size of the
product of the attributes.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.planning.design.products.basis import Basis, BasisStatistics, identity_basis
from lrm.planning.design.products.folding import fold_rows
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.subsets import Masks, masks_of, members_of, sums_over
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers

#: κ of every basis with columns of L1 norm 1 is at least 1, but for rounding.
LEAST_KAPPA = 0.5
#: Logarithm of the least weight, as a share of the largest, that a descent looks at.
LEAST_LOG = -25.0


@dataclass(frozen=True, eq=False)
class Marginals:
    """A strategy: sets of attributes with weights that sum to 1, and one basis per attribute.

    The table of a set is measured whole (0 in ``folds``), or folded with a sign (see
    :mod:`~lrm.planning.design.products.folding`), which
    doubles ``w_B`` for the subsets that it informs about.
    """

    sets: Masks
    weights: Floats
    bases: tuple[Basis, ...]
    folds: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if len(self.sets) != len(self.weights):
            raise ValueError(f"{len(self.sets)} sets need as many weights, not {len(self.weights)}")
        if not len(self.folds):
            object.__setattr__(self, "folds", np.zeros(len(self.sets), dtype=np.int64))
        if len(self.folds) != len(self.sets):
            raise ValueError(f"{len(self.sets)} sets need as many folds, not {len(self.folds)}")
        if not (np.isfinite(self.weights).all() and (self.weights > 0).all()):
            raise ValueError("the weights of a strategy must be finite and positive")
        self.sets.setflags(write=False)
        self.weights.setflags(write=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of (merged) values of each attribute."""
        return tuple(basis.size for basis in self.bases)

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """Sets x attributes."""
        return members_of(self.sets, len(self.bases))

    def dense(self) -> Floats:
        """The strategy as an array, measurements x cells; for small products."""
        parts = []
        for inside, weight, sign in zip(self.members, self.weights, self.folds, strict=True):
            matrices = [
                basis.dense() if member else np.ones((1, basis.size))
                for basis, member in zip(self.bases, inside, strict=True)
            ]
            rows = weight * kronecker(matrices)
            if sign:
                axes = [i for i in np.flatnonzero(inside).tolist() if self.bases[i].mirrored]
                rows = fold_rows(rows, [len(matrix) for matrix in matrices], axes, int(sign))
            parts.append(rows)
        return np.vstack(parts)


@dataclass(frozen=True, eq=False)
class Point:
    """Everything that θ is chosen by, at fixed bases: v per subset, and 1/κ per attribute."""

    quadratic: Quadratic
    statistics: list[BasisStatistics]
    residual: Floats
    total: Floats
    v: Floats
    log_kappa: Floats

    @classmethod
    def at(cls, quadratic: Quadratic, bases: Sequence[Basis] | None = None) -> Point:
        """The point of some bases; identities by default."""
        if bases is None:
            bases = [identity_basis(n) for n in quadratic.sizes]
        statistics = [BasisStatistics(b, quadratic.grams_of(i)) for i, b in enumerate(bases)]
        residual, total = quadratic.gathered([(s.residual, s.total) for s in statistics])
        # Rows of a million times a cell leave no digits of κ; such a point is far from any good.
        kappas = np.maximum([basis.kappa for basis in bases], LEAST_KAPPA)
        v = quadratic.demands(residual, total)
        return cls(quadratic, statistics, residual, total, v, np.log(kappas))

    @property
    def bases(self) -> tuple[Basis, ...]:
        """The bases of this point."""
        return tuple(statistic.basis for statistic in self.statistics)

    def set_factors(self, sets: Masks) -> Floats:
        """``w_B = Π_{i∈B} 1/κ_i`` of each set, twice that if it is folded."""
        factors = np.exp(-sums_over(members_of(sets, len(self.log_kappa)), self.log_kappa))
        if self.quadratic.folded:
            factors = np.where(self.quadratic.unfolded(sets), factors, 2.0 * factors)
        return np.asarray(factors)


class SetWeights:
    """The error as a function of the weights θ of some sets, at a fixed point."""

    def __init__(self, point: Point, sets: Masks) -> None:
        self.point, self.sets = point, sets
        self.inside = point.quadratic.index.inside(sets)
        self.factors = point.set_factors(sets)

    def information(self, theta: Floats) -> Floats:
        """λ of every subset."""
        return np.asarray(self.inside @ (theta * theta * self.factors))

    def error(self, theta: Floats) -> float:
        """``(Σθ)²·Σ v/λ``; infinite where a subset that is asked for is in no set."""
        information = self.information(theta)
        v = self.point.v
        if np.any((information <= 0) & (v > 0)):
            return np.inf
        needed = v > 0
        return float(theta.sum() ** 2 * np.sum(v[needed] / information[needed]))

    def error_and_gain(self, theta: Floats) -> tuple[float, Floats]:
        """``F = Σ v/λ`` and ``g_B = w_B·Σ_{A⊆B} v_A/λ_A²``, so that ``∂F/∂θ_B = −2·θ_B·g_B``."""
        information = self.information(theta)
        needed = self.point.v > 0
        information = np.where(needed, np.maximum(information, 1e-140), 1.0)
        share = np.where(needed, self.point.v / information, 0.0)
        slope = share / information
        return float(share.sum()), np.asarray(self.factors * (self.inside.T @ slope))

    def log_error(self, logs: Floats) -> tuple[float, Floats]:
        """The logarithm of the error, and its gradient by log θ."""
        # A smaller weight changes nothing that float64 shows, and its square might underflow.
        theta = np.exp(np.maximum(logs - logs.max(), LEAST_LOG))
        cost, gain = self.error_and_gain(theta)
        theta_sum = theta.sum()
        return (
            float(2 * np.log(theta_sum) + np.log(cost)),
            np.asarray(2 * theta / theta_sum - 2 * theta * theta * gain / cost),
        )

    def basis_gradients(self, theta: Floats) -> tuple[float, Floats, list[Floats]]:
        """The log error, its gradient by log θ, and by the extra rows of each basis."""
        point = self.point
        value, by_logs = self.log_error(np.log(theta))
        information = self.information(theta)
        cost = float(np.exp(value)) / theta.sum() ** 2
        needed = point.v > 0
        inverse = np.divide(1.0, information, out=np.zeros_like(information), where=needed)
        by_r, by_s = point.quadratic.pull_back(point.residual, point.total, inverse / cost)
        # −Σ_A v/λ² · θ_B²·w_B, spread over the members of B, is the slope by log κ, negated.
        slope = self.inside.T @ (point.v * inverse**2)
        by_set = theta**2 * self.factors * slope / cost
        by_log_kappa = by_set @ members_of(self.sets, len(point.log_kappa))
        gradients = []
        for i, statistic in enumerate(point.statistics):
            numbers = point.quadratic.of_attribute(i)
            by_kappa = float(by_log_kappa[i]) / statistic.basis.kappa
            gradients.append(statistic.pull_back(by_r[numbers], by_s[numbers], by_kappa))
        return value, by_logs, gradients


def marginals_error(quadratic: Quadratic, strategy: Marginals) -> float:
    """``‖B‖²·Δ²`` of the least-squares reconstruction, in closed form.

    With folded sets, of a folded ``quadratic``, whose attributes of two values keep the identity.
    """
    sets, bases = strategy.sets, strategy.bases
    if quadratic.folded:
        kinds = np.column_stack([strategy.folds >= 0, strategy.folds <= 0])
        sets = masks_of(np.hstack([strategy.members, kinds]))
        bases += (identity_basis(1),) * 2
    return SetWeights(Point.at(quadratic, bases), sets).error(strategy.weights)
