"""Answers and variances from measured marginals, one term at a time, without a flat list.

With ``P_i = H_i − h_i·h_iᵀ/κ_i``, ``a_i = S_i·h_i/κ_i`` and λ as in
:mod:`lrm.solvers.products.marginals`, the least-squares estimate of a product is::

    z_A  = (1/λ_A) Σ_{B⊇A} θ_B² [y_B contracted with a_i for i∈B∖A, S_iᵀ applied for i∈A]
    term = Π_{supp} 1/κ_i · Σ_{A⊆supp} (⊗_{i∈A} W_i·P_i) z_A ⊗_{i∈supp∖A} (W_i·h_i)
    Var  = Π_{supp} 1/κ_i · Σ_A (1/λ_A) Π_{i∈A} wᵢᵀP_iwᵢ Π_{i∈supp∖A} (wᵢᵀh_i)²/κ_i

where ``y_B`` are the measurements of the set B divided by its weight.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrm.errors import UnsupportedQuery
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.factors import Factor
from lrm.solvers.products.basis import Basis
from lrm.solvers.products.strategy import Group

__all__ = [
    "GroupEstimate",
    "Lattice",
    "can_answer",
    "measure_exactly",
    "term_variances",
    "variances",
]

Floats = NDArray[np.float64]
Subset = tuple[int, ...]


def _along(array: Floats, axis: int, function: Callable[[Floats], Floats]) -> Floats:
    """Apply a linear function of columns along one axis."""
    moved = np.moveaxis(array, axis, 0)
    result = function(moved.reshape(len(moved), -1))
    return np.moveaxis(result.reshape(len(result), *moved.shape[1:]), 0, axis)


def _basis_times(basis: Basis, X: Floats) -> Floats:
    """``S·X``."""
    scaled = X / basis.scale[:, None]
    return np.vstack([scaled, basis.extra_rows @ scaled])


def _basis_transpose_times(basis: Basis, Y: Floats) -> Floats:
    """``Sᵀ·Y``."""
    n = basis.size
    return np.asarray(Y[:n] + basis.extra_rows.T @ Y[n:]) / basis.scale[:, None]


def _projector_times(basis: Basis, X: Floats) -> Floats:
    """``P·X``."""
    return basis.inverse_times(X) - np.outer(basis.h, basis.h @ X) / basis.kappa


class Lattice:
    """The information λ of any subset of a group's axes."""

    def __init__(self, group: Group) -> None:
        marginals = group.marginals
        self.bases = marginals.bases
        self.sets = [frozenset(np.flatnonzero(inside).tolist()) for inside in marginals.members]
        self.weights = marginals.weights
        kappas = np.array([basis.kappa for basis in self.bases])
        self.factors = np.exp(-(marginals.members @ np.log(kappas)))
        self._known: dict[Subset, float] = {}

    def __getitem__(self, subset: Subset) -> float:
        if subset not in self._known:
            wanted = frozenset(subset)
            inside = np.array([wanted <= one for one in self.sets], dtype=bool)
            self._known[subset] = float(np.sum((self.weights**2 * self.factors)[inside]))
        return self._known[subset]


def _support(factors: Sequence[Factor]) -> Subset:
    return tuple(i for i, factor in enumerate(factors) if factor.total_factor is None)


def _subsets(support: Subset) -> Iterator[Subset]:
    for size in range(len(support) + 1):
        yield from itertools.combinations(support, size)


def can_answer(group: Group, factors: Sequence[Factor]) -> bool:
    """Whether a product of factors over the original attributes follows from the measurements."""
    if not all(axis.answers(factors) for axis in group.axes):
        return False
    support = _support([axis.factor(factors) for axis in group.axes])
    return any(set(support) <= set(np.flatnonzero(m)) for m in group.marginals.members)


def measure_exactly(group: Group, table: Floats) -> list[Floats]:
    """The measurements of a small table (over the group's axes) without noise: for tests."""
    measured = []
    for inside in group.marginals.members:
        y = table
        for i, member in reversed(list(enumerate(inside))):
            if member:
                y = _along(y, i, lambda X, i=i: _basis_times(group.marginals.bases[i], X))  # type: ignore[misc]
            else:
                y = y.sum(axis=i)
        measured.append(y)
    return measured


class GroupEstimate:
    """Estimates from the measurements of one group.

    ``measured[b]`` is what was measured of set b: ``(⊗_{i∈B} S_i)·x_B`` plus noise of variance
    proportional to ``1/θ_B²``, with one array axis per member of B, in order.
    """

    def __init__(self, group: Group, measured: Sequence[Floats]) -> None:
        self.group, self.lattice = group, Lattice(group)
        self._measured = [np.asarray(y, dtype=np.float64) for y in measured]
        self._residuals: dict[Subset, Floats] = {}

    @cached_property
    def _averages(self) -> list[Floats]:
        """``a_i = S_i·h_i/κ_i``."""
        return [
            _basis_times(basis, basis.h[:, None])[:, 0] / basis.kappa
            for basis in self.lattice.bases
        ]

    def residual(self, subset: Subset) -> Floats:
        """``z_A``, computed once."""
        if subset not in self._residuals:
            information = self.lattice[subset]
            if not information > 0:
                raise UnsupportedQuery("no measured marginal contains all attributes of the query")
            total: Floats | float = 0.0
            for one, weight, y in zip(
                self.lattice.sets, self.lattice.weights, self._measured, strict=True
            ):
                if one >= set(subset):
                    total = total + weight**2 * self._contracted(y, sorted(one), subset)
            self._residuals[subset] = np.asarray(total) / information
        return self._residuals[subset]

    def _contracted(self, y: Floats, members: Sequence[int], subset: Subset) -> Floats:
        for place in range(len(members) - 1, -1, -1):
            i = members[place]
            if i in subset:
                basis = self.lattice.bases[i]
                y = _along(y, place, lambda Y, basis=basis: _basis_transpose_times(basis, Y))  # type: ignore[misc]
            else:
                y = np.tensordot(y, self._averages[i], axes=(place, 0))
        return np.asarray(y)

    def answer(self, factors: Sequence[Factor]) -> Floats:
        """The estimate of a product over the group's axes, one array axis per group axis."""
        bases = self.lattice.bases
        support = _support(factors)
        # A factor that tells no values apart is a multiple of the total, row by row.
        flat = [f.dense()[:, 0] if i not in support else None for i, f in enumerate(factors)]
        whole: Floats | float = 0.0
        for subset in _subsets(support):
            part = self.residual(subset)
            for place, i in enumerate(subset):
                part = _along(
                    part,
                    place,
                    lambda Z, i=i: factors[i].times(_projector_times(bases[i], Z)),  # type: ignore[misc]
                )
            for place, i in enumerate(support):
                if i not in subset:
                    mean = factors[i].times(bases[i].h[:, None])[:, 0]
                    part = np.moveaxis(np.multiply.outer(mean, part), 0, place)
            whole = whole + part
        scale = np.prod([1.0 / bases[i].kappa for i in support])
        result = np.asarray(whole) * scale
        for i, ones in enumerate(flat):
            if ones is not None:
                result = np.moveaxis(np.multiply.outer(ones, result), 0, i)
        return np.asarray(result)

    def term(self, batch: ProductBatch, term: int) -> Floats:
        """The answers of one term of a batch over the original attributes, flattened."""
        whole: Floats | float = 0.0
        for coefficient, factors in batch.summands(term):
            on_axes = [axis.factor(factors) for axis in self.group.axes]
            whole = whole + coefficient * self.answer(on_axes)
        return np.asarray(whole).ravel()


def _quadratic_forms(basis: Basis, factor: Factor, other: Factor) -> tuple[Floats, Floats]:
    """``diag(W·P·Vᵀ)`` and ``(W·h)·(V·h)`` row by row, for two factors of equally many rows."""
    mean, mean_other = (f.times(basis.h[:, None])[:, 0] for f in (factor, other))
    image = factor.times(basis.scaled_rows.T)
    image_other = image if other is factor else other.times(basis.scaled_rows.T)
    if other is factor and factor.rows is None:
        own = factor.times((basis.scale**2)[:, None])[:, 0]  # entries are 0 or 1
    else:
        own = np.einsum("ij,ij,j->i", factor.dense(), other.dense(), basis.scale**2)
    solved = basis.solve_inner(image_other.T).T
    forms = own - np.einsum("ij,ij->i", image, solved)
    return np.asarray(forms - mean * mean_other / basis.kappa), np.asarray(mean * mean_other)


def variances(
    group: Group, factors: Sequence[Factor], others: Sequence[Factor] | None = None
) -> Floats:
    """Variances of a product's queries over the group's axes, for unit noise at sensitivity 1.

    With ``others``, the covariances of the queries of two products, row by row.
    """
    lattice = Lattice(group)
    others = factors if others is None else others
    bases = lattice.bases
    forms = [_quadratic_forms(b, f, g) for b, f, g in zip(bases, factors, others, strict=True)]
    support = tuple(sorted(set(_support(factors)) & set(_support(others))))
    whole: Floats | float = 0.0
    for subset in _subsets(support):
        information = lattice[subset]
        if not information > 0:
            raise UnsupportedQuery("no measured marginal contains all attributes of the query")
        part: Floats = np.full((1,) * 0, 1.0 / information)
        for i, (residual, total) in enumerate(forms):
            kappa = bases[i].kappa
            row = residual / kappa if i in subset else total / kappa**2
            part = np.multiply.outer(part, row)
        whole = whole + part
    return np.asarray(whole)


def term_variances(group: Group, batch: ProductBatch, term: int) -> Floats:
    """Variances of the queries of one term, for unit noise at the group's sensitivity 1.

    Divide by the square of the group's weight for the whole strategy at sensitivity 1.
    """
    parts = [
        (coefficient, [axis.factor(factors) for axis in group.axes])
        for coefficient, factors in batch.summands(term)
    ]
    whole: Floats | float = 0.0
    for (a, left), (b, right) in itertools.combinations_with_replacement(parts, 2):
        twice = 1.0 if left is right else 2.0
        both = variances(group, left, None if left is right else right)
        whole = whole + twice * a * b * both
    return np.asarray(whole).ravel()
