"""The search for the best strategy: which solver runs from which start, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrm.errors import StopSolver
from lrm.solvers.augmented import SMOOTHING, AugmentedResult, optimise_augmented
from lrm.solvers.progress import OnStep, Step, ignore_step
from lrm.solvers.projection import optimise_projection
from lrm.solvers.record import Candidate, Record
from lrm.solvers.row_space import (
    STAGES,
    RowSpaceResult,
    optimise_row_space,
    row_space_error,
)
from lrm.solvers.starts import random_rows, rotation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scipy import sparse

__all__ = ["Candidate", "Effort", "SearchResult", "search"]

Matrix = NDArray[np.float64]
Effort = Literal["quick", "normal", "thorough"]
NO_STARTS: Mapping[str, Matrix] = MappingProxyType({})


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
    wide: float  # operations for a first descent from many rows,
    wider: float  # and where few rows bring nothing
    smoothing: tuple[float, ...]  # widths of the rounded kink, one after the other
    rough: float  # where a descent from a new start ends
    polished: int  # cells up to which the general form polishes an augmented identity
    tolerance: float  # where the best of them is taken to


_PLANS: dict[Effort, _Plan] = {
    "quick": _Plan(
        restarts=1,
        rotations=1,
        finished=1,
        hops=0,
        patience=1,
        work=3e11,
        wide=2e9,
        wider=2e9,
        smoothing=(0.1, 0.01),
        rough=1e-4,
        polished=64,
        tolerance=1e-4,
    ),
    "normal": _Plan(
        restarts=8,
        rotations=6,
        finished=4,
        hops=9,
        patience=4,
        work=4e11,
        wide=1e10,
        wider=1e11,
        smoothing=SMOOTHING,
        rough=1e-5,
        polished=128,
        tolerance=1e-7,
    ),
    "thorough": _Plan(
        restarts=40,
        rotations=24,
        finished=12,
        hops=90,
        patience=30,
        work=1e13,
        wide=1e12,
        wider=1e12,
        smoothing=SMOOTHING,
        rough=1e-5,
        polished=256,
        tolerance=1e-8,
    ),
}


class _Shape(NamedTuple):
    """What random rows look like: how often their number is doubled, and their size.

    ``survive`` is the share of them that must stay alive for more of them to be tried.
    """

    doublings: int
    size: float
    survive: float


_FEW, _MANY = _Shape(0, 0.2, 1.0), _Shape(2, 0.6, 0.5)

#: Rows p = n/share of the restarts, in turn. No winner on the panel kept more than n/14.
_SHARES = (16, 12, 16, 24, 16, 8)
#: Rounds of one augmented descent, about; a round costs 4·k·n·p operations.
_ROUNDS = 300
#: Descents from a rotation gained a factor of 1.6 to 2.2 on the four workloads where they won.
_PROMISING = 2.5
#: Operations of a scout that is worth its time whatever its start looks like, and how many
#: of them are sent out if none finds anything.
_CHEAP, _FEW_SCOUTS = 1e9, 2
#: For random columns it wins from n = k² on; above this k²/n it is not even looked at.
_WIDE = 16
#: A relative gain that is worth going on for.
_GAIN = 1e-5
#: A relative gain that is worth twice as many rows.
_WORTHWHILE = 0.01


def search(
    W: Matrix,
    *,
    effort: Effort = "normal",
    rng: np.random.Generator,
    on_step: OnStep = ignore_step,
    starts: Mapping[str, Matrix] = NO_STARTS,
) -> SearchResult:
    """Search for the strategy L of least error ``‖W·L⁺‖²`` with columns in the L1 ball.

    W (k x n) should be reduced: k is its rank and no two columns are equal up to sign. The
    identity and every one of ``starts`` (name → r x n, any scale) is a candidate as it is, so
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
        return _result(record)  # no queries, so nothing is measured
    try:
        _try_as_they_are(record, starts)
        shape = _first_descents(record, plan, rng)
        _try_row_space(record, plan, rng)
        _restart(record, plan, rng, shape)
        _try_rows_of(record, plan, starts)
        _hop(record, plan, rng)
        _finish(record, plan)
    except StopSolver:
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


def _try_as_they_are(record: Record, starts: Mapping[str, Matrix]) -> None:
    """Offer all of them, also to a search that was stopped already: they are the best so far."""
    for name, start in starts.items():
        record.offer_strategy(name, start)


def _try_row_space(record: Record, plan: _Plan, rng: np.random.Generator) -> None:
    """Scout from rotations of the singular vectors, with r from k to 2k; finish the best.

    Errors after two stages and at the end correlate at 0.8 to 0.9, so most are left early.
    """
    W = record.W
    k, n = W.shape
    if k >= n or k * k > max(_WIDE * n, 64 * 64):
        return
    # A round takes about r·n·(4k + 100) operations, the last for roots and powers.
    cost = 800 * k * n * (4 * k + 100)
    affordable = int(0.15 * plan.work / cost)
    scouts: list[RowSpaceResult] = []
    for number in range(min(max(plan.rotations, affordable), 4 * plan.rotations)):
        r = k if number % 2 == 0 else int(rng.integers(k, min(2 * k, n), endpoint=True))
        X = rotation(W, r, rng)
        record.step(Step("row space", number + 1, record.error))
        if number == 0:
            unlikely = row_space_error(W, X) > _PROMISING * record.error
        if unlikely and (cost > _CHEAP or number == _FEW_SCOUTS):
            return
        scout = optimise_row_space(W, X, stages=STAGES[:2], on_step=record.step, tolerance=1e-5)
        record.offer_mixing(f"row space scout, r = {r}", scout)
        scouts.append(scout)
        unlikely = unlikely and record.error < scout.error
    for scout in sorted(scouts, key=lambda found: found.error)[: plan.finished]:
        run = optimise_row_space(
            W,
            scout.mixing,
            stages=STAGES[2:],
            on_step=record.step,
            tolerance=min(1e-6, 10 * plan.tolerance),
        )
        record.offer_mixing(f"row space, r = {len(run.mixing)}", run)


def _cost(W: Matrix, rows: int) -> float:
    """Return about how many operations a descent takes."""
    return 4.0 * rows * W.size * _ROUNDS


def _most_rows(W: Matrix, plan: _Plan) -> int:
    """Return how many extra rows one descent can afford with half of the work."""
    return max(1, int(plan.work / (2 * _cost(W, 1))))


def _descend(
    record: Record, name: str, rows: Matrix, *, smoothing: Sequence[float], tolerance: float
) -> AugmentedResult:
    """Optimise extra rows beside the identity, and offer them."""
    run = optimise_augmented(
        record.W, rows, smoothing=smoothing, tolerance=tolerance, on_step=record.step, stage=name
    )
    record.offer_rows(f"{name}, p = {len(run.extra_rows)}", run)
    return run


def _gain(error: float, before: float) -> float:
    return 1.0 - error / before


def _row_count(W: Matrix, plan: _Plan, number: int, doublings: int) -> int:
    """Return how many rows beside the identity the start of this number gets."""
    k, n = W.shape
    p = max(4, min(n, 2 * k) // _SHARES[number % len(_SHARES)])
    return int(min(p << doublings, n, _most_rows(W, plan)))


def _first_descents(record: Record, plan: _Plan, rng: np.random.Generator) -> _Shape:
    """Descend from few small rows and, where it is affordable, from many larger ones.

    Returns which shape was better. Weights that fade with the distance of cells need
    more rows than ranges do: 100 of them over 150 cells have the error 504 with 9 rows, and
    248 with 50 rows, which do not come up from small ones.
    """
    shape, few = _grow(record, plan, rng, _FEW)
    affordable = plan.wide if len(few.extra_rows) else plan.wider
    if _cost(record.W, _row_count(record.W, plan, 0, _MANY.doublings)) > affordable:
        return shape
    grown, many = _grow(record, plan, rng, _MANY)
    return grown if _gain(many.error, few.error) > _WORTHWHILE else shape


def _grow(
    record: Record, plan: _Plan, rng: np.random.Generator, shape: _Shape
) -> tuple[_Shape, AugmentedResult]:
    """Descend from random rows; with as many again as long as that helps and few die."""
    W, n = record.W, record.W.shape[1]
    rows = random_rows(_row_count(W, plan, 0, shape.doublings), n, rng, size=shape.size)
    name, before = "random rows", float(np.vdot(W, W))
    while True:
        run = _descend(record, name, rows, smoothing=plan.smoothing, tolerance=plan.rough)
        kept = run.extra_rows
        if _gain(run.error, before) < _WORTHWHILE or len(kept) < shape.survive * len(rows):
            return shape, run
        more = _row_count(W, plan, 0, shape.doublings + 1) - len(kept)
        if more <= 0 or 2 * len(kept) > _most_rows(W, plan) // 4:
            return shape, run
        shape = shape._replace(doublings=shape.doublings + 1)
        rows = np.vstack([kept, random_rows(more, n, rng, size=shape.size)])
        name, before = "more rows", run.error


def _restart(record: Record, plan: _Plan, rng: np.random.Generator, shape: _Shape) -> None:
    """Descend from random rows, until the work or the patience is used up."""
    # Some other kind of strategy may be ahead; the first descent found out for how long.
    if record.rows is None:
        return
    W, misses = record.W, 0
    for number in range(1, plan.restarts):
        p = _row_count(W, plan, number, shape.doublings)
        if (number + 1) * _cost(W, p) > plan.work or misses >= plan.patience:
            return
        rows, before = random_rows(p, W.shape[1], rng, size=shape.size), record.error
        _descend(record, "random rows", rows, smoothing=plan.smoothing, tolerance=plan.rough)
        misses = 0 if _gain(record.error, before) > _GAIN else misses + 1


def _try_rows_of(record: Record, plan: _Plan, starts: Mapping[str, Matrix]) -> None:
    """Descend from those rows of the given starts that touch more than one cell."""
    if plan.restarts <= 1:
        return
    for name, start in starts.items():
        rows = start[np.count_nonzero(start, axis=1) > 1]
        # Also where another kind of strategy is ahead: beside the identity, the 64 rows of
        # a general start took WDiscrete 64×1024 from 6,439 to 5,641.
        if len(rows) and _cost(record.W, len(rows)) <= plan.wide:
            rows = rows / np.abs(rows).max()
            _descend(
                record, f"rows of {name}", rows, smoothing=plan.smoothing, tolerance=plan.rough
            )


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
        if not len(rows) or plan.hops * _cost(record.W, len(rows)) > plan.work:
            return
        before = record.error
        _descend(record, "row exchange", rows, smoothing=plan.smoothing, tolerance=plan.rough)
        misses = 0 if _gain(record.error, before) > _GAIN else misses + 1


def _finish(record: Record, plan: _Plan) -> None:
    """Run the best so far to the end, in its own form and, where it pays, in the general.

    The general form gained at most 0.1 % on augmented identities, at n = 78 to 231, while
    its cost grows with n³; so it polishes those only where there are few cells.
    """
    W = record.W
    n = W.shape[1]
    if record.rows is not None and len(record.rows) and plan.tolerance < plan.rough:
        cheap = 10 * _cost(W, len(record.rows)) < plan.work
        tolerance = plan.tolerance if cheap else 10 * plan.tolerance
        _descend(record, "last descent", record.rows, smoothing=(), tolerance=tolerance)
    best = record.exact_form()
    polish = [best.strategy.toarray()] if record.rows is None or n <= plan.polished else []
    if n <= plan.polished:
        # Own rows again, so that a cell may win one back; L1 norms stay at most 1.
        polish.append(np.vstack([0.8 * polish[0], 0.2 * np.eye(n)]))
    for L in polish:
        run = optimise_projection(W, L, on_step=record.step, tolerance=max(2e-6, plan.tolerance))
        record.offer_polished("polish", run)
