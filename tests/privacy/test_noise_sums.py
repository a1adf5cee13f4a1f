"""Half-widths of Laplace sums: closed forms, laws of the distribution, and hostile inputs."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.special import gammaincc, ndtr

from lrm.errors import ConvergenceError, UsageError
from lrm.planning.accuracy import laplace_cgf
from lrm.planning.accuracy.noise_sums import (
    gaussian_half_widths,
    laplace_sum_half_widths,
)
from noise_survival import laplace_sum_survival

CONFIDENCES = [1e-12, 1e-3, 0.3, 0.4999, 0.5, 0.8, 0.95, 0.999, 1 - 1e-9, 1 - 1e-15]

weights = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 7)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False) | st.floats(-2, 2) | st.just(0.0),
)
confidences = st.floats(1e-6, 1 - 1e-9)


def survival_of_equal_terms(count: int, h: float) -> float:
    """P(|Z_1 + … + Z_n| > h), from the race between the two Gamma(n) halves of the sum."""
    used = np.arange(count)
    return 2 * float(np.sum(stats.nbinom.pmf(used, count, 0.5) * gammaincc(count - used, h)))


def survival_of_distinct_terms(terms: list[Fraction], h: Fraction) -> float:
    """P(|Σ a_j Z_j| > h) = Σ_j exp(−h/a_j)·Π_{i≠j} a_j²/(a_j² − a_i²), in exact arithmetic."""
    with localcontext(prec=120):
        total = Decimal(0)
        for a in terms:
            share = Fraction(1)
            for other in terms:
                if other != a:
                    share *= a**2 / (a**2 - other**2)
            exponent = -h / a
            decay = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
            total += Decimal(share.numerator) / Decimal(share.denominator) * decay
        return float(total)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_single_term_is_a_laplace_quantile(confidence):
    h = laplace_sum_half_widths(np.array([[0.0, -2.5, 0.0]]), confidence)
    assert h == pytest.approx(-2.5 * np.log1p(-confidence), rel=1e-8)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 95, 97, 400])
@pytest.mark.parametrize("deviations", [1e-3, 0.5, 1, 3, 6])
def test_equal_terms_agree_with_the_gamma_race(count, deviations):
    h = deviations * np.sqrt(2 * count)
    exact = survival_of_equal_terms(count, h)
    assert laplace_sum_survival(np.ones((1, count)), [h]) == pytest.approx(exact, rel=1e-7)
    if exact < 1 - 1e-9:
        assert laplace_sum_half_widths(np.ones((1, count)), 1 - exact) == pytest.approx(h, rel=1e-6)


@pytest.mark.parametrize(
    "terms",
    [
        ["1", "0.999"],
        ["1", "1/3"],
        ["1", "0.01", "0.0001"],
        [f"1/{k}" for k in range(1, 31)],
        [f"{k}/40" for k in range(20, 41)],
    ],
)
@pytest.mark.parametrize("h", ["1/100", "1", "5", "30", "300"])
def test_distinct_terms_agree_with_exact_partial_fractions(terms, h):
    fractions = [Fraction(term) for term in terms]
    exact = survival_of_distinct_terms(fractions, Fraction(h))
    row = np.array([[float(a) for a in fractions]])
    assert laplace_sum_survival(row, [float(Fraction(h))]) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("h", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_one_large_and_many_tiny_terms_are_laplace_plus_normal(h, sigma):
    """The tiny terms have excess kurtosis 3/20000: a normal in their place is off by 1e-4."""
    row = np.full((1, 20_001), sigma / np.sqrt(2 * 20_000))
    row[0, 7] = 1.0
    below, above = ndtr(h / sigma - sigma), ndtr(-h / sigma - sigma)
    bent = np.exp(sigma**2 / 2) * (np.exp(-h) * below - np.exp(h) * above)
    assert laplace_sum_survival(row, [h]) == pytest.approx(2 * ndtr(-h / sigma) + bent, rel=2e-4)


@pytest.mark.parametrize("absent", [9.0, 1e6])
def test_weights_that_never_occur_change_nothing(absent):
    """One that was the largest of its row set its scale: widths were of another row, or none."""
    counted = np.array([[absent, 1.0, 2.0], [1.0, absent, 0.0]])
    counts = np.array([[0.0, 3.0, 2.0], [400.0, 0.0, 5.0]])
    whole = laplace_sum_half_widths(counted, 0.95, counts)
    present = np.where(counts > 0, counted, 0.0)
    assert whole == pytest.approx(laplace_sum_half_widths(present, 0.95, counts), rel=1e-9)
    written_out = laplace_sum_half_widths(np.array([[1.0, 1, 1, 2, 2]]), 0.95)
    assert whole[0] == pytest.approx(written_out[0], rel=1e-9)


def test_many_terms_tend_to_the_normal_law_and_few_do_not():
    many = np.full((1, 50_000), 1 / np.sqrt(100_000))
    for confidence in (0.05, 0.5, 0.95, 0.9999):
        normal = gaussian_half_widths(np.array([1.0]), confidence)
        assert laplace_sum_half_widths(many, confidence) == pytest.approx(normal, rel=1e-3)
    few = laplace_sum_half_widths(np.array([[1.0, 1.0]]) / 2, 1 - 1e-6)
    assert few > 1.5 * gaussian_half_widths(np.array([1.0]), 1 - 1e-6)


def test_coverage_of_simulated_sums():
    """Coverage is binomial; each of 12 two-sided checks has a false-alarm rate of 1e-8."""
    rng = np.random.default_rng(20120704)
    rows = np.array([[5, 1, 0, 0.1], [1, 1, 1, 1], [3, -2, 1, 0], [0, 0, 0, 2]])
    trials = 200_000
    sums = np.abs(rng.laplace(size=(trials, 4)) @ rows.T)
    for confidence in (0.2, 0.9, 0.999):
        inside = np.sum(sums <= laplace_sum_half_widths(rows, confidence), axis=0)
        law = stats.binom(trials, confidence)
        assert np.all((inside >= law.ppf(5e-9)) & (inside <= law.isf(5e-9)))


@given(weights, confidences, st.floats(1e-100, 1e100), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_scale_sign_and_order_of_weights(rows, confidence, factor, random):
    h = laplace_sum_half_widths(rows, confidence)
    order = random.sample(range(rows.shape[1]), rows.shape[1])
    assert laplace_sum_half_widths(-rows[:, order], confidence) == pytest.approx(h, rel=1e-9)
    assert laplace_sum_half_widths(factor * rows, confidence) == pytest.approx(factor * h, rel=1e-7)


@given(weights, confidences)
@settings(max_examples=40, deadline=None)
def test_survival_is_the_inverse(rows, confidence):
    h = laplace_sum_half_widths(rows, confidence)
    expected = np.where(rows.any(axis=1), 1 - confidence, 0.0)
    assert laplace_sum_survival(rows, h) == pytest.approx(expected, rel=1e-7)


@given(weights, confidences, confidences)
@settings(max_examples=40, deadline=None)
def test_wider_for_more_confidence_and_for_more_noise(rows, one, other):
    low, high = sorted([one, other])
    narrow, wide = (laplace_sum_half_widths(rows, c) for c in (low, high))
    assert np.all(narrow <= wide * (1 + 1e-8))
    # A symmetric unimodal sum is less concentrated than each part of it (Anderson 1955).
    part = laplace_sum_half_widths(rows[:, 1:], high)
    assert np.all(part <= wide * (1 + 1e-8))


def test_confidence_around_one_half_is_continuous():
    rows = np.random.default_rng(1).normal(size=(20, 9))
    below, above = (laplace_sum_half_widths(rows, c) for c in (0.5 - 1e-12, 0.5))
    assert below == pytest.approx(above, rel=1e-8)


@pytest.fixture
def long_rows():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(30, 150)) * np.exp(2 * rng.normal(size=(30, 150)))
    rows[rng.random(rows.shape) < 0.3] = 0.0
    rows[3] = 0.0
    return rows


@pytest.mark.parametrize("confidence", [0.01, 0.95, 1 - 1e-9])
def test_rows_have_the_half_widths_that_they_have_alone(long_rows, confidence):
    h = laplace_sum_half_widths(long_rows, confidence)
    alone = [laplace_sum_half_widths(row[None], confidence)[0] for row in long_rows]
    assert h == pytest.approx(alone, rel=1e-8)


@pytest.mark.parametrize("size", [0.999, 50.0])
def test_power_sums_stand_for_the_weights_of_long_rows(long_rows, size):
    """Within the radius of convergence of every row, and beyond it."""
    rows = long_rows[long_rows.any(axis=1)]
    sums = laplace_cgf.LaplaceSums.from_weights(rows)
    z = size * float(sums.radius.min()) * np.exp(1j * np.linspace(0.3, 3.0, len(rows)))
    squares = np.square(rows / np.abs(rows).max(axis=1, keepdims=True))
    expected = -np.log(1.0 - squares * z[:, None]).sum(axis=1)
    assert np.exp(sums.log_mgf(z) - expected) == pytest.approx(1.0, rel=1e-9)


def test_a_step_that_is_too_coarse_is_refined(long_rows, monkeypatch):
    h = laplace_sum_half_widths(long_rows, 0.95)
    monkeypatch.setattr(laplace_cgf, "STEP", 1.0)
    assert laplace_sum_half_widths(long_rows, 0.95) == pytest.approx(h, rel=1e-5)
    monkeypatch.setattr(laplace_cgf, "REFINEMENTS", 1)
    with pytest.raises(ConvergenceError, match="settle"):
        laplace_sum_half_widths(long_rows, 0.95)


def test_empty_and_zero_weights():
    assert laplace_sum_half_widths(np.zeros((2, 3)), 0.9).tolist() == [0.0, 0.0]
    assert laplace_sum_half_widths(np.zeros((2, 0)), 0.9).tolist() == [0.0, 0.0]
    assert laplace_sum_half_widths(np.zeros((0, 3)), 0.9).shape == (0,)
    survival = laplace_sum_survival(np.array([[0.0], [1.0], [1.0]]), [0, 0, np.inf])
    assert survival == pytest.approx([0, 1, 0], abs=1e-9)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 95, float("nan")])
def test_confidence_outside_zero_and_one_is_refused(confidence):
    with pytest.raises(UsageError, match="between 0 and 1"):
        laplace_sum_half_widths(np.ones((1, 1)), confidence)
    with pytest.raises(UsageError, match="between 0 and 1"):
        gaussian_half_widths(np.array([1.0]), confidence)


@given(st.floats(0, 1e9), st.floats(1e-9, 1 - 1e-9))
def test_gaussian_half_widths_invert_the_normal_law(deviation, confidence):
    h = gaussian_half_widths(np.array([deviation, 1.0]), confidence)
    assert 1 - 2 * ndtr(-h[1]) == pytest.approx(confidence, rel=1e-6)
    assert h[0] == deviation * h[1]
