"""Every engine counts what plain Python counts, cell by cell, on an awkward table."""

import numpy as np
import pytest

from awkward_table import DOMAINS, random_domain
from lrm.domain import Domain
from lrm.errors import TableError
from lrm.linear_maps import SparseMap
from lrm.reduce import CellMap, merge_cells

OBJECT_PERSONS = "persons as an attribute"


def numbers(counts):
    return counts._open()


@pytest.mark.parametrize("name", DOMAINS)
def test_counts_are_those_of_plain_python(awkward, name):
    form, table, rows = awkward
    domain = DOMAINS[name]
    if (form, name) == ("pandas objects", OBJECT_PERSONS):
        with pytest.raises(TableError, match="give it a type"):
            table.check(domain)
        return
    table.check(domain)
    counted = numbers(table.counts(domain))
    expected = domain.count(rows)
    assert expected.sum() > 0
    np.testing.assert_array_equal(counted, expected)


@pytest.mark.parametrize("seed", range(6))
def test_random_domains(awkward, seed):
    form, table, rows = awkward
    domain = random_domain(seed)
    np.testing.assert_array_equal(numbers(table.counts(domain)), domain.count(rows))


def test_an_empty_table_has_every_cell(empty):
    for name in ("text", "many texts", "many bins", "persons with many bins"):
        domain = DOMAINS[name]
        counted = numbers(empty.counts(domain))
        assert counted.shape == (domain.size,)
        assert not counted.any()
