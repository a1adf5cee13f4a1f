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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from lrm.clock import Step
from lrm.errors import ConvergenceError, StopSolver, WorkloadError
from lrm.exact.cells import CellMap
from lrm.exact.measured import Measured
from lrm.exact.reconstruction import Reconstruction
from lrm.exact.rounding import DEFAULT_MAX_RECORDS, FINE_MAX_RECORDS, most_bits
from lrm.maps.linear import Floats, LinearMap
from lrm.maps.matrices import DenseMap, SparseMap
from lrm.maps.products.values import merge_values
from lrm.privacy.bodies.base import MOST_COLUMNS
from lrm.privacy.bodies.facets import MOST_FACETS
from lrm.privacy.bodies.sampling import Sample
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import Noise
from lrm.solvers.hulls import Hull, lower_error, short_points, verified_body
from lrm.strategies.base import Problem, Search
from lrm.strategies.best import has_few_cells
from lrm.strategies.products import flat_problem, lift
from lrm.strategies.shaped_products import TablesChoice, tables_strategy
from lrm.strategies.shaped_tables import (
    CubeSides,
    GroupErrors,
    TableGroups,
    partitions_of,
    tables_of,
)
from lrm.strategies.split_hulls import Split, best_split, estimate_hull, split_body

__all__ = ["ShapedChoice", "shaped_strategy", "volume_bound"]

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

FREE_WORK: dict[Effort, tuple[int, int, float]] = {
    "quick": (60, 512, 0.8),
    "normal": (120, 1024, 5.0),
    "thorough": (300, 2048, 20.0),
}
"""Rounds of the search for free points, directions for each, and seconds at most."""

FREE_SECONDS, FEWEST_ROUNDS = 2.2e-9, 15
"""Seconds per direction, point and squared dimension; rounds below which there is no search."""

FREE_COLUMNS = 16
"""Merged cells per dimension above which free points do not lower the error."""

FREE_POINTS: dict[Effort, int] = {"quick": 2, "normal": 4, "thorough": 4}
"""Free points per dimension."""

FREE_LISTED = {8: 20, 9: 9, 10: 6}
"""Free points where facets are listed: their number grows by half with each point."""

FREE_FACETS: dict[Effort, int] = {"quick": 4000, "normal": 10_000, "thorough": 20_000}
"""Facets of a hull above which no free points are looked for: they multiply."""

WORTH = 0.998
"""A body must have an error below this share of that of Laplace noise."""

LEAST_SPLIT, MOST_SPLIT, MOST_SPLIT_CELLS = 7, 20, 2048
"""Ranks, and merged cells, of hulls that are sampled by rejection."""

SPLIT_WORTH, LEAST_EFFECTIVE = 0.97, 200.0
"""Such hulls must be better than all else by 3 %, by a sample that is worth this many points."""

SPLIT_SECONDS: dict[Effort, float] = {"quick": 3.0, "normal": 10.0, "thorough": 10.0}
"""Seconds that must be left to look for them."""

DRAW_SECONDS = 10.0
"""Seconds that a draw may take in the mean: a twelfth of what ends it with an error."""

MARGINS = (2e-5, 2e-4, 2e-3)
"""How far vertices are moved outwards, so that facets are simplices and hold the columns."""

PATTERNS = 0.985
"""Errors of yes/no patterns count for this share: at ε = 1 their lattice saves 5 % for two counts
and 2 % for five, free points up to 1.1 % (``python -m benchmarks shaped --only yes/no``)."""


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
    replaced
        Whether the body need only hold half of what replacing a record moves.
    least_error
        A number that it is not below for any noise that is added; 0 where none is known.
    """

    mechanism: str
    cell_map: CellMap
    queries: LinearMap
    rows: Floats
    shape: TableGroups | CubeSides | Hull | Split
    error: float
    exact: bool = True
    replaced: bool = False
    least_error: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def is_simulated(self) -> bool:
        """Whether the error is an estimate."""
        return isinstance(self.shape, Split)

    def rounded(
        self, problem: Problem, noise: Noise, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        """The integers that will be measured, with their body, and how answers follow."""
        del problem, noise
        measured = self._measured(max_records)
        return measured, measured.reconstruct(self.queries)

    def _measured(self, max_records: int | None) -> Measured:
        if isinstance(self.shape, TableGroups | CubeSides):
            bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
            matrix = SparseMap(sp.csr_array(self.rows * 2.0**bits))
            body = self.shape.body(1 << bits)
            return Measured.of_cells(
                matrix, self.cell_map, bits, None, body, replaced=self.replaced
            )
        if np.array_equal(self.rows, np.rint(self.rows)):
            bits = min(24, most_bits(max_records or DEFAULT_MAX_RECORDS))
        else:
            bits = most_bits(max_records or FINE_MAX_RECORDS)
        # Half of a difference must be whole.
        rounded_rows = np.rint(self.rows * 2.0 ** (bits - self.replaced)) * 2.0**self.replaced
        if isinstance(self.shape, Split):
            moved = (rounded_rows * self.cell_map.largest_factors()).T.astype(np.int64)
            try:
                parts = split_body(moved, self.shape, bits)
            except WorkloadError as reason:
                raise ConvergenceError(str(reason)) from None
            return Measured.of_cells(DenseMap(rounded_rows), self.cell_map, bits, None, parts)
        for margin in MARGINS:
            outer = verified_body(self.shape.points * 2.0**bits, margin)
            if outer is not None:
                try:
                    dense = DenseMap(rounded_rows)
                    return Measured.of_cells(
                        dense, self.cell_map, bits, None, outer, replaced=self.replaced
                    )
                except WorkloadError:  # a column is not inside: a wider margin
                    continue
        raise ConvergenceError("the facets of the hull cannot be listed in integers")


def shaped_strategy(
    problem: Problem,
    search: Search,
    laplace_error: float,
    effort: Effort = "normal",
    *,
    replaced: bool = False,
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
    replaced
        Whether units are replaced: a body may then hold differences of columns, rather than twice
        the columns.
    """
    if search.clock.ended:
        return None
    if problem.products is not None:
        return _over_products(problem, search, laplace_error, effort, replaced=replaced)
    if not _is_small(problem):
        return None
    tried: list[ShapedChoice] = []
    with suppress(StopSolver):  # what was found before it is kept
        tried += _table_candidates(problem)
        if replaced:
            tried += _replaced_candidates(problem, search, effort, laplace_error)
        least = min([laplace_error, *(candidate.error for candidate in tried)])
        tried += _hull_candidates(problem, search, effort, least)
    best = min(tried, key=_preference, default=None)
    if best is None or not best.error < WORTH * laplace_error:
        return None
    bound = max(candidate.least_error for candidate in tried)
    names = [
        {"name": _name(candidate), "error": candidate.error, "iterations": 0} for candidate in tried
    ]
    details = {"winner": _name(best), "candidates": names, "effort": effort, "interrupted": False}
    return replace(best, details=details, least_error=min(bound, best.error))


def _preference(candidate: ShapedChoice) -> float:
    """The error, a little less for patterns, whose noise has a lattice."""
    shape = candidate.shape
    has_lattice = isinstance(shape, TableGroups) and shape.body(1).pattern_unit > 0
    return candidate.error * (PATTERNS if has_lattice else 1.0)


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
    problem: Problem, search: Search, laplace_error: float, effort: Effort, *, replaced: bool
) -> ShapedChoice | TablesChoice | None:
    """The same for a batch over products whose merged cells are few enough to be listed."""
    assert problem.products is not None  # noqa: S101 - asked of products alone
    tables = tables_strategy(problem, search, laplace_error)
    if tables is not None and tables.is_one_way and not replaced:
        return tables
    if not has_few_cells(problem, effort, "laplace"):
        return tables
    merged = merge_values(problem.products)
    if min(merged.batch.queries, merged.cells) > MOST_UNREDUCED:
        return tables
    flat, reduction = flat_problem(problem)
    least = laplace_error if tables is None else min(laplace_error, tables.error)
    flat_choice = shaped_strategy(flat, search, least, effort, replaced=replaced)
    if not isinstance(flat_choice, ShapedChoice):
        return tables
    return replace(flat_choice, cell_map=lift(flat_choice.cell_map, reduction))


def _name(choice: ShapedChoice) -> str:
    if isinstance(choice.shape, CubeSides):
        return "cube"
    if choice.replaced:
        return "hull of differences"
    if not isinstance(choice.shape, TableGroups):
        return "hull" if isinstance(choice.shape, Hull) else "hull by parts"
    return f"tables in {len(choice.shape.bodies)} groups"


def _table_candidates(problem: Problem) -> list[ShapedChoice]:
    tables = tables_of(problem)
    if tables is None:
        return []
    basis = np.linalg.qr(problem.reduced.T)[0]  # merged cells × rank

    def group_of(group: Sequence[int]) -> tuple[Floats, Tables]:
        rows = np.vstack([tables[i].rows for i in group])
        sizes = tuple(len(tables[i].rows) for i in group)
        return rows @ basis, Tables(sizes, tuple(tables[i].closed for i in group), 1)

    solver = GroupErrors(problem.reduced @ basis, group_of)
    best = solver.best(partitions_of([len(table.rows) for table in tables]))
    if best is None:
        return []
    best = solver.with_better_shares(best)
    rows = np.vstack([tables[i].rows for i in best.order])
    merged = problem.merged
    return [ShapedChoice("best", merged.cell_map, merged.queries, rows, best.shape, best.error)]


# --- hulls --------------------------------------------------------------------------------------


def _replaced_candidates(
    problem: Problem, search: Search, effort: Effort, least: float
) -> list[ShapedChoice]:
    """Bodies of half of what replacing a record moves: the cube for 0/1 rows, and hulls."""
    merged = problem.merged
    tried: list[ShapedChoice] = []
    if not set(np.unique(merged.cell_map.factor).tolist()) <= {0, 1}:
        return []
    tables = tables_of(problem)
    if tables is not None:
        rows = np.vstack([table.rows for table in tables])
        k = len(rows)
        if k <= MOST_RANK:
            back = la.lstsq(rows.T, problem.reduced.T, check_finite=False)[0]
            error = float((back**2).sum()) * (k + 1) * (k + 2) / 24.0
            shape = CubeSides(k)
            choice = ShapedChoice("best", merged.cell_map, merged.queries, rows, shape, error)
            tried.append(replace(choice, replaced=True))
    columns = np.column_stack([problem.reduced, np.zeros(len(problem.reduced))]).T
    if len(columns) <= MOST_COLUMNS:
        first, second = np.triu_indices(len(columns), 1)
        halves = (columns[first] - columns[second]) / 2
        signs = np.sign(halves[np.arange(len(halves)), np.argmax(halves != 0, axis=1)])
        halves = np.unique(np.round(halves * signs[:, None], 12), axis=0)
        candidates = _hull_candidates(problem, search, effort, least, halves)
        tried += [replace(choice, replaced=True, least_error=0.0) for choice in candidates]
    return tried


def _hull_candidates(
    problem: Problem, search: Search, effort: Effort, least: float, held: Floats | None = None
) -> list[ShapedChoice]:
    """Hulls of the columns and free points: by their facets, and by rejection where that is better.

    Parameters
    ----------
    least
        The least error so far.
    held
        In place of the columns: what a body by facets is to hold.
    """
    columns = np.asarray(problem.reduced.T) if held is None else held
    n, k = columns.shape
    is_listed = n <= HULL_CELLS.get(k, 0) and search.clock.affords(1.0)
    is_split = LEAST_SPLIT <= k <= MOST_SPLIT and k <= n <= MOST_SPLIT_CELLS
    is_split = is_split and held is None and search.clock.affords(SPLIT_SECONDS[effort])
    if not is_listed and not is_split:
        return []
    rounds = 0

    def on_round(error: float) -> None:
        nonlocal rounds
        rounds += 1
        search.clock.tick(Step("shaped noise", rounds, min(error, least)))

    sample = estimate_hull(columns)
    candidates = []
    if is_listed:
        candidates += _by_facets(problem, columns, sample, effort, on_round)
        least = min([least, *(candidate.error for candidate in candidates)])
    if is_split:
        candidates += _by_parts(problem, sample, effort, least, on_round)
    return candidates


def _free_points(
    columns: Floats, sample: Sample, count: int, effort: Effort, on_round: Callable[[float], None]
) -> Floats:
    """Points to add to the hull of the columns; none where they would not lower its error."""
    n, k = columns.shape
    rounds, directions, seconds = FREE_WORK[effort]
    rounds = min(rounds, int(seconds / (FREE_SECONDS * directions * (n + count) * k * k)))
    if n > FREE_COLUMNS * k or rounds < FEWEST_ROUNDS:
        return np.empty((0, k))
    points = short_points(sample, count)
    start = estimate_hull(np.vstack([columns, points]))
    return lower_error(columns, points, start.second_moment, rounds, directions, on_round)


def _by_facets(
    problem: Problem,
    held: Floats,
    sample: Sample,
    effort: Effort,
    on_round: Callable[[float], None],
) -> list[ShapedChoice]:
    """The hull by the list of its facets, with free points where they lower its error."""
    n, k = held.shape
    outwards = 1 + MARGINS[0] * np.random.default_rng(0).uniform(1.0, 2.0, (n, 1))
    columns = np.asarray(held * outwards)
    hull = Hull.of(columns)
    if hull is None:
        return []
    best = hull
    if len(hull.facets) <= FREE_FACETS[effort]:
        count = FREE_LISTED.get(k, FREE_POINTS[effort] * k)
        with suppress(StopSolver):
            free = _free_points(columns, sample, count, effort, on_round)
            more = Hull.of(np.vstack([columns, free]))
            if more is not None and more.error < hull.error and len(more.facets) <= MOST_FACETS:
                best = more
    used = np.unique(np.abs(best.facets)) - 1
    outer = [i for i in used if i >= n]
    # Columns inside the hull are no vertices; all that are, and the free points, define it.
    points = np.vstack([held[used[used < n]], best.points[outer].reshape(-1, k)])
    rows, change = _rows_of(problem)
    shape = replace(best, points=points @ change.T)
    merged = problem.merged
    bound = volume_bound(hull.volume, k)
    return [
        ShapedChoice(
            "best", merged.cell_map, merged.queries, rows, shape, best.error, least_error=bound
        )
    ]


def _by_parts(
    problem: Problem,
    sample: Sample,
    effort: Effort,
    least: float,
    on_round: Callable[[float], None],
) -> list[ShapedChoice]:
    """The hull by rejection, with free points, where it is better than all else by a margin."""
    columns = np.asarray(problem.reduced.T)
    k = columns.shape[1]
    tables = tables_of(problem)
    listed = None if tables is None else [table.rows for table in tables]
    free = _free_points(columns, sample, FREE_POINTS[effort] * k, effort, on_round)
    for points in ([free] if len(free) else []) + [free[:0]]:
        known = sample
        if len(points):
            known = estimate_hull(np.vstack([columns, points]))
        error = float(np.trace(known.second_moment)) / 2
        is_known = known.effective >= LEAST_EFFECTIVE
        if is_known and not error < SPLIT_WORTH * least:
            continue
        on_round(error if is_known else least)
        best = best_split(columns, points, known, listed, DRAW_SECONDS)
        if best is None:
            continue
        split, body, _ = best
        if not is_known:
            better = estimate_hull(body.points.astype(np.float64), body.leaves)
            back = la.lstsq(split.rows.T, columns, check_finite=False)[0] * 2.0**-split.bits
            error = float(np.trace(back.T @ better.second_moment @ back)) / 2
            if better.effective < LEAST_EFFECTIVE or not error < SPLIT_WORTH * least:
                continue
        factors = np.maximum(problem.merged.cell_map.largest_factors(), 1).astype(np.float64)
        merged = problem.merged
        rows = split.rows / factors
        return [ShapedChoice("best", merged.cell_map, merged.queries, rows, split, error)]
    return []


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
