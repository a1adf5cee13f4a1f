"""Strategies for domains on which nothing dense can be built.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import ceil

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from lrm.clock import Step
from lrm.errors import StopSolver
from lrm.planning.design.inverses import left_inverse
from lrm.planning.design.plus_rows import BLOCK_CELLS
from lrm.planning.design.reconstruction import FlatReconstruction
from lrm.planning.limits import MEMORY
from lrm.planning.solvers import settings
from lrm.planning.solvers.extra_rows import with_cells
from lrm.planning.solvers.gram_operators import GramOperator, gram_operator
from lrm.planning.solvers.own_rows import optimise_own_rows
from lrm.planning.solvers.periodic_rows import (
    along,
    optimise_periodic_rows,
    polish_segments,
    range_correlation,
    ring_size,
)
from lrm.planning.solvers.race import Candidate
from lrm.planning.solvers.sparse_rows import (
    local_basis,
    local_gram,
    local_strategy,
    optimise_sparse_rows,
    row_count,
    stages,
)
from lrm.planning.strategies.base import Problem, Search, SearchRecord, Strategy
from lrm.queries.maps.levels import LevelMap, level_energies, level_sizes
from lrm.queries.maps.linear import Floats, LinearMap
from lrm.queries.maps.matrices import SparseMap


def best_long(problem: Problem, search: Search, effort: str) -> Strategy:
    """The better of a weighted tree and of sparse rows, for prefix sums and all ranges."""
    tree = best_tree(problem, search)
    if effort == "quick" or search.is_gaussian:
        return tree
    return add_rows(problem, search, effort, tree)


def add_rows(problem: Problem, search: Search, effort: str, known: Strategy) -> Strategy:
    """The better of what is known and of sparse rows in addition to the identity."""
    queries = problem.scaled_queries
    # Queries up to which they are measured themselves, where the cells are far more.
    if 2 * queries.shape[0] < queries.shape[1] and queries.shape[0] <= 2048:
        known = _add_own_rows(problem, search, known)
    if search.clock.must_end():
        return known
    # Prefix sums and all ranges are too long for rows that repeat, and to be written out.
    if not queries.has_closed_forms and problem.has_long_ranges:
        reach = _reach(queries)
        known = _add_periodic_rows(problem, search, effort, known)
        # Where it goes into the cells more often than this, no rows but those that repeat are
        # tried: beside them, sparse rows had 2.4 % less error at 8 (4,096 cells), and 5 to 10 %
        # more at 16, at quick effort (python -m benchmarks long).
        if search.clock.must_end() or 12 * reach <= queries.shape[1]:
            return known
    chain, basis = queries.gram_chain(), None
    if (
        chain is not None
        and queries.shape[1] > settings.LOCAL_CELLS
        and queries.shape[1] % BLOCK_CELLS == 0
    ):
        basis = local_basis()
        gram: GramOperator = local_gram(chain, basis)
    else:
        gram = gram_operator(queries)
    rows = row_count(gram.cells)
    levels = stages(gram.cells, rows)
    # Seconds of one core, per row and cell, that it takes to round a strategy and to invert it.
    search = search.less(1.5e-7 * rows * queries.shape[1])
    sparse_rows = optimise_sparse_rows(
        gram,
        rows,
        levels[:1] if effort == "quick" else levels,
        rng=search.rng(),
        nonnegative=queries.is_nonnegative(),
        hopeless=3.0 * _record(known).error,
        clock=search.clock,
    )
    candidate = Candidate("sparse rows", sparse_rows.error, sparse_rows.iterations)
    if basis is None:
        make, base = partial(with_cells, sparse_rows.rows), "identity"
    else:
        make, base = (
            partial(local_strategy, sparse_rows.rows, basis),
            f"basis of {BLOCK_CELLS} cells",
        )
    winner = f"{base} and {sparse_rows.rows.shape[0]} sparse rows"
    record = search.record(winner, [candidate], effort, converged=sparse_rows.converged)
    return _better(problem, known, record, make)


def _add_periodic_rows(problem: Problem, search: Search, effort: str, known: Strategy) -> Strategy:
    """The better of what is known and of rows that repeat along the cells, for short ranges.

    What is known where ranges are too long compared with the cells.
    """
    queries = problem.scaled_queries
    ranges, cells = queries.weighted_ranges(), queries.shape[1]
    if ranges is None or queries.entry_count > MEMORY:
        return known
    reach = _reach(queries)
    if ring_size(reach) > cells:
        return known
    lengths = np.asarray(ranges.last - ranges.first + 1)
    correlation = range_correlation(lengths, ranges.weights, cells)
    periodic = optimise_periodic_rows(correlation, rng=search.rng(), clock=search.clock)
    rows = along(periodic.rows, cells)
    error = _rows_error(queries, rows)
    if effort != "quick" and not search.clock.must_end():
        # Segments are improved one by one, each beside rows that may have moved: compare.
        polished = polish_segments(queries.sparse(), rows, reach, clock=search.clock)
        after = _rows_error(queries, polished)
        if after < error:
            rows, error = polished, after
    strategy = with_cells(rows)
    winner = f"identity and {rows.shape[0]} local rows"
    candidate = Candidate("periodic rows", error, periodic.iterations)
    record = search.record(winner, [candidate], effort)
    return _better(problem, known, record, lambda: strategy)


def _reach(queries: LinearMap) -> int:
    """Cells of the longest range."""
    ranges = queries.weighted_ranges()
    assert ranges is not None  # noqa: S101 - asked of ranges
    return int((ranges.last - ranges.first).max()) + 1


def _rows_error(queries: LinearMap, rows: sp.csr_array) -> float:
    """``‖W·L⁺‖²`` with an identity and some rows, through the inverse that a plan would use."""
    strategy = SparseMap(with_cells(rows))
    return FlatReconstruction(queries, strategy, left_inverse(strategy)).squared_norm


def _add_own_rows(problem: Problem, search: Search, known: Strategy) -> Strategy:
    """The better of what is known and of the queries themselves with weights."""
    W = problem.scaled_queries.sparse()
    own_rows = optimise_own_rows(W, clock=search.clock)
    candidate = Candidate("own rows", own_rows.error, own_rows.iterations)
    record = search.record("weighted queries and cells", [candidate])
    return _better(problem, known, record, partial(own_rows.strategy, W))


def _record(strategy: Strategy) -> SearchRecord:
    assert strategy.record is not None  # noqa: S101 - one that was searched for
    return strategy.record


def _better(
    problem: Problem, known: Strategy, record: SearchRecord, make: Callable[[], sp.csr_array]
) -> Strategy:
    """The better of what is known and of a new candidate, with the candidates of both."""
    before = _record(known)
    joint = replace(
        record,
        candidates=(*before.candidates, *record.candidates),
        effort=record.effort or before.effort,
    )
    if before.error <= record.error:
        return replace(known, record=replace(joint, winner=before.winner))
    return Strategy("best", problem.merged.cell_map, problem.from_reduced(make()), record=joint)


def best_tree(problem: Problem, search: Search) -> Strategy:
    """The best weighted tree over all cells: fan-outs and one weight per level.

    With blocks of s_ℓ cells and weights w_ℓ ≥ 0 of its levels ℓ, a tree of totals has the error

        f(w) = ‖w‖² · Σ_ℓ e_ℓ / λ_ℓ,      λ_ℓ = Σ_{i ≤ ℓ} w_i² s_i,

    with level energies e_ℓ of the workload (``lrm.queries.maps.levels``) and the norm of the noise;
    a tree of contrasts has ``λ_ℓ = w_ℓ² d_ℓ``. On prefix sums and all ranges over 2,049 to 10⁶
    cells totals have less than half of the error of contrasts in L1 (Laplace noise), and more in L2
    (Gaussian), so these alone are tried with each.
    """
    queries = problem.workload.queries
    best_error, best, tried = np.inf, None, []
    candidates = [_contrasts(queries)] if search.is_gaussian else _totals(queries)
    for number, (error, tree) in enumerate(candidates, start=1):
        name = f"{'contrasts' if tree.contrast else 'tree'}, fan-out {tree.fanouts[0]}"
        tried.append(Candidate(name, error, 1))
        if error < best_error:
            best_error, best = error, tree
        try:
            search.clock.tick(Step("weighted trees", number, best_error))
        except StopSolver:
            break
    assert best is not None  # noqa: S101 - there is always a tree of fan-out 2
    winner = f"weighted tree, fan-outs {'·'.join(map(str, best.fanouts))}"
    return Strategy("best", problem.merged.cell_map, best, record=search.record(winner, tried))


def _totals(queries: LinearMap) -> Iterator[tuple[float, LevelMap]]:
    """Trees of totals with their least L1 errors."""
    n = queries.shape[1]
    for fanout in settings.TREE_FANOUTS:
        fanouts = _cover(n, fanout)
        energies, sizes = level_energies(queries, fanouts), _sizes(fanouts)
        starts = level_starts(len(sizes)) if fanout == 2 else [np.ones(len(sizes))]
        error, weights = level_weights(energies, sizes, starts)
        yield error, LevelMap(n, fanouts, tuple(map(float, weights)))


def _contrasts(queries: LinearMap) -> tuple[float, LevelMap]:
    """The tree of contrasts with its least L2 error: ``w ∝ (e/d)^¼``."""
    n = queries.shape[1]
    fanouts = _cover(n, 2)
    energies, sizes = level_energies(queries, fanouts), _sizes(fanouts)
    d = np.append(sizes[1:], sizes[-1])
    weights = (energies / d) ** 0.25
    weights /= np.linalg.norm(weights)
    tree = LevelMap(n, fanouts, (0.0, *map(float, weights)), contrast=True)
    return float(np.sum(energies / (weights**2 * d))), tree


def _cover(cells: int, fanout: int) -> tuple[int, ...]:
    """Levels of ``fanout`` with a smaller one on top, so that few leaves are too many."""
    fanouts: list[int] = []
    blocks = cells
    while blocks > fanout:
        fanouts.append(fanout)
        blocks = ceil(blocks / fanout)
    return (*fanouts, blocks) if blocks > 1 else tuple(fanouts)


def _sizes(fanouts: tuple[int, ...]) -> Floats:
    return np.array(level_sizes(fanouts), dtype=np.float64)


def tree_error(weights: Floats, energies: Floats, sizes: Floats) -> tuple[float, Floats]:
    """``f(w)`` in the L1 norm, and its gradient.

    >>> tree_error(np.array([1.0, 1.0]), np.array([1.0, 4.0]), np.array([1.0, 2.0]))[0]
    9.333333333333332
    """
    eigenvalues = np.cumsum(weights**2 * sizes)
    share = energies / eigenvalues
    square = weights.sum() ** 2
    later = np.cumsum((share / eigenvalues)[::-1])[::-1]
    gradient = 2 * weights.sum() * share.sum() - 2 * square * weights * sizes * later
    return float(square * share.sum()), gradient


def level_weights(
    energies: Floats, sizes: Floats, starts: Iterable[Floats]
) -> tuple[float, Floats]:
    """The least error and the weights that reach it, from the best of several starts."""

    def objective(weights: Floats) -> tuple[float, Floats]:
        value, gradient = tree_error(weights, energies, sizes)
        return float(np.log(value)), gradient / value

    best_error, best = np.inf, np.ones_like(energies)
    least = 1e-6  # a level with a smaller share of the weight is not measured at all
    bounds = [(least, None)] + [(0.0, None)] * (len(energies) - 1)
    for start in starts:
        shares = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        shares = shares / shares.sum()
        shares[1:][shares[1:] < least] = 0.0
        error, _ = tree_error(shares, energies, sizes)
        if error < best_error:
            best_error, best = error, shares
    return best_error, best


def level_starts(levels: int) -> list[Floats]:
    """Every evenly spaced choice of levels: the trees of fan-out b, b², b³, … among them."""
    starts = []
    for step in range(1, max(levels, 2)):
        for offset in range(step):
            start = np.full(levels, 1e-3)  # not 0: a level left out may still come in
            start[0] = 1.0
            start[offset::step] = 1.0
            starts.append(start)
    return starts
