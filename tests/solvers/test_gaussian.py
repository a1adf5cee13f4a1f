"""The L2 program: both bounds meet, and the lower one holds for every strategy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.clock import Clock
from lrm.errors import StopSolver, UsageError
from lrm.planning.solvers.gaussian import nuclear_bound, optimise_gaussian, optimise_gaussian_map
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.workload import families


def _all_ranges_gram(n):
    i = np.arange(n)
    return (np.minimum.outer(i, i) + 1.0) * (n - np.maximum.outer(i, i))


def _holds(W, found, tolerance=1e-3):
    assert found.converged
    assert found.lower <= found.upper <= (1 + tolerance) * found.lower * (1 + 1e-9)
    assert np.linalg.norm(found.L, axis=0).max() <= 1.0
    assert np.linalg.norm(W - found.B @ found.L) <= 1e-10 * np.linalg.norm(W)
    assert found.upper == pytest.approx(np.vdot(found.B, found.B))
    assert found.lower == pytest.approx(nuclear_bound(W, found.weights), rel=1e-4)


@st.composite
def workloads(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(1, 10)), draw(st.integers(1, 14))
    W = rng.standard_normal((m, n))
    kind = draw(st.sampled_from(["dense", "low rank", "counting", "rows scaled", "repeated"]))
    if kind == "low rank":
        W = W[:, :1] @ rng.standard_normal((1, n)) + W[:, :1] @ np.ones((1, n))
    elif kind == "counting":
        W = (W > 0.3).astype(float)
    elif kind == "rows scaled":
        W *= 10.0 ** rng.integers(-6, 7, (m, 1))
    elif kind == "repeated":
        W = np.c_[W, np.zeros((m, 1)), -W, W[:, :1]]
    return W


@settings(max_examples=60, deadline=None)
@given(workloads())
def test_the_bounds_meet_on_workloads_of_every_kind(W):
    found = optimise_gaussian(W)
    if not W.any():
        assert found.upper == found.lower == 0
        return
    _holds(W, found)


@settings(max_examples=40, deadline=None)
@given(workloads(), st.integers(0, 2**32 - 1))
def test_no_strategy_is_below_the_lower_bound(W, seed):
    rng = np.random.default_rng(seed)
    n = W.shape[1]
    weights = rng.random(n) ** 4
    lower = max(optimise_gaussian(W, tolerance=0.01).lower, nuclear_bound(W, weights))
    for L in (np.eye(n), rng.standard_normal((n + 2, n)), np.r_[np.eye(n), np.ones((1, n))]):
        B = W @ np.linalg.pinv(L)
        for order in (1, 2):
            error = np.vdot(B, B) * np.linalg.norm(L, ord=order, axis=0).max() ** 2
            assert error >= lower * (1 - 1e-12)


@pytest.mark.parametrize(
    ("W", "least", "most"),
    [
        (np.tril(np.ones((64, 64))), 282.2, 282.5),
        (np.linalg.cholesky(_all_ranges_gram(64)).T, 11024.3, 11035.5),
        (np.eye(9), 9.0, 9.0),
        (np.ones((1, 7)), 1.0, 1.0),
    ],
    ids=["prefix", "all ranges", "identity", "total"],
)
def test_known_optima(W, least, most):
    found = optimise_gaussian(W)
    _holds(W, found)
    assert least * (1 - 1e-9) <= found.lower
    assert found.upper <= most * (1 + 1e-9)


def test_a_map_is_solved_as_its_matrix():
    queries = families.all_ranges(32).queries
    one, other = optimise_gaussian(queries.dense()), optimise_gaussian_map(queries, queries.dense)
    assert one.upper == pytest.approx(other.upper, rel=1e-3)
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)
    low_rank = DenseMap(np.ones((2, 5)))
    assert optimise_gaussian_map(low_rank, low_rank.dense).upper == pytest.approx(2.0)


def test_singular_values_over_twelve_orders():
    rng = np.random.default_rng(0)
    left = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    right = np.linalg.qr(rng.standard_normal((50, 30)))[0]
    W = (left * 10.0 ** np.linspace(-12, 0, 30)) @ right.T
    _holds(W, optimise_gaussian(W))


def test_cells_in_order_start_from_every_other_one():
    W = np.tril(np.ones((512, 512)))
    found = optimise_gaussian(W, tolerance=0.01)
    _holds(W, found, 0.01)
    assert found.rounds <= 5


def test_low_accuracy_takes_fewer_rounds():
    W = np.random.default_rng(0).standard_normal((16, 200))
    assert optimise_gaussian(W, tolerance=0.05).rounds < optimise_gaussian(W).rounds / 2


def test_the_order_and_the_sign_of_cells_do_not_matter():
    rng = np.random.default_rng(1)
    W = rng.standard_normal((8, 40))
    shuffled = W[:, rng.permutation(40)] * rng.choice([-1.0, 1.0], 40)
    assert optimise_gaussian(shuffled).lower == pytest.approx(optimise_gaussian(W).lower, rel=1e-6)


@pytest.mark.parametrize("stop", [StopSolver])
def test_an_interrupt_returns_the_best_so_far(stop):
    W = np.random.default_rng(2).standard_normal((16, 200))
    errors = []

    def report(step):
        errors.append(step.error)
        if step.iteration == 4:
            raise stop

    clock = Clock(on_step=report)
    found = optimise_gaussian(W, clock=clock)
    assert clock.interrupted
    assert not found.converged
    assert found.rounds == 4
    assert errors == sorted(errors, reverse=True)
    assert found.upper == pytest.approx(errors[-1])
    assert found.lower <= found.upper
    assert np.allclose(found.B @ found.L, W)


def test_senseless_requests_are_refused():
    with pytest.raises(UsageError):
        optimise_gaussian(np.full((2, 2), np.inf))
    with pytest.raises(UsageError):
        optimise_gaussian(np.eye(2), tolerance=0.0)
