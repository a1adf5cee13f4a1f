"""Strategies in the row space: gradient, exactness, never worse, and scale."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from lrm.clock import Clock
from lrm.errors import StopSolver
from lrm.planning.solvers import descents
from lrm.planning.solvers.descents import optimise_row_space, rotation, row_space_error
from lrm.planning.solvers.exact import factorise

W = np.random.default_rng(0).standard_normal((4, 150))


def mixing(rows, seed=0):
    return rotation(W, rows, np.random.default_rng(seed))


def test_gradient_matches_differences():
    X = mixing(6)
    d = np.random.default_rng(1).standard_normal(X.shape)
    error = partial(descents._log_error, W=W, power=30.0, width=0.1)
    slope = (error(X + 1e-6 * d)[0] - error(X - 1e-6 * d)[0]) / 2e-6
    assert np.vdot(error(X)[1], d) == pytest.approx(slope, rel=1e-5)


def test_rounded_error_tends_to_the_error():
    X = mixing(4)
    rounded = descents._log_error(X, W=W, power=1e5, width=1e-9)[0]
    assert np.exp(rounded) == pytest.approx(row_space_error(W, X), rel=1e-3)


@pytest.mark.parametrize("rows", [4, 6])
def test_result_beats_its_start_and_noise_on_data_and_is_exact(rows):
    found = optimise_row_space(W, mixing(rows))
    assert found.error < 0.8 * row_space_error(W, mixing(rows))
    assert found.error < np.sum(W**2)
    assert factorise(W, found.mixing @ W).error == pytest.approx(found.error)


def test_a_singular_mixing_has_infinite_error():
    assert row_space_error(W, np.zeros((4, 4))) == np.inf


def test_scale_changes_nothing_but_the_error():
    one = optimise_row_space(W, mixing(4))
    # A power of two, so that not even rounding differs.
    other = optimise_row_space(2.0**20 * W, mixing(4))
    assert other.error == pytest.approx(2.0**40 * one.error)


def test_an_interrupted_run_returns_the_best_so_far():
    def stop(step):
        if step.iteration == 40:
            raise StopSolver

    clock = Clock(on_step=stop)
    found = optimise_row_space(W, mixing(4), clock=clock)
    assert clock.interrupted
    assert found.error <= row_space_error(W, mixing(4))
