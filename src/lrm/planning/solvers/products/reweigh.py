"""A product strategy for other weights of its terms: the same sets and bases, other set weights.

What a batch asks of a subset of attributes, ``v_A``, is a sum over its terms (see
`lrm.planning.design.products.marginals`). So it is computed once for each part of the batch, and
the error of each part under any weights of the parts follows without the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from lrm.planning.design.products.basis import Basis, identity_basis
from lrm.planning.design.products.marginals import Point, SetWeights
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.residuals import GaussianGroups, GaussianStrategy
from lrm.planning.design.products.strategy import Group, ProductStrategy, on_axes
from lrm.planning.design.products.subsets import Masks, masks_of
from lrm.planning.solvers.products.gaussian import (
    residual_demands,
    residual_shares,
    residual_strategy,
)
from lrm.planning.solvers.products.group import marginals_of
from lrm.planning.solvers.products.weights import Family, descend_weights
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch

Demand = Callable[[Quadratic, ProductBatch], Floats]

ROUNDS = 60
"""Rounds of descent on the weights of sets, from those of the last weights of the parts."""


class Reweighing:
    """Strategies that share groups of terms, sets and bases, for any weights of parts of a batch.

    The weights of the terms multiply those of their parts; ``weights`` are those of the parts that
    the strategy was found for. Groups that were combined by generalised least squares are answered
    from themselves.
    """

    def __init__(
        self,
        batch: ProductBatch,
        parts: Integers,
        strategy: ProductStrategy | GaussianGroups,
        weights: Floats,
    ) -> None:
        self._count = int(parts.max(initial=-1)) + 1
        self._marginals: list[_Marginals] = []
        self._residuals: list[_Residuals] = []
        self._groups: list[_Marginals | _Residuals] = []
        if isinstance(strategy, GaussianGroups):
            for terms, residuals in zip(strategy.terms, strategy.groups, strict=True):
                self._residuals.append(_Residuals(batch, parts, terms, residuals, weights))
        else:
            self._marginals = [_Marginals(batch, parts, group) for group in strategy.groups]
        self._groups += [*self._marginals, *self._residuals]

    def at(self, weights: Floats | None = None) -> ProductStrategy | GaussianGroups:
        """The strategy for a weight of each part's squared errors; by default, that of the start.

        Weights of later calls are best near to those of earlier ones.
        """
        if weights is not None:
            for group in self._groups:
                group.descend(weights)
        if self._marginals:
            return ProductStrategy.combine([group.result for group in self._marginals])
        results = tuple(group.result for group in self._residuals)
        bound = results[0].bound if len(results) == 1 else 0.0
        return GaussianGroups(tuple(group.terms for group in self._residuals), results, bound)

    def errors(self, strategy: ProductStrategy | GaussianGroups) -> Floats:
        """``‖B‖²·Δ²`` of each part under the last strategy, without the weights of terms."""
        errors = np.zeros(self._count)
        for group, share in zip(self._groups, strategy.shares, strict=True):
            errors[group.present] += group.part_errors() / share**2
        return errors


class _Parts:
    """The terms of one group by parts: what each asks of the subsets of all of them."""

    def __init__(self, batch: ProductBatch, own: Integers, *, folded: bool, demand: Demand) -> None:
        self.quadratic = Quadratic(batch, folded=folded)
        self.present = np.unique(own)
        terms = [np.flatnonzero(own == part) for part in self.present]
        self._searched = self._stated = self._demands(batch, terms, demand)
        if np.any(batch.weights != 1.0):
            plain = replace(batch, weights=np.ones(batch.terms))
            self._stated = self._demands(plain, terms, demand)

    def _demands(
        self, batch: ProductBatch, terms: Sequence[Integers], demand: Demand
    ) -> sp.csr_array:
        rows = []
        for part_terms in terms:
            part = batch.take(part_terms)
            quadratic = Quadratic(part, folded=self.quadratic.folded)
            places = self.quadratic.index.find(quadratic.index.masks)
            values = demand(quadratic, part)
            shape = (1, len(self.quadratic.index))
            rows.append(sp.csr_array((values, (np.zeros(len(places), int), places)), shape=shape))
        return sp.csr_array(sp.vstack(rows, format="csr"))

    def demand(self, weights: Floats) -> Floats:
        """Return v of all parts with their weights."""
        return np.asarray(self._searched.T @ weights[self.present])

    def errors(self, variances: Floats) -> Floats:
        """The error of each part, from that of each subset."""
        return np.asarray(self._stated @ variances)


class _Marginals:
    """A group of weighted marginals."""

    def __init__(self, batch: ProductBatch, parts: Integers, group: Group) -> None:
        folded = bool(np.any(group.marginals.folds))
        self._sets, self._bases = _opened(group, folded=folded)
        self._parts = _Parts(
            group.reduced(batch),
            parts[group.terms],
            folded=folded,
            demand=lambda quadratic, _: Point.at(quadratic, self._bases).v,
        )
        self.present = self._parts.present
        self._point = Point.at(self._parts.quadratic, self._bases)
        self._weights, self.result = group.marginals.weights, group

    def descend(self, weights: Floats) -> None:
        """Find the weights of the sets for those of the parts."""
        self._point = replace(self._point, v=self._parts.demand(weights))
        family: Family = descend_weights(
            self._point, self._sets, self._weights, tolerance=1e-7, max_rounds=ROUNDS
        )
        self._sets, self._weights = family.sets, family.weights
        marginals = marginals_of(self._parts.quadratic, family, self._bases)
        self.result = Group(self.result.terms, self.result.axes, marginals, family.error)

    def part_errors(self) -> Floats:
        """``‖B‖²`` of each part at sensitivity 1."""
        information = SetWeights(self._point, self._sets).information(self._weights)
        known = information > 0
        return self._parts.errors(np.divide(1.0, information, out=0.0 * information, where=known))


class _Residuals:
    """A group of residuals for Gaussian noise: the weights have a closed form."""

    def __init__(
        self,
        batch: ProductBatch,
        parts: Integers,
        terms: Integers,
        strategy: GaussianStrategy,
        weights: Floats,
    ) -> None:
        self._parts = _Parts(
            on_axes(batch.take(terms), strategy.axes),
            parts[terms],
            folded=False,
            demand=lambda quadratic, part: residual_demands(quadratic, strategy, part),
        )
        self.present, self.terms, self.result = self._parts.present, terms, strategy
        self._demand = self._parts.demand(weights)

    def descend(self, weights: Floats) -> None:
        """The best weights of the subsets for those of the parts."""
        self._demand = self._parts.demand(weights)
        self.result = residual_strategy(self._parts.quadratic, self.result, self._demand)

    def part_errors(self) -> Floats:
        """``‖B‖²`` of each part at sensitivity 1."""
        quadratic = self._parts.quadratic
        return self._parts.errors(residual_shares(quadratic, self.result.bases, self._demand)[1])


def _opened(group: Group, *, folded: bool) -> tuple[Masks, Sequence[Basis]]:
    """Sets and bases as a quadratic of the same group has them (see `Quadratic`)."""
    marginals = group.marginals
    if not folded:
        return marginals.sets, marginals.bases
    kinds = np.column_stack([marginals.folds >= 0, marginals.folds <= 0])
    sets = masks_of(np.hstack([marginals.members, kinds]))
    return sets, (*marginals.bases, identity_basis(1), identity_basis(1))
