"""Two groups combined by generalised least squares: each learns from what both have measured.

Two groups see an attribute through different partitions of its values. What both can tell are the
tables over the *join* of the partitions. With unit-noise covariances ``C_g`` of the groups, common
tables ``R_g`` and shares ω_g, the estimate of a query w of group 1 is corrected by
``w·C_1·R_1ᵀ/ω_1² · M⁺ · (R_2·x̂_2 − R_1·x̂_1)`` with ``M = Σ_g R_g·C_g·R_gᵀ/ω_g²``, and its
variance falls by ``w·C_1·R_1ᵀ·M⁺·R_1·C_1·wᵀ/ω_1⁴``.

An attribute that both groups see in the same way, with the identity as its basis and nothing but
tables and totals asked of it, splits the problem in two of the same form (its total, and the rest).
So 51 states cost twice the time of one, not 51³ times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lrm.errors import WorkloadError
from lrm.exact.products.answers import Estimate, Lattice, term_variances
from lrm.exact.products.merged_terms import MergedTerms
from lrm.exact.products.quadratic import Quadratic
from lrm.exact.products.strategy import Group, ProductStrategy
from lrm.maps.products.batch import ProductBatch
from lrm.maps.products.factors import Factor, kronecker

__all__ = ["Combination", "combine_groups"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Subset = tuple[int, ...]
Table = tuple[Floats, ...]  # one factor per axis of a group

#: Most rows of all common tables together.
MOST_ROWS = 1500
#: Most entries of the queries' covariances with the common tables.
MOST_ENTRIES = 40_000_000
#: Most shared attributes: every subset of them is a component.
MOST_SHARED = 12


def join_labels(a: Integers, b: Integers) -> tuple[Integers, Integers]:
    """Blocks of the join of two partitions, by the labels of each.

    Examples
    --------
    >>> [part.tolist() for part in join_labels(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))]
    [[0, 0, 1], [0, 0, 1]]
    """
    m, n = int(a.max()) + 1, int(b.max()) + 1
    edges = coo_array((np.ones(len(a)), (a, m + b)), shape=(m + n, m + n))
    blocks = connected_components(edges, directed=False)[1]
    return blocks[:m].astype(np.int64), blocks[m:].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Side:
    """One group as the combination sees it: axes, which are shared, and the common tables."""

    group: Group
    lattice: Lattice
    merged: MergedTerms
    own: tuple[int, ...]  # axes that are not shared
    shared: tuple[int, ...]  # shared axes, in the order of the shared attributes

    def covariance(self, left: Table, right: Table, inside: Subset) -> Floats:
        """``F·C·Gᵀ`` of two products over the own axes, within one component of the shared."""
        bases = self.lattice.bases
        parts = []
        for place, i in enumerate(self.own):
            F, G, basis = left[place], right[place], bases[i]
            spread = F @ basis.inverse_times(G.T)
            f, g = F @ basis.h, G @ basis.h
            total = np.outer(f, g)
            parts.append(((spread - total / basis.kappa) / basis.kappa, total / basis.kappa**2))
        touched = [place for place, (rest, _) in enumerate(parts) if np.abs(rest).max() > 1e-13]
        shape = (
            np.prod([len(F) for F in left], dtype=int),
            np.prod([len(G) for G in right], dtype=int),
        )
        whole = np.zeros(shape)
        for size in range(len(touched) + 1):
            for some in itertools.combinations(touched, size):
                subset = tuple(sorted([*(self.own[place] for place in some), *inside]))
                information = self.lattice[subset]
                if not information > 0:
                    continue  # its coefficient is 0 for everything that can be answered
                product = kronecker(
                    rest if place in some else total for place, (rest, total) in enumerate(parts)
                )
                whole += product / information
        return whole


@dataclass(frozen=True, eq=False)
class _Component:
    """One component of the shared attributes: what both groups know, and what it is worth."""

    inside: Subset  # numbers among the shared attributes
    tables: tuple[list[Table], list[Table]]
    information: tuple[Floats, Floats]  # R·C·Rᵀ
    worth: tuple[Floats, Floats]  # R·C·V·C·Rᵀ

    def middle(self, shares: Floats) -> Floats:
        """``M⁺``; common tables repeat totals, so M is singular."""
        M = sum(q / w**2 for q, w in zip(self.information, shares, strict=True))
        return np.asarray(np.linalg.pinv(np.asarray(M), rcond=1e-11, hermitian=True))

    def gain(self, shares: Floats) -> float:
        """By how much the error falls."""
        Z = sum(z / w**4 for z, w in zip(self.worth, shares, strict=True))
        return float(np.vdot(self.middle(shares), np.asarray(Z)))


class Combination:
    """Generalised least squares across the two groups of a strategy."""

    def __init__(self, batch: ProductBatch, strategy: ProductStrategy) -> None:
        self.batch, self.strategy = batch, strategy
        self.groups = strategy.groups
        self.shared = _shared_attributes(batch, self.groups)
        if not _fits(batch, self.shared):
            raise WorkloadError("the two groups of the strategy are too large to be combined")
        self.sides = tuple(_side(batch, group, self.shared) for group in self.groups)
        self.components = [
            component
            for size in range(len(self.shared) + 1)
            for inside in itertools.combinations(range(len(self.shared)), size)
            if (component := self._component(inside)) is not None
        ]

    def error(self, shares: Floats) -> float:
        """``‖B‖²`` of the combined estimate, at sensitivity 1."""
        apart = sum(g.error / w**2 for g, w in zip(self.groups, shares, strict=True))
        return float(apart - sum(component.gain(shares) for component in self.components))

    def best(self) -> ProductStrategy:
        """The strategy with the shares that are best for the combined estimate."""

        def of_logit(x: float) -> float:
            share = 1.0 / (1.0 + np.exp(-x))
            return float(np.log(self.error(np.array([share, 1.0 - share]))))

        start = float(np.log(self.groups[0].weight / self.groups[1].weight))
        # Near a share of 1 the difference of large numbers has no digits left.
        found = minimize_scalar(
            of_logit, bounds=(start - 2, start + 2), method="bounded", options={"xatol": 1e-5}
        )
        share = float(1.0 / (1.0 + np.exp(-found.x)))
        shares = np.array([share, 1.0 - share])
        groups = tuple(
            Group(g.terms, g.axes, g.marginals, g.error, float(w))
            for g, w in zip(self.groups, shares, strict=True)
        )
        return ProductStrategy(groups, self.error(shares), self.strategy.interrupted, combined=True)

    def _component(self, inside: Subset) -> _Component | None:
        tables = _common_tables(self.groups, self.sides, self.shared, inside)
        if not tables[0]:
            return None
        information, worth = [], []
        for side, own in zip(self.sides, tables, strict=True):
            members = tuple(side.shared[k] for k in inside)
            information.append(
                np.block([[side.covariance(a, b, members) for b in own] for a in own])
            )
            worth.append(self._worth(side, own, inside, members))
        return _Component(inside, tables, (information[0], information[1]), (worth[0], worth[1]))

    def _worth(self, side: _Side, tables: list[Table], inside: Subset, members: Subset) -> Floats:
        rows = sum(int(np.prod([len(F) for F in table])) for table in tables)
        whole = np.zeros((rows, rows))
        for term in side.group.terms:
            summands = self.batch.summands(int(term))
            parts = [
                (c, _row_scalars(side, factors), self._reach(side, factors, tables, members))
                for c, factors in summands
            ]
            weight = float(self.batch.weights[term]) ** 2
            for (a, left, X), (b, right, Y) in itertools.product(parts, parts):
                scalar = weight * a * b
                for k in range(len(self.shared)):
                    total, rest = _shared_form(left[k], right[k])
                    scalar *= rest if k in inside else total
                if scalar:
                    whole += scalar * (X.T @ Y)
        return (whole + whole.T) / 2

    def _reach(
        self, side: _Side, factors: Sequence[Factor], tables: list[Table], members: Subset
    ) -> Floats:
        """``W·C·Rᵀ`` over the own axes."""
        rows = tuple(side.group.axes[i].factor(factors).dense() for i in side.own)
        return np.hstack([side.covariance(rows, table, members) for table in tables])

    def corrected(self, estimates: tuple[Estimate, Estimate]) -> tuple[list[Floats], list[Floats]]:
        """Per component, what each group's answers are corrected by, over the shared values.

        ``answer`` takes these.
        """
        shares = np.array([group.weight for group in self.groups])
        corrections: tuple[list[Floats], list[Floats]] = ([], [])
        for component in self.components:
            seen = [self._seen(g, estimates[g], component) for g in (0, 1)]
            difference = seen[1] - seen[0]
            for k, i in enumerate(self.sides[0].shared):
                total = difference.sum(axis=1 + k, keepdims=True)
                mean = total / self.groups[0].axes[i].size
                difference = difference - mean if k in component.inside else mean
            flat = difference.reshape(len(difference), -1)
            solved = (component.middle(shares) @ flat).reshape(difference.shape)
            for g, sign in ((0, 1.0), (1, -1.0)):
                corrections[g].append(sign * solved / shares[g] ** 2)
        return corrections

    def _seen(self, g: int, estimate: Estimate, component: _Component) -> Floats:
        """One group's common tables: own blocks (flattened) x shared values (or their total)."""
        side = self.sides[g]
        members = {side.shared[k] for k in component.inside}
        tables = []
        for table in component.tables[g]:
            factors = []
            for i, axis in enumerate(side.group.axes):
                if i in side.own:
                    rows = table[side.own.index(i)]
                    factors.append(Factor("rows", axis.size, rows))
                else:
                    factors.append(Factor("identity" if i in members else "total", axis.size))
            answer = estimate.answer(factors)
            lengths = [answer.shape[i] for i in side.shared]
            answer = np.moveaxis(answer, side.shared, range(-len(side.shared), 0))
            tables.append(answer.reshape(-1, *lengths))
        return np.concatenate(tables)

    def term(self, g: int, estimate: Estimate, corrections: Sequence[Floats], term: int) -> Floats:
        """The corrected answers of one term of group ``g``, flattened."""
        side = self.sides[g]
        whole = estimate.term(side.merged, term)
        for component, solved in zip(self.components, corrections, strict=True):
            members = tuple(side.shared[k] for k in component.inside)
            for coefficient, factors in self.batch.summands(term):
                reach = self._reach(side, factors, component.tables[g], members)
                part = np.tensordot(reach, solved, axes=(1, 0))
                for k, i in enumerate(side.shared):
                    W = side.group.axes[i].factor(factors)
                    moved = np.moveaxis(part, 1 + k, 0)
                    if k not in component.inside:
                        # The mean over the values stands for the total: W·h/κ times it.
                        moved = np.broadcast_to(moved, (W.size, *moved.shape[1:]))
                    image = W.times(moved.reshape(W.size, -1))
                    part = np.moveaxis(image.reshape(len(image), *moved.shape[1:]), 0, 1 + k)
                lengths = [len(side.group.axes[i].factor(factors)) for i in side.own]
                part = part.reshape(*lengths, *part.shape[1:])
                part = np.moveaxis(part, range(-len(side.shared), 0), side.shared)
                whole = whole + coefficient * part.ravel()
        return np.asarray(whole)

    def term_variances(self, g: int, term: int) -> Floats:
        """Variances of one term's corrected answers, for unit noise at sensitivity 1."""
        side = self.sides[g]
        share = self.groups[g].weight
        shares = np.array([group.weight for group in self.groups])
        whole = term_variances(side.lattice, side.merged, term) / share**2
        summands = self.batch.summands(term)
        for component in self.components:
            members = tuple(side.shared[k] for k in component.inside)
            middle = component.middle(shares) / share**4
            parts = [
                (c, _row_scalars(side, f), self._reach(side, f, component.tables[g], members))
                for c, f in summands
            ]
            for (a, left, X), (b, right, Y) in itertools.product(parts, parts):
                part = a * b * np.einsum("ij,ij->i", X @ middle, Y)
                part = part.reshape(
                    [len(side.group.axes[i].factor(summands[0][1])) for i in side.own]
                )
                for k in range(len(self.shared)):
                    total, rest = _shared_rows(left[k], right[k])
                    part = np.multiply.outer(part, rest if k in component.inside else total)
                part = np.moveaxis(part, range(-len(side.shared), 0), side.shared)
                whole = whole - part.ravel()
        return np.asarray(whole)


def _shared_rows(left: Factor, right: Factor) -> tuple[Floats, Floats]:
    """The numbers s and r of each pair of rows, as ``_shared_form`` has them in total."""
    n = left.size
    both = left.row_sums * right.row_sums
    squares = np.einsum("ij,ij->i", left.dense(), right.dense())
    return both / n**2, (squares - both / n) / n


def _shared_attributes(batch: ProductBatch, groups: Sequence[Group]) -> tuple[int, ...]:
    """Attributes that both groups see alike, symmetric in their values."""
    found = []
    quadratics = [Quadratic(group.reduced(batch)) for group in groups]
    for i in range(len(batch.sizes)):
        alike = True
        marks = []
        for group, quadratic in zip(groups, quadratics, strict=True):
            place = next(k for k, axis in enumerate(group.axes) if i in axis.attributes)
            axis = group.axes[place]
            alike &= axis.attributes == (i,) and axis.size > 1
            alike &= group.marginals.bases[place].plain and not quadratic.needs_basis(place)
            marks.append(axis.labels[axis.attributes.index(i)])
        if alike and np.array_equal(marks[0], marks[1]):
            found.append(i)
    return tuple(found)


def _side(batch: ProductBatch, group: Group, shared: Sequence[int]) -> _Side:
    places = [
        next(k for k, axis in enumerate(group.axes) if axis.attributes == (i,)) for i in shared
    ]
    own = tuple(k for k in range(len(group.axes)) if k not in places)
    return _Side(group, Lattice.of(group), MergedTerms(batch, group.axes), own, tuple(places))


def _common_tables(
    groups: Sequence[Group], sides: Sequence[_Side], shared: Sequence[int], inside: Subset
) -> tuple[list[Table], list[Table]]:
    """Tables over the join of both groups' values that both can tell, as factors per own axis."""
    labels = [
        {i: marks for axis in g.axes for i, marks in zip(axis.attributes, axis.labels, strict=True)}
        for g in groups
    ]
    others = [i for i in labels[0] if i not in shared]
    if any((marks[i] < 0).any() for marks in labels for i in labels[0]):
        return [], []  # a group that drops values cannot tell totals
    joins = {i: join_labels(labels[0][i], labels[1][i]) for i in others}
    reach: list[set[frozenset[int]]] = []
    for group, side in zip(groups, sides, strict=True):
        needed = {side.shared[k] for k in inside}
        attributes = [
            frozenset(i for k in np.flatnonzero(m) for i in group.axes[k].attributes) - set(shared)
            for m in group.marginals.members
            if needed <= set(np.flatnonzero(m))
        ]
        reach.append(set(attributes))
    telling = {i for i in others if joins[i][0].max() > 0}
    meets = {(a & b) & telling for a in reach[0] for b in reach[1]}
    largest = [a for a in meets if not any(a < b for b in meets)]
    tables: tuple[list[Table], list[Table]] = ([], [])
    rows = 0
    for members in sorted(largest, key=sorted):
        size = math.prod(int(joins[i][0].max()) + 1 for i in members)
        if rows + size > MOST_ROWS:
            continue
        rows += size
        for g in (0, 1):
            tables[g].append(_table(groups[g], sides[g], joins, g, members))
    return tables


def _table(
    group: Group,
    side: _Side,
    joins: dict[int, tuple[Integers, Integers]],
    g: int,
    attributes: frozenset[int],
) -> Table:
    factors = []
    for k in side.own:
        axis = group.axes[k]
        parts = []
        for i, size in zip(axis.attributes, axis.merged_sizes, strict=True):
            if i in attributes:
                blocks = joins[i][g]
                part = np.zeros((int(blocks.max()) + 1, size))
                part[blocks, np.arange(size)] = 1.0
            else:
                part = np.ones((1, size))
            parts.append(part)
        factors.append(kronecker(parts))
    return tuple(factors)


def _row_scalars(side: _Side, factors: Sequence[Factor]) -> list[Factor]:
    return [side.group.axes[i].factor(factors) for i in side.shared]


def _shared_form(left: Factor, right: Factor) -> tuple[float, float]:
    """The numbers s and r of two factors over a shared attribute with the identity as its basis."""
    n = left.size
    if left is right or left.key == right.key:
        trace = float(left.squares.sum())
        sums = left.row_sums
        both = float(sums @ sums)
    else:
        trace = float(np.vdot(left.dense(), right.dense()))
        both = float(left.row_sums @ right.row_sums)
    rest = (trace - both / n) / n
    if left.total_factor is not None or right.total_factor is not None:
        rest = 0.0
    return both / n**2, rest


def combine_groups(batch: ProductBatch, strategy: ProductStrategy) -> Combination | None:
    """The combination of a strategy of two groups, or None where it would be too large."""
    if len(strategy.groups) != 2 or any(group.marginals.folds.any() for group in strategy.groups):
        return None
    if not _fits(batch, _shared_attributes(batch, strategy.groups)):
        return None
    found = Combination(batch, strategy)
    return found if found.components else None


def _fits(batch: ProductBatch, shared: Sequence[int]) -> bool:
    """Whether time and memory of a combination are bounded well enough."""
    queries = np.ones(len(batch.choice))
    for i in range(len(batch.sizes)):
        if i not in shared:
            queries *= np.array([len(f) for f in batch.factors[i]])[batch.choice[:, i]]
    few = bool(queries.sum() * MOST_ROWS / 10 <= MOST_ENTRIES * 10)
    return few and len(shared) <= MOST_SHARED
