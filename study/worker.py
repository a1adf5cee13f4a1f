"""One task in its own process: a plan, from the cache or computed, and the rows that need it."""

from __future__ import annotations

import json
import math
import resource
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lrm.clock import Step
from lrm.errors import FileFormatError, StopSolver
from lrm.files.writing import write_bytes
from lrm.planning.plan import Plan
from lrm.planning.plan.file import load_plan
from lrm.planning.plan.planner import plan
from study.costs import Costs
from study.data import Dataset, open_datasets
from study.grid import DELTA, Case, PlanSpec
from study.rows import DONE, FAILED, STOPPED, Row
from study.shaped_noise import ShapedSpread
from study.simulate import Spread, error_spread, simulate

__all__ = ["Context", "OutOfTime", "Task", "failed_rows", "stopped_rows", "work"]

TYPICAL_ROUNDS = 100
"""Rounds that the paper's algorithm took on most workloads of the quick study (60 to 130)."""

LEAST_ROUNDS = 40
"""If even so few would pass the time limit at the pace of the first ones, it is hopeless."""

AT_LEAST = 1.5
"""A stopped plan is estimated to take this many times as long, unless a guess is higher."""

HARD_FACTOR, HARD_SECONDS = 1.5, 30
"""A process that does not heed its limit is ended after limit·1.5 + 30 seconds of its CPU."""


@dataclass(frozen=True)
class Task:
    """A plan, and all cases that it serves."""

    plan: PlanSpec
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Context:
    """What all tasks of a run share.

    Limits are in seconds of CPU, so that a busy machine changes no result; ``search_limit``
    is for searches that can end with the best so far at any time.
    """

    plans: str
    data: tuple[tuple[str, str], ...]
    time_limit: float | None
    search_limit: float | None
    code: str
    versions: str
    machine: str

    def limit_of(self, case: Case) -> float | None:
        """Seconds of CPU that the plan of a case may take."""
        # Bodies are looked for after the Laplace strategy, which may take the whole search_limit.
        searches = case.mechanism.anytime and case.mechanism.noise != "pure"
        limits = [self.time_limit, self.search_limit if searches else None]
        return min((limit for limit in limits if limit is not None), default=None)


@dataclass(frozen=True)
class _Costs:
    """What computing a plan took."""

    seconds: float
    cpu_seconds: float
    peak_memory_mb: float
    time_limit: float | None


class OutOfTime(Exception):  # noqa: N818 - says what happened
    """A mechanism that has no result before it ends would pass its limit."""

    def __init__(self, spent: float, estimated: float) -> None:
        super().__init__(spent, estimated)
        self.spent, self.estimated = spent, estimated


class _Clock:
    """Takes a solver's steps: stops it at the limit, or where the limit is out of reach."""

    def __init__(self, case: Case, context: Context) -> None:
        self._mechanism = case.mechanism
        self._limit = context.limit_of(case)
        self._guess = Costs().seconds(case.plan)
        self._began = time.process_time()
        self._parent = parent_process()

    def __call__(self, step: Step) -> None:
        if self._parent is not None and not self._parent.is_alive():
            raise SystemExit(1)  # the run was killed: nobody waits for this plan
        if self._limit is None:
            return
        spent = time.process_time() - self._began
        if self._mechanism.anytime:
            if spent > self._limit:
                raise StopSolver
            return
        counts_rounds = self._mechanism.name == "lowrank"
        a_round = spent / max(step.iteration, 1)
        hopeless = counts_rounds and step.iteration >= 3 and a_round * LEAST_ROUNDS > self._limit
        if hopeless or spent > self._limit:
            guess = a_round * TYPICAL_ROUNDS if counts_rounds else self._guess
            raise OutOfTime(spent, max(guess, AT_LEAST * spent))


def limit_process(seconds: float | None) -> None:
    """Let the system end this process when it has used far more than its limit."""
    if seconds is not None:
        most = math.ceil(HARD_FACTOR * seconds + HARD_SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)


def work(task: Task, context: Context) -> list[tuple[Case, list[Row]]]:
    """Compute everything that a task asks for; what goes wrong becomes rows."""
    try:
        with threadpool_limits(1):
            made, costs = _cached_plan(task, context)
            return [(case, _rows(case, made, costs, context)) for case in task.cases]
    except OutOfTime as reason:
        return stopped_rows(task, context, reason)
    except Exception as reason:  # noqa: BLE001 - whatever it is, a failed case is a row
        return failed_rows(task, context, f"{type(reason).__name__}: {reason}")


def _cached_plan(task: Task, context: Context) -> tuple[Plan, _Costs]:
    place = Path(context.plans) / f"{task.plan.digest(context.code)}.lrm"
    notes = place.with_suffix(".json")
    with suppress(FileFormatError, OSError, ValueError, TypeError):  # else it is made again
        costs = _Costs(**json.loads(notes.read_text()))
        made = load_plan(place)
        limit = context.limit_of(task.cases[0])
        if not (made.details.get("interrupted") and _longer(limit, costs.time_limit)):
            return made, costs
    made, costs = _computed_plan(task, context)
    if made.details.get("interrupted") and not task.cases[0].mechanism.anytime:
        raise StopSolver  # from outside: its limit would have raised
    place.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(notes, json.dumps(vars(costs)).encode())
    made.save(str(place))
    return made, costs


def _longer(limit: float | None, than: float | None) -> bool:
    return than is not None and (limit is None or limit > than)


def _computed_plan(task: Task, context: Context) -> tuple[Plan, _Costs]:
    workload = task.plan.setting.workload()
    clock = _Clock(task.cases[0], context)
    wall, cpu = time.perf_counter(), time.process_time()
    options: dict[str, Any] = {"noise": "laplace", **dict(task.plan.options)}
    options["mechanism"] = task.plan.mechanism
    made = plan(workload, on_step=clock, **options)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return made, _Costs(*spent, peak, context.limit_of(task.cases[0]))


def _base(case: Case, context: Context) -> Row:
    setting = case.plan.setting
    return Row(
        case=case.key,
        scale=case.scale,
        figure=case.figure,
        x=float(case.x),
        workload=setting.family,
        queries=setting.queries,
        cells=setting.cells,
        s=-1 if setting.s is None else setting.s,
        workload_seed=setting.seed,
        label=case.label,
        mechanism=case.plan.mechanism,
        options=json.dumps(dict(case.plan.options)),
        status=DONE,
        time_limit=math.nan if (limit := context.limit_of(case)) is None else limit,
        code=context.code,
        versions=context.versions,
        machine=context.machine,
    )


def failed_rows(task: Task, context: Context, reason: str) -> list[tuple[Case, list[Row]]]:
    """One row per case, which says why there is no result."""
    return [
        (case, [replace(_base(case, context), status=FAILED, reason=reason)]) for case in task.cases
    ]


def stopped_rows(task: Task, context: Context, why: OutOfTime) -> list[tuple[Case, list[Row]]]:
    """One row per case, which says how long it would have taken."""
    begun = f"stopped after {why.spent:.0f} s of CPU" if why.spent else "not begun"
    reason = f"{begun}: the limit of {context.time_limit:g} s would be passed"
    row = {"status": STOPPED, "reason": reason, "interrupted": True}
    facts: dict[str, Any] = {**row, "cpu_seconds": why.spent, "estimated_seconds": why.estimated}
    return [(case, [replace(_base(case, context), **facts)]) for case in task.cases]


def _rows(case: Case, made: Plan, costs: _Costs, context: Context) -> list[Row]:
    datasets = open_datasets(dict(context.data), case.data)
    details = made.details
    planned = replace(
        _base(case, context),
        rank=-1 if made.workload_rank is None else made.workload_rank,
        measurements=made.measurement_count,
        repetitions=case.repetitions,
        seconds=costs.seconds,
        cpu_seconds=costs.cpu_seconds,
        peak_memory_mb=costs.peak_memory_mb,
        rounds=int(str(details.get("rounds", -1))),
        converged=bool(details.get("converged", True)),
        interrupted=bool(details.get("interrupted", False)),
        plan_digest=made.digest[:20],
    )
    spread = error_spread(made)
    return [
        _measured(planned, case, made, (dataset, epsilon), spread)
        for dataset in datasets.values()
        for epsilon in case.epsilons
    ]


def _measured(
    row: Row, case: Case, made: Plan, where: tuple[Dataset, str], spread: Spread | ShapedSpread
) -> Row:
    """Add what simulated releases on one data set at one ε show."""
    dataset, epsilon = where
    delta = DELTA if made.noise == "gaussian" else None
    # A seed of its own for every row, so that no two share their noise.
    seed = int(
        np.random.SeedSequence(
            [int(case.key[:15], 16), *f"{dataset.name} {epsilon}".encode()]
        ).generate_state(1)[0]
    )
    result = simulate(
        made,
        dataset.merged(case.plan.setting.cells),
        epsilon,
        repetitions=case.repetitions,
        rng=np.random.default_rng(seed),
        delta=delta,
        spread=spread,
    )
    return replace(
        row,
        data=dataset.name,
        data_source=dataset.source,
        noise=made.noise,
        epsilon=float(epsilon),
        delta=float(delta or 0),
        noise_seed=seed,
        simulated=result.simulated,
        error_measured=result.measured,
        error_expected=result.expected,
        bias_squared=result.bias_squared,
        tolerance_low=result.low,
        tolerance_high=result.high,
        lower_bound=made.lower_bound(epsilon, delta=delta),
    )
