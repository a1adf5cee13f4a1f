"""PIVOT: one aggregate per value, by all other columns."""

from __future__ import annotations

import numpy as np
import pytest

from lrm.domain import Categories, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import sql

DOMAIN = Domain(
    [Categories("c", ["x", "y"]), Categories("sex", ["f", "m"]), Integers("v", 0, 3)], "t"
)
WRITTEN = (
    "SELECT c, {0} FILTER (WHERE sex = 'f') AS f, {0} FILTER (WHERE sex = 'm') AS m "
    "FROM t GROUP BY c"
)


def same(text, written):
    one, two = (sql(each, DOMAIN) for each in (text, written))
    assert one.shown.query_names() == two.shown.query_names()
    assert np.array_equal(one.queries.dense(), two.queries.dense())


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(v)"])
@pytest.mark.parametrize(
    "text",
    [
        "PIVOT t ON sex USING {} GROUP BY c",
        "PIVOT t ON sex IN ('f', 'm') USING {} GROUP BY c",
        "SELECT * FROM (SELECT c, sex, v FROM t) PIVOT ({} FOR sex IN ('f', 'm'))",
        (
            "-- dialect: snowflake\nSELECT * FROM (SELECT c, sex, v FROM t) "
            "PIVOT ({} FOR sex IN ('f', 'm')) AS p (c, f, m)"
        ),
    ],
)
def test_a_pivot_is_its_aggregates_by_value(text, aggregate):
    if aggregate == "COUNT(*)":
        text = text.replace("c, sex, v", "c, sex")
    same(text.format(aggregate), WRITTEN.format(aggregate))


def test_values_may_have_names_and_several_aggregates():
    text = "SELECT * FROM (SELECT c, sex, v FROM t) PIVOT (SUM(v) FOR sex IN ('f' AS a, 'm' AS b))"
    same(text, WRITTEN.format("SUM(v)").replace("AS f", "AS a").replace("AS m", "AS b"))
    two = "PIVOT t ON sex USING COUNT(*) AS n, SUM(v) AS s GROUP BY c"
    assert sql(two, DOMAIN).shown.query_names() == ["f_n", "f_s", "m_n", "m_s"]


@pytest.mark.parametrize(
    "text",
    [
        "PIVOT t ON v USING COUNT(*) GROUP BY c",
        "PIVOT t ON sex GROUP BY c",
        "PIVOT t ON sex USING UPPER(c) GROUP BY c",
        "UNPIVOT t ON v INTO NAME n VALUE x",
        "SELECT * FROM t PIVOT (MAX(v) FOR sex IN ('f'))",
    ],
)
def test_other_pivots_are_refused(text):
    with pytest.raises(SqlError):
        sql(text, DOMAIN)
