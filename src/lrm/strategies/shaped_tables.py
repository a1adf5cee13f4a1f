"""Bodies of tables: rows of 0 and 1 in tables of disjoint rows, in groups with shares of ε.

The hull of what a record adds to several tables is known in closed form (`Tables`). Large ones are
better off alone, small ones together; all partitions of few tables are tried.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as la
from scipy.optimize import minimize

from lrm.clock import Clock
from lrm.exact.products.strategy import group_weights
from lrm.exact.shaped import whitening
from lrm.maps.linear import Floats
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.shared import SharedTables
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.strategies.base import Problem

LISTED_PARTITIONS = 6
"""Tables up to which all partitions into groups are tried."""


@dataclass(frozen=True)
class CubeSides:
    """Rows of 0 and 1, all of which a replaced record may move."""

    count: int

    def body(self, unit: int) -> Body:
        """The cube that holds half of what is moved, where one record counts for ``unit``."""
        return Cube(self.count, unit // 2)


@dataclass(frozen=True)
class TableGroups:
    """Tables in groups with shares: the body of each group where a record counts for 1."""

    bodies: tuple[Tables | SharedTables, ...]
    shares: tuple[float, ...]

    def body(self, unit: int) -> Body:
        """The body where one record counts for ``unit``."""
        bodies = tuple(replace(body, unit=unit) for body in self.bodies)
        if len(bodies) == 1:
            return bodies[0]
        integer_shares = [max(1, math.floor(share * WHOLE)) for share in self.shares]
        return Groups(bodies, tuple(integer_shares))


@dataclass(frozen=True, eq=False)
class Grouping:
    """A partition of tables into groups, the bodies and shares of these, and the error."""

    error: float
    shape: TableGroups
    groups: list[list[int]]

    @property
    def order(self) -> list[int]:
        """The tables in the order of their groups."""
        return [i for group in self.groups for i in group]


@dataclass(frozen=True, eq=False)
class Table:
    """Disjoint rows of 0 and 1 over merged cells; closed if they count every record."""

    rows: Floats
    closed: bool


def tables_of(problem: Problem) -> list[Table] | None:
    """The different rows of the batch in tables of disjoint ones; None where some are not 0/1."""
    if problem.merged.cell_map.largest_factors().max(initial=0) > 1:
        return None
    matrix = problem.merged.queries.dense()
    sizes = np.abs(matrix).max(axis=1)
    rows = np.abs(matrix[sizes > 0]) / sizes[sizes > 0, None]
    signs = (matrix.min(axis=1) < 0) & (matrix.max(axis=1) > 0)
    if signs.any() or not np.all((rows == 0) | (rows == 1)):
        return None
    _, first = np.unique(rows, axis=0, return_index=True)
    rows = rows[np.sort(first)]
    tables: list[list[Floats]] = []
    covered: list[Floats] = []
    for row in rows:
        for table, cells in zip(tables, covered, strict=True):
            if not (cells * row).any():
                table.append(row)
                np.add(cells, row, out=cells)
                break
        else:
            tables.append([row])
            covered.append(row.copy())
    counted = rows.any(axis=0)
    return [
        Table(np.array(table), bool(np.array_equal(cells > 0, counted)))
        for table, cells in zip(tables, covered, strict=True)
    ]


def partitions_of(sizes: Sequence[int]) -> Iterator[list[list[int]]]:
    """Partitions of tables: all of them where they are few, else by size into at most 3 parts."""
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    if len(sizes) <= LISTED_PARTITIONS:
        yield from _all_partitions(order)
        return
    count = len(order)
    yield [order]
    for first in range(1, count):
        yield [order[:first], order[first:]]
    for first in range(1, min(count, 24)):
        for second in range(first + 1, min(count, 24)):
            yield [order[:first], order[first:second], order[second:]]
    yield [order[: count - 2], *([i] for i in order[count - 2 :])]


def _all_partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    head, *rest = items
    for partition in _all_partitions(rest):
        yield [[head], *partition]
        for place in range(len(partition)):
            yield [*partition[:place], [head, *partition[place]], *partition[place + 1 :]]


class GroupErrors:
    """Errors of groups of tables: generalised least squares in the space that the queries span.

    Parameters
    ----------
    target
        The queries by coordinates of that space.
    group_of
        The rows of a group of tables by these coordinates, and by further ones that no query needs,
        and the body of its noise.
    """

    def __init__(
        self,
        target: Floats,
        group_of: Callable[[Sequence[int]], tuple[Floats, Tables | SharedTables]],
    ) -> None:
        self._target, self._group_of = target, group_of
        self._known: dict[tuple[int, ...], tuple[Floats, float, Tables | SharedTables]] = {}

    def best(self, partitions: Iterable[Sequence[Sequence[int]]], clock: Clock) -> Grouping | None:
        """The partition of least error, with shares by the groups' own errors, as time allows."""
        in_time = itertools.takewhile(lambda _: not clock.ended, partitions)
        candidates = filter(None, map(self.grouping, in_time))
        return min(candidates, key=lambda candidate: candidate.error, default=None)

    def _group(self, group: Sequence[int]) -> tuple[Floats, float, Tables | SharedTables]:
        """``MᵀC⁺M`` of a group alone, a measure of its error, and its body."""
        key = tuple(group)
        if key not in self._known:
            rows, body = self._group_of(key)
            image = whitening(body.covariance / 2.0) @ rows
            count = self._target.shape[1]
            image, further = image[:, :count], image[:, count:]
            if further.shape[1]:  # known from this group alone, as far as the search is concerned
                image = image - further @ la.lstsq(further, image, check_finite=False)[0]
            error = float(np.trace(body.covariance)) / 2.0
            self._known[key] = image.T @ image, error, body
        return self._known[key]

    def grouping(self, partition: Sequence[Sequence[int]]) -> Grouping | None:
        """The groups with shares by the cube root of their own errors; None if they do not suffice.

        That is the best division for groups that are answered from themselves alone.
        """
        results = [self._group(group) for group in partition]
        shares = group_weights([error for _, error, _ in results])[1]
        error = self._with_shares([gram for gram, _, _ in results], shares)
        if error is None:
            return None
        shape = TableGroups(tuple(body for _, _, body in results), tuple(shares.tolist()))
        return Grouping(error, shape, [list(group) for group in partition])

    def _with_shares(self, grams: Sequence[Floats], shares: Floats) -> float | None:
        total = np.sum([s**2 * gram for s, gram in zip(shares, grams, strict=True)], axis=0)
        try:
            factor = la.cho_factor(total, lower=True, check_finite=False)
        except la.LinAlgError:
            return None
        if not np.diag(factor[0]).min() > 1e-7 * np.diag(factor[0]).max():
            return None
        solved = la.cho_solve(factor, self._target.T, check_finite=False)
        return float(np.sum(self._target.T * solved))

    def with_better_shares(self, grouping: Grouping) -> Grouping:
        """Shares that lower the error further: a small convex problem in their logarithms."""
        if len(grouping.groups) == 1:
            return grouping
        grams = [self._group(group)[0] for group in grouping.groups]

        def value(logs: Floats) -> float:
            shares = np.exp(logs - logs.max())
            share_error = self._with_shares(grams, shares / shares.sum())
            return math.inf if share_error is None else share_error

        result = minimize(value, np.log(grouping.shape.shares), method="Nelder-Mead")
        if not result.fun < grouping.error:
            return grouping
        shares = np.exp(result.x - result.x.max())
        shape = replace(grouping.shape, shares=tuple((shares / shares.sum()).tolist()))
        return replace(grouping, error=float(result.fun), shape=shape)
