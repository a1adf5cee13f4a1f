"""The tables of a database with their keys, from its catalogue alone: no table is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from lrm.errors import TableError
from lrm.files.locations import why_unreachable
from lrm.tables.base import guarded, load_engine

_POSTGRES = ("postgresql:", "postgres:")

_DUCKDB_TABLES = """
SELECT table_name FROM information_schema.tables
WHERE table_catalog = 'lrm_source' AND table_schema = 'main' ORDER BY table_name
"""

_DUCKDB_KEYS = """
SELECT table_name, constraint_type, constraint_column_names, referenced_table,
       referenced_column_names
FROM duckdb_constraints() WHERE database_name = 'lrm_source' AND schema_name = 'main'
  AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
"""

_POSTGRES_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
ORDER BY relname
"""

_POSTGRES_KEYS = """
SELECT t.relname, CASE c.contype WHEN 'f' THEN 'FOREIGN KEY' ELSE 'UNIQUE' END,
       ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k(n, i)
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.n ORDER BY k.i),
       r.relname,
       ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY AS k(n, i)
             JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.n ORDER BY k.i)
FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
LEFT JOIN pg_class r ON r.oid = c.confrelid
WHERE t.relnamespace = current_schema()::regnamespace AND c.contype IN ('p', 'u', 'f')
"""


@dataclass(frozen=True)
class CatalogueTable:
    """A table of a database, with its keys of one column.

    Parameters
    ----------
    address
        What `lrm.tables.open_table` takes.
    unique
        Columns with a primary or unique key.
    references
        The table and the column that a foreign key names, by its column.
    """

    address: str
    unique: frozenset[str] = frozenset()
    references: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def is_database(address: object) -> bool:
    """Whether an address is that of a whole database, not of one table or of a file of rows.

    >>> is_database("postgresql://host/db"), is_database("postgresql://host/db?table=orders")
    (True, False)
    """
    if not isinstance(address, str):
        return False
    if address.startswith(_POSTGRES):
        return "table" not in dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
    return address.lower().endswith((".duckdb", ".db")) and Path(address).is_file()


def read_catalogue(address: str) -> dict[str, CatalogueTable] | None:
    """The tables of a whole database, by name; None for addresses of one table, and of files."""
    if not is_database(address):
        return None
    if address.startswith(_POSTGRES):
        joint = "&" if urlsplit(address).query else "?"
        tables, keys = guarded("reading the catalogue", lambda: _of_postgres(address))
        return _listed(tables, keys, lambda name: f"{address}{joint}table={name}")
    tables, keys = guarded("reading the catalogue", lambda: _of_duckdb(address))
    return _listed(tables, keys, lambda name: f"{address}::{name}")


def _of_duckdb(path: str) -> tuple[list[str], list[Any]]:
    duckdb = load_engine("duckdb")
    with duckdb.connect() as db:
        quoted = path.replace("'", "''")
        db.execute(f"ATTACH '{quoted}' AS lrm_source (READ_ONLY)")
        tables = [name for (name,) in db.execute(_DUCKDB_TABLES).fetchall()]
        return tables, db.execute(_DUCKDB_KEYS).fetchall()


def _of_postgres(url: str) -> tuple[list[str], list[Any]]:
    driver = load_engine("psycopg", "'psycopg[binary]'")
    reason = None
    try:
        with driver.connect(url, connect_timeout=15) as db:
            tables = [name for (name,) in db.execute(_POSTGRES_TABLES).fetchall()]
            return tables, db.execute(_POSTGRES_KEYS).fetchall()
    except driver.OperationalError as error:
        reason = why_unreachable(str(error))
    raise TableError(f"PostgreSQL cannot be reached: {reason}")


def _listed(
    tables: Sequence[str], keys: Sequence[Any], address_of: Callable[[str], str]
) -> dict[str, CatalogueTable]:
    listed = {}
    for name in tables:
        own = [key for key in keys if key[0] == name and len(key[2]) == 1]
        unique = frozenset(key[2][0] for key in own if key[1] != "FOREIGN KEY")
        references = {key[2][0]: (key[3], key[4][0]) for key in own if key[1] == "FOREIGN KEY"}
        listed[name] = CatalogueTable(address_of(name), unique, references)
    if not listed:
        raise TableError("the database has no tables that this user may see")
    return listed


def persons_by_keys(tables: Mapping[str, CatalogueTable]) -> dict[str, tuple[str, bool]]:
    """The column that names the person, by the keys of tables, and whether it is unique there.

    Persons are those of the table that most others refer to; tables that do not refer to it are
    left out.

    Examples
    --------
    >>> customers = CatalogueTable("shop.duckdb::customers", frozenset({"id"}))
    >>> orders = CatalogueTable("shop.duckdb::orders", references={"buyer": ("customers", "id")})
    >>> persons_by_keys({"customers": customers, "orders": orders})
    {'customers': ('id', True), 'orders': ('buyer', False)}
    """
    referred = Counter(
        reference
        for name, table in tables.items()
        for reference in table.references.values()
        if reference[0] in tables and reference[0] != name
    )
    if not referred:
        return {}
    most = max(referred.values())
    persons = [reference for reference, count in referred.items() if count == most]
    if len(persons) > 1:
        return {}
    (person,) = persons
    found = {person[0]: (person[1], person[1] in tables[person[0]].unique)}
    for name, table in tables.items():
        own = [column for column, reference in table.references.items() if reference == person]
        if len(own) == 1 and name != person[0]:
            found[name] = (own[0], own[0] in table.unique)
    return {name: found[name] for name in tables if name in found}
