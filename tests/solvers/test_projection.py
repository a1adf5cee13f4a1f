"""The general form: gradient, closed form of B, feasibility, and the intro example."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.errors import ConvergenceError, StopSolver
from lrm.solvers.exact import strategy_error
from lrm.solvers.projection import optimise_projection, penalised_error

INTRO = np.array([[0.0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]])
BETA = 100.0


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
    assert optimise_projection(INTRO, np.eye(4)).error == pytest.approx(19.0, abs=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 3), st.floats(-6, 6))
def test_result_is_exact_feasible_and_no_worse_than_its_start(k, n, extra, power):
    W = 10.0**power * random(k, n, seed=k)
    start = random(n + extra, n, seed=n)
    found = optimise_projection(W, start, penalties=(1e4, 1e6), max_rounds=100)
    L = found.pair.strategy
    assert found.error <= strategy_error(W, start) * (1 + 1e-9)
    assert abs(L).sum(axis=0).max() <= 1 + 1e-9
    np.testing.assert_allclose(found.pair.reconstruction @ L, W, atol=1e-8 * 10.0**power)


def test_a_start_that_does_not_answer_the_workload_is_refused():
    with pytest.raises(ConvergenceError, match="residual"):
        optimise_projection(INTRO, np.ones((1, 4)))


def test_an_interrupted_polish_returns_the_start_or_better():
    def stop(step):
        if step.iteration == 60:
            raise StopSolver

    found = optimise_projection(INTRO, np.eye(4), on_step=stop)
    assert found.interrupted
    assert found.error <= 20
