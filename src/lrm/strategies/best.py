"""The best known strategy: a portfolio that is never worse than what it starts from."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Literal

import numpy as np

from lrm.errors import ConvergenceError, StopSolver, UsageError
from lrm.linear_maps import AllRanges, Floats, Prefix
from lrm.reduce import CellMap
from lrm.solvers.general import general_start
from lrm.solvers.portfolio import search as search_portfolio
from lrm.solvers.progress import Step
from lrm.strategies.base import Problem, Search, Strategy
from lrm.strategies.gaussian import best_gaussian
from lrm.strategies.large import best_naive, best_tree
from lrm.strategies.lowrank import lowrank
from lrm.strategies.naive import naive_errors, noise_on_data, noise_on_results
from lrm.strategies.trees import haar_tree, total_tree

__all__ = ["best"]

Effort = Literal["quick", "normal", "thorough"]
EFFORTS = ("quick", "normal", "thorough")

FANOUTS = (2, 3, 4, 5, 8, 16)
"""Fan-outs of the trees that are starts; the hierarchical mechanism offers any."""


GENERAL_WORK = {"quick": 2e9, "normal": 2e10, "thorough": 1e12}
"""Multiplications that each effort spends on a start with fewer rows than cells."""

LOWRANK_WORK = {"quick": 0.0, "normal": 1e5, "thorough": 1e8}
"""Size (rank² × cells) up to which the paper's algorithm is run for a start."""

PROMISING_WORK = {"quick": 0.0, "normal": 5e6, "thorough": 1e9}
"""The same where strategies with fewer rows than cells are near the best."""

TREE_CELLS = 2048
"""Prefix sums and all ranges over more cells are measured by weighted trees."""

DENSE_CELLS = 10_000
"""Merged cells up to which the general solvers run: their arrays are rank × cells."""


def best(problem: Problem, search: Search, *, effort: Effort = "normal") -> Strategy:
    """Search for the strategy of least error, from every start that a rival offers.

    Parameters
    ----------
    problem, search
        The workload, and whom to report to.
    effort
        How long to look: ``"quick"``, ``"normal"`` or ``"thorough"``.
    """
    if effort not in EFFORTS:
        raise UsageError(f"effort must be one of {', '.join(EFFORTS)}, but {effort!r} came")
    queries = problem.workload.queries
    if isinstance(queries, Prefix | AllRanges) and queries.cells > TREE_CELLS:
        if problem.workload.importance is not None:
            raise UsageError(
                f"importance is not supported for {queries.kind} over more than {TREE_CELLS} cells"
            )
        return best_tree(problem, queries, search)
    if problem.merged.cells.merged_size > DENSE_CELLS or not problem.reduced.any():
        return best_naive(problem, search)
    if search.noise == "gaussian":
        return best_gaussian(problem, search, effort)
    rival_error, rival = _best_rival(problem, search)
    starts, stopped = _starts(problem, search, effort, rival_error)
    if effort == "thorough":  # else it costs a third of the time, and gained 0.3 % at most
        starts.append(_rival_start(problem, rival))
    found = search_portfolio(
        problem.reduced,
        effort=effort,
        rng=search.rng(),
        on_step=_stop if stopped else search.on_step,
        extra_starts=starts,
    )
    details = {
        "winner": found.winner,
        "candidates": [
            {"name": c.name, "error": c.error, "iterations": c.iterations} for c in found.candidates
        ],
        "effort": effort,
        "converged": found.converged,
        "interrupted": found.interrupted,
    }
    if rival_error < found.error:
        return replace(rival, mechanism="best", details={**details, "winner": rival.mechanism})
    matrix = problem.from_reduced(found.strategy)
    return Strategy("best", problem.merged.cells, matrix, details=details)


def _starts(
    problem: Problem, search: Search, effort: Effort, best_known: float
) -> tuple[list[Floats], bool]:
    """Strategies with fewer rows than cells, and whether the search was stopped meanwhile."""
    R, starts, stopped = problem.reduced, [], False
    general = general_start(
        R, best_known, work=GENERAL_WORK[effort], rng=search.rng(), on_step=search.on_step
    )
    if general is not None:
        starts.append(general.pair.strategy.toarray())
        stopped = general.interrupted
    work = LOWRANK_WORK[effort] if general is None else PROMISING_WORK[effort]
    if not stopped and R.size * len(R) <= work:
        # The paper's strategy, so that the result is not worse than that one either.
        with suppress(ConvergenceError):
            papers = lowrank(problem, search)
            stopped = bool(papers.details["interrupted"])
            factors = np.maximum(problem.merged.cells.largest_factors(), 1)
            starts.append(papers.matrix.dense() * factors)
    return starts, stopped


def _stop(step: Step) -> None:
    """Pass a Ctrl-C of an earlier stage on to the next one."""
    raise StopSolver(step)


def _best_rival(problem: Problem, search: Search) -> tuple[float, Strategy]:
    """The rival of least (weighted) error among those that cost next to nothing."""
    cells = CellMap.trivial(problem.cells)
    trees = [haar_tree(problem.cells)]
    trees += [total_tree(problem.cells, f, root=root) for f in FANOUTS for root in (True, False)]
    candidates = [
        (
            problem.tree_error(tree),
            Strategy("a wavelet" if tree.contrast else "a tree", cells, tree),
        )
        for tree in trees
    ]
    on_data, on_results = naive_errors(problem, search.noise)
    candidates.append((on_data, noise_on_data(problem, search)))
    best_error, rival = min(candidates, key=lambda candidate: candidate[0])
    if on_results < best_error:
        return on_results, noise_on_results(problem, search)
    return best_error, rival


def _rival_start(problem: Problem, rival: Strategy) -> Floats:
    """The best rival, restricted to one cell of each class of merged ones.

    A strategy for all cells, kept only at the cells that represent their class, still
    rebuilds every query and has no larger sensitivity: it can only have become better.
    """
    start = rival.matrix.columns(problem.merged.representatives).dense()
    return np.asarray(start[np.any(start != 0, axis=1)])
