"""How far a search is, as a line on the terminal or below the cell of a notebook."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lrm.files.spelling import number

if TYPE_CHECKING:
    from lrm.clock import Step
    from lrm.privacy.budget import Noise

PATIENCE = 2.0
"""Seconds of work before a line appears: what is over sooner needs none."""


def is_watched() -> bool:
    """Whether a person sees a line that is replaced: at a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def spinner() -> Any:
    """A line that is gone when it is stopped."""
    # 0.05 s, for work that takes seconds
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def waiting(label: str, began: float | None = None, *, shown: bool = True) -> Iterator[None]:
    """Show ``label`` while work goes on, once it has taken a while, where somebody watches.

    Nothing may be printed within. Ctrl-C ends the work as it does elsewhere. ``began`` is the time
    at which the work began, now by default.
    """
    if not shown or not is_watched():
        yield
        return
    lock, bars, over = threading.Lock(), [], threading.Event()

    def show() -> None:
        with lock:
            if not over.is_set():
                bar = spinner()
                bar.add_task(f"{label}; Ctrl-C ends it", total=None)
                bar.start()
                bars.append(bar)

    since = time.monotonic() if began is None else began
    timer = threading.Timer(max(0.0, since + PATIENCE - time.monotonic()), show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        over.set()
        with lock:
            for bar in bars:
                with suppress(Exception):  # a line that cannot be removed loses no work
                    bar.stop()


class ProgressLine:
    """Takes a solver's steps and shows them on a terminal, behind what is being done.

    ``noise`` determines the amount in which errors are stated, and ``factor`` are the records that
    count for one privacy unit, with which errors grow.
    """

    def __init__(self, label: str, noise: Noise = "laplace", factor: int = 1) -> None:
        self.factor = factor
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

    def __call__(self, step: Step) -> None:
        """Take one step (``on_step``)."""
        passed = time.monotonic() - self._began
        if passed > PATIENCE and is_watched():
            self._show(step)

    def _show(self, step: Step) -> None:
        if self._bar is None:
            self._bar = spinner()
            self._task = self._bar.add_task(self._label, total=None)
            self._bar.start()
        self._bar.update(self._task, description=self._describe(step))

    def _describe(self, step: Step) -> str:
        pure = self._noise != "gaussian"
        total = step.error * self.factor**2
        error = f"{number(2 * total)}/ε²" if pure else f"{number(total / 2)}/ρ"
        best = f"best error {error}"  # "—" before there is one
        left = f", about {max(1, round(step.remaining))} s left" if isfinite(step.remaining) else ""
        return f"{self._label}: {step.stage}, round {step.iteration}, {best}{left}; Ctrl-C keeps it"
