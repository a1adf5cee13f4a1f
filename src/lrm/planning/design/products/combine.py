"""Two groups combined by generalised least squares: each is corrected by what both have measured.

Two groups see an attribute through different partitions of its values. Both can compute the tables
over the *join* of the partitions. With unit-noise covariances ``C_g`` of the groups, common
tables ``R_g`` and shares ω_g, the estimate of a query w of group 1 is corrected by
``w·C_1·R_1ᵀ/ω_1² · M⁺ · (R_2·x̂_2 − R_1·x̂_1)`` with ``M = Σ_g R_g·C_g·R_gᵀ/ω_g²``, and its
variance falls by ``w·C_1·R_1ᵀ·M⁺·R_1·C_1·wᵀ/ω_1⁴``.

An attribute that both groups see in the same way, with the identity as its basis and only
tables and totals among its queries, splits the problem in two of the same form (its total, and the
rest). So 51 states cost twice the time of one, not 51³ times.

The common tables have few rows (28 to 91 on the batches measured), so the correction has low rank:
with K rows in all, q queries and r measurements, the error costs ``q·K²``, the answers ``q·K``, and
rows of B ``K·r`` each. `find_combination` checks the sizes of all these arrays before any is
allocated, and returns None where one is above its limit.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lrm.clock import UNLIMITED, Clock
from lrm.errors import WorkloadError
from lrm.planning.design.products.answers import Estimate, term_variances
from lrm.planning.design.products.common_tables import (
    Joins,
    Side,
    Subset,
    Table,
    check_sizes,
    common_tables,
    find_joins,
    heights,
    measurement_count,
    shared_attributes,
)
from lrm.planning.design.products.row_weights import product_rows
from lrm.planning.design.products.strategy import ProductStrategy
from lrm.planning.limits import ARRAY, BLOCK, Held
from lrm.queries.maps.kron import along
from lrm.queries.maps.linear import TINY, Floats, LinearMap
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import ProductBatch, some_rows
from lrm.queries.maps.words import Identity, Total

#: Share of the squared error that a combination must save to be used. Without combinations the
#: error of the census is 8.7 % larger, that of the hospital report 3 %, that of 12 others the same.
LEAST_GAIN = 0.005


@dataclass(frozen=True, eq=False)
class _Component:
    """One component of the shared attributes: the common tables, and by how much they help.

    ``M = Σ_g Q_g/ω_g²`` is singular, for common tables repeat totals. With T such that
    ``Tᵀ·Q_1·T`` and ``Tᵀ·Q_2·T`` are the diagonals ``information``, ``M⁺`` is
    ``T·diag(1/Σ_g information_g/ω_g²)·Tᵀ`` for all shares.
    """

    inside: Subset  # numbers among the shared attributes
    tables: tuple[list[Table], list[Table]]
    basis: Floats  # T
    information: tuple[Floats, Floats]
    worth: tuple[Floats, Floats]  # diagonals of Tᵀ·R_g·C_g·V·C_g·R_gᵀ·T

    @property
    def height(self) -> int:
        return len(self.basis)

    def _inverses(self, shares: Floats) -> Floats:
        both = zip(self.information, shares.tolist(), strict=True)
        return 1.0 / np.asarray(sum(q / w**2 for q, w in both))

    def middle(self, shares: Floats) -> Floats:
        """``M⁺``."""
        return np.asarray((self.basis * self._inverses(shares)) @ self.basis.T)

    def gain(self, shares: Floats) -> float:
        """By how much the error falls."""
        both = zip(self.worth, shares.tolist(), strict=True)
        return float(self._inverses(shares) @ np.asarray(sum(z / w**4 for z, w in both)))


def _diagonalised(
    inside: Subset,
    tables: tuple[list[Table], list[Table]],
    information: Sequence[Floats],
    worth: Sequence[Floats],
    shares: Floats,
) -> _Component:
    """The component of these matrices, in coordinates that diagonalise ``R·C·Rᵀ`` of both."""
    total = sum(q / w**2 for q, w in zip(information, shares.tolist(), strict=True))
    values, vectors = np.linalg.eigh(np.asarray(total))
    nonzero = values > 1e-11 * max(float(values.max(initial=0.0)), TINY)
    root = vectors[:, nonzero] / np.sqrt(values[nonzero])
    first = root.T @ (information[0] / shares[0] ** 2) @ root
    basis = root @ np.linalg.eigh((first + first.T) / 2)[1]

    def diagonal(matrix: Floats) -> Floats:
        return np.asarray(np.maximum(np.einsum("ik,ik->k", basis, matrix @ basis), 0.0))

    return _Component(
        inside,
        tables,
        basis,
        (diagonal(information[0]), diagonal(information[1])),
        (diagonal(worth[0]), diagonal(worth[1])),
    )


Reach = list[tuple[tuple[LinearMap, ...], Floats]]
"""``W·C·Rᵀ`` over the axes that are not shared, with the factors on those that are."""


class Combination:
    """Generalised least squares across the two groups of a strategy.

    The clock is checked before each term and component. A `WorkloadError` where
    an array would be above its limit; nothing of its size has been allocated then.
    """

    def __init__(
        self, batch: ProductBatch, strategy: ProductStrategy, clock: Clock = UNLIMITED
    ) -> None:
        self.batch, self.strategy, self._clock = batch, strategy, clock
        self.groups = strategy.groups
        self.shares = np.array([group.weight for group in self.groups])
        self.shared = shared_attributes(batch, self.groups)
        self.sides = tuple(Side.of(batch, group, self.shared) for group in self.groups)
        joins = find_joins(self.groups, self.shared)
        tables = dict(common_tables(self.groups, self.sides, joins))
        check_sizes(batch, self.sides, [sum(heights(t, joins)) for t in tables.values()])
        self._held: Held[tuple[int, Subset], Reach] = Held(
            BLOCK, lambda reach: sum(part.size for _, part in reach)
        )
        self._heights = [measurement_count(group) for group in self.groups]
        self._common_rows: dict[tuple[int, Subset], Floats] = {}
        self.components = [
            self._component(inside, joins, attributes) for inside, attributes in tables.items()
        ]

    def error(self, shares: Floats) -> float:
        """``‖B‖²`` of the combined estimate, at sensitivity 1."""
        separate_error = sum(g.error / w**2 for g, w in zip(self.groups, shares, strict=True))
        return float(separate_error - sum(component.gain(shares) for component in self.components))

    def best(self) -> ProductStrategy:
        """The strategy with the shares that are best for the combined estimate."""

        def of_logit(x: float) -> float:
            share = 1.0 / (1.0 + np.exp(-x))
            return float(np.log(self.error(np.array([share, 1.0 - share]))))

        from scipy.optimize import minimize_scalar  # noqa: PLC0415 - 0.3 s, for plans alone

        start = float(np.log(self.groups[0].weight / self.groups[1].weight))
        # Near a share of 1 the difference of large numbers has no digits left.
        minimum = minimize_scalar(
            of_logit, bounds=(start - 2, start + 2), method="bounded", options={"xatol": 1e-5}
        )
        share = float(1.0 / (1.0 + np.exp(-minimum.x)))
        shares = np.array([share, 1.0 - share])
        weighed = zip(self.groups, shares.tolist(), strict=True)
        groups = tuple(replace(group, weight=weight) for group, weight in weighed)
        return ProductStrategy(groups, self.error(shares), combined=True)

    def _component(
        self, inside: Subset, joins: Joins, attributes: Sequence[frozenset[int]]
    ) -> _Component:
        tables = tuple(
            [side.table(joined, members) for members in attributes]
            for side, joined in zip(self.sides, joins, strict=True)
        )
        information, worth = [], []
        for g, (side, side_tables) in enumerate(zip(self.sides, tables, strict=True)):
            members = tuple(side.shared[k] for k in inside)
            covariances = [
                [side.covariance(a, b, members) for b in side_tables] for a in side_tables
            ]
            information.append(np.block(covariances))
            worth.append(self._worth(g, inside, side_tables))
        return _diagonalised(inside, (tables[0], tables[1]), information, worth, self.shares)

    def _worth(self, g: int, inside: Subset, tables: list[Table]) -> Floats:
        """``R·C·V·C·Rᵀ``, from one covariance per term."""
        rows = sum(math.prod(map(len, table)) for table in tables)
        worth = np.zeros((rows, rows))
        for term in self.groups[g].terms.tolist():
            self._clock.check()
            parts = self._reaches(g, term, inside, tables)
            weight = float(self.batch.weights[term]) ** 2
            for (left, X), (right, Y) in itertools.product(parts, parts):
                forms = self._shared_forms(g, left, right, inside)
                scalar = weight * math.prod(float(form.sum()) for form in forms)
                if scalar:
                    worth += scalar * (X.T @ Y)
        return (worth + worth.T) / 2

    def _shared_forms(
        self, g: int, left: Sequence[LinearMap], right: Sequence[LinearMap], inside: Subset
    ) -> Iterator[Floats]:
        """Yield what each shared axis makes of the covariances of two products, row by row."""
        side = self.sides[g]
        for k, (W, V) in enumerate(zip(left, right, strict=True)):
            rest, total = side.by_subset.forms(side.shared[k], W, V)
            yield rest if k in inside else total

    def _reaches(self, g: int, term: int, inside: Subset, tables: list[Table]) -> Reach:
        """``W·C·Rᵀ`` of a term, one array per choice of factors on the shared axes."""
        return self._held.find((term, inside), lambda: self._covariances(g, term, inside, tables))

    def _covariances(self, g: int, term: int, inside: Subset, tables: list[Table]) -> Reach:
        side = self.sides[g]
        members = tuple(side.shared[k] for k in inside)
        reaches: dict[tuple[LinearMap, ...], Floats] = {}
        for coefficient, own_factors, shared in side.summands(term):
            part = np.hstack([side.covariance(own_factors, table, members) for table in tables])
            part *= coefficient
            reaches[shared] = reaches[shared] + part if shared in reaches else part
        return list(reaches.items())

    def _each(self, g: int, term: int) -> Iterator[tuple[_Component, Reach]]:
        for component in self.components:
            tables = component.tables[g]
            yield component, self._reaches(g, term, component.inside, tables)

    @cached_property
    def _middles(self) -> list[Floats]:
        """``M⁺`` of each component, at the shares of the strategy."""
        return [component.middle(self.shares) for component in self.components]

    def corrected(self, estimates: tuple[Estimate, Estimate]) -> tuple[list[Floats], list[Floats]]:
        """Per component, what each group's answers are corrected by, over the shared values.

        ``term`` takes these.
        """
        corrections: tuple[list[Floats], list[Floats]] = ([], [])
        for component, middle in zip(self.components, self._middles, strict=True):
            seen = [self._seen(g, estimates[g], component) for g in (0, 1)]
            difference = seen[1] - seen[0]
            for k, i in enumerate(self.sides[0].shared):
                total = difference.sum(axis=1 + k, keepdims=True)
                mean = total / self.groups[0].axes[i].size
                difference = difference - mean if k in component.inside else mean
            flat = difference.reshape(len(difference), -1)
            solved = (middle @ flat).reshape(difference.shape)
            for g, sign in ((0, 1.0), (1, -1.0)):
                corrections[g].append(sign * solved / self.shares[g] ** 2)
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
                    factors.append(table[side.own.index(i)])
                else:
                    factors.append(Identity(axis.size) if i in members else Total(axis.size))
            answer = estimate.product(dict(enumerate(factors)))
            lengths = [answer.shape[i] for i in side.shared]
            answer = np.moveaxis(answer, side.shared, range(-len(side.shared), 0))
            tables.append(answer.reshape(-1, *lengths))
        return np.concatenate(tables)

    def _own_lengths(self, g: int, term: int) -> tuple[int, ...]:
        """Rows of a term's factors on each axis that is not shared."""
        return tuple(len(factor) for factor in next(self.sides[g].summands(term))[1])

    def _ordered(self, g: int, lengths: Sequence[int], part: Floats) -> Floats:
        """Numbers over own axes (flattened), then shared axes, in the order of the queries."""
        side = self.sides[g]
        shape = part.shape[1 : 1 + len(side.shared)]
        rest = part.shape[1 + len(side.shared) :]
        part = part.reshape(*lengths, *shape, *rest)
        places = range(len(lengths), len(lengths) + len(side.shared))
        return np.moveaxis(part, places, side.shared).reshape(-1, *rest)

    def term(self, g: int, estimate: Estimate, corrections: Sequence[Floats], term: int) -> Floats:
        """The corrected answers of one term of group ``g``, flattened."""
        answers = estimate.term(self.sides[g].products(term))
        for (component, reaches), solved in zip(self._each(g, term), corrections, strict=True):
            for shared, reach in reaches:
                part = np.tensordot(reach, solved, axes=(1, 0))
                for k, W in enumerate(shared):
                    if k not in component.inside:
                        # The mean over the values stands for the total: W·h/κ times it.
                        part = np.repeat(part, W.shape[1], axis=1 + k)
                    part = along(part, 1 + k, W.apply)
                answers = answers + self._ordered(g, self._own_lengths(g, term), part)
        return np.asarray(answers)

    def term_variances(self, g: int, term: int) -> Floats:
        """Variances of one term's corrected answers, for unit noise at sensitivity 1."""
        side, share = self.sides[g], self.groups[g].weight
        variances = term_variances(side.by_subset, side.products(term)) / share**2
        for (component, parts), middle in zip(self._each(g, term), self._middles, strict=True):
            for left, X in parts:
                image = X @ (middle / share**4)
                for right, Y in parts:
                    part = np.einsum("ij,ij->i", image, Y)
                    for form in self._shared_forms(g, left, right, component.inside):
                        part = np.multiply.outer(part, form)
                    variances = variances - self._ordered(g, self._own_lengths(g, term), part)
        return np.asarray(variances)

    def add_corrections(
        self, parts: Sequence[Floats], g: int, term: int, rows: Mapping[int, slice]
    ) -> None:
        """Add what combining changes in some rows of B of one term.

        Parameters
        ----------
        parts
            The rows over the measurements of each group, which are changed.
        g, term
            The term, and the group that answers it.
        rows
            By axis of the group, which rows of the term's factors these are; all of the others.
        """
        side, lengths = self.sides[g], self._own_lengths(g, term)
        some = tuple(rows.get(i, slice(None)) for i in side.own)
        for other, group_rows in enumerate(parts):
            sign = (-1.0 if other == g else 1.0) / self.groups[other].weight
            for (component, reaches), middle in zip(
                self._each(g, term), self._middles, strict=True
            ):
                for shared, reach in reaches:
                    own = reach.reshape(*lengths, -1)[some]
                    weights = own @ (middle * (sign / self.groups[g].weight ** 2))
                    factors = [
                        some_rows(W, rows.get(i, slice(0, len(W))))
                        for i, W in zip(side.shared, shared, strict=True)
                    ]
                    flat = weights.reshape(-1, weights.shape[-1])
                    part = self._weighted_tables(flat, other, component, factors)
                    np.add(group_rows, self._ordered(g, own.shape[:-1], part), out=group_rows)

    def _weighted_tables(
        self,
        weights: Floats,
        g: int,
        component: _Component,
        shared: Sequence[LinearMap],
    ) -> Floats:
        """``weights`` times the rows of B of a group's common tables: own x shared x measured.

        A term's factors on the shared axes are without their mean within the component, and
        multiples of it elsewhere.
        """
        if not shared:
            return np.asarray(weights @ self._table_rows(g, component, ()))
        lengths = [len(W) for W in shared]
        entries = component.height * self._heights[g]
        weighted = np.empty((len(weights), *lengths, self._heights[g]))
        for block in _blocks(shared, ARRAY // entries):
            projected = []
            for k, (W, some) in enumerate(zip(shared, block, strict=True)):
                part = W.rows(some.start, some.stop)
                rows = np.repeat(part.mean(axis=1, keepdims=True), W.shape[1], axis=1)
                rows = part - rows if k in component.inside else rows
                projected.append(DenseMap(rows))
            rows = self._table_rows(g, component, projected)
            weighted[(slice(None), *block)] = np.tensordot(weights, rows, axes=(1, 0))
        return weighted

    def _table_rows(self, g: int, component: _Component, shared: Sequence[LinearMap]) -> Floats:
        """Rows of B of the common tables of one group alone: tables x shared x measured."""
        key = g, component.inside
        if not shared and key in self._common_rows:
            return self._common_rows[key]
        side = self.sides[g]
        row_blocks = []
        for table in component.tables[g]:
            factors = dict(zip(side.own, table, strict=True))
            factors |= dict(zip(side.shared, shared, strict=True))
            ordered = {i: factors[i] for i in range(len(factors))}
            rows = product_rows(side.by_subset, ordered).reshape(*map(len, ordered.values()), -1)
            rows = np.moveaxis(rows, side.shared, range(-1 - len(shared), -1))
            row_blocks.append(rows.reshape(-1, *map(len, shared), rows.shape[-1]))
        if not shared:
            self._common_rows[key] = np.concatenate(row_blocks)
        return np.concatenate(row_blocks)


def _blocks(shared: Sequence[LinearMap], most: int) -> Iterator[tuple[slice, ...]]:
    """Yield parts of the combinations of rows of some factors: all at once, or one by one."""
    small = all(math.prod(W.shape) <= ARRAY for W in shared)
    if small and math.prod(map(len, shared)) <= most:
        yield tuple(slice(0, len(W)) for W in shared)
        return
    for rows in itertools.product(*(range(len(W)) for W in shared)):
        yield tuple(slice(row, row + 1) for row in rows)


def find_combination(
    batch: ProductBatch, strategy: ProductStrategy, clock: Clock = UNLIMITED
) -> Combination | None:
    """The combination of a strategy of two groups; None without any, or where it is too large."""
    if not strategy.is_combinable:
        return None
    try:
        combination = Combination(batch, strategy, clock)
    except WorkloadError:
        return None
    return combination if combination.components else None
