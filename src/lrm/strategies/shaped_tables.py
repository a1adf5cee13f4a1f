"""Bodies of tables: rows of 0 and 1 in tables of disjoint rows, in groups with shares of ε.

The hull of what a record adds to several tables is known in closed form (`Tables`). Large ones are
better off alone, small ones together; all partitions of few tables are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as la
from scipy.optimize import minimize

from lrm.exact.shaped import whitening
from lrm.maps.linear import Floats
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.strategies.base import Problem

__all__ = ["CubeSides", "GroupErrors", "Table", "TableGroups", "tables_of"]

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
    """Tables in groups with shares: sizes and whether closed, in the order of the rows."""

    groups: tuple[tuple[tuple[int, bool], ...], ...]
    shares: tuple[float, ...]

    def body(self, unit: int) -> Body:
        """The body where one record counts for ``unit``."""
        bodies = tuple(
            Tables(tuple(n for n, _ in group), tuple(is_closed for _, is_closed in group), unit)
            for group in self.groups
        )
        if len(bodies) == 1:
            return bodies[0]
        integer_shares = [max(1, math.floor(share * WHOLE)) for share in self.shares]
        return Groups(bodies, tuple(integer_shares))


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


def _partitions(sizes: Sequence[int]) -> Iterator[list[list[int]]]:
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
    """Errors of groups of tables: generalised least squares in the space that the rows span."""

    def __init__(
        self, target: Floats, coordinates: Sequence[Floats], closed: Sequence[bool]
    ) -> None:
        self._target, self._coordinates = target, coordinates
        self._tables = [(len(rows), c) for rows, c in zip(coordinates, closed, strict=True)]
        self._known: dict[tuple[int, ...], tuple[Floats, float]] = {}

    def best(self) -> tuple[float, TableGroups, list[int]] | None:
        """The partition of least error with its shares, and the order of its tables."""
        best: tuple[float, TableGroups, list[int]] | None = None
        for partition in _partitions([size for size, _ in self._tables]):
            candidate = self._error(partition)
            if candidate is not None and (best is None or candidate[0] < best[0]):
                best = candidate
        if best is None or len(best[1].groups) == 1:
            return best
        error, shape = self._better_shares(best[1], best[2], best[0])
        return error, shape, best[2]

    def _group(self, group: Sequence[int]) -> tuple[Floats, float]:
        """``MᵀC⁺M`` of a group alone, and a measure of its error."""
        key = tuple(group)
        if key not in self._known:
            tables = [self._tables[i] for i in group]
            body = Tables(tuple(n for n, _ in tables), tuple(closed for _, closed in tables), 1)
            white = whitening(body.covariance / 2.0)
            image = white @ np.vstack([self._coordinates[i] for i in group])
            self._known[key] = image.T @ image, float(np.trace(body.covariance)) / 2.0
        return self._known[key]

    def _error(self, partition: list[list[int]]) -> tuple[float, TableGroups, list[int]] | None:
        """The error with shares by the cube root of the groups' own errors."""
        group_results = [self._group(group) for group in partition]
        roots = np.array([error for _, error in group_results]) ** (1 / 3)
        shares = roots / roots.sum()
        total_error = self._with_shares([gram for gram, _ in group_results], shares)
        if total_error is None:
            return None
        shape = TableGroups(
            tuple(tuple(self._tables[i] for i in group) for group in partition),
            tuple(shares.tolist()),
        )
        return total_error, shape, [i for group in partition for i in group]

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

    def _better_shares(
        self, shape: TableGroups, order: list[int], error: float
    ) -> tuple[float, TableGroups]:
        """Shares that lower the error further: a small convex problem in their logarithms."""
        places = iter(order)
        groups = [[next(places) for _ in group] for group in shape.groups]
        grams = [self._group(group)[0] for group in groups]

        def value(logs: Floats) -> float:
            shares = np.exp(logs - logs.max())
            share_error = self._with_shares(grams, shares / shares.sum())
            return math.inf if share_error is None else share_error

        result = minimize(value, np.log(shape.shares), method="Nelder-Mead")
        shares = np.exp(result.x - result.x.max())
        if not result.fun < error:
            return error, shape
        return float(result.fun), replace(shape, shares=tuple((shares / shares.sum()).tolist()))
