"""No weighted sum of Laplace variables needs a wider interval than the one for its norm."""

import numpy as np
import pytest

from lrm.planning.accuracy.noise_sums import (
    gaussian_half_widths,
    laplace_sum_half_widths,
    widest_half_width,
)

CONFIDENCES = [0.01, 0.3, 0.5, 0.8, 0.9, 0.911, 0.92, 0.95, 0.99, 0.999, 1 - 1e-9]


def sums(seed):
    """Rows of norm 1: from one dominating weight to many equal ones."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(3000, 12)) ** rng.uniform(0.05, 8, (3000, 1))
    weights[::3, rng.integers(2, 12) :] = 0
    equal = np.tri(12)
    weights = np.vstack([weights, equal])
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_no_sum_is_wider(confidence):
    widest = widest_half_width(confidence)
    found = laplace_sum_half_widths(sums(0), confidence).max()
    normal = gaussian_half_widths(np.array([np.sqrt(2)]), confidence)[0]
    assert max(found, normal) <= widest
    assert widest <= 1.05 * max(found, normal)


def test_at_usual_confidences_it_is_close_to_a_single_variable():
    assert widest_half_width(0.95) < 1.0182 * -np.log(0.05)
    assert widest_half_width(0.99) < 1.0014 * -np.log(0.01)


def test_multiplicities_are_repeated_weights():
    rng = np.random.default_rng(1)
    for length in (3, 60, 150):
        weights = rng.exponential(size=(4, length)) ** 3
        counts = rng.integers(0, 5, (4, length)).astype(float)
        counts[:, np.argmax(weights.max(axis=0))] = 2
        repeated = [np.repeat(w, c.astype(int)) for w, c in zip(weights, counts, strict=True)]
        for confidence in (0.2, 0.95):
            expected = [laplace_sum_half_widths(row[None], confidence)[0] for row in repeated]
            found = laplace_sum_half_widths(weights * (counts > 0), confidence, counts)
            np.testing.assert_allclose(found, expected, rtol=1e-7)
