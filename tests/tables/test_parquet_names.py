"""Two readers took different columns of a Parquet file for one.

DuckDB calls the second of two columns ``s`` and ``S`` ``S_1``, whatever else is called so. A value
that its reader refuses has the file read again by Arrow's, which finds the column that is really
called ``S_1``, or, of two columns ``s``, none: one record decided which column was counted, or
whether the count failed.
"""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrm.domain import Categories, Domain
from lrm.errors import TableError
from lrm.tables import open_table

WORDS = [pa.array(["a"]), pa.array(["b"]), pa.array(["c"])]


@pytest.mark.parametrize(
    ("names", "wanted"), [("s S S_1", "S_1"), ("s s t", "s"), ("s s t", "s_1")]
)
def test_a_column_that_has_two_names_is_refused(tmp_path, names, wanted):
    pq.write_table(pa.Table.from_arrays(WORDS, names.split()), tmp_path / "x.parquet")
    with pytest.raises(TableError, match="several columns that may be called"):
        open_table(tmp_path / "x.parquet").check(Domain([Categories(wanted, ["a", "b", "c"])]))


def test_other_columns_may_have_the_same_name(tmp_path):
    pq.write_table(pa.Table.from_arrays(WORDS, ["s", "t", "T"]), tmp_path / "x.parquet")
    table, domain = open_table(tmp_path / "x.parquet"), Domain([Categories("s", ["a", "b"])])
    table.check(domain)
    assert table.counts(domain)._open().tolist() == [1, 0]
