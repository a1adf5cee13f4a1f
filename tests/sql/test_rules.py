"""The rules of `rewrite`: each is shown where it applies, and where it must not."""

from __future__ import annotations

from dataclasses import fields

import pytest

from lrm.domain import Categories, Domain, Integers, Lookup
from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql import sql
from lrm.queries.sql.build import build
from lrm.queries.sql.render import shown
from lrm.queries.sql.rewrite import normal
from lrm.queries.sql.source import split

DOMAIN = Domain(
    [Categories("c", ["u", "a", "b"]), Integers("m", 1, 4), Integers("k", 0, 9)],
    "t",
    lookups=[
        Lookup("half", "c", ["name"], [["u", "United"]]),
        Lookup("whole", "m", ["season"], [[m, "cold"] for m in range(1, 5)]),
    ],
)
BY_C = "SELECT c, COUNT(*) AS n FROM t GROUP BY c"
OVER = "SELECT c, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM t GROUP BY c"
CUT = f"{BY_C} ORDER BY n LIMIT 3"


def rewritten(text):
    (chunk,) = split(text)
    return normal(build(chunk, DOMAIN).plan.parts[0], DOMAIN)


def code_of(text):
    with pytest.raises(SqlError) as caught:
        rewritten(text)
    return caught.value.code


def texts(nodes):
    return [shown(one) for one in nodes]


def test_filter_of_rows_is_where():
    found = rewritten(
        "SELECT COUNT(*) FROM (SELECT k + 1 AS j, c FROM t WHERE c = 'u') WHERE j > 3"
    )
    assert texts(found.where) == ["c = 'u'", "(k + 1) > 3"]


def test_filter_of_groups_is_where_and_filter_of_answers_is_having():
    found = rewritten(f"SELECT * FROM ({BY_C}) WHERE c <> 'u' AND n > 3")
    assert texts(found.where) == ["c <> 'u'"]
    assert texts(found.having) == ["COUNT(*) > 3"]


def test_filter_does_not_cross_a_window_or_a_limit():
    found = rewritten(f"SELECT * FROM ({OVER}) WHERE c <> 'u'")
    assert not found.where
    assert texts(found.later) == ["c <> 'u'"]
    assert code_of(f"SELECT * FROM ({CUT}) WHERE c <> 'u'") == "nested"
    assert code_of(f"SELECT * FROM ({CUT}) WHERE n > 3") == "nested"


def test_having_of_groups_is_where_for_one_grouping_set_only():
    assert texts(rewritten(f"{BY_C} HAVING c <> 'u'").where) == ["c <> 'u'"]
    rolled = rewritten("SELECT c, COUNT(*) FROM t GROUP BY ROLLUP (c) HAVING c <> 'u'")
    assert not rolled.where
    assert texts(rolled.having) == ["c <> 'u'"]


def test_a_window_does_not_come_after_what_noise_chooses():
    shares = "SELECT c, n / SUM(n) OVER () AS share FROM ({}) AS a"
    assert rewritten(shares.format(BY_C)).windows
    for inner in (CUT, f"SELECT * FROM ({OVER}) WHERE c <> 'u'"):
        assert code_of(shares.format(inner)) == "nested"


def test_a_window_after_having_is_over_the_groups_that_are_displayed():
    shares = "SELECT c, n / SUM(n) OVER () AS share FROM ({}) AS a"
    for text in (shares.format(f"{BY_C} HAVING COUNT(*) > 3"), f"{OVER} HAVING COUNT(*) > 3"):
        (display,) = sql(text, DOMAIN).display
        assert [rank.function for rank in display.ranks] == ["sum"]


def test_an_inner_join_filters_where_a_lookup_is_incomplete():
    joined = "SELECT COUNT(*) FROM t JOIN {} USING ({})"
    assert texts(rewritten(joined.format("half", "c")).where) == ["half"]
    assert not rewritten(joined.format("whole", "m")).where
    assert not rewritten(joined.format("half", "c").replace("JOIN", "LEFT JOIN")).where


def test_a_join_does_not_cross_a_window_or_a_limit():
    later = rewritten(f"SELECT c, n, total FROM ({OVER}) a JOIN half USING (c)")
    assert (texts(later.where), texts(later.later)) == ([], ["half"])
    assert code_of(f"SELECT c, n FROM ({CUT}) a JOIN half USING (c)") == "nested"


def test_sums_of_linear_answers_are_answers_of_rows():
    inner = "SELECT c, m, COUNT(*) AS n, AVG(k) AS a FROM t GROUP BY c, m"
    found = rewritten(f"SELECT c, SUM(n) AS s FROM ({inner}) WHERE m > 2 GROUP BY c")
    assert texts(found.sets[0]) == ["c"]
    assert texts(item.expr for item in found.items) == ["c", "COUNT(*)"]
    assert texts(found.where) == ["m > 2"]
    mean = rewritten(f"SELECT AVG(n) AS m FROM ({inner})")
    assert texts(item.expr for item in mean.items) == ["COUNT(*) / (number of groups by c, m)"]
    assert rewritten(f"SELECT SUM(a) FROM ({inner})").over == ()  # of what is displayed
    assert rewritten(f"SELECT AVG(a) FROM ({inner})").over == ()
    assert code_of(f"SELECT SUM(n) FROM ({inner} LIMIT 3)") == "nested"
    (display,) = sql(f"SELECT SUM(n) AS s FROM ({inner} HAVING COUNT(*) > 3)", DOMAIN).display
    assert (display.ranks[0].function, display.left_out) == ("sum", ("c", "m"))


def test_order_is_replaced_before_a_limit_and_not_after():
    found = rewritten(f"SELECT * FROM ({BY_C} ORDER BY n) ORDER BY c DESC")
    assert [(shown(one.this), one.descending) for one in found.order] == [("c", True)]
    assert code_of(f"SELECT * FROM ({CUT}) ORDER BY c") == "nested"


@pytest.mark.parametrize(
    ("ending", "limit", "offset"),
    [
        ("LIMIT 2", 2, 0),
        ("LIMIT 9", 3, 0),
        ("OFFSET 1", 2, 1),
        ("LIMIT 1 OFFSET 2", 1, 2),
        ("OFFSET 7", 0, 7),
    ],
)
def test_a_limit_after_a_limit_is_a_part_of_the_part(ending, limit, offset):
    found = rewritten(f"SELECT * FROM ({CUT}) {ending}")
    assert (found.limit, found.offset) == (limit, offset)


def test_joined_answers_keep_conditions_on_groups():
    one, two = (
        f"(SELECT c, COUNT(*) AS n FROM t WHERE {where} GROUP BY c) {name}"
        for where, name in (("c <> 'u' AND k > 3", "a"), ("c <> 'b'", "b"))
    )
    found = rewritten(f"SELECT a.n, b.n AS m FROM {one} JOIN {two} USING (c)")
    assert texts(found.where) == ["c <> 'u'", "c <> 'b'"]
    assert texts(item.expr for item in found.items) == [
        "COUNT(*) FILTER (WHERE (k > 3))",
        "COUNT(*)",
    ]
    left = rewritten(f"SELECT a.n, b.n AS m FROM {one} LEFT JOIN {two} USING (c)")
    assert texts(left.where) == ["c <> 'u'"]
    assert code_of(f"SELECT SUM(a.n) FROM {one} JOIN {two} USING (c)") == "nested"
    assert code_of(f"SELECT SUM(a.n) OVER () FROM {one} JOIN {two} USING (c)") == "nested"


def test_a_scalar_subquery_has_its_own_rows_and_no_groups():
    found = rewritten("SELECT c, COUNT(*) / (SELECT COUNT(*) FROM t WHERE k > 3) FROM t GROUP BY c")
    assert shown(found.items[1].expr) == "COUNT(*) / (SELECT COUNT(*) FILTER (WHERE (k > 3)))"
    assert code_of(f"SELECT COUNT(*) / (SELECT n FROM ({BY_C})) FROM t") == "subquery"
    assert code_of("SELECT COUNT(*) FROM t WHERE k > (SELECT AVG(k) FROM t)") == "subquery"


def test_the_parts_of_every_node_are_fields():
    for kind in (
        *ir.Expr.__subclasses__(),
        *ir.Unary.__subclasses__(),
        *ir.Several.__subclasses__(),
    ):
        assert set(kind.parts) <= {one.name for one in fields(kind)}, kind
