"""The best known strategy: a search that is never worse than what it starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lrm.errors import UsageError
from lrm.planning.limits import ARRAY, SIDE
from lrm.planning.solvers import settings
from lrm.planning.solvers.families import polish
from lrm.planning.solvers.families import search as search_strategy
from lrm.planning.solvers.gaussian import optimise_gaussian_map
from lrm.planning.solvers.gram_operators import structured_gram
from lrm.planning.solvers.own_rows import disjoint_groups, extreme_columns, weighted_groups
from lrm.planning.solvers.race import Candidate, Race
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies.base import (
    Choice,
    Problem,
    ProductChoice,
    Search,
    Strategy,
    check_effort,
)
from lrm.planning.strategies.baselines import (
    PROVEN,
    BaselineResult,
    baselines,
    best_baseline,
    is_proven,
    own_rows,
)
from lrm.planning.strategies.certificate import least_error
from lrm.planning.strategies.large import add_rows, best_long
from lrm.planning.strategies.products import (
    best_products,
    bounded,
    flat_problem,
    lift,
    merged_rows,
    on_representatives,
)
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.products.values import Reduction, merge_values


def best(problem: Problem, search: Search, *, effort: Effort = "normal") -> Choice:
    """Search for the strategy of least total error, from every start that a baseline offers.

    The decision, from top to bottom::

        attributes of a product?
        ├─ yes ─ weighted marginals (Laplace) or residuals (Gaussian) over the attributes
        │        few merged cells? ─ their list is searched too, from the product's rows;
        │                            the lower error wins
        └─ no ── a list of cells
                 Gaussian noise, few cells ....................... the convex optimum
                 prefix sums or all ranges, > 2,048 cells ........ weighted tree, then sparse rows
                 a baseline reaches the lower bound .............. that baseline
                 long ranges, or > 3·10⁷ rank × cells ............ own, periodic or sparse rows
                 no time left .................................... the best baseline
                 Gaussian noise .................................. the convex optimum
                 else ............................................ a race of descents from own
                                                                   rows, few random rows and
                                                                   the row space

    Both halves are called alone for batches of several statements, by
    `lrm.planning.plan.loop.settle`: ``best_over_products``, then rounds that weigh the
    statements by their ratios to an even split; ``best_over_cells`` with these weights, then rounds
    on what it has found (`refine`). What any of them finds is one proposal of
    `lrm.planning.plan.loop`, which compares it, in integers, with shaped noise.

    What was tried is in ``record`` (`SearchRecord`). See ``docs/explanation/best.md``.
    """
    product_choice = best_over_products(problem, search, effort)
    return best_over_cells(problem, search, effort, product_choice)


def best_over_products(problem: Problem, search: Search, effort: Effort) -> ProductChoice | None:
    """The best over products of attributes, where there are some: the first half of `best`."""
    check_effort(effort)
    if problem.products is None:
        return None
    # Over very few cells, a longer search over products found no more on any batch of the
    # benchmarks than that over their list does.
    few = has_few_cells(problem, "quick", search)
    quick = few and effort == "normal" and not search.is_gaussian
    return best_products(problem, search, effort="quick" if quick else effort)


def best_over_cells(
    problem: Problem, search: Search, effort: Effort, product_choice: ProductChoice | None
) -> Choice:
    """The best over a list of cells, or the one over products: the second half of `best`."""
    if product_choice is None:
        return _best_listed(problem, search, effort, {})
    product_choice = bounded(product_choice, problem)
    few = has_few_cells(problem, effort, search)
    proven = _error(product_choice) <= PROVEN * (product_choice.least_error or 0.0)
    if not few or proven or search.clock.must_end():
        return product_choice
    flat, reduction = flat_problem(problem)
    rows, cells = flat.workload.shape
    if min(rows, cells) * cells > ARRAY * 2:
        return product_choice
    if not search.is_gaussian:
        starts = {"products": on_representatives(merged_rows(product_choice, reduction), flat)}
        several = len(problem.workload.statements) > 1
        seconds = settings.BUDGETS[effort].descent_seconds if several else np.inf
        listed = [_best_listed(flat, search, effort, starts, seconds)]
    else:
        # The optimum for Gaussian noise to 0.1 % takes little time on few cells.
        tight: Effort = "normal" if effort == "quick" else effort
        listed = [_best_listed(flat, search, tight, {})]
    # Seconds of one core that a bound for the merged cells of a product may take.
    bound = least_error(flat, search.clock, most=1.0)
    lifted = [_over_all_cells(strategy, flat, reduction) for strategy in listed]
    return _least(product_choice, lifted, bound)


def is_refinable(problem: Problem, search: Search, strategy: Choice) -> bool:
    """Whether a descent can go on from a strategy: it is one over a list of few merged cells."""
    if not isinstance(strategy, Strategy):
        return False
    flat = problem if problem.products is None else flat_problem(problem)[0]
    (queries, cells), (rows, columns) = flat.merged.queries.shape, strategy.matrix.shape
    work = cells * min(queries, cells) ** 2 if search.is_gaussian else cells * rows**2
    # Measurements² × merged cells up to which a descent goes on from a strategy: a tenth of a
    # second (`python -m benchmarks statements meet`).
    return columns == cells and work <= 1e7


def refine(problem: Problem, search: Search, strategy: Strategy) -> Strategy:
    """Go on from a strategy that was found for other importances of the same queries."""
    flat, reduction = (problem, None) if problem.products is None else flat_problem(problem)
    if search.is_gaussian:
        listed = replace(best_gaussian(flat, search, "normal"), record=strategy.record)
    else:
        race = Race(flat.reduced, search.clock)
        start = strategy.matrix.dense() * flat.factors
        name = "last weights"
        if race.offer_strategy(name, start) < np.inf:
            polish(race, name, start)
        matrix = flat.from_reduced(race.best().strategy)
        listed = Strategy("best", flat.merged.cell_map, matrix, record=strategy.record)
    return listed if reduction is None else _over_all_cells(listed, flat, reduction)


def has_few_cells(problem: Problem, effort: Effort, search: Search) -> bool:
    """Whether the merged cells of a product are few enough for a search over a list of them."""
    if not problem.is_listed or problem.products is None:
        return False
    merged = merge_values(problem.products)
    queries, cells = merged.batch.queries, merged.cells
    if queries * cells > ARRAY:
        return False
    if search.is_gaussian:
        plain = effort == "quick" and merged.batch.simple
        # Queries that are all products rarely gain from a list.
        most = 8e6 if plain else settings.BUDGETS[effort].gaussian_work
        return min(queries, cells) ** 2 * cells <= most
    return cells <= settings.BUDGETS[effort].listed_cells


def _over_all_cells(strategy: Strategy, flat: Problem, reduction: Reduction) -> Strategy:
    """A strategy for the merged cells of a product as one for all of its cells."""
    queries, cell_map = flat.queries_for(strategy), lift(strategy.cell_map, reduction)
    return replace(strategy, cell_map=cell_map, queries=queries)


def _least(product_choice: ProductChoice, listed: Sequence[Strategy], bound: float) -> Choice:
    """The strategy of least error, with the candidates of all and the best of their bounds."""
    every: list[Choice] = [product_choice, *listed]
    # At the same error, but for what rounding costs, a list of cells wins: its integers are finer
    # than those of products. Thousands of cells take many seconds to round: they must gain 0.1 %.
    cells = max(strategy.matrix.shape[1] for strategy in listed)
    tie = 1e-6 if cells <= settings.BUDGETS["quick"].listed_cells else -1e-3
    best = min(
        every, key=lambda contender: _error(contender) * (1 + tie * (contender is product_choice))
    )
    bound = max(bound, *(strategy.least_error or 0.0 for strategy in every))
    records = [strategy.record for strategy in every if strategy.record is not None]
    record = best.record and replace(
        best.record,
        candidates=tuple(candidate for contender in records for candidate in contender.candidates),
        interrupted=any(contender.interrupted for contender in records),
    )
    return replace(best, record=record, least_error=bound)


def _error(strategy: Choice) -> float:
    """The error that a search states for its strategy."""
    return np.inf if strategy.record is None else strategy.record.error


def _best_listed(
    problem: Problem,
    search: Search,
    effort: Effort,
    starts: dict[str, Floats],
    descent_seconds: float = np.inf,
) -> Strategy:
    """The best over a list of cells, searched from some starts in addition to its own."""
    in_time = search.clock.affords(problem.reduction_seconds + problem.rounding_seconds)
    if in_time and has_fast_optimum(problem, search, effort):
        return best_gaussian(problem, search, effort)
    if _needs_trees(problem, in_time=in_time):
        return best_long(problem, search, effort)
    offers = baselines(problem, search)
    rows, cells = problem.merged.queries.shape
    # Noise on results is on cells that are not merged: a search finds its equal on merged ones.
    least = min(offers, key=lambda offer: offer.error)
    proven = is_proven(problem, offers) and least.name == "noise-on-data"
    is_large = min(rows, cells) * cells > ARRAY * 2
    if not search.is_gaussian and not proven and (is_large or problem.has_long_ranges):
        return add_rows(problem, search, effort, best_baseline(offers))
    if proven or is_large or not in_time:
        return best_baseline(offers, interrupted=not (proven or in_time))
    search = search.less(problem.rounding_seconds)
    if search.is_gaussian:
        return best_gaussian(problem, search, effort)
    return _searched(problem, search, effort, offers, starts, descent_seconds)


def _needs_trees(problem: Problem, *, in_time: bool) -> bool:
    """Whether prefix sums or all ranges are over too many cells for any other strategy."""
    queries, importance = problem.workload.queries, problem.workload.importance
    if not queries.has_closed_forms:
        return False
    if importance is not None and queries.shape[1] > settings.LONG_CELLS:
        raise UsageError(
            f"importance is not supported for {queries.kind} over more than "
            f"{settings.LONG_CELLS} cells"
        )
    return importance is None and (queries.shape[1] > settings.LONG_CELLS or not in_time)


def _searched(  # noqa: PLR0913, PLR0917 - each is a choice of the caller
    problem: Problem,
    search: Search,
    effort: Effort,
    offers: Sequence[BaselineResult],
    extra_starts: dict[str, Floats],
    descent_seconds: float,
) -> Strategy:
    """What the solvers find, or the best baseline if that is better."""
    baseline = min(offers, key=lambda offer: offer.error)
    budget = settings.BUDGETS[effort]
    race = search_strategy(
        problem.reduced,
        threshold=budget.threshold,
        patience=budget.patience,
        seed=search.seed,
        clock=search.clock,
        starts=extra_starts | _own_starts(problem, search),
        gram=structured_gram(problem.scaled_queries),
        descent_seconds=descent_seconds,
    )
    tried = [Candidate(offer.name, offer.error, 0) for offer in offers]
    winner = baseline.name if baseline.error < race.error else race.winner
    record = search.record(winner, [*tried, *race.candidates], effort)
    if baseline.error < race.error:
        return replace(baseline.make(), mechanism="best", facts={}, record=record)
    matrix = problem.from_reduced(race.best().strategy)
    return Strategy("best", problem.merged.cell_map, matrix, record=record)


def _own_starts(problem: Problem, search: Search) -> dict[str, Floats]:
    """Strategies that the batch itself suggests."""
    starts, R = {}, problem.reduced
    rows = own_rows(problem)
    if rows is not None and not search.clock.ended:
        weighted_rows = weighted_groups(R, rows, disjoint_groups(rows), search.clock)
        if weighted_rows is not None:
            starts["own rows"] = weighted_rows
    if len(R) <= settings.EXTREME_RANK and R.shape[1] <= 64:
        starts["extreme columns"] = extreme_columns(R / np.abs(R).max())
    return starts


def has_fast_optimum(problem: Problem, search: Search, effort: str) -> bool:
    """Whether ``best_gaussian`` is affordable without ``problem.reduced``."""
    queries = problem.workload.queries
    return (
        search.is_gaussian
        and effort != "quick"
        and queries.has_closed_forms
        and queries.gram_chain() is not None
        and problem.workload.importance is None
        # Prefix sums and all ranges over at most as many cells are solved, not measured by trees.
        # The solver takes seconds; the n × n integers of the plan and their inverse take the rest.
        and 2 <= queries.shape[1] <= SIDE
    )


def best_gaussian(problem: Problem, search: Search, effort: str) -> Strategy:
    """Minimise ``‖B‖²`` with every column of L in the unit L2 ball, to a certified ratio."""
    optimum = optimise_gaussian_map(
        problem.scaled_queries,
        lambda: problem.reduced,
        tolerance=settings.BUDGETS[effort].tolerance,
        clock=search.clock,
    )
    candidate = Candidate("L2 optimum", optimum.upper, optimum.rounds)
    record = search.record("L2 optimum", [candidate], effort, converged=optimum.converged)
    return Strategy(
        "best",
        problem.merged.cell_map,
        problem.from_reduced(optimum.L),
        least_error=optimum.lower,
        record=record,
    )
