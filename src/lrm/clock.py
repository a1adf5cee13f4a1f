"""Time of a search: when it must end, whom it reports to, how much work it has done.

One `Clock` goes through reduction, search, rounding and certificate. What runs in rounds calls
`Clock.tick` in each, which raises ``StopSolver`` when the search must end; what cannot be stopped
(one call of LAPACK) asks `Clock.affords` before it begins. How long to search without a time limit
is decided by *counted work*: seconds that the operations would take on one core of a usual
machine, so that the same seed has the same result on a fast machine and on a busy one.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from lrm.errors import StopSolver, UsageError

MOST_LOG = 700.0
"""Larger numbers have no exponential in float64."""


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
    error: float = math.inf
    residual: float = 0.0
    remaining: float = math.inf

    @classmethod
    def of_log(cls, stage: str, value: float) -> Step:
        """A step whose error is given by its logarithm.

        >>> Step.of_log("products", 0.0).error, Step.of_log("products", 1e6).error
        (1.0, inf)
        """
        return cls(stage, 0, math.exp(value) if value < MOST_LOG else math.inf)


OnStep = Callable[[Step], None]
"""Called once per round. It may raise ``StopSolver`` to end with the best so far."""


def work_of(products: float, entries: float = 0.0) -> float:
    """Seconds of one round: multiplications in products of matrices, entries of vectors, calls.

    Measured once on one core of 2.5 GHz; what counts is that the number is the same everywhere.

    >>> round(work_of(1e9, 1e6), 4)
    0.1085
    """
    return 1.5e-4 + products / 1e10 + entries / 1.2e8


class Interruption:
    """Whether Ctrl-C has ended a search."""

    def __init__(self) -> None:
        self.received = False


class Clock:
    """When a search must end, whom it reports to, and how much work it has done.

    A search that was asked to stop, by ``on_step`` or by Ctrl-C, stays stopped: every later `tick`
    raises at once.

    Parameters
    ----------
    time_limit
        Seconds from now on; None for no limit.
    on_step
        Called with each `Step`; it may raise ``StopSolver``.
    now
        Tells the time in seconds.

    Examples
    --------
    >>> clock = Clock(10.0, now=lambda: 0.0)
    >>> clock.affords(9.0), clock.reserve(2.0).affords(9.0), clock.ended
    (True, False, False)
    >>> part = clock.part(3.0)
    >>> clock.spend(3.0)
    >>> part.ended, clock.ended, clock.work
    (True, False, 3.0)
    >>> clock.stop()
    >>> clock.ended, Clock().affords(1e9)
    (True, True)
    """

    def __init__(
        self,
        time_limit: float | None = None,
        on_step: OnStep | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if time_limit is not None and not time_limit > 0:
            raise UsageError(f"a time limit must be above 0 seconds, not {time_limit}")
        self._now, self._on_step = now, on_step
        self._began = now()
        self._end = math.inf if time_limit is None else self._began + time_limit
        self._stopped = self._interrupted = False
        self._work = 0.0

    # ---- deadline

    def remaining(self) -> float:
        """Seconds that are left; 0 when the time is up, or the search was asked to stop."""
        if self.stopped:
            return 0.0
        return math.inf if self._end == math.inf else max(0.0, self._end - self._now())

    @property
    def ended(self) -> bool:
        """Whether the search must end now."""
        return not self.remaining() > 0

    def affords(self, seconds: float) -> bool:
        """Whether so much time is left."""
        return seconds <= self.remaining()

    def elapsed(self) -> float:
        """Seconds since the clock was started."""
        return self._now() - self._began

    # ---- interruption

    def stop(self) -> None:
        """Let the search end at its next tick, as Ctrl-C does."""
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called, or ``on_step`` has raised ``StopSolver``."""
        return self._stopped

    @property
    def interrupted(self) -> bool:
        """Whether some search was cut short by a request or by the time limit."""
        return self._interrupted

    def must_end(self) -> bool:
        """Return whether the search must end now; it counts as cut short then."""
        if self.ended:
            self._note_interruption()
            return True
        return False

    def check(self) -> None:
        """Raise ``StopSolver`` when the search must end."""
        if self.must_end():
            raise StopSolver

    def _note_interruption(self) -> None:
        self._interrupted = True

    @contextmanager
    def stop_on_interrupt(self) -> Iterator[Interruption]:
        """Let the first Ctrl-C within the block `stop` the clock; a second one interrupts as usual.

        What the block yields says afterwards whether one came, for the caller to raise. The handler
        of the command line remembers it, and nothing is to be raised there. Only the main thread
        receives signals, and a handler that other code has set stays in place.
        """
        interruption = Interruption()
        main = threading.current_thread() is threading.main_thread()
        usual = signal.getsignal(signal.SIGINT)
        is_plain = usual is signal.default_int_handler
        if not main or not (is_plain or hasattr(usual, "pressed")):
            yield interruption
            return

        def stop(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, usual)
            del number, frame
            interruption.received = is_plain
            self.stop()

        signal.signal(signal.SIGINT, stop)
        try:
            yield interruption
        except Exception as reason:
            if interruption.received:  # such as that nothing was found so far
                raise KeyboardInterrupt from reason
            raise
        finally:
            signal.signal(signal.SIGINT, usual)

    # ---- progress

    def tick(self, step: Step) -> None:
        """Report a step; raise ``StopSolver`` when the search must end."""
        self.check()
        self._report(step)
        self.check()

    def _report(self, step: Step) -> None:
        if self._on_step is None:
            return
        try:
            self._on_step(step)
        except StopSolver:
            self.stop()

    # ---- counted work

    @property
    def work(self) -> float:
        """Seconds of work that were counted so far."""
        return self._work

    def spend(self, work: float) -> None:
        """Count some work (see `work_of`)."""
        self._work += work

    def seconds_for(self, work: float) -> float:
        """How long an amount of work takes, at the speed so far."""
        return work * self.elapsed() / self.work if self.work > 0 else work

    # ---- parts of a search

    def _counting(self) -> Clock:
        """The clock on which the work of a part is counted."""
        return self

    def reserve(self, seconds: float) -> Clock:
        """Return a clock that ends earlier, which leaves ``seconds`` for what follows."""
        return _Part(self, reserve=seconds)

    def part(self, work: float) -> Clock:
        """Return a clock that also ends when so much more work was counted."""
        return _Part(self, work=work)

    def share(self, fraction: float) -> Clock:
        """Return a clock with a fraction of the work and of the time that are left."""
        left = self.remaining()
        reserve = (1.0 - fraction) * left if left < math.inf else 0.0
        return _Part(self, reserve=reserve, work=fraction * self.remaining_work())

    def remaining_work(self) -> float:
        """Work that may still be counted before this clock ends."""
        return math.inf

    def reporting(self, change: Callable[[Step], Step]) -> Clock:
        """Return a clock whose steps are changed before they are reported."""
        return _Part(self, change=change)

    def costing(self, work: float) -> Clock:
        """Return a clock on which each tick counts so much work."""
        return _Part(self, tick_work=work)

    def silent(self) -> Clock:
        """Return a clock whose steps are not reported."""
        return _Part(self, change=None)


def _unchanged(step: Step) -> Step:
    return step


class _Part(Clock):
    """A clock for a part of a search, which ends with the whole or before."""

    def __init__(
        self,
        parent_clock: Clock,
        *,
        reserve: float = 0.0,
        work: float = math.inf,
        change: Callable[[Step], Step] | None = _unchanged,
        tick_work: float = 0.0,
    ) -> None:
        self._whole = parent_clock._counting()  # noqa: SLF001 - one class in two
        self._reserve, self._change = reserve, change
        self._most_work = self._whole.work + work
        self._tick_work = tick_work

    def remaining(self) -> float:
        return max(0.0, self._whole.remaining() - self._reserve)

    def remaining_work(self) -> float:
        return max(0.0, min(self._most_work - self.work, self._whole.remaining_work()))

    @property
    def ended(self) -> bool:
        return self.work >= self._most_work or not self.remaining() > 0 or self._whole.ended

    def tick(self, step: Step) -> None:
        self.spend(self._tick_work)
        super().tick(step)

    def elapsed(self) -> float:
        return self._whole.elapsed()

    def stop(self) -> None:
        self._whole.stop()

    @property
    def stopped(self) -> bool:
        return self._whole.stopped

    @property
    def interrupted(self) -> bool:
        return self._whole.interrupted

    def _note_interruption(self) -> None:
        # A part that has done its share of the work was not cut short.
        if not self.remaining() > 0 or self._whole.ended:
            self._whole._note_interruption()  # noqa: SLF001 - one class in two

    def _report(self, step: Step) -> None:
        if self._change is not None:
            self._whole._report(self._change(step))  # noqa: SLF001

    @property
    def work(self) -> float:
        return self._whole.work

    def spend(self, work: float) -> None:
        self._whole.spend(work)


class _Unlimited(Clock):
    """A clock that never ends and remembers nothing, so that all callers may share it."""

    def stop(self) -> None:
        raise RuntimeError(
            "this clock has no end and cannot be stopped; give the search a clock of its own"
        )

    def spend(self, work: float) -> None:
        del work

    def _counting(self) -> Clock:
        return Clock()


UNLIMITED = _Unlimited()
"""The clock of a solver that is called without one."""


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
            own_seconds = passed - self._within.pop()
            self._within[-1] += passed
            self.seconds[stage] = self.seconds.get(stage, 0.0) + own_seconds

    def restart(self) -> Timings:
        """Forget what was measured; return the same object."""
        self.seconds, self._began = {}, time.perf_counter()
        return self
