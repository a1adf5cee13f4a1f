"""Two groups that are combined: rows of B, how often they are computed, limits, and effort."""

import math

import numpy as np
import pytest

import lrm
from benchmarks.gates.shape import walk
from lrm.clock import Clock
from lrm.errors import StopSolver, WorkloadError
from lrm.planning.design.products import combine, common_tables
from lrm.planning.design.products.combine import LEAST_GAIN, Combination, find_combination
from lrm.planning.design.products.reconstruction import ProductReconstruction
from lrm.planning.design.products.strategy import ProductStrategy
from lrm.planning.solvers.products.optimise import optimise_products
from lrm.queries.workload import families

THIRDS = np.kron(np.eye(3), np.ones((1, 4)))
SIZES = [12, 4, 2, 1 << 17]
TERMS = [
    ["identity", "total", "identity", "total"],
    [THIRDS, "identity", "identity", "total"],
    ["total", "identity", "total", "total"],
]
WORKLOAD = families.products(SIZES, TERMS)


@pytest.fixture(scope="module")
def reconstruction():
    made = lrm.plan(WORKLOAD, effort="quick").reconstruction_map
    assert made.combination is not None
    return ProductReconstruction(made.batch, made.measured)  # with nothing computed yet


def test_rows_are_the_answers_to_single_measurements(reconstruction):
    rows = reconstruction.rows(0, reconstruction.shape[0])
    units = np.eye(reconstruction.shape[1])
    columns = np.column_stack([reconstruction.apply(unit) for unit in units])
    np.testing.assert_allclose(rows, columns, atol=1e-12 * np.abs(columns).max())
    part = reconstruction.rows(5, 9)
    np.testing.assert_allclose(part, rows[5:9], atol=1e-14 * np.abs(rows).max())
    norms = np.sum(rows**2, axis=1)
    np.testing.assert_allclose(reconstruction.row_squared_norms, norms, rtol=1e-8)


def test_rows_one_by_one_over_shared_values(reconstruction, monkeypatch):
    """Where all rows over a shared attribute are too many at a time, the result is the same."""
    whole = reconstruction.rows(0, reconstruction.shape[0])
    assert reconstruction.combination.shared  # the attribute of two values
    monkeypatch.setattr(combine, "ARRAY", 1)
    rows = reconstruction.rows(0, reconstruction.shape[0])
    np.testing.assert_allclose(rows, whole, atol=1e-13 * np.abs(whole).max())


def test_rows_apply_no_reconstruction_and_few_covariances(reconstruction):
    """Rows of B cost one covariance per term and common table, not one per measurement."""
    fresh = ProductReconstruction(reconstruction.batch, reconstruction.measured)
    calls = walk(lambda: fresh.rows(0, fresh.shape[0])).calls
    tables = sum(len(own) for c in fresh.combination.components for own in c.tables)
    products = len(fresh.batch.choice)
    covariance = "lrm.planning.design.products.common_tables.Side.covariance"
    assert not any(name.endswith("ProductReconstruction.apply") for name in calls)
    assert 0 < calls[covariance] <= tables * (products + tables)
    again = walk(lambda: (fresh.rows(0, fresh.shape[0]), fresh.row_squared_norms))
    assert not again.calls[covariance]  # they are kept


@pytest.mark.parametrize("limit", ["ARRAY", "MOST_WORK", "MOST_PAIRS"])
def test_limits_are_checked_before_anything_is_computed(reconstruction, limit, monkeypatch):
    strategy = ProductStrategy(reconstruction.combination.groups, 0.0, combined=True)
    monkeypatch.setattr(common_tables, limit, 1)
    monkeypatch.setattr(combine.Side, "table", None)  # nothing may be built
    with pytest.raises(WorkloadError):
        Combination(reconstruction.batch, strategy)
    assert find_combination(reconstruction.batch, strategy) is None


def test_a_combination_can_be_stopped(reconstruction):
    strategy = ProductStrategy(reconstruction.combination.groups, 0.0, combined=True)
    clock = Clock()
    clock.stop()
    with pytest.raises(StopSolver):
        Combination(reconstruction.batch, strategy, clock)


def test_a_combination_is_used_where_it_saves_the_stated_share():
    combined = optimise_products(WORKLOAD.queries.batch, effort="quick")
    assert combined.combined
    apart = ProductStrategy.combine(combined.groups)
    assert not apart.combined
    assert combined.error <= (1 - LEAST_GAIN) * apart.error


def test_more_effort_is_never_worse():
    """Without a time limit a normal search goes on from all that a quick one finds."""
    batch = families.products(
        [6, 4, 3, 1 << 17],
        [
            ["prefix", "total", "identity", "total"],
            [np.kron(np.eye(3), np.ones((1, 2))), "identity", "total", "total"],
            ["total", "prefix", "total", "total"],
            ["identity", "total", "total", "total"],
        ],
    ).queries.batch
    quick = optimise_products(batch, effort="quick")
    normal = optimise_products(batch, effort="normal")
    assert normal.error <= quick.error * (1 + 1e-12)
    assert math.isfinite(normal.error)


def test_queries_that_are_asked_again_are_answered_from_both_groups(reconstruction):
    again = ProductReconstruction.over(reconstruction.measured, WORKLOAD.products.batch)
    measurements = np.random.default_rng(5).normal(size=reconstruction.shape[1])
    answers = reconstruction.apply(measurements)
    np.testing.assert_allclose(again.apply(measurements), answers, atol=1e-9)
    one = families.products(SIZES, TERMS[2:]).products.batch
    np.testing.assert_allclose(
        ProductReconstruction.over(reconstruction.measured, one).apply(measurements),
        answers[-4:],
        atol=1e-9,
    )
