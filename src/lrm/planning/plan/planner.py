"""From a workload and a mechanism to a plan."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from typing import Any, Literal, get_args

import numpy as np
from threadpoolctl import threadpool_limits

from lrm.clock import UNLIMITED, Clock, OnStep, Timings
from lrm.domain.people import Declared
from lrm.errors import (
    BudgetError,
    ConvergenceError,
    CountsError,
    PlanWarning,
    UsageError,
    WorkloadError,
)
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.plan.concerns import larger_errors
from lrm.planning.plan.core import Plan
from lrm.planning.plan.even_split import even_split
from lrm.planning.plan.goals import OBJECTIVES, Goals, Objective, weighted_error
from lrm.planning.plan.settling import settle
from lrm.planning.plan.tolerances import tolerance_goals
from lrm.planning.solvers import settings
from lrm.planning.solvers.bounds import Spectrum
from lrm.planning.strategies import build_strategy, mechanism_for
from lrm.planning.strategies.base import Choice, Problem, Search
from lrm.planning.strategies.certificate import certificate_seconds, least_error, spectrum_of
from lrm.planning.strategies.shaped import shaped_strategy
from lrm.privacy.amounts import MOST_AMOUNT
from lrm.privacy.budget import Noise
from lrm.queries.files import as_batch
from lrm.queries.workload import Workload

AskedNoise = Literal["pure", "laplace", "gaussian"]
"""What a caller asks for; ``"pure"`` becomes ``"laplace"`` or ``"shaped"`` in a plan."""

NOISES: tuple[str, ...] = get_args(AskedNoise)

STAGES = ("reduction", "search", "rounding", "certificate")
"""Where the time of a plan goes."""

SHARE, AT_LEAST = 1 / 8, 0.2
"""Each of the two bounds after a search of `best` may take this share of the work so far, or this
number of seconds: the certificate is then at most a fifth of the whole."""

DIVIDED_MAX_RECORDS = (1 << 26, 1 << 22, 1 << 18)
"""Records that a plan admits by default where numbers are declared by knots: the first that costs
no accuracy.

A larger table is counted exactly too, in slower arithmetic, and measurements beyond 62 bits are
clamped."""

PLAIN, MOST_PLAIN_ENTRIES = ("noise-on-data", "noise-on-results"), 1 << 20
"""Mechanisms that plans for tolerances are compared with, and weights of a batch up to which."""

ROUNDED = 1.001
"""By how much rounding may raise the squared error, or the largest squared ratio of a statement,
before fewer records are admitted."""

AFTER_STOP = 0.1
"""Seconds that the certificate may still take after Ctrl-C has ended the search."""


class PlanInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a search; ``plan`` is the best plan that it had found.

    Nothing that follows the search runs, such as a release; a caller who wants the plan takes it
    from here, or gives the search a ``time_limit``.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__("the search was interrupted; `plan` of this exception is the best so far")
        self.plan = plan


def plan(  # noqa: PLR0913 - each is a choice of the caller
    workload: Any,
    mechanism: str = "best",
    *,
    domain: Declared | None = None,
    noise: AskedNoise = "pure",
    objective: Objective | None = None,
    meet: float | None = None,
    seed: int = 0,
    on_step: OnStep | None = None,
    time_limit: float | None = None,
    max_records: int | None = None,
    threads: int = 1,
    **options: Any,
) -> Plan:
    """Choose a strategy for ``workload``. Sees no data and costs no privacy.

    Parameters
    ----------
    workload
        A ``Workload``, as ``lrm.sql``, ``lrm.read_batch`` and every builder return it; an array,
        a sparse matrix or a frame with one row per query; or SQL, which needs ``domain``.
    mechanism
        ``"best"`` (default), ``"lowrank"`` (the paper's), or a baseline such as
        ``"noise-on-data"``; ``lrm.planning.strategies.MECHANISMS`` has all names.
    domain
        The public domain of the table, for SQL and matrices, or the people whose tables SQL reads;
        a ``Workload`` may have its own.
    noise
        ``"pure"`` (default) takes the best noise for pure ε-differential privacy: noise shaped to
        the batch where ``"best"`` finds some with less error, else Laplace noise. ``"laplace"``
        is independent Laplace noise in any case, ``"gaussian"`` is for ρ-zCDP and (ε, δ).
    objective
        What ``"best"`` minimises: the ``"total"`` squared error of all answers; ``"balanced"``,
        the sum over statements of their squared errors relative to what each would have under an
        even split of the budget; ``"worst"``, the largest of these. By default balanced for batches
        of several SQL or YAML statements, else total. Importances multiply.
    meet
        In place of an objective: the confidence, such as 0.95, with which answers are to be
        within the tolerances of their statements (``-- within: 50``). The strategy is chosen for
        the least ε or ρ at which all of them are, which ``meets`` of the plan finds.
    seed
        For the random starts of solvers. How long to search is decided by counted operations, so
        the same seed gives the same plan on every machine, however busy it is, up to the rounding
        of its linear algebra; a ``time_limit`` or Ctrl-C may end it earlier. The seed has nothing
        to do with the noise of a release.
    on_step
        Called with each ``Step`` of a solver; may raise ``StopSolver`` to end with the best
        so far. Ctrl-C ends the search with ``PlanInterrupted``, a ``KeyboardInterrupt`` whose
        ``plan`` is the best so far; a second Ctrl-C interrupts at once.
    time_limit
        Seconds until the plan must be ready, with the best strategy found so far: for
        reduction, search, rounding and certificate together. A mechanism that cannot have any
        strategy by then is refused; ``"best"`` always has one.
    max_records
        The most records a table may have that the plan will be used on.
    threads
        How many threads matrix products may use.
    options
        Options of the mechanism, for example ``rank=…`` for ``"lowrank"``.

    Examples
    --------
    >>> import lrm
    >>> both = lrm.plan([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], "noise-on-data")
    >>> round(both.expected_squared_error(epsilon="0.1"))
    1600
    """
    if noise not in NOISES:
        raise UsageError(f"noise must be one of {', '.join(NOISES)}, not {noise!r}")
    kind: Noise = "gaussian" if noise == "gaussian" else "laplace"
    clock = Clock(time_limit, on_step)
    timings = Timings()
    batch = as_batch(workload, domain).over_all_rows()
    with threadpool_limits(threads), clock.stop_on_interrupt() as interruption:
        with timings.of("search"):
            goals = _goals(batch, mechanism, objective, meet, kind, clock)
        problem = Problem(batch, timings)
        search = Search(seed, kind, clock)
        if time_limit is not None:
            search = search.less(min(time_limit / 5, certificate_seconds(problem)))
        problems = [problem]
        with timings.of("search"):
            if goals is None:
                strategy = build_strategy(mechanism, problem, search, options)
            else:
                mechanism_for(mechanism, problem, options)  # refuses options that it does not have
                settled = settle(goals, search, options.get("effort", "normal"), timings)
                problems = list(dict.fromkeys(each.problem for each in settled))
                problem, strategy = settled[-1].problem, settled[-1].strategy
        made = plan_of(
            problem,
            strategy,
            noise=kind,
            max_records=max_records,
            clock=clock,
            goals=goals,
        )
        if noise == "pure" and mechanism == "best" and made.exact:
            effort = options.get("effort", "normal")
            for other in problems:
                made = _shaped(other, made, search, effort, max_records, goals) or made
        if goals is not None and goals.confidence is not None and made.exact:
            for name in PLAIN:
                made = _plain(name, problem, made, search, max_records, goals) or made
    if interruption.received:
        raise PlanInterrupted(made)
    # Importances are a choice of the author: some statements have larger errors for others.
    chosen = mechanism != "best" or batch.importance is not None
    for sentence in () if chosen else larger_errors(made):
        warnings.warn(sentence, PlanWarning, stacklevel=2)
    return made


def _goals(  # noqa: PLR0913, PLR0917 - what they follow from
    batch: Workload,
    mechanism: str,
    objective: Objective | None,
    meet: float | None,
    noise: Noise,
    clock: Clock,
) -> Goals | None:
    """What the errors of statements are compared with; None where the total error is minimised."""
    if meet is not None:
        if objective is not None:
            raise UsageError(
                "tolerances (meet) are an objective of their own; leave out the other objective"
            )
        _check_best(mechanism)
        return tolerance_goals(batch, meet)
    goal = _objective(batch, mechanism, objective)
    return None if goal == "total" else even_split(batch, goal, noise, clock)


def _objective(batch: Workload, mechanism: str, asked: Objective | None) -> Objective:
    """What is minimised: what was asked for, or what suits the batch."""
    if asked is None:
        return "balanced" if mechanism == "best" and len(batch.statements) > 1 else "total"
    if asked not in OBJECTIVES:
        raise UsageError(f"objective must be one of {', '.join(OBJECTIVES)}, not {asked!r}")
    if asked != "total":
        _check_best(mechanism)
    return asked


def _check_best(mechanism: str) -> None:
    if mechanism != "best":
        raise UsageError(
            f"{mechanism} minimises the total error; objectives and tolerances are for best"
        )


def _shaped(  # noqa: PLR0913, PLR0917 - what it is compared with
    problem: Problem,
    before: Plan,
    search: Search,
    effort: Any,
    max_records: int | None,
    goals: Goals | None,
) -> Plan | None:
    """The plan with shaped noise, where it is better than another plan, most often Laplace."""
    with problem.timings.of("search"):
        own = problem.workload is before.workload
        error = weighted_error(
            problem.workload, before.measured, before.reconstruction_map, before.noise
        )
        choice = shaped_strategy(
            problem, search, error, effort, replaced=problem.has_replaced_units
        )
    if choice is None:
        return None
    bounds = choice.least_error, before.spectrum if own else None
    try:
        made = plan_of(
            problem, choice, noise="shaped", max_records=max_records, bounds=bounds, goals=goals
        )
    except ConvergenceError:
        return None
    if goals is None:
        # The errors of a hull by parts are simulated where they are asked for: the search has
        # shown by a small sample, and with a margin, that they are smaller.
        if choice.is_simulated:
            return made
        return made if made.weighted_strategy_error < error else None
    if goals.confidence is not None:  # on lattices the least amounts are in no proportion to errors
        amounts = [_least_amount(plan, goals.confidence) for plan in (made, before)]
        return made if amounts[0] < amounts[1] else None
    scores = [
        goals.score(goals.squares_of(plan.measured, plan.reconstruction_map, plan.noise))
        for plan in (made, before)
    ]
    return made if scores[0] < scores[1] else None


def _plain(  # noqa: PLR0913, PLR0917 - what it is compared with
    name: str,
    problem: Problem,
    before: Plan,
    search: Search,
    max_records: int | None,
    goals: Goals,
) -> Plan | None:
    """The plan with plain noise, if it meets tolerances at a smaller amount than another plan.

    Noise on small integers is almost always 0 from some amount on, which squared errors of real
    noise, by which strategies are searched for, do not show.
    """
    assert goals.confidence is not None  # noqa: S101 - the caller looked
    if problem.workload.queries.entry_count > MOST_PLAIN_ENTRIES:
        return None
    try:
        choice = replace(build_strategy(name, problem, search, {}), mechanism="best")
        bounds = before.least_error, before.spectrum
        made = plan_of(
            problem,
            choice,
            noise=search.noise,
            max_records=max_records,
            bounds=bounds if before.workload is problem.workload else None,
            goals=goals,
        )
    except (WorkloadError, ConvergenceError, CountsError):
        return None
    amounts = [_least_amount(plan, goals.confidence) for plan in (made, before)]
    return made if amounts[0] < amounts[1] else None


def _least_amount(plan: Plan, confidence: float) -> Fraction:
    """The least amount at which a plan meets the tolerances of its statements, if any does."""
    try:
        return next(iter(plan.meets(confidence).privacy.amounts.values()))
    except BudgetError:
        return 2 * MOST_AMOUNT


def plan_of(  # noqa: PLR0913 - what a plan is made of
    problem: Problem,
    strategy: Choice,
    *,
    noise: Noise = "laplace",
    max_records: int | None = None,
    bounds: tuple[float, Spectrum | None] | None = None,
    clock: Clock = UNLIMITED,
    goals: Goals | None = None,
) -> Plan:
    """Round a strategy to integers and state the accuracy that they guarantee.

    ``bounds`` are those of the same problem, where they are known already; those that the clock
    leaves no time for are left out. ``goals`` are what the statements are compared with.
    """
    timings = problem.timings
    with timings.of("rounding"):
        measured, way_back = _rounded(problem, strategy, noise, max_records, goals)
        error = np.inf
        if strategy.exact and bounds is None:
            error = weighted_error(problem.workload, measured, way_back, noise)
    with timings.of("certificate"):
        least, spectrum = bounds or _bounds(problem, strategy, error, clock)
    stages = {stage: timings.seconds.get(stage, 0.0) for stage in STAGES}
    measures = {
        "seconds": timings.elapsed(),
        "timings": stages,
        "software": f"lrm {version('lrm')}",
    }
    return Plan(
        workload=problem.workload,
        mechanism=strategy.mechanism,
        measured=measured,
        reconstruction_map=way_back,
        least_error=least,
        spectrum=spectrum,
        noise=noise,
        exact=strategy.exact,
        objective="total" if goals is None else goals.objective,
        even_split=None if goals is None or goals.exact_squares else goals,
        details={**strategy.details, **measures},
    )


def _rounded(
    problem: Problem,
    strategy: Choice,
    noise: Noise,
    max_records: int | None,
    goals: Goals | None,
) -> tuple[Measured, Reconstruction]:
    """Round a strategy; counts in units of 2^−20 of a record leave it fewer bits."""
    domain = problem.workload.domain
    divided = 0 if domain is None else domain.record_bits
    if not divided:
        return strategy.rounded(problem, noise, max_records)

    def cost(rounded: tuple[Measured, Reconstruction]) -> float:
        if goals is None or not strategy.exact:
            return weighted_error(problem.workload, *rounded, noise)
        return float(goals.squares_of(*rounded, noise).max())

    admitted = DIVIDED_MAX_RECORDS if max_records is None else (max_records,)
    best, least, ideal = None, math.inf, math.inf
    if len(admitted) > 1:
        with suppress(CountsError, ConvergenceError):
            ideal = cost(strategy.rounded(problem, noise, None))
    for records in admitted:
        with suppress(CountsError, ConvergenceError):
            rounded = strategy.rounded(problem, noise, records << divided)
            rounded_cost = cost(rounded)
            if best is None or rounded_cost < least:
                best, least = rounded, rounded_cost
        if least <= ROUNDED * ideal:
            break
    if best is None:
        raise CountsError(
            f"with numbers by knots a table of up to {admitted[-1]:,} records needs more than 62 "
            "bits; declare a smaller max_records, or fewer and smaller knots"
        )
    return best


def _bounds(
    problem: Problem,
    strategy: Choice,
    error: float,
    clock: Clock,
) -> tuple[float, Spectrum | None]:
    """The bounds of a problem, as far as they take a small part of the whole time."""
    if clock.stopped:  # Ctrl-C: a little more patience, and a second one ends it
        clock = Clock(AFTER_STOP)
    at_least = AT_LEAST if strategy.mechanism == "best" else settings.CERTIFICATE_SECONDS
    most = max(at_least, SHARE * clock.work)
    least = strategy.least_error
    if least is None:
        least = least_error(problem, clock, error=error, most=most)
    return least, spectrum_of(problem, clock, most=most)
