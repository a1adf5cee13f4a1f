"""A product strategy for other weights of its terms: the same sets and bases, other set weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.basis import Basis, identity_basis
from lrm.exact.products.marginals import Marginals, Point, SetWeights
from lrm.exact.products.quadratic import Quadratic
from lrm.exact.products.strategy import Group, ProductStrategy, on_axes
from lrm.exact.products.subsets import masks_of
from lrm.maps.products.batch import ProductBatch
from lrm.solvers.products.group import marginals_of
from lrm.solvers.products.weights import descend_weights

__all__ = ["PartErrors", "reweigh"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Masks = NDArray[np.uint64]


def reweigh(batch: ProductBatch, strategy: ProductStrategy) -> ProductStrategy:
    """Descend on the weights of the sets for the weights of the terms in ``batch``.

    Groups that were combined by generalised least squares are answered from themselves.
    """
    groups = []
    for group in strategy.groups:
        quadratic = Quadratic(group.reduced(batch), folded=_is_folded(group))
        sets, bases = _opened(group)
        point = Point.at(quadratic, bases)
        family = descend_weights(point, sets, group.marginals.weights)
        marginals = marginals_of(quadratic, family, bases)
        groups.append(Group(group.terms, group.axes, marginals, family.error))
    return ProductStrategy.combine(groups)


class PartErrors:
    """The errors of parts of a batch under strategies that share groups of terms and bases.

    Parameters
    ----------
    batch
        The terms; their weights count.
    parts
        The part of each term.
    strategy
        One of the strategies.
    """

    def __init__(self, batch: ProductBatch, parts: Integers, strategy: ProductStrategy) -> None:
        self._count = int(parts.max(initial=-1)) + 1
        self._points: list[dict[int, Point]] = []
        for group in strategy.groups:
            own = parts[group.terms]
            self._points.append(
                {
                    int(part): Point.at(
                        Quadratic(
                            on_axes(batch.take(group.terms[own == part]), group.axes),
                            folded=_is_folded(group),
                        ),
                        _opened(group)[1],
                    )
                    for part in np.unique(own)
                }
            )

    def of(self, strategy: ProductStrategy) -> Floats:
        """``‖B‖²·Δ²`` of each part."""
        errors = np.zeros(self._count)
        for group, points in zip(strategy.groups, self._points, strict=True):
            sets, _ = _opened(group)
            for part, point in points.items():
                found = SetWeights(point, sets).error(group.marginals.weights)
                errors[part] += found / group.weight**2
        return errors


def _is_folded(group: Group) -> bool:
    return bool(np.any(group.marginals.folds))


def _opened(group: Group) -> tuple[Masks, Sequence[Basis]]:
    """Sets and bases as a quadratic of the same group has them (see `Quadratic`)."""
    marginals: Marginals = group.marginals
    if not _is_folded(group):
        return marginals.sets, marginals.bases
    kinds = np.column_stack([marginals.folds >= 0, marginals.folds <= 0])
    sets = masks_of(np.hstack([marginals.members, kinds]))
    return sets, (*marginals.bases, identity_basis(1), identity_basis(1))
