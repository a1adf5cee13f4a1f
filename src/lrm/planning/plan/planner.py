"""From a workload and a mechanism to a plan."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, get_args

from threadpoolctl import threadpool_limits

from lrm.clock import Clock, OnStep, Timings
from lrm.domain.people import Declared, Levels
from lrm.errors import (
    PlanWarning,
    UsageError,
)
from lrm.planning.plan.concerns import warned_of
from lrm.planning.plan.core import Plan
from lrm.planning.plan.even_split import even_split, statement_importances
from lrm.planning.plan.goals import OBJECTIVES, Goals, Objective
from lrm.planning.plan.levels import LevelsPlan, best_shares
from lrm.planning.plan.loop import Proposing, best_proposal
from lrm.planning.plan.tolerances import tolerance_goals
from lrm.planning.solvers.settings import Effort
from lrm.planning.strategies import MechanismName
from lrm.planning.strategies.base import Problem, Search
from lrm.planning.strategies.certificate import certificate_seconds
from lrm.privacy.norms import Norm, norm_of
from lrm.queries.files import as_batch
from lrm.queries.sql.impossible import impossible_queries
from lrm.queries.workload import Workload
from lrm.queries.workload.levels import split_levels

AskedNoise = Literal["pure", "laplace", "gaussian"]
"""What a caller asks for; ``"pure"`` becomes ``"laplace"`` or ``"shaped"`` in a plan."""

NOISES: tuple[str, ...] = get_args(AskedNoise)


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
    mechanism: MechanismName = "best",
    *,
    domain: Declared | None = None,
    noise: AskedNoise = "pure",
    objective: Objective | None = None,
    effort: Effort | None = None,
    meet: float | None = None,
    seed: int = 0,
    on_step: OnStep | None = None,
    time_limit: float | None = None,
    max_records: int | None = None,
    threads: int = 1,
    progress: bool = True,
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
    effort
        How long to search: ``"quick"``, ``"normal"`` (default) or ``"thorough"``.
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
    progress
        Whether a search of more than two seconds shows how far it is, where a person watches: on
        a terminal or in a notebook, and not where ``on_step`` is called.
    options
        Options of the mechanism, for example ``rank=…`` for ``"lowrank"``.

    Warns
    -----
    PlanWarning
        For each sentence of ``warnings`` of the plan. Where a mechanism is named, or importances
        within a statement, not for the errors that follow from that choice.

    Examples
    --------
    >>> import lrm
    >>> both = lrm.plan([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], "noise-on-data")
    >>> round(both.expected_squared_error(epsilon="0.1"))
    1600
    """
    _check_noise(noise)
    if effort is not None:
        options["effort"] = effort
    line = None if on_step is not None or not progress else _line(noise)
    clock = Clock(time_limit, line or on_step)
    timings = Timings()
    batch = _batch(workload, domain)
    norm = norm_of(noise, None if batch.domain is None else batch.domain.unit)
    if batch.domain is not None and isinstance(batch.domain.level, Levels):
        check_one_level(meet)
        choices = {"seed": seed, "on_step": on_step, "max_records": max_records, "threads": threads}
        choices["progress"] = progress
        return _over_levels(batch, mechanism, noise, objective, time_limit, {**choices, **options})
    limits = threadpool_limits(threads)
    with _shown(line, batch), limits, clock.stop_on_interrupt() as interruption:
        problem = Problem(batch, timings)
        with timings.of("search"):
            goals = _goals(batch, mechanism, objective, meet, norm, clock)
        search = Search(seed, norm, clock)
        if time_limit is not None:
            search = search.less(min(time_limit / 5, certificate_seconds(problem)))
        best = best_proposal(
            Proposing(problem, goals, mechanism, search, max_records, options, noise == "pure")
        )
        made = best.plan(clock=clock)
    if interruption.received:
        raise PlanInterrupted(made)
    # Importances within a statement are a choice of the author: others have larger errors for it.
    chosen = mechanism != "best" or (batch.importance is not None and made.importances is None)
    for sentence in warned_of(made, chosen=chosen):
        warnings.warn(sentence, PlanWarning, stacklevel=2)
    return made


def _batch(workload: Any, domain: Declared | None) -> Workload:
    """The batch, where the conditions that its domain declares impossible are SQL."""
    batch = as_batch(workload, domain)
    if batch.domain is None:
        return batch
    batch.domain.check_dates()  # which may wait for the edition to be named
    batch = batch.over_all_rows()
    assert batch.domain is not None  # noqa: S101 - it has one more cell, perhaps
    impossible_queries(batch.domain)
    return batch


def _over_levels(  # noqa: PLR0913, PLR0917 - each is a choice of the caller
    batch: Workload,
    mechanism: MechanismName,
    noise: AskedNoise,
    objective: Objective | None,
    time_limit: float | None,
    options: dict[str, Any],
) -> Plan:
    """Plan each level by itself; then give each its share."""
    chosen: Objective = _objective(batch, mechanism, objective)
    parts, interrupted = [], False
    batches = split_levels(batch).batches
    for part in batches:
        own = chosen if len(part.statements) > 1 else "total"
        limit = None if time_limit is None else time_limit / len(batches)
        if interrupted and mechanism == "best":
            options = {**options, "effort": "quick"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlanWarning)  # about an even split of one level alone
            try:
                made = plan(
                    part, mechanism, noise=noise, objective=own, time_limit=limit, **options
                )
            except PlanInterrupted as stop:
                made, interrupted = stop.plan, True
        parts.append(made)
    joined = LevelsPlan.of(batch, parts, best_shares(parts, chosen), chosen)
    if interrupted:
        raise PlanInterrupted(joined)
    for sentence in warned_of(joined, chosen=batch.importance is not None):
        warnings.warn(sentence, PlanWarning, stacklevel=3)
    return joined


def _check_noise(noise: str) -> None:
    if noise not in NOISES:
        raise UsageError(f"noise must be one of {', '.join(NOISES)}, not {noise!r}")


def check_one_level(meet: float | None) -> None:
    """Refuse what can be planned for one level alone."""
    if meet is not None:
        raise UsageError(
            "tolerances are planned for statements about persons, or about the rows of one table; "
            "plan them as a batch of their own"
        )


def _line(noise: AskedNoise) -> Any:
    """A line about the search; None where nobody would see it."""
    from lrm.views.progress import ProgressLine, is_watched  # noqa: PLC0415 - as in `Plan.report`

    return ProgressLine("planning", norm_of(noise).noise) if is_watched() else None


def _shown(line: Any, batch: Workload) -> AbstractContextManager[object]:
    """While a line about a search is shown; nothing where there is none."""
    if line is None:
        return nullcontext()
    line.factor = 1 if batch.domain is None else batch.domain.unit.factor
    shown: AbstractContextManager[object] = line
    return shown


def _goals(  # noqa: PLR0913, PLR0917 - what they follow from
    batch: Workload,
    mechanism: str,
    objective: Objective | None,
    meet: float | None,
    norm: Norm,
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
    if goal == "total":
        return None
    return even_split(batch, goal, norm.plain, statement_importances(batch), clock)


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
