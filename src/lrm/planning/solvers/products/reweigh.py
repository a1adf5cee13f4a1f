"""A product strategy for other weights of its terms: the same sets and bases, other set weights.

What a batch asks of a subset of attributes, ``v_A``, is a sum over its terms (see
`lrm.planning.design.products.information`). So it is computed once for each part of the batch, and
the error of each part under any weights of the parts follows without the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from lrm.planning.design.products.information import FixedBases, ResidualShares, SetWeights
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Group, ProductStrategy
from lrm.planning.solvers.products.descents import WeightedSets, descend_weights
from lrm.planning.solvers.products.gaussian import (
    residual_demands,
    reweighed_residuals,
)
from lrm.planning.solvers.products.group import marginals_of
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch

Demand = Callable[[Quadratic, ProductBatch], Floats]


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
        strategy: ProductStrategy,
        weights: Floats,
    ) -> None:
        self._count = int(parts.max(initial=-1)) + 1
        self._groups: list[_Marginals | _Residuals] = [
            _Residuals(batch, parts, group, weights)
            if group.marginals.residual
            else _Marginals(batch, parts, group)
            for group in strategy.groups
        ]

    def at(self, weights: Floats | None = None) -> ProductStrategy:
        """The strategy for a weight of each part's squared errors; by default, that of the start.

        Weights of later calls are best near to those of earlier ones.
        """
        if weights is not None:
            for group in self._groups:
                group.descend(weights)
        return ProductStrategy.combine([group.result for group in self._groups])

    def errors(self, strategy: ProductStrategy) -> Floats:
        """``‖B‖²·Δ²`` of each part under the last strategy, without the weights of terms."""
        errors = np.zeros(self._count)
        for group, share in zip(self._groups, strategy.shares, strict=True):
            errors[group.present] += group.part_errors() / share**2
        return errors


class _PartDemands:
    """The terms of one group by parts: what each asks of the subsets of all of them."""

    def __init__(self, batch: ProductBatch, own: Integers, *, folded: bool, demand: Demand) -> None:
        self.quadratic = Quadratic(batch, folded=folded)
        self.present = np.unique(own)
        terms = [np.flatnonzero(own == part) for part in self.present]
        self._searched = self._stated = self._demands(batch, terms, demand)
        if np.any(batch.weights != 1.0):
            self._stated = self._demands(batch.unweighted, terms, demand)

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
        self._sets, self._bases = group.marginals.opened(folded=folded)
        self._parts = _PartDemands(
            group.reduced(batch),
            parts[group.terms],
            folded=folded,
            demand=lambda quadratic, _: FixedBases.at(quadratic, self._bases).v,
        )
        self.present = self._parts.present
        self._point = FixedBases.at(self._parts.quadratic, self._bases)
        self._weights, self.result = group.marginals.weights, group

    def descend(self, weights: Floats) -> None:
        """Find the weights of the sets for those of the parts."""
        self._point = replace(self._point, v=self._parts.demand(weights))
        # Rounds of descent on the weights of sets, from those of the last weights of the parts.
        family: WeightedSets = descend_weights(
            self._point, self._sets, self._weights, tolerance=1e-7, max_rounds=60
        )
        self._sets, self._weights = family.sets, family.weights
        marginals = marginals_of(self._parts.quadratic, family, self._bases)
        self.result = replace(self.result, marginals=marginals, error=family.error)

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
        group: Group,
        weights: Floats,
    ) -> None:
        self._parts = _PartDemands(
            group.reduced(batch),
            parts[group.terms],
            folded=False,
            demand=lambda quadratic, part: residual_demands(quadratic, group.marginals, part),
        )
        self.present, self.result = self._parts.present, group
        self._demand = self._parts.demand(weights)

    def descend(self, weights: Floats) -> None:
        """The best weights of the subsets for those of the parts."""
        self._demand = self._parts.demand(weights)
        self.result = reweighed_residuals(self._parts.quadratic, self.result, self._demand)

    def part_errors(self) -> Floats:
        """``‖B‖²`` of each part at sensitivity 1."""
        quadratic = self._parts.quadratic
        marginals = self.result.marginals
        shares = ResidualShares(quadratic, marginals.bases, self._demand, marginals.limits)
        return self._parts.errors(shares.variances)
