"""The baselines: noise on data and on results, trees, the matrix mechanism; their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from lrm.errors import UsageError, WorkloadError
from lrm.planning.design.cells import SECONDS_PER_STEP, CellMap
from lrm.planning.limits import MEMORY, SIDE
from lrm.planning.solvers.gaussian import optimise_gaussian
from lrm.planning.solvers.race import Candidate
from lrm.planning.strategies.base import Problem, Search, SearchRecord, Strategy
from lrm.privacy.norms import Norm
from lrm.queries.maps.levels import LevelMap
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.matrices import SparseMap

PROVEN = 1.0 + 1e-6
"""A baseline no more above a bound on all strategies is the best of them, but for what rounding to
integers costs. The bound itself leaves room for float64, 7·10⁻⁹ over a million cells."""


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """A baseline's strategy, made when it is wanted, and its (weighted) error."""

    name: str
    error: float
    make: Callable[[], Strategy]


def baselines(problem: Problem, search: Search) -> list[BaselineResult]:
    """Every baseline that costs next to nothing; noise on data and on results in any case.

    Trees over very many cells take their time: when that is up, the others are left out. So are
    all of them where one of the first two is proven to be the best of all strategies.
    """
    on_data, on_results = naive_errors(problem, search.norm)
    results = [
        BaselineResult("noise-on-data", on_data, partial(noise_on_data, problem, search)),
        BaselineResult("noise-on-results", on_results, partial(noise_on_results, problem, search)),
    ]
    if is_proven(problem, results):
        return results
    cells = CellMap.trivial(problem.cell_count)
    for name, tree in _trees(problem.cell_count):
        if search.clock.ended:
            break
        error = problem.tree_error(tree, search.norm)
        results.append(BaselineResult(name, error, partial(Strategy, "tree", cells, tree)))
    return results


def is_proven(problem: Problem, results: Sequence[BaselineResult]) -> bool:
    """Whether the best of them reaches a bound on all strategies: no search can find a better."""
    return min(result.error for result in results) <= PROVEN * problem.quick_bound


def _trees(cells: int) -> Iterator[tuple[str, LevelMap]]:
    yield "wavelet", haar_tree(cells)
    # Fan-outs of the trees that no plan of few cells is worse than.
    for fanout in (2, 3, 4, 5, 8, 16):
        yield f"tree, fan-out {fanout}", total_tree(cells, fanout)
        yield f"tree, fan-out {fanout}, no root", total_tree(cells, fanout, root=False)


def best_baseline(results: Sequence[BaselineResult], *, interrupted: bool = False) -> Strategy:
    """The baseline of least error, where nothing else is affordable or can be better."""
    best = min(results, key=lambda result: result.error)
    candidates = tuple(Candidate(baseline.name, baseline.error, 0) for baseline in results)
    record = SearchRecord(best.name, candidates, not interrupted, interrupted)
    return replace(best.make(), mechanism="best", facts={}, record=record)


def own_rows(problem: Problem) -> Floats | None:
    """The queries themselves over merged cells, weighted, or None where they are very many."""
    # A batch of more queries than this is not taken for its own strategy.
    if problem.workload.shape[0] > min(512, 4 * len(problem.reduced)):
        return None
    return np.asarray(problem.scaled_queries.dense())


def noise_on_data(problem: Problem, search: Search) -> Strategy:
    """Measure every cell: ``L = I``, ``B = W``. Error ``‖W‖_F²``."""
    del search
    cells = problem.cell_count
    return Strategy(
        "noise-on-data", CellMap.trivial(cells), SparseMap(sp.eye_array(cells, format="csr"))
    )


def noise_on_results(problem: Problem, search: Search) -> Strategy:
    """Measure every query itself: ``L = W``, ``B = I``. Error ``m·(max_j Σ_i |W_ij|)²``.

    The answers are not made consistent with each other: this is the Laplace mechanism as
    it stands, in which each answer carries its own noise. Where the queries are a list, cells that
    none of them distinguishes are merged first: a thousand ranges of a million cells are few
    weights then.
    """
    del search
    queries, cells = problem.workload.queries, CellMap.trivial(problem.cell_count)
    if problem.products is None and queries.entry_count > MEMORY // 2:
        queries, cells = problem.merged.queries, problem.merged.cell_map
    m = queries.shape[0]
    if queries.entry_count > MEMORY // 2:
        raise WorkloadError(
            f"noise on results would measure all {m:,} queries one by one; choose another mechanism"
        )
    return Strategy(
        "noise-on-results",
        cells,
        queries.written_out(),
        reconstruction=SparseMap(sp.eye_array(m, format="csr")),
    )


def naive_errors(problem: Problem, norm: Norm) -> tuple[float, float]:
    """(Weighted) error of noise on data and of noise on results, without building either."""
    queries, weight = problem.workload.queries, problem.workload.importance
    count = queries.shape[0] if weight is None else float(weight.sum())
    square = float(queries.column_power_sums(norm.order).max()) ** norm.power
    return problem.weighted_squared_norm(), count * square


def _fanouts(cells: int, fanout: int) -> tuple[int, ...]:
    """The levels of ``fanout`` that it takes to cover ``cells`` leaves."""
    levels = 0
    while fanout**levels < cells:
        levels += 1
    return (fanout,) * levels


def haar_tree(cells: int) -> LevelMap:
    """The Haar wavelet with every coefficient weighted to ±1: sensitivity 1 + log₂ n.

    >>> haar_tree(4).dense()
    array([[ 1., -1.,  0.,  0.],
           [ 0.,  0.,  1., -1.],
           [ 1.,  1., -1., -1.],
           [ 1.,  1.,  1.,  1.]])
    """
    fanouts = _fanouts(cells, 2)
    return LevelMap(cells, fanouts, (0.0, *(1.0,) * len(fanouts), 1.0), contrast=True)


def total_tree(cells: int, fanout: int, *, root: bool = True) -> LevelMap:
    """Totals of all blocks of a tree of one fan-out, all of weight 1."""
    fanouts = _fanouts(cells, fanout)
    top = 1.0 if root or not fanouts else 0.0
    return LevelMap(cells, fanouts, (*(1.0,) * len(fanouts), top))


def wavelet(problem: Problem, search: Search) -> Strategy:
    """Privelet: the Haar wavelet transform with its weights, any n by padding.

    Reference: Xiao, Wang, Gehrke, "Differential privacy via wavelet transforms", ICDE 2010,
    arXiv:0909.5530.
    """
    del search
    cells = problem.cell_count
    return Strategy("wavelet", CellMap.trivial(cells), haar_tree(cells))


def hierarchical(
    problem: Problem, search: Search, *, fanout: int = 2, root: bool = True
) -> Strategy:
    """Totals of all blocks of a tree, made consistent by least squares, any n by padding.

    Reference: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private
    histograms through consistency", VLDB 2010, arXiv:0904.0942.
    """
    del search
    if fanout < 2:
        raise UsageError(f"fanout must be at least 2, not {fanout}")
    cells = problem.cell_count
    tree = total_tree(cells, fanout, root=root)
    facts = {"fanout": fanout, "root": root}
    return Strategy("hierarchical", CellMap.trivial(cells), tree, facts=facts)


def matrix(problem: Problem, search: Search) -> Strategy:
    """Minimise ``max diag(M)·tr(WᵀW M⁻¹)`` over M ≻ 0 and measure ``L = M^½``.

    The program is that of Gaussian noise, which bounds columns in L2; the noise is Laplace all the
    same, scaled by the L1 norms of the result, as in the paper. That mismatch is why it loses to
    noise on data.

    Reference: Li, Hay, Rastogi, Miklau, McGregor, "Optimizing linear counting queries under
    differential privacy", PODS 2010, arXiv:0912.4742.
    """
    cells = problem.merged.cell_map
    if cells.merged_size > SIDE:
        raise UsageError(
            f"the matrix mechanism needs n×n arrays of {cells.merged_size:,} cells; "
            f"it is supported up to {SIDE:,}"
        )
    # The root of M takes a few eigendecompositions' time.
    root_seconds = 2 * SECONDS_PER_STEP * cells.merged_size**3
    search = problem.timely(search, "matrix", first=root_seconds, last=root_seconds)
    optimum = optimise_gaussian(problem.reduced, clock=search.clock)
    facts = {
        "rounds": optimum.rounds,
        "converged": optimum.converged,
        "interrupted": search.clock.interrupted,
    }
    M = optimum.L.T @ optimum.L
    values, vectors = la.eigh(M, check_finite=False)
    # Least eigenvalue of its M over the largest diagonal entry: L then determines every cell.
    values = np.maximum(values, 1e-8 * float(np.diag(M).max(initial=0.0)))
    root = (vectors * np.sqrt(values)) @ vectors.T
    return Strategy("matrix", cells, problem.from_reduced(root), facts=facts)
