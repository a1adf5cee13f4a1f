"""The weights of given sets: descent to a local optimum.

Counted work of all parts of the search is here too, in seconds of one core (see `lrm.clock`),
fitted to 50,000 calls in searches for twelve batches: within 25 % of the time of each.

See ``docs/explanation/products.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from lrm.clock import UNLIMITED, Clock
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.information import LEAST_LOG, FixedBases, SetWeights
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.subsets import Masks
from lrm.queries.maps.linear import Floats


class WeightedSets:
    """Sets with weights that sum to 1, and their log error at a point."""

    def __init__(self, sets: Masks, weights: Floats, value: float) -> None:
        self.sets, self.weights, self.value = sets, weights, value

    @property
    def error(self) -> float:
        """``(Σθ)²·Σ v/λ``."""
        return float(np.exp(self.value))


def descend_weights(  # noqa: PLR0913 - each is a choice of the caller
    point: FixedBases,
    sets: Masks,
    theta: Floats,
    *,
    tolerance: float = 1e-9,
    max_rounds: int = 300,
    clock: Clock = UNLIMITED,
) -> WeightedSets:
    """Descend on log θ from a start; sets whose weight vanishes are dropped.

    First a few rounds of ``θ_B ← θ_B·(θ_B·g_B)^⅓``, which never raise the error (each minimises
    a bound of ``Σ v/λ`` that is exact at the current θ and separable in θ), then L-BFGS.
    """
    problem = SetWeights(point, sets)
    theta = theta / theta.sum()
    error = problem.error(theta)
    if len(sets) == 1 or not np.isfinite(error):
        return WeightedSets(sets, theta, float(np.log(error)))
    for _ in range(6):
        _, gain = problem.error_and_gain(theta)
        theta = theta * np.cbrt(theta * gain)
        theta = np.maximum(theta / theta.sum(), 1e-12)
    optimum = minimize(
        problem.log_error,
        np.log(theta),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_rounds, "ftol": tolerance * 1e-2, "gtol": tolerance, "maxcor": 20},
    )
    clock.spend(weights_work(len(point.quadratic.index), len(sets), optimum.nfev + 6))
    theta = np.exp(np.maximum(optimum.x - optimum.x.max(), LEAST_LOG))
    return _pruned(point, sets, theta / theta.sum(), float(optimum.fun))


def _pruned(point: FixedBases, sets: Masks, theta: Floats, value: float) -> WeightedSets:
    """Drop the sets that no longer matter, if what is asked stays covered."""
    significant = theta > 1e-4 * theta.max()
    if significant.all():
        return WeightedSets(sets, theta, value)
    fewer = SetWeights(point, sets[significant])
    error = fewer.error(theta[significant])
    if np.log(error) > value + 1e-3:
        return WeightedSets(sets, theta, value)
    return WeightedSets(
        sets[significant], theta[significant] / theta[significant].sum(), float(np.log(error))
    )


def weights_work(subsets: int, sets: int, evaluations: int) -> float:
    """Seconds of a descent on the weights of some sets."""
    return 3.5e-4 + evaluations * (5.4e-5 + 1.0e-9 * subsets * sets)


def moves_work(subsets: int, moves: int) -> float:
    """Seconds of the scores of all neighbours of a family."""
    return 2.7e-4 + 1.6e-8 * subsets * moves


def settle_work(subsets: int, sets: int, moves: int, rounds: int) -> float:
    """Seconds of some rounds on the weights of many families at once."""
    return 1.1e-4 + rounds * (3.7e-5 + subsets * moves * (4.0e-9 + 2.2e-10 * sets))


def cover_work(sets: int) -> float:
    """Seconds of a greedy cover that ended with this number of sets."""
    return 2.7e-4 + 5.6e-5 * sets


def look_work(terms: int, attributes: int) -> float:
    """Seconds of a rough look at a group of terms, its merged values included."""
    return 1.3e-3 + 4e-6 * terms * attributes


def joint_work(quadratic: Quadratic, sets: int, bases: Sequence[MarginalBasis]) -> float:
    """Seconds of one evaluation of the error and its gradient by weights and bases."""
    work = 8e-4 + 2.2e-5 * len(quadratic.grams) + len(quadratic.index) * (1e-6 + 4.7e-8 * sets)
    for i, basis in enumerate(bases):
        if not basis.plain:
            grams = len(quadratic.of_attribute(i))
            work += basis.extra_rows.size * (3.9e-7 + 3.3e-8 * grams) + 6e-9 * basis.size**2 * grams
    return work
