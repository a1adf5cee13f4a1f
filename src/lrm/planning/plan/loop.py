"""The loop of a plan: propose, round once, score by the goal, and keep the better.

======================  =======================================================================
proposal                made for
======================  =======================================================================
the mechanism's own     the total error
weights in rounds       several statements, or tolerances (`settle`)
shaped noise            pure ε
groups with own noise   pure ε, over products of attributes
plain noise             tolerances
======================  =======================================================================

For goals, a first search has even weights of the goals; then rounds settle. For marginals and
residuals over products, rounds keep the sets and bases that were found and change their weights:
milliseconds each. Then, where cells are few, their list is searched with the weights that these
rounds have ended with; further rounds go on from the last strategy.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lrm.clock import Step, Timings
from lrm.errors import ConvergenceError, CountsError, StopSolver, WorkloadError
from lrm.planning.plan.goals import ENOUGH, Goals
from lrm.planning.plan.proposals import Proposal
from lrm.planning.solvers.products.reweigh import Reweighing
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies import build_strategy, mechanism_for
from lrm.planning.strategies.base import Problem, ProductChoice, Search, Strategy
from lrm.planning.strategies.best import (
    best_over_cells,
    best_over_products,
    has_few_cells,
    is_refinable,
    refine,
)
from lrm.planning.strategies.mixed import mixed_strategy
from lrm.planning.strategies.products import (
    bounded,
    products_in_groups,
    reweighed,
    terms_of_statements,
)
from lrm.planning.strategies.shaped import shaped_strategy
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.products.combine import weigh_terms


@dataclass(frozen=True, eq=False)
class Proposing:
    """What proposals are made for.

    Parameters
    ----------
    problem
        The batch.
    goals
        What is minimised; the total error without them.
    mechanism, options
        What proposes first.
    search
        The seed, the norm and the clock.
    max_records
        The most records of a table, where they are declared.
    pure
        Whether any noise for pure ε will do.
    """

    problem: Problem
    goals: Goals | None
    mechanism: str
    search: Search
    max_records: int | None
    options: Mapping[str, Any]
    pure: bool

    @property
    def effort(self) -> Effort:
        """How long to search."""
        effort: Effort = self.options.get("effort", "normal")
        return effort

    def first(self) -> list[Proposal]:
        """What the mechanism proposes: the last is the best."""
        problem, search, timings = self.problem, self.search, self.problem.timings
        if self.goals is None:
            choice = build_strategy(self.mechanism, problem, search, self.options)
            return [Proposal(problem, choice, search.norm, self.max_records)]
        mechanism_for(self.mechanism, problem, self.options)  # refuses options it does not have
        return settle(self.goals, search, self.effort, timings, self.max_records)

    def further(self, first: list[Proposal]) -> Iterator[Callable[[Proposal], Proposal | None]]:
        """Yield what may be better than the best so far."""
        if not first[-1].choice.exact:
            return
        if self.pure and self.mechanism == "best":
            for problem in dict.fromkeys(proposal.problem for proposal in first):
                yield partial(self._shaped, problem)
            yield self._mixed
        if self.goals is not None and self.goals.confidence is not None:
            for name in ("noise-on-data", "noise-on-results"):
                yield partial(self._plain, name, first[-1])

    def _shaped(self, problem: Problem, best: Proposal) -> Proposal | None:
        """Noise shaped to the batch."""
        error, replaced = best.error_of(problem.workload), problem.has_replaced_units
        choice = shaped_strategy(problem, self.search, error, self.effort, replaced=replaced)
        return None if choice is None else replace(best, problem=problem, choice=choice)

    def _mixed(self, best: Proposal) -> Proposal | None:
        """Small tables with a body, next to the groups of the best proposal so far."""
        if not isinstance(best.choice, ProductChoice):
            return None
        error = best.error_of(best.problem.workload)
        choice = mixed_strategy(best.problem, self.search, best.choice, error)
        return None if choice is None else replace(best, choice=choice)

    def _plain(self, name: str, searched: Proposal, best: Proposal) -> Proposal | None:
        """Plain noise, which may meet tolerances at a smaller amount.

        Noise on small integers is almost always 0 from some amount on, which squared errors of real
        noise, by which strategies are searched for, do not show.
        """
        del best
        # Weights of a batch up to which it is compared.
        if searched.problem.workload.queries.entry_count > (1 << 20):
            return None
        try:
            choice = build_strategy(name, searched.problem, self.search, {})
        except (WorkloadError, ConvergenceError, CountsError):
            return None
        least = searched.choice.least_error
        return replace(searched, choice=replace(choice, mechanism="best", least_error=least))


def best_proposal(proposing: Proposing) -> Proposal:
    """The best of all proposals, by their integers."""
    timings = proposing.problem.timings
    with timings.of("search"):
        first = proposing.first()
    best = first[-1]
    for propose in proposing.further(first):
        with timings.of("search"):
            other = propose(best)
        if other is not None and other.is_better_than(best):
            best = other
    return best


def settle(
    goals: Goals,
    search: Search,
    effort: Effort,
    timings: Timings,
    max_records: int | None = None,
) -> list[Proposal]:
    """Search for a strategy whose largest, or mean, squared ratio of a goal is least.

    The last is the best. For the worst statement, rounds go on from what is balanced, the first.
    """
    worst = goals.objective == "worst"
    balanced = replace(goals, objective="balanced") if worst else goals
    problem = Problem(balanced.weighted(balanced.even), timings)
    start = partial(
        Proposal,
        norm=search.norm,
        max_records=max_records,
        goals=balanced,
        emphasis=balanced.even,
    )
    found = _over_products(start, balanced, search, effort, timings)
    if found is None:
        listed = start(problem, best_over_cells(problem, search, effort, None))
        found = _over_cells(listed, search)
    elif not worst or has_few_cells(found.problem, effort, search):
        choice = best_over_cells(found.problem, search, effort, _products(found))
        other, found = found, replace(found, choice=choice)
        if not isinstance(choice, ProductChoice):
            found = _over_cells(found, search, other)
    found = _none_above(found, search, effort)
    if not worst:
        return [found]
    first = replace(found, goals=goals)
    if not isinstance(first.choice, ProductChoice):
        return [first, _over_cells(first, search)]
    last = _at_fixed_sets(first, search)
    return [first, replace(last, choice=bounded(_products(last), last.problem))]


def _products(proposal: Proposal) -> ProductChoice:
    """The strategy of a proposal over products."""
    assert isinstance(proposal.choice, ProductChoice)  # noqa: S101 - asked for after a search
    return proposal.choice


def _weights(proposal: Proposal) -> tuple[Goals, Floats]:
    """What a proposal is compared by, and the weights of its goals."""
    assert proposal.goals is not None and proposal.emphasis is not None  # noqa: S101, PT018
    return proposal.goals, proposal.emphasis


def _over_products(
    start: Callable[..., Proposal], goals: Goals, search: Search, effort: Effort, timings: Timings
) -> Proposal | None:
    """Search over products of attributes, where there are some, and raise weights in rounds."""
    emphasis, best = goals.even, None
    # Searches over products for tolerances, each with the weights that follow from the one before
    # and other random starts: one alone had up to 3.5 % more of the largest ratio than the best of
    # them.
    searches = 6 if goals.objective == "within" else 1
    for number in range(searches):
        problem = Problem(goals.weighted(emphasis), timings)
        other = replace(search, seed=search.seed + number)
        choice = best_over_products(problem, other, effort)
        if choice is None:
            return None
        first = start(problem, choice, emphasis=emphasis)
        found = _at_fixed_sets(first, search)
        if searches == 1:
            return found
        if best is None or goals.score(found.squares) < goals.score(best.squares):
            best = found
        raised = goals.raised(emphasis, first.squares)
        if raised is None or search.clock.ended:
            break
        emphasis = raised
    return best


def _none_above(found: Proposal, search: Search, effort: Effort) -> Proposal:
    """What is better where an even split serves some statements better than a strategy does.

    Either these statements are measured by themselves and all others as before, or every statement
    is: that is the even split, with the best shares. For tolerances, which say nothing about even
    splits, it is always compared. What counts are the integers: large sets leave few bits where
    many records are declared, or numbers by knots.
    """
    goals, _ = _weights(found)
    statements = terms_of_statements(found.problem)
    if search.clock.must_end() or len(statements) < 2:
        return found
    within = goals.objective == "within"
    above_it = found.squares > 1.001**2  # but for rounding
    if not above_it.any() and not within:
        return found
    tried = [statements]
    if (
        len(statements) == len(goals.even)
        and not within
        and isinstance(found.choice, ProductChoice)
    ):
        above = [statements[number] for number in np.flatnonzero(above_it)]
        groups = found.choice.found.groups
        rest = (frozenset(group.terms.tolist()).difference(*above) for group in groups)
        tried.insert(0, [*above, *filter(None, rest)])
    best = found
    for parts in tried:
        with suppress(StopSolver):
            problem = Problem(goals.weighted(goals.even), found.problem.timings)
            choice = products_in_groups(problem, search, parts, effort)
            other = replace(found, problem=problem, choice=choice, emphasis=goals.even)
            other = _at_fixed_sets(other, search)
            other = replace(other, choice=bounded(_products(other), other.problem))
            if goals.score(other.squares) < goals.score(best.squares):
                best = other
    return best


def _at_fixed_sets(start: Proposal, search: Search) -> Proposal:
    """Raise weights in rounds at the sets and bases of a choice."""
    choice, (goals, emphasis) = _products(start), _weights(start)
    columns = goals.columns
    queries, searched = goals.workload.products, start.problem.products
    if queries is None or searched is None or queries.batch.terms != searched.terms:
        return start  # importances within tables have split them
    batch = weigh_terms(queries.batch, goals.own_importance)
    parts = columns.of_row[[own.start for _, own in queries.term_slices()]]
    reweighing = Reweighing(batch, parts, choice.found, goals.column_weights(emphasis))
    squares = goals.squares(reweighing.errors(reweighing.at()) / columns.sizes)
    combined = choice.found.combined
    if (combined or goals.exact_squares is not None) and np.isfinite(start.squares).all():
        goals, squares = goals.scaled(squares, start.squares), start.squares
    least, best = goals.score(squares), None
    if goals.objective == "worst":  # it must be better in integers too
        # What the largest squared ratio must fall to in rounds: rounding to integers costs less.
        least = 0.99 * least[0], *least[1:]
    last = 0
    with suppress(StopSolver):
        # Rounds in which the weights of goals are raised at fixed sets and bases.
        for number in range(24):
            raised = goals.raised(emphasis, squares)
            if raised is None or _is_settled(goals, squares, number - last):
                break
            emphasis = raised
            strategy = reweighing.at(goals.column_weights(emphasis))
            squares = goals.squares(reweighing.errors(strategy) / columns.sizes)
            if goals.score(squares) < least:
                least, last, best = goals.score(squares), number, (emphasis, strategy)
            search.clock.tick(Step("statements", number + 1, strategy.error))
    if best is None:
        return start
    emphasis, strategy = best
    problem = Problem(goals.weighted(emphasis), start.problem.timings)
    found = replace(start, problem=problem, choice=reweighed(choice, strategy), emphasis=emphasis)
    return _combined(start, found) if combined else found


def _combined(first: Proposal, found: Proposal) -> Proposal:
    """The better of a strategy and what it has become, with two groups answered from both."""
    choice = _products(found)
    both = replace(found, choice=replace(choice, found=replace(choice.found, combined=True)))
    goals, _ = _weights(first)
    return min(first, found, both, key=lambda candidate: goals.score(candidate.squares))


def _over_cells(first: Proposal, search: Search, other: Proposal | None = None) -> Proposal:
    """Raise weights in rounds over a list of cells; ``other`` is a strategy to compare with.

    Rounds are compared in real numbers. What they end with is rounded, and compared in integers.
    """
    best, (goals, _) = first, _weights(first)
    if is_refinable(first.problem, search, first.choice):
        best = _refined(first, search)
    if other is not None and goals.score(other.squares) < goals.score(best.squares):
        return other
    return best


def _refined(first: Proposal, search: Search) -> Proposal:
    """The best of rounds over a list of cells, each from the last strategy."""
    last, best, (goals, emphasis) = first, first, _weights(first)
    squares = _real_squares(first)
    # Rounds over a list of cells may take three tenths of the work of the search before them.
    least, most, found = goals.score(squares), 1.3 * search.clock.work, 0
    # Rounds over a list of cells.
    for number in range(16):
        raised = goals.raised(emphasis, squares)
        if raised is None or search.clock.ended or search.clock.work > most:
            break
        if _is_settled(goals, squares, number - found):
            break
        emphasis, problem = raised, Problem(goals.weighted(raised), first.problem.timings)
        choice = refine(problem, search, _listed(last))
        last = replace(first, problem=problem, choice=choice, emphasis=emphasis)
        squares = _real_squares(last)
        if not np.isfinite(squares).all():
            break
        if goals.score(squares) < least:
            least, best, found = goals.score(squares), last, number
    return best


def _listed(proposal: Proposal) -> Strategy:
    """The strategy of a proposal over a list of cells."""
    assert isinstance(proposal.choice, Strategy)  # noqa: S101 - asked for after a search
    return proposal.choice


def _real_squares(proposal: Proposal) -> Floats:
    """The squared ratio of each goal before rounding; after it where intervals decide."""
    goals, _ = _weights(proposal)
    if goals.exact_squares is not None:
        return proposal.squares
    errors = _listed(proposal).row_errors(proposal.problem, proposal.norm)
    return goals.squares(goals.columns.means(errors))


def _is_settled(goals: Goals, squares: Floats, rounds: int) -> bool:
    """Whether balanced statements, of which none is above an even split, gain no more."""
    return goals.objective == "balanced" and squares.max() <= ENOUGH and rounds > 3
