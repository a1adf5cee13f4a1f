"""Strategies whose rows depend on each other are measured by their best reconstruction."""

import numpy as np
import pytest

from lrm.planning.solvers.exact import factorise


@pytest.mark.parametrize("seed", range(5))
def test_the_error_of_dependent_rows_is_that_of_least_squares(seed):
    """Cross-tabs share their totals: a factor of L·Lᵀ exists, and B from it is not the shortest."""
    rng = np.random.default_rng(seed)
    one = np.kron(np.eye(4), np.ones((1, 5)))
    two = np.kron(np.ones((1, 4)), np.eye(5))
    L = np.vstack([rng.uniform(0.2, 1) * one, rng.uniform(0.2, 1) * two, np.ones((1, 20))])
    W = np.vstack([one, two])
    B = W @ np.linalg.pinv(L)
    wanted = np.sum(B**2) * np.abs(L).sum(axis=0).max() ** 2
    assert factorise(W, L).error == pytest.approx(wanted, rel=1e-9)
