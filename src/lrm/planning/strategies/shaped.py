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

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from lrm.clock import Clock
from lrm.errors import StopSolver
from lrm.planning.limits import ARRAY
from lrm.planning.solvers import settings
from lrm.planning.solvers.hulls import Hull
from lrm.planning.solvers.race import Candidate
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies.base import Problem, Search
from lrm.planning.strategies.best import has_few_cells
from lrm.planning.strategies.products import flat_problem, lift
from lrm.planning.strategies.shaped_hulls import ShapedChoice, hull_candidates, replaced_candidates
from lrm.planning.strategies.shaped_tables import (
    GroupErrors,
    TableGroups,
    TablesChoice,
    partitions_of,
    tables_of,
    tables_strategy,
)
from lrm.privacy.bodies.tables import Tables
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.products.values import merge_values


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
