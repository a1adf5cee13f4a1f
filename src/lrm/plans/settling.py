"""Strategies for goals: a first search with even weights of the goals, then rounds that settle.

For marginals and residuals over products, rounds keep the sets and bases that were found and change
their weights: milliseconds each. Then, where cells are few, their list is searched with the weights
that these rounds have ended with; further rounds go on from the last strategy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lrm.clock import Step, Timings
from lrm.errors import StopSolver
from lrm.exact.products.residual_strategy import GaussianGroups
from lrm.exact.products.strategy import ProductStrategy
from lrm.maps.linear import Floats
from lrm.maps.products.combine import weigh_terms
from lrm.maps.products.map import ProductMap
from lrm.plans.goals import Goals, Objective
from lrm.solvers import settings
from lrm.solvers.products.gaussian import optimise_gaussian_products
from lrm.solvers.products.reweigh import Reweighing
from lrm.strategies import AnyStrategy, Problem, Search
from lrm.strategies.base import ProductChoice, Strategy
from lrm.strategies.best import Effort, best_over_cells, best_over_products, refine
from lrm.strategies.products import reweighed

__all__ = ["Settled", "settle"]

ROUNDS = 24
"""Rounds in which the weights of goals are raised at fixed sets and bases."""

REFINED = 16
"""Rounds over a list of cells."""

SHARE = 0.3
"""The work that rounds over a list of cells may take, beside that of the search before them."""

SEARCHES: dict[Objective, int] = {"balanced": 1, "worst": 1, "within": 6}
"""Searches over products, each with the weights that follow from the one before."""


@dataclass(frozen=True, eq=False)
class Settled:
    """A strategy, the batch with the weights that it was found for, and those of the goals."""

    problem: Problem
    strategy: AnyStrategy
    emphasis: Floats

    def squares(self, goals: Goals, search: Search) -> Floats:
        """The squared ratio of each goal."""
        rounded = self.strategy.rounded(self.problem, search.noise, None)
        return goals.squares_of(*rounded, search.noise)


def settle(goals: Goals, search: Search, effort: Effort, timings: Timings) -> Settled:
    """Search for a strategy whose largest, or mean, squared ratio of a goal is least."""
    settled = _over_products(goals, search, effort, timings)
    if settled is None:
        problem = Problem(goals.weighted(goals.even), timings)
        strategy = best_over_cells(problem, search, effort, None)
        return _over_cells(goals, Settled(problem, strategy, goals.even), search)
    assert isinstance(settled.strategy, ProductChoice)  # noqa: S101 - over products
    strategy = best_over_cells(settled.problem, search, effort, settled.strategy)
    if strategy is settled.strategy:
        return settled
    return _over_cells(goals, replace(settled, strategy=strategy), search, settled)


def _over_products(
    goals: Goals, search: Search, effort: Effort, timings: Timings
) -> Settled | None:
    """Search over products of attributes, where there are some, and raise weights in rounds."""
    emphasis, best, least = goals.even, None, (math.inf, math.inf)
    queries, searches = goals.workload.products, SEARCHES[goals.objective]
    for _ in range(searches):
        problem = Problem(goals.weighted(emphasis), timings)
        choice = best_over_products(problem, search, effort)
        if choice is None or queries is None or problem.products is None:
            return None
        settled = first = Settled(problem, choice, emphasis)
        if problem.products.terms == queries.batch.terms:  # else importances split tables
            settled = _at_fixed_sets(goals, queries, first, choice, search)
            settled = _by_statements(goals, queries, settled, choice, search)
        if searches == 1:
            return settled
        score = goals.score(settled.squares(goals, search))
        if score < least:
            best, least = settled, score
        raised = goals.raised(emphasis, first.squares(goals, search))
        if raised is None or search.clock.ended:
            break
        emphasis = raised
    return best


def _by_statements(
    goals: Goals, queries: ProductMap, settled: Settled, choice: ProductChoice, search: Search
) -> Settled:
    """Residuals of each statement's own, where others leave statements above an even split."""
    many = len(goals.columns.statements) > settings.STATEMENTS_ALONE
    if not isinstance(choice.found, GaussianGroups) or goals.objective == "within" or many:
        return settled
    now = _reweighing(goals, queries, settled)
    if goals.squares(now.errors(now.at()) / goals.columns.sizes).max() <= 1.0:
        return settled
    problem = Problem(goals.weighted(goals.even), settled.problem.timings)
    batch = problem.products
    assert batch is not None  # noqa: S101 - over products
    columns = _columns_of_terms(goals, queries)
    left, groups = np.ones(batch.terms, dtype=bool), []
    for own in goals.columns.statements:
        terms = np.flatnonzero(left & np.isin(columns, own))
        if len(terms):
            left[terms] = False
            groups.append(terms)
    if left.any():
        groups.append(np.flatnonzero(left))
    try:
        parts = [optimise_gaussian_products(batch.take(one), clock=search.clock) for one in groups]
    except StopSolver:
        return settled
    alone = replace(choice, found=GaussianGroups(tuple(groups), tuple(parts)))
    start = Settled(problem, alone, goals.even)
    other = _at_fixed_sets(goals, queries, start, alone, search)
    return min(settled, other, key=lambda one: goals.score(one.squares(goals, search)))


def _columns_of_terms(goals: Goals, queries: ProductMap) -> NDArray[np.int64]:
    return goals.columns.of_row[[own.start for _, own in queries.term_slices()]]


def _reweighing(goals: Goals, queries: ProductMap, settled: Settled) -> Reweighing:
    """How the errors of columns change with weights at the sets and bases of a strategy."""
    assert isinstance(settled.strategy, ProductChoice)  # noqa: S101 - over products
    batch = weigh_terms(queries.batch, goals.own_importance)
    weights = goals.column_weights(settled.emphasis)
    return Reweighing(batch, _columns_of_terms(goals, queries), settled.strategy.found, weights)


def _at_fixed_sets(
    goals: Goals, queries: ProductMap, settled: Settled, choice: ProductChoice, search: Search
) -> Settled:
    """Raise weights in rounds at the sets and bases of a choice."""
    columns, emphasis = goals.columns, settled.emphasis
    reweighing = _reweighing(goals, queries, settled)
    squares = goals.squares(reweighing.errors(reweighing.at()) / columns.sizes)
    combined = isinstance(choice.found, ProductStrategy) and choice.found.combined
    if combined or goals.exact_squares is not None:
        exact = settled.squares(goals, search)
        goals, squares = goals.scaled(squares, exact), exact
    least, best, found = goals.score(squares), settled, choice.found
    try:
        for number in range(ROUNDS):
            raised = goals.raised(emphasis, squares)
            if raised is None:
                break
            emphasis = raised
            strategy = reweighing.at(goals.column_weights(emphasis))
            squares = goals.squares(reweighing.errors(strategy) / columns.sizes)
            if goals.score(squares) < least:
                least = goals.score(squares)
                best, found = Settled(settled.problem, choice, emphasis), strategy
            search.clock.tick(Step("statements", number + 1, strategy.error))
    except StopSolver:
        pass
    if best is settled:
        return settled
    problem = Problem(goals.weighted(best.emphasis), settled.problem.timings)
    best = replace(best, problem=problem, strategy=reweighed(choice, found, problem))
    return _combined(goals, settled, best, search) if combined else best


def _combined(goals: Goals, first: Settled, settled: Settled, search: Search) -> Settled:
    """The better of a strategy and what it has become, with two groups answered from both."""
    assert isinstance(settled.strategy, ProductChoice)  # noqa: S101 - over products
    assert isinstance(settled.strategy.found, ProductStrategy)  # noqa: S101 - of marginals
    found = replace(settled.strategy.found, combined=True)
    both = replace(settled, strategy=replace(settled.strategy, found=found))
    return min(
        first, settled, both, key=lambda candidate: goals.score(candidate.squares(goals, search))
    )


def _over_cells(
    goals: Goals, first: Settled, search: Search, other: Settled | None = None
) -> Settled:
    """Raise weights in rounds over a list of cells; ``other`` is a strategy to compare with."""
    last, squares = first, first.squares(goals, search)
    least, best = goals.score(squares), first
    if other is not None and (score := goals.score(other.squares(goals, search))) < least:
        least, best = score, other
    most = search.clock.work * (1.0 + SHARE)
    for _ in range(REFINED):
        raised = goals.raised(last.emphasis, squares)
        if raised is None or search.clock.ended or search.clock.work > most:
            break
        problem = Problem(goals.weighted(raised), first.problem.timings)
        refined = None
        if isinstance(last.strategy, Strategy):
            refined = refine(problem, search, last.strategy)
        if refined is None:
            break
        last = Settled(problem, refined, raised)
        squares = last.squares(goals, search)
        if goals.score(squares) < least:
            least, best = goals.score(squares), last
    return best
