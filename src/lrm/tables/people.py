"""Opening the private tables of a people, which one engine counts together."""

from __future__ import annotations

from collections.abc import Mapping

from lrm.domain.people import Level
from lrm.errors import TableError
from lrm.tables.base import Table
from lrm.tables.catalogue import read_catalogue
from lrm.tables.opening import open_table


def open_people(level: Level, sources: Mapping[str, object] | str) -> Table:
    """Open the private tables of a level; no row is read.

    Parameters
    ----------
    level
        What is counted.
    sources
        What `lrm.tables.open_table` takes, by the name of the table; or the address of a database
        that has tables of these names.
    """
    if isinstance(sources, str):
        sources = _in_database(level, sources)
    opened: dict[str, Table] = {}
    known = {table.name: table for table in level.people.tables}
    for name, source in sources.items():
        if name not in known:
            raise TableError(
                f"{level.people.name!r} has no table {name!r}; its tables are {', '.join(known)}"
            )
        opened[name] = source if isinstance(source, Table) else open_table(source)
    for table in level.tables:
        if table.name not in opened:
            raise TableError(
                f"table {table.name!r} of {level.people.name!r} is missing; give it as "
                f"{{{table.name!r}: …}}, on the command line as --table {table.name}=FILE"
            )
    used = {table.name: opened[table.name] for table in level.tables}
    first, *others = used.items()
    for name, other in others:
        if type(other) is not type(first[1]):
            raise TableError(
                f"tables {first[0]!r} and {name!r} of {level.people.name!r} are on two engines, "
                "and one of them has to join both by person; give all as files, frames and tables "
                "of DuckDB, or all as tables of one PostgreSQL database, or of one Spark session"
            )
    return first[1].of_level(level, used)


def _in_database(level: Level, address: str) -> dict[str, str]:
    """The addresses of a level's tables in one database."""
    catalogue = read_catalogue(address) or {}
    by_name = {name.casefold(): table.address for name, table in catalogue.items()}
    named = {table.name: by_name.get(table.name.casefold()) for table in level.tables}
    missing = [name for name, place in named.items() if place is None]
    if missing:
        raise TableError(
            f"the database has no table {missing[0]!r}; it has {', '.join(catalogue) or 'none'}"
        )
    return {name: place for name, place in named.items() if place is not None}
