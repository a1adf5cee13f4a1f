"""Proposals: strategies that may become the plan, each rounded once, compared, and kept or not."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from importlib.metadata import version

import numpy as np

from lrm.clock import UNLIMITED, Clock
from lrm.errors import BudgetError, ConvergenceError, CountsError, UsageError
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.plan.core import Plan, check_exactness
from lrm.planning.plan.goals import Goals, TotalError, accuracy_of, weighted_error
from lrm.planning.plan.tolerances import least_amount
from lrm.planning.solvers import settings
from lrm.planning.solvers.bounds import Spectrum
from lrm.planning.strategies.base import Choice, Problem, SearchRecord
from lrm.planning.strategies.certificate import least_error, spectrum_of
from lrm.privacy.amounts import MOST_AMOUNT
from lrm.privacy.norms import Norm
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Workload

STAGES = ("reduction", "search", "rounding", "certificate")
"""Where the time of a plan goes."""


_RECORD = "_search_record"


def search_record(plan: Plan) -> SearchRecord:
    """What the search for a plan tried; a plan that was loaded has no record.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], effort="quick")
    >>> search_record(plan).winner in {each.name for each in search_record(plan).candidates}
    True
    """
    record = vars(plan).get(_RECORD)
    if not isinstance(record, SearchRecord):
        raise UsageError("the plan was not searched for in this process")
    return record


@dataclass(frozen=True, eq=False)
class Proposal:
    """A strategy for a problem, and what it is compared by.

    Parameters
    ----------
    problem
        The batch, with the weights that the strategy was found for.
    choice
        The strategy in real numbers.
    norm
        The norm of its columns; the norm of a body comes with the strategy.
    max_records
        The most records of a table, where they are declared.
    goals
        What is minimised; the total error without them.
    emphasis
        The weights of goals that those of the problem follow from.
    """

    problem: Problem
    choice: Choice
    norm: Norm
    max_records: int | None = None
    goals: Goals | None = None
    emphasis: Floats | None = None

    @property
    def goal(self) -> Goals | TotalError:
        """What is minimised."""
        return self.goals or TotalError(self.problem.workload)

    @cached_property
    def rounded(self) -> tuple[Measured, Reconstruction]:
        """The integers and the reconstruction; a ``ConvergenceError`` if they are not exact."""
        with self.problem.timings.of("rounding"):
            measured, reconstruction = self._rounded()
        if self.choice.exact:
            check_exactness(self.choice.mechanism, reconstruction)
        return measured, reconstruction

    def error_of(self, workload: Workload) -> float:
        """The total error of the queries of the batch by the importances of ``workload``."""
        return weighted_error(workload, *self.rounded)

    @cached_property
    def squares(self) -> Floats:
        """What the goal makes of the integers; infinite where there are none."""
        try:
            return self.goal.squares_of(*self.rounded)
        except (ConvergenceError, CountsError):
            return np.full(1 if self.goals is None else len(self.goals.even), np.inf)

    @cached_property
    def score(self) -> tuple[float | Fraction, ...]:
        """What is minimised; infinite where the strategy cannot be rounded."""
        if self.goals is None or self.goals.confidence is None:
            return self.goal.score(self.squares)
        if not np.isfinite(self.squares).all():
            return (math.inf,)
        # On lattices the least amounts are in no proportion to errors.
        accuracy_at = partial(accuracy_of, self.problem.workload, *self.rounded)
        norm = self.rounded[0].norm
        try:
            met = least_amount(self.problem.workload, accuracy_at, norm, self.goals.confidence)
        except BudgetError:
            return (2 * MOST_AMOUNT,)
        return (next(iter(met.privacy.amounts.values())),)

    def is_better_than(self, other: Proposal) -> bool:
        """Whether it is, by the goal; errors that are simulated were compared by the search."""
        if self.goals is None and self.choice.is_simulated:
            return bool(np.isfinite(self.squares).all())
        return self.score < other.score

    def plan(
        self, bounds: tuple[float, Spectrum | None] | None = None, clock: Clock = UNLIMITED
    ) -> Plan:
        """The plan, with bounds of the same problem where they are known already."""
        problem, choice, goal = self.problem, self.choice, self.goal
        measured, reconstruction = self.rounded
        with problem.timings.of("certificate"):
            least, spectrum = bounds or self._bounds(clock)
        if self.norm != self.norm.plain:  # they are of records, not of limited rows of a person
            least, spectrum = 0.0, None
        timings = problem.timings
        details = {
            **choice.details,
            "seconds": timings.elapsed(),
            "timings": {stage: timings.seconds.get(stage, 0.0) for stage in STAGES},
            "software": f"lrm {version('lrm')}",
        }
        made = Plan(
            workload=problem.workload,
            mechanism=choice.mechanism,
            measured=measured,
            reconstruction_map=reconstruction,
            least_error=least,
            spectrum=spectrum,
            exact=choice.exact,
            objective=goal.objective,
            even_split=goal.compared,
            importances=goal.importances,
            details=details,
        )
        vars(made)[_RECORD] = choice.record
        return made

    def _rounded(self) -> tuple[Measured, Reconstruction]:
        """Round the strategy; counts in units of 2^−20 of a record leave it fewer bits."""
        problem, choice, norm = self.problem, self.choice, self.norm
        domain = problem.workload.domain
        if domain is None or not domain.record_bits:
            return choice.rounded(problem, norm, self.max_records)
        # Records that a plan admits by default where numbers are declared by knots: the first that
        # costs no accuracy. A larger table is counted exactly too, in slower arithmetic, and
        # measurements beyond 62 bits are clamped. Noise has at most 54 bits, also at an ε of 0.001.
        fewest = 1 << (8 + (1000 * domain.unit.factor).bit_length())
        declared = (1 << 26, 1 << 22, 1 << 18) if self.max_records is None else (self.max_records,)
        admitted = [max(records, fewest) for records in declared]
        best, least, ideal = None, math.inf, math.inf

        def cost_of(rounded: tuple[Measured, Reconstruction]) -> float:
            return float(self.goal.squares_of(*rounded).max())

        if len(admitted) > 1:
            with suppress(CountsError, ConvergenceError):
                ideal = cost_of(choice.rounded(problem, norm, None))
        for records in admitted:
            with suppress(CountsError, ConvergenceError):
                rounded = choice.rounded(problem, norm, records << domain.record_bits)
                cost = cost_of(rounded)
                if best is None or cost < least:
                    best, least = rounded, cost
            # By how much rounding may raise the squared error, or the largest squared ratio of a
            # statement, before fewer records are admitted.
            if least <= 1.001 * ideal:
                break
        if best is None:
            raise CountsError(
                f"with numbers by knots a table of up to {admitted[-1]:,} records needs more than "
                "62 bits; declare a smaller max_records, or fewer and smaller knots"
            )
        return best

    def _bounds(self, clock: Clock) -> tuple[float, Spectrum | None]:
        """The bounds of the problem, as far as they take a small part of the whole time."""
        if clock.stopped:  # Ctrl-C: a little more patience, and a second one ends it
            # Seconds that the certificate may still take after Ctrl-C has ended the search.
            clock = Clock(0.1)
        is_searched = self.choice.mechanism == "best"
        # Each of two bounds after a search of `best` may take an eighth of the work so far, or this
        # number of seconds: the certificate is then at most a fifth of the whole.
        at_least = 0.2 if is_searched else settings.CERTIFICATE_SECONDS
        most = max(at_least, clock.work / 8)
        least = self.choice.least_error
        if least is None:
            error = self.error_of(self.problem.workload) if self.choice.exact else np.inf
            least = least_error(self.problem, clock, error=error, most=most)
        return least, spectrum_of(self.problem, clock, most=most)
