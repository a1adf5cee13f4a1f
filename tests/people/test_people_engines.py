"""Every engine makes the same level of the same rows, and keeps the same rows of each person."""

import re

import numpy as np
import pandas as pd
import pytest

from lrm.domain.features import Feature, flag
from lrm.domain.file import parse_declared
from lrm.errors import TableError
from lrm.tables.base import Table
from lrm.tables.people import open_people
from people.shop import SHOP, TEXT, stored
from people.test_people_neighbours import LEVELS, counts_of, odd_tables

pytestmark = pytest.mark.usefixtures("fixed_key")

LIMITED = parse_declared(
    TEXT.replace("rows: {most: 4}", "rows: {most: 3, by: {category: 2}, groups: 2}")
)
CASES = {
    **LEVELS,
    "limits by group": LIMITED.events("orders", ["amount", "region"]),
    "last and different": SHOP.persons(
        ["region"],
        [
            Feature(SHOP.features[0].attribute, "orders", "distinct", "category"),
            Feature(flag("no visit"), "visits", "exists"),
        ],
    ),
}


def awkward(seed):
    """Names that are numbers in one table and texts in another, long ones, and odd amounts."""
    data = odd_tables(seed)
    data["customers"]["id"] = data["customers"]["id"].astype(str).replace({"3": "3" * 300})
    orders = data["orders"]
    names = orders["customer"].astype(str).where(orders["customer"].notna(), None)
    orders["customer"] = names.replace({"3": "3" * 300})
    orders.iloc[:6, orders.columns.get_loc("amount")] = [np.nan, -5.0, 0.00005, 1e300, 10.0, np.inf]
    return data


@pytest.fixture
def engine(request):
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


def compare(engine, folder, data, cases=CASES):
    tables = stored(data, engine, folder)
    for name, level in cases.items():
        table = open_people(level, tables)
        table.check(level.domain)
        counted = table.counts(level.domain)._open()
        np.testing.assert_array_equal(counted, counts_of(level, data, "pandas", folder), name)
        assert counted.sum() > 0


@pytest.mark.parametrize("engine", ["csv", "parquet", "duckdb", "postgres", "spark"], indirect=True)
def test_every_engine_has_the_same_counts(engine, tmp_path):
    few = {name: CASES[name] for name in ("persons", "limits by group")}
    compare(engine, tmp_path, awkward(5), few if engine == "spark" else CASES)


@pytest.mark.parametrize("engine", ["postgres", "spark"], indirect=True)
def test_every_engine_counts_what_is_dropped_in_cells_of_its_own(engine, tmp_path):
    level, data = LEVELS["events"], awkward(5)
    domain = level.domain
    domain = domain.with_rest([axis for axis in range(len(domain.shape)) if domain.drops(axis)])
    counts = [
        open_people(level, stored(data, name, tmp_path)).counts(domain)._open()
        for name in ("pandas", engine)
    ]
    np.testing.assert_array_equal(*counts)
    declared = domain.declared_cells
    assert domain.rest_axes
    assert counts[0].reshape(-1)[declared].sum() < counts[0].sum()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"], indirect=True)
def test_every_engine_has_the_same_counts_of_many_tables(engine, seed, tmp_path):
    compare(engine, tmp_path, awkward(seed))


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_a_database_that_has_all_tables_is_one_address(engine, tmp_path):
    data, level = odd_tables(1), LEVELS["events"]
    places = stored(data, engine, tmp_path)
    address = re.split(r"::|[?&]table=", places["orders"])[0]
    table = open_people(level, address)
    counted = table.counts(level.domain)._open()
    np.testing.assert_array_equal(counted, counts_of(level, data, engine, tmp_path))
    with pytest.raises(TableError, match="no table 'sales'"):
        open_people(parse_declared(TEXT.replace("orders", "sales")).events("sales", []), address)


def test_tables_on_two_engines_are_refused(tmp_path):
    data = odd_tables(0)
    tables = {**data, **stored({"orders": data["orders"]}, "postgres", tmp_path)}
    with pytest.raises(TableError, match="two engines"):
        open_people(LEVELS["events"], tables)


def test_tables_of_two_databases_are_refused(tmp_path):
    tables = stored(odd_tables(0), "postgres", tmp_path)
    tables["orders"] += "&application_name=other"
    with pytest.raises(TableError, match="several PostgreSQL databases"):
        open_people(LEVELS["events"], tables)


def test_an_engine_that_cannot_count_a_people_refuses():
    class OtherTable(Table):
        def _described(self):
            return ()

        def _check(self, *_):
            raise AssertionError

        _counts = _check

    tables = dict.fromkeys(("customers", "orders"), OtherTable("t"))
    with pytest.raises(TableError, match="OtherTable does not count"):
        open_people(LEVELS["events"], tables)


def test_missing_columns_are_named_before_anything_is_counted(tmp_path):
    data = odd_tables(0)
    data["orders"] = data["orders"].rename(columns={"category": "kind"})
    for engine in ("pandas", "postgres"):
        table = open_people(LEVELS["events"], stored(data, engine, tmp_path))
        with pytest.raises(TableError, match="no column 'category'"):
            table.check(LEVELS["events"].domain)
    assert isinstance(data["orders"], pd.DataFrame)
