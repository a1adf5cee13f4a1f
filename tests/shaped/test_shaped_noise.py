"""The law and the calibration of shaped noise, against closed forms and sums over all values."""

import math
from fractions import Fraction

import numpy as np
import pytest

from lrm.errors import BudgetError
from lrm.privacy import shaped
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import PureDP
from lrm.privacy.shaped import ShapedLaw, _gamma_table, _half_width, calibrate_shaped

UNIT = 3
LIMIT = 1 << 62
SINGLE = Tables((1,), (False,), UNIT)
YES_NO = Tables((1, 1), (False, False), UNIT)
TABLE = Tables((2,), (False,), UNIT)
ANY = np.ones(1, dtype=np.int64)
MULTIPLES = np.array([UNIT])


def law(body=SINGLE, rate=1, lattice=0):
    """Where a record moves the measurements by norm 1: a rate of 1 per norm."""
    return ShapedLaw("shaped", float(UNIT / Fraction(rate)), body, UNIT, lattice)


@pytest.mark.parametrize(
    ("body", "rate", "divisors", "lattice"),
    [
        (YES_NO, "1/2", MULTIPLES, UNIT),
        (YES_NO, "64", MULTIPLES, UNIT),
        (YES_NO, "2", np.array([2 * UNIT, UNIT]), UNIT),
        (YES_NO, "1/4", MULTIPLES, 0),
        (YES_NO, "128", MULTIPLES, 0),
        (YES_NO, "2", np.array([2 * UNIT, 1]), 0),
        (TABLE, "2", MULTIPLES, 0),
        (Cube(2, UNIT), "2", MULTIPLES, 0),
        (Groups((YES_NO,), (WHOLE,)), "2", MULTIPLES, 0),
    ],
)
def test_where_the_noise_is_on_a_lattice(body, rate, divisors, lattice):
    found = law(body, rate, 7).on_lattice(divisors)
    assert (found.lattice, found.steps) == (lattice, (lattice or 1,))
    assert found.fine.lattice == 0
    assert found.fine.distribution == "shaped"
    assert found.distribution == ("shaped on a lattice" if lattice else "shaped")
    assert (found.smooth, found.independent) == (not lattice, False)


def test_moments_are_those_of_the_values():
    """One count: Laplace noise, or its law on multiples; two counts: (I + J) times a variance."""
    two = np.array([[[1.0, 0.0], [1.0, -1.0]]])
    for rate in (0.5, 1.0):
        assert law(rate=rate).variance == pytest.approx(2 * (UNIT / rate) ** 2)
        spread = (UNIT / rate) ** 2 * (2 + 2) * (2 + 3) / 6 / 2 * np.array([[2, 1], [1, 2]])
        np.testing.assert_allclose(
            law(YES_NO, rate).covariance(two)[0], two[0] @ spread @ two[0].T, rtol=1e-9
        )
    k = np.arange(-60, 61)
    mass = np.exp(-np.abs(k).astype(float))
    variance = float(mass @ (UNIT * k) ** 2 / mass.sum())
    lattice = law(lattice=UNIT)
    assert lattice.variance == pytest.approx(variance, rel=1e-9)
    assert lattice.covariance(np.array([[[2.0]]]))[0] == pytest.approx(4 * variance, rel=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_half_widths_of_one_count_are_those_of_laplace_noise(confidence):
    weights = np.array([[1.0], [-4.0], [0.0]])
    found = law().half_widths(weights, confidence)
    exact = -UNIT * math.log1p(-confidence)
    assert found[2] == 0.0
    np.testing.assert_allclose(found[:2], [exact + 0.5, 4 * exact + 2.0], rtol=0.02)
    assert np.all(found[:2] >= [exact + 0.5, 4 * exact + 2.0])
    widest = law().widest_half_widths(weights[None], confidence)[0]
    assert np.all(widest >= [exact + 0.5, 4 * exact + 2.0, 0.0])
    a = -math.log1p(-confidence)
    ratio = a / math.sqrt(2 * (1 - (1 + a) * (1 - confidence)))
    deviation = math.sqrt(2) * UNIT
    assert widest == pytest.approx([ratio * deviation + 0.5, 4 * ratio * deviation + 2.0, 0.0])


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_half_widths_on_a_lattice_hold_by_listing_all_values(confidence):
    weights = np.array([[1.0], [-4.0]])
    found = law(lattice=UNIT).half_widths(weights, confidence)
    k = np.arange(-60, 61)
    mass = np.exp(-np.abs(k).astype(float))
    for weight, half in zip(weights[:, 0], found, strict=True):
        sizes = np.abs(weight * UNIT * k)
        assert mass[sizes <= half].sum() >= confidence * mass.sum()
        assert mass[sizes < half - 1e-3].sum() <= (confidence + 0.01) * mass.sum()
    # Too few draws for so large a confidence: Chebyshev's inequality.
    certain = law(lattice=UNIT).half_widths(weights, 1 - 1e-9)
    deviation = math.sqrt(law(lattice=UNIT).variance)
    assert certain == pytest.approx(np.array([1, 4]) * deviation / math.sqrt(1e-9), rel=1e-6)


def test_half_widths_do_not_depend_on_how_many_are_computed_at_a_time(monkeypatch):
    weights = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0], [0.5, 2.0], [0.0, 0.0]])
    every = law(YES_NO).half_widths(weights, 0.9)
    one_by_one = [law(YES_NO).half_widths(row[None], 0.9)[0] for row in weights]
    np.testing.assert_allclose(every, one_by_one, rtol=1e-12)
    monkeypatch.setattr(type(YES_NO), "directions", np.tile(YES_NO.directions, (64, 1)))
    np.testing.assert_allclose(law(YES_NO).half_widths(weights, 0.9), every, rtol=0.01)


def test_directions_may_have_weights():
    """A direction of weight 2/3 is as good as two equal ones of 1/3."""
    table = _gamma_table(3, 0.9)
    two = np.array([2.0, 0.5])
    few = _half_width(two, table, 0.9, np.array([2.0, 1.0]) / 3)
    many = _half_width(np.array([2.0, 2.0, 0.5]), table, 0.9)
    assert few >= many
    assert few == pytest.approx(many, rel=0.1)
    equal = _half_width(np.full(10_000, 2.0), table, 0.9)
    # The quantile of a Gamma variable, times the size.
    assert equal == pytest.approx(2 * 5.3223, rel=1e-3)
    assert equal >= 2 * 5.3223


def test_noise_drawn_ahead_is_used_once():
    noise = calibrate_shaped(SINGLE, UNIT, UNIT, PureDP(Fraction(1, 10**12)), ANY)
    ahead = noise.drawn()
    (value,) = ahead.sampler[0]
    assert ahead.add_to(np.array([5])).tolist() == [5 + value]
    assert ahead.sampler == []
    # Two draws of scale 3e12 are equal once in 10^12 times.
    assert ahead.add_to(np.array([5])).tolist() != [5 + value]
    assert noise.add_to(np.array([5])).tolist() != noise.add_to(np.array([5])).tolist()


@pytest.mark.parametrize(("lattice", "most"), [(0, LIMIT), (UNIT, LIMIT // UNIT * UNIT)])
def test_noisy_sums_are_clamped(lattice, most):
    noise = shaped.ShapedNoise(law(YES_NO, 1, lattice), PureDP(Fraction(1)), Fraction(1), None)
    for values, sums in (
        ([most, -most], [most, -most]),
        ([LIMIT + 10, -LIMIT - 10], [most, -most]),
        ([most - 6, 9 - most], [most - 3, 6 - most]),
        ([10**30, 0], [most, -3]),
    ):
        ahead = shaped.replace(noise, sampler=[[3, -3]])
        assert ahead.add_to(np.array(values, dtype=object)).tolist() == sums


@pytest.mark.parametrize("factor", [1, 3])
def test_calibration(factor):
    privacy = PureDP(Fraction(1, 7))
    noise = calibrate_shaped(YES_NO, UNIT, UNIT * factor, privacy, MULTIPLES)
    assert Fraction(math.nextafter(noise.scale, 0)) < UNIT * factor * 7 <= Fraction(noise.scale)
    assert noise.loss == Fraction(UNIT * factor) / Fraction(noise.scale)
    assert noise.law.lattice == 0
    coarse = calibrate_shaped(YES_NO, UNIT, UNIT, PureDP(Fraction(2)), MULTIPLES)
    assert coarse.law.lattice == UNIT
    assert all(x % UNIT == 0 for x in coarse.drawn().sampler[0])


def test_noise_that_does_not_fit_64_bits_is_refused():
    assert calibrate_shaped(SINGLE, 1 << 54, 1 << 54, PureDP(Fraction(1)), ANY).scale == 2.0**54
    with pytest.raises(BudgetError, match="does not fit 64-bit integers"):
        calibrate_shaped(SINGLE, 1 << 53, 3 << 53, PureDP(Fraction(1)), ANY)


def test_draws_have_the_scale_that_is_stated():
    """The mean size of 400 draws; off by 40 % less than once in 10^10 times."""
    fine = calibrate_shaped(SINGLE, UNIT, UNIT, PureDP(Fraction(1, 1000)), ANY)
    coarse = shaped.replace(fine, law=law(rate="1/4", lattice=UNIT))
    for noise, mean in ((fine, 1000 * UNIT), (coarse, UNIT / math.sinh(1 / 4))):
        sizes = [abs(noise.add_to(np.array([0]))[0]) for _ in range(400)]
        assert np.mean(sizes) == pytest.approx(mean, rel=0.4)
