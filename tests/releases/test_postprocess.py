"""Post-processing: a function of the release alone, with the laws that its words state."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.errors import UsageError
from lrm.releases.postprocess import MOST_CELLS, STEPS, process

BATCH = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0]])
COUNTS = [3, 0, 1, 40]
TOTAL_IS_SUM = np.array([1, -1, -1, 0, 0])


@pytest.fixture(scope="module", params=["noise-on-data", "noise-on-results", "hierarchical"])
def plan(request):
    return lrm.plan(BATCH, request.param)


def simulated(plan, measurements):
    """A release whose noisy measurements are chosen by the test."""
    bits = plan.measured.bits
    values = np.round(np.asarray(measurements) * 2.0**bits).astype(np.int64)
    empty = np.zeros(plan.workload.shape[1], dtype=int)
    return replace(lrm.release(plan, empty, epsilon="0.1"), noisy_measurements=values)


def test_consistent_answers_add_up(plan):
    for _ in range(5):
        done = process(lrm.release(plan, COUNTS, epsilon="0.1"), ["consistent"])
        assert abs(done.answers @ TOTAL_IS_SUM) < 1e-7
        assert abs(done.answers @ [0, 1, 0, -1, -1]) < 1e-7


def test_consistent_answers_change_only_where_answers_carry_their_own_noise(plan):
    release = lrm.release(plan, COUNTS, epsilon="0.1")
    same = np.allclose(process(release, ["consistent"]).answers, release.answers)
    assert same == (plan.mechanism != "noise-on-results")


def test_consistent_answers_are_the_projection_onto_the_column_space():
    plan = lrm.plan(BATCH, "noise-on-results")
    release = lrm.release(plan, COUNTS, epsilon="0.1")
    projector = BATCH @ np.linalg.pinv(BATCH.astype(float))
    assert np.allclose(process(release, ["consistent"]).answers, projector @ release.answers)


def test_consistent_answers_are_exact_without_noise(plan):
    truth = np.asarray(plan.strategy) @ COUNTS
    for steps in (["consistent"], ["non-negative"], ["non-negative", "integer"]):
        done = process(simulated(plan, truth), steps)
        assert np.allclose(done.answers, BATCH @ COUNTS, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-60, 60), min_size=4, max_size=4))
def test_non_negative_answers_are_those_of_the_nearest_table(noise):
    """No non-negative table is nearer to the measurements: its gradient is not negative."""
    plan = lrm.plan(BATCH, "noise-on-data")
    strategy = np.asarray(plan.strategy)
    measured = strategy @ COUNTS + noise
    answers = process(simulated(plan, measured), ["non-negative"]).answers
    assert answers.min() >= 0
    assert abs(answers @ TOTAL_IS_SUM) < 1e-6
    assert np.allclose(answers, BATCH @ np.maximum(measured, 0), atol=1e-5)  # L is the identity


def test_non_negative_leaves_differences_free():
    plan = lrm.plan([[1, -1, 0], [0, 0, -1]])
    release = lrm.release(plan, [0, 500, 300], epsilon=1)
    difference, minus = process(release, ["non-negative"]).answers
    assert -600 < difference < -400
    assert -400 < minus < -200
    below = simulated(plan, np.asarray(plan.strategy) @ [0, 0, -900])
    assert process(below, ["non-negative"]).answers[1] == 0


def test_integers_are_whole_where_weights_are():
    plan = lrm.plan([[1, 1], [0.5, 0.25]], "noise-on-data")
    release = lrm.release(plan, [10, 20], epsilon="0.1")
    done = process(release, ["integer"])
    assert done.answers[0] == np.rint(release.answers[0])
    assert done.answers[1] == release.answers[1]


def test_steps_have_one_order_and_keep_the_raw_answers(plan):
    release = lrm.release(plan, COUNTS, epsilon=1)
    one, other = (process(release, steps) for steps in (list(STEPS), list(STEPS)[::-1]))
    assert one.steps == other.steps == tuple(STEPS)
    assert np.array_equal(one.answers, other.answers)
    assert one.raw_answers is release.answers
    assert not one.answers.flags.writeable
    assert [name for name, _ in one.notes] == list(STEPS)


def test_processing_looks_at_nothing_but_the_file(plan, tmp_path):
    release = lrm.release(plan, COUNTS, epsilon=1)
    release.save(tmp_path / "answers.lrm")
    again = lrm.load_release(tmp_path / "answers.lrm")
    for steps in (["consistent"], ["non-negative", "integer"]):
        assert np.allclose(process(release, steps).answers, process(again, steps).answers)


def test_wrong_steps_are_refused(plan):
    release = lrm.release(plan, COUNTS, epsilon=1)
    with pytest.raises(UsageError, match="not 'clip'"):
        process(release, ["integer", "clip"])
    with pytest.raises(UsageError, match="an empty list"):
        process(release, [])


def test_too_many_cells_are_refused():
    plan = lrm.plan(lrm.Workload(np.ones((1, MOST_CELLS + 1))), "noise-on-data")
    release = lrm.release(plan, np.zeros(MOST_CELLS + 1, dtype=int), epsilon=1)
    with pytest.raises(UsageError, match="at most 2,000 cells"):
        process(release, ["non-negative"])


def test_relaxed_plans_are_refused():
    plan = lrm.plan(BATCH, "lowrank", exact=False)
    release = lrm.release(plan, COUNTS, epsilon=1)
    with pytest.raises(UsageError, match="relaxed"):
        process(release, ["consistent"])
