"""Bounds hold on both sides of every strategy that can be written down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.linalg import hadamard
from scipy.spatial import ConvexHull

from lrm.errors import UsageError
from lrm.planning.design.cells import numerical_rank
from lrm.planning.solvers.bounds import Spectrum, spectrum

workloads = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=st.integers(-3, 3).map(float) | st.floats(-2, 2, width=16),
)


def spectrum_of(workload: np.ndarray) -> Spectrum:
    return spectrum(np.linalg.svd(workload, compute_uv=False), workload.shape)


def squared_error(B: np.ndarray, L: np.ndarray) -> float:
    """‖B‖_F²·Δ(L)², half the expected total squared error at ε = 1."""
    return float(np.sum(B**2) * np.abs(L).sum(axis=0).max(initial=0.0) ** 2)


def simple_strategies(W: np.ndarray):
    """Noise on data, noise on results, and the paper's own construction from the SVD."""
    m, n = W.shape
    yield W, np.eye(n)
    yield np.eye(m), W
    U, values, V = np.linalg.svd(W, full_matrices=False)
    r = numerical_rank(values, W.shape)
    yield np.sqrt(r) * U[:, :r] * values[:r], V[:r] / np.sqrt(max(r, 1))


@given(workloads)
@settings(deadline=None)
def test_no_strategy_is_below_the_lower_bounds(W):
    bounds = spectrum_of(W)
    for B, L in simple_strategies(W):
        error = 2 * squared_error(B, L)
        assert bounds.lower_bound <= error * (1 + 1e-9)
        assert bounds.any_mechanism_lower_bound <= error * (1 + 1e-9)


@given(workloads, st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_random_exact_decompositions_are_above_the_lower_bound(W, seed):
    """For any L of full column rank, W = (W·L⁺)·L; the bound must hold for its L2 norms too."""
    n = W.shape[1]
    L = np.random.default_rng(seed).normal(size=(n + 2, n))
    B = W @ np.linalg.pinv(L)
    error = np.sum(B**2) * np.max(np.sum(L**2, axis=0))
    assert spectrum_of(W).lower_bound <= 2 * error * (1 + 1e-9)


@given(workloads)
@settings(deadline=None)
def test_the_construction_from_the_svd_stays_below_the_upper_bound(W):
    *_, (B, L) = simple_strategies(W)
    assert np.abs(L).sum(axis=0).max() <= 1 + 1e-9
    bounds = spectrum_of(W)
    assert 2 * squared_error(B, L) <= bounds.upper_bound * (1 + 1e-9)
    assert bounds.lower_bound <= bounds.upper_bound * (1 + 1e-9)


def test_upper_bound_is_attained_where_the_singular_vectors_are_flat():
    V = hadamard(8) / np.sqrt(8)
    values = np.array([9.0, 5, 4, 3, 2, 2, 1, 0.5])
    B, L = np.sqrt(8) * np.diag(values), V / np.sqrt(8)
    assert np.allclose(B @ L, values[:, None] * V)
    assert 2 * squared_error(B, L) == pytest.approx(Spectrum(values, 8).upper_bound)


@pytest.mark.parametrize("n", [1, 5, 64])
def test_lower_bound_is_exact_for_the_identity_and_for_the_total(n):
    assert spectrum_of(np.eye(n)).lower_bound == pytest.approx(2 * n)
    assert spectrum_of(np.ones((1, n))).lower_bound == pytest.approx(2)


@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_the_printed_volume_bound_fails_for_the_total_and_the_repaired_one_does_not(n):
    """Noise on results answers the total with an expected squared error of 2, whatever n is."""
    total = Spectrum(np.array([np.sqrt(n)]), n)
    assert total.volume_bound_as_printed == pytest.approx(4 * n)
    assert total.any_mechanism_lower_bound < 2


@pytest.mark.parametrize(("rank", "n"), [(2, 2), (2, 7), (3, 3), (3, 9), (4, 6)])
def test_repaired_volume_is_below_the_volume_of_the_polytope(rank, n):
    """Turned round, the formula gives the volume it assumed; Qhull measures the real one."""
    rng = np.random.default_rng(rank * n)
    W = rng.normal(size=(rank, n))
    real = ConvexHull(np.hstack([W, -W]).T).volume
    ball = np.pi ** (rank / 2) / {2: 1.0, 3: 0.75 * np.sqrt(np.pi), 4: 2.0}[rank]
    bound = spectrum_of(W).any_mechanism_lower_bound
    assumed = 2 * ball * (bound * 8 * np.e**2 / rank**2) ** (rank / 2)
    assert assumed <= real * (1 + 1e-9)
    if rank == n:
        assert assumed == pytest.approx(real)


def test_no_overflow_at_high_rank():
    bounds = Spectrum(np.linspace(1e3, 1e5, 5000), 20_000)
    assert 0 < bounds.volume_bound_as_printed < np.inf
    assert 0 < bounds.any_mechanism_lower_bound < bounds.lower_bound


@given(hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(0.01, 100)), st.floats(0.1, 10))
def test_bounds_scale_with_the_square_of_the_workload(values, factor):
    one, other = (spectrum(c * values, (9, 9)) for c in (1.0, factor))
    names = "lower_bound", "upper_bound", "any_mechanism_lower_bound", "volume_bound_as_printed"
    for name in names:
        assert getattr(other, name) == pytest.approx(factor**2 * getattr(one, name))
    assert other.condition == pytest.approx(one.condition)


def test_a_workload_of_zeros_has_rank_zero_and_needs_no_noise():
    zero = spectrum_of(np.zeros((3, 4)))
    assert (zero.rank, zero.condition, zero.columns) == (0, 1.0, 4)
    assert zero.lower_bound == zero.upper_bound == zero.any_mechanism_lower_bound == 0.0
    assert zero.volume_bound_as_printed == 0.0
    assert Spectrum(np.zeros(0), 0).lower_bound == 0.0


@given(workloads)
@settings(deadline=None)
def test_rank_agrees_with_numpy(W):
    values = np.linalg.svd(W, compute_uv=False)
    assert numerical_rank(values, W.shape) == np.linalg.matrix_rank(W)


def test_the_record_is_sorted_read_only_and_checked():
    record = Spectrum(np.array([1.0, 3.0]), 2)
    assert record.singular_values.tolist() == [3.0, 1.0]
    assert record.condition == 3.0
    with pytest.raises(ValueError, match="read-only"):
        record.singular_values[0] = 1.0
    with pytest.raises(UsageError, match="positive"):
        Spectrum(np.array([1.0, 0.0]), 2)
    with pytest.raises(UsageError, match="2 cells"):
        Spectrum(np.ones(3), 2)
    for wrong in ([-1.0], [np.nan], [[1.0]]):
        with pytest.raises(UsageError, match="finite singular values"):
            spectrum(wrong, (1, 1))
