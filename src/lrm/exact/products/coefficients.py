"""Rows of B over products: how each measurement counts in each answer of a term.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.answers import Lattice
from lrm.exact.products.folding import fold_rows
from lrm.exact.products.strategy import Axis
from lrm.maps.linear import LinearMap
from lrm.maps.products.batch import ProductBatch

__all__ = ["add_term_rows", "product_rows", "term_sets"]

Floats = NDArray[np.float64]


def term_sets(axes: Sequence[Axis], lattice: Lattice, batch: ProductBatch, term: int) -> set[int]:
    """The sets of a group whose measurements count in the answers of one term."""
    used_sets: set[int] = set()
    for _, factors in batch.summands(term):
        used_sets.update(_used_sets(lattice, [axis.factor(factors) for axis in axes]))
    return used_sets


def add_term_rows(  # noqa: PLR0913, PLR0917 - a term of a batch, its group, and where rows go
    coefficient_rows: Floats,
    places: Mapping[int, slice],
    axes: Sequence[Axis],
    lattice: Lattice,
    batch: ProductBatch,
    term: int,
) -> None:
    """Add the rows of B of one term to the columns ``places`` of each set that counts in it.

    The estimate of a product weighs what was measured of set B (for unit noise) by
    ``θ_B·Σ_{A⊆B} (1/λ_A) ⊗ N_i``, where ``N_i`` is ``W·P·Sᵀ/κ`` for i in A, ``W·h/κ`` times
    ``(S·h/κ)ᵀ`` for the rest of B, and ``W·h/κ`` elsewhere.
    """
    for coefficient, factors in batch.summands(term):
        axis_factors = [axis.factor(factors) for axis in axes]
        used = _used_sets(lattice, axis_factors)
        for b, rows in zip(used, _set_rows(lattice, axis_factors, used), strict=True):
            part = coefficient_rows[:, places[b]]
            part += rows if coefficient == 1.0 else coefficient * rows


def product_rows(lattice: Lattice, factors: Sequence[LinearMap]) -> Floats:
    """The rows of B of one product over a group's axes."""
    return np.hstack(list(_set_rows(lattice, factors, range(len(lattice.sets)))))


def _support(factors: Sequence[LinearMap]) -> list[int]:
    return [i for i, factor in enumerate(factors) if factor.total_factor is None]


def _used_sets(lattice: Lattice, factors: Sequence[LinearMap]) -> list[int]:
    """The sets that hold information about a product; the rows of all others are 0."""
    support = _support(factors)
    inner = [[i for i in support if i in attribute_set] for attribute_set in lattice.sets]
    return [
        b for b, inner_set in enumerate(inner) if _inverse_informations(lattice, b, inner_set).any()
    ]


def _set_rows(
    lattice: Lattice, factors: Sequence[LinearMap], sets: Iterable[int]
) -> Iterator[Floats]:
    """Yield the rows of B of one product, over the measurements of one set after the other."""
    support = _support(factors)
    bases = lattice.bases
    means = [
        factor.apply(basis.h[:, None])[:, 0] / basis.kappa
        for factor, basis in zip(factors, bases, strict=True)
    ]
    averages = [basis.times(basis.h[:, None])[:, 0] / basis.kappa for basis in bases]
    both = {
        i: np.stack(
            [
                np.outer(means[i], averages[i]),
                bases[i].times(bases[i].projector_times(factors[i].dense().T)).T / bases[i].kappa,
            ]
        )
        for i in support
    }
    count = math.prod(map(len, factors))
    for b in sets:
        axis_set = lattice.sets[b]
        inner = [i for i in support if i in axis_set]
        # One array axis for each axis of the product, then one for each member of the set.
        rows = _inverse_informations(lattice, b, inner) * float(lattice.weights[b])
        for i in inner:
            rows = np.tensordot(rows, both[i], axes=(0, 0))
        order = [axis for i in inner for axis in (i, len(factors) + i)]
        for i in range(len(factors)):
            if i in inner:
                continue
            if i in axis_set:
                rows = np.multiply.outer(rows, np.outer(means[i], averages[i]))
                order += [i, len(factors) + i]
            else:
                rows = np.multiply.outer(rows, means[i])
                order.append(i)
        rows = rows.transpose(np.argsort(order)).reshape(count, -1)
        if lattice.folds[b]:
            heights = [len(averages[i]) for i in sorted(axis_set)]
            rows = fold_rows(rows.T, heights, lattice.mirrored(b), int(lattice.folds[b])).T
        yield rows @ lattice.unmixing[b] if b in lattice.unmixing else rows


def _inverse_informations(lattice: Lattice, b: int, inner: Sequence[int]) -> Floats:
    """``1/λ`` of the subsets of some axes that a set holds information about, 0 for the others."""
    inverses: Floats = np.zeros((2,) * len(inner))
    for inside in itertools.product((0, 1), repeat=len(inner)):
        subset = tuple(itertools.compress(inner, inside))
        if b in lattice.telling(subset):
            inverses[inside] = 1.0 / lattice[subset]
    return inverses
