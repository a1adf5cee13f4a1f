"""The SQL that is read: DuckDB's, with names in backticks and brackets too."""

from __future__ import annotations

import logging

from sqlglot.dialects.duckdb import DuckDB

__all__ = ["Spoken"]

# sqlglot logs a warning where it falls back to an opaque command, which is refused here anyway.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())


class Spoken(DuckDB):
    """DuckDB's SQL, in which names may stand in backticks too: DuckDB has no other use for them."""

    class Tokenizer(DuckDB.Tokenizer):
        """Reads names in backticks."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - as sqlglot declares it
