"""Starts have the shape and the structure that they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.solvers.starts import extreme_columns, haar, random_rows, rotation, tree_rows

cells = st.integers(1, 40)


@given(cells, st.integers(2, 9))
def test_every_level_of_a_tree_counts_every_cell_once(n, fanout):
    rows = tree_rows(n, fanout)
    depth = 0
    while fanout**depth < n:
        depth += 1
    np.testing.assert_array_equal(rows.sum(axis=0), np.full(n, max(depth, 0)))


def test_a_fanout_of_one_is_refused():
    with pytest.raises(ValueError, match="fan-out"):
        tree_rows(4, 1)


@given(cells)
def test_haar_answers_every_query(n):
    assert np.linalg.matrix_rank(haar(n)) == n


@given(st.integers(0, 6))
def test_haar_rows_are_orthogonal_on_powers_of_two(power):
    rows = haar(2**power)
    gram = rows @ rows.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)))


@given(st.integers(1, 5), st.integers(0, 5), st.integers(0, 9))
def test_rotations_differ_only_by_a_rotation(k, more, seed):
    W = np.random.default_rng(seed).standard_normal((k, 3 * k))
    X = rotation(W, k + more, np.random.default_rng(seed))
    Y = rotation(W, k + more, np.random.default_rng(seed + 1))
    assert X.shape == (k + more, k)
    np.testing.assert_allclose(X.T @ X, Y.T @ Y, rtol=1e-6, atol=1e-9)


def test_random_rows_follow_their_generator():
    one, two = (random_rows(3, 4, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 99))
def test_extreme_columns_rebuild_all_and_cost_no_more_than_all(k, n, seed):
    W = np.random.default_rng(seed).standard_normal((k, n))
    L = extreme_columns(W)
    corners = np.flatnonzero((L == 1.0).sum(axis=0) * (np.count_nonzero(L, axis=0) == 1))
    B = W[:, corners[: len(L)]] if len(corners) == len(L) else W @ np.linalg.pinv(L)
    np.testing.assert_allclose(B @ L, W, atol=1e-7)
    assert np.abs(L).sum(axis=0).max() <= 1 + 1e-9
    assert len(L) >= min(np.linalg.matrix_rank(W), n)
