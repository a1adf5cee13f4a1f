"""Attributes of thousands of values, and of thousands of conditions: nothing of size n x n."""

import subprocess
import sys

import numpy as np
import pytest

from lrm.errors import UsageError, WorkloadError
from lrm.planning.design.products import quadratic as quadratics
from lrm.planning.design.products.quadratic import FactorPairs, PairGram, Quadratic
from lrm.planning.solvers import bounds
from lrm.planning.solvers.bounds import product_bound
from lrm.planning.solvers.products.descents import MixedGram
from lrm.planning.solvers.products.optimise import optimise_products
from lrm.planning.strategies.products import tree_basis
from lrm.queries.maps import linear
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.maps.products.batch import cross_tabs, product_batch, sum_batch
from lrm.queries.maps.words import AllRanges, Prefix, make_factor

PLAN = """
import resource
import lrm
from lrm.queries.maps.products.batch import product_batch
from lrm.queries.maps.products.map import ProductMap
resource.setrlimit(resource.RLIMIT_AS, (5 << 29, 5 << 29))
batch = product_batch([20_000, 5], [["prefix", "identity"]])
plan = lrm.plan(lrm.Workload(ProductMap(batch)), effort="quick", noise="{noise}")
assert plan.strategy_error < 0.5 * 5 * 20_000**2 / 2, plan.strategy_error
"""


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_prefixes_over_20000_values_by_another_attribute_fit(noise):
    """A dense Gram would take 3.2 GB; the process has 2.5 GB of address space."""
    done = subprocess.run(
        [sys.executable, "-c", PLAN.format(noise=noise)],
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_fifty_thousand_factors_are_told_apart():
    """Their pairs are numbered with 64 bits, and no array has one entry for each possible pair."""
    weights = np.random.default_rng(0).random((50_000, 1, 3))
    batch = product_batch([3], [[row] for row in weights])
    quadratic = Quadratic(batch)
    assert len(quadratic.grams) == 50_000
    assert all(gram.left is gram.right for gram in quadratic.grams)
    last = FactorPairs.of(batch).on(0)
    np.testing.assert_array_equal(last[0][last[1][-1]].left.dense(), weights[-1])


def test_too_many_alternatives_are_refused_before_their_pairs_are_made(monkeypatch):
    monkeypatch.setattr(quadratics, "MOST_PAIRS", 5)
    summands = [(1.0, [[[float(i == j) for j in range(4)]]]) for i in range(4)]
    with pytest.raises(WorkloadError, match=r"10 pairs of products.*OR"):
        Quadratic(sum_batch([4], [summands]))


def test_too_many_subsets_are_refused_before_they_are_made():
    with pytest.raises(WorkloadError, match="fewer attributes"):
        Quadratic(cross_tabs([2] * 26, [26]))


def test_grams_of_all_ranges_are_applied_in_closed_form():
    n = 700
    place = np.arange(1.0, n + 1)
    smaller, larger = np.minimum.outer(place, place), np.maximum.outer(place, place)
    X = np.random.default_rng(0).random((n, 3))
    wanted = (smaller * (n + 1 - larger)) @ X
    np.testing.assert_allclose(AllRanges(n).gram_times(X), wanted)


def test_products_of_two_factors_are_made_piece_by_piece(monkeypatch):
    monkeypatch.setattr(linear, "BLOCK_ENTRIES", 10)
    monkeypatch.setattr(quadratics, "BLOCK_ENTRIES", 10)
    rng = np.random.default_rng(0)
    rows = DenseMap(rng.random((5, 5)))
    X = rng.random((5, 2))
    for word in ("prefix", "identity"):
        other = make_factor(word, 5)
        wanted = rows.dense() * other.dense()
        np.testing.assert_allclose(rows.entrywise_apply(other, X), wanted @ X)
        np.testing.assert_allclose(PairGram(rows, other).squares, wanted.sum(axis=0))


@pytest.mark.parametrize(
    ("factor", "needs"),
    [
        ("prefix", True),
        ("all-ranges", True),
        ("identity", False),
        (np.vstack([2 * np.eye(4), np.ones((1, 4))]), False),
        (np.roll(np.eye(4), 1, axis=1), False),
        (np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]), True),
        (np.array([[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]), True),
    ],
)
def test_which_factors_need_a_basis(factor, needs):
    assert Quadratic(product_batch([4], [[factor]])).needs_basis(0) is needs


def test_a_mix_of_grams_over_blocks_is_that_of_the_dense_one():
    rng = np.random.default_rng(0)
    grams = [Prefix(10), DenseMap(rng.random((3, 10)))]
    mix = MixedGram([(0.5, PairGram(g, g)) for g in grams])
    dense = sum(0.5 * g.gram() for g in grams)
    blocks = np.repeat(np.eye(4), [3, 3, 3, 1], axis=1)
    coarse, X = mix.coarser(3), rng.random((4, 2))
    np.testing.assert_allclose(coarse.times(X), blocks @ dense @ blocks.T @ X)
    np.testing.assert_allclose(coarse.energies, blocks @ np.diag(dense))
    np.testing.assert_array_equal(coarse.widths, [3, 3, 3, 1])


def test_a_tree_over_too_many_values_is_refused():
    assert tree_basis(8, 2).extra_rows.shape == (7, 8)
    with pytest.raises(UsageError, match="larger fanout"):
        tree_basis(20_000, 2)


def test_grams_of_single_conditions_are_not_kept():
    """20,000 conditions over 1,000 values would keep 160 GB of Grams."""
    condition = DenseMap(np.ones((1, 40)) * np.arange(40))
    np.testing.assert_allclose(condition.gram(), np.outer(np.arange(40), np.arange(40)))
    X = np.random.default_rng(0).random((40, 2))
    np.testing.assert_allclose(condition.gram_times(X), condition.gram() @ X)
    assert not any(isinstance(v, np.ndarray) and v.size == 1600 for v in vars(condition).values())


def test_bases_are_not_optimised_where_their_images_would_not_fit(monkeypatch):
    batch = product_batch([4, 2], [["prefix", "identity"], ["all-ranges", "total"]])
    found = Quadratic(batch)
    assert found.needs_basis(0)
    assert found.affords_basis(0)
    monkeypatch.setattr(quadratics, "ARRAY", 4 * 16 - 1)
    assert not found.affords_basis(0)
    whole = optimise_products(batch, effort="quick")
    assert all(basis.plain for group in whole.groups for basis in group.marginals.bases)


def test_a_bound_of_too_many_groups_is_left_out(monkeypatch):
    batch = product_batch([4, 2], [[row, "identity"] for row in np.eye(4)[:, None]])
    best = product_bound(batch)
    monkeypatch.setattr(bounds, "MOST_GROUPS", 1)
    assert 0 <= product_bound(batch) <= best
