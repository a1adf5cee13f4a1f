"""Answers and variances from measured marginals, one term at a time, without a flat list.

With ``P_i = H_i − h_i·h_iᵀ/κ_i``, ``a_i = S_i·h_i/κ_i`` and λ as in
:mod:`lrm.planning.design.products.marginals`, the least-squares estimate of a product is::

    z_A  = (1/λ_A) Σ_{B⊇A} θ_B² [y_B contracted with a_i for i∈B∖A, S_iᵀ applied for i∈A]
    term = Π_{supp} 1/κ_i · Σ_{A⊆supp} (⊗_{i∈A} W_i·P_i) z_A ⊗_{i∈supp∖A} (W_i·h_i)
    Var  = Π_{supp} 1/κ_i · Σ_A (1/λ_A) Π_{i∈A} wᵢᵀP_iwᵢ Π_{i∈supp∖A} (wᵢᵀh_i)²/κ_i

where ``y_B`` are the measurements of the set B divided by its weight.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lrm.errors import UnsupportedQuery
from lrm.planning.design.products.basis import AnyBasis
from lrm.planning.design.products.strategy import Group
from lrm.planning.design.products.subsets import (
    SubsetIndex,
    masks_of,
    members_of,
    sums_over,
    tuples_of,
)
from lrm.queries.maps.kron import along, kronecker
from lrm.queries.maps.linear import BLOCK_ENTRIES, Floats, Integers, LinearMap
from lrm.queries.maps.products.batch import Factors, Products

Subset = tuple[int, ...]

HELD_NUMBERS = 1 << 24
"""Estimates of subsets that are kept for the next term (128 MB)."""

HELD_FORMS = 4096
"""Pairs of factors whose quadratic forms are kept."""

MANY_AXES = 6
"""From this number of axes on, all subsets of a product are answered at once, not one by one."""

MOST_TRANSFORMED = 512
"""Values of an axis up to which that is done: its basis is diagonalised as a dense matrix."""

CANCELS = 1e-13
"""Totals of queries below this, relative to their weights, are rounding errors."""


Key = TypeVar("Key")
Value = TypeVar("Value")


class Held(Generic[Key, Value]):
    """What was computed for some keys, up to ``most`` numbers in all; the oldest goes first."""

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        self._most, self._size, self._held = most, size, 0
        self._known: dict[Key, Value] = {}

    def find(self, key: Key, make: Callable[[], Value]) -> Value:
        """What belongs to a key, computed where it is not held."""
        if key not in self._known:
            value = make()
            self._held += self._size(value)
            while self._held > self._most and self._known:
                self._held -= self._size(self._known.pop(next(iter(self._known))))
            self._known[key] = value
        return self._known[key]


class Lattice:
    """The information λ of the measured sets of a group on each subset of its axes.

    A set of marginals informs about every subset of it; a set of residuals (``residual``) about
    itself alone. ``unmixing`` leads from what is measured of a mixed set to what the product of its
    bases would measure.
    """

    def __init__(  # noqa: PLR0913 - one family of arguments
        self,
        bases: Sequence[AnyBasis],
        members: NDArray[np.bool_],
        weights: Floats,
        *,
        residual: bool = False,
        folds: Integers | None = None,
        unmixing: Mapping[int, Floats] | None = None,
    ) -> None:
        self.unmixing = {} if unmixing is None else unmixing
        self.bases, self.weights, self.residual = tuple(bases), weights, residual
        self.folds = np.zeros(len(weights), dtype=np.int64) if folds is None else folds
        self._mirrored = np.array([basis.mirrored for basis in self.bases])
        self._inside = np.ascontiguousarray(members.T)
        self._sizes = members.sum(axis=1)
        kappas = np.array([basis.kappa for basis in self.bases])
        self.factors = np.exp(-sums_over(members, np.log(kappas))) * np.where(self.folds, 2, 1)
        self._known: dict[Subset, float] = {}
        self._forms: Held[tuple[int, LinearMap, LinearMap], tuple[Floats, Floats]] = Held(
            HELD_FORMS, lambda _: 1
        )
        # Weak keys: the rows of a long factor are written out in pieces of 32 MB, each a map.
        self._cancels: WeakKeyDictionary[LinearMap, dict[int, bool]] = WeakKeyDictionary()
        self._spectral: dict[int, Floats] = {}
        self._estimators: dict[int, Floats] = {}

    @cached_property
    def sets(self) -> list[frozenset[int]]:
        """The axes of each set."""
        return [frozenset(members) for members in tuples_of(self._inside.T)]

    @cached_property
    def _number(self) -> dict[frozenset[int], int]:
        return {axis_set: b for b, axis_set in enumerate(self.sets)}

    @classmethod
    def of(cls, group: Group) -> Lattice:
        """The lattice of a group's marginals."""
        marginals = group.marginals
        return cls(marginals.bases, marginals.members, marginals.weights, folds=marginals.folds)

    def signs(self, axes: Subset) -> Integers:
        """The fold that informs about each subset of some axes, an array like that of ``over``."""
        signs = np.ones((), dtype=np.int64)
        for i in axes:  # odd for an odd number of mirrored ones
            signs = np.multiply.outer(signs, np.array([1, -1 if self._mirrored[i] else 1]))
        return signs

    def mirrored(self, b: int) -> list[int]:
        """Places of the mirrored axes among those of a set."""
        return [place for place, i in enumerate(sorted(self.sets[b])) if self._mirrored[i]]

    def telling(self, subset: Subset) -> list[int]:
        """Numbers of the sets that hold information about a subset."""
        if self.residual:
            number = self._number.get(frozenset(subset))
            return [] if number is None else [number]
        sign = -1 if self._mirrored[list(subset)].sum() % 2 else 1
        inside = (self.folds == 0) | (self.folds == sign)
        inside &= np.logical_and.reduce(self._inside[list(subset)], axis=0)
        return [int(b) for b in np.flatnonzero(inside)]

    def __getitem__(self, subset: Subset) -> float:
        if subset not in self._known:
            set_numbers = self.telling(subset)
            self._known[subset] = float(
                np.sum(self.weights[set_numbers] ** 2 * self.factors[set_numbers])
            )
        return self._known[subset]

    def over(self, axes: Subset) -> Floats:
        """λ of all subsets of some axes, as an array with an axis of length 2 for each of them."""
        informations: Floats = np.zeros((2,) * len(axes))
        if len(axes) < MANY_AXES:
            for inside in itertools.product((0, 1), repeat=len(axes)):
                informations[inside] = self[tuple(itertools.compress(axes, inside))]
            return informations
        place = 2 ** np.arange(len(axes))[::-1] @ self._inside[list(axes)]
        weights = self.weights**2 * self.factors
        if self.residual:
            weights = np.where(self._inside[list(axes)].sum(axis=0) == self._sizes, weights, 0.0)
            return np.asarray(
                np.bincount(place, weights, informations.size).reshape(informations.shape)
            )
        signs = self.signs(axes)
        for sign in np.unique(self.folds):
            of_sign = self.folds == sign
            part = np.bincount(place[of_sign], weights[of_sign], informations.size).reshape(
                informations.shape
            )
            for axis in range(len(axes)):  # what is known about a set is known about its subsets
                first, last = (np.take(part, k, axis) for k in (0, 1))
                part = np.stack([first + last, last], axis)
            informations += np.where((sign == 0) | (signs == sign), part, 0.0)
        return informations

    def inverses(self, factors: Factors) -> Floats:
        """``1/λ`` of all subsets that a product asks about, 0 for the others, as in ``over``."""
        support = support_of(factors)
        needed = np.ones((2,) * len(support), dtype=bool)
        for place, i in enumerate(support):
            if self.cancels(i, factors[i]):
                needed[(slice(None),) * place + (0,)] = False
        informations = self.over(support)
        if np.any(informations[needed] <= 0):
            raise UnsupportedQuery("no measured marginal contains all attributes of the query")
        return np.divide(1.0, informations, out=np.zeros(informations.shape), where=needed)

    def inverses_in(self, b: int, axes: Subset) -> Floats:
        """``1/λ`` of the subsets of some axes of a set that it informs about, 0 for the others."""
        informations = self.over(axes)
        if self.residual:
            told = np.zeros(informations.shape, dtype=bool)
            told[(1,) * len(axes)] = len(axes) == len(self.sets[b])
        else:
            told = np.asarray((self.folds[b] == 0) | (self.signs(axes) == self.folds[b]))
        return np.divide(1.0, informations, out=np.zeros(informations.shape), where=told)

    def spectral(self, i: int) -> Floats:
        """A matrix Q with ``Q·Qᵀ = H`` whose first column is ``h/sqrt(κ)``, computed once."""
        if i not in self._spectral:
            basis = self.bases[i]
            C = np.linalg.cholesky(basis.inverse_times(np.eye(basis.size)))
            first = np.linalg.solve(C, basis.h) / np.sqrt(basis.kappa)
            # A reflection that takes the first unit vector to ``first``.
            first[0] -= 1.0
            size = float(first @ first)
            Q = C if size < 1e-28 else C - np.outer(C @ first, first) * (2.0 / size)
            self._spectral[i] = np.asarray(Q)
        return self._spectral[i]

    def forms(self, i: int, factor: LinearMap, other: LinearMap) -> tuple[Floats, Floats]:
        """``diag(W·P·Vᵀ)/κ`` and ``(W·h)·(V·h)/κ²`` on one axis, row by row, computed once."""
        return self._forms.find((i, factor, other), lambda: self.bases[i].forms(factor, other))

    @cached_property
    def _most_mixed(self) -> int:
        return max((len(self.sets[b]) for b in self.unmixing), default=0)

    def mixed_sets(self, products: Sequence[Factors]) -> list[int]:
        """The mixed sets that inform about a sum of products."""
        if not self.unmixing:
            return []
        supports = {support_of(product) for product in products}
        subsets = {
            subset
            for support in supports
            for size in range(1, self._most_mixed + 1)
            for subset in itertools.combinations(support, size)
        }
        numbers = (self._number.get(frozenset(subset), -1) for subset in subsets)
        return sorted(b for b in numbers if b in self.unmixing)

    def estimator(self, b: int) -> Floats:
        """E with the part ``w·E·y`` of weights w over a mixed set, for unit noise on y."""
        if b not in self._estimators:
            bases = [self.bases[i] for i in sorted(self.sets[b])]
            inverses = [basis.times(basis.projector_times(np.eye(basis.size))).T for basis in bases]
            self._estimators[b] = kronecker(inverses) @ self.unmixing[b] / self.weights[b]
        return self._estimators[b]

    def cancels(self, i: int, factor: LinearMap) -> bool:
        """Whether no query of a factor asks about the total: all have ``W·h = 0``."""
        if factor.is_word:
            return False  # counts of values, all of one sign
        known = self._cancels.setdefault(factor, {})
        if i not in known:
            h = self.bases[i].h
            size = CANCELS * factor.entry_range[1] * np.abs(h).sum()
            known[i] = bool(np.abs(factor.apply(h[:, None])).max() <= size)
        return known[i]

    def asked(self, factors: Factors) -> Iterator[Subset]:
        """Yield the subsets of the axes that a product asks about.

        An axis on which all its queries cancel is in all of them.
        """
        support = support_of(factors)
        fixed = {i for i in support if self.cancels(i, factors[i])}
        for subset in _subsets(support):
            if fixed.issubset(subset):
                yield subset

    def informations(self, index: SubsetIndex) -> Floats:
        """λ of all subsets of an index."""
        masks = masks_of(self._inside.T)
        weights = self.weights**2 * self.factors
        if self.residual:
            place = index.find(masks)
            sums = np.zeros(len(index))
            np.add.at(sums, place[place >= 0], weights[place >= 0])
            return sums
        odd = members_of(index.masks, len(self.bases))[:, self._mirrored].sum(axis=1) % 2 == 1
        sums = np.zeros(len(index))
        for sign in np.unique(self.folds):
            of_sign = self.folds == sign
            is_informed = (sign == 0) | (odd == (sign < 0))
            sums += np.where(is_informed, index.inside(masks[of_sign]) @ weights[of_sign], 0.0)
        return sums


def support_of(factors: Factors) -> Subset:
    """The axes on which a product distinguishes values."""
    return tuple(i for i, factor in factors.items() if factor.total_factor is None)


def _subsets(support: Subset) -> Iterator[Subset]:
    for size in range(len(support) + 1):
        yield from itertools.combinations(support, size)


class Estimate:
    """Estimates from the measurements of one group.

    ``measured[b]`` is what was measured of set b: ``(⊗_{i∈B} S_i)·x_B`` plus noise of variance
    proportional to ``1/θ_B²``, with one array axis per member of B, in order; of a folded set, what
    ``unfold`` makes of it.
    """

    def __init__(self, lattice: Lattice, measured: Sequence[Floats]) -> None:
        self.lattice, self._measured = lattice, measured
        self._residuals: Held[Subset, Floats] = Held(HELD_NUMBERS, np.size)
        self._last: tuple[Subset, Floats] = ((), np.zeros(()))

    def residual(self, subset: Subset) -> Floats:
        """``z_A``, computed once where all of them are not too many."""
        return self._residuals.find(subset, lambda: self._weighted_mean(subset))

    def _weighted_mean(self, subset: Subset) -> Floats:
        information = self.lattice[subset]
        if not information > 0:
            raise UnsupportedQuery("no measured marginal contains all attributes of the query")
        total: Floats | float = 0.0
        for b in self.lattice.telling(subset):
            part = self._contracted(self._measured[b], sorted(self.lattice.sets[b]), subset)
            total = total + self.lattice.weights[b] ** 2 * part
        return np.asarray(total) / information

    def _contracted(self, y: Floats, members: Sequence[int], subset: Subset) -> Floats:
        for place in range(len(members) - 1, -1, -1):
            basis = self.lattice.bases[members[place]]
            if members[place] in subset:
                y = along(y, place, basis.transpose_times)
            else:
                y = np.tensordot(y, basis.average, axes=(place, 0))
        return np.asarray(y)

    def product(self, factors: Factors) -> Floats:
        """Answers of a product, one array axis per axis that it has a factor on."""
        bases = self.lattice.bases
        support = support_of(factors)
        most = max((bases[i].size for i in support), default=0)
        if len(support) >= MANY_AXES and most <= MOST_TRANSFORMED:
            return self._with_totals(factors, self._all_at_once(factors))
        means = {i: bases[i].means(factors[i]) for i in support}
        total: Floats | float = 0.0
        for subset in self.lattice.asked(factors):
            part = self.residual(subset) / math.prod(bases[i].kappa for i in subset)
            for place, i in enumerate(subset):
                part = along(part, place, bases[i].projector_times)
                part = along(part, place, factors[i].apply)
            for place, i in enumerate(support):
                if i not in subset:
                    part = np.moveaxis(np.multiply.outer(means[i], part), 0, place)
            total = total + part
        return self._with_totals(factors, np.asarray(total))

    def _with_totals(self, factors: Factors, result: Floats) -> Floats:
        """The answers of a product from those on the axes where it distinguishes values."""
        support = support_of(factors)
        for place, (i, factor) in enumerate(factors.items()):
            if i not in support:  # a multiple of the total, row by row
                result = np.moveaxis(np.multiply.outer(factor.dense()[:, 0], result), 0, place)
        return np.asarray(result)

    def _all_at_once(self, factors: Factors) -> Floats:
        """Answers of a product as a sum over subsets A, in coordinates that diagonalise all.

        Along each axis ``Q·Qᵀ = H``, and the first column of Q stands for the total: a subset A
        is where exactly the axes of A have another coordinate than the first. Cost: the size of
        the table times the sum of its lengths, for any number of axes.
        """
        support = support_of(factors)
        if self._last[0] != support:
            self._last = support, self._transformed(support)
        estimate = self._last[1]
        inverses = self.lattice.inverses(factors)
        for place, i in enumerate(support):
            pattern = np.minimum(np.arange(self.lattice.bases[i].size), 1)
            inverses = np.take(inverses, pattern, place)
        estimate = estimate * inverses
        for place, i in enumerate(support):
            estimate = along(estimate, place, self.lattice.spectral(i).__matmul__)
            estimate = along(estimate, place, factors[i].apply)
        return estimate * math.prod(1.0 / self.lattice.bases[i].kappa for i in support)

    def _transformed(self, support: Subset) -> Floats:
        """``Qᵀ·Σ_B θ_B²·L_Bᵀ·y_B`` over the values of some axes."""
        lattice, bases = self.lattice, self.lattice.bases
        transformed = np.zeros([bases[i].size for i in support])
        images = {i: bases[i].times(lattice.spectral(i)).T for i in support}
        roots = {i: math.sqrt(bases[i].kappa) for i in support}
        for b, axis_set in enumerate(lattice.sets):
            if lattice.residual and not axis_set.issubset(support):
                continue
            members = sorted(axis_set)
            part = self._measured[b]
            for place in range(len(members) - 1, -1, -1):
                if members[place] not in roots:
                    part = np.tensordot(part, bases[members[place]].average, axes=(place, 0))
            inner = [i for i in members if i in roots]
            for i in inner:  # each axis in turn is the first, and becomes the last
                part = (images[i] @ part.reshape(images[i].shape[1], -1)).T
            where = tuple(slice(None) if i in axis_set else 0 for i in support)
            scale = lattice.weights[b] ** 2 * math.prod(
                roots[i] for i in support if i not in axis_set
            )
            transformed[where] += scale * part.reshape([bases[i].size for i in inner])
        return transformed

    def term(self, products: Products) -> Floats:
        """The answers of a sum of products, flattened."""
        total: Floats | float = 0.0
        for coefficient, factors in products:
            total = total + coefficient * self.product(factors)
        return np.asarray(total).ravel()


def variances(lattice: Lattice, factors: Factors, other_factors: Factors | None = None) -> Floats:
    """Variances of a product's queries over a group's axes, for unit noise.

    With ``other_factors``, the covariances of the queries of two products, row by row. The
    subsets of the support are one array axis of length 2 each, contracted with the forms of its
    axis.
    """
    other_factors = factors if other_factors is None else other_factors
    support = tuple(i for i in support_of(factors) if i in support_of(other_factors))
    cancels = {
        i for i in factors if lattice.cancels(i, factors[i]) or lattice.cancels(i, other_factors[i])
    }
    if cancels.difference(support):
        return np.zeros([len(factor) for factor in factors.values()])
    cancelling = {
        i: other_factors[i] if lattice.cancels(i, other_factors[i]) else factors[i] for i in support
    }
    products = lattice.inverses(cancelling)
    for b in lattice.mixed_sets([cancelling]):  # whose variances are no products of forms
        products[tuple(int(i in lattice.sets[b]) for i in support)] = 0.0
    for i in factors:
        residual, total = lattice.forms(i, factors[i], other_factors[i])
        if i in support:
            products = np.tensordot(products, np.stack([total, residual]), axes=(0, 0))
        else:
            products = np.multiply.outer(products, total)
    return products


def term_variances(lattice: Lattice, products: Products) -> Floats:
    """Variances of the queries of a sum of products, for unit noise on what was measured."""
    total: Floats | float = 0.0
    for (a, left), (b, right) in itertools.combinations_with_replacement(products, 2):
        twice = 1.0 if left is right else 2.0
        both = variances(lattice, left, None if left is right else right)
        total = total + twice * a * b * both
    total = np.asarray(total).ravel()
    for number in lattice.mixed_sets([factors for _, factors in products]):
        total = total + _mixed_variances(lattice, products, number)
    return total


def _mixed_variances(lattice: Lattice, products: Products, number: int) -> Floats:
    """What a mixed set adds to the variances of a sum of products: ``‖w·E‖²`` of each query."""
    estimator, members = lattice.estimator(number), lattice.sets[number]
    telling = [(c, product) for c, product in products if members.issubset(support_of(product))]
    heights = [len(factor) for factor in telling[0][1].values()]
    step = max(1, BLOCK_ENTRIES // (math.prod(heights[1:]) * max(estimator.shape)))
    blocks = []
    for start in range(0, heights[0], step):
        weights: Floats | float = 0.0
        for coefficient, product in telling:
            matrices = []
            for place, (i, factor) in enumerate(product.items()):
                stop = min(start + step, heights[0])
                dense = factor.rows(start, stop) if place == 0 else factor.dense()
                basis = lattice.bases[i]
                matrices.append(dense if i in members else dense @ basis.h[:, None] / basis.kappa)
            weights = weights + coefficient * kronecker(matrices)
        rows = np.asarray(weights) @ estimator
        blocks.append(np.einsum("ij,ij->i", rows, rows))
    return np.concatenate(blocks)
