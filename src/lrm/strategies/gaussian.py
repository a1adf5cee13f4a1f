"""The best strategy for Gaussian noise: a convex program, solved with a proof."""

from __future__ import annotations

from lrm.maps.linear import Floats
from lrm.solvers import settings
from lrm.solvers.gaussian import GaussianResult, optimise_gaussian
from lrm.solvers.gaussian_chain import find_chain, optimise_chain
from lrm.solvers.race import Candidate
from lrm.strategies.base import Problem, Search, SearchRecord, Strategy

__all__ = ["best_gaussian", "has_fast_optimum"]


EXACT_INTEGERS = 2.0**53
"""Sums of whole numbers below this are exact in float64."""


def has_fast_optimum(problem: Problem, search: Search, effort: str) -> bool:
    """Whether ``best_gaussian`` is affordable without ``problem.reduced``."""
    queries = problem.workload.queries
    return (
        search.noise == "gaussian"
        and effort != "quick"
        and queries.has_closed_forms
        and problem.workload.importance is None
        and 2 <= queries.shape[1] <= settings.CHAIN_CELLS
    )


def best_gaussian(problem: Problem, search: Search, effort: str) -> Strategy:
    """Minimise ``‖B‖²`` with every column of L in the unit L2 ball, to a certified ratio."""
    optimum = _optimise(problem, search, settings.GAUSSIAN_TOLERANCES[effort])
    candidates = (Candidate("L2 optimum", optimum.upper, optimum.rounds),)
    interrupted = search.clock.interrupted
    record = SearchRecord("L2 optimum", candidates, optimum.converged, interrupted, effort)
    return Strategy(
        "best",
        problem.merged.cell_map,
        problem.from_reduced(optimum.L),
        least_error=optimum.lower,
        record=record,
    )


def _optimise(problem: Problem, search: Search, tolerance: float) -> GaussianResult:
    gram = _exact_gram(problem)
    chain = None if gram is None else find_chain(gram)
    if chain is not None:
        chain_optimum = optimise_chain(chain, tolerance=tolerance, clock=search.clock)
        if chain_optimum.converged or search.clock.must_end():
            return chain_optimum
    return optimise_gaussian(problem.reduced, tolerance=tolerance, clock=search.clock)


def _exact_gram(problem: Problem) -> Floats | None:
    """``WᵀW`` over the merged cells, where it is free of rounding and may be a chain's.

    Half of the digits of a badly conditioned W would be lost in a rounded one.
    """
    queries, cells = problem.merged.queries, problem.merged.cell_map
    if problem.workload.importance is not None:
        return None
    if queries.has_closed_forms:
        return queries.gram()
    m, n = queries.shape
    if m < n or not queries.is_integer() or cells.largest_factors().max() > 1:
        return None
    if queries.squared_norm() >= EXACT_INTEGERS:
        return None
    return queries.gram()
