"""Integer strategies: exact column sums, exact sensitivity, little lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.maps.products.batch import cross_tabs, product_batch
from lrm.solvers.products.basis import Basis, identity_basis
from lrm.solvers.products.integers import largest_remainders, round_basis, round_strategy
from lrm.solvers.products.optimise import optimise_products


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(5, 300))
def test_rounded_columns_sum_to_exactly_q(seed, q):
    rng = np.random.default_rng(seed)
    basis = Basis(rng.random((3, 4)) * rng.uniform(0, 50))
    rounded = round_basis(basis, q)
    assert np.all(rounded.dense().sum(axis=0) == q)
    assert np.linalg.matrix_rank(rounded.dense()) == 4
    np.testing.assert_allclose(rounded.basis().dense() * q, rounded.dense(), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=9), st.integers(1, 10_000))
def test_largest_remainders_sum_to_the_total(shares, total):
    shares = np.array(shares) / sum(shares)
    counts = largest_remainders(shares, total)
    assert counts.sum() == total
    assert np.all(np.abs(counts - shares * total) < 1)


def test_the_identity_stays_the_identity():
    assert np.array_equal(round_basis(identity_basis(3)).dense(), np.eye(3))


@pytest.mark.parametrize(
    "batch",
    [
        cross_tabs([6, 5, 4, 2], [0, 1, 2]),
        product_batch([16, 3], [["prefix", "identity"], ["total", "identity"]]),
    ],
    ids=["tables", "prefixes"],
)
def test_integers_cost_exactly_the_budget_and_little_error(batch):
    strategy = optimise_products(batch, effort="quick")
    rounded = round_strategy(batch, strategy)
    assert rounded.error <= 1.001 * strategy.error
    # Cost of one record in units of ε: Σ (largest L1 column norm)·m/(R·Πq), in exact integers.
    cost = 0
    for group in rounded.groups:
        members = group.group.marginals.members
        for inside, weight, scale in zip(members, group.weights, group.scales(), strict=True):
            rows = np.ones((1, 1), dtype=np.int64)
            for basis, member in zip(group.bases, inside, strict=True):
                size = len(basis.diagonal)
                one = basis.dense() if member else np.ones((1, size), dtype=np.int64)
                rows = np.kron(rows, one)
            norms = np.abs(rows).sum(axis=0)
            assert norms.max() == norms.min() == scale
            cost += int(weight)
    assert cost == rounded.weight_sum


def test_the_error_of_integers_is_that_of_their_dense_strategy():
    batch = product_batch([8, 3], [["prefix", "identity"], ["total", "identity"]])
    rounded = round_strategy(batch, optimise_products(batch, effort="quick"))
    total = 0.0
    for group in rounded.groups:
        L = group.group.weight * group.group.marginals.dense()
        W = group.group.reduced(batch).dense()
        total += float(np.sum((W @ np.linalg.pinv(L)) ** 2))
    assert rounded.error == pytest.approx(total, rel=1e-9)
