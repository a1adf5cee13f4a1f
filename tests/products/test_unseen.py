"""Batches over products that nobody tuned for: a quick search is above no baseline.

`benchmarks.gates.unseen_products` draws them from a seed and computes the baselines' errors from
their definitions; `python -m benchmarks products unseen` tries more of them, and larger ones.
"""

import pytest

import lrm
from benchmarks.gates.unseen_products import KINDS, ROUNDING, baseline_errors, draw, workload_of
from long_runs import cases


def check(seed, number, noise, *, small):
    name, batch = draw(seed, number, small=small)
    baselines = baseline_errors(batch, noise, flat=False)
    plan = lrm.plan(workload_of(batch), noise=noise, effort="quick")
    baseline = min(baselines, key=baselines.get)
    assert plan.weighted_strategy_error <= ROUNDING * baselines[baseline], (name, baseline)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
def test_a_quick_search_is_above_no_baseline(number, noise):
    check(3, number, noise, small=True)


@pytest.mark.long
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_quick_search_of_larger_tables_is_above_no_baseline(noise):
    for number in range(cases(len(KINDS))):
        check(4, number, noise, small=False)
