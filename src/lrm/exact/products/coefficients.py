"""Rows of B over products: how each measurement counts in each answer of a term."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.answers import Lattice
from lrm.exact.products.folding import fold_rows
from lrm.exact.products.strategy import Axis
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.factors import Factor

__all__ = ["product_rows", "term_rows"]

Floats = NDArray[np.float64]


def term_rows(axes: Sequence[Axis], lattice: Lattice, batch: ProductBatch, term: int) -> Floats:
    """The rows of B of one term, over the measurements of its group.

    The estimate of a product weighs what was measured of set B (for unit noise) by
    ``θ_B·Σ_{A⊆B} (1/λ_A) ⊗ N_i``, where ``N_i`` is ``W·P·Sᵀ/κ`` for i in A, ``W·h/κ`` times
    ``(S·h/κ)ᵀ`` for the rest of B, and ``W·h/κ`` elsewhere.
    """
    whole: Floats | float = 0.0
    for coefficient, factors in batch.summands(term):
        on_axes = [axis.factor(factors) for axis in axes]
        whole = whole + coefficient * product_rows(lattice, on_axes)
    return np.asarray(whole)


def product_rows(lattice: Lattice, factors: Sequence[Factor]) -> Floats:
    """The rows of B of one product over a group's axes."""
    support = [i for i, factor in enumerate(factors) if factor.total_factor is None]
    bases = lattice.bases
    means = [
        factor.times(basis.h[:, None])[:, 0] / basis.kappa
        for factor, basis in zip(factors, bases, strict=True)
    ]
    averages = [basis.times(basis.h[:, None])[:, 0] / basis.kappa for basis in bases]
    spread = {
        i: basis.times(basis.projector_times(factors[i].dense().T)).T / basis.kappa
        for i, basis in enumerate(bases)
        if i in support
    }
    count = int(np.prod([len(factor) for factor in factors]))
    blocks = []
    for b, one in enumerate(lattice.sets):
        inner = sorted(set(support) & one)
        heights = [len(averages[i]) for i in sorted(one)]
        rows = np.zeros((count, int(np.prod(heights))))
        for size in range(len(inner) + 1):
            for subset in itertools.combinations(inner, size):
                if b not in lattice.telling(subset):
                    continue
                parts = [
                    spread[i]
                    if i in subset
                    else np.outer(means[i], averages[i])
                    if i in one
                    else means[i][:, None]
                    for i in range(len(factors))
                ]
                rows += _kronecker_rows(parts) / lattice[subset]
        if lattice.folds[b]:
            rows = fold_rows(rows.T, heights, lattice.mirrored(b), int(lattice.folds[b])).T
        blocks.append(lattice.weights[b] * rows)
    return np.hstack(blocks)


def _kronecker_rows(parts: Sequence[Floats]) -> Floats:
    product = np.ones((1, 1))
    for part in parts:
        product = np.asarray(np.kron(product, part))
    return product
