"""Two statements of a file may use one name for an answer."""

from __future__ import annotations

import numpy as np
import pytest

import lrm
from lrm.batches import sql
from lrm.domain import Categories, Domain, Integers
from lrm.errors import WorkloadError

DOMAIN = Domain([Categories("g", ["a", "b"]), Integers("x", 0, 3)], "t")
TEXT = """SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n;
SELECT g, COUNT(*) AS n, AVG(x) AS mean FROM t WHERE x > 1 GROUP BY g"""


def test_a_name_of_several_statements_is_that_of_each_with_its_statement():
    batch = sql(TEXT, DOMAIN)
    names = {label.query for label in batch.shown}
    assert names == {"q1.n", "q2.n", "mean"}
    assert batch.display[0].queries == ("q1.n",)


def test_looking_up_an_ambiguous_name_lists_the_alternatives():
    release = lrm.release(
        lrm.plan(sql(TEXT, DOMAIN), "noise-on-data"), np.full(DOMAIN.size, 9), epsilon=1
    )
    table = release.table()
    with pytest.raises(WorkloadError, match=r"several statements.* 'n'.*'q1.n', 'q2.n'"):
        table.of("n")
    assert len(table.of("q2.n")) == 2
    assert {"q1.n", "q2.n"} <= set(table.to_arrow()["query"].to_pylist())


def test_parts_of_derived_answers_with_one_name_do_not_clash():
    batch = sql(
        "SELECT AVG(x) AS pct FROM t;"
        "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM t GROUP BY g",
        DOMAIN,
    )
    assert [one.label.query for one in batch.derived] == ["pct", "pct"]  # one of them by g
    lrm.plan(batch, "noise-on-data")
