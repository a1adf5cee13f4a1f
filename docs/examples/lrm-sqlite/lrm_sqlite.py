"""STRICT tables of SQLite, as ``sqlite:FILE.db::TABLE``.

Other tables of SQLite, and views, hold values of any type in any column: they are refused. NaN is
NULL in SQLite, and there are no booleans, decimals, dates or times.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from lrm.domain import Domain, persons
from lrm.errors import TableError
from lrm.privacy.mechanism import TrueCounts
from lrm.tables import Table
from lrm.tables.base import Column, check_columns, guarded
from lrm.tables.count import Count, Wanted, count_of
from lrm.tables.joined_rows import JoinedRows, JoiningDialect
from lrm.tables.tally import Tally

KINDS = {"INTEGER": "integer", "INT": "integer", "REAL": "float", "TEXT": "text", "BLOB": "bytes"}


def open_source(source: object, name: str | None = None) -> SqliteTable | None:
    """Open ``sqlite:FILE.db::TABLE``; None for anything else."""
    if not isinstance(source, str) or not source.startswith("sqlite:"):
        return None
    path, _, table = source.removeprefix("sqlite:").partition("::")
    if not table or not Path(path).is_file():
        raise TableError("expected sqlite:FILE.db::TABLE, where FILE.db exists")
    return SqliteTable(path, table, name)


class SqliteSql(JoiningDialect):
    """SQL of SQLite, with a few functions of Python."""

    double = "REAL"

    def number(self, value: float) -> str:
        """Write a float64 by its digits in base 2: SQLite may read decimals one bit off."""
        if math.isinf(value):
            return "9e999" if value > 0 else "-9e999"
        mantissa, exponent = math.frexp(value)
        whole, exponent = int(mantissa * 2**53), exponent - 53
        text, step = f"CAST({whole} AS REAL)", "*" if exponent > 0 else "/"
        while exponent:
            bits = min(abs(exponent), 62)
            text += f" {step} CAST({1 << bits} AS REAL)"
            exponent -= bits if exponent > 0 else -bits
        return f"({text})"

    def element(self, codes: Sequence[int | None], place: str) -> str:
        listed = ",".join("null" if code is None else str(code) for code in codes)
        return f"json_extract('[{listed}]', '$[' || ({place} - 1) || ']')"

    def as_double(self, x: str, column: Column) -> str:
        return x if column.kind == "float" else f"CAST({x} AS REAL)"

    def as_text(self, x: str, column: Column) -> str:
        return f"({x} COLLATE BINARY)"

    def is_nan(self, x: str) -> str:
        return "FALSE"

    def is_whole_float(self, x: str) -> str:
        return f"(abs({x}) >= {self.number(2.0**53)} OR CAST({x} AS INTEGER) = {x})"

    def whole(self, x: str, column: Column) -> tuple[str, str]:
        return x, "TRUE"

    def as_bigint(self, x: str) -> str:
        return f"CAST({x} AS INTEGER)"

    def quotient(self, x: str, divisor: int) -> str:
        return f"{x} / {divisor}"

    def as_person(self, x: str, column: Column) -> str:
        return f"lrm_name({x})"

    def person_hash(self, person: str, key: str) -> str:
        return f"lrm_hash({person}, {key})"

    def group_name(self, what: str, group: str, person: str) -> str:
        return f"lrm_group('{what}', {group}, {person})"

    def as_day(self, x: str, column: Column) -> str:
        raise TableError("SQLite has no dates")

    _minute_of_day = days_since = as_day  # columns of dates do not get this far


SQL = SqliteSql()


def _hash(name: bytes, key: bytes) -> int:
    return int(hashlib.sha256(key + name).hexdigest()[: persons.OFFSET_DIGITS], 16)


class SqliteTable(Table):
    """A STRICT table, read in a connection that cannot write."""

    def __init__(self, path: str, table: str, name: str | None = None) -> None:
        super().__init__(name or table)
        self._address = f"{Path(path).resolve().as_uri()}?mode=ro"
        self._relation = SQL.name(table)
        query = (
            "SELECT c.name, c.type FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c "
            "WHERE t.schema = 'main' AND t.strict AND lower(t.name) = lower(?)"
        )
        found = guarded("reading the schema", lambda: self._fetch(query, [table]))
        if not found:
            raise TableError(f"the database has no table {table!r} that is STRICT")
        self._columns = [Column(c, type_, KINDS.get(type_, "other")) for c, type_ in found]  # type: ignore[arg-type]

    def _described(self) -> list[Column]:
        return self._columns

    def _check(self, domain: Domain, requested: Wanted) -> None:
        query = self._query(count_of(domain, requested), " LIMIT 0")
        guarded(f"preparing the count of {self.name!r}", lambda: self._fetch(query))

    def _counts(self, domain: Domain, requested: Wanted) -> TrueCounts:
        count = count_of(domain, requested)
        query = self._query(count)
        groups = guarded(f"counting {self.name!r}", lambda: self._fetch(query))
        tally = Tally(count)
        *words, n = np.array(groups, dtype=np.int64).reshape(-1, len(count.words) + 1).T
        tally.add(words, n)
        return tally.true_counts()

    def _query(self, count: Count, few: str = "") -> str:
        """Different rows, as their words, and how often each is there."""
        domain = count.domain
        needed = check_columns(self.name, domain, self._columns)
        rows = JoinedRows(SQL, count, [needed[name] for name in domain.names])
        person = None if domain.unit.column is None else needed[domain.unit.column]
        # Materialized: the values of a row are looked at many times, and computed once.
        read = f"SELECT {', '.join(rows.selected(person))} FROM {self._relation}{few}"
        joins = ""
        for place, keys in rows.joins.items():
            pairs = ", ".join(f"({literal}, {code})" for literal, code in keys.pairs)
            listed = f"(SELECT column1 AS value, column2 AS code FROM (VALUES {pairs}))"
            joins += f" LEFT JOIN {listed} AS keys{place} ON keys{place}.value = {keys.value}"
        words = [*rows.words(rows.joined()), *(["person"] if person else [])]
        query = f"SELECT {', '.join(words)} FROM rows_read{joins}"
        condition = rows.counted
        if person is not None:
            condition += " AND person IS NOT NULL"
            for listed, kept in rows.limits(f"X'{persons.fresh_key().hex()}'"):
                query = f"SELECT {', '.join(listed)} FROM ({query}) WHERE {condition}"
                condition = kept
        names = ", ".join(rows.word_names)
        counted = f"SELECT {names}, count(*) FROM ({query}) WHERE {condition} GROUP BY {names}"
        return f"WITH rows_read AS MATERIALIZED ({read}) {counted}"

    def _fetch(self, query: str, values: Sequence[str] = ()) -> list[tuple]:
        with closing(sqlite3.connect(self._address, uri=True)) as db:
            for name, places, function in (
                ("lrm_name", 1, persons.person_name),
                ("lrm_hash", 2, _hash),
                (
                    "lrm_group",
                    3,
                    lambda what, cell, name: persons.group_name(name, cell, what.encode()),
                ),
                ("floor", 1, lambda x: None if x is None else float(math.floor(x))),
                ("greatest", 2, max),
            ):
                db.create_function(name, places, function, deterministic=True)
            return db.execute(query, values).fetchall()
