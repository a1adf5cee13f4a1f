"""The search: never worse, exact, repeatable, and willing to stop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.clock import UNLIMITED, Clock
from lrm.errors import StopSolver
from lrm.planning.solvers.exact import factorise
from lrm.planning.solvers.families import from_start, search
from lrm.planning.solvers.race import DescentKind, Race, Stage
from lrm.planning.strategies.baselines import haar_tree, total_tree

INTRO = np.array([[0.0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]])

ROUNDING = 1e-8
"""A smaller relative gain does not count."""


QUICK, NORMAL = 0.05, 1e-4


def find(W, threshold=QUICK, **options):
    return search(W, threshold=threshold, **options)


def check(W, found):
    """W = BL, sensitivity 1, and the error is that of the pair."""
    pair, size = found.best(), np.linalg.norm(W)
    assert np.linalg.norm(pair.reconstruction @ pair.strategy - W) <= 1e-9 * size
    assert abs(pair.strategy).sum(axis=0).max(initial=0) <= 1 + 1e-12
    assert found.error == pytest.approx(np.sum(pair.reconstruction**2))
    assert found.error <= np.sum(W**2) * (1 + ROUNDING)
    assert found.error <= min(c.error for c in found.candidates) * (1 + ROUNDING)
    assert found.winner in {c.name for c in found.candidates}


def test_intro_example_is_solved():
    found = find(INTRO, NORMAL)
    check(INTRO, found)
    assert found.error == pytest.approx(19.0, abs=2e-3)


def test_prefixes_are_no_worse_than_the_best_known():
    found = find(np.tri(64), NORMAL)
    check(np.tri(64), found)
    assert found.error <= 906.39 * 1.0005


def test_the_low_rank_regime_is_found():
    W = np.random.default_rng(3).standard_normal((4, 200))
    found = find(W)
    check(W, found)
    assert found.error < 0.35 * np.sum(W**2)
    assert found.best().strategy.shape[0] < 20


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 7), st.integers(1, 9), st.integers(0, 99), st.booleans())
def test_any_small_workload_is_solved_whatever_its_scale(k, n, seed, scaled):
    rng = np.random.default_rng(seed)
    W = rng.integers(-1, 2, (k, n)).astype(float)
    if scaled:
        W *= 10.0 ** rng.uniform(-6, 6, (k, 1))
    check(W, find(W))


def test_never_worse_than_a_given_start():
    W = np.tri(40)
    starts = {
        "tree": total_tree(40, 2).dense(),
        "wavelet": haar_tree(40).dense(),
        "own rows": np.tri(40),
    }
    found = find(W, starts={**starts, "total": np.ones((1, 40))})
    check(W, found)
    for start in starts.values():
        assert found.error <= factorise(W, start).error * (1 + 1e-9)


def test_a_descent_of_few_seconds_goes_through_all_stages_in_fewer_rounds():
    """What ends before its last stage has gained nothing: each stage is shortened."""
    race = Race(np.tri(40), Clock())
    start = race.offer_strategy("own rows", np.tri(40))
    usual = from_start(race, "own rows", np.tri(40))
    expected = sum(stage.cost for stage in usual.stages)
    kind = from_start(race, "own rows", np.tri(40), expected / 4)
    before = len(race.candidates)
    work = sum(work for _, work in kind.begin())
    rounds = [candidate.iterations for candidate in race.candidates[before:]]
    assert len(rounds) == len(kind.stages)
    assert sum(rounds) <= 292 / 4 + len(rounds)
    assert work <= 2 * expected / 4
    assert race.error < 0.9 * start


def test_a_start_that_cannot_be_beaten_wins():
    W = np.ones((1, 30))
    found = find(W, starts={"own rows": W})
    assert found.error == pytest.approx(1.0)


def test_a_search_that_is_stopped_at_once_still_knows_its_starts():
    def stop(step):
        raise StopSolver

    W = np.ones((1, 30))
    clock = Clock(on_step=stop)
    found = find(W, starts={"own rows": W}, clock=clock)
    assert clock.interrupted
    assert found.error == pytest.approx(1.0)


def test_same_seed_same_result():
    W = np.tri(30)
    one, two = find(W, seed=7), find(W, seed=7)
    assert one.error == two.error
    assert (one.best().strategy != two.best().strategy).nnz == 0
    assert one.candidates == two.candidates


@pytest.mark.parametrize("after", [1, 2, 30, 200])
def test_a_search_can_be_stopped_at_any_time(after):
    calls = []

    def stop(step):
        calls.append(step.error)
        if len(calls) >= after:
            raise StopSolver

    W = np.tri(30)
    clock = Clock(on_step=stop)
    found = find(W, NORMAL, clock=clock)
    check(W, found)
    assert clock.interrupted
    assert len(calls) == after


def test_reported_errors_never_rise():
    errors = []
    found = find(np.tri(30), NORMAL, clock=Clock(on_step=lambda step: errors.append(step.error)))
    # A descent may report a gain that is too small to count.
    assert np.all(np.diff(errors) <= 2 * ROUNDING * errors[0])
    assert errors[-1] >= found.error * (1 - 2 * ROUNDING)


def test_rank_deficient_and_zero_workloads_do_no_harm():
    check(np.ones((3, 5)), find(np.ones((3, 5))))
    assert find(np.zeros((2, 3))).error == 0.0


def test_descents_that_find_nothing_are_not_repeated():
    """One of three descents succeeds: after that the family is left."""
    race, begun = Race(np.eye(3), UNLIMITED), []

    def begin():
        begun.append(len(begun))
        yield (9.0 if begun[-1] == 1 else np.inf), 0.0

    family = DescentKind("fails", begin, [Stage(0.1)], hope=lambda: 1.0)
    race.run([family], 1e-9)
    assert len(begun) <= 3
