"""Exact integers: bases whose columns sum to exactly q, and integer weights of the sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrm.maps.products.batch import ProductBatch
from lrm.solvers.products.basis import Basis
from lrm.solvers.products.combine import combine_groups
from lrm.solvers.products.marginals import Marginals, marginals_error
from lrm.solvers.products.quadratic import Quadratic
from lrm.solvers.products.strategy import Group, ProductStrategy

__all__ = [
    "IntegerBasis",
    "IntegerGroup",
    "IntegerStrategy",
    "largest_remainders",
    "round_strategy",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Sum of every column of an integer basis that is no identity.
COLUMN_SUM = 256
#: Sum of the integer weights of all sets of all groups.
WEIGHT_SUM = 10_000


def largest_remainders(shares: Floats, total: int) -> Integers:
    """Round shares ≥ 0 that sum to 1 (along axis 0) to integers that sum to exactly ``total``.

    Examples
    --------
    >>> largest_remainders(np.array([0.5, 0.3, 0.2]), 7).tolist()
    [4, 2, 1]
    """
    scaled = shares * total
    whole = np.floor(scaled).astype(np.int64)
    missing = total - whole.sum(axis=0)
    order = np.argsort(-(scaled - whole), axis=0, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(
        rank, order, np.broadcast_to(_column(len(shares), order.ndim), order.shape), 0
    )
    return np.asarray(whole + (rank < missing))


def _column(n: int, ndim: int) -> Integers:
    return np.arange(n).reshape(n, *([1] * (ndim - 1)))


@dataclass(frozen=True, eq=False)
class IntegerBasis:
    """``S = [diag(diagonal); rows]`` in integers ≥ 0, every column of which sums to ``total``."""

    diagonal: Integers
    rows: Integers
    total: int

    def __post_init__(self) -> None:
        if (self.diagonal < 1).any() or (self.rows < 0).any():
            raise ValueError("an integer basis needs a positive diagonal and rows >= 0")
        sums = self.diagonal + self.rows.sum(axis=0)
        if not np.all(sums == self.total):
            raise ValueError(f"every column of an integer basis must sum to {self.total}")

    def dense(self) -> Integers:
        """S as an array."""
        return np.vstack([np.diag(self.diagonal), self.rows])

    def basis(self) -> Basis:
        """The real basis ``S/total``."""
        return Basis(self.rows / self.diagonal)


def round_basis(basis: Basis, column_sum: int = COLUMN_SUM) -> IntegerBasis:
    """Round a basis by largest remainders; the identity stays the identity, with sum 1."""
    n = basis.size
    if basis.plain:
        return IntegerBasis(np.ones(n, dtype=np.int64), np.zeros((0, n), dtype=np.int64), 1)
    shares = np.vstack([np.ones(n), basis.extra_rows]) / basis.scale
    # Full column rank needs a diagonal of at least 1: take it first, then share the rest.
    entries = largest_remainders(shares, column_sum)
    short = entries[0] < 1
    if short.any():
        takes = np.argmax(entries[:, short], axis=0)
        columns = np.flatnonzero(short)
        entries[takes, columns] -= 1
        entries[0, columns] += 1
    return IntegerBasis(entries[0], entries[1:], column_sum)


@dataclass(frozen=True, eq=False)
class IntegerGroup:
    """A group with integer bases and one integer weight per set."""

    group: Group
    bases: tuple[IntegerBasis, ...]
    weights: Integers

    def scales(self) -> list[int]:
        """``Π q_i`` of each set: what its integer measurement is divided by."""
        products = []
        for inside in self.group.marginals.members:
            product = 1
            for basis, member in zip(self.bases, inside, strict=True):
                product *= basis.total if member else 1
            products.append(product)
        return products


@dataclass(frozen=True, eq=False)
class IntegerStrategy:
    """A strategy in exact integers.

    Set b of a group is measured as the integer array ``(⊗_{i∈B} S_i)·x_B``, whose columns have the
    L1 norm ``Π q_i`` exactly, with noise of scale ``weight_sum·Π q_i/(m_b·ε)``. One record changes
    it by at most ``Π q_i``, so the set costs ``ε·m_b/weight_sum``, and all of them ε exactly.
    ``error`` is ``‖B‖²·Δ²`` recomputed from the integers.
    """

    groups: tuple[IntegerGroup, ...]
    weight_sum: int
    error: float

    def __post_init__(self) -> None:
        if sum(int(g.weights.sum()) for g in self.groups) != self.weight_sum:
            raise ValueError("the integer weights do not add up to their stated sum")


def _round_marginals(group: Group, weights: Integers, column_sum: int) -> IntegerGroup:
    kept = weights > 0
    bases = tuple(round_basis(basis, column_sum) for basis in group.marginals.bases)
    whole = int(weights.sum())
    marginals = Marginals(
        group.marginals.sets[kept],
        weights[kept] / whole,
        tuple(basis.basis() for basis in bases),
    )
    rounded = Group(group.terms, group.axes, marginals, group.error, group.weight)
    return IntegerGroup(rounded, bases, weights[kept])


def round_strategy(
    batch: ProductBatch,
    strategy: ProductStrategy,
    *,
    column_sum: int = COLUMN_SUM,
    weight_sum: int = WEIGHT_SUM,
) -> IntegerStrategy:
    """Round a strategy to integers and recompute its error from them.

    ``weight_sum`` is raised to a hundred per set where there are many sets, so that a small
    weight is not lost.
    """
    sets = sum(len(group.marginals.weights) for group in strategy.groups)
    weight_sum = max(weight_sum, 100 * sets)
    shares = np.concatenate([g.weight * g.marginals.weights for g in strategy.groups])
    counts = np.maximum(largest_remainders(shares / shares.sum(), weight_sum), 1)
    # A set of the smallest weight may be all that covers a term: keep it, take from the largest.
    counts[np.argmax(counts)] -= int(counts.sum()) - weight_sum
    ends = np.cumsum([len(g.marginals.weights) for g in strategy.groups])[:-1]
    groups: list[IntegerGroup] = []
    error = 0.0
    for group, weights in zip(strategy.groups, np.split(counts, ends), strict=True):
        rounded = _round_marginals(group, weights, column_sum)
        own = marginals_error(Quadratic(group.reduced(batch)), rounded.group.marginals)
        share = float(weights.sum()) / weight_sum
        error += own / share**2
        g = rounded.group
        groups.append(
            IntegerGroup(Group(g.terms, g.axes, g.marginals, own, share), rounded.bases, weights)
        )
    if strategy.combined:
        rounded_groups = tuple(one.group for one in groups)
        combination = combine_groups(batch, ProductStrategy(rounded_groups, error))
        if combination is not None:
            error = combination.error(np.array([g.weight for g in rounded_groups]))
    return IntegerStrategy(tuple(groups), weight_sum, error)
