"""The laws of discrete noise, against sums over their probabilities."""

import math

import numpy as np
import pytest

from lrm.privacy.laws import LatticeLaw, NoiseLaw, on_lattices

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


@pytest.mark.parametrize("steps", [(7,), (7, 1, 40)])
def test_moments_on_lattices_are_sums_over_the_multiples(steps):
    law = LatticeLaw("laplace", 5.0, steps)
    k = np.arange(-300, 301)
    weights = [np.exp(-np.abs(k) * step / 5.0) for step in steps]
    expected = [
        float(w @ (step * k) ** 2 / w.sum()) for step, w in zip(steps, weights, strict=True)
    ]
    np.testing.assert_allclose(law.variances, expected, rtol=1e-9)
    one = np.array([[[2.0, 1.0, 0.0], [1.0, -1.0, 3.0]]])
    spread = np.diag(np.broadcast_to(expected, 3))
    np.testing.assert_allclose(law.covariance(one)[0], one[0] @ spread @ one[0].T, rtol=1e-9)
    assert law.fine == NoiseLaw("laplace", 5.0)
    assert not law.smooth
    if len(steps) == 1:
        assert (law.independent, law.ratios) == (True, None)
        assert law.variance == pytest.approx(expected[0])
        twice = law.covariance(one, np.array([[2.0, 2.0, 2.0]]))
        np.testing.assert_allclose(twice, 2 * law.covariance(one))
    else:
        assert not law.independent
        assert law.variance == pytest.approx(law.fine.variance)
        np.testing.assert_allclose(law.ratios * law.variance, expected, rtol=1e-9)


def test_noise_far_below_a_step_is_zero():
    assert LatticeLaw("laplace", 1.0, (10**4,)).variance == 0.0
    assert 0 < LatticeLaw("laplace", 1.0, (590,)).variance < 1e-200


@pytest.mark.parametrize(
    ("divisors", "steps"),
    [([50], (50,)), ([49], (1,)), ([50, 49], (50, 1)), ([60, 60], (60,)), ([60, 70], (60, 70))],
)
def test_lattices_are_used_from_half_of_the_scale_on(divisors, steps):
    assert on_lattices(NoiseLaw("laplace", 100.0), np.array(divisors)).steps == steps


def test_from_which_scale_on_a_law_is_as_good_as_continuous():
    assert NoiseLaw("gaussian", 1000.0).smooth
    assert not NoiseLaw("gaussian", 999.9).smooth
    assert NoiseLaw("gaussian", 5.0).ratios is None
