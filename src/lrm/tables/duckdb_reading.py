"""What DuckDB needs to know of a source of rows, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lrm.domain import Domain
from lrm.tables.base import Column
from lrm.tables.duckdb_sql import DuckDbSql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SQL = DuckDbSql()

Needed = Mapping[str, Column]
"""The columns that a domain needs, by name: see `lrm.tables.base.check_columns`."""


@dataclass(frozen=True)
class Reading:
    """A relation that a connection knows.

    Parameters
    ----------
    relation
        What to write after FROM.
    columns
        Where each attribute of the domain is found in it, in their order.
    person
        Where the person is found, if the privacy unit has a column.
    """

    relation: str
    columns: tuple[Column, ...]
    person: Column | None


class Read(Protocol):
    """One way to read a source."""

    def __call__(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """Make the rows known to ``db``; with ``empty`` the same columns without any row."""
        ...


class Source(Protocol):
    """Where DuckDB finds the rows."""

    @property
    def label(self) -> str:
        """What the source is called by default."""
        ...

    attached: bool
    """Whether DuckDB attaches a file, and locks it until the database that does so is closed."""

    def columns(self, domain: Domain | None = None) -> tuple[Column, ...]:
        """Names and types, found without looking at rows, as ``domain`` says to read them."""
        ...

    def check(self, needed: Sequence[Column], domain: Domain) -> None:
        """Refuse what would fail only when rows are read."""
        ...

    def ways(self) -> Sequence[Read]:
        """How to read the rows: the fastest way first, the last one able to read every value.

        All ways put a row in the same cell.
        """
        ...


def reading_of(
    db: DuckDBPyConnection, relation: str, domain: Domain, needed: Needed, *, empty: bool
) -> Reading:
    """The columns of a relation under their own names, perhaps without its rows.

    Without them, no statistics of a file or table are near either, in which DuckDB's optimiser
    would meet values.
    """
    if empty:
        names = ", ".join(SQL.name(name) for name in needed)
        db.execute(f"CREATE TEMP TABLE lrm_empty AS SELECT {names} FROM {relation} WITH NO DATA")  # noqa: S608 - quoted parts
        relation = "lrm_empty"
    unit = domain.unit.column
    columns = tuple(needed[name] for name in domain.names)
    return Reading(relation, columns, None if unit is None else needed[unit])
