"""The matrix mechanism in the paper's L2 approximation (its Appendix B)."""

from __future__ import annotations

from lrm.errors import UsageError
from lrm.exact.rows import SECONDS_PER_STEP
from lrm.solvers.matrix_mechanism import optimise_gram
from lrm.strategies.base import Problem, Search, Strategy

__all__ = ["matrix"]

LARGEST = 4096
"""Merged cells up to which the n×n eigendecompositions of each round are affordable."""


def matrix(problem: Problem, search: Search) -> Strategy:
    """Minimise ``max diag(M)·tr(WᵀW M⁻¹)`` over M ≻ 0 and measure ``L = M^½``.

    The program bounds columns in L2; the noise is Laplace all the same, scaled by the L1
    norms of the result, as in the paper. That mismatch is why it loses to noise on data.
    """
    cells = problem.merged.cell_map
    if cells.merged_size > LARGEST:
        raise UsageError(
            f"the matrix mechanism needs n×n arrays of {cells.merged_size:,} cells; "
            f"it is supported up to {LARGEST:,}"
        )
    # Its first round takes several eigendecompositions of n×n arrays.
    search = problem.timely(search, "matrix", first=2 * SECONDS_PER_STEP * cells.merged_size**3)
    optimum = optimise_gram(problem.reduced, clock=search.clock)
    facts = {
        "rounds": optimum.rounds,
        "converged": optimum.converged,
        "interrupted": search.clock.interrupted,
    }
    return Strategy("matrix", cells, problem.from_reduced(optimum.strategy), facts=facts)
