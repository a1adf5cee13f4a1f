"""Algorithm 1: what it promises of its result, its record and its interruptions."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.clock import Clock
from lrm.errors import StopSolver, UsageError
from lrm.planning.solvers.exact import make_exact
from lrm.planning.solvers.lagrangian import Schedule, best_reconstruction, decompose

PREFIX = np.tril(np.ones((16, 16)))


def _run(W, rank, *, seed=0, **options):
    return decompose(W, rank, rng=np.random.default_rng(seed), **options)


def _discrete(m, n, seed):
    return np.where(np.random.default_rng(seed).random((m, n)) < 0.02, 1.0, -1.0)


def _all_ranges(n):
    return np.array(
        [(np.arange(n) >= a) & (np.arange(n) <= b) for a in range(n) for b in range(a, n)]
    )


@pytest.mark.parametrize(
    ("workload", "most"),
    [
        (np.tril(np.ones((64, 64))), 1461),
        (np.unique(_discrete(64, 128, 1000), axis=1), 2644),
        (_all_ranges(64).astype(float), 52913),
    ],
    ids=["prefix", "WDiscrete", "all ranges"],
)
def test_the_published_schedule_reaches_the_known_errors(workload, most):
    k = np.linalg.matrix_rank(workload)
    found = _run(workload, math.ceil(1.2 * k))
    assert found.converged
    assert make_exact(workload, found.B, found.L).error <= most


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 8),
    n=st.integers(1, 8),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_columns_stay_in_their_balls_and_the_residual_is_measured(seed, m, n, scale):
    rng = np.random.default_rng(seed)
    W = rng.integers(-2, 3, (m, n)) * scale * 10.0 ** rng.integers(-2, 3, (m, 1))
    k = max(1, np.linalg.matrix_rank(W))
    found = _run(W, k + 1, seed=seed, schedule=Schedule(max_beta=2.0**6))
    assert found.B.shape == (m, k + 1)
    assert found.L.shape == (k + 1, n)
    assert np.abs(found.L).sum(axis=0).max() <= 1 + 1e-9
    assert found.residual == pytest.approx(np.linalg.norm(W - found.B @ found.L))
    assert not found.converged or found.residual <= 0.01


def test_gamma_is_an_absolute_residual_on_the_workload_as_given():
    for scale, gamma in ((1.0, 1e-4), (1e4, 1.0)):
        found = _run(PREFIX[:8, :8] * scale, 10, gamma=gamma, schedule=Schedule(slack=None))
        assert found.converged
        assert found.residual <= gamma


def test_without_slack_the_run_stops_at_gamma():
    loose = _run(PREFIX, 20, gamma=5.0, schedule=Schedule(slack=None))
    strict = _run(PREFIX, 20, gamma=5.0)
    assert len(loose.rounds) < len(strict.rounds)
    assert strict.rounds[-1].error <= 1.02**2 * strict.rounds[-1].objective * (1 + 1e-12)


def test_scaling_the_workload_scales_the_result():
    """With a power of two not even rounding differs, since beta needs no unit."""
    one, other = _run(PREFIX[:6], 8), _run(PREFIX[:6] * 1024, 8, gamma=0.01 * 1024)
    assert np.array_equal(one.L, other.L)
    assert np.array_equal(one.B * 1024, other.B)


def test_equal_seeds_give_equal_results_and_others_do_not():
    small = PREFIX[:6, :6]
    one, same, other = _run(small, 8, seed=1), _run(small, 8, seed=1), _run(small, 8, seed=2)
    assert np.array_equal(one.L, same.L)
    assert not np.array_equal(one.L, other.L)


def test_the_penalty_follows_the_schedule():
    found = _run(PREFIX, 20, schedule=Schedule(beta_growth=3.0, growth_every=4))
    assert [r.beta for r in found.rounds] == [3.0 ** (i // 4) for i in range(len(found.rounds))]
    assert all(r.evaluations >= 50 for r in found.rounds)
    assert found.rounds[-1].residual == pytest.approx(found.residual, rel=1e-6)


def test_the_reconstruction_is_stationary():
    rng = np.random.default_rng(0)
    L, pulled, beta = rng.standard_normal((5, 7)), rng.standard_normal((4, 7)), 3.0
    B = best_reconstruction(L, pulled, beta)
    assert np.allclose(B + beta * B @ L @ L.T - pulled @ L.T, 0, atol=1e-12)


@pytest.mark.parametrize("rounds", [1, 49])
@pytest.mark.parametrize("stop", [StopSolver])
def test_an_interrupt_returns_the_best_so_far(stop, rounds):
    errors = []

    def report(step):
        errors.append(step.error)
        if step.iteration == rounds:
            raise stop

    clock = Clock(on_step=report)
    found = _run(PREFIX, 20, gamma=1e-9, clock=clock)
    assert clock.interrupted
    assert not found.converged
    assert len(found.rounds) == len(errors) == rounds
    assert all(later <= earlier for earlier, later in pairwise(errors))
    assert min(r.error for r in found.rounds) >= errors[-1] * (1 - 1e-12)
    # Every reported error is that of a strategy which can be had.
    assert make_exact(PREFIX, found.B, found.L).error <= errors[-1] * (1 + 1e-6)


def test_too_low_a_rank_ends_with_the_least_residual_seen():
    found = _run(PREFIX, 4, schedule=Schedule(max_beta=16.0))
    assert not found.converged
    assert found.residual == pytest.approx(min(r.residual for r in found.rounds), rel=1e-6)


def test_a_workload_of_zeros_needs_nothing():
    found = _run(np.zeros((2, 3)), 2)
    assert found.converged
    assert not found.B.any()
    assert found.B.shape == (2, 2)


def test_results_are_read_only():
    found = _run(np.eye(2), 2)
    with pytest.raises(ValueError, match="read-only"):
        found.L[0, 0] = 1.0


@pytest.mark.parametrize(
    ("W", "rank", "gamma"),
    [
        (np.ones((2, 0)), 1, 0.1),
        (np.full((2, 2), np.nan), 1, 0.1),
        (PREFIX, 0, 0.1),
        (PREFIX, 3, 0.0),
    ],
)
def test_senseless_requests_are_refused(W, rank, gamma):
    with pytest.raises(UsageError):
        _run(W, rank, gamma=gamma)


@pytest.mark.parametrize("bad", [{"beta_growth": 1.0}, {"growth_every": 0}, {"alternations": 0}])
def test_senseless_schedules_are_refused(bad):
    with pytest.raises(UsageError):
        Schedule(**bad)
