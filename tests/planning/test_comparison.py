"""Mechanisms side by side, with a row for noise that is shaped to the batch."""

import numpy as np
import pytest

import lrm
from lrm.errors import UsageError

YES_NO = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 0, 1], [0, 0, 1, 1, 1]])


def test_shaped_noise_has_a_row():
    result = lrm.compare(YES_NO)
    assert [one.mechanism for one in result.outcomes][-1] == "shaped"
    shaped = result.outcomes[-1]
    assert shaped.plan.noise == "shaped"
    assert result.best is shaped
    alone = lrm.plan(YES_NO)
    assert shaped.plan.weighted_strategy_error == pytest.approx(
        alone.weighted_strategy_error, rel=1e-6
    )
    assert all(one.plan.noise == "laplace" for one in result.outcomes[:-1] if one.plan)


def test_where_no_body_is_better_the_row_says_so():
    shaped = lrm.compare(np.eye(4)).outcomes[-1]
    assert shaped.plan is None
    assert "no body with less error" in shaped.reason


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_independent_noise_alone(noise):
    names = [one.mechanism for one in lrm.compare(YES_NO, noise=noise).outcomes]
    assert "shaped" not in names


def test_shaped_is_no_mechanism_of_a_plan():
    with pytest.raises(UsageError):
        lrm.plan(YES_NO, "shaped")


def test_effort_is_that_of_the_search():
    quick, normal = (
        lrm.compare(lrm.families.prefix(40), ["best"], effort=effort).best.plan
        for effort in ("quick", "normal")
    )
    assert normal.strategy_error <= quick.strategy_error
    assert quick.digest == lrm.plan(lrm.families.prefix(40), noise="laplace", effort="quick").digest
