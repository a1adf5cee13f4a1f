"""The kinds of descent that race for the best strategy of a workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrm.clock import UNLIMITED, Clock, work_of
from lrm.solvers.exact import ExactPair, checked_pair
from lrm.solvers.extra_rows import (
    SMOOTHING,
    ExtraRows,
    assemble,
    optimise_extra_rows,
    round_work,
)
from lrm.solvers.general import SCHEDULE, general_stages
from lrm.solvers.race import Family, Race, Stage
from lrm.solvers.row_space import STAGES, optimise_row_space
from lrm.solvers.starts import random_rows, rotation

__all__ = ["families", "from_start", "search"]

Matrix = NDArray[np.float64]
NO_STARTS: Mapping[str, Matrix] = MappingProxyType({})
Steps = Iterator[tuple[float, float]]
Schedule = Sequence[tuple[float, int]]

SHARES = (16, 12, 16, 24, 16, 8)
"""Rows p = n/share next to the identity, in turn. No winner on the panel kept more than n/14."""

MOST_ROWS = 96
"""Of n/share rows. Over 2,880 cells of four attributes 180 of them ended 0.5 % above 96, in 1.4
times the time."""

ROW_SPACE_WIDTHS = (1.0, 1.25, 1.5, 2.0)
"""Rows of a strategy in the row space of W, as multiples of its rank: a family for each, since
which one wins depends on the batch. Random matrices of 256×4096 cells need the rank itself;
one-way tables of 10×8×5×2×2 values have 432 with those, and 368 with twice as many."""

OTHER_WIDTH = 1.25
"""A width is tried if another one ended less than this factor above the best."""

GENERAL_WIDTHS = (2.0, 1.5, 2.0, 1.2)
"""Rows of a random start in the general form, as multiples of the rank, in turn."""

FAR = 4.0
"""A start is left as it is if it is more than this factor above the best."""

LEADING = 1.02
"""A start that is at most this factor above the best is improved first."""

GOOD_START, BESIDE_START = 0.5, 0.3
"""Beside a start of less than this share of the identity's error, random ones win less often."""

WIDE, WIDE_BESIDE_START = 0.2, 1.0
"""The row space is searched where there are more cells than this share of its rank squared; the
second is for batches with a good start."""

MOST_RANK = 0.45
"""Random starts in the general form are tried up to this rank, as a share of the cells."""

MANY_SPREAD = 0.01
"""By how much two descents from many rows differ."""

NEAR = 1.3
"""Many rows next to an identity are tried if few of them are at most this far from the best."""


def search(  # noqa: PLR0913 - each is a choice of the caller
    W: Matrix,
    *,
    threshold: float,
    patience: float = np.inf,
    seed: int = 0,
    clock: Clock = UNLIMITED,
    starts: Mapping[str, Matrix] = NO_STARTS,
) -> Race:
    """Search for the strategy L of least error ``‖W·L⁺‖²`` with columns in the L1 ball.

    W (k x n) should be reduced: k is its rank and no two columns are equal up to sign. The identity
    and every one of ``starts`` (name → r x n, any scale) is a candidate as it is, so the result is
    never worse than any of them. When the clock ends, the best so far is returned. The search ends
    when a second of work is expected to gain less than ``threshold``, which grows with the square
    of the work after ``patience`` seconds.

    Examples
    --------
    >>> bool(search(np.tri(16), threshold=0.1).error < 0.9 * np.sum(np.tri(16)))
    True
    """
    race = Race(W, clock)
    # The starts are known even to a search that is stopped at once.
    errors = {name: race.offer_strategy(name, L) for name, L in starts.items()}
    known = [from_start(race, n, L, errors[n]) for n, L in starts.items() if errors[n] < np.inf]
    beside = [_beside_identity(race, name, L, errors[name]) for name, L in starts.items()]
    race.run([*known, *beside, *families(race, seed)], threshold, patience)
    return race


def families(race: Race, seed: int) -> list[Family]:
    """Every kind of descent that can win on the workload of a race."""
    k, n = race.W.shape
    alive: list[float] = []
    # The best is some start here; the first candidate is the identity.
    share = BESIDE_START if race.error < GOOD_START * race.candidates[0].error else 1.0
    few = _random_rows(race, "few rows", seed, _Shape(1, 0.2, 200), alive)
    many = _random_rows(race, "many rows", seed + 1, _Shape(4, 0.6, 800), [])

    def hope() -> float:
        """Of many rows: where few of them are near the best, and none of those died."""
        near = bool(few.runs) and few.runs[0].error < NEAR * race.error
        return (0.02 if alive[0] == 1.0 else 0.001) if near else 0.0

    many.hope, many.spread = hope, MANY_SPREAD
    found = [
        few,
        many,
        _exchange(race, seed),
    ]
    if k < n:
        in_row_space: list[Family] = []
        wide = WIDE if share == 1.0 else WIDE_BESIDE_START
        first = share * min(0.3, 0.1 * n / (k * k)) if n > wide * k * k else 0.0
        for width in ROW_SPACE_WIDTHS:
            in_row_space.append(_row_space(race, seed, width, first, in_row_space))
        found += in_row_space
    if k <= MOST_RANK * n:
        found.append(_random_general(race, seed, share))
    return found


def _offer_rows(race: Race, name: str, found: ExtraRows) -> None:
    rows = found.rows
    race.offer(
        f"{name}, p = {len(rows)}",
        found.error,
        lambda: checked_pair(race.W, *assemble(race.W, rows)),
        found.iterations,
        rows,
    )
    race.clock.check()


class _Shape(NamedTuple):
    """What random rows next to an identity are like: how many, how large, and rounds to expect."""

    more: int
    size: float
    rounds: int


def _rows_steps(race: Race, name: str, rows: Matrix, alive: list[float]) -> Steps:
    """Extra rows next to an identity: roughly, to the end, and without the identity."""
    W = race.W
    per_round = round_work(W, len(rows))
    smoothing: tuple[float, ...] = SMOOTHING
    for tolerance in (1e-5, 1e-7):
        found = optimise_extra_rows(
            W, rows, smoothing=smoothing, tolerance=tolerance, clock=race.clock, stage=name
        )
        _offer_rows(race, name, found)
        alive.append(len(found.rows) / len(rows) if len(rows) else 0.0)
        rows, smoothing = found.rows, ()
        yield found.error, per_round * found.iterations
    L = assemble(W, rows)[1].toarray()
    yield from _in_general(race, name, L, POLISH)


def _rows_stages(W: Matrix, cost: float, p: int) -> list[Stage]:
    """What to expect of each stage; without the identity, cells may share a row."""
    k, n = W.shape
    polish = 50 * _general_seconds(n + p, k, n)
    return [Stage(cost), Stage(cost, 0.9997), Stage(polish, 0.9999), Stage(polish / 2, 0.9999)]


def _random_rows(race: Race, name: str, seed: int, shape: _Shape, alive: list[float]) -> Family:
    """Extra rows next to an identity, from random ones; notes which share of them stays alive."""
    W = race.W
    k, n = W.shape
    rng = np.random.default_rng([seed, 1])

    def count(number: int) -> int:
        share = SHARES[number % len(SHARES)]
        return int(min(n, max(4, shape.more * min(MOST_ROWS, min(n, 2 * k) // share))))

    def begin(number: int) -> Steps:
        rows = random_rows(count(number), n, rng, size=shape.size)
        return _rows_steps(race, name, rows, alive)

    cost = shape.rounds * round_work(W, count(0))
    stages = _rows_stages(race.W, cost, count(0))
    return Family(name, begin, stages, hope=lambda: 1.0, needed=1)


def _beside_identity(race: Race, name: str, L: Matrix, error: float) -> Family:
    """The rows of a start that touch more than one cell, next to an identity."""
    rows = L[np.count_nonzero(L, axis=1) > 1]
    name = f"rows of {name}"

    def begin(number: int) -> Steps:
        del number
        return _rows_steps(race, name, rows / np.abs(rows).max(), [])

    def hope() -> float:
        return 0.0005 if error < FAR * race.error else 0.0

    cost = 400 * round_work(race.W, len(rows))
    stages = _rows_stages(race.W, cost, len(rows))
    return Family(name, begin, stages, hope, limit=min(1, len(rows)), needed=1)


def _exchange(race: Race, seed: int) -> Family:
    """Leave a local optimum by taking a row away or putting one in, and descend again."""
    rng = np.random.default_rng([seed, 2])

    def begin(number: int) -> Steps:
        rows = race.rows
        assert rows is not None  # noqa: S101 - else it is not possible
        if number % 3 != 1:
            rows = np.delete(rows, rng.integers(len(rows)), axis=0)
        if number % 3 != 0:
            rows = np.vstack([rows, random_rows(1, rows.shape[1], rng)])
        return _rows_steps(race, "row exchange", rows, [])

    k, n = race.W.shape
    p = max(4, min(n, 2 * k) // SHARES[0])
    cost = 100 * round_work(race.W, p)
    stages = _rows_stages(race.W, cost, p)

    def possible() -> bool:
        """Whether the best strategy so far is an identity and some rows."""
        return race.rows is not None and len(race.rows) > 0

    return Family("row exchange", begin, stages, lambda: 0.002, needed=1, possible=possible)


def _row_space_seconds(r: int, k: int, n: int) -> float:
    return work_of(2.0 * r * k * n + r * k * k, 1.0 * r * n)


def _row_space(
    race: Race, seed: int, width: float, first: float, others: Sequence[Family]
) -> Family:
    """Combinations of the rows of W: ahead where there are far more cells than its rank squared.

    ``first`` is what to hope for before any has been seen. Where ``others``, the families of other
    widths, end far above the best, so will this one.
    """
    W = race.W
    k, n = W.shape
    r = min(n, int(np.ceil(width * k)))
    rng = np.random.default_rng([seed, 3, r])

    def begin(number: int) -> Steps:
        del number
        X = rotation(W, r, rng)
        name = f"row space, r = {r}"
        for stages, tolerance in ((STAGES[:2], 1e-5), (STAGES[2:], 1e-6)):
            found = optimise_row_space(
                W, X, stages=stages, tolerance=tolerance, max_rounds=300, clock=race.clock
            )
            X = found.mixing
            if found.error < race.error:
                race.offer_strategy(name, X @ W, found.iterations)
            race.clock.check()
            yield found.error, _row_space_seconds(r, k, n) * found.iterations
        yield from _in_general(race, name, X @ W, SCHEDULE[-1:])

    cost = _row_space_seconds(r, k, n)
    stages = (
        Stage(250 * cost),
        Stage(100 * cost, 0.97),
        Stage(50 * _general_seconds(k, k, n), 0.9995),
    )

    def hope() -> float:
        ends = [run.expected() for family in others for run in family.runs]
        return first if not ends or min(ends) < OTHER_WIDTH * race.error else 0.0

    return Family("row space", begin, stages, hope, needed=1)


def _general_seconds(r: int, k: int, n: int, moved: float = 1.0) -> float:
    """A round in the general form, where this share of the entries is moved."""
    return work_of(2.0 * r * n * (min(r, n) + k), 8.0 * moved * r * n)


def _in_general(race: Race, name: str, L: Matrix, schedule: Schedule) -> Steps:
    """Stages of a descent in the general form, each with its error and work."""
    k, n = race.W.shape
    last = len(schedule)
    for found in general_stages(race.W, L, schedule=schedule, clock=race.clock):
        race.offer(name, found.error, partial(_same, found.pair), found.iterations)
        race.clock.check()
        # Before the end, how good a strategy will be shows in its error while it is relaxed.
        last -= 1
        per_round = _general_seconds(len(L), k, n, found.moved)
        yield found.relaxed if last else found.error, per_round * found.iterations


def _moved(L: Matrix) -> float:
    """The share of its entries that a descent from L moves: a gradient opens about as many."""
    return min(1.0, 2.0 * np.count_nonzero(L) / L.size)


def _same(pair: ExactPair) -> ExactPair:
    return pair


POLISH = ((1e-2, 100), (1e-4, 100))
"""The schedule of a strategy that is good already."""

FROM_START = (1.0, 1.0, 1.07, 1.01, 1.001, 1.0)
FROM_RANDOM = (1.0, 0.15, 1.03, 1.01, 1.001, 1.0)
"""By which factor the stages of a descent in the general form change its relaxed error."""


def _general_stages(cost: float, ratios: Sequence[float]) -> list[Stage]:
    """What to expect of each stage of a descent in the general form, by the cost of a round."""
    rounds = (60, 100, 60, 40, 20, 12)
    return [Stage(cost * count, ratio) for count, ratio in zip(rounds, ratios, strict=True)]


def from_start(race: Race, name: str, L: Matrix, error: float) -> Family:
    """One descent in the general form from a strategy of a known error."""
    k, n = race.W.shape
    stages = _general_stages(_general_seconds(len(L), k, n, _moved(L)), FROM_START)
    name = f"{name}, general form"

    def begin(number: int) -> Steps:
        del number
        return _in_general(race, name, L, SCHEDULE)

    def hope() -> float:
        if error < LEADING * race.error:
            return 0.3
        return 0.1 if error < FAR * race.error else 0.0

    return Family(name, begin, stages, hope, limit=1)


def _random_general(race: Race, seed: int, share: float) -> Family:
    W = race.W
    k, n = W.shape
    rng = np.random.default_rng([seed, 4])

    def begin(number: int) -> Steps:
        r = int(np.ceil(GENERAL_WIDTHS[number % len(GENERAL_WIDTHS)] * k))
        name = f"general form, r = {r}"
        return _in_general(race, name, rotation(W, r, rng) @ W, SCHEDULE)

    stages = _general_stages(_general_seconds(2 * k, k, n), FROM_RANDOM)
    hope = share * 0.05 / max(1.0, sum(stage.cost for stage in stages))
    return Family("general form", begin, stages, hope=lambda: hope)
