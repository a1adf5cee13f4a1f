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

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from lrm.clock import Clock, Step
from lrm.errors import ConvergenceError, StopSolver, WorkloadError
from lrm.planning.design.cells import CellMap
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.design.rounding import (
    DEFAULT_MAX_RECORDS,
    FINE_MAX_RECORDS,
    independent_rows,
    most_bits,
)
from lrm.planning.limits import ARRAY
from lrm.planning.solvers import settings
from lrm.planning.solvers.hulls import Hull, MetFacets, lower_error, short_points
from lrm.planning.solvers.race import Candidate
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies.base import Choice, Problem, Search
from lrm.planning.strategies.best import has_few_cells
from lrm.planning.strategies.products import flat_problem, lift
from lrm.planning.strategies.shaped_tables import (
    GroupErrors,
    TableGroups,
    TablesChoice,
    partitions_of,
    tables_of,
    tables_strategy,
)
from lrm.planning.strategies.split_hulls import (
    MARGINS,
    Split,
    best_split,
    estimate_hull,
    is_believed,
    split_body,
    verified_bodies,
)
from lrm.privacy.bodies.base import MOST_COLUMNS
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.facets import MOST_FACETS
from lrm.privacy.bodies.gauges import minimise
from lrm.privacy.bodies.sampling import Ellipsoid, Sample
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.norms import BodyNorm, Norm
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.matrices import DenseMap, SparseMap
from lrm.queries.maps.products.values import merge_values


@dataclass(frozen=True, eq=False)
class ShapedChoice(Choice):
    """Rows to measure and a body for their noise, in real numbers.

    Parameters
    ----------
    cell_map, queries
        The merged cells, and the workload over them.
    rows
        What is measured, over merged cells: rows of 0 and 1 for tables.
    shape
        The body: groups of tables, points whose hull it is, or the hull of the columns by parts.
    error
        Half of the expected total squared error at ε = 1, before rounding.
    replaced
        Whether the body need only hold half of what replacing a record moves.
    least_error
        A number that it is not below for any noise that is added; 0 where none is known.
    """

    cell_map: CellMap
    queries: LinearMap
    rows: Floats
    shape: TableGroups | Hull | Split
    error: float
    replaced: bool = False
    least_error: float = field(default=0.0, kw_only=True)

    @classmethod
    def of(
        cls,
        problem: Problem,
        rows: Floats,
        shape: TableGroups | Hull | Split,
        error: float,
        least_error: float = 0.0,
    ) -> ShapedChoice:
        """Rows over the merged cells of a problem."""
        merged = problem.merged
        return cls(
            "best", merged.cell_map, merged.queries, rows, shape, error, least_error=least_error
        )

    @property
    def is_simulated(self) -> bool:
        return isinstance(self.shape, Split)

    def round(
        self, problem: Problem, norm: Norm, max_records: int | None
    ) -> tuple[Measured, Reconstruction]:
        del problem, norm  # that of the body
        measured = self._measured(max_records)
        return measured, measured.reconstruct(self.queries)

    def _measured(self, max_records: int | None) -> Measured:
        if isinstance(self.shape, TableGroups):
            bits = min(30, most_bits(max_records or DEFAULT_MAX_RECORDS))
            whole_rows = SparseMap(sp.csr_array(self.rows * 2.0**bits))
            body = self.shape.body(1 << (bits - self.replaced))
            norm = BodyNorm(body, self.replaced)
            return Measured.of_cells(whole_rows, self.cell_map, bits, None, norm)
        if np.array_equal(self.rows, np.rint(self.rows)):
            bits = min(24, most_bits(max_records or DEFAULT_MAX_RECORDS))
        else:
            bits = most_bits(max_records or FINE_MAX_RECORDS)
        # Half of a difference must be whole.
        rounded_rows = np.rint(self.rows * 2.0 ** (bits - self.replaced)) * 2.0**self.replaced
        matrix = DenseMap(rounded_rows)
        if isinstance(self.shape, Split):
            moved = (rounded_rows * self.cell_map.largest_factors()).T.astype(np.int64)
            try:
                parts = split_body(moved, self.shape, bits)
            except WorkloadError as reason:
                raise ConvergenceError(str(reason)) from None
            return Measured.of_cells(matrix, self.cell_map, bits, None, BodyNorm(parts))
        for outer in verified_bodies(self.shape.points * 2.0**bits):
            with suppress(WorkloadError):  # a column is not inside: a wider margin
                norm = BodyNorm(outer, self.replaced)
                return Measured.of_cells(matrix, self.cell_map, bits, None, norm)
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
    laplace_error
        Half of the expected total squared error at ε = 1 of the best Laplace strategy.
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
        tried += table_candidates(problem, search.clock)
        if replaced:
            tried += replaced_candidates(problem, search, effort, laplace_error)
        least = min([laplace_error, *(candidate.error for candidate in tried)])
        tried += hull_candidates(problem, search, effort, least)
    best = min(tried, key=_preference, default=None)
    if best is None or not best.error < laplace_error:
        return None
    # What hulls of columns prove is about records that are added or removed; about replaced ones
    # nothing is proven.
    bound = 0.0 if replaced else max(candidate.least_error for candidate in tried)
    candidates = [Candidate(_name(candidate), candidate.error, 0) for candidate in tried]
    record = search.record(_name(best), candidates, effort)
    return replace(best, record=record, least_error=min(bound, best.error))


def _preference(candidate: ShapedChoice) -> float:
    """The error, a little less for patterns, whose noise has a lattice."""
    shape = candidate.shape
    has_lattice = isinstance(shape, TableGroups) and shape.body(1).pattern_unit > 0
    # Errors of yes/no patterns count for this share: at ε = 1 their lattice saves 5 % for two
    # counts and 2 % for five, free points up to 1.1 %.
    return candidate.error * (0.985 if has_lattice else 1.0)


def _is_small(problem: Problem) -> bool:
    """Whether a body may be found in a few seconds: the rank is small, and cheap to know."""
    queries = problem.merged.queries
    m, n = queries.shape
    if m * n > ARRAY * 2:
        return False
    if not problem.is_reduced and min(m, n) > settings.SHAPED_UNREDUCED:
        return False
    return len(problem.reduced) <= settings.SHAPED_RANK and bool(problem.reduced.any())


def _over_products(
    problem: Problem, search: Search, laplace_error: float, effort: Effort, *, replaced: bool
) -> ShapedChoice | TablesChoice | None:
    """The body of least error for a batch over products; a list of few cells is tried too."""
    assert problem.products is not None  # noqa: S101 - asked of products alone
    tables = tables_strategy(problem, search, laplace_error)
    if tables is not None and tables.is_one_way and not replaced:
        return tables
    if not has_few_cells(problem, effort, search):
        return tables
    merged = merge_values(problem.products)
    if min(merged.batch.queries, merged.cells) > settings.SHAPED_UNREDUCED:
        return tables
    flat, reduction = flat_problem(problem)
    least = laplace_error if tables is None else min(laplace_error, tables.error)
    flat_choice = shaped_strategy(flat, search, least, effort, replaced=replaced)
    if not isinstance(flat_choice, ShapedChoice):
        return tables
    return replace(flat_choice, cell_map=lift(flat_choice.cell_map, reduction))


def _name(choice: ShapedChoice) -> str:
    if isinstance(choice.shape, TableGroups):
        return "cube" if choice.replaced else f"tables in {len(choice.shape.bodies)} groups"
    if choice.replaced:
        return "hull of differences"
    return "hull" if isinstance(choice.shape, Hull) else "hull by parts"


def table_candidates(problem: Problem, clock: Clock) -> list[ShapedChoice]:
    """Tables of few cells with a body; none where the batch is no list of tables."""
    tables = tables_of(problem, settings.TABLE_CELLS)
    if tables is None:
        return []
    basis = np.linalg.qr(problem.reduced.T)[0]  # merged cells × rank

    def group_of(group: Sequence[int]) -> tuple[Floats, Tables]:
        rows = np.vstack([tables[i].rows for i in group])
        sizes = tuple(len(tables[i].rows) for i in group)
        return rows @ basis, Tables(sizes, tuple(tables[i].closed for i in group), 1)

    solver = GroupErrors(problem.reduced @ basis, group_of)
    best = solver.best(partitions_of([len(table.rows) for table in tables]), clock)
    if best is None:
        return []
    best = solver.with_better_shares(best)
    rows = np.vstack([tables[i].rows for i in best.order])
    return [ShapedChoice.of(problem, rows, best.shape, best.error)]


def replaced_candidates(
    problem: Problem, search: Search, effort: Effort, least: float
) -> list[ShapedChoice]:
    """Bodies of half of what replacing a record moves: the cube for 0/1 rows, and hulls."""
    tried: list[ShapedChoice] = []
    if not set(np.unique(problem.merged.cell_map.factor).tolist()) <= {0, 1}:
        return []
    tables = tables_of(problem)
    if tables is not None:
        rows = np.vstack([table.rows for table in tables])
        k = len(rows)
        if k <= settings.SHAPED_RANK:
            back = la.lstsq(rows.T, problem.reduced.T, check_finite=False)[0]
            error = float((back**2).sum()) * (k + 1) * (k + 2) / 24.0
            cube = TableGroups((Cube(k, 1),), (1.0,))
            choice = ShapedChoice.of(problem, rows, cube, error)
            tried.append(replace(choice, replaced=True))
    columns = np.column_stack([problem.reduced, np.zeros(len(problem.reduced))]).T
    if len(columns) <= MOST_COLUMNS:
        first, second = np.triu_indices(len(columns), 1)
        halves = (columns[first] - columns[second]) / 2
        signs = np.sign(halves[np.arange(len(halves)), np.argmax(halves != 0, axis=1)])
        halves = np.unique(np.round(halves * signs[:, None], 12), axis=0)
        candidates = hull_candidates(problem, search, effort, least, halves)
        tried += [replace(choice, replaced=True, least_error=0.0) for choice in candidates]
    return tried


def hull_candidates(
    problem: Problem, search: Search, effort: Effort, least: float, held: Floats | None = None
) -> list[ShapedChoice]:
    """Hulls of the columns and free points: by their facets, and by rejection where that is better.

    Better than ``least``, the least error so far. ``held`` is what a body by facets is to hold, in
    place of the columns.
    """
    columns = np.asarray(problem.reduced.T) if held is None else held
    n, k = columns.shape
    is_listed = n <= settings.HULL_CELLS.get(k, 0) and search.clock.affords(1.0)
    # Merged cells of hulls that are sampled by rejection, and these times squared ranks.
    is_split = 7 <= k <= settings.MOST_SPLIT and k <= n <= 2048 and n * k * k <= 530_000
    is_split = (
        is_split and held is None and search.clock.affords(settings.BUDGETS[effort].free_seconds)
    )
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
    # Where facets can be listed with as many free points, rejection gains nothing.
    enough = settings.FREE_LISTED.get(k, math.inf) >= settings.BUDGETS["quick"].free_points * k
    if is_split and not (candidates and enough):
        candidates += _by_parts(problem, sample, effort, least, on_round)
    return candidates


def _free_points(
    columns: Floats, sample: Sample, count: int, effort: Effort, on_round: Callable[[float], None]
) -> Floats:
    """Points to add to the hull of the columns; none where they would not lower its error."""
    n, k = columns.shape
    budget = settings.BUDGETS[effort]
    rounds, fewest = budget.free_rounds, budget.free_directions
    seconds = budget.free_seconds
    # Seconds of a round of the search for free points, per direction, point and squared dimension.
    each = 2.2e-9 * (n + count) * k * k
    rounds = min(rounds, int(seconds / (fewest * each)))
    # Merged cells per dimension above which free points do not lower the error.
    if n > 16 * k or rounds < 1:
        return np.empty((0, k))
    points = short_points(sample.directions, sample.weights, sample.second_moment, count)
    start = estimate_hull(np.vstack([columns, points]))
    # Most directions of a round.
    directions = min(1024, int(seconds / (rounds * each)))
    rng = np.random.default_rng(0)

    def meet(generators: Floats, moment: Floats) -> MetFacets:
        ellipsoid = Ellipsoid(la.cholesky(moment, lower=True))
        return minimise(generators, ellipsoid.draw(directions, rng))

    return lower_error(columns, points, start.second_moment, rounds, meet, on_round)


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
    count = settings.FREE_LISTED.get(k, settings.BUDGETS[effort].free_points * k)
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
    return [ShapedChoice.of(problem, rows, shape, best.error, volume_bound(hull.volume, k))]


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
    free = _free_points(columns, sample, settings.BUDGETS[effort].free_points * k, effort, on_round)
    plain_error = float(np.trace(sample.second_moment)) / 2
    for points in ([free] if len(free) else []) + [free[:0]]:
        known = sample
        if len(points):
            known = estimate_hull(np.vstack([columns, points]))
        error = float(np.trace(known.second_moment)) / 2
        is_known = is_believed(known)
        if is_known and not error < settings.SPLIT_WORTH * least:
            continue
        if len(points) and not error < settings.FREE_WORTH * plain_error:
            continue
        on_round(error if is_known else least)
        # Seconds that a draw may take in the mean: a fortieth of what ends it with an error.
        most = 0.5 if len(points) else 3.0
        best = best_split(columns, points, known, listed, most)
        if best is None:
            continue
        split, body = best
        if not is_known:
            better = estimate_hull(body.points.astype(np.float64), body.leaves)
            back = la.lstsq(split.rows.T, columns, check_finite=False)[0] * 2.0**-split.bits
            error = float(np.trace(back.T @ better.second_moment @ back)) / 2
            if not is_believed(better) or not error < settings.SPLIT_WORTH * least:
                continue
        return [ShapedChoice.of(problem, split.rows / problem.factors, split, error)]
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
    plain = reduced / problem.factors
    matrix = queries.dense()
    if not queries.is_integer():  # 0/1 rows with importances
        matrix = matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-300)
    if np.array_equal(matrix, np.rint(matrix)):
        rows = matrix[independent_rows(matrix)]
        if len(rows) == len(reduced):
            return rows, np.asarray(la.lstsq(plain.T, rows.T, check_finite=False)[0].T)
    size = 1.0 / np.abs(plain).max()
    return plain * size, np.eye(len(reduced)) * size
