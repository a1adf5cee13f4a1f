"""What a class of an engine's errors means, in sentences that are fixed.

The message of an engine may quote a value of the table. Its class, or the code that the engine
documents for it, cannot: it is looked up here, and nothing else of the error is shown.
"""

from __future__ import annotations

from typing import Any

LOST = "the connection was lost"

_SQLSTATES = {
    "42P01": "there is no such table or view, or not in the search path of this user",
    "42501": "this user lacks a privilege: grant USAGE on the schema, and SELECT on the columns "
    "that the domain declares",
    "42703": "a column is not there any more",
    "42883": "the server lacks a function: lrm needs PostgreSQL 12 or later",
    "3F000": "there is no such schema",
    "0A000": "the server does not support what the table needs; is it PostgreSQL 12 or later?",
    "25006": "the table is a view that writes, and lrm only reads",
    "55P03": "another session holds a lock on the table",
    "57014": "the statement was cancelled, by statement_timeout or by an administrator",
    "53100": "the disk of the server is full",
    "53200": "the server has no memory left",
    "53300": "the server has no connection to spare",
    "57P01": "the server is being stopped, or ended the connection",
    "08": LOST,
}
"""By the first letters of PostgreSQL's SQLSTATE."""

_CONDITIONS = {
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table or view in this session",
    "SCHEMA_NOT_FOUND": "there is no such schema in this session",
    "CATALOG_NOT_FOUND": "the session has no such catalogue",
    "REQUIRES_SINGLE_PART_NAMESPACE": "the session's catalogue takes SCHEMA.TABLE",
    "PATH_NOT_FOUND": "there is no such path, or Spark's workers cannot see it",
    "UNABLE_TO_INFER_SCHEMA": "there are no Parquet files there",
    "INSUFFICIENT_PERMISSIONS": "this user lacks a privilege on the table",
    "UNRESOLVED_COLUMN": "a column is not there any more",
    "UNRESOLVED_ROUTINE": "the session lacks a function: lrm needs Spark 4.0 or later",
    "PARSE_SYNTAX_ERROR": "the session does not read this SQL: lrm needs Spark 4.0 or later",
    "OPERATION_CANCELED": "the job was cancelled",
    "FAILED_READ_FILE": "a file of the table cannot be read",
}
"""By the first letters of Spark's error condition."""

_CLASSES = {
    "PermissionException": "DuckDB may not read the file",
    "PermissionError": "this user may not read the file",
    "FileNotFoundError": "the file is not there any more",
    "OutOfMemoryException": "DuckDB has no memory left",
    "MemoryError": "there is no memory left",
    "SparkConnectGrpcException": "the Spark Connect server reported a failure",
    "Py4JNetworkError": "the connection to Spark was lost",
    "AccessControlException": "this user lacks a privilege on the table",
}
"""By the name of the class."""


def meaning(error: BaseException) -> str:
    """What an error means; nothing where its class is not known.

    >>> meaning(PermissionError("secret.csv"))
    'this user may not read the file'
    >>> meaning(ValueError("the value 47"))
    ''
    """
    state = getattr(error, "sqlstate", None)
    known = _of(_SQLSTATES, state) or _of(_CONDITIONS, _condition(error))
    if not known and _is_lost(error):
        return LOST
    return known or _CLASSES.get(type(error).__name__, "")


def _is_lost(error: BaseException) -> bool:
    """Whether the driver itself found that it has no server: an error of the server has a code."""
    kind = type(error)
    ours = kind.__module__ == "psycopg" and kind.__name__ == "OperationalError"
    return ours and getattr(error, "sqlstate", None) is None


def _of(sentences: dict[str, str], code: object) -> str:
    if not isinstance(code, str):
        return ""
    return next((text for start, text in sentences.items() if code.startswith(start)), "")


def _condition(error: Any) -> object:
    """The condition that an error of Spark names."""
    if not type(error).__module__.startswith("pyspark."):
        return None
    try:
        return error.getCondition()
    except Exception:  # noqa: BLE001 - it asks a JVM, which may be gone
        return None
