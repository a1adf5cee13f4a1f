"""The paper's mechanism: Algorithm 1 on the reduced workload, made exact.

See ``docs/explanation/mechanism.md``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lrm.errors import UsageError
from lrm.planning.design.cells import CellMap
from lrm.planning.solvers.exact import make_exact
from lrm.planning.solvers.lagrangian import Schedule, decompose
from lrm.planning.strategies.base import Problem, Search, Strategy
from lrm.queries.maps.matrices import DenseMap


def lowrank(  # noqa: PLR0913 - the parameters of the paper
    problem: Problem,
    search: Search,
    *,
    rank: int | None = None,
    rank_ratio: float = 1.2,
    gamma: float = 0.01,
    exact: bool = True,
) -> Strategy:
    """Factor ``W ≈ B·L`` by the inexact augmented Lagrangian of the paper.

    Parameters
    ----------
    problem, search
        The workload, and the progress callback.
    rank
        Number of measurements r; by default ``rank_ratio`` times the rank of W.
    rank_ratio
        r over rank(W), where ``rank`` is not given. The paper's choice is 1.2.
    gamma
        The paper's relaxation: iterate until ``‖W − B·L‖_F ≤ gamma``.
    exact
        True: the result is then corrected so that ``W = B·L`` holds. False: the relaxed
        program of the paper, whose answers carry a bias that depends on the data; the plan
        states how far one record can move an answer.
    """
    # It begins with a decomposition of R and ends with least-squares problems of that size.
    once = problem.decomposition_seconds
    search = problem.timely(search, "lowrank", first=once, last=3 * once)
    R = problem.reduced
    k, n = R.shape
    r = math.ceil(rank_ratio * k - 1e-9) if rank is None else rank
    if r < (k if exact else 1):
        raise UsageError(
            f"an exact factorisation needs at least rank(W) = {k} measurements, not {r}; "
            "ask for more, or for exact=False"
        )
    if not gamma > 0:
        raise UsageError(f"gamma must be above 0, not {gamma}; the paper uses 0.01")
    # The authors' later variant for Gaussian noise projects onto L2 balls instead.
    schedule = Schedule(norm=search.norm.order)
    if not exact:  # as printed, the relaxed program ends at gamma
        schedule = replace(schedule, slack=None)
    # A merged column stands for several of the workload: its residual counts as often.
    copies = int(np.bincount(problem.merged.cell_map.index, minlength=n).max())
    decomposition = decompose(
        R,
        r,
        gamma=gamma / math.sqrt(copies),
        rng=search.rng(),
        schedule=schedule,
        clock=search.clock,
    )
    facts = {
        "rank_of_workload": k,
        "rounds": len(decomposition.rounds),
        "gamma": gamma,
        "residual": decomposition.residual,
        "converged": decomposition.converged,
        "interrupted": search.clock.interrupted,
    }
    cells = problem.merged.cell_map
    if exact:
        pair = make_exact(R, decomposition.B, decomposition.L)
        return Strategy("lowrank", cells, problem.from_reduced(pair.strategy), facts=facts)
    return _relaxed(problem, cells, decomposition.B, decomposition.L, facts)


def _relaxed(
    problem: Problem, cells: CellMap, B: np.ndarray, L: np.ndarray, facts: dict[str, object]
) -> Strategy:
    """Keep the pair as the algorithm left it, with B mapped back to all queries."""
    back = problem.merged.queries.dense() @ np.linalg.pinv(problem.reduced / problem.factors)
    return Strategy(
        "lowrank",
        cells,
        problem.from_reduced(L),
        reconstruction=DenseMap(back @ B),
        exact=False,
        facts=facts,
    )
