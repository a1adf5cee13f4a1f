"""Further queries cost nothing, agree with the answers, and are refused where unsupported."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.errors import UnsupportedQuery, WorkloadError
from lrm.queries.workload import families
from lrm.releases.further import answer_further


def test_the_same_queries_get_the_same_answers():
    plan = lrm.plan(families.wrange(6, 12, seed=1), effort="quick")
    release = lrm.release(plan, np.arange(12), 1)
    again = answer_further(release, plan.workload)
    np.testing.assert_allclose(again.answers, release.answers, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(again.standard_errors, release.standard_errors, rtol=1e-9)
    np.testing.assert_array_equal(again.noisy_measurements, release.noisy_measurements)


def test_sums_of_answers_are_supported_with_their_own_error():
    batch = families.wrange(6, 12, seed=1).queries.dense()
    release = lrm.release(lrm.plan(batch, "noise-on-data"), np.arange(12), 1)
    difference = answer_further(release, batch[:1] - batch[1:2])
    expected = release.answers[0] - release.answers[1]
    assert difference.answers[0] == pytest.approx(expected)


@pytest.mark.parametrize("mechanism", ["best", "noise-on-results"])
def test_what_was_not_measured_is_refused(mechanism):
    release = lrm.release(lrm.plan([[1, 1, 0, 2]], mechanism), [1, 2, 3, 4], 1)
    with pytest.raises(UnsupportedQuery):
        answer_further(release, [[1, 0, 0, 0]])
    with pytest.raises(UnsupportedQuery):
        answer_further(release, [[0, 0, 1, 0]])
    assert answer_further(release, [[2, 2, 0, 4]]).answers.shape == (1,)


def test_another_domain_is_refused():
    release = lrm.release(lrm.plan(np.eye(3), "noise-on-data"), [1, 2, 3], 1)
    with pytest.raises(WorkloadError, match="another domain"):
        answer_further(release, np.eye(4))


@pytest.mark.parametrize("mechanism", ["best", "noise-on-results", "noise-on-data"])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**31), exponent=st.integers(-12, 0))
def test_combinations_of_planned_queries_are_answered_even_if_they_almost_cancel(
    mechanism, seed, exponent
):
    """A difference of queries has the rounding of the queries, not of the difference."""
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(2, 5)).round(2) + rng.choice([0.0, 1.0], (2, 5))
    batch = np.vstack([basis, 0.1 * basis[0] + 0.2 * basis[1], basis[0] - 3 * basis[1]])
    options = {"effort": "quick"} if mechanism == "best" else {}
    release = lrm.release(lrm.plan(batch, mechanism, **options), np.arange(5), 1)
    weights = np.vstack(
        [
            rng.normal(size=4),
            rng.integers(-3, 4, 4),
            [0.1 + 10.0**exponent, 0.2, -1, 0],
            [1, -3 + 10.0**exponent, 0, -1],
        ]
    )
    for combination in weights:
        query = sum(weight * row for weight, row in zip(combination, batch, strict=True))
        assert release.query(query[None]).answers.shape == (1,)


def test_a_small_query_that_was_not_measured_is_refused():
    release = lrm.release(lrm.plan([[1, 1, 0, 2]], "noise-on-results"), [1, 2, 3, 4], 1)
    for size in (1.0, 1e-6, 1e-12):
        with pytest.raises(UnsupportedQuery):
            answer_further(release, [[size, 0, 0, 0]])


def test_a_matrix_over_declared_cells_is_told_what_planned_queries_count():
    """They count rows without a declared value of an attribute that they do not use."""
    domain = lrm.Domain([lrm.Categories("zone", ["a", "b"]), lrm.Integers("fare", 0, 4)], "trips")
    batch = lrm.marginals(domain, [["zone"], ["fare"]])
    release = lrm.release(lrm.plan(batch, "noise-on-results"), [3] * 10, epsilon=1)
    with pytest.raises(UnsupportedQuery, match=r"\(zone, fare\); ask in SQL or with builders"):
        release.query(batch.queries.dense())
    np.testing.assert_allclose(release.query(batch).answers, release.answers, atol=1e-9)
