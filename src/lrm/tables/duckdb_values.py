"""Values of a column that no domain declares, found by DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrm.domain import persons
from lrm.privacy.mechanism import OccurringValues
from lrm.tables.base import load_engine
from lrm.tables.duckdb_reading import SQL
from lrm.tables.duckdb_rows import DuckDbRows
from lrm.tables.open_values import OpenValues

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def occurring_values(
    db: DuckDBPyConnection, rows: DuckDbRows, wanted: OpenValues
) -> OccurringValues:
    """How many persons have each value; each person counts in at most ``wanted.most`` of them.

    Rows are read once, into pairs of a person and a value. Which of a person's values count follows
    from them and a fresh key alone, as `lrm.domain.persons.kept_values` says.
    """
    value = SQL.as_bytes(*rows.value(0))
    person = "0" if rows.person is None else "person"
    kept = ["v IS NOT NULL", "p IS NOT NULL", f"octet_length(v) <= {4 * wanted.length}"]
    kept += ["e IS NOT NULL"] if wanted.editions is not None else []
    edition = f", {rows.key(1)} AS e" if wanted.editions is not None else ""
    # Without a column of persons, each row is one.
    distinct = "" if rows.person is None else "DISTINCT "
    db.execute(
        f"CREATE TEMP TABLE lrm_pairs AS SELECT {distinct}p, v FROM "  # noqa: S608 - quoted parts
        f"(SELECT {person} AS p, {value} AS v{edition} FROM {rows.values()}) "
        f"WHERE {' AND '.join(kept)}"
    )
    found = db.sql("SELECT DISTINCT v FROM lrm_pairs").to_arrow_table()["v"]
    pa = load_engine("pyarrow")
    accepted = wanted.accepted(value.as_py() for value in found)
    db.register("lrm_accepted", pa.table({"v": pa.array(accepted, pa.large_binary())}))
    counted = "SELECT p, v FROM lrm_pairs JOIN lrm_accepted USING (v)"
    if rows.person is not None:
        name = "p" if _is_bytes(db) else "encode(CAST(p AS VARCHAR))"
        key = (
            f"encode('{persons.fresh_key().hex()}' || CAST(octet_length({name}) AS VARCHAR) || ':')"
        )
        order = f"sha256({key} || {name} || v), v"
        place = f"row_number() OVER (PARTITION BY p ORDER BY {order}) AS place"
        counted = f"SELECT v, place FROM (SELECT v, {place} FROM ({counted}))"  # noqa: S608
        counted += f" WHERE place <= {wanted.most}"
    total = db.execute(f"SELECT v, count(*) AS n FROM ({counted}) GROUP BY v").fetchall()  # noqa: S608
    return OccurringValues({bytes(data).decode("utf-8"): int(n) for data, n in total})


def _is_bytes(db: DuckDBPyConnection) -> bool:
    """Whether persons are named by bytes, else by whole numbers."""
    described = db.execute("DESCRIBE lrm_pairs").fetchall()
    return str(described[0][1]) == "BLOB"
