"""The (ε, δ) of Gaussian noise: the proved formula beside sums over all outcomes."""

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from lrm.errors import BudgetError
from lrm.privacy import gaussian_profile
from lrm.privacy.budget import ApproxDP, rho_for, zcdp_of
from lrm.privacy.gaussian_profile import SPREAD, delta_bound, keeps, largest_rho
from lrm.privacy.noise import calibrate_gaussian, check_gaussian, gaussian_scale


def decades(low, high):
    return st.floats(low, high).map(lambda power: Fraction(repr(10.0**power)))


def delta_of_outcomes(scale, shift, epsilon):
    """Σ max(0, P(k) − e^ε·Q(k)) over all integer vectors k of up to three dimensions.

    But for those beyond 9 standard deviations, of probability 1e-18.
    """
    reach = math.ceil(9 * scale + max(map(abs, shift)))
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-(k**2) / (2 * scale**2))
    mass /= mass.sum()
    first = second = np.ones(1)
    for step in shift:
        moved = np.exp(-((k - step) ** 2) / (2 * scale**2))
        first = np.multiply.outer(first, mass)
        second = np.multiply.outer(second, moved / moved.sum())
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize(
    ("rho", "epsilon"), [("1/2", "1"), ("1/50", "1"), ("1e-6", "1e-2"), ("3", "1/2"), ("8", "2")]
)
def test_rounding_errors_are_added_to_the_bound(monkeypatch, rho, epsilon):
    """The same formula with 140 digits and nothing added is a little below."""
    bound = delta_bound(Fraction(rho), Fraction(epsilon))
    monkeypatch.setattr(gaussian_profile, "_CONTEXT", Context(prec=140))
    monkeypatch.setattr(gaussian_profile, "_ROUNDING", Decimal(0))
    exact = delta_bound(Fraction(rho), Fraction(epsilon))
    assert exact < bound < exact * (1 + Fraction(1, 10**40))


def test_a_limit_that_keeps_the_guarantee_is_nearly_reached_and_not_passed():
    known, most = Fraction(1, 50), Fraction(1, 45)  # 0.028 would be kept
    found = largest_rho(Fraction(1), Fraction(1, 10**6), known, most)
    assert most * (1 - Fraction(1, 10**11)) < found <= most


@given(decades(-8, 3), decades(-4, 2))
@settings(max_examples=200)
def test_the_bound_is_the_formula_for_continuous_noise(rho, epsilon):
    """Against SciPy's normal distribution, where that has digits."""
    mu, e = math.sqrt(2 * float(rho)), float(epsilon)
    near = log_ndtr(mu / 2 - e / mu)
    far = e + log_ndtr(-mu / 2 - e / mu)
    if near < -650:
        return
    value = math.exp(near) * -math.expm1(far - near)
    lost = 1e-12 * math.exp(near) * (1 + e) + 1e-300
    assert float(delta_bound(rho, epsilon)) == pytest.approx(value, rel=1e-9, abs=lost)


@pytest.mark.parametrize("squared", [1, 4, 9, 50])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**6)])
def test_no_shift_of_discrete_noise_has_a_larger_delta(squared, epsilon, delta):
    """All integer shifts of the given norm in one and two dimensions, some in three.

    Which of two coordinates moves by how much does not matter: their noise is alike.
    """
    scale = gaussian_scale(squared, ApproxDP(epsilon, delta))
    size = math.isqrt(squared)
    shifts = [(size,)]
    shifts += [
        s
        for s in itertools.combinations_with_replacement(range(size + 1), 2)
        if 0 < s[0] ** 2 + s[1] ** 2 <= squared
    ]
    if scale < 4:
        shifts += [(1, 1, 1)] if squared >= 3 else []
    largest = max(delta_of_outcomes(scale, shift, float(epsilon)) for shift in shifts)
    assert largest <= float(delta) * (1 + 1e-9)


def delta_by_convolution(scale, steps, epsilon):
    """The δ of discrete noise where ``steps`` says how many coordinates move by how much.

    The privacy loss is ``(Δ² − 2S)/(2σ²)`` with the integer S = Σ v_j·k_j, whose law is the
    convolution of those of all coordinates, by FFT.
    """
    norm = sum(count * step**2 for step, count in steps.items())
    size = 1 << math.ceil(math.log2(26 * scale * math.sqrt(norm) + 2))
    k = np.arange(-math.ceil(13 * scale), math.ceil(13 * scale) + 1)
    mass = np.exp(-(k**2) / (2 * scale**2))
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    for step, count in steps.items():
        law = np.bincount(k * step % size, mass / mass.sum(), size)
        spectrum *= np.fft.rfft(law) ** count
    sums = np.fft.fftfreq(size, 1 / size)
    losses = (norm - 2 * sums) / (2 * scale**2)
    gains = -np.expm1(np.minimum(epsilon - losses, 0.0))
    return float(np.fft.irfft(spectrum, size) @ gains)


@pytest.mark.parametrize("steps", [{1: 10_000}, {1: 1, 100: 1}, {1: 500, 7: 20, 40: 1}])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-3), (1, 1e-6), (5, 1e-6), (5, 1e-10)])
def test_many_coordinates_and_unequal_shifts_keep_delta(steps, epsilon, delta):
    """An accountant of its own: exact losses of discrete noise, convolved numerically."""
    squared = sum(count * step**2 for step, count in steps.items())
    scale = gaussian_scale(squared, ApproxDP(Fraction(epsilon), Fraction(repr(delta))))
    assert 0.98 < delta_by_convolution(scale, steps, epsilon) / delta < 1.0


def test_nearly_all_of_delta_is_used():
    """With little room for rounding to integers, an attacker comes within 1 % of δ."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    scale = gaussian_scale(100**2, ApproxDP(epsilon, delta))
    assert delta_of_outcomes(scale, (100,), 1.0) == pytest.approx(float(delta), rel=0.01)


@given(decades(-3, 2), decades(-30, -1))
@settings(max_examples=50)
def test_noise_is_below_that_of_the_conversion_and_as_small_as_can_be_proved(epsilon, delta):
    try:
        rho = zcdp_of(ApproxDP(epsilon, delta)).rho
    except BudgetError:
        return
    assert rho >= rho_for(epsilon, delta)
    assert keeps(rho, epsilon, delta)
    assert not keeps(rho * (1 + Fraction(1, 10**10)), epsilon, delta)


def test_a_tenth_less_variance_at_a_usual_delta():
    promise = ApproxDP(Fraction(1), Fraction(1, 10**6))
    ratio = gaussian_scale(1 << 40, promise) ** 2 * 2 * float(rho_for(*_amounts(promise))) / 2**40
    assert ratio == pytest.approx(0.869, abs=0.002)


def test_on_few_integers_the_conversion_is_kept():
    """σ² + 4 would be more than the conversion asks for."""
    promise = ApproxDP(Fraction(1), Fraction(1, 10**6))
    assert gaussian_scale(1, promise) ** 2 == pytest.approx(
        1 / (2 * float(rho_for(*_amounts(promise))))
    )


@pytest.mark.parametrize("squared", [1, 10**3, 10**12])
def test_scales_below_what_is_proved_are_refused(squared):
    promise = ApproxDP(Fraction(1, 2), Fraction(1, 10**9))
    noise = calibrate_gaussian(squared, promise)
    check_gaussian(squared, promise, noise.scale, noise.loss)
    assert noise.loss <= zcdp_of(promise).rho
    implied = squared / (2 * rho_for(*_amounts(promise)))
    older = math.sqrt(implied) * (1 + 2**-50)
    check_gaussian(squared, promise, older, Fraction(squared) / (2 * Fraction(older) ** 2))
    for scale in (noise.scale * (1 - 1e-9), older * (1 + 1e-9)):
        loss = Fraction(squared) / (2 * Fraction(scale) ** 2)
        with pytest.raises(BudgetError):
            check_gaussian(squared, promise, scale, loss)


def test_a_rounded_gaussian_is_the_discrete_one():
    """The step of the proof: P and P' differ by at most the factor κ, computed in float64."""
    for r, allowed in ((1.0, 1.1e-8), (0.7, 2.6e-4)):
        s = 3.0
        sigma = math.hypot(s, r)
        x = np.linspace(-40, 40, 160_001)
        k = np.arange(-30, 31)
        kernel = np.exp(-((x[:, None] - np.arange(-60, 61)) ** 2) / (2 * r * r))
        theta = kernel.sum(axis=1)
        density = np.exp(-(x**2) / (2 * s * s)) / (s * math.sqrt(2 * math.pi))
        near = np.exp(-((x[:, None] - k) ** 2) / (2 * r * r))
        rounded = (density / theta) @ near * (x[1] - x[0])
        discrete = np.exp(-(k**2) / (2 * sigma**2))
        discrete /= np.exp(-(np.arange(-200, 201) ** 2) / (2 * sigma**2)).sum()
        middle = np.abs(k) < 4 * sigma
        ratios = discrete[middle] / rounded[middle]
        eta = 2 * math.exp(-2 * math.pi**2 * r * r)
        assert np.abs(np.log(ratios)).max() <= math.log((1 + eta) / (1 - eta)) + 1e-9
        assert math.log((1 + eta) / (1 - eta)) <= 4 * allowed
    assert 2 * math.exp(-2 * math.pi**2 * SPREAD) < 1.1e-34


def _amounts(promise):
    return promise.epsilon, promise.delta
