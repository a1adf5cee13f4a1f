"""The search for the best strategy: which solver runs from which start, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lrm.errors import StopSolver
from lrm.solvers.augmented import SMOOTHING, optimise_augmented
from lrm.solvers.lowrank_exact import (
    STAGES,
    RowSpaceResult,
    optimise_row_space,
    row_space_error,
)
from lrm.solvers.progress import OnStep, Step, ignore_step
from lrm.solvers.projection import optimise_projection
from lrm.solvers.record import Candidate, Record
from lrm.solvers.starts import random_rows, rotation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy import sparse

__all__ = ["Candidate", "Effort", "SearchResult", "search"]

Matrix = NDArray[np.float64]
Effort = Literal["quick", "normal", "thorough"]


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
    """How much an effort tries at most; large workloads get less, by their ``work``."""

    restarts: int
    rotations: int  # scouts from random rotations, or up to four times as many if cheap
    finished: int  # scouts that are followed to the end
    hops: int
    patience: int  # tries without a gain of 1e-5 before the next kind of try
    work: float  # floating-point operations for all restarts together, about
    tolerance: float


_PLANS: dict[Effort, _Plan] = {
    "quick": _Plan(
        restarts=1, rotations=2, finished=1, hops=0, patience=1, work=3e11, tolerance=1e-5
    ),
    "normal": _Plan(
        restarts=8, rotations=6, finished=4, hops=9, patience=4, work=4e11, tolerance=1e-7
    ),
    "thorough": _Plan(
        restarts=40, rotations=24, finished=12, hops=90, patience=30, work=1e13, tolerance=1e-8
    ),
}

#: Rows p = n/share of the restarts, in turn. No winner on the panel kept more than n/14.
_SHARES = (16, 12, 16, 24, 16, 8)
#: Rounds of one augmented descent, about; a round costs 4·k·n·p operations.
_ROUNDS = 300
#: Descents from a rotation gained a factor of 1.6 to 2.2 on the four workloads where they won.
_PROMISING = 2.5
#: For random columns it wins from n = k² on; above this k²/n it is not even looked at.
_WIDE = 16
#: A relative gain that is worth going on for.
_GAIN = 1e-5
#: The general form gained at most 0.1 % on augmented identities, at n = 78 to 231, while
#: its cost grows with n³; so it polishes those only up to this many cells.
_SMALL = 128


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
    record = Record(W, on_step)
    plan = _PLANS[effort]
    if not record.error > 0:
        return _result(record)  # nothing is asked, so nothing is measured
    try:
        _try_as_they_are(record, extra_starts)
        _restart(record, plan, rng, range(1))
        _try_row_space(record, plan, rng)
        _restart(record, plan, rng, range(1, plan.restarts))
        _try_rows_of(record, plan, extra_starts)
        _hop(record, plan, rng)
        _finish(record, plan)
    except (StopSolver, KeyboardInterrupt):
        record.stopped = True
    return _result(record)


def _result(record: Record) -> SearchResult:
    pair = record.exact_form()
    return SearchResult(
        strategy=pair.strategy,
        reconstruction=pair.reconstruction,
        error=pair.error,
        winner=record.winner,
        candidates=tuple(record.candidates),
        converged=record.converged and not record.stopped,
        interrupted=record.stopped,
    )


def _try_as_they_are(record: Record, starts: Sequence[Matrix]) -> None:
    for number, start in enumerate(starts, 1):
        record.step(Step("starts", number, record.error))
        record.offer_strategy(f"start {number}", start)


def _try_row_space(record: Record, plan: _Plan, rng: np.random.Generator) -> None:
    """Scout from rotations of the singular vectors, with r from k to 2k; finish the best.

    Errors after two stages and at the end correlate at 0.8 to 0.9, so most are left early.
    """
    W = record.W
    k, n = W.shape
    if k >= n or k * k > max(_WIDE * n, 64 * 64):
        return
    # A round takes about r·n·(4k + 100) operations, the last for roots and powers.
    affordable = int(0.15 * plan.work / (800 * k * n * (4 * k + 100)))
    scouts: list[RowSpaceResult] = []
    for number in range(min(max(plan.rotations, affordable), 4 * plan.rotations)):
        r = k if number % 2 == 0 else int(rng.integers(k, min(2 * k, n), endpoint=True))
        X = rotation(W, r, rng)
        record.step(Step("row space", number + 1, record.error))
        if number == 0 and row_space_error(W, X) > _PROMISING * record.error:
            return
        scout = optimise_row_space(W, X, stages=STAGES[:2], on_step=record.step, tolerance=1e-5)
        record.offer_mixing(f"row space scout, r = {r}", scout)
        scouts.append(scout)
    for scout in sorted(scouts, key=lambda found: found.error)[: plan.finished]:
        run = optimise_row_space(
            W,
            scout.mixing,
            stages=STAGES[2:],
            on_step=record.step,
            tolerance=min(1e-6, 10 * plan.tolerance),
        )
        record.offer_mixing(f"row space, r = {len(run.mixing)}", run)


def _most_rows(W: Matrix, plan: _Plan) -> int:
    """Return how many extra rows one descent can afford with half of the work."""
    return max(1, int(plan.work / (2 * _ROUNDS * 4 * max(W.size, 1))))


def _descend(
    record: Record, name: str, rows: Matrix, *, tolerance: float, smooth: bool = True
) -> float:
    """Optimise extra rows beside the identity; return the relative gain on the best."""
    before = record.error
    run = optimise_augmented(
        record.W,
        rows,
        smoothing=SMOOTHING if smooth else (),
        tolerance=tolerance,
        on_step=record.step,
        stage=name,
    )
    if not run.error > 0:  # rows so long that float64 loses the error: no strategy at all
        return 0.0
    record.offer_rows(f"{name}, p = {len(run.extra_rows)}", run)
    return 1.0 - run.error / before


def _restart(record: Record, plan: _Plan, rng: np.random.Generator, numbers: range) -> None:
    """Descend from random rows, until the work or the patience is used up."""
    W = record.W
    k, n = W.shape
    # Some other kind of strategy may be ahead; a first descent finds out for how long.
    if record.rows is None and numbers.start > 0:
        return
    misses = 0
    for number in numbers:
        p = max(4, min(n, 2 * k) // _SHARES[number % len(_SHARES)])
        p = min(p, n, _most_rows(W, plan))
        if number and (number + 1) * p * W.size * 4 * _ROUNDS > plan.work:
            return
        gain = _descend(
            record, "random rows", random_rows(p, n, rng), tolerance=max(1e-5, plan.tolerance)
        )
        misses = 0 if gain > _GAIN else misses + 1
        if misses >= plan.patience:
            return


def _try_rows_of(record: Record, plan: _Plan, starts: Sequence[Matrix]) -> None:
    """Descend from those rows of the given starts that touch more than one cell."""
    for number, start in enumerate(starts, 1):
        dense = np.asarray(start.todense() if hasattr(start, "todense") else start)
        rows = dense[np.count_nonzero(dense, axis=1) > 1]
        # Also where another kind of strategy is ahead: beside the identity, the 64 rows of
        # a general start took WDiscrete 64×1024 from 6,439 to 5,641.
        if not 0 < len(rows) <= min(_most_rows(record.W, plan), record.W.shape[1] // 2):
            continue
        rows = rows / np.abs(rows).max()
        _descend(record, f"rows of start {number}", rows, tolerance=max(1e-5, plan.tolerance))


def _hop(record: Record, plan: _Plan, rng: np.random.Generator) -> None:
    """Leave a local optimum by taking a row away or putting one in, and descend again."""
    misses = 0
    for number in range(plan.hops):
        rows = record.rows
        if rows is None or not len(rows) or misses >= plan.patience:
            return
        if number % 3 != 1:
            rows = np.delete(rows, rng.integers(len(rows)), axis=0)
        if number % 3 != 0:
            rows = np.vstack([rows, random_rows(1, rows.shape[1], rng)])
        work = plan.hops * len(rows) * record.W.size * 4 * _ROUNDS
        if not len(rows) or work > plan.work:
            return
        gain = _descend(record, "row exchange", rows, tolerance=max(1e-5, plan.tolerance))
        misses = 0 if gain > _GAIN else misses + 1


def _finish(record: Record, plan: _Plan) -> None:
    """Run the best so far to the end, in its own form and, where it pays, in the general."""
    W = record.W
    n = W.shape[1]
    if record.rows is not None and len(record.rows):
        cheap = 10 * len(record.rows) * W.size * 4 * _ROUNDS < plan.work
        tolerance = plan.tolerance if cheap else 10 * plan.tolerance
        _descend(record, "last descent", record.rows, tolerance=tolerance, smooth=False)
    best = record.exact_form()
    polish = [best.strategy.toarray()] if record.rows is None or n <= _SMALL else []
    if n <= _SMALL:
        # Own rows again, so that a cell may win one back; L1 norms stay at most 1.
        polish.append(np.vstack([0.8 * polish[0], 0.2 * np.eye(n)]))
    for L in polish:
        run = optimise_projection(W, L, on_step=record.step, tolerance=max(2e-6, plan.tolerance))
        record.offer_polished("polish", run)
