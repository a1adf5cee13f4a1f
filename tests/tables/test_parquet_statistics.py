"""The statistics of a Parquet file decided the cells of all its NaNs.

The least and greatest numbers that a Parquet file states leave NaN out. DuckDB folded comparisons
by them: where all numbers of a column are in one bin, ``x < 10`` was taken to hold for NaN, too, so
that NaNs were counted in that bin. One row in another bin changed what is folded, and with it the
cell of every NaN: twenty of them moved with one record, under noise for one.
"""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrm.domain import Bins, Domain, Integers, PrivacyUnit
from lrm.tables import open_table

BINS = Bins("x", [0, 10, 20, 100], nan="cell")
WHOLE = Integers("x", 0, 9, 5, nan="cell", outside="cell")


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("who", 1)])
@pytest.mark.parametrize(
    ("attribute", "numbers", "cells"),
    [
        (BINS, [1.0, 5.0], [2, 0, 0, 20]),
        (BINS, [1.0, 5.0, 50.0], [2, 0, 1, 20]),
        (BINS, [-1.0], [0, 0, 0, 20]),
        (WHOLE, [1.0, 2.0], [2, 0, 0, 0, 0, 20]),
        (WHOLE, [1.0, 2.0, 70.0], [2, 0, 0, 1, 0, 20]),
    ],
)
def test_nans_are_in_their_cell_whatever_other_rows_are(tmp_path, attribute, numbers, cells, unit):
    reals = pa.array([*numbers, *[math.nan] * 20], pa.float64())
    pq.write_table(pa.table({"x": reals, "who": range(len(reals))}), tmp_path / "x.parquet")
    table = open_table(tmp_path / "x.parquet")
    assert table.counts(Domain([attribute], unit=unit))._open().tolist() == cells
