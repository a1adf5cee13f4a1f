"""Releases: the noise that leaves is the noise that was promised."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

import lrm
from lrm.domain import Domain, Integers, PrivacyUnit
from lrm.errors import BudgetError, CountsError
from lrm.planning.strategies import mechanism_names
from lrm.privacy.budget import PureDP
from lrm.privacy.mechanism import TrueCounts, calibrate, measure
from lrm.privacy.noise import calibrate_laplace
from lrm.queries.workload import families
from noise_statistics import (
    epsilon_lower_bound,
    fits_discrete_laplace,
    laplace_score,
    mean_square_agrees,
    noisy_runs,
)

COUNTS = np.arange(16) * 7


def batch():
    return families.wrange(10, 16, seed=4)


def test_loss_is_what_the_noise_says_and_at_most_what_was_asked():
    plan = lrm.plan(batch(), "wavelet")
    for epsilon in ("0.1", "1/3", "7", "0.001", 0.3):
        release = lrm.release(plan, COUNTS, epsilon)
        assert release.loss <= release.privacy.epsilon
        assert float(release.loss) == pytest.approx(float(release.privacy.epsilon), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", mechanism_names(products=False))
def test_measured_error_agrees_with_the_promise(mechanism):
    """3,000 real releases, per query and in total; false alarm once in 10⁸."""
    plan = lrm.plan(batch(), mechanism, noise="laplace")
    noise = calibrate(plan.measured, plan.privacy("0.5"), PrivacyUnit())
    runs = noisy_runs(plan, noise, COUNTS, 3000) * 2.0**-plan.measured.bits
    truth = plan.workload.queries.apply(COUNTS.astype(float))
    answers = np.array([plan.reconstruction_map.apply(run) for run in runs])
    expected = plan.standard_errors("0.5") ** 2
    assert mean_square_agrees(answers - truth, expected)


@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_noise_is_drawn_part_by_part(monkeypatch, count):
    """In order, and anew for each part; with noise of scale 1e-6 (0) and of 1e12 (never twice)."""
    monkeypatch.setattr("lrm.privacy.noise.BLOCK", 3)
    values = np.arange(count)
    assert np.array_equal(calibrate_laplace(1, PureDP(Fraction(10**6))).add_to(values), values)
    drawn = calibrate_laplace(1, PureDP(Fraction(1, 10**12))).add_to(np.zeros_like(values))
    assert len(set(drawn.tolist())) == count


@pytest.mark.slow
def test_noise_is_discrete_laplace_of_its_scale():
    """Goodness of fit of 40,000 draws; false alarm once in 10⁸, and fewer of the other kind.

    With a scale of 1.1 the p-value is about 1e-43, and its logarithm varies by 6.
    """
    noise = calibrate_laplace(7, PureDP(Fraction(1, 3)))
    draws = noise.add_to(np.zeros(40_000, dtype=np.int64))
    assert fits_discrete_laplace(draws, noise.scale)
    assert not fits_discrete_laplace(draws, noise.scale * 1.1)


@pytest.mark.slow
@pytest.mark.parametrize(("claimed", "real", "violated"), [("1", "1", False), ("1", "2", True)])
def test_an_audit_finds_no_violation_and_would_find_one(claimed, real, violated):
    """On neighbouring tables; with the scale halved the same audit must fail.

    False alarm once in 10⁸. With the scale halved the bound found is 1.83, with a standard
    deviation of 0.025.
    """
    plan = lrm.plan([[1, 1, 1], [1, 0, 0], [0, 0, 1]], "noise-on-results")
    noise = calibrate(plan.measured, plan.privacy(real), PrivacyUnit())
    table, neighbour = np.array([5, 5, 5]), np.array([6, 5, 5])
    means = [
        plan.measured.measure(plan.measured.counts_of(x)).astype(float) for x in (table, neighbour)
    ]
    scores = [laplace_score(noisy_runs(plan, noise, x, 30_000), *means) for x in (table, neighbour)]
    found = epsilon_lower_bound(*scores)
    assert (found > float(Fraction(claimed))) == violated


@pytest.mark.parametrize(
    ("noise", "amount"), [("laplace", {"epsilon": "0.1"}), ("gaussian", {"rho": 1})]
)
def test_substitution_and_people_cost_their_factor(noise, amount):
    plan = lrm.plan(np.eye(3), noise=noise, effort="quick")
    plain = lrm.release(plan, [1, 2, 3], **amount)
    person = lrm.release(plan, [1, 2, 3], **amount, max_rows=3)
    swapped = lrm.release(plan, [1, 2, 3], **amount, neighbours="substitute", max_rows=3)
    np.testing.assert_allclose(person.standard_errors, 3 * plain.standard_errors)
    np.testing.assert_allclose(swapped.standard_errors, 6 * plain.standard_errors)
    assert person.scale == pytest.approx(3 * plain.scale)


def test_intervals_are_those_that_the_plan_stated():
    plan = lrm.plan(batch(), "wavelet")
    release = lrm.release(plan, COUNTS, 1)
    for confidence in (0.5, 0.9, 0.99):
        low, high = release.intervals(confidence).T
        half = plan.half_widths(epsilon=1, confidence=confidence)
        np.testing.assert_allclose(low, release.answers - half)
        np.testing.assert_allclose(high, release.answers + half)


def test_true_counts_stay_out_of_sight():
    secret = TrueCounts([31337, 2])
    assert "31337" not in f"{secret!r} {secret}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(AttributeError):
        secret.values  # noqa: B018 - there is no such door


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([1, 2], "3 cells, but there are 2 counts"),
        ([1, -2, 31337], "must not be negative"),
        ([1, 2.5, 31337], "whole numbers"),
        ([1, np.nan, 31337], "whole numbers"),
        ([1, 31337, 2**40], "admits at most"),
        ([2**62 - 1] * 3, "admits at most"),
        (np.array([2**63, 31337, 1], dtype=np.uint64), "too large"),
        ([2**70, 31337, 1], "64 bits"),
        ([1e300, 31337, 1], "2^53"),
        (["a", "31337", "c"], "whole numbers"),
        ([[1, 2, 31337]], "one number per cell"),
    ],
)
def test_bad_counts_get_one_sentence_without_a_value(counts, sentence):
    plan = lrm.plan(np.eye(3), "noise-on-data")
    with pytest.raises(CountsError) as caught:
        lrm.release(plan, counts, epsilon=1)
    assert sentence in str(caught.value)
    assert "31337" not in str(caught.value)


@pytest.mark.parametrize("epsilon", [0, -1, "0", "nan", "inf", "abc", 1e-30, True, None])
def test_bad_epsilon_is_refused_before_counts_are_seen(epsilon):
    plan = lrm.plan(np.eye(3), "noise-on-data")
    with pytest.raises(BudgetError):
        lrm.release(plan, "not even counts", epsilon=epsilon)


def test_files_round_trip(tmp_path):
    for mechanism in mechanism_names(products=False):
        effort = {"effort": "quick"} if mechanism == "best" else {}
        plan = lrm.plan(batch(), mechanism, **effort)
        plan.save(tmp_path / "plan.lrm")
        again = lrm.load_plan(tmp_path / "plan.lrm")
        assert again.digest == plan.digest
        assert again.strategy_error == pytest.approx(plan.strategy_error, rel=1e-12)
        release = lrm.release(again, COUNTS, "0.1")
        release.save(tmp_path / "release.lrm")
        back = lrm.load_release(tmp_path / "release.lrm")
        np.testing.assert_allclose(back.answers, release.answers, rtol=1e-12, atol=1e-9)
        assert (back.privacy, back.loss, back.scale) == (
            release.privacy,
            release.loss,
            release.scale,
        )


def test_the_same_plan_is_the_same_file(tmp_path):
    plan = lrm.plan(np.eye(3), "noise-on-data")
    plan.save(tmp_path / "a")
    plan.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_plan_tells_the_error_of_its_domains_unit():
    domain = Domain([Integers("age", 0, 3)], unit=PrivacyUnit("person", 3, "substitute"))
    plan = lrm.plan(lrm.Workload(np.eye(4), domain=domain), "noise-on-data")
    release = lrm.release(plan, [1, 2, 3, 4], 1)
    np.testing.assert_allclose(plan.standard_errors(1), release.standard_errors)
    widths = np.diff(release.unclipped.intervals())[:, 0]
    np.testing.assert_allclose(plan.half_widths(1), widths / 2)
    assert plan.unit.factor == 6
    assert plan.expected_squared_error(plan.privacy_for(500).epsilon) <= 500 * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", ["noise-on-data", "wavelet", "best"])
def test_a_table_beyond_the_limit_is_clamped_not_refused(mechanism):
    """Refusing a table for its number of rows would tell that number."""
    measured = lrm.plan(families.prefix(4), mechanism, noise="laplace").measured
    small = np.array([5, 0, 2, 9])
    np.testing.assert_array_equal(measured.measure_clamped(small), measured.measure(small))
    huge = np.full(4, 2**61)
    assert np.abs(measured.measure_clamped(huge)).max() <= 2**62
    more = huge + np.array([0, 1, 0, 0])
    moved = measured.measure_clamped(more).astype(object) - measured.measure_clamped(huge)
    assert sum(abs(int(value)) for value in moved) <= measured.sensitivity
    noise = calibrate(measured, PureDP(Fraction(1)), PrivacyUnit())
    assert (
        len(measure(TrueCounts(huge), measured, noise).noisy_values) == measured.measurement_count
    )
