"""What is measured for a batch over a product, in real numbers: groups of terms, with shares.

A group measures weighted marginals (for Laplace noise) or residuals (Gaussian) over one basis per
axis. For some sets B of attributes, measure ``θ_B · ⊗_{i∈B} S_i ⊗_{i∉B} 1ᵀ``. With the numbers r
and s of :class:`~lrm.planning.design.products.basis.GramForms` and ``w_B = Π_{i∈B} 1/κ_i``::

    λ_A = Σ_{B⊇A} θ_B²·w_B        v_A = Σ_j c_j Π_{i∈A} r_ij Π_{i∈supp∖A} s_ij
    err = (Σ_B θ_B)² · Σ_A v_A/λ_A

``SᵀS`` and ``11ᵀ`` are diagonalised together by congruence, so nothing has the size of the
product of the attributes.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.planning.design.products.axes import Axis, on_axes, over_cells
from lrm.planning.design.products.basis import MarginalBasis, ProductBasis
from lrm.planning.design.products.folding import fold_rows
from lrm.planning.design.products.information import (
    FixedBases,
    Information,
    Limits,
    SetWeights,
)
from lrm.planning.design.products.parts import OwnRows
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.subsets import Masks, masks_of, members_of
from lrm.privacy.norms import L1, L2, Norm
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch


@dataclass(frozen=True, eq=False)
class Marginals:
    """What a group measures in real numbers: weighted sets, and one basis per attribute.

    The table of a set is measured whole (0 in ``folds``), or folded with a sign (see
    :mod:`~lrm.planning.design.products.folding`), which
    doubles ``w_B`` for the subsets that it informs about. Weights sum to 1, and so do the squares
    of those of residuals.

    Sets of residuals in ``own`` have rows of their own in place of the product of the bases', of
    the same norm; these are 0 on ``nulls``, whole numbers near to the h of their attributes.
    ``limits`` are those of a person's rows by group, which the weights of residuals are for.
    """

    sets: Masks
    weights: Floats
    bases: tuple[ProductBasis, ...]
    folds: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    own: Mapping[tuple[int, ...], OwnRows] = field(default_factory=dict)
    nulls: Mapping[int, Integers] = field(default_factory=dict)
    limits: Limits | None = None

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

    @property
    def residual(self) -> bool:
        """Whether sets hold residuals, which inform about themselves alone."""
        return any(basis.residual for basis in self.bases)

    @property
    def centres(self) -> list[Floats]:
        """``u_i`` of each attribute, of sum 1: `nulls`, or ``h``."""
        nulls = (self.nulls.get(i, basis.h) for i, basis in enumerate(self.bases))
        return [np.asarray(u / u.sum()) for u in nulls]

    def opened(self, *, folded: bool) -> tuple[Masks, tuple[ProductBasis, ...]]:
        """Sets and bases as a `Quadratic` has them, which may be folded."""
        if not folded:
            return self.sets, self.bases
        kinds = np.column_stack([self.folds >= 0, self.folds <= 0])
        sets = masks_of(np.hstack([self.members, kinds]))
        return sets, (*self.bases, *[MarginalBasis.identity(1)] * 2)

    def information(self) -> Information:
        """λ of each subset by what is measured, without rows of sets' own."""
        residual = self.residual
        return Information(
            self.bases, self.members, self.weights, residual=residual, folds=self.folds
        )

    def dense(self) -> Floats:
        """The strategy as an array, measurements x cells; for small products."""
        parts = []
        for inside, weight, sign in zip(self.members, self.weights, self.folds, strict=True):
            matrices = [
                basis.dense() / basis.scale if member else np.ones((1, basis.size))
                for basis, member in zip(self.bases, inside, strict=True)
            ]
            rows = weight * kronecker(matrices)
            if sign:
                axes = [i for i in np.flatnonzero(inside).tolist() if self.bases[i].mirrored]
                rows = fold_rows(rows, [len(matrix) for matrix in matrices], axes, int(sign))
            parts.append(rows)
        return np.vstack(parts)


def marginals_error(quadratic: Quadratic, strategy: Marginals) -> float:
    """``‖B‖²·Δ²`` of the least-squares reconstruction, in closed form.

    With folded sets, of a folded ``quadratic``, whose attributes of two values keep the identity.
    """
    sets, bases = strategy.opened(folded=quadratic.folded)
    return SetWeights(FixedBases.at(quadratic, bases), sets).error(strategy.weights)


@dataclass(frozen=True, eq=False)
class Group:
    """Some terms, the axes they see, and the marginals that answer them.

    ``error`` is ``‖B‖²`` of these terms alone, at sensitivity 1; ``weight`` is the share of the
    whole sensitivity. ``bound`` is proven for every strategy, 0 where none is known.
    """

    terms: Integers
    axes: tuple[Axis, ...]
    marginals: Marginals
    error: float
    weight: float = 1.0
    bound: float = 0.0

    def reduced(self, batch: ProductBatch) -> ProductBatch:
        """The group's terms over its axes."""
        return on_axes(batch.take(self.terms), self.axes)


def group_weights(errors: Sequence[float], order: int = 1) -> tuple[float, Floats]:
    """The least total error of groups that share one budget, and their shares of it.

    Minimises ``Σ e_g/ω_g²`` over ``Σ ω_g^order = 1``. In L1, ``ω_g ∝ e_g^⅓`` and the total is
    ``(Σ e_g^⅓)³``; in L2, ``ω_g² ∝ e_g^½`` and the total is ``(Σ e_g^½)²``.

    Examples
    --------
    >>> group_weights([1.0, 8.0])[0], group_weights([1.0, 8.0])[1].round(3).tolist()
    (27.0, [0.333, 0.667])
    >>> group_weights([1.0, 81.0], 2)[0], group_weights([1.0, 81.0], 2)[1].round(3).tolist()
    (100.0, [0.316, 0.949])
    """
    roots = np.cbrt(errors) if order == 1 else np.sqrt(errors)
    root_sum = float(roots.sum())
    if root_sum == 0:
        return 0.0, np.full(len(roots), (1.0 / max(1, len(roots))) ** (1.0 / order))
    return root_sum ** (1 + 2 // order), (roots / root_sum) ** (1.0 / order)


@dataclass(frozen=True, eq=False)
class ProductStrategy:
    """What is measured for a batch over a product, in real numbers: groups with shares.

    ``error`` is ``‖B‖²·Δ²`` of the whole batch. Weighted marginals have Δ in L1, residuals in L2.
    Each group is answered from its own measurements, or (``combined``) two groups
    from both, by generalised least squares.
    """

    groups: tuple[Group, ...]
    error: float
    combined: bool = False

    @property
    def residual(self) -> bool:
        """Whether residuals are measured."""
        return any(group.marginals.residual for group in self.groups)

    @property
    def norm(self) -> Norm:
        """The norm that sensitivity is in."""
        return L2() if self.residual else L1()

    @property
    def name(self) -> str:
        """What people read."""
        return "residuals" if self.residual else "weighted marginals"

    @property
    def bound(self) -> float:
        """A bound that is proven for every strategy; 0 where none is known."""
        return self.groups[0].bound if len(self.groups) == 1 else 0.0

    @property
    def is_combinable(self) -> bool:
        """Whether it has two groups that could be answered from both."""
        return len(self.groups) == 2 and not any(
            group.marginals.folds.any() or not all(axis.is_plain for axis in group.axes)
            for group in self.groups
        )

    @property
    def shares(self) -> Floats:
        """ω of each group."""
        return np.array([group.weight for group in self.groups])

    @classmethod
    def combine(cls, groups: Sequence[Group]) -> ProductStrategy:
        """Give the groups their best weights."""
        order = cls(tuple(groups), 0.0).norm.order
        error, shares = group_weights([group.error for group in groups], order)
        weighed = zip(groups, shares.tolist(), strict=True)
        return cls(tuple(replace(group, weight=weight) for group, weight in weighed), error)

    def dense(self, sizes: Sequence[int]) -> Floats:
        """All measurements over all original cells; for small tables."""
        parts = []
        for group in self.groups:
            rows = group.weight * group.marginals.dense()
            parts.append(over_cells(rows, group.axes, sizes))
        return np.vstack(parts)
