"""Plans of SQL over several attributes, whose cells merge further than value by value."""

from dataclasses import replace

import lrm
from lrm.domain import Categories, Domain, Integers
from lrm.queries.maps.matrices import SparseMap

DOMAIN = Domain(
    [Categories("a", list("wxyz")), Integers("b", 0, 9), Categories("c", ["f", "m"])], "t"
)
TEXT = """
    SELECT a, COUNT(*) AS n FROM t GROUP BY CUBE (a, b);
    SELECT a, c, COUNT(*) AS m FROM t WHERE b < 5 GROUP BY a, c"""


def test_cells_that_only_some_values_tell_apart():
    """For b of 5 and more, no query asks about c: 60 of 80 cells are distinguished."""
    batch = lrm.sql(TEXT, DOMAIN)
    listed = replace(batch, queries=SparseMap(batch.queries.sparse()))
    options = {"noise": "laplace", "objective": "total", "effort": "quick"}
    error = lrm.plan(batch, **options).strategy_error
    assert error <= lrm.plan(listed, **options).strategy_error * (1 + 1e-9)
