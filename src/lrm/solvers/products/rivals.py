"""Errors of the classical mechanisms on products, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lrm.exact.products.basis import Basis
from lrm.exact.products.marginals import Marginals, marginals_error
from lrm.exact.products.quadratic import Quadratic
from lrm.exact.products.subsets import masks_of
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.values import merge_values
from lrm.solvers.products.group import EFFORTS, Effort, GroupSearch
from lrm.solvers.products.watch import Watch, forever

__all__ = [
    "classical_marginals_error",
    "noise_on_data_error",
    "noise_on_results_error",
    "single_product_error",
    "tree_basis",
    "tree_product_error",
]

Floats = NDArray[np.float64]
Noise = Literal["laplace", "gaussian"]


def noise_on_data_error(batch: ProductBatch) -> float:
    """``‖W‖²`` over the product of the merged attributes: every cell is measured.

    The same under both noises. Cells that no term tells apart count once.
    """
    reduced = merge_values(batch).batch
    quadratic = Quadratic(reduced)
    whole = np.ones((1, quadratic.d), dtype=bool)
    bases = tuple(Basis(np.zeros((0, n))) for n in quadratic.sizes)
    return marginals_error(quadratic, Marginals(masks_of(whole), np.ones(1), bases))


def noise_on_results_error(batch: ProductBatch, noise: Noise = "laplace") -> float:
    """``m·Δ(W)²``: every query is measured; the importance of terms weighs the sum.

    Δ(W) is the largest norm of a column of the whole stack. Where it cannot be had without a
    flat list, it is bounded by the sum over the terms of their own largest norms, which is exact
    for cross-tabs, whose columns all have the same norm.
    """
    power = 1 if noise == "laplace" else 2
    norms = np.zeros(batch.terms)
    for term in range(batch.terms):
        for coefficient, factors in batch.summands(term):
            product = abs(coefficient) ** power
            for factor in factors:
                product *= _column_norm(
                    factor.dense() if factor.rows is not None else None,
                    factor.kind,
                    factor.size,
                    power,
                )
            norms[term] += product
    sensitivity = norms.sum() if noise == "laplace" else math.sqrt(norms.sum())
    return float(np.sum(batch.weights**2 * batch.term_queries()) * sensitivity**2)


def _column_norm(rows: Floats | None, kind: str, size: int, power: int) -> float:
    if rows is not None:
        return float((np.abs(rows) ** power).sum(axis=0).max(initial=0.0))
    place = (size + 1) // 2
    return {"total": 1.0, "identity": 1.0, "prefix": float(size)}.get(
        kind, float(place * (size + 1 - place))
    )


def classical_marginals_error(
    batch: ProductBatch,
    *,
    effort: Effort = "quick",
    seed: int = 0,
    remaining: Callable[[], float] = forever,
) -> float:
    """Weighted marginals over identities: the best sets and weights that the search finds."""
    quadratic = Quadratic(merge_values(batch).batch)
    watch = Watch(remaining=remaining)
    search = GroupSearch(quadratic, np.random.default_rng(seed), watch, EFFORTS[effort])
    search.needy = []
    search.run()
    return float(np.exp(search.value))


def single_product_error(batch: ProductBatch, bases: tuple[Basis, ...]) -> float:
    """One product of one basis per merged attribute."""
    quadratic = Quadratic(merge_values(batch).batch)
    whole = np.ones((1, quadratic.d), dtype=bool)
    return marginals_error(quadratic, Marginals(masks_of(whole), np.ones(1), bases))


def tree_product_error(batch: ProductBatch, branching: int = 2) -> float:
    """Hierarchical trees on every merged attribute, multiplied; leaves and inner nodes equal.

    The Haar wavelet has the same row space and, on binary trees, an error of the same order.
    """
    sizes = merge_values(batch).batch.sizes
    return single_product_error(batch, tuple(tree_basis(n, branching) for n in sizes))


def tree_basis(n: int, branching: int) -> Basis:
    """The leaves of a tree and the totals of all its inner nodes."""
    rows, width = [], branching
    while width < n * branching and n > 1:
        block = np.zeros((math.ceil(n / width), n))
        block[np.arange(n) // width, np.arange(n)] = 1.0
        rows.append(block)
        width *= branching
    return Basis(np.vstack(rows) if rows else np.zeros((0, n)))
