"""What a search has tried so far, and the best of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lrm.errors import ConvergenceError, StopSolver
from lrm.solvers.augmented import AugmentedResult, assemble
from lrm.solvers.exact import ExactPair, checked_pair, factorise
from lrm.solvers.progress import OnStep, Step
from lrm.solvers.projection import ProjectionResult
from lrm.solvers.row_space import RowSpaceResult

__all__ = ["ROUNDING", "Candidate", "Record"]

Matrix = NDArray[np.float64]

ROUNDING = 1e-8
"""A smaller relative gain does not count: integer strategies of 30 bits lose as much."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that was tried: its name, the error it reached, and what it cost."""

    name: str
    error: float
    iterations: int
    seconds: float = field(default=0.0, compare=False)


class Record:
    """The candidates of one search on W, the best of them, and the wish to stop.

    The best is kept either as extra rows beside the identity (``rows``) or as an exact pair.
    It starts as the identity itself, so there is always something to return. ``converged``
    is whether the solver of the best came to an end by itself.
    """

    def __init__(self, W: Matrix, on_step: OnStep) -> None:
        self.W = np.ascontiguousarray(W, dtype=np.float64)
        self.candidates: list[Candidate] = []
        self.error, self.winner = np.inf, ""
        self.rows: Matrix | None = None
        self.converged, self.stopped = True, False
        self._pair: ExactPair | None = None
        self._on_step = on_step
        self._noted = time.perf_counter()
        if self.note("identity", float(np.vdot(W, W))):
            self.rows = np.zeros((0, W.shape[1]))

    def step(self, step: Step) -> None:
        """Pass a report on, with the best error of the whole search."""
        if self.stopped:
            raise StopSolver
        error = min(self.error, step.error)
        try:
            self._on_step(Step(step.stage, step.iteration, error, step.residual))
        except StopSolver:
            self.stopped = True
            raise StopSolver from None

    def note(self, name: str, error: float, iterations: int = 0) -> bool:
        """Record a candidate and say whether it is the best so far."""
        now = time.perf_counter()
        self.candidates.append(Candidate(name, float(error), iterations, now - self._noted))
        self._noted = now
        better = error < self.error * (1.0 - ROUNDING) or self.error == np.inf
        if better:
            self.error, self.winner = float(error), name
        return better

    def offer_rows(self, name: str, found: AugmentedResult) -> None:
        """Take extra rows beside the identity if they are better than the best."""
        if self.note(name, found.error, found.iterations):
            self.rows, self._pair, self.converged = found.extra_rows, None, found.converged
        self._go_on_unless(interrupted=found.interrupted)

    def offer_polished(self, name: str, found: ProjectionResult) -> None:
        """Take a polished pair if it is better than the best."""
        if self.note(name, found.error, found.iterations):
            self.rows, self._pair, self.converged = None, found.pair, found.converged
        self._go_on_unless(interrupted=found.interrupted)

    def offer_mixing(self, name: str, found: RowSpaceResult) -> None:
        """Take a mixing of the rows of W if it is better than the best."""
        if found.error < self.error:
            self.offer_strategy(name, found.mixing @ self.W, found.iterations)
            if self.winner == name:
                self.converged = found.converged
        else:
            self.note(name, found.error, found.iterations)
        self._go_on_unless(interrupted=found.interrupted)

    def offer_strategy(self, name: str, L: Matrix | sparse.sparray, iterations: int = 0) -> None:
        """Measure a strategy in its exact form, and take it if it is better than the best."""
        try:
            pair = factorise(self.W, L)
        except ConvergenceError:
            self.note(f"{name} (does not answer the workload)", np.inf, iterations)
            return
        if self.note(name, pair.error, iterations):
            self.rows, self._pair, self.converged = None, pair, True

    def _go_on_unless(self, *, interrupted: bool) -> None:
        """End the search if the solver was asked to stop."""
        if interrupted:
            self.stopped = True
            raise StopSolver

    def exact_form(self) -> ExactPair:
        """Return the best so far as a pair that passed the exactness check."""
        if self._pair is not None:
            return self._pair
        rows = np.zeros((0, self.W.shape[1])) if self.rows is None else self.rows
        return checked_pair(self.W, *assemble(self.W, rows))
