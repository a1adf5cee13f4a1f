"""Some comparisons differ from DuckDB's on the same table, and no page said so.

Constants are not rounded any more. What still differs, on purpose or because cells are cut in
float64, is listed in docs/how-to/queries-over-a-domain.md; here each line of that list is counted
both ways, as is what lies just beside it and agrees.
"""

import duckdb
import numpy as np
import pytest

import lrm
from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import DomainError, SqlError
from lrm.tables import open_table


def both_ways(tmp_path, column, values, attribute, condition):
    """The answer of lrm without noise, and of DuckDB, to COUNT(*) … WHERE condition."""
    place = str(tmp_path / "t.duckdb")
    with duckdb.connect(place) as db:
        db.execute(f"CREATE OR REPLACE TABLE t (x {column})")
        for value in values:
            db.execute(f"INSERT INTO t VALUES ({value})")
        theirs = db.execute(f"SELECT COUNT(*) FROM t WHERE {condition}").fetchone()[0]
    domain = Domain([attribute], "t")
    counts = open_table(f"{place}::t").counts(domain)._open()
    workload = lrm.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", domain)
    return float(workload.queries.apply(counts.astype(np.float64))[0]), float(theirs)


DAYS = Dates("x", "2024-01-01", "2024-01-31")
TIMES = [f"TIMESTAMP '2024-01-0{day} {hour}:00:00'" for day in (4, 5, 6) for hour in ("00", "10")]
BINS = Bins("x", [0, 0.7, 1], outside="cell")
WIDE = Bins("x", [0, 2**53, 2**54], outside="cell")


@pytest.mark.parametrize(
    ("column", "values", "attribute", "condition", "ours", "theirs"),
    [
        # A day is the whole day: at <= and = engines see midnight alone.
        ("TIMESTAMP", TIMES, DAYS, "x <= '2024-01-05'", 4, 3),
        ("TIMESTAMP", TIMES, DAYS, "x = '2024-01-05'", 2, 1),
        ("TIMESTAMP", TIMES, DAYS, "x > '2024-01-05'", 2, 3),
        ("TIMESTAMP", TIMES, DAYS, "x < '2024-01-05'", 2, 2),
        ("TIMESTAMP", TIMES, DAYS, "x >= '2024-01-05'", 4, 4),
        ("DATE", ["DATE '2024-01-05'", "DATE '2024-01-06'"], DAYS, "x <= '2024-01-05'", 1, 1),
        # 0.7 in four bytes is 0.699999988; DuckDB rounds the constant to four bytes too.
        ("FLOAT", ["0.7", "0.5", "0.71"], BINS, "x < 0.7", 2, 1),
        ("FLOAT", ["0.5", "0.25", "0.71"], Bins("x", [0, 0.5, 1]), "x < 0.5", 1, 1),
        ("DOUBLE", ["0.7", "0.5", "0.71"], BINS, "x < 0.7", 1, 1),
        # Beyond 16 digits decimals are rounded to float64.
        ("DECIMAL(30,20)", ["0.69999999999999999999", "0.5"], BINS, "x < 0.7", 1, 2),
        ("DECIMAL(30,20)", ["0.6999999999999999", "0.7", "0.5"], BINS, "x < 0.7", 2, 2),
        # And so are whole numbers beyond 2^53, in bins.
        ("BIGINT", [2**54 - 1, 5], WIDE, f"x < {2**54}", 1, 2),
        ("BIGINT", [2**53 - 1, 2**53, 5], WIDE, f"x < {2**53}", 2, 2),
        (
            "BIGINT",
            [2**60 - 1, 2**60, 5],
            Integers("x", 0, 2**61, width=2**60),
            f"x < {2**60}",
            2,
            2,
        ),
        # A constant with an exponent is a DOUBLE to DuckDB, which rounds the column as well.
        (
            "BIGINT",
            [2**60, 2**60 + 1],
            Integers("x", 2**60 - 2, 2**60 + 7),
            "x <= 1152921504606846976e0",
            1,
            2,
        ),
        # Texts are compared byte by byte, whatever the column's collation says.
        ("VARCHAR COLLATE NOCASE", ["'NY'", "'ny'"], Categories("x", ["NY"]), "x = 'NY'", 1, 2),
        ("VARCHAR", ["'NY'", "'ny'"], Categories("x", ["NY"]), "x = 'NY'", 1, 1),
    ],
)
def test_what_differs_and_what_agrees(tmp_path, column, values, attribute, condition, ours, theirs):
    assert both_ways(tmp_path, column, values, attribute, condition) == (ours, theirs)


@pytest.mark.parametrize(
    ("edges", "constant"),
    [
        ([0, 2**53, 2**54], 2**53 + 1),
        ([0, 2**53, 2**54], 2**54 - 1),
        ([0, 0.7, 1], "0.70000000000000000001"),
        ([0, 0.7, 1], "0.69999999999999999999"),
    ],
)
@pytest.mark.parametrize("operation", ["<", ">=", "<=", ">"])
def test_a_constant_beside_an_edge_is_not_rounded_to_it(edges, constant, operation):
    domain = Domain([Bins("x", edges)], "t")
    with pytest.raises(SqlError, match="cuts through the cell"):
        lrm.sql(f"SELECT COUNT(*) FROM t WHERE x {operation} {constant}", domain)


@pytest.mark.parametrize("constant", ["0.7", "7e-1", ".70", f"{0.7:.60f}"])
def test_every_spelling_of_an_edge_is_that_edge(constant):
    domain = Domain([Bins("x", [0, 0.7, 1])], "t")
    batch = lrm.sql(f"SELECT COUNT(*) AS n FROM t WHERE x < {constant}", domain)
    assert batch.queries.dense().tolist() == [[1.0, 0.0]]


def test_an_edge_that_float64_cannot_hold_is_refused():
    with pytest.raises(DomainError, match="exact in float64"):
        Bins("x", [0, 2**53 + 1])
    assert Bins("x", [0, 2**60]).edges[1] == 2.0**60
