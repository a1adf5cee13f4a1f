"""Every engine counts the tabulations of a product as they follow from the counts of its cells."""

import math
from itertools import product

import numpy as np
import polars as pl
import pytest

from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.errors import TableError
from lrm.queries.maps.products.tabulation import Tabulation, tabulate, total
from lrm.tables import count as counting
from lrm.tables import duckdb_table, joined_rows, open_table, row_limit
from lrm.testing.domains import DOMAINS, random_domain, random_tabulations
from lrm.testing.table import WEIRD
from table_forms import ARROW_FORMS, FORMS

CELL = {"null": "cell", "outside": "cell"}
ALL = {**CELL, "nan": "cell"}


LOOKED_AT = [
    "text",
    "many texts dropped",
    "integers",
    "integers among decimals",
    "many bins",
    "many infinite bins",
    "months",
    "persons",
    "persons with many bins",
]
"""Domains that between them take every way to a class; values are compared in test_counts."""


def numbers(counts):
    return counts._open()


def check_tables(table, rows, domain, tables):
    table.check(domain, tables)
    counted = numbers(table.counts(domain, tables))
    expected = tabulate(tables, domain.count(rows), domain.shape)
    np.testing.assert_array_equal(counted, expected)
    return expected


@pytest.mark.parametrize(
    ("awkward", "name"),
    [*product(FORMS, LOOKED_AT), *product(ARROW_FORMS, ["text", "many bins", "persons"])],
    indirect=["awkward"],
)
def test_tabulations_follow_from_the_counts_of_all_cells(awkward, name):
    _, table, rows = awkward
    domain = DOMAINS[name]
    expected = check_tables(table, rows, domain, random_tabulations(domain, len(name)))
    assert expected[0] > 0


@pytest.mark.parametrize("seed", range(3))
def test_random_domains(awkward, seed):
    _, table, rows = awkward
    domain = random_domain(100 + seed)
    check_tables(table, rows, domain, random_tabulations(domain, seed))


def test_engines_that_group_first_and_those_that_do_not_agree(awkward, monkeypatch):
    """Which way is taken depends on the sizes of the domain; here each is taken."""
    _, table, rows = awkward
    monkeypatch.setattr(duckdb_table, "GROUPED_CELLS", 0)
    monkeypatch.setattr(joined_rows, "GROUPED_CELLS", 0)
    for name in ("text", "persons"):
        domain = DOMAINS[name]
        check_tables(table, rows, domain, random_tabulations(domain, 1))
        np.testing.assert_array_equal(numbers(table.counts(domain)), domain.count(rows))


HUGE = [
    Categories("state", [f"v{number}" for number in range(70)] + ["NY", "é", ""], **CELL),
    Categories("flag", [True, False], **CELL),
    Integers("age", -(10**5), 10**5, **CELL),
    Integers("huge", -(2**62), 2**62, width=2**50, **ALL),
    Bins("income", np.linspace(0, 2000, 3001), **ALL),
    Bins("ratio", np.linspace(0, 3, 2001), **ALL),
    Bins("price", [0, 5, 10, 100], **ALL),
    Integers("exact", -5000, 5000, **CELL),
    Dates("day", "1990-01-01", "2029-12-31", **CELL),
    Dates("at", "1990-01-01", "2029-12-31", **CELL),
    Dates("moment", "1990-01-01", "2029-12-31"),
    Categories(WEIRD, ["y' OR 1=1 --", "x"], **CELL),
]


def places_of(domain, cell):
    """The place of a cell in each attribute."""
    found = []
    for size in reversed(domain.shape):
        cell, place = divmod(cell, size)
        found.append(place)
    return found[::-1]


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("who", 2)])
def test_a_domain_of_far_more_cells_than_numbers_of_64_bits(awkward, unit):
    _, table, rows = awkward
    domain = Domain(HUGE, unit=unit)
    assert domain.size > 10**30
    halves = tuple((np.arange(n) >= n // 2).astype(np.int64) for n in domain.shape)
    halves = (*halves[:2], np.where(np.arange(domain.shape[2]) == 3, -1, halves[2]), *halves[3:])
    wanted = [
        total(domain.shape),
        Tabulation(halves, (11, 0, 2)),
        Tabulation(halves, tuple(range(12))),
    ]
    table.check(domain, wanted)
    counted = numbers(table.counts(domain, wanted))
    cells = np.array([places_of(domain, cell) for cell in domain.counted_cells(rows)])
    assert counted[0] == len(cells) > 0
    merged = np.column_stack([labels[cells[:, i]] for i, labels in enumerate(halves)])
    merged = merged[(merged >= 0).all(axis=1)]
    for by, start in (((11, 0, 2), 1), (tuple(range(12)), 9)):
        flat = np.ravel_multi_index(merged[:, by].T, (2,) * len(by))
        expected = np.bincount(flat, minlength=2 ** len(by))
        np.testing.assert_array_equal(counted[start : start + len(expected)], expected)


@pytest.mark.parametrize("max_rows", [1, 3])
def test_one_person_moves_each_tabulation_by_at_most_the_declared_bound(max_rows):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"who": rng.integers(0, 12, 150), "x": rng.random(150), "y": rng.integers(0, 9, 150)}
    )
    for edges in (np.linspace(0, 1, 5), np.linspace(0, 1, 300)):
        domain = Domain([Bins("x", edges), Integers("y", 0, 8)], unit=PrivacyUnit("who", max_rows))
        tables = random_tabulations(domain, 3)
        ends = np.cumsum([table.size for table in tables])[:-1]
        whole = numbers(open_table(frame).counts(domain, tables))
        for person in range(12):
            rest = frame.filter(pl.col("who") != person)
            less = numbers(open_table(rest).counts(domain, tables))
            for moved in np.split(np.abs(whole - less), ends):
                assert moved.sum() <= max_rows


def test_a_person_with_more_rows_than_stay_in_memory(monkeypatch):
    monkeypatch.setattr(row_limit, "SPILLED_BYTES", 64)
    monkeypatch.setattr(row_limit, "READ_ROWS", 7)
    rng = np.random.default_rng(4)
    rows = [
        {"who": who, "x": int(rng.integers(0, 50)), "y": int(rng.integers(0, 3))}
        for who in (1, 1, 1, 2, 3)
        for _ in range(200)
    ]
    domain = Domain([Integers("x", 0, 49), Integers("y", 0, 2)], unit=PrivacyUnit("who", 40))
    check_tables(open_table(pl.DataFrame(rows)), rows, domain, random_tabulations(domain, 5))


def test_too_many_entries_are_refused_before_anything_is_read(awkward, monkeypatch):
    _, table, _ = awkward
    domain = DOMAINS["text"]
    every = Tabulation(tuple(np.arange(n) for n in domain.shape), (0, 1))
    monkeypatch.setattr(counting, "MAX_ENTRIES", 2 * domain.size)
    table.check(domain, [every, every])
    with pytest.raises(TableError, match=r"entries and counts are kept for at most"):
        table.check(domain, [every, every, every])
    with pytest.raises(TableError, match="at least one tabulation"):
        table.check(domain, [])
    with pytest.raises(TableError, match="built for another domain"):
        table.counts(domain, [total((3, 2))])


def test_an_empty_table_has_every_entry(empty):
    for name in ("text", "persons with many bins"):
        domain = DOMAINS[name]
        tables = random_tabulations(domain, 7)
        counted = numbers(empty.counts(domain, tables))
        assert counted.shape == (sum(table.size for table in tables),)
        assert not counted.any()


def test_values_that_no_tabulation_counts(awkward):
    _, table, rows = awkward
    domain = DOMAINS["integers"]
    none = np.full(domain.shape[0], -1)
    some = np.arange(domain.shape[1])
    tables = [Tabulation((none, some), (1,)), Tabulation((none, some), (0, 1))]
    assert check_tables(table, rows, domain, tables).tolist() == [0] * len(some)
    assert math.prod(tables[1].shape) == 0
