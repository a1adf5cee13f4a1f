"""Noise on whole numbers for yes/no counts: its law, its guarantee, and what plans state of it."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import lrm
from forging import resealed
from lrm.errors import BudgetError, FileFormatError
from lrm.privacy.bodies import patterns
from lrm.privacy.bodies.patterns import (
    BITS_PER_DIGIT,
    _distribution,
    _draw_first,
    _eulerian,
    draw_pattern,
    pattern_variance,
    simulate_patterns,
)
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import PureDP
from lrm.privacy.mechanism import calibrate, law_of
from lrm.privacy.shaped import ShapedLaw
from lrm.privacy.unit import PrivacyUnit

ALARM = 1e-6
YES_NO = np.array(list(itertools.product([0, 1], repeat=3))).T


def source(seed):
    rng = np.random.default_rng(seed)
    return lambda count: int.from_bytes(rng.bytes(-(-count // 8))) >> (-count % 8) if count else 0


def norm(w):
    return max(0, *w) - min(0, *w)


@pytest.fixture(scope="module")
def plan():
    made = lrm.plan(YES_NO, effort="quick")
    assert made.measured.body.pattern_unit
    return made


@pytest.mark.parametrize(("k", "rate"), [(1, "1"), (2, "1/2"), (2, "3"), (3, "2")])
def test_draws_have_the_law_and_every_move_is_hidden(k, rate):
    """Frequencies of all common vectors, and the likelihood ratio of every outcome."""
    rate = Fraction(rate)
    reach = math.ceil(12 / rate) + 2
    grid = np.array(list(itertools.product(range(-reach, reach + 1), repeat=k)))
    norms = np.maximum(grid.max(axis=1), 0) - np.minimum(grid.min(axis=1), 0)
    mass = np.exp(-float(rate) * norms)
    mass /= mass.sum()
    bits = source(5)
    draws = np.array([draw_pattern(k, rate, bits) for _ in range(3000)])
    place = (np.clip(draws, -reach, reach) + reach) @ (2 * reach + 1) ** np.arange(k)[::-1]
    counts = np.bincount(place, minlength=len(mass))
    common = mass * len(draws) > 8
    observed = [*counts[common], counts[~common].sum()]
    expected = np.array([*mass[common], mass[~common].sum()]) * len(draws)
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > ALARM
    body = Tables((1,) * k, (False,) * k, 1)
    for move in itertools.product((-1, 0, 1), repeat=k):
        assert body.gauge(move) == norm(move)
        # q^norm at any two places that differ by a move of norm 1 has a ratio of at most 1/q.
        moved = grid + np.array(move)
        after = np.maximum(moved.max(axis=1), 0) - np.minimum(moved.min(axis=1), 0)
        assert np.abs(after - norms).max() <= norm(move)


def test_variances_are_sums_over_all_vectors():
    for k, rate in ((1, 1.0), (2, 1.5), (3, 2.0)):
        grid = np.array(list(itertools.product(range(-20, 21), repeat=k)))
        mass = np.exp(-rate * (np.maximum(grid.max(axis=1), 0) - np.minimum(grid.min(axis=1), 0)))
        mass /= mass.sum()
        assert pattern_variance(k, rate) == pytest.approx(float(mass @ grid[:, 0] ** 2), rel=1e-6)
        if k > 1:
            both = float(mass @ (grid[:, 0] * grid[:, 1]))
            assert both == pytest.approx(pattern_variance(k, rate) / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("k", "ratios"),
    [(2, (0.949, 0.793, 0.571)), (4, (0.976, 0.904, 0.772)), (8, (0.991, 0.964, 0.918))],
)
def test_how_much_variance_the_lattice_saves(k, ratios):
    """At ε = 1, 2, 3, relative to noise on real numbers."""
    for rate, ratio in zip((1, 2, 3), ratios, strict=True):
        real = (k + 2) * (k + 3) / 6 / rate**2
        assert pattern_variance(k, rate) / real == pytest.approx(ratio, abs=1e-3)


def test_simulated_noise_has_the_variances():
    values = simulate_patterns(5, 1.5, 40_000, np.random.default_rng(1))
    wanted = pattern_variance(5, 1.5) * (np.eye(5) + 1) / 2
    np.testing.assert_allclose(np.cov(values.T), wanted, atol=0.06 * wanted.max())


def test_few_digits_bound_the_distribution_from_both_sides():
    exact = _distribution(6, Fraction(5, 2), 60)
    for digits in (1, 5, 20):
        rough, shift = _distribution(6, Fraction(5, 2), digits), BITS_PER_DIGIT * (60 - digits)
        for (low, high), (least, most) in zip(rough[:-1], exact[:-1], strict=True):
            assert low << shift < least <= most < high << shift
        assert rough[-1] == (1 << BITS_PER_DIGIT * digits,) * 2
    weights = np.cumsum([a * math.exp(-2.5 * j) for j, a in enumerate(_eulerian(7))])
    known = [float(Fraction(low, 1 << BITS_PER_DIGIT * 60)) for low, _ in exact]
    np.testing.assert_allclose(known, weights / weights[-1], rtol=1e-12)


@pytest.mark.parametrize("digits", [1, 20])
def test_the_first_part_is_chosen_with_few_digits_as_with_many(monkeypatch, digits):
    monkeypatch.setattr(patterns, "FIRST_DIGITS", digits)
    k, rate = 6, Fraction(5, 2)
    weights = np.array([a * math.exp(-2.5 * j) for j, a in enumerate(_eulerian(k + 1))])
    assert sum(_eulerian(k + 1)) == math.factorial(k + 1)
    bits = source(8)
    counts = np.bincount([_draw_first(k, rate, bits) for _ in range(4000)], minlength=k + 1)
    common = weights / weights.sum() * 4000 > 8
    observed = [*counts[common], counts[~common].sum()]
    expected = [*weights[common], weights[~common].sum()] / weights.sum() * 4000
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > ALARM


@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_stated_errors_and_intervals_are_those_of_real_draws(plan, epsilon):
    accuracy = plan.accuracy(plan.privacy(epsilon))
    assert accuracy.law.distribution == "shaped on a lattice"
    older = replace(accuracy, law=accuracy.law.fine)
    ratio = pattern_variance(3, float(epsilon)) / (30 / 6 / float(epsilon) ** 2)
    assert accuracy.squared_error / older.squared_error == pytest.approx(ratio, rel=1e-9)
    noise = calibrate(plan.measured, plan.privacy(epsilon), PrivacyUnit())
    assert noise.law == accuracy.law
    true = plan.measured.measure(plan.measured.counts_of(np.arange(8)))
    assert np.all((noise.add_to(true) - true) % accuracy.law.steps[0] == 0)
    count, bits = 3000, random.Random(9).getrandbits  # noqa: S311 - no secret
    draws = np.array([noise.draw(bits) for _ in range(count)])
    assert np.all(draws % accuracy.law.steps[0] == 0)
    errors = draws * accuracy.step @ np.asarray(plan.reconstruction).T
    measured = (errors**2).mean(axis=0) / accuracy.standard_errors**2
    assert np.all(np.abs(measured - 1) < 5 * 3 / math.sqrt(count))
    for confidence in (0.5, 0.95):
        half = accuracy.half_widths(confidence)
        inside = (np.abs(errors) <= half).mean(axis=0)
        assert np.all(inside > confidence - 5 * math.sqrt(confidence * (1 - confidence) / count))
        assert np.all(half <= older.half_widths(confidence) + 1.001)  # at most a whole step more
    assert np.all(accuracy.half_widths(0.9999999) > accuracy.half_widths(0.99))


def test_units_and_weights_decide_whether_the_lattice_is_used(plan):
    body, measured = plan.measured.body, plan.measured
    three = PrivacyUnit(max_rows=3)
    assert law_of(measured, PureDP(Fraction(1)), three).lattice == 0
    assert law_of(measured, PureDP(Fraction(3)), three).lattice == body.pattern_unit
    law = ShapedLaw("shaped", float(measured.sensitivity), body, measured.sensitivity)
    assert law.on_lattice(measured.divisors).lattice
    assert not law.on_lattice(np.array([body.pattern_unit // 2])).lattice


def test_files_state_the_lattice_and_cannot_pretend_to_have_one(plan, tmp_path):
    made = lrm.release(plan, np.arange(8), epsilon=2)
    made.save(tmp_path / "answers.lrm")
    again = lrm.load_release(tmp_path / "answers.lrm")
    assert again.distribution == "shaped on a lattice"
    np.testing.assert_array_equal(again.standard_errors, made.standard_errors)
    older = replace(made, distribution="shaped")
    assert np.all(older.standard_errors > made.standard_errors)
    with pytest.raises(BudgetError, match="multiples"):
        replace(made, noisy_measurements=made.noisy_measurements + 1)
    off = replace(older, noisy_measurements=made.noisy_measurements + 1)
    off.save(tmp_path / "off.lrm")

    def forge(facts, _arrays):
        facts["noise"]["distribution"] = "shaped on a lattice"

    with pytest.raises(FileFormatError):
        lrm.load_release(resealed(tmp_path / "off.lrm", forge))
    fine = lrm.release(plan, np.arange(8), epsilon="0.1")
    assert fine.distribution == "shaped"
    with pytest.raises(BudgetError):
        replace(fine, distribution="shaped on a lattice")
