"""One record of any bytes is divided into shares that sum to one record, on every engine."""

import csv
import math
import random
import struct

import numpy as np
import pytest

import odd_values
from engines import postgres_url
from lrm.domain import Domain, Integers, Numbers
from lrm.domain.numbers import RECORD
from lrm.tables import open_table

ENGINES = [
    "parquet",
    "arrow",
    "dataset",
    "pandas",
    "polars",
    "objects",
    "duckdb",
    "postgres",
    "csv",
]
COLUMNS = ("real", "single", "exact", "whole", "large")
KNOTS = [[0, 5], [-1e300, -1, 0, 5e-324, 7, 1e300], [0.1, 2.5, 5]]


@pytest.fixture(params=[*ENGINES, "spark"])
def engine(request):
    """Each engine, running."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    if request.param == "postgres":
        postgres_url()
    return request.param


def near_a_knot(rng):
    """The bits of a float64 at a knot, next to one, or between two."""
    knot = rng.choice([knot for knots in KNOTS for knot in knots])
    near = [float(knot), math.nextafter(knot, math.inf), math.nextafter(knot, -math.inf)]
    value = rng.choice([*near, knot * rng.random(), -0.0, 2**-1074 * rng.randint(-9, 9)])
    return int.from_bytes(struct.pack("<d", value), "little", signed=True)


def row(rng, place):
    made = odd_values.row(rng, number=place)
    return made if rng.random() < 0.5 else {**made, "real": near_a_knot(rng)}


def csv_file(rows, path):
    """The numbers as text: repr of floats (nan, inf, -0.0, 5e-324), all digits of decimals."""
    table = odd_values.arrow(odd_values.valid(rows)).select(["number", *COLUMNS])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(list(one.values()) for one in table.to_pylist())
    return path


def check(engine, folder, records, columns):
    rng = random.Random(engine)  # noqa: S311 - no secret
    rows = [row(rng, place) for place in range(records)]
    if engine == "csv":
        source = csv_file(rows, folder / "x.csv")
    else:
        source = odd_values.given_to(engine, rows, folder, {})
    for column in columns:
        for outside in ("clip", "drop"):
            declared = Domain(
                [
                    Integers("number", 0, records - 1),
                    Numbers(column, rng.choice(KNOTS), null="cell", nan="cell", outside=outside),
                ]
            )
            counts = open_table(source).counts(declared)._open().reshape(declared.shape)
            sums = counts.sum(axis=1)
            assert counts.min() >= 0
            assert np.all((counts > 0).sum(axis=1) <= 2)
            assert np.all((sums == RECORD) | (sums == 0))
            unreadable = engine in {"objects", "parquet", "arrow", "dataset", "pandas"}
            if outside == "clip" and not unreadable:
                assert np.all(sums == RECORD)


def test_records_of_any_bytes(engine, tmp_path):
    check(engine, tmp_path, 300, ["real", "exact"])


@pytest.mark.long
def test_ten_thousand_records_of_any_bytes(engine, tmp_path):
    check(engine, tmp_path, 10_000, COLUMNS)
