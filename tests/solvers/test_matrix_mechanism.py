"""Appendix B: the right gradient, a real strategy, and agreement with the exact solver."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.clock import Clock
from lrm.errors import StopSolver, UsageError
from lrm.solvers.gaussian import optimise_gaussian
from lrm.solvers.matrix_mechanism import _Descent, optimise_gram, smoothed_maximum


def _ranges(m, n, seed):
    ends = np.sort(np.random.default_rng(seed).integers(0, n, size=(m, 2)), axis=1)
    cells = np.arange(n)
    return ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(float)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.floats(1e-3, 10))
def test_the_smoothed_maximum_is_just_above_the_maximum(values, mu):
    v = np.array(values)
    value, slopes = smoothed_maximum(v, mu)
    rounding = 1e-12 * (1 + np.abs(v).max())
    assert v.max() - rounding <= value <= v.max() + mu * np.log(len(v)) + rounding
    assert slopes.sum() == pytest.approx(1.0)
    assert np.all(slopes >= 0)


def test_gradients_agree_with_finite_differences():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((4, 6))
    descent = _Descent(W.T @ W / np.vdot(W, W))
    descent.start(0.1)
    M = np.eye(6) + 0.1 * np.cov(rng.standard_normal((6, 20)))
    value, gradient = descent._evaluate(M)
    for _ in range(5):
        E = rng.standard_normal((6, 6))
        E += E.T
        ahead, behind = descent._evaluate(M + 1e-6 * E)[0], descent._evaluate(M - 1e-6 * E)[0]
        assert (ahead - behind) / 2e-6 == pytest.approx(np.vdot(gradient, E), rel=1e-6, abs=1e-8)
    assert np.isfinite(value)


@pytest.mark.parametrize(
    "W",
    [
        np.tril(np.ones((32, 32))),
        _ranges(20, 30, 0),
        np.random.default_rng(1).standard_normal((40, 12)),
        np.c_[np.zeros((3, 2)), np.eye(3), np.eye(3)],
        np.diag(10.0 ** np.arange(-6, 7)),
        np.array([[3.0]]),
        np.ones((1, 5)),
    ],
    ids=["prefix", "ranges", "tall", "repeated", "scaled", "one", "total"],
)
def test_the_strategy_answers_the_workload_at_the_stated_cost(W):
    found = optimise_gram(W)
    A = found.strategy
    B = np.linalg.solve(A, W.T).T
    assert np.allclose(A, A.T)
    assert np.linalg.norm(A, axis=0).max() == pytest.approx(1.0)
    assert np.linalg.norm(W - B @ A) <= 1e-9 * np.linalg.norm(W)
    assert np.vdot(B, B) == pytest.approx(found.objective, rel=1e-5)
    assert found.objective <= np.vdot(W, W) * (1 + 1e-9)
    assert found.objective >= optimise_gaussian(W).lower * (1 - 1e-9)


@pytest.mark.parametrize("W", [np.tril(np.ones((32, 32))), _ranges(20, 30, 0)[:, ::3]])
def test_two_solvers_of_the_program_agree(W):
    assert optimise_gram(W).objective <= 1.05 * optimise_gaussian(W).lower


@pytest.mark.parametrize("stop", [StopSolver])
def test_an_interrupt_returns_the_best_so_far(stop):
    W, errors = np.tril(np.ones((16, 16))), []

    def report(step):
        errors.append(step.error)
        if step.iteration == 12:
            raise stop

    clock = Clock(on_step=report)
    found = optimise_gram(W, clock=clock)
    assert clock.interrupted
    assert not found.converged
    assert found.rounds == len(errors) == 12
    assert errors == sorted(errors, reverse=True)
    assert found.objective == errors[-1]


def test_scale_does_not_matter():
    W = _ranges(10, 12, 3)
    one, other = optimise_gram(W), optimise_gram(W * 2.0**40)
    assert np.array_equal(one.strategy, other.strategy)
    assert other.objective == one.objective * 2.0**80


def test_zeros_and_nonsense():
    assert optimise_gram(np.zeros((2, 3))).objective == 0
    with pytest.raises(UsageError):
        optimise_gram(np.full((2, 2), np.nan))
