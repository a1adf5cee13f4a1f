"""Plans of one workload side by side: of several mechanisms, and for either noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lrm.clock import Clock, OnStep
from lrm.domain import Domain
from lrm.errors import ConvergenceError, UsageError
from lrm.planning.plan.core import Plan
from lrm.planning.plan.planner import AskedNoise, plan
from lrm.planning.plan.proposals import Proposal
from lrm.planning.solvers import settings
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies import build_strategy, check_mechanism, mechanism_names
from lrm.planning.strategies.base import Choice, Problem, Search
from lrm.planning.strategies.certificate import least_error, spectrum_of
from lrm.planning.strategies.shaped import shaped_strategy
from lrm.privacy.amounts import Amount, parse_amount
from lrm.privacy.budget import ApproxDP, PureDP, parse_delta
from lrm.privacy.norms import L1, Norm, norm_of
from lrm.queries.files import as_batch
from lrm.queries.workload.columns import statement_columns

SHAPED = "shaped"
"""The row of noise shaped to the batch; the mechanisms have independent noise."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of one mechanism on a workload: a plan, or the reason why there is none."""

    mechanism: str
    plan: Plan | None
    reason: str = ""

    @property
    def error(self) -> float:
        """Total squared error expected at ε = 1 or ρ = 1, each query by its importance."""
        if self.plan is None:
            return float("inf")
        return self.plan.weighted_strategy_error * self.plan.measured.norm.variance


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Outcomes on one workload, in the order asked for."""

    outcomes: tuple[Outcome, ...]

    @property
    def best(self) -> Outcome | None:
        """The outcome of least error, where any mechanism has a plan."""
        planned = [outcome for outcome in self.outcomes if outcome.plan]
        return min(planned, key=lambda outcome: outcome.error, default=None)

    def ratio_to_best(self, outcome: Outcome) -> float:
        """How many times the least error of the comparison an outcome has."""
        if self.best is None or outcome.plan is None:
            return float("inf")
        return outcome.error / self.best.error if self.best.error > 0 else 1.0

    def __repr__(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.text(self)

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)


class Contest:
    """One workload on which mechanisms are tried; what they share is computed once.

    Parameters
    ----------
    workload, domain
        As in ``lrm.plan``.
    time_limit
        Seconds for each mechanism, and for the bounds that they share.
    """

    def __init__(
        self, workload: Any, domain: Domain | None = None, time_limit: float | None = None
    ) -> None:
        self.problem = Problem(as_batch(workload, domain).over_all_rows())
        self._time_limit = time_limit
        self._least = math.inf  # error of the best Laplace plan so far
        clock = Clock(time_limit)
        with threadpool_limits(1):
            least = least_error(self.problem, clock, most=settings.CERTIFICATE_SECONDS)
            self._bounds = (
                least,
                spectrum_of(self.problem, clock, most=settings.CERTIFICATE_SECONDS),
            )

    def norm(self, noise: str) -> Norm:
        """The norm of independent noise for the unit of the workload's domain."""
        domain = self.problem.workload.domain
        return norm_of(noise, None if domain is None else domain.unit)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """All that can be tried on the workload."""
        return mechanism_names(products=self.problem.products is not None)

    def rows(self, noise: AskedNoise) -> tuple[str, ...]:
        """All that is tried with a noise."""
        return (*self.mechanisms, SHAPED) if noise == "pure" else self.mechanisms

    def enter(
        self,
        mechanism: str,
        *,
        norm: Norm | None = None,
        seed: int = 0,
        on_step: OnStep | None = None,
        effort: Effort = "normal",
    ) -> Outcome:
        """Try one mechanism; where it cannot run on this workload, keep its reason."""
        if mechanism != SHAPED:
            check_mechanism(mechanism)
        try:
            with threadpool_limits(1):
                self.problem.timings.restart()
                search = Search(seed, norm or L1(), Clock(self._time_limit, on_step))
                plan = self._plan(mechanism, search, effort)
        except MemoryError:
            return Outcome(mechanism, None, "it needs more memory than there is")
        except np.linalg.LinAlgError as reason:
            return Outcome(mechanism, None, f"its linear algebra failed: {reason}")
        except (UsageError, ConvergenceError) as reason:
            return Outcome(mechanism, None, str(reason))
        if isinstance(plan.measured.norm, L1):
            self._least = min(self._least, plan.weighted_strategy_error)
        return Outcome(mechanism, plan)

    def _plan(self, mechanism: str, search: Search, effort: Effort) -> Plan:
        problem, (least, spectrum) = self.problem, self._bounds
        choice: Choice | None
        with problem.timings.of("search"):
            if mechanism == SHAPED:
                choice = shaped_strategy(
                    problem, search, self._least, effort, replaced=problem.has_replaced_units
                )
            else:
                options = {"effort": effort} if mechanism == "best" else {}
                choice = build_strategy(mechanism, problem, search, options)
        if choice is None:
            raise UsageError("no body with less error than independent noise was found")
        # The bound of the problem is about independent noise; a search may have proved a better.
        proven = choice.least_error or 0.0
        bounds = proven if mechanism == SHAPED else max(least, proven), spectrum
        return Proposal(problem, choice, search.norm).plan(bounds)


def beside_plan(
    plan: Plan, mechanisms: Sequence[str] | None = None, time_limit: float | None = None
) -> Comparison:
    """Compare a plan with other mechanisms on the same workload, with the same noise."""
    contest = Contest(plan.workload, time_limit=time_limit)
    norm = contest.norm(plan.noise)
    # Mechanisms that take no time to speak of.
    brief = ("noise-on-data", "noise-on-results", "hierarchical", "wavelet")
    mechanism_names = brief if mechanisms is None else mechanisms
    names = [name for name in mechanism_names if name != plan.mechanism]
    outcomes = (contest.enter(name, norm=norm) for name in names)
    return Comparison((Outcome(plan.mechanism, plan), *outcomes))


def compare(  # noqa: PLR0913 - each is a choice of the caller
    workload: Any,
    mechanisms: Sequence[str] | None = None,
    *,
    domain: Domain | None = None,
    noise: AskedNoise = "pure",
    seed: int = 0,
    effort: Effort = "normal",
    time_limit: float | None = None,
) -> Comparison:
    """Plan one workload with several mechanisms, side by side.

    Parameters
    ----------
    workload, domain, noise, seed
        As in ``lrm.plan``; ``"pure"`` is independent Laplace noise, with a row ``shaped``.
    mechanisms
        Names of mechanisms; all by default.
    effort
        How long ``best`` searches: ``"quick"``, ``"normal"`` or ``"thorough"``.
    time_limit
        Seconds for each of them.

    >>> result = compare([[1, 1], [1, 0]], ["noise-on-data", "noise-on-results"])
    >>> [round(outcome.error, 6) for outcome in result.outcomes]
    [6.0, 16.0]
    """
    contest = Contest(workload, domain, time_limit)
    names = contest.rows(noise) if mechanisms is None else mechanisms
    norm = contest.norm(noise)
    entered = (contest.enter(name, norm=norm, seed=seed, effort=effort) for name in names)
    return Comparison(tuple(entered))


@dataclass(frozen=True, eq=False)
class NoiseChoice:
    """Two plans of a batch: for pure ε, and for ε but for a probability δ.

    Parameters
    ----------
    pure, gaussian
        The plans.
    epsilon, delta
        The guarantee that both keep; the first keeps ε alone, which is stronger.
    """

    pure: Plan
    gaussian: Plan
    epsilon: PureDP
    delta: ApproxDP

    @property
    def ratio(self) -> float:
        """Standard errors with Gaussian noise relative to those with the other, typically.

        The geometric mean over the columns of answers.
        """
        columns = statement_columns(self.pure.workload)
        squares = [
            columns.means(made.accuracy(privacy).standard_errors ** 2)
            for made, privacy in ((self.gaussian, self.delta), (self.pure, self.epsilon))
        ]
        some = (squares[0] > 0) & (squares[1] > 0)
        if not some.any():
            return 1.0
        return math.exp(float(np.log(squares[0][some] / squares[1][some]).mean()) / 2)

    @property
    def best(self) -> Plan:
        """The plan with smaller errors; where they are equal, that of the stronger guarantee."""
        return self.gaussian if self.ratio < 1.0 else self.pure


def choose_noise(
    workload: Any,
    epsilon: Amount,
    delta: Amount,
    *,
    domain: Domain | None = None,
    **options: Any,
) -> NoiseChoice:
    """Plan a batch for either noise, to compare them at a guarantee.

    Parameters
    ----------
    workload, domain, options
        As in ``lrm.plan``.
    epsilon, delta
        The guarantee that is wanted.

    Examples
    --------
    >>> choice = choose_noise([[1, 1], [1, 0], [0, 1]], 1, "1e-6", effort="quick")
    >>> choice.best.noise != "gaussian", choice.ratio > 1
    (True, True)
    """
    batch = as_batch(workload, domain)
    amount = parse_amount(epsilon, "epsilon")
    guarantees = PureDP(amount), ApproxDP(amount, parse_delta(delta))
    pure, gaussian = (plan(batch, noise=noise, **options) for noise in ("pure", "gaussian"))
    return NoiseChoice(pure, gaussian, *guarantees)
