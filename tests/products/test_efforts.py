"""More effort never ends in more error, once strategies are rounded to integers."""

import pytest

import lrm
from lrm.queries.maps.products.batch import cross_tabs, product_batch
from lrm.queries.maps.products.map import ProductMap

BATCHES = {
    "pairs": cross_tabs([3, 4, 5, 2], [1, 2]),
    "prefixes": product_batch([12, 4, 3], [["prefix", "identity", "total"], ["total"] * 3]),
    "binary": cross_tabs([2] * 5, [1]),
}


@pytest.mark.parametrize("name", BATCHES)
def test_normal_is_not_worse_than_quick(name):
    workload = lrm.Workload(ProductMap(BATCHES[name]))
    quick, normal = (lrm.plan(workload, effort=effort) for effort in ("quick", "normal"))
    assert normal.strategy_error <= quick.strategy_error
