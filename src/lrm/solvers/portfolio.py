"""The search for the best strategy: which solver runs from which start, in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lrm.errors import ConvergenceError, StopSolver
from lrm.solvers.augmented import assemble, optimise_augmented
from lrm.solvers.exact import ExactPair, checked_pair, factorise
from lrm.solvers.lowrank_exact import optimise_row_space, row_space_error
from lrm.solvers.progress import OnStep, Step, ignore_step
from lrm.solvers.starts import random_rows, rotation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy import sparse

__all__ = ["Candidate", "Effort", "SearchResult", "search"]

Matrix = NDArray[np.float64]
Effort = Literal["quick", "normal", "thorough"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that was tried: its name, the error it reached, the rounds it took."""

    name: str
    error: float
    iterations: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best exact pair ``W = B·L`` found, with L of sensitivity 1.

    ``winner`` names the candidate it came from; ``candidates`` lists all in the order tried.
    """

    strategy: sparse.csr_array
    reconstruction: Matrix
    error: float
    winner: str
    candidates: tuple[Candidate, ...]
    converged: bool
    interrupted: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """How much an effort tries."""

    shares: tuple[int, ...]  # p = n // share extra rows
    rotations: int
    hops: int
    tolerance: float


_PLANS: dict[Effort, _Plan] = {
    "quick": _Plan(shares=(16,), rotations=1, hops=0, tolerance=1e-5),
    "normal": _Plan(shares=(16, 8), rotations=6, hops=12, tolerance=1e-6),
    "thorough": _Plan(shares=(32, 16, 16, 8, 8, 4), rotations=30, hops=100, tolerance=1e-7),
}

#: A rotation is worth descending from if it starts below this multiple of the best so far;
#: descents gained a factor of 1.6 to 3 on all that was tried.
_PROMISING = 4.0


@dataclass(slots=True)
class _Record:
    """What was tried so far, and the best of it."""

    W: Matrix
    on_step: OnStep
    candidates: list[Candidate] = field(default_factory=list)
    error: float = np.inf
    winner: str = ""
    rows: Matrix | None = None
    pair: ExactPair | None = None
    converged: bool = True
    stopped: bool = False

    def step(self, step: Step) -> None:
        """Pass a report on, with the best error of the whole search."""
        if self.stopped:
            raise StopSolver
        try:
            self.on_step(
                Step(step.stage, step.iteration, min(self.error, step.error), step.residual)
            )
        except (StopSolver, KeyboardInterrupt):
            self.stopped = True
            raise StopSolver from None

    def note(self, name: str, error: float, iterations: int = 0) -> bool:
        """Record a candidate and say whether it is the best so far."""
        self.candidates.append(Candidate(name, float(error), iterations))
        better = error < self.error
        if better:
            self.error, self.winner = float(error), name
        return better

    def rest(self, *, converged: bool, interrupted: bool) -> None:
        """Note how a solver ended, and end the search if it was asked to stop."""
        self.converged &= converged
        if interrupted:
            self.stopped = True
            raise StopSolver


def search(
    W: Matrix,
    *,
    effort: Effort = "normal",
    rng: np.random.Generator,
    on_step: OnStep = ignore_step,
    extra_starts: Sequence[Matrix] = (),
) -> SearchResult:
    """Search for the strategy L of least error ``‖W·L⁺‖²`` with columns in the L1 ball.

    W (k x n) should be reduced: k is its rank and no two columns are equal up to sign. The
    identity and every one of ``extra_starts`` (r x n, any scale) is a candidate as it is, so
    the result is never worse than any of them. Each candidate counts with the error of its
    exact form. ``on_step`` may raise ``StopSolver`` at any time to get the best so far.

    Examples
    --------
    >>> found = search(np.tri(16), rng=np.random.default_rng(0), effort="quick")
    >>> bool(found.error < 0.9 * np.sum(np.tri(16)))
    True
    """
    if effort not in _PLANS:
        raise ValueError(f"expected an effort of {', '.join(_PLANS)}, got {effort!r}")
    record = _Record(np.ascontiguousarray(W, dtype=np.float64), on_step)
    record.note("identity", float(np.vdot(record.W, record.W)))
    record.rows = np.zeros((0, W.shape[1]))
    try:
        _try_as_they_are(record, extra_starts)
        _try_row_space(record, _PLANS[effort], rng)
        _try_augmented(record, _PLANS[effort], rng)
        _hop(record, _PLANS[effort], rng)
    except (StopSolver, KeyboardInterrupt):
        record.stopped = True
    return _result(record)


def _result(record: _Record) -> SearchResult:
    pair = record.pair
    if record.rows is not None:
        pair = checked_pair(record.W, *assemble(record.W, record.rows))
    if pair is None:
        raise ConvergenceError("expected at least the identity to be exact; report this")
    return SearchResult(
        strategy=pair.strategy,
        reconstruction=pair.reconstruction,
        error=pair.error,
        winner=record.winner,
        candidates=tuple(record.candidates),
        converged=record.converged and not record.stopped,
        interrupted=record.stopped,
    )


def _offer_pair(record: _Record, name: str, pair: ExactPair, iterations: int = 0) -> None:
    if record.note(name, pair.error, iterations):
        record.pair, record.rows = pair, None


def _offer_rows(record: _Record, name: str, rows: Matrix, error: float, rounds: int) -> None:
    if record.note(name, error, rounds):
        record.rows, record.pair = rows, None


def _try_as_they_are(record: _Record, starts: Sequence[Matrix]) -> None:
    for number, start in enumerate(starts, 1):
        record.step(Step("starts", number, record.error))
        try:
            _offer_pair(record, f"start {number}", factorise(record.W, start))
        except ConvergenceError:
            record.note(f"start {number} (does not answer the workload)", np.inf)


def _try_row_space(record: _Record, plan: _Plan, rng: np.random.Generator) -> None:
    """Descend from rotations of the singular vectors, with r between k and 2k rows."""
    W = record.W
    k, n = W.shape
    for number in range(plan.rotations):
        r = k if number % 2 == 0 else k + rng.integers(0, k, endpoint=True)
        X = rotation(W, int(r), rng)
        record.step(Step("row space", number + 1, record.error))
        if r >= n or row_space_error(W, X) > _PROMISING * record.error:
            return
        run = optimise_row_space(W, X, on_step=record.step, tolerance=plan.tolerance)
        X = run.mixing
        pair = factorise(W, X @ W)
        _offer_pair(record, f"row space, r = {r}", pair, run.iterations)
        record.rest(converged=run.converged, interrupted=run.interrupted)


def _try_augmented(record: _Record, plan: _Plan, rng: np.random.Generator) -> None:
    k, n = record.W.shape
    for share in plan.shares:
        # No family had more than n/10 rows alive at the end; more than k/2 never paid.
        p = min(max(4, min(n, 2 * k) // share), n)
        run = optimise_augmented(
            record.W, random_rows(p, n, rng), tolerance=plan.tolerance, on_step=record.step
        )
        name = f"identity + {len(run.extra_rows)} of {p} rows"
        _offer_rows(record, name, run.extra_rows, run.error, run.iterations)
        record.rest(converged=run.converged, interrupted=run.interrupted)


def _hop(record: _Record, plan: _Plan, rng: np.random.Generator) -> None:
    """Leave a local optimum by taking a row away or putting one in, and descend again."""
    W = record.W
    for number in range(plan.hops):
        rows = record.rows
        if rows is None or not len(rows):
            return
        if number % 3 != 1:
            rows = np.delete(rows, rng.integers(len(rows)), axis=0)
        if number % 3 != 0:
            rows = np.vstack([rows, random_rows(1, W.shape[1], rng)])
        run = optimise_augmented(
            W, rows, tolerance=plan.tolerance, on_step=record.step, stage="hop"
        )
        _offer_rows(record, f"hop {number + 1}", run.extra_rows, run.error, run.iterations)
        record.rest(converged=run.converged, interrupted=run.interrupted)
