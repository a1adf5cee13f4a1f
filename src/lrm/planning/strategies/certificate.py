"""How good a plan can be at best: bounds of a problem that hold for every strategy.

See ``docs/explanation/accuracy.md``.
"""

from __future__ import annotations

import numpy as np

from lrm.clock import UNLIMITED, Clock
from lrm.planning.design.cells import reduction_seconds, singular_values
from lrm.planning.limits import ARRAY
from lrm.planning.solvers import settings
from lrm.planning.solvers.bounds import Spectrum, product_bound, spectrum
from lrm.planning.solvers.gaussian import optimise_gaussian
from lrm.planning.strategies.base import Problem


def certificate_seconds(problem: Problem) -> float:
    """About how long ``least_error`` takes at least: two rounds that cannot be stopped."""
    if _is_closed_form(problem) or not problem.is_listed:
        return 0.0
    return problem.reduction_seconds + 2 * problem.decomposition_seconds


def least_error(
    problem: Problem,
    clock: Clock = UNLIMITED,
    *,
    error: float = np.inf,
    most: float = np.inf,
) -> float:
    """A number that (importance-weighted) ``‖B‖²·Δ²`` of no strategy is below.

    The dual of the program with L2 columns: every strategy with L1 columns in the unit
    ball has its L2 columns there too. Within 1 % of the best such bound, where the
    rounds that this takes are affordable; else a bound that costs next to nothing
    (``Problem.quick_bound``).

    Where that shows that the ``error`` of a strategy is all but the least possible, nothing more is
    done. ``most`` is the seconds of one core that the bound may take.
    """
    if problem.products is not None and not problem.is_listed:
        return product_bound(problem.products)
    quick = problem.quick_bound
    # An error no more above a bound that costs nothing needs no better one.
    if _is_closed_form(problem) or error <= 1.001 * quick:
        return quick
    needed = certificate_seconds(problem)
    if needed > most or not clock.affords(needed) or not problem.reduced.any():
        return quick
    seconds = max(problem.decomposition_seconds, 1e-9)
    rounds = int(np.clip(min(most, settings.CERTIFICATE_SECONDS) / seconds, 2, 200))
    optimum = optimise_gaussian(
        problem.reduced, tolerance=0.01, max_rounds=rounds, clock=clock.silent()
    )
    return max(quick, optimum.lower)


def _is_closed_form(problem: Problem) -> bool:
    """Whether known singular values are the bound: of prefix sums and all ranges of many cells."""
    queries = problem.workload.queries
    return queries.has_closed_forms and queries.shape[1] > settings.LONG_CELLS


def spectrum_of(
    problem: Problem, clock: Clock = UNLIMITED, *, most: float = np.inf
) -> Spectrum | None:
    """The singular values of the whole workload, and the paper's bounds from them.

    None where they would take more than ``most`` seconds, or more than the clock leaves.
    """
    queries = problem.workload.queries
    if not problem.is_listed:
        return None
    if problem.products is not None and queries.shape[0] * queries.shape[1] > ARRAY:
        return None
    known = queries.known_singular_values()
    if known is not None:
        return spectrum(known, queries.shape)
    merged = problem.merged
    # W·Wᵀ = W'·D·W'ᵀ with D_c = Σ factor² of the cells that are merged into c
    weight = np.bincount(
        merged.cell_map.index,
        weights=merged.cell_map.factor.astype(np.float64) ** 2,
        minlength=merged.cell_map.merged_size,
    )
    if problem.is_reduced and problem.workload.importance is None and np.all(weight == 1.0):
        # The rows of R are orthogonal, and their lengths are the singular values.
        return spectrum(np.linalg.norm(problem.reduced, axis=1), queries.shape)
    # Without vectors a decomposition takes half the time.
    needed = 0.5 * reduction_seconds(merged.queries)
    if needed > most or not clock.affords(needed):
        return None
    return spectrum(singular_values(merged.queries.scale_columns(np.sqrt(weight))), queries.shape)
