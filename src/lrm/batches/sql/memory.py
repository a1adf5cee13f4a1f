"""A database in memory that evaluates expressions on public values, and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from lrm.errors import SqlError

__all__ = ["any_true", "memory_database", "reason_of"]


@cache
def memory_database() -> Any:
    """An empty database in memory that reads nothing but what it is given."""
    import duckdb  # noqa: PLC0415 - it takes a while, and most batches need none

    connection = duckdb.connect(":memory:")
    for setting in (
        "threads = 1",
        "enable_external_access = false",
        "python_enable_replacements = false",
        "TimeZone = 'UTC'",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def reason_of(error: Exception) -> str:
    """What the database says of an expression, in one line."""
    first = str(error).splitlines()[0]
    return first.split("Error: ", 1)[-1].rstrip(".")


def any_true(shown: str, text: str, columns: Sequence[Sequence[Any]]) -> bool:
    """Whether a condition on the public columns c0, c1 … is true of any row."""
    import duckdb  # noqa: PLC0415 - as above

    database = memory_database().cursor()
    names = [f"c{place}" for place in range(len(columns))]
    database.register("looked_up", pa.table(list(map(pa.array, columns)), names))
    try:
        # Only functions of an allow-list, over rows of a lookup: see `expressions`.
        count_rows = database.execute(f"SELECT COUNT(*) FROM looked_up WHERE {text}").fetchall()  # noqa: S608
    except duckdb.Error as error:
        raise SqlError(
            f"{shown} cannot be evaluated: {reason_of(error)}", code="evaluation"
        ) from None
    finally:
        database.close()
    return bool(count_rows[0][0])
