"""The best known strategy: a portfolio that is never worse than what it starts from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Literal

import numpy as np

from lrm.errors import ConvergenceError, StopSolver, UsageError
from lrm.maps.linear import Floats
from lrm.maps.products.values import Reduction
from lrm.privacy.budget import Noise
from lrm.solvers.augmented import assemble, optimise_augmented
from lrm.solvers.exact import strategy_error
from lrm.solvers.general import PROMISING, general_start
from lrm.solvers.portfolio import Candidate
from lrm.solvers.portfolio import search as search_portfolio
from lrm.solvers.progress import Step
from lrm.solvers.starts import extreme_columns, random_rows
from lrm.strategies.base import AnyStrategy, Problem, ProductChoice, Search, Strategy
from lrm.strategies.certificate import least_error
from lrm.strategies.gaussian import best_gaussian, has_fast_optimum
from lrm.strategies.large import best_tree
from lrm.strategies.lowrank import lowrank
from lrm.strategies.products import (
    best_products,
    few_rows,
    flat_problem,
    lift,
    merged_rows,
    on_representatives,
    polished_rows,
)
from lrm.strategies.rivals import RivalResult, best_rival, is_proven, own_rows, rival_start, rivals

__all__ = ["best"]

Effort = Literal["quick", "normal", "thorough"]
EFFORTS = ("quick", "normal", "thorough")

GENERAL_WORK = {"quick": 2e9, "normal": 2e10, "thorough": 1e12}
"""Multiplications that each effort spends on a start with fewer rows than cells."""

LOWRANK_WORK = {"quick": 0.0, "normal": 1e6, "thorough": 1e8}
"""Size (rank² × cells) up to which the paper's algorithm is run for a start."""

PROMISING_WORK = {"quick": 0.0, "normal": 5e6, "thorough": 1e9}
"""The same where strategies with fewer rows than cells are near the best."""

RANK_RATIOS = (1.2, 1.4, 2.1, 3.6)
"""Rows of the paper's strategy over the rank: its own choice, and more where they are cheap."""

RATIOS_WORK = {"quick": 0.0, "normal": 1e5, "thorough": 1e7}
"""The size up to which they are; the best of them is up to 5 % below the first."""

NEAR = 1.1
"""If the first is more than this factor above the best known, the others are not run."""

SCOUT_ROWS = 4
"""Rows in addition to the identity whose descent gives the best known before the search: 0.03 s."""

EXTREME_RANK, EXTREME_CELLS = 10, 256
"""Where columns may well lie inside the hull of others, and finding out takes a second."""

TREE_CELLS = 2048
"""Prefix sums and all ranges over more cells are measured by weighted trees."""

FLAT_CELLS: dict[Noise, dict[Effort, int]] = {
    "laplace": {"quick": 0, "normal": 100, "thorough": 1600},
    "gaussian": {"quick": 200, "normal": 1000, "thorough": 2000},
}
"""Merged cells of a product up to which a list of them is searched as well."""

POLISHED_CELLS = {"quick": 100, "normal": 600, "thorough": 2000}
"""The same for a descent in the general form from what is known."""

BOUND_SECONDS = 1.0
"""Of one core, that a bound for the merged cells of a product may take."""

MOST_FLAT_CELLS = 2000
"""The same for a search of few rows."""

PROVEN = 1.0 + 1e-9
"""An error no more above a bound on all strategies is the least, but for rounding."""

DENSE_ENTRIES = 3e7
"""Rank × merged cells up to which the solvers run: they hold several arrays of that size."""


def best(problem: Problem, search: Search, *, effort: Effort = "normal") -> AnyStrategy:
    """Search for the strategy of least error, from every start that a rival offers.

    Parameters
    ----------
    problem, search
        The workload, and whom to report to.
    effort
        How long to search: ``"quick"``, ``"normal"`` or ``"thorough"``.
    """
    if effort not in EFFORTS:
        raise UsageError(f"effort must be one of {', '.join(EFFORTS)}, not {effort!r}")
    if problem.products is not None:
        return _best_of_both(problem, search, effort)
    return _best_listed(problem, search, effort, {})


def _best_of_both(problem: Problem, search: Search, effort: Effort) -> AnyStrategy:
    """The best over products, or over a list of merged cells where these are few."""
    chosen = best_products(problem, search, effort=effort)
    proven = least_candidate(chosen) <= PROVEN * (chosen.least_error or 0.0)
    if not problem.is_listed or proven or chosen.details["interrupted"]:
        return chosen
    flat, reduction = flat_problem(problem)
    rows, cells = flat.workload.shape
    if cells > MOST_FLAT_CELLS or min(rows, cells) * cells > DENSE_ENTRIES:
        return chosen
    found: list[Strategy] = []
    starts = {}
    if search.noise == "laplace":
        starts["products"] = on_representatives(merged_rows(chosen, reduction), flat)
        few = few_rows(problem, search, effort, least_candidate(chosen))
        if few is not None:
            found.append(few)
            starts["few rows of products"] = on_representatives(few.matrix.dense(), flat)
    stopped = any(strategy.details["interrupted"] for strategy in found)
    if cells <= FLAT_CELLS[search.noise][effort] and not stopped:
        # The optimum for Gaussian noise to 0.1 % takes milliseconds on so few cells.
        tight = effort if search.noise == "laplace" or effort != "quick" else "normal"
        found.append(_best_listed(flat, search, tight, starts))
    elif cells <= POLISHED_CELLS[effort] and starts and not stopped:
        found.append(polished_rows(flat, starts, search, effort))
    bound = least_error(flat, search.deadline, most=BOUND_SECONDS)
    lifted = [_over_all_cells(one, flat, reduction) for one in found]
    return _least(chosen, lifted, bound)


def _over_all_cells(found: Strategy, flat: Problem, reduction: Reduction) -> Strategy:
    """A strategy for the merged cells of a product as one for all of its cells."""
    queries, cell_map = flat.queries_for(found), lift(found.cell_map, reduction)
    return replace(found, cell_map=cell_map, queries=queries)


def _least(chosen: ProductChoice, others: Sequence[Strategy], bound: float) -> AnyStrategy:
    """The strategy of least error, with the candidates of all and the best of their bounds."""
    every: list[AnyStrategy] = [chosen, *others]
    best = min(every, key=least_candidate)
    bound = max(bound, *(strategy.least_error or 0.0 for strategy in every))
    details = {
        **best.details,
        "candidates": [c for strategy in every for c in strategy.details["candidates"]],
        "interrupted": any(strategy.details["interrupted"] for strategy in every),
    }
    return replace(best, details=details, least_error=bound)


def least_candidate(strategy: AnyStrategy) -> float:
    """The error of the best candidate of a search."""
    return float(min(candidate["error"] for candidate in strategy.details["candidates"]))


def _best_listed(
    problem: Problem, search: Search, effort: Effort, starts: dict[str, Floats]
) -> Strategy:
    """The best over a list of cells, searched from some starts beside its own."""
    in_time = search.deadline.affords(problem.reduction_seconds + problem.rounding_seconds)
    if in_time and has_fast_optimum(problem, search, effort):
        return best_gaussian(problem, search, effort)
    if _needs_trees(problem, in_time=in_time):
        return best_tree(problem, search)
    offers = rivals(problem, search)
    rows, cells = problem.merged.queries.shape
    # Noise on results is on cells that are not merged: a search finds its equal on merged ones.
    least = min(offers, key=lambda offer: offer.error)
    proven = is_proven(problem, offers) and least.name == "noise-on-data"
    if proven or not in_time or min(rows, cells) * cells > DENSE_ENTRIES:
        return best_rival(offers, interrupted=not (proven or in_time))
    search = search.less(problem.rounding_seconds)
    if search.noise == "gaussian":
        return best_gaussian(problem, search, effort)
    return _searched(problem, search, effort, offers, starts)


def _needs_trees(problem: Problem, *, in_time: bool) -> bool:
    """Whether prefix sums or all ranges are over too many cells for any other strategy."""
    queries, importance = problem.workload.queries, problem.workload.importance
    if not queries.has_closed_forms:
        return False
    if importance is not None and queries.shape[1] > TREE_CELLS:
        raise UsageError(
            f"importance is not supported for {queries.kind} over more than {TREE_CELLS} cells"
        )
    return importance is None and (queries.shape[1] > TREE_CELLS or not in_time)


def _searched(
    problem: Problem,
    search: Search,
    effort: Effort,
    offers: Sequence[RivalResult],
    given: dict[str, Floats],
) -> Strategy:
    """What the solvers find, or the best rival if that is better."""
    rival = min(offers, key=lambda offer: offer.error)
    starts, stopped = _starts(problem, search, effort, rival.error)
    starts |= given
    if effort == "thorough":  # else it costs a third of the time, and gained 0.3 % at most
        starts[rival.name] = rival_start(problem, rival.make())
    found = search_portfolio(
        problem.reduced,
        effort=effort,
        rng=search.rng(),
        on_step=_stop if stopped else search.on_step,
        starts=starts,
    )
    tried = [Candidate(offer.name, offer.error, 0) for offer in offers]
    details = {
        "winner": rival.name if rival.error < found.error else found.winner,
        "candidates": [asdict(candidate) for candidate in (*tried, *found.candidates)],
        "effort": effort,
        "converged": found.converged,
        "interrupted": found.interrupted,
    }
    if rival.error < found.error:
        return replace(rival.make(), mechanism="best", details=details)
    matrix = problem.from_reduced(found.strategy)
    return Strategy("best", problem.merged.cell_map, matrix, details=details)


def _starts(
    problem: Problem, search: Search, effort: Effort, best_known: float
) -> tuple[dict[str, Floats], bool]:
    """Strategies with fewer rows than cells, and whether the search was stopped meanwhile."""
    R, starts, stopped, scout = problem.reduced, {}, False, None
    own = own_rows(problem, best_known)
    if own is not None:
        starts["own rows"] = own
    if effort != "quick" and len(R) <= EXTREME_RANK and R.shape[1] <= EXTREME_CELLS:
        starts["extreme columns"] = extreme_columns(R / np.abs(R).max())
    if R.size * len(R) <= PROMISING_WORK[effort]:  # starts that take seconds: first what takes none
        rows = random_rows(SCOUT_ROWS, R.shape[1], search.rng())
        scout = optimise_augmented(R, rows, tolerance=1e-4, on_step=search.on_step, stage="scout")
        stopped = scout.interrupted
    if not stopped:
        near = best_known if scout is None else min(best_known, scout.error)
        stopped = _add_searched(starts, problem, search, effort, (best_known, NEAR * near))
    if stopped and scout is not None:
        starts["scout"] = assemble(R, scout.extra_rows)[1].toarray()
    return starts, stopped


def _add_searched(
    starts: dict[str, Floats],
    problem: Problem,
    search: Search,
    effort: Effort,
    limits: tuple[float, float],
) -> bool:
    """Add strategies of few rows that a search finds; say whether it was stopped.

    ``limits`` are the best known error, and where further strategies of the paper's are
    not worth their time.
    """
    R, (best_known, enough) = problem.reduced, limits
    general = general_start(
        R, best_known, work=GENERAL_WORK[effort], rng=search.rng(), on_step=search.on_step
    )
    promising = False
    if general is not None:
        starts["few rows"] = general.pair.strategy.toarray()
        if general.interrupted:
            return True
        promising = general.error < PROMISING * best_known
    ratios = _rank_ratios(R.size * len(R), effort, promising=promising)
    return _add_papers(starts, problem, search, ratios, enough)


def _add_papers(
    starts: dict[str, Floats],
    problem: Problem,
    search: Search,
    ratios: tuple[float, ...],
    enough: float,
) -> bool:
    """Add the paper's strategies, until one is above ``enough``; say whether it was stopped.

    The first is always there, so that the result is not worse than the paper's.
    """
    factors = np.maximum(problem.merged.cell_map.largest_factors(), 1)
    for ratio in ratios:
        with suppress(ConvergenceError):
            papers = lowrank(problem, search, rank_ratio=ratio)
            start = papers.matrix.dense() * factors
            starts[f"lowrank, r = {ratio:g} k"] = start
            if papers.details["interrupted"]:
                return True
            if strategy_error(problem.reduced, start) > enough:
                return False
    return False


def _rank_ratios(size: int, effort: Effort, *, promising: bool) -> tuple[float, ...]:
    """With how many rows the paper's algorithm is run on a problem of rank² × cells."""
    if size > (PROMISING_WORK if promising else LOWRANK_WORK)[effort]:
        return ()
    return RANK_RATIOS if promising and size <= RATIOS_WORK[effort] else RANK_RATIOS[:1]


def _stop(step: Step) -> None:
    """Pass the end of an earlier stage on to the next one."""
    raise StopSolver(step)
