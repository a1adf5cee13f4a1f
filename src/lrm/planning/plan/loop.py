"""The loop of a plan: propose, round once, score by the goal, and keep the better.

======================  =======================================================================
proposal                made for
======================  =======================================================================
the mechanism's own     the total error
weights in rounds       several statements, or tolerances (`lrm.planning.plan.settling`)
shaped noise            pure ε
groups with own noise   pure ε, over products of attributes
plain noise             tolerances
======================  =======================================================================

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lrm.errors import ConvergenceError, CountsError, WorkloadError
from lrm.planning.plan.goals import Goals
from lrm.planning.plan.proposals import Proposal
from lrm.planning.plan.settling import settle
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies import build_strategy, mechanism_for
from lrm.planning.strategies.base import Problem, ProductChoice, Search
from lrm.planning.strategies.mixed import mixed_strategy
from lrm.planning.strategies.shaped import shaped_strategy


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
        """Small tables with a body beside the groups of what is best so far."""
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
