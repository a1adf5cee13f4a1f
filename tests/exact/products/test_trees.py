"""Residual trees of long attributes: closed forms against dense algebra, files, errors."""

from __future__ import annotations

import numpy as np
import pytest

import lrm
from lrm.clock import Clock
from lrm.errors import WorkloadError
from lrm.planning.design.products import trees
from lrm.planning.design.products.quadratic import PairGram
from lrm.planning.design.products.trees import TreeBasis, level_spreads, tree_levels
from lrm.planning.plan.proposals import Proposal
from lrm.planning.solvers.products import gaussian
from lrm.planning.strategies.base import Problem, Search
from lrm.planning.strategies.products import best_products
from lrm.privacy.norms import L2
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import product_batch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.words import AllRanges, Identity, Prefix

SIZES = [2, 3, 4, 5, 7, 8, 11, 16, 23]


def tree_of(size):
    weights = np.random.default_rng(size).uniform(0.3, 1.0, tree_levels(size))
    return TreeBasis(size, weights / np.linalg.norm(weights))


@pytest.mark.parametrize("size", SIZES)
def test_products_with_a_tree_are_those_of_its_matrix(size):
    tree, eye = tree_of(size), np.eye(size)
    R = tree.times(eye)
    assert R.shape == (size - 1, size)
    assert np.abs(R @ tree.h).max() < 1e-14
    assert np.sqrt((R**2).sum(axis=0)).max() == pytest.approx(1.0)
    H = np.linalg.inv(R.T @ R + 1.0 / tree.kappa)
    P = H - np.outer(tree.h, tree.h) / tree.kappa
    X = np.random.default_rng(1).normal(size=(size, 3))
    Y = np.random.default_rng(2).normal(size=(size - 1, 2))
    assert np.allclose(H.sum(axis=1), tree.h)
    assert np.allclose(tree.times(X), R @ X)
    assert np.allclose(tree.transpose_times(Y), R.T @ Y)
    assert np.allclose(tree.inverse_times(X), H @ X)
    assert np.allclose(tree.projector_times(X), P @ X)
    other = DenseMap(np.random.default_rng(3).normal(size=(size, size)))
    for W, V in [(Prefix(size),) * 2, (AllRanges(size),) * 2, (other,) * 2, (Prefix(size), other)]:
        spread, means = tree.forms(W, V)
        assert np.allclose(spread * tree.kappa, np.diag(W.dense() @ P @ V.dense().T))
        assert np.allclose(means * tree.kappa**2, (W.dense() @ tree.h) * (V.dense() @ tree.h))
        gram = PairGram(W, V)
        residual, total = tree.numbers([gram])
        assert residual[0] * tree.kappa == pytest.approx(np.vdot(P, gram.dense()))
        assert total[0] * tree.kappa**2 == pytest.approx(tree.h @ gram.dense() @ tree.h)
    assert level_spreads(Identity(size)) @ tree.unit_weights**-2 == pytest.approx(np.trace(P))


@pytest.mark.parametrize("size", SIZES)
def test_the_integers_are_the_matrix_that_sensitivity_is_stated_for(size):
    weights = np.random.default_rng(size).integers(1, 50, tree_levels(size))
    basis = TreeBasis(size, weights)
    R = basis.apply(np.eye(size, dtype=np.int64))
    assert R.dtype == np.int64
    for power in (1, 2):
        assert basis.column_norm(power) == (np.abs(R) ** power).sum(axis=0).max()
    assert basis.peak == np.abs(R).max()
    assert np.allclose(basis.times(np.eye(size)) * basis.scale, R)
    assert not (R @ basis.h.astype(np.int64)).any()
    assert basis.apply(np.eye(size, dtype=object)).tolist() == R.tolist()


def test_wrong_weights_are_refused():
    for weights in ([1], [1, 0], [1, 1 << 23], [1, 1, 1]):
        with pytest.raises(WorkloadError, match="residual tree"):
            TreeBasis(4, np.array(weights))


@pytest.fixture
def long_from_20(monkeypatch):
    monkeypatch.setattr(gaussian, "DENSE_VALUES", 20)


WORDS = [
    [["prefix", "identity"]],
    [["prefix", "identity"], ["total", "identity"], ["identity", "total"]],
    [["all-ranges", "total"], ["prefix", "identity"]],
]


@pytest.mark.parametrize("words", WORDS)
def test_a_plan_over_a_tree_states_its_errors(long_from_20, words, tmp_path):
    """The stated errors are those of the measured integers, written out; files keep them."""
    batch = product_batch([37, 3], words)
    plan = lrm.plan(lrm.Workload(ProductMap(batch)), noise="gaussian", mechanism="best")
    residuals = gaussian.optimise_gaussian_products(batch)
    assert isinstance(residuals.marginals.bases[0], TreeBasis)
    made = residuals_plan(batch)
    measured = made.measured
    (group,) = measured.groups
    L = np.vstack([group.rows(b) for b in range(len(group.sets))]) * 2.0**-measured.bits
    W = batch.dense()
    B = W @ np.linalg.pinv(L)
    assert np.allclose(B @ L, W, atol=1e-8)
    assert np.allclose(made.reconstruction_map.row_squared_norms, (B * B).sum(axis=1), rtol=1e-6)
    largest = (L**2).sum(axis=0).max()
    assert largest == pytest.approx(sum(group.norms(2)) * 4.0**-measured.bits)
    assert residuals.error == pytest.approx((B * B).sum() * largest, rel=1e-3)
    assert plan.strategy_error <= 1.01 * residuals.error
    made.save(tmp_path / "plan.lrm")
    again = lrm.load_plan(tmp_path / "plan.lrm")
    assert again.measured.digest == measured.digest
    released = lrm.release(again, np.arange(37 * 3), rho=1, ledger=None)
    errors = made.accuracy(made.privacy(rho=1)).standard_errors
    assert np.all(np.abs(released.answers - W @ np.arange(37 * 3)) <= 7 * errors)


def residuals_plan(batch):
    """The plan of the residuals, without a search over the list of few cells."""
    problem = Problem(lrm.Workload(ProductMap(batch)))
    strategy = best_products(problem, Search(0, L2(), Clock()))
    return Proposal(problem, strategy, L2()).plan()


def test_prefix_sums_over_thousands_of_values_have_far_less_error_than_identities():
    batch = product_batch([3000, 2], [["prefix", "identity"]])
    found = gaussian.optimise_gaussian_products(batch)
    # (ln n/π + …)² per prefix sum is the optimum: identities have 500.
    assert found.error / 6000 < 20


def test_factors_that_would_take_too_much_work_keep_the_identity(monkeypatch, long_from_20):
    monkeypatch.setattr(trees, "ARRAY", 60)
    monkeypatch.setattr(trees, "MEMORY", 60)
    found = gaussian.optimise_gaussian_products(product_batch([37, 3], [["prefix", "identity"]]))
    assert found.marginals.bases[0].plain
