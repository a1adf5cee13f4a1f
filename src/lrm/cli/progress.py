"""A solver's reports as a line on the terminal."""

import sys
import time
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from lrm.clock import Step
    from lrm.privacy.budget import Noise

__all__ = ["ProgressLine"]

PATIENCE = 2.0
"""Seconds of work before a bar appears: what is over sooner needs none."""


class ProgressLine:
    """Takes a solver's steps and shows them on a terminal.

    Parameters
    ----------
    label
        What is being done, in front of the bar.
    noise
        Determines the amount in which errors are stated.
    factor
        Records that count for one privacy unit, with which errors grow.
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
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (
                SpinnerColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._label, total=None)
            self._bar.start()
        self._bar.update(self._task, description=self._describe(step))

    def _describe(self, step: "Step") -> str:
        from lrm.spelling import number

        pure = self._noise != "gaussian"
        total = step.error * self._factor**2
        error = f"{number(2 * total)}/ε²" if pure else f"{number(total / 2)}/ρ"
        best = f"best error {error}"  # "—" before there is one
        left = f", about {max(1, round(step.remaining))} s left" if isfinite(step.remaining) else ""
        return f"{self._label}: {step.stage}, round {step.iteration}, {best}{left}; Ctrl-C keeps it"
