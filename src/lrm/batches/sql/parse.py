"""The text of one statement → sqlglot's tree, with errors that have a place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from lrm.batches.sql.dialect import DUCKDB, parser
from lrm.batches.sql.refusals import TOO_DEEP, refuse
from lrm.batches.sql.scope import place
from lrm.batches.sql.words import AGGREGATES
from lrm.errors import SqlError

if TYPE_CHECKING:
    from lrm.batches.sql.source import Chunk

__all__ = ["parsed", "row_count"]

_MISSING = re.compile(r"Required keyword: .* missing for <class .*>")
_TOKEN = re.compile(r"Expected (.*) but got <Token .*", re.DOTALL)
_MOST_DIGITS = 18  # of LIMIT, a BIGINT


def parsed(chunk: Chunk) -> Any:
    """Parse one statement."""
    tokens, dialect = chunk.tokens, chunk.dialect or DUCKDB
    kinds = {token.token_type for token in tokens}
    if tokens[0].token_type is TokenType.FROM and TokenType.SELECT not in kinds:
        # DuckDB reads a bare FROM as SELECT *, and the tree has no line for what nobody wrote.
        raise refuse("clause", "FROM without SELECT", AGGREGATES)
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        top = one.token_type is TokenType.SELECT and two.text.upper() == "TOP"
        if top and three.token_type is TokenType.NUMBER and dialect == DUCKDB:
            advice = f"write LIMIT {three.text} at the end"
            raise refuse("clause", f"TOP {three.text}", advice, at=two.start)
    try:
        (tree,) = parser(dialect).parse(tokens, chunk.whole)
    except ParseError as error:
        raise _syntax(error, chunk) from None
    except RecursionError:
        raise SqlError(TOO_DEEP, code="size") from None
    except (SqlglotError, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SqlError(f"cannot parse the SQL: {first}", code="syntax") from None
    if tree is None:
        raise SqlError("expected a SELECT statement", code="syntax")
    return tree


def _syntax(error: ParseError, chunk: Chunk) -> SqlError:
    detail = error.errors[0] if error.errors else {}
    what = str(detail.get("description") or "not understood").rstrip(".")
    what = _TOKEN.sub(r"expected \1", _MISSING.sub("something is missing", what))
    near = str(detail.get("highlight") or "")
    found = f" near {near!r}" if near else ""
    hint = '; write names in double quotes: "name"' if near == "[" else ""
    line, column = detail.get("line") or chunk.line, detail.get("col")
    sentence = f"cannot parse the SQL: {what}{found}{hint}"
    return SqlError(sentence, code="syntax", line=int(line), column=column, found=near)


def row_count(node: exp.Expr) -> int:
    """The number of LIMIT or OFFSET."""
    word = "OFFSET" if type(node) is exp.Offset else "LIMIT"
    value = node.args.get("expression") or node.args.get("count")
    options = node.args.get("limit_options")
    ties = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    text = str(value.this) if type(value) is exp.Literal and not value.is_string else ""
    if ties:
        advice = "which groups are equal depends on noise; write a number of groups"
        raise refuse("display", "WITH TIES or PERCENT", advice, at=place(node))
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        sentence = f"{word} must be a whole number, such as {word} 10"
        raise SqlError(sentence, code="display", at=place(node))
    return int(text)
