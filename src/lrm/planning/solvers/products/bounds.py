"""Lower bounds on the error of every strategy over products of attributes.

With V the Gram matrix of all queries over N cells, no strategy with columns of L2 norm 1, and so
none with columns of L1 norm 1, has an error below ``(tr √V)²/N``. As ``tr √V`` grows with V, a
product may be replaced by a smaller one. With ``q = 1/√n`` (the total), a Gram of one attribute is
``M/n = [[a, bᵀ], [b, C]]`` in q and its complement, and for any s below the Schur complement
``a − bᵀC⁻¹b`` it is at least ``s·q·qᵀ + N`` with ``N = C − b·bᵀ/(a − s)``. Then V separates into
one part for each subset of the attributes, and ``tr √V`` into a sum.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from lrm.planning.design.products.quadratic import DENSE_VALUES, PairGram, Quadratic
from lrm.planning.solvers.gaussian import optimise_gaussian_map
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.values import merge_values

ROUNDING = 1e-12
"""By how much bounds are lowered, so that rounding errors do not lift them above the truth."""

NEGLIGIBLE = 1e-11
"""Eigenvalues below this share of the largest count as 0: they may be rounding alone."""

MOST_STEPS = 4e9
"""Cubes of the numbers of values of all Grams that are decomposed: some seconds."""

MOST_GROUPS = 100
"""Groups of terms with the same special factors that are bounded one by one."""


def product_bound(batch: ProductBatch) -> float:
    """A number that (weighted) ``‖B‖²·Δ²`` of no strategy is below, for either noise.

    For tables and totals it is the optimum under L2 columns. Else it is the best of some
    bounds: terms with different factors of some attributes need at least the sum of what each
    group needs alone, and terms that share factors at least the product of the optima of these
    under L2 columns times that of the rest.
    """
    reduced = merge_values(batch).batch
    if not reduced.simple:
        return 0.0
    special = [
        i
        for i, choices in enumerate(reduced.factors)
        if any(choices[f].kind not in {"total", "identity"} for f in reduced.present(i))
    ]
    known: dict[tuple[str, int, bytes], float] = {}
    bounds = [_bound(reduced, separated, known) for separated in _set_apart(special)]
    return max(bounds) * (1.0 - ROUNDING)


def _set_apart(special: Sequence[int]) -> Iterable[tuple[int, ...]]:
    # Up to this number of attributes with other factors than tables and totals are separated.
    if len(special) > 3:
        return (), tuple(special)
    return itertools.chain.from_iterable(
        itertools.combinations(special, k) for k in range(len(special) + 1)
    )


def _bound(
    batch: ProductBatch, separated: tuple[int, ...], known: dict[tuple[str, int, bytes], float]
) -> float:
    """The sum over groups of terms that differ in the special factors of the separated attributes.

    ``known`` holds the bounds of single factors by their keys.
    """
    if not separated:
        return bound_together(Quadratic(batch))
    columns = []
    for (
        i
    ) in separated:  # the number of the factor where it is neither a total nor the identity, else 0
        plain = np.array([factor.kind in {"total", "identity"} for factor in batch.factors[i]])
        columns.append(np.where(plain[batch.choice[:, i]], 0, batch.choice[:, i]))
    signatures, group = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    rows = {
        (i, f)
        for numbers in signatures.tolist()
        for i, f in zip(separated, numbers, strict=True)
        if f
    }
    work = sum(
        batch.factors[i][f].shape[1] ** 3.0 for i, f in rows if not batch.factors[i][f].is_word
    )
    if len(signatures) > MOST_GROUPS or work > MOST_STEPS:
        return 0.0
    total = 0.0
    for g, signature in enumerate(signatures.tolist()):
        group_batch = batch.take(np.flatnonzero(group.reshape(-1) == g))
        bound, choice = 1.0, group_batch.choice.copy()
        for i, f in zip(separated, signature, strict=True):
            if f:
                factor = batch.factors[i][f]
                if factor.digest not in known:
                    known[factor.digest] = _alone(factor)
                bound *= known[factor.digest]
                choice[:, i] = 0
        rest = merge_values(replace(group_batch, choice=choice)).batch
        total += bound * bound_together(Quadratic(rest))
    return total


def bound_together(quadratic: Quadratic) -> float:
    """``(Σ_A √v_A)²`` with the squared sum of roots of N and with s for each Gram."""
    residual, total = np.zeros((2, len(quadratic.grams)))
    work = 0.0
    for number, gram in enumerate(quadratic.grams):
        # What is left out is bounded by 0: a lower bound still.
        work += (
            0.0 if gram.left.kind == gram.right.kind == "identity" else gram.left.shape[1] ** 3.0
        )
        if work <= MOST_STEPS:
            residual[number], total[number] = _parts(gram)
    v = quadratic.values(residual, total)
    return float(np.sqrt(v).sum() ** 2)


def _parts(gram: PairGram) -> tuple[float, float]:
    """``(tr √N)²`` and s."""
    n = len(gram.squares)
    if gram.left.kind == gram.right.kind == "identity":
        return (n - 1) ** 2 / n, 1.0 / n
    if n > DENSE_VALUES:
        return 0.0, 0.0
    # A Householder reflection that takes q to the first axis.
    mirror = np.full(n, 1.0 / np.sqrt(n))
    mirror[0] += 1.0
    mirror /= np.linalg.norm(mirror)
    M = gram.dense() / n
    M = M - 2.0 * np.outer(mirror, mirror @ M)
    M = M - 2.0 * np.outer(M @ mirror, mirror)
    a, b, C = float(M[0, 0]), M[1:, 0], M[1:, 1:]
    values, vectors = np.linalg.eigh(C)
    nonzero = values > NEGLIGIBLE * values.max(initial=0.0)
    schur = a - float(np.sum((vectors.T[nonzero] @ b) ** 2 / values[nonzero]))
    if schur <= NEGLIGIBLE * a:  # rounding alone
        return _root_sum(C - np.outer(b, b) / a) ** 2 if a > 0 else _root_sum(C) ** 2, 0.0
    # s as a share of the Schur complement; from 0.8 to 1 the bounds differ by 1 %.
    s = 0.9 * schur
    return _root_sum(C - np.outer(b, b) / (a - s)) ** 2, s


def _alone(factor: LinearMap) -> float:
    """The bound of one factor by itself, with its best weights of values; 0 where it is too large.

    With weights v_i of sum 1 for the values of each attribute, those of a product are products, and
    so is the bound ``(tr √(D·V·D))²`` with ``D² = diag(v)``.
    """
    if factor.shape[1] > DENSE_VALUES or not factor.squared_norm() > 0:
        return 0.0

    def rows() -> Floats:
        values, vectors = np.linalg.eigh(factor.gram())
        nonzero = values > NEGLIGIBLE * values[-1]
        return np.asarray(np.sqrt(values[nonzero])[:, None] * vectors[:, nonzero].T)

    # Rounds of the ascent for a factor by itself, which is within 1 % after fewer.
    rounds = 20
    return optimise_gaussian_map(factor, rows, tolerance=0.01, max_rounds=rounds).lower


def _root_sum(gram: Floats) -> float:
    """``tr √M``, or 0 where M is too large."""
    if len(gram) > DENSE_VALUES:
        return 0.0
    values = np.linalg.eigvalsh(gram)
    nonzero = values > NEGLIGIBLE * values.max(initial=0.0)
    return float(np.sqrt(values[nonzero]).sum())
