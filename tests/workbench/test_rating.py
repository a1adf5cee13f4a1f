"""Errors of statements as the workbench shows them: those of the answers themselves."""

import numpy as np
import pytest

import lrm
from lrm.domain import Bins, Categories, Domain
from lrm.privacy.budget import PureDP
from lrm.workbench.rating import Rated

DOMAIN = Domain([Categories("s", ["a", "b"]), Bins("x", [0, 10, 100, 1000])], "t")


def test_a_sum_is_linear_and_has_its_own_error():
    text = "SELECT s, SUM(x) AS total FROM t GROUP BY s;\nSELECT AVG(x) AS mean FROM t;"
    plan = lrm.plan(lrm.sql(text, DOMAIN), effort="quick")
    privacy = PureDP(lrm.privacy.amounts.parse_amount("0.5", "epsilon"))
    total, mean = Rated(plan).at(privacy, 0.95)["statements"]
    released = lrm.release(plan, [3] * DOMAIN.size, epsilon="0.5").to_pandas()
    stated = released[released["query"] == "total"]["standard_error"]
    assert total["derived"] is False
    assert total["error"] == pytest.approx(stated.max(), rel=1e-6)
    assert total["error"] > 550
    assert mean["derived"] is True


@pytest.mark.parametrize(
    "answers",
    [
        "SUM(x) AS a, SUM(2 * x) + 7 AS b",
        "COUNT(*) AS a, SUM(x) / 4 AS b",
        "AVG(x) AS m, SUM(x) AS b",
    ],
)
def test_sums_of_several_scales_have_their_own_errors(answers):
    plan = lrm.plan(lrm.sql(f"SELECT s, {answers} FROM t GROUP BY s", DOMAIN), effort="quick")
    privacy = PureDP(lrm.privacy.amounts.parse_amount("0.5", "epsilon"))
    rated = Rated(plan).at(privacy, 0.95)
    (statement,) = rated["statements"]
    released = lrm.release(plan, [3] * DOMAIN.size, epsilon="0.5").to_pandas()
    stated = released[released["query"] != "m"]["standard_error"].to_numpy()
    assert statement["derived"] is False
    assert statement["error"] == pytest.approx(stated.max(), rel=1e-6)
    assert statement["typical"] == pytest.approx(np.sqrt(np.mean(stated**2)), rel=1e-6)
    first = rated["answers"][0]
    assert first["name"].startswith("b[s=")
    assert first["error"] == pytest.approx(stated.max(), rel=1e-6)
