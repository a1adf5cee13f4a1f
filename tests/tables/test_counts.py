"""Every engine counts what plain Python counts, cell by cell, on an awkward table."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from long_runs import cases
from lrm.domain import Domain, Integers
from lrm.errors import TableError
from lrm.planning.design.cells import merge_cells
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.products.tabulation import Tabulation, tabulate
from lrm.tables import Table, open_table
from lrm.tables.axes import flat_axes
from lrm.tables.base import Column
from lrm.tables.count import count_of
from lrm.tables.duckdb_reading import Reading
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.testing import same_counts, same_tabulations
from lrm.testing.domains import DOMAINS, random_cells, random_domain
from table_forms import ARROW_FORMS, FORMS


def numbers(counts):
    return counts._open()


def entries_of(table, counts):
    """The entries of a tabulation by all cells in a list, from their counts."""
    return tabulate([table], counts, table.sizes)


COLUMNS = ["text", "integers", "integers among decimals", "bins", "many bins", "years", "persons"]
COLUMNS += ["numbers", "numbers of persons"]
"""Domains that between them look at every type of column."""


@pytest.mark.parametrize(
    ("awkward", "name"),
    [*product(FORMS, DOMAINS), *product(ARROW_FORMS, COLUMNS)],
    indirect=["awkward"],
)
def test_counts_are_those_of_plain_python(awkward, name):
    _, table, rows = awkward
    domain = DOMAINS[name]
    assert domain.count(rows).sum() > 0
    same_counts(table, domain, rows)


@pytest.mark.parametrize(
    ("awkward", "name"),
    [
        (form, name)
        for form, name in [*product(FORMS, DOMAINS), *product(ARROW_FORMS, COLUMNS)]
        if any(attribute.drops for attribute in DOMAINS[name].attributes)
    ],
    indirect=["awkward"],
)
def test_a_cell_for_dropped_values_counts_every_other_row(awkward, name):
    _, table, rows = awkward
    domain = DOMAINS[name]
    dropping = [axis for axis, each in enumerate(domain.attributes) if each.drops]
    every = domain.with_rest(dropping)
    table.check(every)
    counted = numbers(table.counts(every))
    np.testing.assert_array_equal(counted, every.count(rows))
    if domain.unit.column is None:
        assert counted.sum() == len(rows) << domain.record_bits
        np.testing.assert_array_equal(counted[every.declared_cells], domain.count(rows))
    tables = [Tabulation(tuple(np.arange(size) for size in every.shape), by=(0,))]
    np.testing.assert_array_equal(
        numbers(table.counts(every, tables)), tabulate(tables, every.count(rows), every.shape)
    )


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 2 + cases(10)))]
)
def test_random_domains(awkward, seed):
    _, table, rows = awkward
    same_counts(table, random_domain(seed), rows)


def test_an_empty_table_has_every_cell(empty):
    for name in ("text", "persons with many bins"):
        domain = DOMAINS[name]
        counted = numbers(empty.counts(domain))
        assert counted.shape == (domain.size,)
        assert not counted.any()


def batch_of(domain, seed):
    """Queries that look at some cells only, and cannot tell many apart."""
    rng = np.random.default_rng(seed)
    blocks = []
    for axis, size in enumerate(domain.shape):
        weights = [np.ones(other) for other in domain.shape]
        weights[axis] = (np.arange(size) >= size // 2).astype(float)
        blocks.append(weights)
    blocks.append(
        [np.isin(np.arange(size), rng.integers(0, size, 2)) * 2.0 for size in domain.shape]
    )
    queries = []
    for weights in blocks:
        query = np.ones(1)
        for part in weights:
            query = np.kron(query, part)
        queries.append(query)
    cells = merge_cells(SparseMap(sp.csr_array(np.array(queries)))).cell_map
    assert cells.merged_size < domain.size
    return Tabulation((cells.classes()[0],), by=(0,))


@pytest.mark.parametrize(
    "name",
    [
        "text",
        "many texts",
        "integers",
        "integers among floats",
        "bins",
        "many bins",
        "months",
        "persons",
    ],
)
def test_merged_counts_are_the_same_where_cells_are_counted_as_one(awkward, name):
    _, table, rows = awkward
    domain = DOMAINS[name]
    same_tabulations(table, domain, rows, [batch_of(domain, 0)])


MANY_RUNS = ["many texts", "many whole numbers", "many whole floats", "many whole decimals", "days"]


@pytest.mark.parametrize("name", [*MANY_RUNS, "many bins"])
def test_merged_counts_are_the_same_where_classes_alternate(awkward, name):
    _, table, rows = awkward
    domain = DOMAINS[name]
    same_tabulations(table, domain, rows, [random_cells(domain, 0)])


@pytest.mark.parametrize("values", [100, 100_000])
def test_the_sql_of_duckdb_does_not_grow_with_the_list_of_a_query(values):
    """A list of 50,000 constants among a million values took DuckDB more than 3 GB."""
    domain = Domain([Integers("x", 0, values - 1, outside="cell")])
    cells = Tabulation((np.arange(domain.size) % 2,), by=(0,))
    count = count_of(domain, [cells], lists=False)
    sql = DuckDbRows(count, Reading("t", [Column("x", "BIGINT", "integer")], None)).grouped()
    assert len(sql) < 1000
    rows = pa.table({"x": pa.array([1, 2, 4, None, -7, values], pa.int64())})
    counted = numbers(open_table(rows).counts(domain, [cells]))
    np.testing.assert_array_equal(counted, entries_of(cells, domain.count(rows.to_pylist())))


def test_cells_that_nothing_tells_apart_are_one_group():
    domain = DOMAINS["integers"]
    everything = np.zeros(domain.size, dtype=np.int64)
    assert [axis.size for axis in flat_axes(domain, everything)] == [1, 1]
    assert [axis.size for axis in flat_axes(domain, everything - 1)] == [1, 1]
    assert all(axis.plain for axis in flat_axes(domain, np.arange(domain.size)))


def test_a_batch_for_another_domain_is_refused(awkward):
    _, table, _ = awkward
    with pytest.raises(TableError, match="built for another domain"):
        table.counts(DOMAINS["integers"], [Tabulation((np.arange(3),), by=(0,))])


def test_tables_show_names_and_types_only(awkward):
    _, table, _ = awkward
    assert isinstance(table, Table)
    columns = dict(table.columns())
    assert list(columns)[:4] == ["who", "alias", "state", "flag"]
    assert all(isinstance(text, str) for text in columns.values())
    assert table.name in repr(table)
