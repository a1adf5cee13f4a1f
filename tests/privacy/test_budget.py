"""Laws of promises: conversions never claim more privacy than there is."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from lrm.errors import BudgetError
from lrm.privacy.amounts import LEAST_AMOUNT, MOST_AMOUNT
from lrm.privacy.budget import (
    LEAST_RHO,
    MOST_RHO,
    ZCDP,
    ApproxDP,
    PureDP,
    epsilon_for,
    parse_delta,
    rho_for,
    rho_of_pure,
)

dp.enable_features("contrib")


def decades(low, high):
    """Numbers spread evenly over the powers of ten from ``low`` to ``high``."""
    return st.floats(low, high).map(lambda power: Fraction(repr(10.0**power)))


rhos = decades(-9, 3)
epsilons = decades(-3, 3)
deltas = decades(-30, -0.1)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=100, max_denominator=10**9))
def test_pure_costs_half_its_square_exactly(epsilon):
    assert rho_of_pure(PureDP(epsilon)).rho * 2 == epsilon * epsilon


@given(rhos, deltas)
def test_epsilon_is_a_valid_and_nearly_best_choice(rho, delta):
    """No alpha of a grid does better; the classical bound of Bun and Steinke does worse."""
    epsilon = float(epsilon_for(rho, delta))
    r, d = float(rho), float(delta)
    grid = [1 + 10 ** (k / 50) for k in range(-300, 500)]
    best = min(r * a - math.log(a * d) / (a - 1) + math.log1p(-1 / a) for a in grid)
    assert epsilon <= max(best, 1e-12) * (1 + 1e-9) + 1e-12
    assert epsilon <= max(r + 2 * math.sqrt(r * math.log(1 / d)), 1e-12) * (1 + 1e-9)


@given(decades(-6, 1), decades(-12, -1))
def test_gaussian_noise_keeps_the_converted_promise(rho, delta):
    """The exact delta of Gaussian noise with this rho is within what is promised."""
    epsilon = float(epsilon_for(rho, delta))
    sigma = math.sqrt(1 / (2 * float(rho)))
    near, far = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
    exact = norm.cdf(near) - math.exp(epsilon + norm.logcdf(far))
    assert exact <= float(delta) * (1 + 1e-9)


@given(rhos, deltas, st.fractions(min_value=Fraction(1, 10**6), max_value=10))
def test_conversion_is_monotone(rho, delta, more):
    assert epsilon_for(rho * (1 + more), delta) >= epsilon_for(rho, delta)
    assert epsilon_for(rho, delta / (1 + more)) >= epsilon_for(rho, delta)


@given(epsilons, deltas)
def test_rho_for_is_a_sound_and_tight_inverse(epsilon, delta):
    rho = rho_for(epsilon, delta)
    assert epsilon_for(rho, delta) <= epsilon
    assert epsilon_for(rho * (1 + Fraction(1, 10**6)), delta) > epsilon


@given(epsilons, deltas, st.fractions(min_value=Fraction(1, 10**6), max_value=10))
def test_rho_for_is_monotone(epsilon, delta, more):
    assert rho_for(epsilon * (1 + more), delta) >= rho_for(epsilon, delta)


@settings(max_examples=20)
@given(rhos, deltas)
def test_the_conversion_agrees_with_its_form_by_delta(rho, delta):
    """``delta = exp((a-1)(a rho - epsilon)) (1-1/a)^a / (a-1)`` at the best a gives delta back."""
    epsilon, r = float(epsilon_for(rho, delta)), float(rho)
    if epsilon <= 1e-9:
        return
    low, high = 1e-12, 1e14
    for _ in range(400):
        t = math.sqrt(low * high)
        slope = (2 * t + 1) * r - epsilon - math.log1p(1 / t)
        low, high = (t, high) if slope < 0 else (low, t)
    t = math.sqrt(low * high)
    log_delta = t * ((1 + t) * r - epsilon) - (1 + t) * math.log1p(1 / t) - math.log(t)
    assert log_delta == pytest.approx(math.log(float(delta)), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("scale", [0.5, 1.0, 8.0, 300.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_opendp_converts_alike(scale, delta):
    """Another implementation of the same theorem gives the same epsilon to nine digits."""
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    gaussian = dp.m.make_gaussian(*space, scale)
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1).epsilon(delta)
    ours = epsilon_for(Fraction(gaussian.map(1)), Fraction(repr(delta)))
    assert float(ours) == pytest.approx(theirs, rel=1e-9)


def test_the_ends_of_the_range_convert_or_say_why_not():
    assert epsilon_for(ZCDP(Fraction(1, 2 * 10**24)).rho, parse_delta("1e-60")) > 0
    assert epsilon_for(Fraction(10**12, 2), parse_delta("1e-60")) > 10**11
    assert rho_for(Fraction(10**6), Fraction(1, 2)) > 10**5
    assert epsilon_for(Fraction(1, 10**6), 1 - Fraction(1, 10**50)) >= Fraction(1, 10**12)
    with pytest.raises(BudgetError, match="raise epsilon or delta"):
        rho_for(Fraction(1, 10**12), Fraction(1, 10**60))
    assert rho_of_pure(PureDP(LEAST_AMOUNT)).rho == LEAST_RHO
    assert rho_of_pure(PureDP(MOST_AMOUNT)).rho == MOST_RHO
    for rho in (LEAST_RHO / 2, MOST_RHO + 1, 0.1):
        with pytest.raises(BudgetError, match=r"^rho must "):
            epsilon_for(rho, Fraction(1, 2))
    for epsilon in (LEAST_AMOUNT / 2, MOST_AMOUNT + 1, 0.1):
        with pytest.raises(BudgetError, match=r"^epsilon must "):
            rho_for(epsilon, Fraction(1, 2))


@pytest.mark.parametrize("wrong", [0.1, 1, "0.1", Fraction(0), Fraction(-1), Fraction(1, 10**30)])
def test_records_hold_exact_amounts_in_range_only(wrong):
    for make in (PureDP, ZCDP, lambda amount: ApproxDP(amount, Fraction(1, 10**9))):
        with pytest.raises(BudgetError, match=r"^(epsilon|rho) must "):
            make(wrong)


@pytest.mark.parametrize("delta", [0, 1, 2, "1e-61", 1.0, "1/1"])
def test_delta_lies_strictly_between_zero_and_one(delta):
    with pytest.raises(BudgetError, match=r"^delta must "):
        parse_delta(delta)
