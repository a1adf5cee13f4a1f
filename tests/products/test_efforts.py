"""More effort never ends in more error, once strategies are rounded to integers."""

from dataclasses import replace

import numpy as np
import pytest

import lrm
from lrm.exact.products.rounding import round_products, rounded_error
from lrm.maps.products.batch import cross_tabs, product_batch
from lrm.maps.products.map import ProductMap
from lrm.solvers.products.optimise import optimise_products
from lrm.strategies import Problem, ProductChoice

BATCHES = {
    "pairs": cross_tabs([3, 4, 5, 2], [1, 2]),
    "prefixes": product_batch([12, 4, 3], [["prefix", "identity", "total"], ["total"] * 3]),
    "binary": cross_tabs([2] * 6, [1]),
}


@pytest.mark.parametrize("name", BATCHES)
def test_normal_is_not_worse_than_quick(name):
    workload = lrm.Workload(ProductMap(BATCHES[name]))
    quick, normal = (lrm.plan(workload, effort=effort) for effort in ("quick", "normal"))
    assert normal.strategy_error <= quick.strategy_error


def test_of_two_strategies_the_better_one_is_kept_after_rounding():
    batch = cross_tabs([6, 7, 8, 9], [1])
    good = optimise_products(batch, effort="quick")
    (group,) = good.groups
    weights = group.marginals.weights * np.linspace(1.0, 1.5, len(group.marginals.weights))
    marginals = replace(group.marginals, weights=weights / weights.sum())
    bad = replace(good, groups=(replace(group, marginals=marginals),), runner_up=good)
    problem = Problem(lrm.Workload(ProductMap(batch)))
    _, chosen = ProductChoice("best", bad).rounded(problem, "laplace", None)
    error = rounded_error(batch, round_products(batch, good, None))
    assert error < rounded_error(batch, round_products(batch, bad, None))
    assert rounded_error(batch, chosen) == pytest.approx(error, rel=1e-12)
