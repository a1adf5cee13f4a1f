"""COUNT(DISTINCT person) counts rows where each person has one."""

from __future__ import annotations

import numpy as np
import pytest

from lrm.domain import Domain, Integers, PrivacyUnit
from lrm.errors import SqlError
from lrm.queries.sql import sql

ATTRIBUTES = [Integers("ward", 1, 3)]
ONE = Domain(ATTRIBUTES, "stays", unit=PrivacyUnit("patient"))
SEVERAL = Domain(ATTRIBUTES, "stays", unit=PrivacyUnit("patient", max_rows=3))


@pytest.mark.parametrize("column", ["patient", "Patient", "s.patient"])
def test_persons_are_counted_where_each_has_one_row(column):
    text = f"SELECT ward, COUNT(DISTINCT {column}) AS n FROM stays s GROUP BY ward"
    plain = sql("SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward", ONE)
    assert np.array_equal(sql(text, ONE).queries.dense(), plain.queries.dense())


def test_persons_with_several_rows_are_not_counted():
    with pytest.raises(SqlError, match="may have 3 rows") as caught:
        sql("SELECT COUNT(DISTINCT patient) FROM stays", SEVERAL)
    assert caught.value.code == "aggregate"
    with pytest.raises(SqlError, match=r"COUNT\(DISTINCT …\) is not supported"):
        sql("SELECT COUNT(DISTINCT ward) FROM stays", ONE)
    with pytest.raises(SqlError, match=r"SUM\(DISTINCT …\) is not supported"):
        sql("SELECT SUM(DISTINCT patient) FROM stays", ONE)
