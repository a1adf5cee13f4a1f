"""What every engine must satisfy: a table of awkward values, domains over it, and laws.

The engines of `lrm.tables` are tested by it, and a package with another engine runs it, too:

    import pytest
    from lrm import testing

    @pytest.mark.parametrize("case", testing.cases(), ids=str)
    def test_conformance(case, tmp_path):
        case.run(lambda rows: my_table(rows, tmp_path), columns={"who", "state", "age"})

``my_table`` stores the rows, which are dicts, and returns the table and the rows as Python would
read them back: an engine without NaN may have None there. Counts must be those of plain Python,
cell by cell. A column that is not among ``columns`` may raise `TableError` in `Table.check`; where
it does not, its counts must be right as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from lrm.domain import Domain, persons
from lrm.errors import TableError
from lrm.privacy.mechanism import shown_to_owner
from lrm.queries.maps.products.tabulation import Tabulation, tabulate
from lrm.tables import Table
from lrm.testing.domains import DOMAINS, random_cells, random_domain, random_tabulations
from lrm.testing.table import SCHEMA, rows

__all__ = ["SCHEMA", "Case", "cases", "fixed_key", "rows", "same_counts", "same_tabulations"]

Rows = Sequence[Mapping[str, Any]]
Build = Callable[[Rows], tuple[Table, Rows]]


@dataclass(frozen=True)
class Case:
    """A domain through which the awkward table is counted."""

    name: str
    domain: Domain

    def __str__(self) -> str:
        return self.name

    @property
    def columns(self) -> set[str]:
        """The columns that the domain reads."""
        unit = self.domain.unit.column
        return {each.source for each in self.domain.attributes} | ({unit} if unit else set())

    def run(self, build: Build, columns: Collection[str] | None = None) -> bool:
        """Check every law; return False where the engine refused a column not among ``columns``.

        Raises
        ------
        AssertionError
            Where a law does not hold.
        """
        with fixed_key():
            table, stored = build(rows(400, 0))
            try:
                table.check(self.domain)
            except TableError:
                if columns is None or self.columns <= set(columns):
                    raise
                return False
            same_counts(table, self.domain, stored)
            for seed, merged in enumerate((random_cells, random_tabulations)):
                asked = merged(self.domain, seed)
                tables = [asked] if isinstance(asked, Tabulation) else asked
                same_tabulations(table, self.domain, stored, tables)
            empty, _ = build([])
            same_counts(empty, self.domain, [])
            other = Tabulation((np.arange(self.domain.size + 1),), by=(0,))
            try:
                table.counts(self.domain, [other])
            except TableError:
                return True
            raise AssertionError("a tabulation of another domain must raise TableError")


def same_counts(table: Table, domain: Domain, stored: Rows) -> None:
    """Check that a table counts what plain Python counts, cell by cell."""
    table.check(domain)
    _same(table.counts(domain), domain.count(stored), "counts of cells")


def same_tabulations(
    table: Table, domain: Domain, stored: Rows, tables: Sequence[Tabulation]
) -> None:
    """Check that tabulations are those of the counts of cells."""
    expected = domain.count(stored)
    sizes = tables[0].sizes
    if sizes == (domain.size,):
        expected = expected.reshape(-1)
    table.check(domain, tables)
    _same(table.counts(domain, tables), tabulate(tables, expected, sizes), "tabulations")


def cases(random: int = 2) -> list[Case]:
    """The domains by name, and as many random ones."""
    named = [Case(name, domain) for name, domain in DOMAINS.items()]
    return named + [Case(f"random {seed}", random_domain(seed)) for seed in range(random)]


@contextmanager
def fixed_key() -> Iterator[None]:
    """Choose the same rows of each person in every count: counts can be compared."""
    before = persons.fresh_key
    persons.fresh_key = lambda: bytes(range(16))
    try:
        yield
    finally:
        persons.fresh_key = before


def _same(counted: Any, expected: Any, what: str) -> None:
    """Compare counts of the awkward table, which are not private."""
    np.testing.assert_array_equal(shown_to_owner(counted), expected, what)
