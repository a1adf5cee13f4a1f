"""The search: never above the classical choices, anytime, and the same for the same seed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lrm
from lrm.clock import UNLIMITED, Clock
from lrm.errors import StopSolver, WorkloadError
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.solvers.products.gaussian import (
    optimise_gaussian_groups,
    optimise_gaussian_products,
)
from lrm.planning.solvers.products.group import GroupSearch
from lrm.planning.solvers.products.grouping import differing_terms, group_terms
from lrm.planning.solvers.products.optimise import ProductSearch, TermSearch, optimise_products
from lrm.planning.solvers.settings import BUDGETS
from lrm.queries.maps.products.batch import cross_tabs, product_batch
from solvers.products.reference_errors import (
    classical_marginals_error,
    noise_on_data_error,
    noise_on_results_error,
    tree_product_error,
)

BATCHES = {
    "tables": cross_tabs([6, 5, 4, 2], range(3)),
    "bits": cross_tabs([2] * 8, [2]),
    "prefixes": product_batch([24, 3, 4], [["prefix", "identity", "total"], ["total"] * 3]),
    "ranges": product_batch([12, 8], [["all-ranges", "prefix"], ["identity", "total"]]),
    "one query": product_batch([4, 5], [[[[1, 1, 0, 0]], "total"]]),
    "nothing but the total": product_batch([4, 5], [["total", "total"]]),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_quick_search_is_not_above_the_classical_choices(name):
    batch = BATCHES[name]
    found = optimise_products(batch, effort="quick")
    baselines = [
        noise_on_data_error(batch),
        noise_on_results_error(batch),
        tree_product_error(batch),
    ]
    assert found.error <= min(baselines) * (1 + 1e-9)
    assert found.error <= classical_marginals_error(batch) * (1 + 1e-6)


@pytest.mark.parametrize("name", BATCHES)
def test_the_error_is_that_of_the_dense_strategy(name):
    batch = BATCHES[name]
    found = optimise_products(batch, effort="quick")
    L = found.dense(batch.sizes)
    assert np.abs(L).sum(axis=0).max() == pytest.approx(1.0)
    dense = float(np.sum((batch.dense() @ np.linalg.pinv(L, rcond=1e-11)) ** 2))
    assert found.error == pytest.approx(dense, rel=1e-6)


def test_the_same_seed_finds_the_same():
    batch = BATCHES["ranges"]
    first, second = (optimise_products(batch, effort="quick", seed=3) for _ in range(2))
    assert first.error == second.error


def test_a_search_without_time_has_noise_on_data_at_least():
    batch = BATCHES["tables"]
    clock = Clock()
    clock.stop()
    found = optimise_products(batch, clock=clock)
    assert clock.interrupted
    assert found.error <= noise_on_data_error(batch) * (1 + 1e-9)


def test_a_stopped_search_returns_the_best_so_far():
    steps = []

    def stop(step):
        steps.append(step)
        if len(steps) == 20:
            raise StopSolver

    clock = Clock(on_step=stop)
    found = optimise_products(BATCHES["ranges"], clock=clock)
    assert clock.interrupted
    assert math.isfinite(found.error)
    assert found.error <= min(step.error for step in steps) * (1 + 1e-9)


@pytest.mark.parametrize("gain", [-0.5, 0.0, 1e-5, 0.5])
def test_more_effort_is_never_worse_than_a_quick_search(monkeypatch, gain):
    """However a longer search ends: what rounding may take away again is no gain."""
    batch = BATCHES["ranges"]
    quick = optimise_products(batch, effort="quick")

    def further(self, effort, clock):
        del effort, clock
        found = self._found[0]
        other = replace(quick, error=(1.0 - gain) * quick.error, combined=False)
        self._found = [replace(found, strategy=other)]

    monkeypatch.setattr(ProductSearch, "further", further)
    found = optimise_products(batch, effort="normal")
    expected = (0.5 if gain == 0.5 else 1.0) * quick.error
    assert found.error <= quick.error
    assert found.error == pytest.approx(expected, rel=2e-5)


def test_folding_takes_a_third_off_one_way_tables_of_two_values():
    """Three attributes in one folded table of four measurements, and the total by itself.

    By the closed form: 12 for the total, 12·24²/2.25 for the rest, (12^⅓ + 3072^⅓)³ together.
    """
    batch = cross_tabs([2] * 24, [1])
    assert optimise_products(batch, effort="quick", classical=True).error == pytest.approx(6912)
    expected = (12 ** (1 / 3) + 3072 ** (1 / 3)) ** 3
    assert optimise_products(batch, effort="quick").error == pytest.approx(expected, rel=1e-6)


def test_prefixes_of_several_attributes_are_measured_together():
    """One basis over all combinations has less error than the product of the best bases."""
    batch = product_batch([8, 8, 5], [["prefix", "prefix", "identity"]])
    found = optimise_products(batch, effort="quick")
    assert [axis.attributes for axis in found.groups[0].axes] == [(0, 1), (2,)]
    alone = optimise_products(product_batch([8], [["prefix"]])).error
    assert found.error < 0.9 * alone**2 * 5
    L = found.dense(batch.sizes)
    dense = float(np.sum((batch.dense() @ np.linalg.pinv(L)) ** 2))
    assert found.error == pytest.approx(dense, rel=1e-6)


def test_many_attributes_are_covered():
    """30 attributes of 10 values: 10^30 cells, and every triple is in some measured set."""
    batch = cross_tabs([10] * 30, [3])
    quadratic = Quadratic(batch)
    search = GroupSearch(quadratic, np.random.default_rng(0), UNLIMITED, BUDGETS["quick"].group)
    search.run()
    assert np.isfinite(search.value)
    own = len(batch.choice)
    assert len(search.result().weights) < own  # sets of four attributes serve several triples


def test_gaussian_tables_reach_the_optimum_of_a_dense_search():
    from lrm.planning.solvers.gaussian import optimise_gaussian

    batch = cross_tabs([3, 4, 2], [1, 2])
    found = optimise_gaussian_products(batch)
    _, s, v = np.linalg.svd(batch.dense(), full_matrices=False)
    dense = optimise_gaussian((s[:, None] * v)[s > 1e-9])
    assert found.bound == found.error
    assert dense.lower * (1 - 1e-9) <= found.error <= dense.upper * (1 + 1e-9)


def coarsened(rng):
    """A table of 60 values in four groups of neighbours."""
    cuts = np.sort(rng.choice(np.arange(1, 60), size=3, replace=False))
    labels = np.searchsorted(cuts, np.arange(60), side="right")
    return (labels == np.arange(4)[:, None]).astype(float)


def overlapping(rng):
    """Four tables over three attributes of 60 values, each over its own groups of values."""
    return product_batch([60] * 3, [[coarsened(rng) for _ in range(3)] for _ in range(4)])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_terms_that_share_little_are_groups(noise):
    batch = overlapping(np.random.default_rng(1))
    if noise == "laplace":
        found = optimise_products(batch, effort="quick")
        alone = [optimise_products(batch.take([term]), effort="quick") for term in range(4)]
        apart = sum(np.cbrt(one.error) for one in alone) ** 3
    else:
        found = optimise_gaussian_groups(batch)
        alone = [optimise_gaussian_groups(batch.take([term])) for term in range(4)]
        apart = sum(np.sqrt(one.error) for one in alone) ** 2
        assert found.error < 0.9 * optimise_gaussian_products(batch).error
    assert len(found.groups) > 2
    assert found.error <= apart * (1 + 1e-9)


def test_many_terms_are_grouped_by_the_attributes_that_they_ask_for():
    """More than 60 terms that differ were one group, whatever they asked for."""
    rng = np.random.default_rng(2)
    singles = [rng.integers(0, 2, size=(1, 30)).astype(float) for _ in range(36)]
    terms = [[one, "total"] for one in singles] + [["total", one] for one in singles]
    batch = product_batch([30, 30], [*terms, ["identity", "identity"]])
    assert len(differing_terms(batch)) > 60
    grouping = group_terms(batch, Clock())
    assert frozenset([72]) in grouping.groups
    assert all(len(group & frozenset(range(36))) in {0, 36} for group in grouping.groups)
    assert grouping.whole_root < grouping.root(frozenset(range(batch.terms)))


def test_terms_of_a_statement_may_be_kept_together():
    """Many terms over the same attributes, of four statements that share little."""
    rng, terms = np.random.default_rng(1), []
    for _ in range(4):
        tables = [coarsened(rng) for _ in range(3)]
        terms += [[tables[0][[i]], tables[1][[j]], tables[2]] for i in range(4) for j in range(3)]
    batch = product_batch([60] * 3, terms)
    statements = [frozenset(range(start, start + 12)) for start in range(0, 48, 12)]
    assert group_terms(batch, Clock()) is None
    found = group_terms(batch, Clock(), statements=statements)
    assert len(found.groups) > 2
    assert all(group in statements for group in found.groups if len(group) == 12)


def test_each_group_has_its_share_of_the_time(monkeypatch):
    """The first groups took it all, and the others were left with noise on data."""
    batch, left = overlapping(np.random.default_rng(1)), []
    run = TermSearch.run
    monkeypatch.setattr(
        TermSearch, "run", lambda *given: left.append(given[-1].remaining_work()) or run(*given)
    )
    search = ProductSearch(batch, np.random.default_rng(0), 0, Clock())
    search.clock = Clock().part(8.0)
    assert len(search._solve_each([frozenset([term]) for term in range(4)])) == 4
    assert left[0] == pytest.approx(2.0)
    assert min(left) >= 1.9


def test_a_large_table_beside_small_ones_is_measured_beside_them():
    sizes = [2, 3] * 6
    terms = [["identity"] * 12, ["identity", *["total"] * 11], ["total"] * 12]
    found = optimise_products(product_batch(sizes, terms), effort="quick")
    assert found.error < 1.2 * 6**6


def test_a_query_over_too_many_attributes_is_refused_before_the_search():
    batch = lrm.families.marginals([2] * 24, [24])
    with pytest.raises(WorkloadError, match="at most 20 attributes"):
        lrm.plan(batch, on_step=lambda step: pytest.fail("searched"))
