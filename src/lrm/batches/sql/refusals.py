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

CODES: dict[str, str] = {
    "aggregate": "an aggregate that is not a sum over rows",
    "clause": "a clause that is not supported",
    "constant": "a constant of another type than the attribute it is compared with",
    "cut": "a condition or expression that is not constant on a declared cell",
    "dialect": "a dialect that is not known, or a statement that dialects read differently",
    "display": "HAVING, ORDER BY or LIMIT of something else than answers and groups",
    "empty": "a batch without a statement",
    "evaluation": "an expression that fails on a declared value",
    "formula": "arithmetic of aggregates that is not supported",
    "function": "a function that is not on the list of deterministic functions",
    "group-by": "a column that is neither in GROUP BY nor inside an aggregate",
    "importance": "an importance that is not a number above 0",
    "join": "a JOIN that is not to a lookup of the domain by its key",
    "name": "two answers or columns with one name",
    "nested": "an operation on answers of a sub-select that depends on noise",
    "no-answer": "a SELECT that asks for no aggregate",
    "not-select": "a statement that is not a SELECT",
    "null": "a comparison with NULL",
    "quantile": "a quantile of something else than an attribute of numbers",
    "quotes": "a text in double quotes, which are for names",
    "size": "more work, or longer texts, than is allowed",
    "subquery": "a sub-select where none may stand",
    "syntax": "a text that cannot be parsed",
    "unknown-column": "a name that no attribute has",
    "unknown-table": "a table that the domain does not declare",
    "window": "a window function that is not supported",
}
"""Each code with its meaning; `docs/reference/sql-errors.md` has an example of each."""

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
