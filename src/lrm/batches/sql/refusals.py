"""Errors of SQL text: each has a code, the place where it was found, and what to write instead."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lrm.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lrm.batches.sql.expr import Expr
    from lrm.batches.sql.source import Chunk

__all__ = ["CODES", "fail", "in_statement", "placed", "refuse"]

CODES: dict[str, tuple[str, str]] = {
    "aggregate": (
        "an aggregate that is not a sum over rows",
        "SELECT MAX(age) FROM people",
    ),
    "clause": ("a clause that is not supported", "SELECT DISTINCT age FROM people"),
    "constant": (
        "a constant of another type than the attribute it is compared with",
        "SELECT COUNT(*) FROM people WHERE age = 'old'",
    ),
    "cut": (
        "a condition or expression that is not constant on a declared cell",
        "SELECT COUNT(*) FROM people WHERE income < 15",
    ),
    "display": (
        "HAVING, ORDER BY or LIMIT of something else than answers and groups",
        "SELECT age, COUNT(*) FROM people GROUP BY age LIMIT 1.5",
    ),
    "empty": ("a batch without a statement", "-- nothing"),
    "evaluation": (
        "an expression that fails on a declared value",
        "SELECT COUNT(*) FROM people WHERE state + 1 = 2",
    ),
    "formula": (
        "arithmetic of aggregates that is not supported",
        "SELECT COUNT(*) // 2 FROM people",
    ),
    "function": (
        "a function that is not on the list of deterministic functions",
        "SELECT COUNT(*) FROM people WHERE age < random()",
    ),
    "group-by": (
        "a column that is neither in GROUP BY nor inside an aggregate",
        "SELECT age, COUNT(*) FROM people",
    ),
    "importance": (
        "an importance that is not a number above 0",
        "-- importance: high\nSELECT COUNT(*) FROM people",
    ),
    "join": (
        "a JOIN that is not to a lookup of the domain by its key",
        "SELECT COUNT(*) FROM people JOIN visits USING (id)",
    ),
    "name": (
        "two answers or columns with one name",
        "SELECT COUNT(*) AS n, SUM(age) AS n FROM people",
    ),
    "nested": (
        "an operation on answers of a sub-select that depends on noise",
        "SELECT SUM(n) FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age LIMIT 3)",
    ),
    "no-answer": (
        "a SELECT that asks for no aggregate",
        "SELECT age FROM people GROUP BY age",
    ),
    "not-select": ("a statement that is not a SELECT", "DELETE FROM people"),
    "null": (
        "a comparison with NULL",
        "SELECT COUNT(*) FROM people WHERE age = NULL",
    ),
    "quantile": (
        "a quantile of something else than an attribute of numbers",
        "SELECT MEDIAN(state) FROM people",
    ),
    "size": (
        "more work, or longer texts, than is allowed",
        "SELECT COUNT(*) FROM people WHERE REPEAT(state, 1000000) = 'x'",
    ),
    "subquery": (
        "a sub-select where none may stand",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)",
    ),
    "syntax": ("a text that cannot be parsed", "SELECT COUNT(* FROM people"),
    "unknown-column": (
        "a name that no attribute has",
        "SELECT COUNT(*) FROM people WHERE town = 'NY'",
    ),
    "unknown-table": (
        "a table that the domain does not declare",
        "SELECT COUNT(*) FROM doctors",
    ),
    "window": (
        "a window function that is not supported",
        "SELECT age, COUNT(*) OVER () FROM people GROUP BY age",
    ),
}
"""Each code with its meaning and an example."""

TOO_DEEP = "the statement is nested too deeply; write it with fewer parentheses and sub-selects"


def fail(code: str, sentence: str, node: Expr | None = None) -> SqlError:
    """Make an error that consists of one sentence."""
    return SqlError(sentence, code=code, at=None if node is None else node.at)


def refuse(
    code: str, found: str, advice: str, node: Expr | None = None, *, at: int | None = None
) -> SqlError:
    """Make the error that names what is not supported and what to write instead."""
    place = at if node is None else node.at
    return SqlError(
        f"{found} is not supported; {advice}", code=code, found=found, advice=advice, at=place
    )


def placed(error: SqlError, chunk: Chunk) -> SqlError:
    """The same error with its line and column in the batch."""
    if error.line is not None:
        return error
    at = 0 if error.at is None else error.at - chunk.start
    lines = chunk.text.count("\n", 0, at)
    return SqlError(
        error.sentence,
        code=error.code,
        line=chunk.line + lines,
        column=at - chunk.text.rfind("\n", 0, at) if lines else chunk.column + at,
        found=error.found,
        advice=error.advice,
    )


@contextmanager
def in_statement(chunk: Chunk) -> Iterator[None]:
    """Give errors of a statement their line and column."""
    try:
        yield
    except SqlError as error:
        raise placed(error, chunk) from None
    except RecursionError:
        raise placed(SqlError(TOO_DEEP, code="size"), chunk) from None
