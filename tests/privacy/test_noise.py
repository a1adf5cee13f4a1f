"""Calibration of the noise: its scale and loss, what is refused, and how it is added."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from lrm.errors import BudgetError
from lrm.privacy.budget import ZCDP, ApproxDP, PureDP, rho_for, zcdp_of
from lrm.privacy.laws import LatticeLaw, NoiseLaw
from lrm.privacy.noise import (
    TIGHT,
    Calibrated,
    LatticeNoise,
    _tightened,
    _upward_root,
    calibrate_gaussian,
    calibrate_laplace,
    check_gaussian,
    check_laplace,
    gaussian_scale,
    laplace_scale,
)

PURE = PureDP(Fraction(1, 3))
RHO = ZCDP(Fraction(1, 7))
BOTH = ApproxDP(Fraction(1), Fraction(1, 10**6))
MOST = 1 << 62


def after(number, floats):
    for _ in range(floats):
        number = math.nextafter(number, math.inf)
    return number


@pytest.mark.parametrize(
    "squared", ["1", "2", "49", "1/3", "10000000000/7", "1/1000000000000000000000000", str(3**200)]
)
def test_a_root_is_the_least_float_above(squared):
    squared = Fraction(squared)
    root = _upward_root(squared)
    assert Fraction(math.nextafter(root, 0)) ** 2 < squared <= Fraction(root) ** 2


def test_scales_are_the_least_floats_that_keep_the_guarantee():
    assert laplace_scale(3, Fraction(1, 10)) == 30.0
    scale = laplace_scale(7, PURE.epsilon)
    assert Fraction(math.nextafter(scale, 0)) < Fraction(7) / PURE.epsilon <= Fraction(scale)
    assert gaussian_scale(50, ZCDP(Fraction(1, 4))) == 10.0
    squared = Fraction(gaussian_scale(10**6, BOTH)) ** 2
    assert squared == pytest.approx(float(10**6 / (2 * zcdp_of(BOTH).rho) + 4), rel=1e-12)
    squared = Fraction(gaussian_scale(1, BOTH)) ** 2
    assert squared == pytest.approx(float(1 / (2 * rho_for(BOTH.epsilon, BOTH.delta))), rel=1e-12)


def test_what_is_calibrated_passes_its_check_and_nothing_else_does():
    noise = calibrate_laplace(7, PURE)
    exact = Fraction(7) / Fraction(noise.scale)
    assert exact <= noise.loss <= PURE.epsilon
    check_laplace(7, PURE, noise.scale, noise.loss)
    least, more = laplace_scale(7, PURE.epsilon), noise.scale * (1 + TIGHT / 2)
    check_laplace(7, PURE, more, Fraction(7) / Fraction(more))
    for scale in (math.nextafter(least, 0), least * (1 + 2 * TIGHT)):
        with pytest.raises(BudgetError, match="scale of the noise"):
            check_laplace(7, PURE, scale, Fraction(7) / Fraction(scale))
    for loss in (exact - Fraction(1, 10**30), PURE.epsilon + Fraction(1, 10**30)):
        with pytest.raises(BudgetError, match="privacy loss"):
            check_laplace(7, PURE, noise.scale, loss)


@pytest.mark.parametrize("privacy", [RHO, BOTH])
@pytest.mark.parametrize("squared", [1, 10**6])
def test_gaussian_noise_states_the_loss_that_it_has(privacy, squared):
    noise = calibrate_gaussian(squared, privacy)
    exact = Fraction(squared) / (2 * Fraction(noise.scale) ** 2)
    assert exact <= noise.loss <= zcdp_of(privacy).rho
    check_gaussian(squared, privacy, noise.scale, noise.loss)
    too_much = max(noise.loss * (1 + Fraction(TIGHT) * 2), zcdp_of(privacy).rho)
    for loss in (exact - Fraction(1, 10**30), too_much + Fraction(1, 10**30)):
        with pytest.raises(BudgetError, match="privacy loss"):
            check_gaussian(squared, privacy, noise.scale, loss)
    if privacy is BOTH:  # its noise has less loss than the rho that it is scaled by
        with pytest.raises(BudgetError, match="privacy loss"):
            check_gaussian(squared, privacy, noise.scale, zcdp_of(privacy).rho)
    with pytest.raises(BudgetError, match="scale of the noise"):
        check_gaussian(squared, privacy, math.nextafter(gaussian_scale(squared, privacy), 0), exact)


def test_noise_that_does_not_fit_64_bits_is_refused():
    assert calibrate_laplace(1 << 54, PureDP(Fraction(1))).scale == 2.0**54
    assert calibrate_laplace(MOST, PureDP(Fraction(10**6))).loss <= 10**6
    for sensitivity, epsilon in (((1 << 54) + 4, 1), (MOST + 1, 10**6)):
        with pytest.raises(BudgetError, match="so small an epsilon needs noise"):
            calibrate_laplace(sensitivity, PureDP(Fraction(epsilon)))
    with pytest.raises(BudgetError, match="so small an rho needs noise"):
        calibrate_gaussian(1 << 110, ZCDP(Fraction(1, 2)))


@pytest.mark.parametrize("floats", [0, 1, 63])
def test_the_scale_is_raised_until_the_map_keeps_the_guarantee(floats):
    """The map of some samplers is a little above the exact loss."""
    enough = after(3.0, floats)
    allowed = Fraction(1, 3)

    def make(_domain, _metric, scale):
        loss = allowed if scale >= enough else allowed + Fraction(1, 10**20)
        return SimpleNamespace(map=lambda distance: loss * distance)

    noise = _tightened(NoiseLaw("laplace", 3.0), make, (None, None), 1, PURE, allowed)
    assert (noise.scale, noise.loss, noise.law.noise) == (enough, allowed, "laplace")


def test_a_map_that_never_keeps_the_guarantee_is_an_error():
    def make(_domain, _metric, scale):
        del scale
        return SimpleNamespace(map=lambda distance: 2.0 * distance)

    with pytest.raises(BudgetError, match="no noise scale keeps"):
        _tightened(NoiseLaw("laplace", 3.0), make, (None, None), 1, PURE, Fraction(1))


def test_every_integer_is_given_to_the_sampler_once_and_in_order(monkeypatch):
    monkeypatch.setattr("lrm.privacy.noise.BLOCK", 3)
    parts = []

    def sampler(values):
        parts.append(values)
        return [x + 100 for x in values]

    noise = Calibrated(NoiseLaw("laplace", 3.0), PURE, PURE.epsilon, sampler)
    assert noise.add_to(np.arange(7)).tolist() == list(range(100, 107))
    assert parts == [[0, 1, 2], [3, 4, 5], [6]]


def test_noise_on_lattices_is_added_to_quotients_and_clamped_to_multiples():
    law = LatticeLaw("laplace", 3.0, (5, 1, 5))
    more = {5: lambda values: [x + 1 for x in values], 1: lambda values: [x - 2 for x in values]}
    noise = LatticeNoise(law, PURE, PURE.epsilon, more)
    assert noise.add_to(np.array([10, 10, -15])).tolist() == [15, 8, -10]
    top = MOST // 5 * 5
    assert noise.add_to(np.array([top, MOST, -top])).tolist() == [top, MOST - 2, -top + 5]
    less = {5: lambda values: [x - 9 for x in values], 1: lambda values: [x - 9 for x in values]}
    noise = LatticeNoise(law, PURE, PURE.epsilon, less)
    assert noise.add_to(np.array([-top, -MOST, 0])).tolist() == [-top, -MOST, -45]


def test_steps_of_lattices_have_their_own_samplers():
    noise = calibrate_laplace(3, PureDP(Fraction(3)), np.array([7, 1, 9]))
    assert isinstance(noise, LatticeNoise)
    assert (set(noise.sampler), noise.law.steps) == ({1, 7, 9}, (7, 1, 9))
    for step, sampler in noise.sampler.items():
        # A quotient moves by 1 where its integer moves by the step, and hides as much.
        assert Fraction(sampler.map(1)) <= Fraction(step) * (1 + Fraction(1, 10**12))
        assert Fraction(sampler.map(1)) >= Fraction(step) * (1 - Fraction(1, 10**12))
    assert not isinstance(calibrate_laplace(3, PureDP(Fraction(3))), LatticeNoise)
