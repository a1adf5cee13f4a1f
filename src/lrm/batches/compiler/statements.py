"""SQL text → checked SELECT statements over one table."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from lrm.batches.compiler.refusals import (
    AGGREGATES,
    TOO_DEEP,
    in_statement,
    line_of,
    only,
    refuse,
)
from lrm.batches.compiler.sources import plain_select, same_table
from lrm.batches.compiler.spellings import Spoken, respell
from lrm.errors import SqlError

if TYPE_CHECKING:
    from sqlglot import Token

    from lrm.domain import Domain

__all__ = ["Statement", "statements"]

MOST_CHARACTERS = 4_000_000
"""Characters of one batch, which are read in some seconds."""

MOST_TOKENS = 110_000
"""Words, constants and signs of one statement: some seconds of work."""

_CLOSING = frozenset("'\"`*$")  # a line without these ends no quotation or comment
_MISSING = re.compile(r"Required keyword: .* missing for <class .*>")
_TOKEN = re.compile(r"Expected (.*) but got <Token .*", re.DOTALL)
_LONGEST_TEXT = 10_000  # characters searched for the end of a quotation, to name its line

# sqlglot logs a warning where it falls back to an opaque command, which is refused here anyway.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())


@dataclass(frozen=True, eq=False)
class Statement:
    """One SELECT: its number and line in the text, the table it reads, its tree.

    ``part`` counts the SELECTs that UNION ALL joins, from 1; the last of them has the ``ending`` of
    them all, a SELECT with nothing but ORDER BY, LIMIT and OFFSET. ``start`` is the position of the
    first character in the text.
    """

    number: int
    line: int
    part: int
    table: str
    select: exp.Expr
    ending: exp.Expr | None = None
    start: int = 0


def statements(text: str, domain: Domain) -> list[Statement]:
    """Parse a batch and check that each statement is a SELECT of the declared table.

    Where the domain names none, it is whichever single table the batch names.
    """
    if len(text) > MOST_CHARACTERS:
        raise SqlError(
            f"a batch of {len(text):,} characters is not compiled; write at most "
            f"{MOST_CHARACTERS:,}, and split it into several batches"
        )
    table = domain.table
    checked: list[Statement] = []
    parser = sqlglot.Dialect.get_or_raise(Spoken).parser()
    for tokens in _split(text.removeprefix("\ufeff")):
        line = tokens[0].line
        with in_statement(line):
            _check_length(tokens)
            _check_select_said(tokens)
            tree = respell(_tree(parser, tokens, text))
            ending = _ending(tree)
            selects = _selects(tree)
            for part, select in enumerate(selects, start=1):
                at = line_of(select) or line
                if part > 1:
                    _take_names(select, selects[0])
                plain = plain_select(select, domain)
                expected = table or (checked[0].table if checked else plain.table)
                if not same_table(plain.table, expected):
                    raise SqlError(_unknown(plain.table, expected, declared=table is not None))
                number = len(checked) + 1
                last = ending if part == len(selects) else None
                checked.append(
                    Statement(number, at, part, expected, plain.select, last, tokens[0].start)
                )
    if not checked:
        raise SqlError("the batch is empty; write at least one SELECT COUNT(*) FROM …")
    return checked


def _take_names(select: exp.Expr, first: exp.Expr) -> None:
    """Name columns of a later part of UNION ALL as in its first, where texts tell them apart."""
    texts = [item for item in first.expressions if type(item.unalias()) is exp.Literal]
    if type(select) is not exp.Select or not texts:
        return
    pairs = zip(list(select.expressions), first.expressions, strict=False)
    for item, model in pairs:
        if type(model) is exp.Alias and type(item) is not exp.Alias:
            item.replace(exp.alias_(item.copy(), model.alias))


def _unknown(name: str, expected: str, *, declared: bool) -> str:
    where = "the domain declares" if declared else "the batch's first statement reads"
    return f"table {name!r} is unknown; {where} {expected!r}"


def _split(text: str) -> list[list[Token]]:
    """Cut the batch at its semicolons, so that each statement's line is known."""
    try:
        tokens = sqlglot.tokenize(text, read=Spoken)
    except SqlglotError:
        raise SqlError(
            f"line {_open_line(text)}: a quotation or comment that starts here never ends; close it"
        ) from None
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]


def _open_line(text: str) -> int:
    """Find the line where a quotation or comment starts that is never closed."""
    start, waiting = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        still_open = waiting and not _CLOSING.intersection(line)
        waiting += line + "\n"
        if still_open:  # trying again would make long quotations quadratic
            continue
        try:
            sqlglot.tokenize(waiting, read=Spoken)
        except SqlglotError:
            if len(waiting) > _LONGEST_TEXT:
                break
        else:
            start, waiting = number + 1, ""
    return start


def _check_length(tokens: list[Token]) -> None:
    if len(tokens) > MOST_TOKENS:
        raise SqlError(
            f"a statement of {len(tokens):,} words and signs is not compiled; "
            f"write at most {MOST_TOKENS:,}, such as BETWEEN for a list of numbers"
        )


def _check_select_said(tokens: list[Token]) -> None:
    # DuckDB reads a bare FROM as SELECT *, and the tree has no line for what nobody wrote.
    kinds = {token.token_type for token in tokens}
    if tokens[0].token_type is TokenType.FROM and TokenType.SELECT not in kinds:
        raise refuse("FROM without SELECT", AGGREGATES)
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        top = one.token_type is TokenType.SELECT and two.text.upper() == "TOP"
        if top and three.token_type is TokenType.NUMBER:
            way_out = f"write LIMIT {three.text} at the end"
            raise SqlError(f"line {two.line}: TOP {three.text} is not compiled; {way_out}")


def _tree(parser: sqlglot.Parser, tokens: list[Token], text: str) -> exp.Expr:
    line = tokens[0].line
    try:
        (tree,) = parser.parse(tokens, text)
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        where = detail.get("line") or line
        what = str(detail.get("description") or "not understood").rstrip(".")
        what = _TOKEN.sub(r"expected \1", _MISSING.sub("something is missing", what))
        near = str(detail.get("highlight") or "")
        found = f" near {near!r}" if near else ""
        hint = '; write names in double quotes: "name"' if near == "[" else ""
        raise SqlError(f"line {where}: cannot parse the SQL: {what}{found}{hint}") from None
    except RecursionError:
        raise SqlError(f"line {line}: {TOO_DEEP}") from None
    except (SqlglotError, ValueError) as error:
        raise SqlError(f"line {line}: cannot parse the SQL: {_first_line(error)}") from None
    if tree is None:
        raise SqlError(f"line {line}: expected a SELECT statement")
    return tree


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _ending(tree: exp.Expr) -> exp.Expr | None:
    """Take ORDER BY, LIMIT and OFFSET from a whole UNION ALL."""
    found = exp.Select()
    for part in ("order", "limit", "offset") if type(tree) is exp.Union else ():
        if tree.args.get(part) is not None:
            found.set(part, tree.args[part])
            tree.set(part, None)
    return found if found.args else None


def _selects(tree: exp.Expr) -> list[exp.Expr]:
    """The statements that UNION ALL joins: each is answered for itself."""
    found: list[exp.Expr] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if type(node) is exp.Union:
            if node.args.get("distinct"):
                raise refuse("UNION", "write UNION ALL, or two statements separated by ;", node)
            only(node, "this", "expression", "with_")
            for side in (node.this, node.expression):
                _give_with(side, node)
            waiting += [node.expression, node.this]
        elif type(node) is exp.Subquery:
            waiting.append(_unwrapped(node))
        else:
            found.append(node)
    return found


def _give_with(node: exp.Expr, outer: exp.Expr) -> None:
    """Let a part of a statement read what WITH names before the whole of it."""
    clause = outer.args.get("with_")
    if clause is None:
        return
    own = node.args.get("with_")
    tables = [*clause.copy().expressions, *(own.expressions if own is not None else [])]
    node.set("with_", exp.With(expressions=tables))


def _unwrapped(node: exp.Expr) -> exp.Expr:
    """A SELECT in parentheses; with ORDER BY or LIMIT after them, ``SELECT * FROM (…)``."""
    only(node, "this", "with_", "order", "limit", "offset")
    inner: exp.Expr = node.this
    _give_with(inner, node)
    ending = {part: node.args[part] for part in ("order", "limit", "offset") if node.args.get(part)}
    if not ending:
        return inner
    source = exp.From(this=exp.Subquery(this=inner))
    return exp.Select(expressions=[exp.Star()], from_=source, **ending)
