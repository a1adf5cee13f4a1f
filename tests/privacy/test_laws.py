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


def test_covariances_of_weighted_sums():
    law = NoiseLaw("laplace", 2.0)
    weights = np.array([[[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]])
    expected = law.variance * weights[0] @ weights[0].T
    np.testing.assert_allclose(law.covariance(weights)[0], expected)
    counts = np.array([[1.0, 3.0, 2.0]])
    expected = law.variance * (weights[0] * counts[0]) @ weights[0].T
    np.testing.assert_allclose(law.covariance(weights, counts)[0], expected)
