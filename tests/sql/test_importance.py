"""An importance before a statement reaches the inputs of its derived answers, shared or not."""

from __future__ import annotations

from lrm.domain import Categories, Domain, Integers
from lrm.queries.files import parse_batch
from lrm.queries.sql import sql

DOMAIN = Domain([Categories("g", ["a", "b"]), Integers("x", 0, 3)], "t")


def test_shared_inputs_have_the_largest_importance():
    text = "SELECT COUNT(x) AS n FROM t;\n-- importance: 100\nSELECT AVG(x) AS mean FROM t"
    batch = sql(text, DOMAIN)
    assert batch.importance.tolist() == [100.0, 100.0]
    assert sql(text.replace("COUNT(x)", "COUNT(*)"), DOMAIN).importance.tolist() == [1, 100, 100]
    yaml = (
        "lrm-batch: 1\nqueries:\n  - kind: sql\n    text: |\n      SELECT COUNT(x) AS n FROM t;\n"
        "      SELECT AVG(x) AS mean FROM t\n    importance: {mean: 100}\n"
    )
    assert parse_batch(yaml, DOMAIN).importance.tolist() == [100.0, 100.0]


def test_hidden_inputs_may_be_less_important_than_others():
    text = "SELECT SUM(x) AS s FROM t;\n-- importance: 0.5\nSELECT VARIANCE(x) AS v FROM t"
    importance = sql(text, DOMAIN).importance.tolist()
    assert importance[0] == 1.0
    assert set(importance[1:]) == {0.5}
