"""The laws of discrete noise, against sums over their probabilities."""

import math

import numpy as np
import pytest

from lrm.privacy.laws import NoiseLaw

SCALES = [0.3, 1.0, 4.5, 20.0]


def probabilities(law):
    """The integers that matter, and their probabilities from the definition."""
    k = np.arange(-math.ceil(60 * law.scale) - 60, math.ceil(60 * law.scale) + 61)
    exponent = np.abs(k) / law.scale if law.noise == "laplace" else 0.5 * (k / law.scale) ** 2
    weight = np.exp(-exponent)
    return k, weight / weight.sum()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SCALES)
def test_variance_and_deviation(noise, scale):
    law = NoiseLaw(noise, scale)
    k, p = probabilities(law)
    assert law.variance == pytest.approx(float(p @ k**2), rel=1e-9)
    assert law.deviation == pytest.approx(math.sqrt(law.variance))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SCALES)
def test_the_characteristic_function(noise, scale):
    law = NoiseLaw(noise, scale)
    k, p = probabilities(law)
    angles = np.array([0.0, 0.01, 0.1, 0.5, 1.0]) / max(scale, 1.0)
    expected = np.log([float(p @ np.cos(u * k)) for u in angles])
    np.testing.assert_allclose(law.log_characteristic(angles), expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_the_moment_generating_function_of_laplace_noise(scale):
    law = NoiseLaw("laplace", scale)
    k, p = probabilities(law)
    t = np.array([-0.5, 0.0, 0.1, 0.5]) / scale
    expected = np.log([float(p @ np.exp(point * k)) for point in t])
    np.testing.assert_allclose(law.log_mgf(t), expected, rtol=1e-7, atol=1e-12)
    assert np.isinf(law.log_mgf(np.array([-1.0, 1.0, 1.5]) / scale)).all()


@pytest.mark.parametrize("scale", SCALES)
def test_the_moment_generating_function_of_gaussian_noise_is_bounded(scale):
    law = NoiseLaw("gaussian", scale)
    k, p = probabilities(law)
    t = np.array([-2.0, 0.0, 0.3, 2.0]) / scale
    exact = np.log([float(p @ np.exp(point * k)) for point in t])
    bound = law.log_mgf(t)
    assert (bound >= exact - 1e-12).all()
    np.testing.assert_allclose(bound, 0.5 * (scale * t) ** 2)


def test_covariances_of_weighted_sums():
    law = NoiseLaw("laplace", 2.0)
    weights = np.array([[[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]])
    expected = law.variance * weights[0] @ weights[0].T
    np.testing.assert_allclose(law.covariance(weights)[0], expected)
    counts = np.array([[1.0, 3.0, 2.0]])
    expected = law.variance * (weights[0] * counts[0]) @ weights[0].T
    np.testing.assert_allclose(law.covariance(weights, counts)[0], expected)
