"""The runner: tasks in processes of their own, rows stored as they finish, runs that resume."""

from __future__ import annotations

import math
import multiprocessing as mp
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from lrm.errors import UsageError
from lrm.planning.strategies import MECHANISMS
from study.costs import Costs, relative_cost
from study.data import open_datasets
from study.grid import Case
from study.machine import code_digest, machine_kind, versions
from study.rows import DONE, FAILED, Row, RowStore
from study.worker import (
    AT_LEAST,
    HARD_FACTOR,
    HARD_SECONDS,
    Context,
    OutOfTime,
    Task,
    failed_rows,
    limit_process,
    stopped_rows,
    work,
)

__all__ = ["Progress", "RunResult", "run_cases", "tasks_of"]

KNOWN_PLANS, HOPELESS = 5, 3.0
"""A plan is not started if this many finished ones predict this many times its limit."""


@dataclass(frozen=True)
class Progress:
    """How far a run is: plans done, and the seconds that the rest may take."""

    done: int
    total: int
    failed: int
    seconds_left: float
    last: str


@dataclass(frozen=True)
class RunResult:
    """How a run ended; ``unfinished`` cases have no rows yet."""

    computed: int
    kept: int
    unfinished: tuple[Case, ...]
    seconds: float


def tasks_of(cases: Iterable[Case]) -> list[Task]:
    """One task a plan, those that take least first: a stopped run has as much as can be."""
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.plan, []).append(case)
    tasks = [Task(plan, tuple(group)) for plan, group in groups.items()]
    return sorted(tasks, key=lambda task: relative_cost(task.plan))


def run_cases(  # noqa: PLR0913 - each is a choice of the caller
    cases: Sequence[Case],
    folder: str | Path,
    *,
    jobs: int = 1,
    time_limit: float | None = None,
    search_limit: float | None = None,
    time_budget: float | None = None,
    data: Mapping[str, str] | None = None,
    retry: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> RunResult:
    """Compute the rows of ``cases`` that ``folder`` does not hold yet.

    Parameters
    ----------
    cases
        What to compute.
    folder
        Where rows and plans are kept.
    jobs
        Processes at a time, each with one thread.
    time_limit
        Seconds of CPU for one plan; a case that does not fit becomes a row that says so.
    search_limit
        The same for ``best``, which then ends with the best so far.
    time_budget
        Seconds after which no further plan is begun.
    data
        Paths of real data sets by name.
    retry
        Compute cases again that failed or were stopped.
    on_progress
        Told after every finished plan.
    """
    store = RowStore(folder)
    context = Context(
        plans=str(Path(folder) / "plans"),
        data=tuple(sorted((data or {}).items())),
        time_limit=time_limit,
        search_limit=search_limit,
        code=code_digest(),
        versions=versions(),
        machine=machine_kind(),
    )
    with store.locked():
        stored = store.load()
        _refuse_another_study(stored, cases, context, folder)
        kept = _kept(stored, retry=retry)
        tasks = tasks_of(case for case in cases if case.key not in kept)
        run = _Run(store, context, list(tasks), on_progress, time_budget, Costs(), {})
        run.note(stored)
        try:
            run.work_off(jobs)
        finally:
            run.stop()
            store.compact()
    left = tuple(case for task in run.waiting for case in task.cases)
    begun = sum(len(task.cases) for task in tasks) - len(left)
    return RunResult(begun, len(cases) - begun - len(left), left, time.monotonic() - run.began)


def _refuse_another_study(
    stored: Sequence[Row], cases: Sequence[Case], context: Context, folder: str | Path
) -> None:
    """Rows of another scale or of other data would end up in the same figures."""
    scales = {row.scale for row in stored}, {case.scale for case in cases}
    if scales[0] - scales[1]:
        raise UsageError(
            f"{folder} holds rows of the scale {', '.join(sorted(scales[0]))}, but "
            f"{', '.join(sorted(scales[1]))} was asked for; choose another --out"
        )
    sources = {name: data.source for name, data in open_datasets(dict(context.data)).items()}
    for row in stored:
        if row.data and row.data_source != sources[row.data]:
            raise UsageError(
                f"{folder} holds rows of {row.data} from {row.data_source}, but "
                f"{sources[row.data]} was asked for; choose another --out"
            )


def _kept(rows: Iterable[Row], *, retry: bool) -> set[str]:
    return {row.case for row in rows if row.status == DONE or not retry}


def _in_process(task: Task, context: Context, pipe: Connection) -> None:
    # Ctrl-C reaches all processes of a terminal. To a solver it would mean "the best so far".
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_process(context.time_limit)
    with suppress(BrokenPipeError):  # the run was ended: nobody waits for the rows
        pipe.send(work(task, context))
    pipe.close()


@dataclass
class _Run:
    """The state of a run: what waits, what works, what is known about times."""

    store: RowStore
    context: Context
    waiting: list[Task]
    on_progress: Callable[[Progress], None]
    time_budget: float | None
    costs: Costs
    finished: dict[str, set[str]]
    working: dict[Connection, tuple[mp.process.BaseProcess, Task]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    done: int = 0
    failed: int = 0

    def note(self, rows: Iterable[Row]) -> None:
        """Learn from finished rows what others may take."""
        for row in rows:
            if row.status == DONE:
                self.finished.setdefault(row.label, set()).add(row.case)
                self.costs.add((row,))

    def work_off(self, jobs: int) -> None:
        """Keep ``jobs`` processes busy until nothing waits or the time is over."""
        processes = mp.get_context("forkserver")
        # Loaded once, and before any task: a run is by one version of the code.
        homes = {
            f"lrm.planning.strategies.{m.listed.partition(':')[0]}" for m in MECHANISMS.values()
        }
        processes.set_forkserver_preload(["study.worker", *sorted(homes)])
        _start_quietly()
        while self.working or self._may_begin():
            while len(self.working) < jobs and self._may_begin():
                task = self.waiting.pop(0)
                hopeless = self._hopeless(task)
                if hopeless is None:
                    self._begin(processes, task)
                else:
                    self._store(task, stopped_rows(task, self.context, hopeless))
            # Nothing works where all that was left was hopeless, and waiting would not end.
            for pipe in wait(list(self.working)) if self.working else ():
                self._take(pipe)  # type: ignore[arg-type]

    def _may_begin(self) -> bool:
        over = self.time_budget is not None and time.monotonic() - self.began > self.time_budget
        return bool(self.waiting) and not over

    def _hopeless(self, task: Task) -> OutOfTime | None:
        """Why a task need not be begun: smaller ones say that it is far beyond its limit."""
        case, expected = task.cases[0], self.costs.seconds(task.plan)
        limit = self.context.limit_of(case)
        if limit is None or case.mechanism.anytime or not expected > HOPELESS * limit:
            return None
        known = len(self.finished.get(case.label, ()))
        return OutOfTime(0.0, expected) if known >= KNOWN_PLANS else None

    def _seconds_for(self, task: Task) -> float:
        """What a task may still take: nothing if it will not be begun, else up to its limit."""
        if self._hopeless(task) is not None:
            return 0.0
        limit = self.context.limit_of(task.cases[0])
        expected = self.costs.seconds(task.plan)
        known = [seconds for seconds in (expected, limit) if seconds is not None]
        return min((s for s in known if math.isfinite(s)), default=0.0)

    def _begin(self, processes: Any, task: Task) -> None:
        mine, theirs = processes.Pipe(duplex=False)
        process = processes.Process(
            target=_in_process, args=(task, self.context, theirs), daemon=True
        )
        process.start()
        theirs.close()
        self.working[mine] = process, task

    def _take(self, pipe: Connection) -> None:
        """Store what a process sent, or that it died without a word."""
        process, task = self.working.pop(pipe)
        try:
            results = pipe.recv()
        except EOFError:
            process.join()
            results = self._without_a_word(task, process.exitcode)
        process.join()
        self._store(task, results)

    def _without_a_word(self, task: Task, code: int | None) -> list[tuple[Case, list[Row]]]:
        """Rows of a process that died: beyond its CPU-time limit, or out of memory."""
        limit = self.context.time_limit
        if code is not None and -code == signal.SIGXCPU and limit is not None:
            spent = HARD_FACTOR * limit + HARD_SECONDS
            expected = max(AT_LEAST * spent, self.costs.seconds(task.plan))
            return stopped_rows(task, self.context, OutOfTime(spent, expected))
        told = "ended by the system, possibly out of memory" if code == -9 else "ended"
        return failed_rows(task, self.context, f"the process {told} with code {code}")

    def _store(self, task: Task, results: list[tuple[Case, list[Row]]]) -> None:
        for case, rows in results:
            self.store.append(case.key, rows)
            self.note(rows)
            self.failed += rows[0].status == FAILED
        self.done += 1
        self.on_progress(self._progress(str(task.cases[0]), len(self.working) + 1))

    def _progress(self, last: str, jobs: int) -> Progress:
        remaining = [*self.waiting, *(task for _, task in self.working.values())]
        seconds = sum(map(self._seconds_for, remaining)) / jobs
        if self.time_budget is not None:
            seconds = min(seconds, max(0.0, self.began + self.time_budget - time.monotonic()))
        return Progress(self.done, self.done + len(remaining), self.failed, seconds, last)

    def stop(self) -> None:
        """End the processes that still work: the run was interrupted."""
        for process, _ in self.working.values():
            process.kill()
        for process, _ in self.working.values():
            process.join()


def _start_quietly() -> None:
    """Start the server of processes so that a Ctrl-C at this terminal does not reach it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # deliver signals that arrived meanwhile
