"""What the baselines offer on a problem: their errors by closed forms, and starts from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lrm.exact.cells import CellMap
from lrm.maps.levels import LevelMap
from lrm.maps.linear import Floats
from lrm.solvers import settings
from lrm.solvers.race import Candidate
from lrm.strategies.base import Problem, Search, SearchRecord, Strategy
from lrm.strategies.naive import naive_errors, noise_on_data, noise_on_results
from lrm.strategies.trees import haar_tree, total_tree
from lrm.workload import weigh_rows

__all__ = ["PROVEN", "BaselineResult", "baselines", "best_baseline", "is_proven", "own_rows"]


MOST_ROWS = 512
"""A batch of more queries than this is not taken for its own strategy."""

PROVEN = 1.0 + 1e-9
"""A baseline no more above a bound on all strategies is the best of them, but for rounding."""


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
    on_data, on_results = naive_errors(problem, search.noise)
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
        error = problem.tree_error(tree, search.noise)
        results.append(BaselineResult(name, error, partial(Strategy, "tree", cells, tree)))
    return results


def is_proven(problem: Problem, results: Sequence[BaselineResult]) -> bool:
    """Whether the best of them reaches a bound on all strategies: no search can find a better."""
    return min(result.error for result in results) <= PROVEN * problem.quick_bound


def _trees(cells: int) -> Iterator[tuple[str, LevelMap]]:
    yield "wavelet", haar_tree(cells)
    for fanout in settings.BASELINE_FANOUTS:
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
    if problem.workload.shape[0] > min(MOST_ROWS, 4 * len(problem.reduced)):
        return None
    rows = weigh_rows(problem.merged.queries, problem.workload.importance).dense()
    return np.asarray(rows * np.maximum(problem.merged.cell_map.largest_factors(), 1))
