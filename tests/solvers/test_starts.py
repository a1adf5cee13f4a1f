"""Starts have the shape and the structure that they promise."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lrm.planning.solvers.descents import rotation
from lrm.planning.solvers.own_rows import extreme_columns


@given(st.integers(1, 5), st.integers(0, 5), st.integers(0, 9))
def test_rotations_differ_only_by_a_rotation(k, more, seed):
    W = np.random.default_rng(seed).standard_normal((k, 3 * k))
    X = rotation(W, k + more, np.random.default_rng(seed))
    Y = rotation(W, k + more, np.random.default_rng(seed + 1))
    assert X.shape == (k + more, k)
    np.testing.assert_allclose(X.T @ X, Y.T @ Y, rtol=1e-6, atol=1e-9)


@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 99))
def test_extreme_columns_rebuild_all_and_cost_no_more_than_all(k, n, seed):
    W = np.random.default_rng(seed).standard_normal((k, n))
    L = extreme_columns(W)
    corners = np.flatnonzero((L == 1.0).sum(axis=0) * (np.count_nonzero(L, axis=0) == 1))
    B = W[:, corners[: len(L)]] if len(corners) == len(L) else W @ np.linalg.pinv(L)
    np.testing.assert_allclose(B @ L, W, atol=1e-7)
    assert np.abs(L).sum(axis=0).max() <= 1 + 1e-9
    assert len(L) >= min(np.linalg.matrix_rank(W), n)
