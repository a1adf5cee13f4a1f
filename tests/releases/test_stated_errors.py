"""Stated errors came from the formula, not from the noise that was drawn.

With ``max_records=2**60`` the integers that are measured are tiny and the noise on them is
coarse. Gaussian standard errors were 0.85 of the real ones (the distance was rounded up to a
whole number), and 95 % intervals covered 93.0 % (Laplace, ε = 4) and 88.5 % (Gaussian, ρ = 8).
"""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import erfc

import lrm
from lrm.planning.accuracy.intervals import sum_half_widths
from lrm.planning.accuracy.noise_sums import gaussian_half_widths, laplace_sum_half_widths
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.laws import NoiseLaw
from lrm.privacy.mechanism import calibrate
from lrm.privacy.noise import (
    calibrate_gaussian,
    calibrate_laplace,
    gaussian_scale,
    laplace_scale,
)
from lrm.privacy.unit import PrivacyUnit
from lrm.views.releases import release_facts
from noise_statistics import mean_square_agrees

QUERIES = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]])
COARSE = {"laplace": {"epsilon": 4}, "gaussian": {"rho": 8}}
SCALES = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 50.0, 200.0, 1000.0)


@pytest.fixture(scope="module", params=COARSE)
def plan(request):
    return lrm.plan(QUERIES, noise=request.param, max_records=2**60, effort="quick")


def atoms(noise, scale, step=1):
    """The multiples of a step that matter and their probabilities."""
    reach = math.ceil(40 * scale / step) + 2
    k = step * np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(k) / scale if noise == "laplace" else -((k / scale) ** 2) / 2)
    return k, weight / weight.sum()


def steps_of(plan):
    """The step of the noise on each measurement."""
    law = plan.accuracy(plan.privacy(**COARSE[plan.noise])).law
    return np.broadcast_to(law.steps, plan.measurement_count)


def covered(noise, scale, weights, half_width, steps=None):
    """P(|Σ b_j·η_j| ≤ h), by listing every combination."""
    total, probability = np.zeros(1), np.ones(1)
    for weight, step in zip(
        weights, np.ones(len(weights)) if steps is None else steps, strict=True
    ):
        if abs(weight) <= 1e-9:
            continue
        k, mass = atoms(noise, scale, step)
        total = np.add.outer(total, weight * k).ravel()
        probability = np.multiply.outer(probability, mass).ravel()
    return probability[np.abs(total) <= half_width].sum()


def test_standard_errors_are_those_of_the_scale_drawn(plan):
    release = lrm.release(plan, [5, 6, 7, 8], **COARSE[plan.noise])
    deviations = []
    for step in steps_of(plan):
        k, mass = atoms(plan.noise, release.scale, step)
        deviations.append(math.sqrt(float((k**2 * mass).sum())) * 2.0**-plan.measured.bits)
    expected = np.linalg.norm(np.asarray(plan.reconstruction) * deviations, axis=1)
    np.testing.assert_allclose(release.standard_errors, expected, rtol=1e-12)
    told = json.loads(json.dumps(release_facts(release)))["mechanism"]["noise"]
    assert told["standard_deviation"] >= max(deviations) * (1 - 1e-12)


def test_a_plan_states_what_its_release_has(plan):
    amount = COARSE[plan.noise]
    release = lrm.release(plan, [5, 6, 7, 8], **amount)
    np.testing.assert_allclose(plan.standard_errors(**amount), release.standard_errors, rtol=1e-12)
    half = release.unclipped.intervals(0.9)[:, 1] - release.answers
    # Half-widths may be 10⁻⁶ beside answers of 8: their difference has the answer's rounding.
    np.testing.assert_allclose(
        plan.half_widths(confidence=0.9, **amount), half, rtol=1e-9, atol=1e-14
    )
    total = float((release.standard_errors**2).sum())
    assert plan.expected_squared_error(**amount) == pytest.approx(total)


@pytest.mark.parametrize("confidence", [0.3, 0.8, 0.95, 0.999])
def test_intervals_cover_at_least_what_they_say(plan, confidence):
    """By listing all values of the noise, which is so coarse only for enormous ε."""
    release = lrm.release(plan, [5, 6, 7, 8], **COARSE[plan.noise])
    half = plan.half_widths(confidence=confidence, **COARSE[plan.noise])
    step = 2.0**-plan.measured.bits
    for row, width in zip(np.asarray(plan.reconstruction) * step, half, strict=True):
        if np.count_nonzero(np.abs(row) > 1e-9) <= 3:
            assert covered(plan.noise, release.scale, row, width, steps_of(plan)) >= confidence


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["laplace", "gaussian"]),
    st.floats(0.2, 6),
    st.lists(st.floats(0.05, 1), min_size=1, max_size=2),
    st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
def test_coarse_intervals_cover_for_any_weights(noise, scale, weights, confidence):
    row = np.array(weights)
    half = sum_half_widths(row[np.newaxis], NoiseLaw(noise, scale), confidence)[0]
    assert covered(noise, scale, row, half * (1 + 1e-9)) >= confidence - 1e-9


@pytest.mark.parametrize("noise", COARSE)
@pytest.mark.parametrize("scale", SCALES)
def test_the_continuous_law_is_wider(noise, scale):
    """``P(|η + U| ≥ t) ≤ P(|Y| ≥ t)`` at 41 places between any two neighbouring integers."""
    k, mass = atoms(noise, scale)
    k, mass = k[k >= 0], mass[k >= 0]
    tails = 2 * np.cumsum(mass[::-1])[::-1]  # P(|η| ≥ k), for k ≥ 1
    for part in np.linspace(0, 1, 41):
        t = k[1:-1] - 0.5 + part
        real = tails[2:] + 2 * (1 - part) * mass[1:-1]
        first, near_zero = part / 2, 1 - mass[0] * part
        if noise == "laplace":
            wide, at_first = (np.exp(-u / (scale + 1 / scale)) for u in (t, first))
        else:
            wide, at_first = (erfc(u / math.hypot(scale, 0.5) / 2**0.5) for u in (t, first))
        seen = wide > 1e-250
        assert np.all(real[seen] <= wide[seen] * (1 + 1e-12))
        assert near_zero <= at_first * (1 + 1e-12)


def test_fine_noise_has_the_continuous_intervals():
    weights = np.random.default_rng(0).standard_normal((5, 9))
    scale = 2.0**30
    laplace = sum_half_widths(weights, NoiseLaw("laplace", scale), 0.95)
    np.testing.assert_allclose(laplace, scale * laplace_sum_half_widths(weights, 0.95), rtol=1e-8)
    gaussian = sum_half_widths(weights, NoiseLaw("gaussian", scale), 0.95)
    norms = np.linalg.norm(weights, axis=1)
    np.testing.assert_allclose(gaussian, gaussian_half_widths(scale * norms, 0.95), rtol=1e-8)


@pytest.mark.parametrize("noise", COARSE)
def test_intervals_are_close_on_both_sides_of_the_limit(noise):
    """Where the two ways meet, neither is far above the continuous quantile."""
    weights = np.random.default_rng(1).standard_normal((3, 30))
    for deviation in (15.9, 16.1):
        scale = deviation / 2**0.5 if noise == "laplace" else deviation
        half = sum_half_widths(weights, NoiseLaw(noise, scale), 0.95)
        norms = np.linalg.norm(weights, axis=1)
        ideal = (
            scale * laplace_sum_half_widths(weights, 0.95)
            if noise == "laplace"
            else gaussian_half_widths(scale * norms, 0.95)
        )
        assert np.all(half < 1.05 * ideal)


def test_the_amount_for_an_error_is_that_of_the_real_noise(plan):
    wanted = plan.expected_squared_error(**COARSE[plan.noise])
    name, asked = next(iter(COARSE[plan.noise].items()))
    found = getattr(plan.privacy_for(wanted), name)
    assert abs(found - asked) <= Fraction(asked, 10**5)
    assert plan.expected_squared_error(**{name: found}) <= wanted * (1 + 1e-9)


@pytest.mark.parametrize("squared", [1, 2, 3, 17, 10**9 + 7, 2**61 - 1])
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 3), Fraction(8)])
def test_gaussian_noise_is_calibrated_to_the_exact_distance(squared, rho):
    """As much noise as ρ asks for, and no more: before, Δ was rounded up to a whole number."""
    noise = calibrate_gaussian(squared, ZCDP(rho))
    exact = Fraction(squared) / (2 * Fraction(noise.scale) ** 2)
    assert exact <= noise.loss <= rho
    assert exact > rho * (1 - Fraction(1, 10**12))
    assert gaussian_scale(squared, ZCDP(rho)) == pytest.approx(noise.scale, rel=1e-13)


@settings(deadline=None)
@given(st.integers(1, 2**40), st.fractions(Fraction(1, 1000), Fraction(100)))
def test_the_stated_laplace_scale_is_the_one_drawn(sensitivity, epsilon):
    drawn = calibrate_laplace(sensitivity, PureDP(epsilon)).scale
    assert laplace_scale(sensitivity, epsilon) == pytest.approx(drawn, rel=1e-13)


@pytest.mark.slow
def test_the_real_sampler_agrees(plan):
    """Errors and coverage of 8,000 vectors of real noise; false alarms below 1 in 10⁷."""
    privacy, draws = plan.privacy(**COARSE[plan.noise]), 8_000
    noise = calibrate(plan.measured, privacy, PrivacyUnit())
    zeros = np.zeros(plan.measurement_count, dtype=np.int64)
    errors = (
        np.array([noise.add_to(zeros) for _ in range(draws)]) @ np.asarray(plan.reconstruction).T
    )
    errors = errors * 2.0**-plan.measured.bits
    stated = plan.accuracy(privacy)
    steps = np.array(steps_of(plan), dtype=float)
    kurtosis = 3.0 if plan.noise == "gaussian" else 5 + math.cosh(steps.max() / noise.scale)
    assert mean_square_agrees(errors, stated.standard_errors**2, kurtosis=kurtosis)
    for confidence in (0.8, 0.95):
        inside = (np.abs(errors) <= stated.half_widths(confidence)).sum(axis=0)
        assert np.all(inside >= stats.binom.ppf(1e-9, draws, confidence))


def test_every_place_tells_the_same_errors(plan, tmp_path):
    """Plan, release, release file and JSON: one object states them all."""
    amount = COARSE[plan.noise]
    release = lrm.release(plan, [5, 6, 7, 8], **amount)
    release.save(tmp_path / "release.lrm")
    loaded = lrm.load_release(tmp_path / "release.lrm")
    rows = release_facts(loaded, 0.9)["answers"]
    errors = [row["standard_error"] for row in rows]
    stated = [release.standard_errors, loaded.standard_errors, plan.standard_errors(**amount)]
    for one, other in itertools.pairwise([*stated, np.array(errors)]):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    ends = np.array([[row["low"], row["high"]] for row in rows])
    np.testing.assert_allclose(ends, release.intervals(0.9), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")
@pytest.mark.parametrize("epsilon", ["1", "7", "100000"])
def test_whole_answers_of_coarse_noise_are_whole_and_so_are_their_ends(epsilon):
    """Sums ended at 1034.999997, and counts were 95.99999999999999."""
    batch = lrm.sql(
        "SELECT a, SUM(1000 * a) AS s, SUM(a) AS m, COUNT(*) AS n FROM t WHERE a > 2 GROUP BY a",
        lrm.Domain([lrm.Integers("a", 0, 8), lrm.Integers("b", 0, 1)], "t"),
    )
    plan = lrm.plan(batch, effort="quick", max_records=2**50)
    release = lrm.release(plan, list(range(50, 50 + batch.shape[1])), epsilon=epsilon)
    table = release.to_pandas()
    numbers = table[["answer", "low", "high"]].to_numpy()
    assert np.array_equal(numbers, np.rint(numbers))
    assert ((table["low"] <= table["answer"]) & (table["answer"] <= table["high"])).all()
