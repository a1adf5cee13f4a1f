"""The dialects of SQL that are read: DuckDB's, and those that a batch may declare.

A batch declares its dialect by a comment before its first statement:

.. code-block:: sql

    -- dialect: snowflake
    SELECT IFF(age >= 65, 'senior', 'other') AS who, COUNT(*) AS n FROM visits GROUP BY who;

Without one, DuckDB's is read. A statement that it does not have is tried in each of the others; it
is taken where all that have it mean the same (see `lrm.batches.sql.build`).
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot.dialects.duckdb import DuckDB

from lrm.errors import SqlError

if TYPE_CHECKING:
    from sqlglot import Token

__all__ = ["DUCKDB", "OTHERS", "declared", "nulls_are_small", "parser", "tokens"]

# sqlglot logs a warning where it falls back to an opaque command, which is refused here anyway.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

DUCKDB = "duckdb"
OTHERS = ("bigquery", "mysql", "postgres", "redshift", "snowflake", "spark", "tsql")
"""Dialects that a batch may declare, apart from DuckDB's."""

_ALIASES = {
    "databricks": "spark",
    "mariadb": "mysql",
    "mssql": "tsql",
    "postgresql": "postgres",
    "sqlserver": "tsql",
    "sql server": "tsql",
    "t-sql": "tsql",
}
_DECLARED = re.compile(r"\s*(?:--|#|/\*)\s*dialect\s*:\s*([^\n*]*)", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(--[^\n]*|/\*.*?\*/|#[^\n]*)", re.DOTALL)
_KEPT = frozenset({"TO_CHAR", "TO_VARCHAR", "DATE_FORMAT", "FORMAT", "FORMAT_DATE"})
"""Functions whose formats are read here: sqlglot reads ``TO_CHAR(day, 'Dy')`` wrongly."""


class Spoken(DuckDB):
    """DuckDB's SQL, in which names may stand in backticks too: DuckDB has no other use for them."""

    class Tokenizer(DuckDB.Tokenizer):
        """Reads names in backticks."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - as sqlglot declares it


def declared(text: str) -> str | None:
    r"""The dialect that the comments before the first statement declare; None without one.

    >>> declared("-- visits\n-- dialect: T-SQL\nSELECT TOP 3 …"), declared("SELECT 1")
    ('tsql', None)
    """
    start, line = 0, 1
    while True:
        comment = _COMMENT.match(text, start)
        if comment is None:
            return None
        found = _DECLARED.match(comment[0])
        if found is not None:
            name = found[1].strip().lower()
            name = _ALIASES.get(name, name)
            if name in {DUCKDB, *OTHERS}:
                return name
            line += text.count("\n", 0, comment.start(1))
            raise SqlError(
                f"the dialect {found[1].strip()!r} is not supported; "
                f"write one of {', '.join(sorted([DUCKDB, *OTHERS]))}",
                code="dialect",
                line=line,
            )
        start = comment.end()


def tokens(text: str, dialect: str) -> list[Token]:
    """Cut a text into words and signs."""
    return sqlglot.tokenize(text, read=_dialect(dialect))


def parser(dialect: str) -> Any:
    """A parser of a dialect that keeps the formats of dates as they are written."""
    return _parser_class(dialect)(dialect=_dialect(dialect))


@cache
def _dialect(name: str) -> Any:
    return sqlglot.Dialect.get_or_raise(Spoken if name == DUCKDB else name)


def nulls_are_small(name: str) -> bool:
    """Whether a dialect sorts NULL below all values."""
    return bool(_dialect(name).NULL_ORDERING == "nulls_are_small")


@cache
def _parser_class(name: str) -> Any:
    base = _dialect(name).parser_class
    functions = {key: value for key, value in base.FUNCTIONS.items() if key not in _KEPT}
    return type("Parser", (base,), {"FUNCTIONS": functions})
