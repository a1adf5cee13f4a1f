"""A question of the batch that is asked again has the answer of the release."""

import numpy as np
import pytest

import lrm
from lrm.errors import WorkloadError
from lrm.queries.workload.finding import find_statement

DOMAIN = lrm.Domain(
    [
        lrm.Categories("ward", ["a", "b", "c"]),
        lrm.Integers("month", 1, 6),
        lrm.Integers("stay", 0, 9),
    ],
    "visits",
)
TABLES = """
SELECT ward, month, COUNT(*) AS by_month FROM visits GROUP BY ward, month;
SELECT ward, COUNT(*) FILTER (WHERE stay >= 7) AS long FROM visits GROUP BY ward;
SELECT month, SUM(stay) AS days FROM visits GROUP BY month;
SELECT MEDIAN(stay) AS middle FROM visits;
"""
COUNTS = """
SELECT COUNT(*) AS n FROM visits WHERE stay >= 3;
SELECT COUNT(*) AS n FROM visits WHERE ward <> 'a';
SELECT COUNT(*) AS n FROM visits WHERE month > 2 AND ward = 'b';
"""


@pytest.mark.parametrize("text", [TABLES, COUNTS], ids=["tables", "counts"])
@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
def test_the_batch_asked_again(text, noise):
    plan = lrm.plan(lrm.sql(text, DOMAIN), noise=noise, effort="quick")
    counts = np.random.default_rng(1).integers(0, 50, DOMAIN.size)
    privacy = {"rho": 1} if noise == "gaussian" else {"epsilon": 1}
    release = lrm.release(plan, counts, **privacy)
    again = release.query(text)
    np.testing.assert_allclose(again.answers, release.answers, rtol=1e-6, atol=1e-6)
    own, other = (one.plan.reconstruction_map.row_squared_norms for one in (release, again))
    np.testing.assert_allclose(other, own, rtol=1e-6)


def test_a_statement_is_found_by_name_answer_number_or_title():
    text = "-- Patients by ward\nSELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;" + COUNTS
    batch = lrm.sql(text, DOMAIN)
    found = [find_statement(batch, name) for name in ("q1.n", "1", "Patients by ward")]
    assert len(set(map(id, found))) == 1
    with pytest.raises(WorkloadError, match="no statement is called 'Patients'"):
        find_statement(batch, "Patients")
