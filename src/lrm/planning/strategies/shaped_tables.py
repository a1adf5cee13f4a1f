"""Bodies of tables: rows of 0 and 1 in tables of disjoint rows, in groups with shares of ε.

The hull of what a record adds to several tables is known in closed form (`Tables`). Large ones are
better off alone, small ones together: partitions by size are tried, then moves of single tables.

Over a product of attributes of any size, whose cells are never listed, tables any two of which have
the same attributes in common are a group (`Tables` where they have none, else `SharedTables`):
one-way tables, or A×B, A×C and A×D. Answers come from all groups by generalised least squares.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg as la
from scipy.optimize import minimize

from lrm.clock import Clock
from lrm.errors import ConvergenceError
from lrm.planning.design.measured import Measured
from lrm.planning.design.products.strategy import group_weights
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.design.rounding import DEFAULT_MAX_RECORDS, most_bits
from lrm.planning.design.shaped import product_rows, table_places, table_rows, whitening
from lrm.planning.limits import BLOCK
from lrm.planning.solvers import settings
from lrm.planning.solvers.race import Candidate
from lrm.planning.strategies.base import Choice, Problem, Search
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.shared import SharedTables, shared_attributes
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.norms import Norm
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.values import merge_values

Attributes = tuple[int, ...]


@dataclass(frozen=True)
class TableGroups:
    """Tables in groups with shares: the body of each group where a record counts for 1.

    For replaced records, a cube: it holds half of what one may move in all rows.
    """

    bodies: tuple[Tables | SharedTables | Cube, ...]
    shares: tuple[float, ...]

    def body(self, unit: int) -> Body:
        """The body where one record counts for ``unit``."""
        bodies = tuple(replace(body, unit=unit) for body in self.bodies)
        if len(bodies) == 1:
            return bodies[0]
        return Groups(bodies, self.whole_shares(self.shares))

    @staticmethod
    def whole_shares(shares: Sequence[float]) -> tuple[int, ...]:
        """Shares as parts of `WHOLE` that sum to at most that."""
        integer_shares = [max(1, math.floor(share * WHOLE)) for share in shares]
        # Shares below the least one were raised to it: the largest makes room for them.
        largest = integer_shares.index(max(integer_shares))
        integer_shares[largest] -= max(0, sum(integer_shares) - WHOLE)
        return tuple(integer_shares)


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


def tables_of(problem: Problem, most: float = math.inf) -> list[Table] | None:
    """The different rows of the batch in tables of disjoint ones; None where some are not 0/1.

    None, too, where the rows are more than ``most``.
    """
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
    if len(rows) > most:
        return None
    tables: list[list[Floats]] = []
    covered = np.zeros_like(rows)  # by each table; there are at most as many tables as rows
    for row in rows:
        # The first table that counts none of the row's cells; a new one counts nothing yet.
        place = int(np.argmin(covered[: len(tables) + 1] @ row))
        if place == len(tables):
            tables.append([])
        tables[place].append(row)
        covered[place] += row
    counted = rows.any(axis=0)
    return [
        Table(np.array(table), bool(np.array_equal(cells > 0, counted)))
        for table, cells in zip(tables, covered, strict=False)
    ]


def partitions_of(sizes: Sequence[int]) -> Iterator[list[list[int]]]:
    """Partitions of tables by size into one or two parts, and with the largest two alone."""
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    count = len(order)
    all_cuts: list[tuple[int, ...]] = [(), *((cut,) for cut in range(1, count))]
    if count > 2:
        all_cuts.append((count - 2, count - 1))
    for cuts in all_cuts:
        yield [order[start:stop] for start, stop in itertools.pairwise((0, *cuts, count))]


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


@dataclass(frozen=True, eq=False)
class TablesChoice(Choice):
    """Tables of attributes, and a body for their noise; members as in `ShapedChoice`."""

    labels: tuple[Integers, ...]
    tables: tuple[Attributes, ...]
    shape: TableGroups
    error: float
    least_error: float = field(default=0.0, kw_only=True)

    @property
    def is_one_way(self) -> bool:
        """Whether each table has one attribute."""
        return all(len(table) == 1 for table in self.tables)

    def round(
        self, problem: Problem, norm: Norm, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        del norm  # that of the body
        bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
        measured = Measured.of_tables(self.labels, self.tables, bits, self.shape.body(1 << bits))
        reconstruction = measured.reconstruction_of(problem.workload.queries)
        if reconstruction is None:
            raise ConvergenceError("the tables do not answer the queries")
        return measured, reconstruction


def tables_strategy(problem: Problem, search: Search, laplace_error: float) -> TablesChoice | None:
    """Tables for a batch over a product of any size; None where Laplace noise is as good."""
    batch = problem.products
    if batch is None or batch.choice.size > BLOCK:
        return None
    labels = merge_values(batch).labels
    sizes = [int(marks.max()) + 1 for marks in labels]
    tables = _largest_sets(batch, sizes)
    if sum(math.prod(sizes[i] for i in table) for table in tables) > settings.TABLE_CELLS:
        return None
    rows = table_rows(batch, labels, tables) if tables else None
    if rows is None:
        return None
    weighted = rows * np.repeat(batch.weights, batch.term_queries)[:, None]
    groups = _TableSearch(np.asarray(np.linalg.qr(weighted, mode="r")), tables, sizes)
    best = groups.best(search)
    if best is None or not best.error < laplace_error:
        return None
    record = search.record("tables", [Candidate("tables", best.error, 0)], "quick")
    ordered_tables = tuple(groups.tables[i] for i in best.order)
    return TablesChoice("best", labels, ordered_tables, best.shape, best.error, record=record)


def _largest_sets(batch: ProductBatch, sizes: Sequence[int]) -> list[Attributes]:
    """The sets of attributes that products of the batch count by, without those within others."""
    kept = np.unique((batch.choice != 0) & (np.array(sizes) > 1), axis=0)
    sets = sorted({tuple(np.flatnonzero(row).tolist()) for row in kept}, key=len, reverse=True)
    largest: list[Attributes] = []
    for attributes in sets:
        if attributes and not any(set(attributes) <= set(other) for other in largest):
            if math.prod(sizes[i] for i in attributes) > settings.TABLE_CELLS:
                return []
            largest.append(attributes)
    return sorted(largest)


class _TableSearch:
    """Partitions of the tables of a batch into groups, and larger tables in place of some."""

    def __init__(self, target: Floats, tables: list[Attributes], sizes: Sequence[int]) -> None:
        self.tables, self._sizes, self._asked = list(tables), sizes, len(tables)
        self._places = table_places(tables, sizes)
        self._errors = GroupErrors(target, self._group_of)

    def best(self, search: Search) -> Grouping | None:
        """The partition of least error that is found, with its best shares."""
        best = self._errors.best(self._partitions(), search.clock)
        if best is None:
            return None
        # Other groups of one table that are tried: without any, 15 % more error for one-way tables
        # of 5×3×3×5×6 values with four 2-way ones.
        steps = iter(range(200))
        while not search.clock.ended:
            nearby = [partition for partition, _ in zip(self._moves(best.groups), steps)]  # noqa: B905
            other = self._errors.best(nearby, search.clock)
            if other is None or not other.error < best.error * (1 - 1e-9):
                break
            best = other
        return self._errors.with_better_shares(best)

    def _cells(self, table: Attributes) -> int:
        return math.prod(self._sizes[i] for i in table)

    def _group_of(self, group: Sequence[int]) -> tuple[Floats, Tables | SharedTables]:
        """Rows of a group by the coordinates of the batch, then by those of larger tables."""
        tables = [self.tables[i] for i in group]
        places = table_places([*self.tables[: self._asked], *tables], self._sizes)
        parts = [product_rows({i: np.eye(self._sizes[i]) for i in t}, places) for t in tables]
        rows = np.vstack(parts)
        further = [places[subset] for subset in places if subset not in self._places]
        order = [places[subset] for subset in self._places] + further
        rows = np.hstack([rows[:, place] for place in order])
        if len(tables) == 1 or not shared_attributes(tables):
            sizes = tuple(self._cells(table) for table in tables)
            return rows, Tables(sizes, (True,) * len(sizes), 1)
        return rows, SharedTables(
            tuple(tuple((i, self._sizes[i]) for i in table) for table in tables), 1
        )

    def _fits(self, group: Sequence[int]) -> bool:
        return len(group) == 1 or shared_attributes([self.tables[i] for i in group]) is not None

    def _packed(self, numbers: Sequence[int]) -> list[list[int]]:
        """Tables in few groups, small ones first, each in the first that it fits into."""
        groups: list[list[int]] = []
        for i in sorted(numbers, key=lambda i: self._cells(self.tables[i])):
            group = next((group for group in groups if self._fits([*group, i])), None)
            if group is None:
                groups.append([i])
            else:
                group.append(i)
        return groups

    def _partitions(self) -> Iterator[list[list[int]]]:
        """All tables, as they are or `_joined`, in few groups, with parts of the first by size.

        Further, the tables of one attribute, and the others joined.
        """
        numbers = range(self._asked)
        for tables in (numbers, self._joined(numbers)):
            first, *others = self._packed(tables)
            for parts in partitions_of([self._cells(self.tables[i]) for i in first]):
                yield [[first[place] for place in part] for part in parts] + others
        counts = np.bincount([i for number in numbers for i in self.tables[number]])
        for centre in np.argsort(-counts, kind="stable").tolist():
            own = [i for i in numbers if centre in self.tables[i]]
            rest = [i for i in numbers if centre not in self.tables[i]]
            if len(own) > 1 and rest:
                yield self._packed(own) + self._packed(self._joined(rest))

    def _joined(self, numbers: Sequence[int]) -> list[int]:
        """One table of all attributes in place of tables that are connected by common ones."""
        unions: list[set[int]] = []
        for number in numbers:
            union = set(self.tables[number])
            for other in [other for other in unions if other & union]:
                unions.remove(other)
                union |= other
            unions.append(union)
        if sum(self._cells(tuple(union)) for union in unions) > settings.TABLE_CELLS:
            return list(numbers)
        joined = [tuple(sorted(union)) for union in unions]
        self.tables += [table for table in joined if table not in self.tables]
        return [self.tables.index(table) for table in joined]

    def _moves(self, groups: list[list[int]]) -> Iterator[list[list[int]]]:
        """One table moved to another group, or to one of its own; of those of one size, the first.

        They are alike where they have no attributes in common with others.
        """
        known = set()
        for source, group in enumerate(groups):
            for i in group:
                left = [number for number in group if number != i]
                for target in range(len(groups) + 1):
                    move = source, self._cells(self.tables[i]), target
                    into = [*(groups[target] if target < len(groups) else []), i]
                    if target == source or move in known or not self._fits(into):
                        continue
                    known.add(move)
                    moved = [g for g in groups[:target] + groups[target + 1 :] if g is not group]
                    yield [g for g in [*moved, left, into] if g]
