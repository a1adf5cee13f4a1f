"""What DuckDB needs to know of a source of rows, whatever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrm.domain import Domain
from lrm.tables.base import Column, column_names
from lrm.tables.duckdb_sql import DuckDbSql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SQL = DuckDbSql()

Needed = Mapping[str, Column]
"""The columns that a domain needs, by name: see `lrm.tables.base.check_columns`."""


@dataclass(frozen=True)
class Reading:
    """A relation that a connection knows."""

    relation: str  # what to write after FROM
    columns: tuple[Column, ...]  # where each attribute of the domain is found in it, in their order
    person: Column | None  # where the person is found, if the privacy unit has a column


class Source(ABC):
    """Where DuckDB finds the rows."""

    label: str
    """What the source is called by default."""

    attached = False
    """Whether DuckDB attaches a file, and locks it until the database that does so is closed."""

    _columns: tuple[Column, ...]

    def columns(self, domain: Domain | None = None) -> tuple[Column, ...]:  # noqa: ARG002 - of CSV
        """Names and types, found without looking at rows, as ``domain`` says to read them."""
        return self._columns

    def check(self, needed: Sequence[Column], domain: Domain) -> None:  # noqa: B027 - most need none
        """Refuse what would fail only when rows are read, and what `columns` does not show."""

    def ways(self) -> Sequence[Callable[..., Reading]]:
        """How to read the rows: the fastest way first, the last one able to read every value.

        All ways put a row in the same cell.
        """
        return (self._read,)

    @abstractmethod
    def _read(
        self, db: DuckDBPyConnection, domain: Domain, needed: Needed, *, empty: bool
    ) -> Reading:
        """Make the rows known to ``db``; with ``empty`` the same columns without any row."""


def reading_of(
    db: DuckDBPyConnection, relation: str, domain: Domain, needed: Needed, *, empty: bool
) -> Reading:
    """The columns of a relation under their own names, perhaps without its rows.

    Without them, no statistics of a file or table are near either, in which DuckDB's optimiser
    would meet values.
    """
    if empty:
        names = ", ".join(map(SQL.name, column_names(needed)))
        db.execute(f"CREATE TEMP TABLE lrm_empty AS SELECT {names} FROM {relation} WITH NO DATA")  # noqa: S608 - quoted parts
        relation = "lrm_empty"
    unit = domain.unit.column
    columns = tuple(needed[name] for name in domain.names)
    return Reading(relation, columns, None if unit is None else needed[unit])
