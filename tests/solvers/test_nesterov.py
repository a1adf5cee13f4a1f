"""Algorithm 2: feasible, optimal, accelerated."""

import numpy as np
import pytest

from lrm.planning.solvers.lagrangian import Iterate, minimise_over_l1_balls, project_columns_l1


def _problem(seed, r=12, n=9, queries=8):
    rng = np.random.default_rng(seed)
    B, W = rng.standard_normal((queries, r)), 3 * rng.standard_normal((queries, n))
    return B.T @ B, B.T @ W, rng


def _value(gram, target, L):
    return 0.5 * np.vdot(L, gram @ L) - np.vdot(target, L)


@pytest.mark.parametrize("seed", range(5))
def test_the_result_is_a_fixed_point_of_the_projected_gradient(seed):
    gram, target, rng = _problem(seed)
    start = Iterate(rng.standard_normal(target.shape))
    found = minimise_over_l1_balls(gram, target, start, iterations=3000)
    moved = project_columns_l1(found.L - (gram @ found.L - target))
    assert np.abs(found.L).sum(axis=0).max() <= 1 + 1e-9
    assert np.abs(moved - found.L).max() <= 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_no_feasible_point_is_better(seed):
    gram, target, rng = _problem(seed)
    found = minimise_over_l1_balls(gram, target, Iterate(np.zeros_like(target)), iterations=2000)
    least = _value(gram, target, found.L)
    for _ in range(50):
        other = project_columns_l1(found.L + rng.standard_normal(target.shape) * rng.random())
        assert _value(gram, target, other) >= least - 1e-7 * (1 + abs(least))


def test_acceleration_beats_the_plain_bound():
    """After t steps the gap is at most 2ω‖L0 - L*‖²/(t+1)², for the ω that was accepted."""
    gram, target, _ = _problem(0)
    origin = Iterate(np.zeros_like(target))
    best = minimise_over_l1_balls(gram, target, origin, iterations=5000).L
    least = _value(gram, target, best)
    for steps in (1, 2, 5, 10, 20, 50, 100):
        found = minimise_over_l1_balls(gram, target, origin, iterations=steps)
        # The method starts to extrapolate one step late, hence t and not t + 1.
        bound = 2 * found.lipschitz * np.vdot(best, best) / steps**2
        assert _value(gram, target, found.L) - least <= bound + 1e-9


@pytest.mark.parametrize("lipschitz", [1e-9, 1.0, 1e9])
def test_backtracking_finds_its_step_from_any_start(lipschitz):
    gram, target, _ = _problem(1)
    start = Iterate(np.zeros_like(target), lipschitz=lipschitz)
    found = minimise_over_l1_balls(gram, target, start, iterations=5)
    assert found.lipschitz <= max(lipschitz, 2 * np.linalg.norm(gram, 2))
    assert _value(gram, target, found.L) < 0


def test_the_start_is_left_alone_and_may_be_continued():
    gram, target, rng = _problem(2)
    L = rng.standard_normal(target.shape)
    before = L.copy()
    first = minimise_over_l1_balls(gram, target, Iterate(L), iterations=5)
    assert np.array_equal(L, before)
    assert first.evaluations >= 5
    second = minimise_over_l1_balls(gram, target, first, iterations=200)
    assert _value(gram, target, second.L) <= _value(gram, target, first.L)
