"""Answers and variances from measured marginals, one term at a time, without a flat list.

With ``P_i = H_i − h_i·h_iᵀ/κ_i``, ``a_i = S_i·h_i/κ_i`` and λ as in
:mod:`lrm.planning.design.products.information`, the least-squares estimate of a product is::

    z_A  = (1/λ_A) Σ_{B⊇A} θ_B² [y_B contracted with a_i for i∈B∖A, S_iᵀ applied for i∈A]
    term = Π_{supp} 1/κ_i · Σ_{A⊆supp} (⊗_{i∈A} W_i·P_i) z_A ⊗_{i∈supp∖A} (W_i·h_i)
    Var  = Π_{supp} 1/κ_i · Σ_A (1/λ_A) Π_{i∈A} wᵢᵀP_iwᵢ Π_{i∈supp∖A} (wᵢᵀh_i)²/κ_i

where ``y_B`` are the measurements of the set B divided by its weight.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from lrm.errors import UnsupportedQuery
from lrm.planning.design.products.information import MANY_AXES, Information, Subset, support_of
from lrm.planning.limits import ARRAY, Held
from lrm.queries.maps.kron import along, kronecker
from lrm.queries.maps.linear import BLOCK_ENTRIES, Floats
from lrm.queries.maps.products.batch import Factors, Products


class Estimate:
    """Estimates from the measurements of one group.

    ``measured[b]`` is what was measured of set b: ``(⊗_{i∈B} S_i)·x_B`` plus noise of variance
    proportional to ``1/θ_B²``, with one array axis per member of B, in order; of a folded set, what
    ``unfold`` makes of it.
    """

    def __init__(self, by_subset: Information, measured: Sequence[Floats]) -> None:
        self.by_subset, self._measured = by_subset, measured
        self._residuals: Held[Subset, Floats] = Held(ARRAY, np.size)
        self._last: tuple[Subset, Floats] = ((), np.zeros(()))

    def residual(self, subset: Subset) -> Floats:
        """``z_A``, computed once where all of them are not too many."""
        return self._residuals.find(subset, lambda: self._weighted_mean(subset))

    def _weighted_mean(self, subset: Subset) -> Floats:
        information = self.by_subset[subset]
        if not information > 0:
            raise UnsupportedQuery("no measured marginal contains all attributes of the query")
        total: Floats | float = 0.0
        for b in self.by_subset.telling(subset):
            part = self._contracted(self._measured[b], sorted(self.by_subset.sets[b]), subset)
            total = total + self.by_subset.weights[b] ** 2 * part
        return np.asarray(total) / information

    def _contracted(self, y: Floats, members: Sequence[int], subset: Subset) -> Floats:
        for place in range(len(members) - 1, -1, -1):
            basis = self.by_subset.bases[members[place]]
            if members[place] in subset:
                y = along(y, place, basis.transpose_times)
            else:
                y = np.tensordot(y, basis.average, axes=(place, 0))
        return np.asarray(y)

    def product(self, factors: Factors) -> Floats:
        """Answers of a product, one array axis per axis that it has a factor on."""
        if self.by_subset.counts_nothing(factors):  # the group may have measured none of its sets
            return np.zeros([len(factor) for factor in factors.values()])
        bases = self.by_subset.bases
        support = support_of(factors)
        most = max((bases[i].size for i in support), default=0)
        # Values of an axis up to which that is done: its basis is diagonalised as a dense matrix.
        if len(support) >= MANY_AXES and most <= 512:
            return self._with_totals(factors, self._all_at_once(factors))
        means = {i: bases[i].means(factors[i]) for i in support}
        total: Floats | float = 0.0
        for subset in self.by_subset.asked(factors):
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
        inverses = self.by_subset.inverses(factors)
        for place, i in enumerate(support):
            pattern = np.minimum(np.arange(self.by_subset.bases[i].size), 1)
            inverses = np.take(inverses, pattern, place)
        estimate = estimate * inverses
        for place, i in enumerate(support):
            estimate = along(estimate, place, self.by_subset.spectral(i).__matmul__)
            estimate = along(estimate, place, factors[i].apply)
        return estimate * math.prod(1.0 / self.by_subset.bases[i].kappa for i in support)

    def _transformed(self, support: Subset) -> Floats:
        """``Qᵀ·Σ_B θ_B²·L_Bᵀ·y_B`` over the values of some axes."""
        by_subset, bases = self.by_subset, self.by_subset.bases
        transformed = np.zeros([bases[i].size for i in support])
        images = {i: bases[i].times(by_subset.spectral(i)).T for i in support}
        roots = {i: math.sqrt(bases[i].kappa) for i in support}
        for b, axis_set in enumerate(by_subset.sets):
            if by_subset.residual and not axis_set.issubset(support):
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
            scale = by_subset.weights[b] ** 2 * math.prod(
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


def variances(
    by_subset: Information, factors: Factors, other_factors: Factors | None = None
) -> Floats:
    """Variances of a product's queries over a group's axes, for unit noise.

    With ``other_factors``, the covariances of the queries of two products, row by row. The
    subsets of the support are one array axis of length 2 each, contracted with the forms of its
    axis.
    """
    other_factors = factors if other_factors is None else other_factors
    support = tuple(i for i in support_of(factors) if i in support_of(other_factors))
    cancels = {
        i
        for i in factors
        if by_subset.cancels(i, factors[i]) or by_subset.cancels(i, other_factors[i])
    }
    if cancels.difference(support):  # one counts nothing where the other has the total alone
        return np.zeros([len(factor) for factor in factors.values()])
    cancelling = {
        i: other_factors[i] if by_subset.cancels(i, other_factors[i]) else factors[i]
        for i in support
    }
    products = by_subset.inverses(cancelling)
    for b in by_subset.mixed_sets([cancelling]):  # whose variances are no products of forms
        products[tuple(int(i in by_subset.sets[b]) for i in support)] = 0.0
    for i in factors:
        residual, total = by_subset.forms(i, factors[i], other_factors[i])
        if i in support:
            products = np.tensordot(products, np.stack([total, residual]), axes=(0, 0))
        else:
            products = np.multiply.outer(products, total)
    return products


def term_variances(by_subset: Information, products: Products) -> Floats:
    """Variances of the queries of a sum of products, for unit noise on what was measured."""
    total: Floats | float = 0.0
    for (a, left), (b, right) in itertools.combinations_with_replacement(products, 2):
        twice = 1.0 if left is right else 2.0
        both = variances(by_subset, left, None if left is right else right)
        total = total + twice * a * b * both
    total = np.asarray(total).ravel()
    for number in by_subset.mixed_sets([factors for _, factors in products]):
        total = total + _mixed_variances(by_subset, products, number)
    return total


def _mixed_variances(by_subset: Information, products: Products, number: int) -> Floats:
    """What a mixed set adds to the variances of a sum of products: ``‖w·E‖²`` of each query."""
    estimator, members = by_subset.estimator(number), by_subset.sets[number]
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
                basis = by_subset.bases[i]
                matrices.append(dense if i in members else dense @ basis.h[:, None] / basis.kappa)
            weights = weights + coefficient * kronecker(matrices)
        rows = np.asarray(weights) @ estimator
        blocks.append(np.einsum("ij,ij->i", rows, rows))
    return np.concatenate(blocks)
