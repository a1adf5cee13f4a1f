"""Strategies for goals: a first search with even weights of the goals, then rounds that settle.

For marginals and residuals over products, rounds keep the sets and bases that were found and change
their weights: milliseconds each. Then, where cells are few, their list is searched with the weights
that these rounds have ended with; further rounds go on from the last strategy.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from lrm.clock import Step, Timings
from lrm.errors import StopSolver
from lrm.planning.design.products.residuals import GaussianGroups
from lrm.planning.design.products.strategy import ProductStrategy
from lrm.planning.plan.goals import Goals
from lrm.planning.solvers.products.reweigh import Reweighing
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies.base import Choice, Problem, ProductChoice, Search, Strategy
from lrm.planning.strategies.best import (
    best_over_cells,
    best_over_products,
    has_few_cells,
    refine,
)
from lrm.planning.strategies.products import (
    bounded,
    products_in_groups,
    reweighed,
    terms_of_statements,
)
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.products.combine import weigh_terms

ROUNDS = 24
"""Rounds in which the weights of goals are raised at fixed sets and bases."""

REFINED = 16
"""Rounds over a list of cells."""

SHARE = 0.3
"""The work that rounds over a list of cells may take, beside that of the search before them."""

ROUNDED = 0.99
"""What the largest squared ratio must fall to in rounds: rounding to integers costs less."""

ABOVE = 1.001**2
"""Squared ratio to the even split above which a statement is measured by itself."""

SEARCHES = 6
"""Searches over products for tolerances, each with the weights that follow from the one before and
other random starts: one alone had up to 3.5 % more of the largest ratio than the best of them."""


@dataclass(frozen=True, eq=False)
class Settled:
    """A strategy, the batch with the weights that it was found for, and those of the goals."""

    problem: Problem
    strategy: Choice
    emphasis: Floats

    @property
    def choice(self) -> ProductChoice:
        """The strategy, where it is one over products."""
        assert isinstance(self.strategy, ProductChoice)  # noqa: S101 - asked for after a search
        return self.strategy

    def squares(self, goals: Goals, search: Search) -> Floats:
        """The squared ratio of each goal."""
        rounded = self.strategy.rounded(self.problem, search.noise, None)
        return goals.squares_of(*rounded, search.noise)


def settle(goals: Goals, search: Search, effort: Effort, timings: Timings) -> list[Settled]:
    """Search for a strategy whose largest, or mean, squared ratio of a goal is least.

    The last is the best. For the worst statement, rounds go on from what is balanced, the first.
    """
    worst = goals.objective == "worst"
    first = replace(goals, objective="balanced") if worst else goals
    settled = _over_products(first, search, effort, timings)
    if settled is None:
        problem = Problem(first.weighted(first.even), timings)
        strategy = best_over_cells(problem, search, effort, None)
        settled = _over_cells(first, Settled(problem, strategy, first.even), search)
    elif not worst or has_few_cells(settled.problem, effort, search.noise):
        strategy = best_over_cells(settled.problem, search, effort, settled.choice)
        other, settled = settled, replace(settled, strategy=strategy)
        if not isinstance(strategy, ProductChoice):
            settled = _over_cells(first, settled, search, other)
    if not worst:
        return [settled]
    if not isinstance(settled.strategy, ProductChoice):
        return [settled, _over_cells(goals, settled, search)]
    last = _at_fixed_sets(goals, settled, search)
    return [settled, replace(last, strategy=bounded(last.choice, last.problem))]


def _over_products(
    goals: Goals, search: Search, effort: Effort, timings: Timings
) -> Settled | None:
    """Search over products of attributes, where there are some, and raise weights in rounds."""
    emphasis, best, least = goals.even, None, (math.inf, math.inf)
    searches = SEARCHES if goals.objective == "within" else 1
    for number in range(searches):
        problem = Problem(goals.weighted(emphasis), timings)
        other = replace(search, seed=search.seed + number)
        choice = best_over_products(problem, other, effort)
        if choice is None:
            return None
        first = Settled(problem, choice, emphasis)
        settled = _at_fixed_sets(goals, first, search)
        if searches == 1:
            return _none_above(goals, settled, search, effort)
        score = goals.score(settled.squares(goals, search))
        if score < least:
            best, least = settled, score
        raised = goals.raised(emphasis, first.squares(goals, search))
        if raised is None or search.clock.ended:
            break
        emphasis = raised
    return best


def _none_above(goals: Goals, settled: Settled, search: Search, effort: Effort) -> Settled:
    """What is better where an even split serves some statements better than a strategy does.

    Either these statements are measured by themselves and all others as before, or every statement
    is: that is the even split, with the best shares.
    """
    statements = terms_of_statements(settled.problem)
    if search.clock.must_end() or len(statements) != len(goals.even):
        return settled  # terms are of several statements, or split by importances
    squares = settled.squares(goals, search)
    above = np.flatnonzero(squares > ABOVE)
    if not len(above):
        return settled
    alone = [statements[number] for number in above]
    found = settled.choice.found
    terms = found.terms if isinstance(found, GaussianGroups) else [g.terms for g in found.groups]
    rest = (frozenset(some.tolist()).difference(*alone) for some in terms)
    best, least = settled, goals.score(squares)
    for groups in ([*alone, *filter(None, rest)], statements):
        with suppress(StopSolver):
            problem = Problem(goals.weighted(goals.even), settled.problem.timings)
            choice = products_in_groups(problem, search, groups, effort)
            other = _at_fixed_sets(goals, Settled(problem, choice, goals.even), search)
            score = goals.score(other.squares(goals, search))
            if score < least:
                best, least = other, score
    return best


def _at_fixed_sets(goals: Goals, settled: Settled, search: Search) -> Settled:
    """Raise weights in rounds at the sets and bases of a choice."""
    choice, columns, emphasis = settled.choice, goals.columns, settled.emphasis
    queries, searched = goals.workload.products, settled.problem.products
    if queries is None or searched is None or queries.batch.terms != searched.terms:
        return settled  # importances within tables have split them
    batch = weigh_terms(queries.batch, goals.own_importance)
    parts = columns.of_row[[own.start for _, own in queries.term_slices()]]
    reweighing = Reweighing(batch, parts, choice.found, goals.column_weights(emphasis))
    squares = goals.squares(reweighing.errors(reweighing.at()) / columns.sizes)
    combined = choice.found.combined
    if combined or goals.exact_squares is not None:
        exact = settled.squares(goals, search)
        goals, squares = goals.scaled(squares, exact), exact
    least, best, found = goals.score(squares), settled, choice.found
    if goals.objective == "worst":  # it must be better in integers too
        least = ROUNDED * least[0], least[1]
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
    best = replace(best, problem=problem, strategy=reweighed(choice, found))
    return _combined(goals, settled, best, search) if combined else best


def _combined(goals: Goals, first: Settled, settled: Settled, search: Search) -> Settled:
    """The better of a strategy and what it has become, with two groups answered from both."""
    assert isinstance(settled.choice.found, ProductStrategy)  # noqa: S101 - of marginals
    found = replace(settled.choice.found, combined=True)
    both = replace(settled, strategy=replace(settled.choice, found=found))
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
        strategy = last.strategy
        refined = refine(problem, search, strategy) if isinstance(strategy, Strategy) else None
        if refined is None:
            break
        last = Settled(problem, refined, raised)
        squares = last.squares(goals, search)
        if goals.score(squares) < least:
            least, best = goals.score(squares), last
    return best
