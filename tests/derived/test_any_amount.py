"""Rates, averages and quantiles at every amount that people try."""

import numpy as np
import pandas as pd
import pytest

import lrm

TEXT = """
SELECT c, AVG(x) AS mean, COUNT(*) AS n FROM t GROUP BY c;
SELECT AVG(CASE WHEN c = 'a' THEN 1.0 ELSE 0 END) AS rate FROM t WHERE x > 3;
SELECT c, STDDEV(x) AS spread FROM t GROUP BY c;
SELECT MEDIAN(x) AS middle FROM t
"""


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"c": rng.choice(["a", "b"], 300), "x": rng.integers(0, 10, 300)})


@pytest.fixture(scope="module", params=["pure", "laplace", "gaussian"])
def plan(request):
    domain = lrm.Domain([lrm.Categories("c", ["a", "b"]), lrm.Integers("x", 0, 9)], "t")
    return lrm.plan(lrm.sql(TEXT, domain), noise=request.param, effort="quick")


@pytest.mark.filterwarnings("ignore:.*protects nobody")
@pytest.mark.parametrize("amount", ["0.001", "1", "50", "700", "800", "10000", "1000000"])
def test_intervals_are_ordered_at_every_amount(plan, frame, amount, tmp_path):
    """At ε ≥ 700 the variance of the noise is 0 in float64, and was divided by."""
    amounts = {"rho": amount} if plan.noise == "gaussian" else {"epsilon": amount}
    release = lrm.release(plan, frame, ledger=None, **amounts)
    table = release.to_pandas()
    assert (table["low"] <= table["high"]).all()
    release.report(tmp_path / "page.html")
    if float(amount) < 700:
        return
    truth = frame.groupby("c")["x"].mean().tolist()
    means = table[table["query"].str.startswith("mean")]
    assert means["answer"].tolist() == pytest.approx(truth, abs=0.1)
    assert means["low"].tolist() == pytest.approx(truth, abs=0.2)
    assert means["high"].tolist() == pytest.approx(truth, abs=0.2)
