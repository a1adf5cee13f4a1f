"""The best strategy for Gaussian noise: a convex program, solved with a proof."""

from __future__ import annotations

from typing import Any

from lrm.solvers.gaussian import optimise_gaussian
from lrm.strategies.base import Problem, Search, Strategy

__all__ = ["best_gaussian"]

TOLERANCES = {"quick": 1e-2, "normal": 1e-3, "thorough": 1e-5}
"""How far above the least possible error the result may be, by effort."""


def best_gaussian(problem: Problem, search: Search, effort: str) -> Strategy:
    """Minimise ``‖B‖²`` with every column of L in the unit L2 ball, to a certified ratio."""
    found = optimise_gaussian(problem.reduced, tolerance=TOLERANCES[effort], on_step=search.on_step)
    details: dict[str, Any] = {
        "winner": "L2 optimum",
        "candidates": [{"name": "L2 optimum", "error": found.upper, "iterations": found.rounds}],
        "effort": effort,
        "converged": found.converged,
        "interrupted": found.interrupted,
    }
    return Strategy(
        "best",
        problem.merged.cells,
        problem.from_reduced(found.L),
        least_error=found.lower,
        details=details,
    )
