"""What other mechanisms would have made of the same batch, query by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lrm.accuracy import Accuracy
from lrm.errors import ConvergenceError, UsageError
from lrm.maps.linear import Floats
from lrm.plans import Plan
from lrm.plans.planner import plan_of
from lrm.strategies import Problem, Search, build_strategy

__all__ = ["Rival", "rivals_of"]

SMALL_BATCH = 1 << 22
"""Weights (queries times cells) up to which trees are built to compare with."""

TREES = ("hierarchical", "wavelet")


@dataclass(frozen=True, eq=False)
class Rival:
    """A mechanism and the standard error of each query under it."""

    mechanism: str
    errors: Floats

    @property
    def total(self) -> float:
        """Expected squared error, summed over the batch."""
        return float((self.errors**2).sum())


def rivals_of(plan: Plan, accuracy: Accuracy, *, trees: bool = True) -> list[Rival]:
    """Rivals that need no search: noise on cells, noise on answers, and trees.

    Parameters
    ----------
    plan
        Whose batch and noise they share.
    accuracy
        Of the plan at the promise: rivals are rated at the same.
    trees
        Whether to build trees too, which takes longer.
    """
    queries = plan.workload.queries
    squares = np.concatenate([(block**2).sum(axis=1) for _, block in queries.row_blocks()])
    if plan.noise == "laplace":
        worst = float(queries.column_absolute_sums().max())
    else:
        worst = float(np.sqrt(queries.column_squared_sums().max()))
    found = [
        Rival("noise-on-data", np.sqrt(squares) * accuracy.ideal_deviation(1.0)),
        Rival("noise-on-results", np.full(len(squares), accuracy.ideal_deviation(worst))),
    ]
    if trees and queries.shape[0] * queries.shape[1] <= SMALL_BATCH:
        found += [rival for name in TREES if (rival := _tree(plan, name, accuracy))]
    return [rival for rival in found if rival.mechanism != plan.mechanism]


def _tree(plan: Plan, name: str, accuracy: Accuracy) -> Rival | None:
    problem = Problem(plan.workload)
    bounds = plan.least_error, plan.spectrum
    try:
        strategy = build_strategy(name, problem, Search(0, noise=plan.noise), {})
        other = plan_of(problem, strategy, noise=plan.noise, bounds=bounds)
    except (UsageError, ConvergenceError):
        return None  # it cannot run on this batch
    errors = np.sqrt(other.reconstruction_map.row_squared_norms) * accuracy.ideal_deviation(
        other.sensitivity
    )
    return Rival(name, errors)
