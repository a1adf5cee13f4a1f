"""The judges are judged: they pass right noise at their stated rate, and catch wrong noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from noise_statistics import (
    DiscreteGaussian,
    DiscreteLaplace,
    epsilon_lower_bound,
    fits_discrete_gaussian,
    fits_discrete_laplace,
    goodness_of_fit_p_value,
    laplace_score,
    mean_square_agrees,
)


def draw_laplace(rng, scale, size):
    """Difference of two geometric variables: exactly discrete Laplace, up to float64."""
    p = -np.expm1(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def draw_gaussian(rng, sigma, size):
    support = np.arange(-int(12 * sigma) - 1, int(12 * sigma) + 2)
    mass = np.exp(-0.5 * (support / sigma) ** 2)
    return rng.choice(support, size, p=mass / mass.sum())


@pytest.fixture
def rng():
    return np.random.default_rng(1978)


@pytest.mark.parametrize("law", [DiscreteLaplace(0.4), DiscreteLaplace(7), DiscreteGaussian(0.3)])
def test_distribution_functions_step_by_the_mass(law):
    k = np.arange(-60, 61)
    mass = np.diff(law.cdf(np.arange(-61, 61)))
    weight = np.exp(
        -np.abs(k) / law.scale if isinstance(law, DiscreteLaplace) else -0.5 * (k / 0.3) ** 2
    )
    assert mass / mass[60] == pytest.approx(weight, abs=1e-12)
    assert mass + law.cdf(k - 1) == pytest.approx(1 - law.cdf(-k - 1), abs=1e-12)


def test_wide_gaussian_joins_the_summed_one():
    k = np.array([-25_000, -100, 0, 9_999])
    summed, smooth = DiscreteGaussian(9_999.9999), DiscreteGaussian(10_000.0001)
    assert summed.cdf(k) == pytest.approx(smooth.cdf(k), abs=1e-7)


@pytest.mark.parametrize("scale", [0.2, 1.0, 12.5, 3e4, 1e12])
def test_right_laplace_noise_fits_and_wrong_scale_does_not(rng, scale):
    samples = draw_laplace(rng, scale, 100_000)
    assert fits_discrete_laplace(samples, scale)
    assert not fits_discrete_laplace(samples, 1.06 * scale)
    assert not fits_discrete_laplace(samples, 0.5 * scale)


@pytest.mark.parametrize("sigma", [0.5, 3.0, 1000.0])
def test_right_gaussian_noise_fits_and_wrong_noise_does_not(rng, sigma):
    samples = draw_gaussian(rng, sigma, 100_000)
    assert fits_discrete_gaussian(samples, sigma)
    assert not fits_discrete_gaussian(samples, 1.06 * sigma)
    assert not fits_discrete_laplace(samples, sigma / np.sqrt(2))


def test_rounded_shifted_and_even_noise_is_caught(rng):
    assert not fits_discrete_laplace(np.round(rng.laplace(0, 1, 100_000)).astype(int), 1.0)
    assert not fits_discrete_laplace(draw_laplace(rng, 20, 100_000) + 1, 20)
    assert not fits_discrete_laplace(2 * draw_laplace(rng, 10, 100_000), 20)
    with pytest.raises(TypeError, match="integer samples"):
        fits_discrete_laplace(rng.laplace(size=10), 1.0)


@pytest.mark.parametrize("scale", [0.7, 50.0])
def test_false_alarms_of_the_fit_keep_their_rate(rng, scale):
    """600 right samples at α = 1 %, and a limit that right ones exceed with rate 1e-6."""
    alarms = sum(
        goodness_of_fit_p_value(draw_laplace(rng, scale, 2000), DiscreteLaplace(scale)) <= 0.01
        for _ in range(600)
    )
    assert alarms <= stats.binom.isf(1e-6, 600, 0.01)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 1), (1.0, 3), (2.0, 100)])
def test_epsilon_bound_passes_right_noise_and_catches_half_the_scale(rng, epsilon, sensitivity):
    scale = sensitivity / epsilon

    def bound(actual):
        on_x, on_neighbour = (draw_laplace(rng, actual, 50_000) + s for s in (0, sensitivity))
        return epsilon_lower_bound(on_x, on_neighbour)

    right, halved = bound(scale), bound(scale / 2)
    assert 0.75 * epsilon <= right <= epsilon
    assert epsilon < halved <= 2 * epsilon


def test_epsilon_bound_of_vectors_through_their_score(rng):
    """A record that moves two measurements by 3 and −4 has sensitivity 7."""
    here, there = np.array([10, 20]), np.array([13, 16])

    def bound(scale):
        scores = (
            laplace_score(draw_laplace(rng, scale, (50_000, 2)) + mean, here, there)
            for mean in (here, there)
        )
        return epsilon_lower_bound(*scores)

    assert bound(7.0) <= 1.0 < bound(3.5)


def test_epsilon_bound_of_different_supports_is_large_and_of_equal_outputs_zero(rng):
    zeros, ones = np.zeros(20_000), np.ones(20_000)
    assert epsilon_lower_bound(zeros, ones) > 6
    assert epsilon_lower_bound(ones, ones) == 0.0


def test_false_alarms_of_the_epsilon_bound_keep_their_rate(rng):
    """200 right mechanisms at a false-alarm rate of 20 %, where the true ε is reached by tails."""
    alarms = sum(
        epsilon_lower_bound(draw_laplace(rng, 2, 2000), draw_laplace(rng, 2, 2000) + 1, 0.2) > 0.5
        for _ in range(200)
    )
    assert alarms <= stats.binom.isf(1e-6, 200, 0.2)


@pytest.fixture
def reconstruction(rng):
    B = rng.normal(size=(12, 9))
    B[0], B[1] = np.eye(9)[0], 0.0  # a single term, the heaviest tail, and a query without noise
    return B


def test_mean_squares_of_right_noise_agree_and_of_wrong_noise_do_not(rng, reconstruction):
    expected = 2 * np.sum(reconstruction**2, axis=1)
    errors = rng.laplace(size=(20_000, 9)) @ reconstruction.T
    assert mean_square_agrees(errors, expected)
    assert not mean_square_agrees(np.sqrt(0.8) * errors, expected)
    one_wrong = errors.copy()
    one_wrong[:, 5] *= 1.1
    assert not mean_square_agrees(one_wrong, expected)
    assert not mean_square_agrees(errors + 1e-9, expected), "a query without noise must be exact"


def test_the_total_is_judged_more_sharply_than_each_query(rng):
    """100 independent queries, all 5 % too noisy: none stands out alone, their total does."""
    errors = rng.laplace(size=(5000, 100)) * np.sqrt(1.05)
    assert mean_square_agrees(errors[:, :1], np.full(1, 2.0))
    assert not mean_square_agrees(errors, np.full(100, 2.0))


def test_false_alarms_of_the_mean_square_keep_their_rate(rng):
    """400 right batches of the heaviest tails at α = 5 %."""
    alarms = sum(
        not mean_square_agrees(rng.laplace(size=(2000, 3)), np.full(3, 2.0), 0.05)
        for _ in range(400)
    )
    assert alarms <= stats.binom.isf(1e-6, 400, 0.05)


def test_all_noiseless_and_too_few_trials(rng):
    assert mean_square_agrees(np.zeros((2000, 2)), np.zeros(2))
    with pytest.raises(ValueError, match=r"2,000 trials"):
        mean_square_agrees(rng.laplace(size=(100, 2)), np.full(2, 2.0))
