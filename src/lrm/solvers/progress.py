"""Progress of a solver: what it is doing, when it must end, and where the time went."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lrm.errors import StopSolver, UsageError

__all__ = ["Deadline", "OnStep", "Step", "Timings", "ignore_step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One report of a running solver.

    Parameters
    ----------
    stage
        What is being done, in a word or two (``"lowrank"``, ``"polish"``).
    iteration
        Number of the round within the stage, from 1.
    error
        ``‖B‖²·Δ(L)²`` of the best exact strategy so far, or ``inf`` before there is one.
    residual
        Relative residual ``‖W − BL‖ / ‖W‖`` of the iterate, 0 where it is exact.
    remaining
        Estimated seconds until the search ends, or ``inf`` where that is not known.
    """

    stage: str
    iteration: int
    error: float
    residual: float = 0.0
    remaining: float = math.inf


OnStep = Callable[[Step], None]
"""Called once a round. It may raise ``StopSolver`` to end with the best so far."""


def ignore_step(step: Step) -> None:
    """Do nothing: the default ``on_step``."""
    del step


class Deadline:
    """When a plan must be ready: one object for reduction, search, rounding and certificate.

    What runs in rounds asks `check` in each; what cannot be stopped (one call of LAPACK) asks
    `affords` before it begins, with the seconds that it will take on one idle core.

    Parameters
    ----------
    seconds
        From now on; None for no limit.
    clock
        Tells the time in seconds.

    Examples
    --------
    >>> deadline = Deadline(10.0, clock=lambda: 0.0)
    >>> deadline.affords(9.0), deadline.less(2.0).affords(9.0), deadline.expired
    (True, False, False)
    >>> deadline.stop()
    >>> deadline.expired, Deadline().affords(1e9)
    (True, True)
    """

    def __init__(
        self, seconds: float | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if seconds is not None and not seconds > 0:
            raise UsageError(f"a time limit must be above 0 seconds, not {seconds}")
        self._clock = clock
        self._end = math.inf if seconds is None else clock() + seconds
        self._stopped = False

    def stop(self) -> None:
        """Let the time be up now, as Ctrl-C does."""
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called: the time is up for that reason."""
        return self._stopped

    def remaining(self) -> float:
        """Seconds that are left, 0 when the time is up."""
        if self.stopped:
            return 0.0
        return math.inf if self._end == math.inf else max(0.0, self._end - self._clock())

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return not self.remaining() > 0

    def affords(self, seconds: float) -> bool:
        """Whether so much time is left."""
        return seconds <= self.remaining()

    def check(self) -> None:
        """Raise ``StopSolver`` when the time is up."""
        if self.expired:
            raise StopSolver

    def watch(self, on_step: OnStep) -> OnStep:
        """Return an ``on_step`` that passes reports on, and stops the solver at the deadline."""

        def report(step: Step) -> None:
            on_step(step)
            self.check()

        return report

    def less(self, seconds: float) -> Deadline:
        """Return an earlier deadline, which leaves ``seconds`` for what follows."""
        return _Earlier(self, seconds)


class _Earlier(Deadline):
    """A deadline a number of seconds before another one; it stops when that one does."""

    def __init__(self, whole: Deadline, reserve: float) -> None:
        super().__init__()
        self._whole, self._reserve = whole, reserve

    def stop(self) -> None:
        self._whole.stop()

    @property
    def stopped(self) -> bool:
        return self._whole.stopped

    def remaining(self) -> float:
        return max(0.0, self._whole.remaining() - self._reserve)


class Timings:
    """CPU seconds by stage. A stage within another one counts for itself alone.

    Examples
    --------
    >>> ticks = iter([0.0, 1.0, 3.0, 7.0])
    >>> timings = Timings(clock=lambda: next(ticks))
    >>> with timings.of("search"), timings.of("reduction"):
    ...     pass
    >>> timings.seconds
    {'reduction': 2.0, 'search': 5.0}
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._within = [0.0]
        self._began = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def elapsed(self) -> float:
        """Seconds since the beginning, as a person who waits would measure them."""
        return time.perf_counter() - self._began

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to a stage."""
        self._within.append(0.0)
        began = self._clock()
        try:
            yield
        finally:
            passed = self._clock() - began
            own = passed - self._within.pop()
            self._within[-1] += passed
            self.seconds[stage] = self.seconds.get(stage, 0.0) + own

    def restart(self) -> Timings:
        """Forget what was measured; return the same object."""
        self.seconds, self._began = {}, time.perf_counter()
        return self
