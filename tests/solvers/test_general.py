"""The general form: gradient, closed form of B, feasibility, and batches of few rows."""

import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.clock import Clock
from lrm.domain import Categories, Domain, Integers
from lrm.errors import ConvergenceError, StopSolver
from lrm.planning.solvers.descents import general_stages, penalised_error
from lrm.planning.solvers.exact import factorise
from lrm.queries.builders import marginals
from lrm.queries.workload import families

INTRO = np.array([[0.0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]])
BETA = 100.0


def last_of(W, strategy, **options):
    """The result of all stages."""
    *_, last = general_stages(W, strategy, **options)
    return last


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("rows", [3, 9])
def test_gradient_matches_differences(rows):
    W, L, d = random(4, 6), random(rows, 6, seed=1), random(rows, 6, seed=2)
    value = lambda M: penalised_error(W, M, BETA)[0]  # noqa: E731
    slope = (value(L + 1e-6 * d) - value(L - 1e-6 * d)) / 2e-6
    assert np.vdot(penalised_error(W, L, BETA)[1], d) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("rows", [3, 9])
def test_reconstruction_is_the_best_one(rows):
    W, L = random(4, 6), random(rows, 6, seed=1)

    def cost(B):
        return np.sum(B**2) + BETA * np.sum((W - B @ L) ** 2)

    value, _, B = penalised_error(W, L, BETA)
    assert cost(B) == pytest.approx(value)
    assert all(cost(B + 1e-3 * random(4, rows, seed=s)) > value for s in range(5))


def test_intro_example_reaches_nineteen():
    assert last_of(INTRO, np.eye(4)).error == pytest.approx(19.0, abs=2e-3)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 3), st.floats(-6, 6))
def test_result_is_exact_feasible_and_no_worse_than_its_start(k, n, extra, power):
    W = 10.0**power * random(k, n, seed=k)
    start = random(n + extra, n, seed=n)
    found = last_of(W, start, schedule=((1e-2, 30), (1e-4, 30)))
    L = found.pair.strategy
    assert found.error <= factorise(W, start).error * (1 + 1e-9)
    assert abs(L).sum(axis=0).max() <= 1 + 1e-9
    np.testing.assert_allclose(found.pair.reconstruction @ L, W, atol=1e-8 * 10.0**power)


def test_a_start_that_does_not_answer_the_workload_is_refused():
    with pytest.raises(ConvergenceError, match="residual"):
        last_of(INTRO, np.ones((1, 4)))


def test_an_interrupted_polish_returns_the_start_or_better():
    def stop(step):
        if step.iteration == 5:
            raise StopSolver

    clock = Clock(on_step=stop)
    found = last_of(INTRO, np.eye(4), clock=clock)
    assert clock.interrupted
    assert found.error <= 20


def marginal_batch():
    domain = Domain([Categories("state", list("ABCD")), Integers("age", 0, 9)])
    return marginals(domain, 1)


def test_marginals_are_measured_with_few_rows():
    plan = lrm.plan(marginal_batch())
    assert plan.measurement_count < marginal_batch().shape[1]
    assert plan.strategy_error < 0.9 * lrm.plan(marginal_batch(), "noise-on-data").strategy_error


@pytest.mark.usefixtures("plain_interrupts")
def test_ctrl_c_ends_the_whole_search_with_the_best_so_far():
    calls = []

    def once(step):
        calls.append(step)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        lrm.plan(marginal_batch(), on_step=once)
    plan = caught.value.plan
    assert plan.details["interrupted"]
    assert len(calls) == 3
    assert plan.strategy_error <= lrm.plan(marginal_batch(), "noise-on-data").strategy_error


def test_stop_solver_too():
    def stop(step):
        raise StopSolver

    batch = families.wrange(8, 30, seed=0)
    plan = lrm.plan(batch, on_step=stop)
    for baseline in ("noise-on-data", "noise-on-results", "wavelet", "hierarchical"):
        assert plan.strategy_error <= lrm.plan(batch, baseline).strategy_error
