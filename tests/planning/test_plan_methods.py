"""What a plan offers in Python beside its errors: other mechanisms, and the amount for an error."""

import numpy as np
import pytest

import lrm
from lrm.errors import BudgetError


def test_the_amount_for_a_root_mean_squared_error():
    plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    found = plan.privacy_for(rmse=20)
    assert plan.accuracy(found).root_mean_squared_error == pytest.approx(20, rel=1e-4)
    assert found == plan.privacy_for(2 * 20**2)
    for wrong in ({}, {"expected_squared_error": 3.0, "rmse": 3.0}, {"rmse": 0.0}):
        with pytest.raises(BudgetError):
            plan.privacy_for(**wrong)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_plan_is_compared_without_planning_again(noise):
    plan = lrm.plan(np.tri(16), effort="quick", noise=noise)
    found = plan.compare()
    assert found.outcomes[0].plan is plan
    assert {one.mechanism for one in found.outcomes[1:]} >= {"noise-on-data", "wavelet"}
    assert found.best.plan is plan
    assert all(one.plan is None or one.plan.noise == noise for one in found.outcomes)
    assert [one.mechanism for one in plan.compare(["noise-on-results"]).outcomes] == [
        plan.mechanism,
        "noise-on-results",
    ]
