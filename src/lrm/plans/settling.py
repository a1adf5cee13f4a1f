"""Weights of statements for an objective: a first search with even ones, then rounds that settle.

For marginals under Laplace noise, rounds keep the sets and bases that were found and change their
weights: milliseconds each. For other strategies a round is another search, so there are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lrm.clock import Clock, Step
from lrm.errors import StopSolver
from lrm.exact.products.strategy import ProductStrategy
from lrm.maps.linear import Floats
from lrm.maps.products.map import ProductMap
from lrm.maps.products.split import weigh_terms
from lrm.plans.balance import Balance, Objective
from lrm.plans.even_split import balance_of
from lrm.privacy.budget import Noise
from lrm.solvers.products.reweigh import PartErrors, reweigh
from lrm.strategies import AnyStrategy, Problem, Search
from lrm.strategies.base import ProductChoice
from lrm.workload import Workload
from lrm.workload.columns import StatementColumns

__all__ = ["Emphasis", "emphasis_of", "settle"]

ROUNDS = 24
"""Rounds in which the weights of statements are raised at fixed sets and bases."""

SEARCHES: dict[Objective, int] = {"balanced": 3, "worst": 5}
"""Rounds that are another search, at most."""

SETTLED = 0.995
"""Squared ratio to the even split that statements above 1 are brought to, where possible."""

TOLERATED = 1.01
"""Squared ratio that is not worth another search."""

STEP = 0.7
"""Exponent of a round: the weight of a statement grows with its squared ratio to this power."""


@dataclass(frozen=True, eq=False)
class Emphasis:
    """The weights of statements, and the workload that they make.

    Parameters
    ----------
    workload
        The batch with its own importances.
    balance, columns
        What its statements are compared with.
    """

    workload: Workload
    balance: Balance
    columns: StatementColumns

    def weighted(self, emphasis: Floats | None = None) -> Workload:
        """The batch with importances that balance its statements; its own multiply them."""
        even = np.ones(len(self.balance.statements)) if emphasis is None else emphasis
        found = self.balance.importance(self.columns, even)[self.columns.of_row]
        own = self.workload.importance
        return replace(self.workload, importance=found if own is None else found * own)

    def score(self, squares: Floats) -> tuple[float, float]:
        """What is minimised: the largest squared ratio (above 1), then their mean."""
        most, mean = float(squares.max()), float(squares.mean())
        return (most, mean) if self.balance.objective == "worst" else (max(most, 1.0), mean)

    def raised(self, emphasis: Floats, squares: Floats) -> Floats | None:
        """Other weights, by which the largest ratios fall; None where none need to."""
        if self.balance.objective == "worst":
            return np.asarray(emphasis * (squares / squares.max()) ** STEP)
        # A statement that its author has made less important may be above 1.
        if self.workload.importance is not None or squares.max() <= 1.0:
            return None
        above = np.maximum(squares / SETTLED, 1.0)
        return np.asarray(emphasis * np.where(squares > SETTLED, above ** (2 * STEP), 1.0))


def emphasis_of(
    workload: Workload, objective: Objective, noise: Noise, clock: Clock
) -> Emphasis | None:
    """What the statements of a batch are compared with; None where there is one at most."""
    found = balance_of(workload, objective, noise, clock)
    return None if found is None else Emphasis(workload, *found)


def settle(
    emphasis: Emphasis,
    problem: Problem,
    strategy: AnyStrategy,
    solve: Callable[[Problem], AnyStrategy],
    search: Search,
) -> tuple[Problem, AnyStrategy]:
    """Raise the weights of statements in rounds; return the best strategy and its problem."""
    queries = emphasis.workload.products
    if (
        isinstance(strategy, ProductChoice)
        and isinstance(strategy.found, ProductStrategy)
        and queries is not None
        and problem.products is not None
        and problem.products.terms == queries.batch.terms  # else importances split tables
    ):
        return _at_fixed_sets(emphasis, problem, queries, strategy, strategy.found, search.clock)
    return _by_searches(emphasis, problem, strategy, solve, search)


def _at_fixed_sets(  # noqa: PLR0913, PLR0917 - what is settled, and what was found
    emphasis: Emphasis,
    problem: Problem,
    queries: ProductMap,
    choice: ProductChoice,
    found: ProductStrategy,
    clock: Clock,
) -> tuple[Problem, AnyStrategy]:
    columns = emphasis.columns
    parts = columns.of_row[[own.start for _, own in queries.term_slices()]]
    errors = PartErrors(queries.batch, parts, found)

    def squares_of(strategy: ProductStrategy) -> Floats:
        means = errors.of(strategy) / columns.sizes
        return emphasis.balance.squared_ratios(columns, means, "laplace")

    strategy = ProductStrategy.combine(found.groups) if found.combined else found
    squares = squares_of(strategy)
    least, best = emphasis.score(squares), (problem, choice)
    weights = np.ones(len(squares))
    try:
        for number in range(ROUNDS):
            raised = emphasis.raised(weights, squares)
            if raised is None:
                break
            weights = raised
            workload = emphasis.weighted(weights)
            strategy = reweigh(weigh_terms(queries.batch, workload.importance), strategy)
            squares = squares_of(strategy)
            score = emphasis.score(squares)
            if score < least:
                settled = replace(choice, found=strategy)
                least, best = score, (Problem(workload, problem.timings), settled)
            clock.tick(Step("statements", number + 1, strategy.error))
    except StopSolver:
        pass
    return best


def _by_searches(
    emphasis: Emphasis,
    problem: Problem,
    strategy: AnyStrategy,
    solve: Callable[[Problem], AnyStrategy],
    search: Search,
) -> tuple[Problem, AnyStrategy]:
    def squares_of(problem: Problem, strategy: AnyStrategy) -> Floats:
        measured, reconstruction = strategy.rounded(problem, search.noise, None)
        scale = measured.sensitivity_for(search.noise) / 2.0**measured.bits
        means = emphasis.columns.means(reconstruction.row_squared_norms * scale**2)
        return emphasis.balance.squared_ratios(emphasis.columns, means, search.noise)

    squares = squares_of(problem, strategy)
    least, best = emphasis.score(squares), (problem, strategy)
    weights = np.ones(len(squares))
    for _ in range(SEARCHES[emphasis.balance.objective]):
        raised = emphasis.raised(weights, squares)
        enough = emphasis.balance.objective == "balanced" and squares.max() <= TOLERATED
        if raised is None or enough or search.clock.ended:
            break
        weights = raised
        own = Problem(emphasis.weighted(weights), problem.timings)
        found = solve(own)
        squares = squares_of(own, found)
        score = emphasis.score(squares)
        if score < least:
            least, best = score, (own, found)
    return best
