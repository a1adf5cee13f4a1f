"""Descents end at stationary points, and stop when they are asked to."""

from __future__ import annotations

import numpy as np
import pytest

from lrm.errors import StopSolver
from lrm.planning.solvers.quasi_newton import descend, descend_orthantwise

A = np.diag(np.logspace(0, 3, 30)) + 0.1
TARGET = np.random.default_rng(5).standard_normal(30)


def quadratic(x):
    return float(0.5 * (x - TARGET) @ A @ (x - TARGET)), A @ (x - TARGET)


def lasso(x):
    value, gradient = quadratic(x)
    return value + float(np.abs(x).sum()), gradient, np.ones_like(x)


def quiet(iteration, value):
    pass


def test_a_smooth_bowl_is_descended_to_its_bottom():
    run = descend(quadratic, np.zeros(30), on_round=quiet, tolerance=1e-14)
    assert run.converged
    np.testing.assert_allclose(run.point, TARGET, atol=1e-5)


def test_lasso_satisfies_its_optimality_condition():
    run = descend_orthantwise(lasso, np.zeros(30), on_round=quiet, tolerance=1e-14)
    gradient = A @ (run.point - TARGET)
    alive = run.point != 0
    assert run.converged
    assert 0 < alive.sum() < 30
    np.testing.assert_allclose(gradient[alive], -np.sign(run.point[alive]), atol=1e-4)
    assert np.all(np.abs(gradient[~alive]) <= 1 + 1e-4)


def test_nonnegative_descent_stays_so_and_is_optimal():
    run = descend_orthantwise(lasso, np.ones(30), on_round=quiet, tolerance=1e-14, nonnegative=True)
    ascent = A @ (run.point - TARGET) + 1
    assert np.all(run.point >= 0)
    assert np.all(ascent >= -1e-4)
    assert np.all(np.abs(ascent[run.point > 0]) <= 1e-4)


@pytest.mark.parametrize("reason", [StopSolver])
def test_an_interrupted_descent_returns_what_it_has(reason):
    def stop(iteration, value):
        if iteration == 3:
            raise reason

    for loop, function in ((descend, quadratic), (descend_orthantwise, lasso)):
        run = loop(function, np.zeros(30), on_round=stop)
        assert run.interrupted
        assert not run.converged
        assert run.value < function(np.zeros(30))[0]


def test_the_cap_on_rounds_is_no_convergence():
    run = descend(quadratic, np.zeros(30), on_round=quiet, tolerance=0.0, max_rounds=3)
    assert (run.rounds, run.converged, run.interrupted) == (3, False, False)
