"""COUNT(DISTINCT person) is refused: a limit of rows per person is one over all groups."""

from __future__ import annotations

import pytest

from lrm.domain import Domain, Integers, PrivacyUnit
from lrm.errors import SqlError
from lrm.queries.sql import sql

ATTRIBUTES = [Integers("ward", 1, 3)]
ONE = Domain(ATTRIBUTES, "stays", unit=PrivacyUnit("patient"))
SEVERAL = Domain(ATTRIBUTES, "stays", unit=PrivacyUnit("patient", max_rows=3))


@pytest.mark.parametrize("domain", [ONE, SEVERAL], ids=["one row", "three rows"])
@pytest.mark.parametrize("column", ["patient", "Patient", "s.patient"])
@pytest.mark.parametrize("group", ["", " GROUP BY ward"])
def test_persons_are_not_counted_by_the_rows_that_a_limit_keeps(domain, column, group):
    with pytest.raises(SqlError, match=r"of persons is not supported.*COUNT\(\*\)") as caught:
        sql(f"SELECT COUNT(DISTINCT {column}) AS n FROM stays s{group}", domain)
    assert caught.value.code == "aggregate"
    assert "declare max_rows" not in str(caught.value)


def test_other_distinct_values_are_not_counted_either():
    with pytest.raises(SqlError, match=r"COUNT\(DISTINCT ward\) is not supported"):
        sql("SELECT COUNT(DISTINCT ward) FROM stays", ONE)
    with pytest.raises(SqlError, match=r"SUM\(DISTINCT …\) is not supported"):
        sql("SELECT SUM(DISTINCT patient) FROM stays", ONE)
