"""How a solver tells what it is doing, and how it is asked to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["OnStep", "Step", "ignore_step"]


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
    """

    stage: str
    iteration: int
    error: float
    residual: float = 0.0


OnStep = Callable[[Step], None]
"""Called once a round. It may raise ``StopSolver`` to end with the best so far."""


def ignore_step(step: Step) -> None:
    """Do nothing: the default ``on_step``."""
    del step
