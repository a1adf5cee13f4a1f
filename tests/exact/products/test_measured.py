"""Integer strategies over products: exact, and equal to dense computation on small tables."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.errors import UnsupportedQuery
from lrm.planning.design.products.basis import MarginalBasis, largest_remainders
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.queries.maps.products.batch import cross_tabs, product_batch
from lrm.queries.maps.products.tabulation import tabulate
from product_batches import BATCHES, SOME, rounded


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", BATCHES)
def test_integers_agree_with_dense_computation(name, noise):
    batch = BATCHES[name]
    error, found = rounded(batch, noise)
    measured = found.measured
    L, W = measured.flat().real_matrix(), batch.dense()
    whole = np.rint(L * 2.0**measured.bits)
    norms = np.abs(whole).sum(axis=0), (whole**2).sum(axis=0)
    assert norms[0].max() <= measured.sensitivity
    assert norms[1].max() <= measured.squared_l2_sensitivity * (1 + 1e-12)
    if noise == "laplace":
        assert norms[0].max() == measured.sensitivity
    # B as an array, its norms, and W = B·L.
    B = found.matrix()
    np.testing.assert_allclose(B @ L, W, atol=1e-9)
    np.testing.assert_allclose((B**2).sum(axis=1), found.row_squared_norms, rtol=1e-8)
    np.testing.assert_allclose(found.rows(1, 2), B[1:2], rtol=1e-12, atol=1e-14)
    assert found.squared_norm == pytest.approx(found.row_squared_norms.sum(), rel=1e-9)
    least_squares = W @ np.linalg.pinv(L, 1e-12)
    if len(measured.groups) == 1:
        np.testing.assert_allclose(
            found.row_squared_norms, (least_squares**2).sum(axis=1), rtol=1e-7, atol=1e-12
        )
    # Rounding costs next to nothing.
    sensitivity = measured.real_sensitivity
    assert found.squared_norm * sensitivity**2 <= 1.001 * error
    assert found.relative_residual < 1e-9


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", BATCHES)
def test_measurements_without_noise_give_the_true_answers(name, noise):
    batch = BATCHES[name]
    measured = rounded(batch, noise)[1].measured
    found = rounded(batch, noise)[1]
    counts = np.random.default_rng(1).integers(0, 50, math.prod(batch.sizes))
    entries = tabulate(measured.tabulations, counts, batch.sizes)
    exact = measured.measure(entries)
    np.testing.assert_array_equal(exact, measured.measure_clamped(entries))
    np.testing.assert_allclose(
        exact, np.rint(measured.flat().real_matrix() * 2.0**measured.bits) @ counts, rtol=1e-12
    )
    answers = found.apply(exact * 2.0**-measured.bits)
    np.testing.assert_allclose(answers, batch.dense() @ counts, rtol=1e-9, atol=1e-8)
    assert measured.records(entries) <= counts.sum()
    assert len(exact) == measured.measurement_count
    assert len(entries) == measured.cell_count


def test_other_products_follow_from_the_same_measurements():
    batch = cross_tabs([4, 3, 2, 2, 2, 2], [1])
    found = rounded(batch, "laplace")[1]
    further = product_batch(batch.sizes, [["total", SOME, *["total"] * 4]])
    other = found.over(found.measured, further)
    counts = np.random.default_rng(2).integers(0, 50, 192)
    measurements = found.measured.measure(tabulate(found.measured.tabulations, counts, batch.sizes))
    answers = other.apply(measurements * 2.0**-found.measured.bits)
    np.testing.assert_allclose(answers, further.dense() @ counts, rtol=1e-9)
    with pytest.raises(UnsupportedQuery, match="no measured marginal"):
        found.over(found.measured, product_batch(batch.sizes, [["identity"] * 6]))


def test_importance_is_weighed_in_the_error():
    batch = replace(cross_tabs([4, 3, 2], [1, 2]), weights=np.array([1.0, 2, 3, 4, 5, 6]))
    found = rounded(batch, "laplace")[1]
    weights = np.repeat(batch.weights**2, batch.term_queries)
    assert found.weighted_squared_norm(batch) == pytest.approx(weights @ found.row_squared_norms)


def test_many_attributes_take_no_list_of_cells():
    batch = cross_tabs([10] * 30, [1])
    error, found = rounded(batch, "laplace")
    assert found.measured.cell_count < 10_000
    sensitivity = found.measured.sensitivity * 2.0**-found.measured.bits
    assert found.squared_norm * sensitivity**2 <= 1.001 * error


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 10))
def test_rounded_columns_have_one_sum(seed, bits):
    rng = np.random.default_rng(seed)
    basis = MarginalBasis.beside(rng.random((3, 4)) * rng.uniform(0, 50))
    found, q = basis.rounded(bits, lambda _: 1.0), 1 << bits
    assert np.all(found.dense().sum(axis=0) == q)
    assert np.linalg.matrix_rank(found.dense()) == 4
    np.testing.assert_allclose(found.times(np.eye(4)) * q, found.dense(), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=9), st.integers(1, 10_000))
def test_largest_remainders_sum_to_the_total(shares, total):
    shares = np.array(shares) / sum(shares)
    counts = largest_remainders(shares, total)
    assert counts.sum() == total
    assert np.all(np.abs(counts - shares * total) < 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_rounded_residuals_keep_their_null_vector(seed, n):
    rng = np.random.default_rng(seed)
    S = np.tri(n) + rng.uniform(0, 0.5, (n, n))
    S /= np.linalg.norm(S, axis=0)
    basis = ResidualBasis.of_gram(S.T @ S, np.linalg.inv(S.T @ S))
    found = basis.rounded(16, lambda one: 2.0 - (one.rows is not None))
    assert np.all(found.rows @ found.null == 0)
    assert found.peak < 2**17
    assert np.linalg.matrix_rank(found.rows) == n - 1


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        ([50, 30, 7], ["prefix", "prefix", "identity"]),
        ([8, 5, 3], ["prefix", "all-ranges", "prefix"]),
    ],
)
def test_rounding_residuals_costs_less_than_a_thousandth(sizes, kinds):
    batch = cross_tabs(sizes, range(1, 4), kinds)
    error, found = rounded(batch, "gaussian")
    sensitivity = found.measured.real_sensitivity
    assert found.squared_norm * sensitivity**2 <= 1.001 * error


def test_groupings_that_overlap_lose_little_by_rounding():
    """Four groups of values whose totals have only three dimensions."""
    overlapping = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0]])
    terms = [["prefix", overlapping], ["all-ranges", overlapping], ["prefix", "total"]]
    batch = product_batch([7, 4], terms)
    error, found = rounded(batch, "gaussian")
    sensitivity = found.measured.real_sensitivity
    assert found.squared_norm * sensitivity**2 <= 1.002 * error


def test_the_residual_of_the_identity_is_exact():
    basis = ResidualBasis(5)
    R = basis.apply(np.eye(5, dtype=np.int64))
    assert np.array_equal(R, 5 * np.eye(5, dtype=int) - 1)
    assert basis.column_norm(2) == (R**2).sum(axis=0).max()
    assert basis.column_norm(1) == np.abs(R).sum(axis=0).max()


def test_a_residual_basis_without_digits_is_refused():
    """Its inverse would have a negative trace, which a search takes for an error of 0."""
    null = np.array([1, 1, 1, 1])
    rows = np.array([[1 << 20, -(1 << 20), 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]])
    with pytest.raises(np.linalg.LinAlgError):
        ResidualBasis(4, rows, null).projector_times(np.eye(4))
