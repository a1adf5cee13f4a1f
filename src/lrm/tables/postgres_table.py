"""Counting inside PostgreSQL, in one transaction that may only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np

from lrm.domain import Bins, Domain, persons
from lrm.errors import TableError
from lrm.files.locations import unescaped_password, why_unreachable
from lrm.privacy.mechanism import TrueCounts
from lrm.tables.base import Column, Table, check_columns, guarded, load_engine, name_parts
from lrm.tables.cell_sql import bin_steps
from lrm.tables.count import Count, Wanted, count_of
from lrm.tables.dialect import case, sql_code
from lrm.tables.joined_rows import JoinedRows
from lrm.tables.postgres_sql import PostgresSql, column_of
from lrm.tables.tally import Tally

if TYPE_CHECKING:
    import psycopg

SQL = PostgresSql()
FETCHED_AT_ONCE = 50_000

T = TypeVar("T")

# A domain stands for the type that it is based on, perhaps by way of other domains.
_COLUMNS = """
WITH RECURSIVE found AS (
    SELECT attnum, attname, atttypid AS typid, atttypmod AS typmod, attcollation
    FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT f.attnum, f.attname, t.typbasetype, t.typtypmod, f.attcollation
    FROM found f JOIN pg_type t ON t.oid = f.typid WHERE t.typtype = 'd'
)
SELECT f.attname, format_type(f.typid, f.typmod), t.typcategory::text,
       t.typname = 'citext' OR NOT coalesce(c.collisdeterministic, TRUE)
FROM found f JOIN pg_type t ON t.oid = f.typid LEFT JOIN pg_collation c ON c.oid = f.attcollation
WHERE t.typtype <> 'd'
ORDER BY f.attnum
"""


def open_source(source: object, name: str | None = None) -> PostgresTable | None:
    """Open ``postgresql://…?table=schema.name``; None for anything else."""
    if not isinstance(source, str) or not source.startswith(("postgresql:", "postgres:")):
        return None
    if unescaped_password(source):
        raise TableError(
            "the PostgreSQL URL has an @ that is not escaped; write @ and / in a password as %40 "
            "and %2F"
        )
    try:
        parts = urlsplit(source)
    except ValueError:
        raise TableError("the PostgreSQL URL cannot be read; check its brackets") from None
    options = parse_qsl(parts.query, keep_blank_values=True)
    tables = [value for key, value in options if key == "table"]
    if len(tables) != 1:
        raise TableError(
            "a PostgreSQL URL must name one table, as in postgresql://HOST/DB?table=SCHEMA.NAME"
        )
    rest = urlencode([(key, value) for key, value in options if key != "table"])
    return PostgresTable(parts._replace(query=rest).geturl(), tables[0], name)


class PostgresTable(Table):
    """A table or view of a PostgreSQL database, ``name`` or ``schema.name``."""

    def __init__(self, url: str, table: str, name: str | None = None) -> None:
        super().__init__(name or table)
        self._driver = load_engine("psycopg", "'psycopg[binary]'")
        self._url = url
        self._relation = ".".join(SQL.name(part) for part in name_parts(table))
        self._columns = self._within("reading the schema", self._look)
        if not self._columns:
            raise TableError(f"the database has no table {table!r} that this user may see")

    def _look(self, db: psycopg.Connection[Any]) -> tuple[Column, ...]:
        return tuple(column_of(*row) for row in db.execute(_COLUMNS, [self._relation]))

    def _described(self) -> tuple[Column, ...]:
        return self._columns

    def check(self, domain: Domain, requested: Wanted = None) -> None:
        query = self._query(count_of(domain, requested), empty=True)
        self._within("preparing the count", lambda db: db.execute(query))

    def counts(self, domain: Domain, requested: Wanted = None) -> TrueCounts:
        count = count_of(domain, requested)
        query = self._query(count, empty=False)

        def count_rows(db: psycopg.Connection[Any]) -> TrueCounts:
            tally = Tally(count)
            # A server-side cursor: there may be as many counts as entries.
            with db.cursor("lrm_counts") as cursor:
                cursor.execute(query)
                while fetched := cursor.fetchmany(FETCHED_AT_ONCE):
                    entries, counts = np.array(fetched, dtype=np.int64).T
                    tally.add_entries(entries, counts)
            return tally.true_counts()

        return self._within("counting", count_rows)

    def _query(self, count: Count, *, empty: bool) -> str:
        domain = count.domain
        needed = check_columns(self.name, domain, self._columns)
        rows = JoinedRows(SQL, count, [needed[name] for name in domain.names])
        person = None if domain.unit.column is None else needed[domain.unit.column]
        known_classes = {place: self._wide(rows, place) for place in _by_bisection(rows)}
        known_classes |= rows.joined()
        joins = ""
        for place, keys in rows.joins.items():
            values = ", ".join(literal for literal, _ in keys.pairs)
            codes = ", ".join(str(code) for _, code in keys.pairs)
            joins += (
                f" LEFT JOIN unnest(ARRAY[{values}], ARRAY[{codes}]) "
                f"AS keys{place}(value, code) ON keys{place}.value = {keys.value}"
            )
        selected = ", ".join(rows.selected(person))
        listed = ", ".join([*rows.words(known_classes), *(["person"] if person else [])])
        rows_read = f"SELECT {selected} FROM {self._relation}{' LIMIT 0' if empty else ''}"  # noqa: S608
        worded = f"SELECT {listed} FROM rows_read AS t{joins}"  # noqa: S608
        condition = rows.counted
        if person is not None:
            worded = (
                f"SELECT {', '.join(rows.ranked)} "  # noqa: S608
                f"FROM ({worded}) AS r WHERE {condition} AND person IS NOT NULL"
            )
            condition = rows.kept(persons.fresh_key())
        # Materialized: a function in a view could otherwise be called anew wherever a value is
        # looked at, and place one row in several cells.
        counted = _counted(rows, f"FROM ({worded}) AS s WHERE {condition}")
        return f"WITH rows_read AS MATERIALIZED ({rows_read}) {counted}"

    @staticmethod
    def _wide(rows: JoinedRows, place: int) -> str:
        """The class of a number among many edges, found by the server's own bisection."""
        axis, stored = rows.axes[place], f"c{place}"
        edges, codes = bin_steps(axis)
        x = SQL.as_double(stored, rows.columns[place])
        exact = rows.columns[place].kind == "integer"
        nan = "FALSE" if exact else SQL.is_nan(stored)
        thresholds = ",".join(map(repr, edges.tolist()))
        position = f"width_bucket({x}, '{{{thresholds}}}'::double precision[])"
        return case(
            [
                (nan, sql_code(axis.special("(nan)"))),
                (f"{stored} IS NOT NULL", SQL.lookup(codes, position)),
                (f"{stored} IS NULL", sql_code(axis.special("(null)"))),
            ]
        )

    def _within(self, doing: str, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        def run() -> T:
            with self._reading() as db:
                return work(db)

        return guarded(f"{doing} of table {self.name!r} on PostgreSQL", run)

    @contextmanager
    def _reading(self) -> Iterator[psycopg.Connection[Any]]:
        reason = None
        try:
            db = self._driver.connect(self._url, client_encoding="utf8", connect_timeout=15)
        except self._driver.OperationalError as error:
            reason = why_unreachable(str(error))
        if reason is not None:  # raised here, so that no traceback contains the driver's message
            raise TableError(f"PostgreSQL cannot be reached: {reason}")
        with db:
            db.read_only = True
            yield db


def _counted(rows: JoinedRows, source: str) -> str:
    """The query of entries and their counts, from the words of rows that count."""
    number = "count(*)"
    if rows.count.numbers:
        source = f"FROM ({_pieces(rows, source)}) AS d"
        number = "CAST(sum(n) AS bigint)"
    weighed = rows.groups_first or bool(rows.count.numbers)
    if rows.groups_first:
        words = ", ".join(rows.word_names)
        source = f"FROM (SELECT {words}, {number} AS n {source} GROUP BY {words}) AS g"
        number = "CAST(sum(n) AS bigint)"
    listed = ", ".join([*rows.parts(), *(["n"] if weighed else [])])
    # OFFSET 0: the server would otherwise look merged values up anew for each entry.
    parts = f"SELECT {listed} {source} OFFSET 0"
    entries = ", ".join(rows.entries())
    return (
        f"SELECT entry, {number} FROM ({parts}) AS p, unnest(ARRAY[{entries}]) AS e(entry) "  # noqa: S608
        "WHERE entry IS NOT NULL GROUP BY entry"
    )


def _pieces(rows: JoinedRows, source: str) -> str:
    """The pieces of rows with numbers by knots: their words, and their units ``n``."""
    shares = f"SELECT {', '.join(rows.shares)} {source} OFFSET 0"
    starts = f"SELECT DISTINCT start FROM unnest(ARRAY[{rows.starts}]) AS u(start)"  # noqa: S608
    pieces = ", ".join(rows.pieces)
    return f"SELECT {pieces} FROM ({shares}) AS q CROSS JOIN LATERAL ({starts}) AS v"  # noqa: S608


def _by_bisection(rows: JoinedRows) -> list[int]:
    """Attributes with many edges, and all of exact numbers, whose conversion is done but once."""
    exact = {
        place
        for place, axis in enumerate(rows.axes)
        if isinstance(axis.attribute, Bins) and rows.columns[place].kind == "decimal"
    }
    return sorted(exact.union(rows.wide()))
