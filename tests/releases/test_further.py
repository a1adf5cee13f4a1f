"""Further queries cost nothing, agree with the answers, and are refused where unsupported."""

import numpy as np
import pytest

import lrm
from lrm.errors import UnsupportedQuery, WorkloadError
from lrm.queries.workload import families
from lrm.releases.further import answer_further


def test_the_same_queries_get_the_same_answers():
    plan = lrm.plan(families.wrange(6, 12, seed=1), effort="quick")
    release = lrm.release(plan, np.arange(12), 1)
    again = answer_further(release, plan.workload)
    np.testing.assert_allclose(again.answers, release.answers, rtol=1e-9)
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
