"""Only exact pairs pass, and what they cost is measured on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lrm.errors import ConvergenceError
from lrm.planning.solvers.exact import checked_pair, factorise, make_exact

sizes = st.integers(1, 6)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@given(sizes, sizes, sizes, st.floats(-6, 6))
def test_a_strategy_that_spans_the_workload_is_exact_with_sensitivity_one(m, r, n, power):
    L = random(r, n)
    W = 10.0**power * random(m, r, seed=1) @ L
    pair = factorise(W, L)
    np.testing.assert_allclose(abs(pair.strategy).sum(axis=0).max(), 1.0)
    np.testing.assert_allclose(
        pair.reconstruction @ pair.strategy, W, atol=1e-9 * np.linalg.norm(W)
    )
    assert pair.error == pytest.approx(np.sum(pair.reconstruction**2))


@given(sizes, sizes)
def test_no_other_reconstruction_is_smaller(m, n):
    W, L = random(m, n), random(n + 2, n, seed=1)
    B = factorise(W, L).reconstruction
    strategy = factorise(W, L).strategy.toarray()
    null = np.eye(n + 2) - strategy @ np.linalg.pinv(strategy)
    other = B + random(m, n + 2, seed=2) @ null
    np.testing.assert_allclose(other @ strategy, W, atol=1e-8)
    assert np.sum(other**2) >= np.sum(B**2)


def test_rank_deficient_strategies_are_measured_too():
    L = np.vstack([np.eye(3), np.eye(3), np.zeros((1, 3))])
    assert factorise(np.eye(3), L).error == pytest.approx(6.0)
    assert factorise(np.ones((1, 3)), np.ones((3, 3))).error == pytest.approx(3.0)


def test_sparse_and_dense_strategies_cost_the_same():
    L, W = np.tri(5), random(2, 5)
    assert factorise(W, sparse.csr_array(L)).error == pytest.approx(factorise(W, L).error)


def test_what_does_not_answer_the_workload_is_refused():
    with pytest.raises(ConvergenceError, match="residual"):
        factorise(np.eye(3), np.ones((2, 3)))
    with pytest.raises(ConvergenceError, match="residual"):
        checked_pair(np.eye(2), np.full((2, 2), np.nan), np.eye(2))


def test_make_exact_repairs_a_small_residual():
    B, L = random(3, 4), random(4, 9, seed=1)
    W = B @ L
    pair = make_exact(W, B, L + 1e-4 * random(4, 9, seed=2))
    assert pair.residual < 1e-12
    assert pair.error <= 1.01 * np.sum(B**2) * np.abs(L).sum(axis=0).max() ** 2


def test_a_zero_workload_costs_nothing():
    assert factorise(np.zeros((2, 3)), np.eye(3)).error == 0.0
