"""The lower bound over products lies below every strategy, and below the dense bound."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.solvers.bounds import bound_together, product_bound
from lrm.planning.solvers.gaussian import optimise_gaussian
from lrm.planning.solvers.products.gaussian import optimise_gaussian_products
from lrm.queries.maps.products.batch import cross_tabs, product_batch


def _random_batch(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, rng.integers(1, 4)).tolist()

    def factor(n):
        rows = rng.integers(0, 2, (2, n)) + 0.0
        rows[0, 0] = 1.0
        return ["total", "identity", "prefix", "all-ranges", rows][rng.integers(0, 5)]

    terms = [[factor(n) for n in sizes] for _ in range(rng.integers(1, 5))]
    return product_batch(sizes, terms)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_bound_is_below_that_of_all_cells(seed):
    batch = _random_batch(seed)
    dense = batch.dense()
    nuclear = np.linalg.svd(dense, compute_uv=False).sum()
    assert bound_together(Quadratic(batch)) <= nuclear**2 / dense.shape[1] * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_the_bound_is_below_every_strategy(seed):
    """The optimum over all strategies with L2 columns, over the list of all cells."""
    batch = _random_batch(seed)
    assert product_bound(batch) <= optimise_gaussian(batch.dense()).upper * (1 + 1e-9)


def test_the_bound_of_one_product_is_nearly_the_optimum():
    batch = product_batch([40, 30, 5], [["prefix", "all-ranges", "identity"]])
    assert optimise_gaussian_products(batch).error < 1.02 * product_bound(batch)


def test_queries_without_a_total_have_a_bound():
    """Its share of the total was 0/0."""
    batch = product_batch([2, 3], [[[[1, -1]], "identity"], [[[2, -2]], "total"]])
    assert 0 < product_bound(batch) <= optimise_gaussian(batch.dense()).upper * (1 + 1e-9)


def test_the_bound_of_tables_is_the_optimum():
    batch = cross_tabs([4, 3, 2], [1, 2])
    assert product_bound(batch) == pytest.approx(optimise_gaussian_products(batch).error)


def test_prefixes_over_several_attributes_have_a_bound_near_the_best_known():
    batch = cross_tabs([30, 30, 20, 8, 5, 3], [1], ["prefix"] * 3 + ["identity"] * 3)
    assert optimise_gaussian_products(batch).error < 1.7 * product_bound(batch)


def test_factors_do_not_outlive_their_bound():
    """A cache by identity kept up to 256 factors alive, with a dense Gram of 8 MB each."""
    batch = product_batch([5, 3], [["prefix", "identity"], ["identity", "total"]])
    product_bound(batch)
    seen = [weakref.ref(factor) for choices in batch.factors for factor in choices]
    del batch
    gc.collect()
    assert not any(one() for one in seen)
