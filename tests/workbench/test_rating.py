"""Errors of statements as the workbench shows them: those of the answers themselves."""

import numpy as np
import pytest

import lrm
from lrm.domain import Bins, Categories, Domain
from lrm.privacy.budget import PureDP
from lrm.workbench.compiling import asked_statements
from lrm.workbench.fragments import placed, table_of
from lrm.workbench.rating import Rated

DOMAIN = Domain([Categories("s", ["a", "b"]), Bins("x", [0, 10, 100, 1000])], "t")
HALF = PureDP(lrm.privacy.amounts.parse_amount("0.5", "epsilon"))


def test_a_sum_is_linear_and_has_its_own_error():
    text = "SELECT s, SUM(x) AS total FROM t GROUP BY s;\nSELECT AVG(x) AS mean FROM t;"
    plan = lrm.plan(lrm.sql(text, DOMAIN), effort="quick")
    total, mean = Rated(plan).at(HALF, 0.95)
    released = lrm.release(plan, [3] * DOMAIN.size, epsilon="0.5").to_pandas()
    stated = released[released["query"] == "total"]["standard_error"]
    assert (total.part.kind, mean.part.kind) == ("sum", "derived")
    assert total.largest == pytest.approx(stated.max(), rel=1e-6)
    assert total.largest > 550


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
    rated = {one.part.name: one for one in Rated(plan).at(HALF, 0.95)}
    released = lrm.release(plan, [3] * DOMAIN.size, epsilon="0.5").unclipped.to_pandas()
    stated = released[released["query"] == "b"]
    assert rated["b"].largest == pytest.approx(stated["standard_error"].max(), rel=1e-6)
    typical = np.sqrt(np.mean(stated["standard_error"].to_numpy() ** 2))
    assert rated["b"].typical == pytest.approx(typical, rel=1e-6)
    halves = (stated["high"] - stated["low"]) / 2
    assert halves.min() * 0.999 <= rated["b"].half <= halves.max() * 1.001


def test_statements_find_their_errors_in_a_plan_of_an_older_text():
    old = "SELECT s, COUNT(*) AS n FROM t GROUP BY s;\nSELECT COUNT(*) AS m FROM t;"
    new = "SELECT COUNT(*) AS k FROM t;\nSELECT COUNT(*) AS m FROM t;"
    errors = Rated(lrm.plan(lrm.sql(old, DOMAIN), effort="quick")).at(HALF, 0.95)
    asked = asked_statements(lrm.sql(new, DOMAIN))
    found = placed(asked, errors)
    assert list(found) == [(1, 0)]
    assert found[1, 0].part.title == "m"
    html = table_of(asked, found, 0.95, None)
    assert html.count("<tr data-row") == 2
    assert "…" in html.partition('data-row="1"')[0]
