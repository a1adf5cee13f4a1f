"""What is being done, as a line on the terminal: a solver's reports, or other work."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from lrm.clock import Step
    from lrm.privacy.budget import Noise

PATIENCE = 2.0
"""Seconds of work before a bar appears: what is over sooner needs none."""

BEGAN = time.monotonic()
"""When the command was started."""


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show ``label`` on a terminal while work goes on, once the command has taken a while.

    Nothing may be printed within. Ctrl-C ends the work as it does elsewhere.
    """
    if not sys.stderr.isatty():
        yield
        return
    lock, bars, over = threading.Lock(), [], threading.Event()

    def show() -> None:
        with lock:
            if not over.is_set():
                bar = _spinner()
                bar.add_task(f"{label}; Ctrl-C ends it", total=None)
                bar.start()
                bars.append(bar)

    timer = threading.Timer(max(0.0, BEGAN + PATIENCE - time.monotonic()), show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        over.set()
        with lock:
            for bar in bars:
                bar.stop()


def _spinner() -> Any:
    """A line that is gone when it is stopped."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


class ProgressLine:
    """Takes a solver's steps and shows them on a terminal, behind what is being done.

    ``noise`` determines the amount in which errors are stated, and ``factor`` are the records that
    count for one privacy unit, with which errors grow.
    """

    def __init__(self, label: str, noise: "Noise" = "laplace", factor: int = 1) -> None:
        self._factor = factor
        self._label = label
        self._noise = noise
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: "Step") -> None:
        """Take one step (``on_step``)."""
        passed = time.monotonic() - self._began
        if passed > PATIENCE and sys.stderr.isatty():
            self._show(step)

    def _show(self, step: "Step") -> None:
        if self._bar is None:
            self._bar = _spinner()
            self._task = self._bar.add_task(self._label, total=None)
            self._bar.start()
        self._bar.update(self._task, description=self._describe(step))

    def _describe(self, step: "Step") -> str:
        from lrm.files.spelling import number

        pure = self._noise != "gaussian"
        total = step.error * self._factor**2
        error = f"{number(2 * total)}/ε²" if pure else f"{number(total / 2)}/ρ"
        best = f"best error {error}"  # "—" before there is one
        left = f", about {max(1, round(step.remaining))} s left" if isfinite(step.remaining) else ""
        return f"{self._label}: {step.stage}, round {step.iteration}, {best}{left}; Ctrl-C keeps it"
