"""The kinds of descent that race for the best strategy of a workload.

See ``docs/explanation/best.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil

import numpy as np

from lrm.clock import UNLIMITED, Clock, work_of
from lrm.errors import StopSolver
from lrm.planning.solvers import settings
from lrm.planning.solvers.descents import general_stages, optimise_row_space, rotation
from lrm.planning.solvers.exact import checked_pair
from lrm.planning.solvers.extra_rows import (
    ExtraRows,
    assemble,
    factor_gram,
    optimise_extra_rows,
    round_work,
)
from lrm.planning.solvers.gram_operators import GramOperator
from lrm.planning.solvers.race import DescentKind, Race, Stage
from lrm.queries.maps.linear import Floats

Steps = Iterator[tuple[float, float]]
Schedule = Sequence[tuple[float, int]]


def search(  # noqa: PLR0913 - each is a choice of the caller
    W: Floats,
    *,
    threshold: float,
    patience: float = np.inf,
    seed: int = 0,
    clock: Clock = UNLIMITED,
    starts: Mapping[str, Floats] | None = None,
    gram: GramOperator | None = None,
    descent_seconds: float = np.inf,
) -> Race:
    """Search for the strategy L of least error ``‖W·L⁺‖²`` with columns in the L1 ball.

    W (k x n) should be reduced: k is its rank and no two columns are equal up to sign. The identity
    and every one of ``starts`` (name → r x n, any scale) is a candidate as it is, so the result is
    never worse than any of them. When the clock ends, the best so far is returned. The search ends
    when a second of work is expected to gain less than ``threshold``, which grows with the square
    of the work after ``patience`` seconds. ``gram`` is ``WᵀW`` as an operator, which extra rows are
    moved with where it takes less work than W itself. ``descent_seconds`` is the counted work that
    a descent from a start may take at most.

    Examples
    --------
    >>> bool(search(np.tri(16), threshold=0.1).error < 0.9 * np.sum(np.tri(16)))
    True
    """
    race, starts = Race(W, clock), starts or {}
    by_factor = factor_gram(race.W)
    if gram is None or gram.work(settings.MOST_EXTRA_ROWS) >= by_factor.work(
        settings.MOST_EXTRA_ROWS
    ):
        gram = by_factor
    # The starts are known even to a search that is stopped at once.
    errors = {name: race.offer_strategy(name, L) for name, L in starts.items()}
    known = [
        from_start(race, name, L, descent_seconds)
        for name, L in starts.items()
        if errors[name] < np.inf
    ]
    race.run([*known, *families(race, gram, seed)], threshold, patience)
    return race


def families(race: Race, gram: GramOperator, seed: int) -> list[DescentKind]:
    """Every kind of descent from random starts that can win on the workload of a race."""
    k, n = race.W.shape
    candidates = [_few_rows(race, gram, seed)]
    # Merged cells up to which such strategies are tried at full rank as well, in milliseconds: 2 %
    # less error of 29 rectangles over 4 merged cells (python -m benchmarks golden).
    if k < n or n <= 16:
        first = min(0.3, 0.1 * n / (k * k)) if n > 0.2 * k * k else 0.0
        in_row_space: list[DescentKind] = []
        for width in settings.ROW_SPACE_WIDTHS:
            in_row_space.append(_row_space(race, seed, width, first, in_row_space))
        candidates += in_row_space
    # Such starts are tried up to this rank, as a share of the cells: on 65 counts of overlapping
    # age groups (python -m benchmarks tables) the error is 497 with them and 572 without.
    if k <= 0.45 * n:
        candidates.append(_random_general(race, seed))
    return candidates


def _offer_rows(race: Race, name: str, extra_rows: ExtraRows[Floats]) -> None:
    rows = extra_rows.rows
    race.offer(
        f"{name}, p = {len(rows)}",
        extra_rows.error,
        lambda: checked_pair(race.W, *assemble(race.W, rows)),
        extra_rows.iterations,
    )
    race.clock.check()


def _few_rows(race: Race, gram: GramOperator, seed: int) -> DescentKind:
    """Extra rows next to an identity, from random ones: roughly, to the end, and without it."""
    W = race.W
    k, n = W.shape
    rng = np.random.default_rng([seed, 1])
    shares, most = settings.EXTRA_ROW_SHARES, settings.MOST_EXTRA_ROWS
    counts = [min(n, max(4, min(most, min(n, 2 * k) // share))) for share in shares]
    in_turn = itertools.cycle(counts)

    def begin() -> Steps:
        # Large enough not to die at once next to an identity.
        rows = 0.2 * rng.standard_normal((next(in_turn), n))
        per_round = round_work(gram, len(rows))
        smoothing: tuple[float, ...] = settings.EXTRA_ROWS_SMOOTHING
        for tolerance in (1e-5, 1e-7):
            solution = optimise_extra_rows(
                W,
                rows,
                gram=gram,
                smoothing=smoothing,
                tolerance=tolerance,
                clock=race.clock,
                stage="few rows",
            )
            _offer_rows(race, "few rows", solution)
            rows, smoothing = solution.rows, ()
            yield solution.error, per_round * solution.iterations
        yield from _in_general(race, "few rows", assemble(W, rows)[1].toarray(), settings.POLISH)

    cost = 200 * round_work(gram, counts[0])
    polish = 50 * _general_seconds(n + counts[0], k, n)
    stages = [Stage(cost), Stage(cost, 0.9997), Stage(polish, 0.9999), Stage(polish / 2, 0.9999)]
    return DescentKind("few rows", begin, stages, hope=lambda: 1.0, needed=1)


def _row_space_seconds(r: int, k: int, n: int) -> float:
    return work_of(2.0 * r * k * n + r * k * k, 1.0 * r * n)


def _row_space(
    race: Race, seed: int, width: float, first: float, other_families: Sequence[DescentKind]
) -> DescentKind:
    """Combinations of the rows of W: ahead where there are far more cells than its rank squared.

    ``first`` is what to hope for before any has been seen. Where
    ``other_families``, those of other widths, end far above the best, so will this one.
    """
    W = race.W
    k, n = W.shape
    r = min(n, int(np.ceil(width * k)))
    rng = np.random.default_rng([seed, 3, r])

    def begin() -> Steps:
        X = rotation(W, r, rng)
        name = f"row space, r = {r}"
        for stages, tolerance in (
            (settings.ROW_SPACE_STAGES[:2], 1e-5),
            (settings.ROW_SPACE_STAGES[2:], 1e-6),
        ):
            mixed = optimise_row_space(
                W, X, stages=stages, tolerance=tolerance, max_rounds=300, clock=race.clock
            )
            X = mixed.mixing
            if mixed.error < race.error:
                race.offer_strategy(name, X @ W, mixed.iterations)
            race.clock.check()
            yield mixed.error, _row_space_seconds(r, k, n) * mixed.iterations
        yield from _in_general(race, name, X @ W, settings.GENERAL_SCHEDULE[-1:])

    cost = _row_space_seconds(r, k, n)
    stages = (
        Stage(250 * cost),
        Stage(100 * cost, 0.97),
        Stage(50 * _general_seconds(k, k, n), 0.9995),
    )

    def hope() -> float:
        ends = [run.expected() for family in other_families for run in family.runs]
        return first if not ends or min(ends) < 1.25 * race.error else 0.0

    return DescentKind("row space", begin, stages, hope, needed=1)


def _general_seconds(r: int, k: int, n: int, moved: float = 1.0) -> float:
    """A round in the general form, where this share of the entries is moved."""
    return work_of(2.0 * r * n * (min(r, n) + k), 8.0 * moved * r * n)


def _in_general(race: Race, name: str, L: Floats, schedule: Schedule) -> Steps:
    """Stages of a descent in the general form, each with its error and work."""
    k, n = race.W.shape
    last = len(schedule)
    for stage_result in general_stages(race.W, L, schedule=schedule, clock=race.clock):
        race.offer_pair(name, stage_result.pair, stage_result.iterations)
        race.clock.check()
        # Before the end, how good a strategy will be shows in its error while it is relaxed.
        last -= 1
        per_round = _general_seconds(len(L), k, n, stage_result.moved)
        yield (
            stage_result.relaxed if last else stage_result.error,
            per_round * stage_result.iterations,
        )


def _general_stages(cost: float, ratios: Sequence[float]) -> list[Stage]:
    """Stages of a descent whose rounds take ``cost``, and how each changes its relaxed error."""
    pairs = zip(settings.GENERAL_ROUNDS, ratios, strict=True)
    return [Stage(cost * rounds, ratio) for rounds, ratio in pairs]


def polish(race: Race, name: str, L: Floats) -> None:
    """Descend a little from a strategy that is good already."""
    with suppress(StopSolver):
        for _, work in _in_general(race, name, L, settings.POLISH):
            race.clock.spend(work)


def from_start(race: Race, name: str, L: Floats, seconds: float = np.inf) -> DescentKind:
    """One descent in the general form from a strategy, of at most so much counted work.

    Where all of its rounds would take more, each stage has fewer of them: one that ends before its
    last stage has gained nothing.
    """
    k, n = race.W.shape
    # A gradient opens about as many entries as are not 0.
    cost = _general_seconds(len(L), k, n, min(1.0, 2.0 * np.count_nonzero(L) / L.size))
    stages = _general_stages(cost, (1.0, 1.0, 1.07, 1.01, 1.001, 1.0))
    name = f"{name}, general form"
    schedule = settings.GENERAL_SCHEDULE
    share = min(1.0, seconds / (cost * sum(rounds for _, rounds in schedule)))
    shortened = [(relaxation, ceil(share * rounds)) for relaxation, rounds in schedule]

    def begin() -> Steps:
        return _in_general(race, name, L, shortened)

    return DescentKind(name, begin, stages, hope=lambda: 0.3, limit=1)


def _random_general(race: Race, seed: int) -> DescentKind:
    """Descents in the general form from random combinations of the queries."""
    W = race.W
    k, n = W.shape
    rng = np.random.default_rng([seed, 4])

    def begin() -> Steps:
        start = rotation(W, 2 * k, rng) @ W
        return _in_general(race, f"general form, r = {2 * k}", start, settings.GENERAL_SCHEDULE)

    cost = _general_seconds(2 * k, k, n)
    stages = _general_stages(cost, (1.0, 0.15, 1.03, 1.01, 1.001, 1.0))
    gain = 0.05 / max(1.0, sum(stage.cost for stage in stages))
    return DescentKind("general form", begin, stages, hope=lambda: gain)
