r"""Noise shaped to the batch: the body of least error among those that can be sampled exactly.

A body K that contains what every record moves gives noise of density ∝ exp(−ε‖z‖_K). Tried are

1. tables: rows of 0 and 1, put into tables of disjoint rows, whose hull is known in closed form;
   and partitions of these tables into groups with shares of ε;
2. the hull of the columns, by the list of its facets, where the rank is small;
3. the same with free points, which lower the error further.

The best Laplace strategy is the cross-polytope, and the caller keeps it where it is better.
See docs/explanation/shaped-noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from lrm.clock import Step
from lrm.errors import ConvergenceError, StopSolver, WorkloadError
from lrm.exact.cells import CellMap
from lrm.exact.measured import Measured
from lrm.exact.protocols import Reconstruction
from lrm.exact.rounding import DEFAULT_MAX_RECORDS, FINE_MAX_RECORDS, most_bits
from lrm.exact.shaped import one_way_rows, table_coordinates, whitening
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.matrices import DenseMap, SparseMap
from lrm.maps.products.values import merge_values
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import Noise
from lrm.solvers.hulls import Hull, free_points, verified_body
from lrm.strategies.base import Problem, Search
from lrm.strategies.best import has_few_cells
from lrm.strategies.products import flat_problem, lift
from lrm.strategies.split_hulls import Split, best_split, estimate_hull, split_body

__all__ = ["ShapedChoice", "TablesChoice", "shaped_strategy", "volume_bound"]

Effort = Literal["quick", "normal", "thorough"]

MOST_RANK = 200
"""Rank of a batch for which a body is looked for."""

MOST_UNREDUCED = 400
"""Queries or merged cells of a batch whose rank no other search has looked at."""

MOST_ENTRIES = 4e7
"""Queries × merged cells that are written out."""

HULL_CELLS = {
    2: 20_000,
    3: 20_000,
    4: 10_000,
    5: 3000,
    6: 1000,
    7: 100,
    8: 48,
    9: 16,
    10: 12,
}
"""Merged cells for each rank up to which the facets of their hull are listed: a few seconds."""

FREE_WORK: dict[Effort, float] = {"quick": 3e4, "normal": 3e5, "thorough": 2e6}
"""Facets that the search for free points may list: 15 µs each at rank 8."""

FREE_STARTS = ((1.5, 1.2), (1.5, 1.0), (1.0, 1.4))
"""Free points per dimension, and their length beside that of a typical point of the hull."""

FREE_FACETS = 60_000
"""Facets of a hull above which no free points are looked for."""

HIGH_RANK, HIGH_FACETS = 8, 2000
"""Above this rank a few free points multiply the facets; the most facets of the hull then."""

WORTH = 0.998
"""A body must have an error below this share of that of Laplace noise."""

LEAST_SPLIT, MOST_SPLIT, MOST_SPLIT_CELLS = 7, 20, 2048
"""Ranks, and merged cells, of hulls that are sampled by rejection."""

SPLIT_WORTH, LEAST_EFFECTIVE = 0.97, 200.0
"""Such hulls must be better than all else by 3 %, by a sample that is worth this many points."""

SPLIT_SECONDS: dict[Effort, float] = {"quick": 3.0, "normal": 10.0, "thorough": 10.0}
"""Seconds that must be left to look for them."""

DRAW_SECONDS = 30.0
"""Seconds that a draw may take."""

MARGINS = (2e-5, 2e-4, 2e-3)
"""How far vertices are moved outwards, so that facets are simplices and hold the columns."""

MOST_TABLE_CELLS = 400
"""Cells of all one-way tables for which a body is looked for: a second for their covariances."""

LISTED_PARTITIONS = 6
"""Tables up to which all partitions into groups are tried."""


@dataclass(frozen=True, eq=False)
class ShapedChoice:
    """Rows to measure and a body for their noise, in real numbers.

    Parameters
    ----------
    cell_map, queries
        The merged cells, and the workload over them.
    rows
        What is measured, over merged cells: rows of 0 and 1 for tables.
    shape
        The body: one of tables and their groups, points whose hull it is, or the hull of the
        columns by parts.
    error
        Half of the expected total squared error at ε = 1, before rounding.
    least_error
        A number that it is not below for any noise that is added; 0 where none is known.
    """

    mechanism: str
    cell_map: CellMap
    queries: LinearMap
    rows: Floats
    shape: TableGroups | Hull | Split
    error: float
    exact: bool = True
    least_error: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def rounded(
        self, problem: Problem, noise: Noise, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        """The integers that will be measured, with their body, and how answers follow."""
        del problem, noise
        measured = self._measured(max_records)
        return measured, measured.reconstruct(self.queries)

    def _measured(self, max_records: int | None) -> Measured:
        if isinstance(self.shape, TableGroups):
            bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
            matrix = SparseMap(sp.csr_array(self.rows * 2.0**bits))
            return Measured.of_cells(matrix, self.cell_map, bits, None, self.shape.body(1 << bits))
        if np.array_equal(self.rows, np.rint(self.rows)):
            bits = min(24, most_bits(max_records or DEFAULT_MAX_RECORDS))
        else:
            bits = most_bits(max_records or FINE_MAX_RECORDS)
        rounded_rows = np.rint(self.rows * 2.0**bits)
        if isinstance(self.shape, Split):
            moved = (rounded_rows * self.cell_map.largest_factors()).T.astype(np.int64)
            try:
                body = split_body(moved, self.shape)
            except WorkloadError as reason:
                raise ConvergenceError(str(reason)) from None
            return Measured.of_cells(DenseMap(rounded_rows), self.cell_map, bits, None, body)
        for margin in MARGINS:
            outer = verified_body(self.shape.points * 2.0**bits, margin)
            if outer is not None:
                try:
                    dense = DenseMap(rounded_rows)
                    return Measured.of_cells(dense, self.cell_map, bits, None, outer)
                except WorkloadError:  # a column is not inside: a wider margin
                    continue
        raise ConvergenceError("the facets of the hull cannot be listed in integers")


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


def shaped_strategy(
    problem: Problem, search: Search, laplace_error: float, effort: Effort = "normal"
) -> ShapedChoice | TablesChoice | None:
    """The body of least error; None where none is below the error of the best Laplace strategy.

    Parameters
    ----------
    problem, search
        The workload over a list of cells, and the search settings.
    laplace_error
        Half of the expected total squared error at ε = 1 of the best Laplace strategy.
    effort
        How long to search.
    """
    if search.clock.ended:
        return None
    if problem.products is not None:
        return _over_products(problem, search, laplace_error, effort)
    if not _is_small(problem):
        return None
    tried: list[ShapedChoice] = []
    with suppress(StopSolver):  # what was found before it is kept
        tried += _table_candidates(problem)
        tried += _hull_candidates(problem, search, effort, laplace_error)
        least = min([laplace_error, *(candidate.error for candidate in tried)])
        tried += _split_candidates(problem, search, effort, least)
    best = min(tried, key=lambda candidate: candidate.error, default=None)
    if best is None or not best.error < WORTH * laplace_error:
        return None
    bound = max(candidate.least_error for candidate in tried)
    names = [
        {"name": _name(candidate), "error": candidate.error, "iterations": 0} for candidate in tried
    ]
    details = {"winner": _name(best), "candidates": names, "effort": effort, "interrupted": False}
    return replace(best, details=details, least_error=min(bound, best.error))


def _is_small(problem: Problem) -> bool:
    """Whether a body may be found in a few seconds: the rank is small, and cheap to know."""
    queries = problem.merged.queries
    m, n = queries.shape
    if m * n > MOST_ENTRIES:
        return False
    if not problem.is_reduced and min(m, n) > MOST_UNREDUCED:
        return False
    return len(problem.reduced) <= MOST_RANK and bool(problem.reduced.any())


def _over_products(
    problem: Problem, search: Search, laplace_error: float, effort: Effort
) -> ShapedChoice | TablesChoice | None:
    """The same for a batch over products whose merged cells are few enough to be listed."""
    assert problem.products is not None  # noqa: S101 - asked of products alone
    tables = _one_way(problem, laplace_error)
    if tables is not None:
        return tables
    if not has_few_cells(problem, effort, "laplace"):
        return None
    merged = merge_values(problem.products)
    if min(merged.batch.queries, merged.cells) > MOST_UNREDUCED:
        return None
    flat, reduction = flat_problem(problem)
    flat_choice = shaped_strategy(flat, search, laplace_error, effort)
    if not isinstance(flat_choice, ShapedChoice):
        return None
    return replace(flat_choice, cell_map=lift(flat_choice.cell_map, reduction))


@dataclass(frozen=True, eq=False)
class TablesChoice:
    """One-way tables of attributes, and a body for their noise; members as in `ShapedChoice`."""

    mechanism: str
    labels: tuple[NDArray[np.int64], ...]
    tables: tuple[int, ...]
    shape: TableGroups
    error: float
    exact: bool = True
    least_error: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def rounded(
        self, problem: Problem, noise: Noise, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        """The integers that will be measured, with their body, and how answers follow."""
        del noise
        bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
        measured = Measured.of_tables(self.labels, self.tables, bits, self.shape.body(1 << bits))
        reconstruction = measured.reconstruction_of(problem.workload.queries)
        if reconstruction is None:
            raise ConvergenceError("the tables do not answer the queries")
        return measured, reconstruction


def _one_way(problem: Problem, laplace_error: float) -> TablesChoice | None:
    """Tables for a batch of one-way queries over a product of any size."""
    batch = problem.products
    if batch is None or (batch.choice != 0).sum(axis=1).max() > 1:
        return None
    labels = merge_values(batch).labels
    tables = tuple(int(i) for i in np.flatnonzero((batch.choice != 0).any(axis=0)))
    sizes = [int(labels[i].max()) + 1 for i in tables]
    if not tables or sum(sizes) > MOST_TABLE_CELLS:
        return None
    rows = one_way_rows(batch, labels, tables)
    if rows is None:
        return None
    weighted = rows * np.repeat(batch.weights, batch.term_queries())[:, None]
    target = np.asarray(np.linalg.qr(weighted, mode="r"))
    best = _GroupErrors(target, table_coordinates(sizes), [True] * len(sizes)).best()
    if best is None or not best[0] < WORTH * laplace_error:
        return None
    error, shape, order = best
    details = {
        "winner": "tables",
        "candidates": [{"name": "tables", "error": error, "iterations": 0}],
        "effort": "quick",
        "interrupted": False,
    }
    ordered_tables = tuple(tables[i] for i in order)
    return TablesChoice("best", labels, ordered_tables, shape, error, details=details)


def _name(choice: ShapedChoice) -> str:
    if not isinstance(choice.shape, TableGroups):
        return "hull" if isinstance(choice.shape, Hull) else "hull by parts"
    return f"tables in {len(choice.shape.groups)} groups"


# --- tables -------------------------------------------------------------------------------------


def _table_candidates(problem: Problem) -> list[ShapedChoice]:
    tables = _tables_of(problem)
    if tables is None:
        return []
    basis = np.linalg.qr(problem.reduced.T)[0]  # merged cells × rank
    solver = _GroupErrors(
        problem.reduced @ basis,
        [table.rows @ basis for table in tables],
        [table.closed for table in tables],
    )
    best = solver.best()
    if best is None:
        return []
    error, shape, order = best
    rows = np.vstack([tables[i].rows for i in order])
    merged = problem.merged
    return [ShapedChoice("best", merged.cell_map, merged.queries, rows, shape, error)]


@dataclass(frozen=True, eq=False)
class _Table:
    """Disjoint rows of 0 and 1 over merged cells; closed if they count every record."""

    rows: Floats
    closed: bool


def _tables_of(problem: Problem) -> list[_Table] | None:
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
        _Table(np.array(table), bool(np.array_equal(cells > 0, counted)))
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


class _GroupErrors:
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
            candidate = self.error(partition)
            if candidate is not None and (best is None or candidate[0] < best[0]):
                best = candidate
        if best is None or len(best[1].groups) == 1:
            return best
        error, shape = self.better_shares(best[1], best[2], best[0])
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

    def error(self, partition: list[list[int]]) -> tuple[float, TableGroups, list[int]] | None:
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

    def better_shares(
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


# --- hulls --------------------------------------------------------------------------------------


def _hull_candidates(
    problem: Problem, search: Search, effort: Effort, laplace_error: float
) -> list[ShapedChoice]:
    """The hull of the columns, and the hull with free points."""
    reduced = problem.reduced
    k, n = reduced.shape
    if n > HULL_CELLS.get(k, 0) or not search.clock.affords(1.0):
        return []
    rng = np.random.default_rng(search.seed)
    outwards = 1 + MARGINS[0] * rng.uniform(1.0, 2.0, (n, 1))
    columns = np.asarray(reduced.T * outwards)
    hull = Hull.of(columns)
    if hull is None:
        return []
    best, rounds = hull, 0

    def on_round(error: float) -> None:
        nonlocal rounds
        rounds += 1
        search.clock.tick(Step("shaped noise", rounds, min(error, laplace_error)))

    if len(hull.facets) <= (FREE_FACETS if k <= HIGH_RANK else HIGH_FACETS):
        typical = math.sqrt(2 * hull.error / ((k + 1) * (k + 2)))
        starts = []
        for each, length in FREE_STARTS:
            points = rng.standard_normal((round(each * k), k))
            starts.append(points * (length * typical / np.linalg.norm(points, axis=1))[:, None])
        moved = free_points(columns, starts, FREE_WORK[effort], on_round)
        best = moved or hull
    used = np.unique(np.abs(best.facets)) - 1
    outer = [i for i in used if i >= n]
    # Columns inside the hull are no vertices; all that are, and the free points, define it.
    points = np.vstack([reduced.T[used[used < n]], best.points[outer].reshape(-1, k)])
    rows, change = _rows_of(problem)
    shape = replace(best, points=points @ change.T)
    merged = problem.merged
    return [
        ShapedChoice(
            "best",
            merged.cell_map,
            merged.queries,
            rows,
            shape,
            best.error,
            least_error=volume_bound(hull.volume, k),
        )
    ]


def _split_candidates(
    problem: Problem, search: Search, effort: Effort, least: float
) -> list[ShapedChoice]:
    """The hull of the columns by rejection, where it is better than all else by a margin."""
    columns = np.asarray(problem.reduced.T)
    n, k = columns.shape
    if not LEAST_SPLIT <= k <= MOST_SPLIT or not k < n <= MOST_SPLIT_CELLS:
        return []
    if not search.clock.affords(SPLIT_SECONDS[effort]):
        return []
    sample = estimate_hull(columns)
    error = float(np.trace(sample.second_moment)) / 2
    known = sample.effective >= LEAST_EFFECTIVE
    if known and not error < SPLIT_WORTH * least:
        return []
    search.clock.tick(Step("shaped noise", 1, min(error, least) if known else least))
    tables = _tables_of(problem)
    listed = None if tables is None else [table.rows for table in tables]
    best = best_split(columns, sample, listed, DRAW_SECONDS)
    if best is None:
        return []
    split, body, _ = best
    if not known:
        sample = estimate_hull(body.points.astype(np.float64), body.leaves)
        back = la.lstsq(split.rows.T, columns, check_finite=False)[0] * 2.0**-split.bits
        error = float(np.trace(back.T @ sample.second_moment @ back)) / 2
        if sample.effective < LEAST_EFFECTIVE or not error < SPLIT_WORTH * least:
            return []
    factors = np.maximum(problem.merged.cell_map.largest_factors(), 1).astype(np.float64)
    merged = problem.merged
    rows = split.rows / factors
    return [ShapedChoice("best", merged.cell_map, merged.queries, rows, split, error)]


def volume_bound(volume: float, k: int) -> float:
    """Half of the least E|z|² of added noise, for the hull of the columns in orthonormal axes.

    ``½k(k + 1)·(volume/v_k)^(2/k)``, v_k the volume of the unit ball: see the page. The margin is
    that of the vertices and of float64.

    >>> round(volume_bound(2.0, 1), 2)
    1.0
    """
    ball = k / 2 * math.log(math.pi) - math.lgamma(k / 2 + 1)
    return k * (k + 1) / 2 * math.exp(2 / k * (math.log(volume) - ball)) * (1 - 1e-3)


def _rows_of(problem: Problem) -> tuple[Floats, Floats]:
    """Rows to measure that span those of the batch, and how they follow from the reduced ones.

    Independent rows of a whole-number batch are exact in integers; else the reduced rows are
    measured, at a size at which no weight is above 1.
    """
    reduced, queries = problem.reduced, problem.merged.queries
    factors = np.maximum(problem.merged.cell_map.largest_factors(), 1).astype(np.float64)
    plain = reduced / factors
    if queries.is_integer():
        matrix = queries.dense()
        _, corner, order = la.qr(matrix.T, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diag(corner))
        rank = int(np.sum(sizes > sizes[0] * 1e-10))
        if rank == len(reduced):
            rows = matrix[np.sort(order[:rank])]
            return rows, np.asarray(la.lstsq(plain.T, rows.T, check_finite=False)[0].T)
    size = 1.0 / np.abs(plain).max()
    return plain * size, np.eye(len(reduced)) * size
