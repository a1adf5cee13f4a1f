"""Deadlines and progress of a search over products."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from lrm.errors import StopSolver
from lrm.solvers.progress import OnStep, Step, ignore_step

__all__ = ["Watch", "forever"]


def forever() -> float:
    """Seconds that are left where there is no deadline."""
    return math.inf


class Watch:
    """Reports steps, and raises ``StopSolver`` when the time is up or the caller says so.

    ``remaining`` returns the seconds that are left; it is asked often, so it should be cheap.
    Once stopped, a watch stops everything that calls it.
    """

    def __init__(
        self, on_step: OnStep = ignore_step, remaining: Callable[[], float] = forever
    ) -> None:
        self.on_step, self.remaining = on_step, remaining
        self.best = math.inf
        self.stage, self.count, self.stopped = "products", 0, False

    def __call__(self, value: float) -> None:
        """Report a log error; the error that is passed on is the best of the stage so far."""
        if self.stopped or self.remaining() <= 0:
            self.stopped = True
            raise StopSolver
        self.count += 1
        self.best = min(self.best, value)
        try:
            self.on_step(Step(self.stage, self.count, _error(self.best)))
        except (StopSolver, KeyboardInterrupt):
            self.stopped = True
            raise StopSolver from None

    def part(self, seconds: float) -> Watch:
        """A watch on the same caller that stops after at most ``seconds`` of CPU time.

        It stops earlier when this one does, and at the same time where ``seconds`` is infinite.
        """
        begin = time.thread_time()

        def remaining() -> float:
            if self.stopped:
                return 0.0
            return min(self.remaining(), seconds - (time.thread_time() - begin))

        def pass_on(step: Step) -> None:
            try:
                self.on_step(step)
            except (StopSolver, KeyboardInterrupt):
                self.stopped = True  # the caller's wish ends everything, not this part alone
                raise

        return Watch(pass_on, remaining)


def _error(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
