"""Consistent answers of reports: the truth is among the answers that are projected on.

So the sum of squared errors over the batch, by importance, never grows: in no release, whatever the
noise and the statements are.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import lrm
from lrm.privacy.mechanism import shown_to_owner
from lrm.releases.levels import LevelsRelease
from lrm.releases.making import prepare
from people.shop import SHOP, tables

DOMAIN = lrm.Domain(
    [
        lrm.Categories("sex", ["f", "m"], null="cell", outside="cell"),
        lrm.Integers("age", 0, 99),
        lrm.Dates("day", "2024-01-01", "2024-03-31"),
        lrm.Numbers("stay", [0, 7, 30, 90]),
        *(lrm.Integers(f"f{k}", 0, 1) for k in range(3)),
    ],
    "t",
)
REPORTS = {
    "rollup and windows": """
        SELECT sex, f0, f1, COUNT(*) AS n FROM t GROUP BY ROLLUP(sex, f0, f1);
        SELECT age, SUM(COUNT(*)) OVER (ORDER BY age) AS up_to FROM t GROUP BY age""",
    "averages and quantiles": """
        SELECT sex, AVG(stay) AS mean, STDDEV(age) AS spread, MEDIAN(age) AS middle FROM t
        GROUP BY sex;
        SELECT COUNT(*) AS n, COUNT_IF(age > 64) / COUNT(*) AS old FROM t""",
    "conditions and sums": """
        SELECT COUNT(*) AS n FROM t WHERE sex = 'f' OR age > 50;
        -- importance: 9
        SELECT DATE_TRUNC('month', day) AS month, sex, SUM(age) AS years FROM t GROUP BY month, sex;
        SELECT f0, SUM(stay) AS stays FROM t WHERE day < '2024-02-01' GROUP BY f0""",
    "flags": """
        SELECT COUNT(*) AS y0 FROM t WHERE f0 = 1; SELECT COUNT(*) AS y1 FROM t WHERE f1 = 1;
        SELECT COUNT(*) AS y2 FROM t WHERE f2 = 1;
        SELECT sex, AVG(age) AS mean FROM t GROUP BY sex;
        SELECT sex, COUNT(*) AS old FROM t WHERE age >= 65 GROUP BY sex""",
}
SHOP_BATCH = """
    SELECT region, COUNT(*) AS customers FROM customers GROUP BY region;
    SELECT category, COUNT(*) AS orders FROM orders GROUP BY category;
    SELECT c.region, AVG(o.amount) AS mean FROM orders o JOIN customers c ON o.customer = c.id
        GROUP BY c.region;
    SELECT category, COUNT(*) / COUNT(DISTINCT customer) AS per_buyer FROM orders GROUP BY category
"""
AMOUNTS = {"laplace": {"epsilon": "0.1"}, "gaussian": {"rho": "0.01"}, "pure": {"epsilon": "0.1"}}
USUAL = {
    ("rollup and windows", "laplace"),
    ("averages and quantiles", "gaussian"),
    ("conditions and sums", "laplace"),
    ("flags", "pure"),
}
CASES = [
    pytest.param(*case, marks=() if case in USUAL else pytest.mark.long)
    for case in ((report, noise) for report in REPORTS for noise in AMOUNTS)
]


def rows(count=400):
    rng = np.random.default_rng(1)
    columns = {
        "sex": rng.choice(["f", "m", "?"], count, p=[0.7, 0.25, 0.05]),
        "age": np.minimum(rng.integers(0, 110, count), rng.integers(0, 110, count)),
        "day": np.datetime64("2024-01-01") + rng.integers(0, 92, count),
        "stay": rng.exponential(9, count),
    }
    return pa.table(columns | {f"f{k}": rng.integers(0, 2, count) for k in range(3)})


def check(release, truth):
    """Neither the errors of the consistent answers nor of those that are consistent already."""
    fixed = release.consistent(progress=False)
    importance = release.plan.workload.importance
    weights = np.ones(len(truth)) if importance is None else importance
    before, after = (weights @ (a - truth) ** 2 for a in (release.answers, fixed.answers))
    assert after <= before * (1 + 1e-7) + 1e-7
    assert set(fixed.moved) == {statement.name for statement in release.plan.workload.tables}
    again = lrm.releases.consistent.consistent_answers(release.plan.workload, fixed.answers.copy())
    assert np.allclose(again, fixed.answers, atol=1e-5 * max(1.0, np.abs(fixed.answers).max()))


def without_noise(level, part):
    """A release whose noise is 0."""
    counts = shown_to_owner(part.source.counts())
    return replace(level, noisy_measurements=part.plan.measured.measure(counts))


@pytest.mark.parametrize(("report", "noise"), CASES)
def test_squared_errors_of_reports_never_grow(report, noise):
    plan, data = lrm.plan(REPORTS[report], domain=DOMAIN, noise=noise, effort="quick"), rows()
    assert plan.measured.is_mixed == ((report, noise) == ("flags", "pure"))
    (part,) = prepare(plan, data, plan.privacy(**AMOUNTS[noise]), plan.unit, None).parts
    for _ in range(3):
        release = lrm.release(plan, data, ledger=None, **AMOUNTS[noise])
        check(release, without_noise(release, part).answers)


@pytest.mark.parametrize("noise", ["laplace", pytest.param("gaussian", marks=pytest.mark.long)])
def test_squared_errors_about_persons_and_their_rows_never_grow(noise):
    """Each level has tables of its own: there are more orders than customers."""
    plan, data = lrm.plan(SHOP_BATCH, domain=SHOP, noise=noise, effort="quick"), tables()
    release = lrm.release(plan, data, ledger=None, **AMOUNTS[noise])
    prepared = prepare(plan, data, plan.privacy(**AMOUNTS[noise]), plan.unit, None)
    levels = [*map(without_noise, release.levels, prepared.parts)]
    exact = LevelsRelease.of(plan, levels, release.privacy, plan.unit)
    check(exact, exact.answers)
    check(release, exact.answers)
