"""Counting inside PostgreSQL, in one transaction that may only read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Bins, Domain, persons
from lrm.domain.people import Level
from lrm.errors import TableError
from lrm.files.locations import unescaped_password, why_unreachable
from lrm.privacy.mechanism import OccurringValues, TrueCounts
from lrm.queries.maps.products.tabulation import total
from lrm.tables.base import Column, Table, check_columns, guarded, load_engine, name_parts
from lrm.tables.cell_sql import bin_steps
from lrm.tables.count import Count, Wanted, count_of
from lrm.tables.dialect import case, sql_code
from lrm.tables.joined_rows import Integers, JoinedRows
from lrm.tables.joined_values import conditions, occurring
from lrm.tables.open_values import OpenValues
from lrm.tables.people_sql import LevelSql
from lrm.tables.postgres_sql import PostgresSql, column_of
from lrm.tables.tally import Tally

if TYPE_CHECKING:
    import psycopg

SQL = PostgresSql()
LEAST_VERSION = 12
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(4)  # a signature, and flags
_ROW = np.dtype(
    [("fields", ">i2"), ("length", ">i4"), ("place", ">i8"), ("length_n", ">i4"), ("n", ">i8")]
)
"""A row of two numbers of 64 bits, in the binary form of COPY."""

_KEEP_KEY = "SELECT set_config('lrm.key', %s, true)"
_KEY = "(SELECT decode(current_setting('lrm.key'), 'hex'))"
"""The key by which rows of persons are chosen: a setting of the transaction, as the text of a
statement is shown to others and logged; a sub-select, which the server computes once."""

COPIED_BYTES = 1 << 20
"""Bytes of rows that are looked at together: one by one, a million took a minute."""

PAIRS_AT_ONCE = 50_000
"""Pairs of a person and a value that are fetched at a time."""

CONNECTION = {
    "connect_timeout": 15,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""What an address leaves open: a server that is gone ends a count after a minute. By its own
settings the system asks after two hours, and a count is silent for as long as it takes."""

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


@dataclass(frozen=True)
class Counting:
    """A query of places and how many rows there are at each, and what these places are.

    ``add`` adds them to a tally.
    """

    query: str
    add: Callable[[Tally, Integers, Integers], None]


class PostgresCounted(Table):
    """What is counted inside one PostgreSQL database, by one query."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name)
        self._driver = load_engine("psycopg", "'psycopg[binary]'")
        self._url = url

    @abstractmethod
    def _query(self, count: Count, *, empty: bool) -> Counting:
        """The query of what is counted."""

    def _check(self, domain: Domain, requested: Wanted) -> None:
        counting = self._query(count_of(domain, requested), empty=True)

        def count_nothing(db: psycopg.Connection[Any]) -> None:
            _keep_key(db)
            db.execute(counting.query)

        self._within("preparing the count", count_nothing)

    def _counts(self, domain: Domain, requested: Wanted) -> TrueCounts:
        count = count_of(domain, requested)
        counting = self._query(count, empty=False)

        def count_rows(db: psycopg.Connection[Any]) -> TrueCounts:
            tally = Tally(count)
            _keep_key(db)
            # A cursor of the server, which also sends what is needed, forbids parallel plans.
            copy = f"COPY ({counting.query}) TO STDOUT (FORMAT binary)"
            with db.cursor() as cursor, cursor.copy(copy) as blocks:
                for rows in _copied(blocks):
                    counting.add(tally, rows["place"].astype(np.int64), rows["n"].astype(np.int64))
            return tally.true_counts()

        return self._within("counting", count_rows)

    def _within(self, doing: str, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        def run() -> T:
            with self._reading() as db:
                return work(db)

        return guarded(f"{doing} of table {self.name!r} on PostgreSQL", run)

    @contextmanager
    def _reading(self) -> Iterator[psycopg.Connection[Any]]:
        reason = None
        try:
            given = self._driver.conninfo.conninfo_to_dict(self._url)
            db = self._driver.connect(**{**CONNECTION, **given, "client_encoding": "utf8"})
        except self._driver.OperationalError as error:
            reason = why_unreachable(str(error))
        if reason is not None:  # raised here, so that no traceback contains the driver's message
            raise TableError(f"PostgreSQL cannot be reached: {reason}")
        with db:
            if db.info.server_version < LEAST_VERSION * 10_000:
                version = db.info.server_version // 10_000
                raise TableError(
                    f"this is PostgreSQL {version}, and lrm needs PostgreSQL {LEAST_VERSION} or "
                    "later"
                )
            db.read_only = True
            yield db


def _keep_key(db: psycopg.Connection[Any]) -> None:
    db.execute(_KEEP_KEY, [persons.fresh_key().hex()])


def _copied(blocks: Iterable[Any]) -> Iterator[NDArray[Any]]:
    """The rows of two whole numbers that COPY sends in its binary form."""
    # The driver has a block for each row: many are put together before NumPy looks at them.
    rest = bytearray()
    start: int | None = None
    for block in blocks:
        rest += block
        if len(rest) >= COPIED_BYTES:
            start = _after_header(rest) if start is None else 0
            whole = (len(rest) - start) // _ROW.itemsize
            yield np.frombuffer(bytes(rest), _ROW, whole, start)
            del rest[: start + whole * _ROW.itemsize]
    start = _after_header(rest) if start is None else 0
    # Two bytes of -1 end the rows: fewer than a row has.
    yield np.frombuffer(bytes(rest), _ROW, (len(rest) - start) // _ROW.itemsize, start)


def _after_header(sent: bytearray) -> int:
    """Where rows begin: the header says how long its extension is."""
    end = len(_COPY_HEADER) + 4
    return end + int.from_bytes(sent[len(_COPY_HEADER) : end])


class PostgresTable(PostgresCounted):
    """A table or view of a PostgreSQL database, ``name`` or ``schema.name``."""

    def __init__(self, url: str, table: str, name: str | None = None) -> None:
        super().__init__(name or table, url)
        self._relation = ".".join(SQL.name(part) for part in name_parts(table))
        self._columns = self._within("reading the schema", self._look)
        if not self._columns:
            raise TableError(f"the database has no table {table!r} that this user may see")

    @classmethod
    def of_level(cls, level: Level, tables: Mapping[str, Table]) -> Table:
        return PostgresLevel(level, {n: t for n, t in tables.items() if isinstance(t, cls)})

    @property
    def url(self) -> str:
        """The database, with whatever it needs to be reached."""
        return self._url

    def _look(self, db: psycopg.Connection[Any]) -> tuple[Column, ...]:
        return tuple(column_of(*row) for row in db.execute(_COLUMNS, [self._relation]))

    def _described(self) -> tuple[Column, ...]:
        return self._columns

    def _query(self, count: Count, *, empty: bool) -> Counting:
        domain = count.domain
        needed = check_columns(self.name, domain, self._columns)
        rows = JoinedRows(SQL, count, [needed[name] for name in domain.names])
        person = None if domain.unit.column is None else needed[domain.unit.column]
        if person is None and rows.values_first:
            read = self._grouped(rows, empty=empty)
            worded = _worded(rows, f"({read})", None, ["n"])
            return _counted(rows, f"FROM ({worded}) AS s WHERE {rows.counted}", "sum(n)")
        read = self.reading(rows, person, empty=empty, alone=True)
        named = "person" if person is None else SQL.own_name("person", person)
        return _limited(rows, _worded(rows, f"({read} OFFSET '0')", person), person, named)

    def check_values(self, wanted: OpenValues) -> None:
        wanted.check()
        query = self._values_query(wanted, empty=True)

        def look_at_nothing(db: psycopg.Connection[Any]) -> str:
            db.execute(query)
            ((encoding,),) = db.execute("SHOW server_encoding").fetchall()
            return str(encoding)

        encoding = self._within("preparing to read values", look_at_nothing)
        if encoding != "UTF8":
            raise TableError(
                f"values are discovered in databases whose encoding is UTF8, and this is {encoding}"
            )

    def values(self, wanted: OpenValues) -> OccurringValues:
        query = self._values_query(wanted, empty=False)

        def find(db: psycopg.Connection[Any]) -> OccurringValues:
            with db.cursor("lrm_values") as cursor:
                cursor.itersize = PAIRS_AT_ONCE
                cursor.execute(query)
                return occurring(cursor, wanted)

        return self._within("reading values", find)

    def _values_query(self, wanted: OpenValues, *, empty: bool) -> str:
        domain = wanted.domain
        needed = check_columns(self.name, domain, self._columns)
        count = count_of(domain, [total(domain.shape)])
        rows = JoinedRows(SQL, count, [needed[name] for name in domain.names])
        person = None if domain.unit.column is None else needed[domain.unit.column]
        # The bytes of the text: the database has the encoding UTF8.
        words = _worded(rows, "rows_read", person, ["convert_to(CAST(c0 AS text), 'UTF8') AS v"])
        read = f"rows_read AS MATERIALIZED ({self.reading(rows, person, empty=empty)})"
        selected, order = ("v", "") if person is None else ("DISTINCT person, v", "ORDER BY person")
        kept = " AND ".join(conditions(wanted))
        return f"WITH {read} SELECT {selected} FROM ({words}) AS s WHERE {kept} {order}"  # noqa: S608

    def reading(
        self, rows: JoinedRows, person: Column | None, *, empty: bool, alone: bool = False
    ) -> str:
        """The query that reads the table, as ``c0``, ``c1`` … and ``person``.

        To be materialized, or to be ended by OFFSET '0', which the server moves nothing across (and
        which, unlike OFFSET 0, whose number is converted, does not forbid parallel plans): a
        function in a view could otherwise be called anew wherever a value is looked at, and place
        one row in several cells.
        """
        selected = ", ".join(rows.selected(person, alone=alone))
        return f"SELECT {selected} FROM {self._relation}{' LIMIT 0' if empty else ''}"  # noqa: S608

    def _grouped(self, rows: JoinedRows, *, empty: bool) -> str:
        """The query of the different values of rows, and of how many rows have them."""
        values = [text for i, text in enumerate(rows.selected(None)) if i in rows.used]
        few = " LIMIT 0" if empty else ""
        read = f"(SELECT {', '.join(values)} FROM {self._relation}{few}) AS t"  # noqa: S608
        names = [f"c{i}" for i in rows.used]
        by = f" GROUP BY {', '.join(names)}" if names else ""
        return f"SELECT {', '.join([*names, 'count(*) AS n'])} FROM {read}{by} OFFSET '0'"  # noqa: S608


class PostgresLevel(PostgresCounted):
    """The rows of a level of a people, from its tables in one database.

    Each table is read once, in the one query of the count, so that all are of one moment.
    """

    def __init__(self, level: Level, tables: Mapping[str, PostgresTable]) -> None:
        urls = {table.url for table in tables.values()}
        if len(urls) > 1:
            raise TableError(
                f"the tables of {level.people.name!r} are in several PostgreSQL databases, or are "
                "reached in several ways; give all with the same address but for table="
            )
        super().__init__(level.people.name, urls.pop())
        self._tables = tables
        columns = {name: table.described for name, table in tables.items()}
        self._sql = LevelSql(level, columns, SQL)

    def _described(self) -> tuple[Column, ...]:
        return (*self._sql.columns(), self._sql.person)

    def _query(self, count: Count, *, empty: bool) -> Counting:
        queries = {}
        for name, rows in self._sql.tables.items():
            person = rows.needed[rows.table.person]
            columns = [rows.needed[attribute.name] for attribute in rows.domain.attributes]
            joined = JoinedRows(SQL, rows.count, columns)
            read = f"read_{rows.name}"
            queries[read] = self._tables[name].reading(joined, person, empty=empty)
            kept = [f"r.{test} IS NOT NULL" for test in ("person", rows.dated) if test]
            placed = _worded(joined, read, person, rows.further())
            queries[rows.name] = f"SELECT * FROM ({placed}) AS r WHERE {' AND '.join(kept)}"  # noqa: S608
        queries["rows_read"] = self._sql.relation(count.domain)
        reading = ", ".join(f"{name} AS MATERIALIZED ({q})" for name, q in queries.items())
        placed_rows = JoinedRows(SQL, count, self._sql.columns())
        counted = self._sql.person if self._sql.is_limited else None
        words = _worded(placed_rows, "rows_read", counted)
        counting = _limited(placed_rows, words, counted)
        return replace(counting, query=f"WITH {reading} {counting.query}")


def _worded(
    rows: JoinedRows, relation: str, person: Column | None, further: Sequence[str] = ()
) -> str:
    """The query of the rows of a relation with columns ``c0`` …, as their words and persons."""
    known_classes = {place: _wide(rows, place) for place in _by_bisection(rows)}
    known_classes |= rows.joined()
    joins = ""
    for place, keys in rows.joins.items():
        values = ", ".join(literal for literal, _ in keys.pairs)
        codes = ", ".join(str(code) for _, code in keys.pairs)
        joins += (
            f" LEFT JOIN unnest(ARRAY[{values}], ARRAY[{codes}]) "
            f"AS keys{place}(value, code) ON keys{place}.value = {keys.value}"
        )
    listed = ", ".join([*rows.words(known_classes), *further, *(["person"] if person else [])])
    # OFFSET '0': the server would otherwise find a word anew wherever it is looked at.
    return f"SELECT {listed} FROM {relation} AS t{joins} OFFSET '0'"  # noqa: S608 - all parts are quoted


def _limited(
    rows: JoinedRows, query: str, person: Column | None, named: str = "person"
) -> Counting:
    """The query of what is counted, from the words and persons of rows."""
    condition = rows.counted
    if person is not None:
        condition += " AND person IS NOT NULL"
        for listed, kept in rows.limits(_KEY, named):
            # OFFSET '0': what is sorted is a few numbers, not what they are made of.
            query = f"SELECT {', '.join(listed)} FROM ({query}) AS r WHERE {condition} OFFSET '0'"  # noqa: S608
            condition = kept
    return _counted(rows, f"FROM ({query}) AS s WHERE {condition}")


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


def _counted(rows: JoinedRows, source: str, number: str = "count(*)") -> Counting:
    """The query of what is counted, from the words of rows that count, each ``number`` times."""
    if rows.groups_only:
        groups = f"SELECT {rows.group} AS place {', n' if number != 'count(*)' else ''} {source}"
        query = _summed(f"{groups} OFFSET '0'", number)
        return Counting(query, rows.add_groups)
    if rows.count.numbers:
        source = f"FROM ({_pieces(rows, source)}) AS d"
        number = "sum(n)"
        if rows.groups_first:
            words = ", ".join(rows.word_names)
            source = f"FROM (SELECT {words}, {number} AS n {source} GROUP BY {words}) AS g"
    units = ["n"] if number != "count(*)" else []
    # OFFSET '0': the server would otherwise look merged values up anew for each entry.
    parts = f"SELECT {', '.join([*rows.parts(), *units])} {source} OFFSET '0'"
    entries = rows.entries()
    # unnest among the columns: as a table, it would store the entries of each row.
    entry = entries[0] if len(entries) == 1 else f"unnest(ARRAY[{', '.join(entries)}])"
    listed = ", ".join([f"{entry} AS place", *units])
    return Counting(_summed(f"SELECT {listed} FROM ({parts}) AS p", number), Tally.add_entries)  # noqa: S608


def _summed(places: str, number: str) -> str:
    """The query of how many rows there are at each place."""
    return (
        f"SELECT place, CAST({number} AS bigint) FROM ({places}) AS e "  # noqa: S608
        "WHERE place IS NOT NULL GROUP BY place"
    )


def _pieces(rows: JoinedRows, source: str) -> str:
    """The pieces of rows with numbers by knots: their words, and their units ``n``."""
    shares = f"SELECT {', '.join(rows.shares)} {source} OFFSET '0'"
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
