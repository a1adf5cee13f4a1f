"""What two groups of a product strategy can both compute: tables over the join of their values.

Two groups see an attribute through different partitions of its values, and both can compute tables
over the *join* of the partitions. `lrm.planning.design.products.combine` corrects each group by
these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lrm.errors import WorkloadError
from lrm.planning.design.products.information import Information
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Group
from lrm.planning.limits import ARRAY
from lrm.queries.maps.kron import kronecker
from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import ProductBatch, Products

Subset = tuple[int, ...]

#: Most multiplications of the whole construction: about two seconds.
MOST_WORK = 4_000_000_000
#: Most pairs of measured sets that are compared to find common tables.
MOST_PAIRS = 1_000_000


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


Table = tuple[LinearMap, ...]
"""A common table: its factor on each axis of a group that is not shared."""

Joins = tuple[dict[int, Integers], dict[int, Integers]]
"""By attribute that is not shared, the join's block of each merged value, for each group."""


@dataclass(frozen=True, eq=False)
class Side:
    """One group in a combination: its axes, which of them are shared, and its terms."""

    group: Group
    by_subset: Information
    reduced: ProductBatch  # the group's terms over its axes
    own: tuple[int, ...]  # axes that are not shared
    shared: tuple[int, ...]  # shared axes, in the order of the shared attributes

    @classmethod
    def of(cls, batch: ProductBatch, group: Group, shared: Sequence[int]) -> Side:
        """The side of a group, where both see the attributes ``shared`` alike."""
        places = [
            next(k for k, axis in enumerate(group.axes) if axis.attributes == (i,)) for i in shared
        ]
        own = tuple(k for k in range(len(group.axes)) if k not in places)
        return cls(group, group.marginals.information(), group.reduced(batch), own, tuple(places))

    @cached_property
    def _number(self) -> dict[int, int]:
        """The number of each term of the batch among those of the group."""
        return {term: number for number, term in enumerate(self.group.terms.tolist())}

    def products(self, term: int) -> Products:
        """The products that a term of the group is the sum of, over its axes."""
        return self.reduced.products(self._number[term])

    def table(self, blocks: dict[int, Integers], attributes: frozenset[int]) -> Table:
        """The table over blocks of the values of some attributes."""
        factors: list[LinearMap] = []
        for k in self.own:
            axis = self.group.axes[k]
            parts = []
            for i, size in zip(axis.attributes, axis.merged_sizes, strict=True):
                part = np.ones((1, size))
                if i in attributes:
                    part = np.zeros((int(blocks[i].max()) + 1, size))
                    part[blocks[i], np.arange(size)] = 1.0
                parts.append(part)
            factors.append(DenseMap(kronecker(parts)))
        return tuple(factors)

    def covariance(self, left: Sequence[LinearMap], table: Table, inside: Subset) -> Floats:
        """``F·C·Gᵀ`` of a product and a table, within one component of the shared axes."""
        factors = zip(self.own, left, table, strict=True)
        parts = [self.by_subset.bases[i].cross_forms(F, G) for i, F, G in factors]
        touched = [place for place, (rest, _) in enumerate(parts) if np.abs(rest).max() > 1e-13]
        cross_covariance = np.zeros((math.prod(map(len, left)), math.prod(map(len, table))))
        for size in range(len(touched) + 1):
            for some in itertools.combinations(touched, size):
                subset = tuple(sorted([*(self.own[place] for place in some), *inside]))
                information = self.by_subset[subset]
                if not information > 0:
                    continue  # its coefficient is 0 for everything that can be answered
                product = kronecker(
                    rest if place in some else total for place, (rest, total) in enumerate(parts)
                )
                cross_covariance += product / information
        return cross_covariance

    def summands(self, term: int) -> Iterator[tuple[float, list[LinearMap], tuple[LinearMap, ...]]]:
        """Yield the coefficient of each product of a term, its own factors and its shared ones."""
        for coefficient, factors in self.reduced.summands(self._number[term]):
            own_factors = [factors[i] for i in self.own]
            yield coefficient, own_factors, tuple(factors[i] for i in self.shared)


def heights(tables: Sequence[frozenset[int]], joins: Joins) -> list[int]:
    """Rows of the tables over some attributes each."""
    return [math.prod(int(joins[0][i].max()) + 1 for i in members) for members in tables]


def measurement_count(group: Group) -> int:
    """How many measurements the marginals of a group are."""
    marginals = group.marginals
    heights = np.array([basis.height for basis in marginals.bases])
    return sum(math.prod(heights[inside].tolist()) for inside in marginals.members)


def shared_attributes(batch: ProductBatch, groups: Sequence[Group]) -> tuple[int, ...]:
    """Attributes that both groups see alike, symmetric in their values."""
    attributes = []
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
            attributes.append(i)
    return tuple(attributes)


def find_joins(groups: Sequence[Group], shared: Sequence[int]) -> Joins:
    """The join of both groups' values; a `WorkloadError` where a group drops some."""
    labels = [
        {i: marks for axis in g.axes for i, marks in zip(axis.attributes, axis.labels, strict=True)}
        for g in groups
    ]
    if any((marks[i] < 0).any() for marks in labels for i in labels[0]):
        raise WorkloadError("a group that drops values cannot compute totals")
    both = {i: join_labels(labels[0][i], labels[1][i]) for i in labels[0] if i not in shared}
    return {i: blocks[0] for i, blocks in both.items()}, {i: b[1] for i, b in both.items()}


def common_tables(
    groups: Sequence[Group], sides: Sequence[Side], joins: Joins
) -> Iterator[tuple[Subset, list[frozenset[int]]]]:
    """Yield the attributes of the common tables of each component that has any."""
    shared = range(len(sides[0].shared))
    pairs = math.prod(len(group.marginals.members) for group in groups)
    if pairs * 2 ** len(shared) > MOST_PAIRS:
        raise WorkloadError("the two groups measure too many marginals to be combined")
    joined = {i for i, blocks in joins[0].items() if blocks.max() > 0}
    for size in range(len(shared) + 1):
        for inside in itertools.combinations(shared, size):
            reach = [
                _measured_attributes(group, {side.shared[k] for k in inside})
                for group, side in zip(groups, sides, strict=True)
            ]
            meets = {a & b & joined for a in reach[0] for b in reach[1]}
            largest = sorted((a for a in meets if not any(a < b for b in meets)), key=sorted)
            small_sets, rows = [], 0
            for members, height in zip(largest, heights(largest, joins), strict=True):
                # Most rows of the common tables of one component.
                if rows + height <= 600:
                    small_sets.append(members)
                    rows += height
            if small_sets:
                yield inside, small_sets


def _measured_attributes(group: Group, needed: set[int]) -> set[frozenset[int]]:
    """The attributes of the marginals of a group that contain some axes."""
    return {
        frozenset(i for k in np.flatnonzero(inside) for i in group.axes[k].attributes)
        for inside in group.marginals.members
        if needed <= set(np.flatnonzero(inside))
    }


def check_sizes(batch: ProductBatch, sides: Sequence[Side], rows: Sequence[int]) -> None:
    """Raise a `WorkloadError` where a combination needs too much time or memory.

    ``rows`` are those of the common tables of each component.
    """
    most = max(rows, default=0)
    work = 0
    for side in sides:
        if most * measurement_count(side.group) > ARRAY:
            raise WorkloadError("the groups have too many measurements to be combined")
        if most * max((side.group.axes[i].size for i in side.own), default=1) > ARRAY:
            raise WorkloadError("the attributes of the groups have too many values to be combined")
        lengths = _own_queries(batch, side)
        for term in side.group.terms.tolist():
            numbers = batch.summand_numbers(term)
            queries = int(lengths[numbers].max(initial=1))
            if queries * most * min(len(numbers), 2 ** len(side.shared)) > ARRAY:
                raise WorkloadError("the groups have too many queries to be combined")
            work += queries * len(numbers) * sum(k * (k + 2 ** min(k, len(side.own))) for k in rows)
    if work > MOST_WORK:
        raise WorkloadError("combining the groups would take too long")


def _own_queries(batch: ProductBatch, side: Side) -> Floats:
    """Queries of each product of the batch over the axes that are not shared."""
    own_attributes = {i for k in side.own for i in side.group.axes[k].attributes}
    queries = np.ones(len(batch.choice))
    for i in own_attributes:
        queries *= np.array([len(factor) for factor in batch.factors[i]])[batch.choice[:, i]]
    return queries
