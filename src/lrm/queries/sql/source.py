"""The text of a batch → its statements, in their dialect, and sqlglot's trees of them.

Comments before the first statement may declare a dialect, and comments before any statement how
much its error counts for:

.. code-block:: sql

    -- dialect: snowflake
    -- importance: 4
    SELECT IFF(age >= 65, 'senior', 'other') AS who, COUNT(*) AS n FROM visits GROUP BY who;

Without a dialect, DuckDB's is read. A statement that it does not have is tried in each of the
others; it is taken where all that have it mean the same (see `lrm.queries.sql.build`).
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, SqlglotError

from lrm.errors import SqlError
from lrm.queries.sql.refusals import AGGREGATES, TOO_DEEP, refuse

# sqlglot logs a warning where it falls back to an opaque command, which is refused here anyway.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

DUCKDB = "duckdb"
OTHERS = ("bigquery", "mysql", "postgres", "redshift", "snowflake", "spark", "tsql")
"""Dialects that a batch may declare in addition to DuckDB's."""

_ALIASES = {
    "databricks": "spark",
    "mariadb": "mysql",
    "mssql": "tsql",
    "postgresql": "postgres",
    "sqlserver": "tsql",
    "sql server": "tsql",
    "t-sql": "tsql",
}
_DECLARED = re.compile(r"\s*(?:--|#|/\*)\s*dialect\s*:\s*([^\n*]*)", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(--[^\n]*|/\*.*?\*/|#[^\n]*)", re.DOTALL)
_KEPT = frozenset({"TO_CHAR", "TO_VARCHAR", "DATE_FORMAT", "FORMAT", "FORMAT_DATE"})
"""Functions whose formats are read here: sqlglot reads ``TO_CHAR(day, 'Dy')`` wrongly."""


class Spoken(DuckDB):
    """DuckDB's SQL, in which names may stand in backticks too: DuckDB has no other use for them."""

    class Tokenizer(DuckDB.Tokenizer):
        """Reads names in backticks."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - as sqlglot declares it


def declared(text: str) -> str | None:
    r"""The dialect that the comments before the first statement declare; None without one.

    >>> declared("-- visits\n-- dialect: T-SQL\nSELECT TOP 3 …"), declared("SELECT 1")
    ('tsql', None)
    """
    start, line = 0, 1
    while True:
        comment = _COMMENT.match(text, start)
        if comment is None:
            return None
        declaration = _DECLARED.match(comment[0])
        if declaration is not None:
            name = declaration[1].strip().lower()
            name = _ALIASES.get(name, name)
            if name in {DUCKDB, *OTHERS}:
                return name
            line += text.count("\n", 0, comment.start(1))
            raise SqlError(
                f"the dialect {declaration[1].strip()!r} is not supported; "
                f"write one of {', '.join(sorted([DUCKDB, *OTHERS]))}",
                code="dialect",
                line=line,
            )
        start = comment.end()


def tokens(text: str, dialect: str) -> list[Token]:
    """Cut a text into words and signs."""
    return sqlglot.tokenize(text, read=_dialect(dialect))


def parser(dialect: str) -> Any:
    """A parser of a dialect that keeps the formats of dates as they are written."""
    return _parser_class(dialect)(dialect=_dialect(dialect))


@cache
def _dialect(name: str) -> Any:
    return sqlglot.Dialect.get_or_raise(Spoken if name == DUCKDB else name)


def nulls_are_small(name: str) -> bool:
    """Whether a dialect sorts NULL below all values."""
    return bool(_dialect(name).NULL_ORDERING == "nulls_are_small")


@cache
def _parser_class(name: str) -> Any:
    base = _dialect(name).parser_class
    functions = {key: value for key, value in base.FUNCTIONS.items() if key not in _KEPT}
    return type("Parser", (base,), {"FUNCTIONS": functions})


MOST_CHARACTERS = 4_000_000
"""Characters of one batch, which are read in some seconds."""

MOST_TOKENS = 110_000
"""Words, constants and signs of one statement: some seconds of work."""

_CLOSING = frozenset("'\"`*$")  # a line without these ends no quotation or comment
_LONGEST_TEXT = 10_000  # characters searched for the end of a quotation, to name its line
_REMARK = re.compile(r"\s*(importance)\s*:\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, eq=False)
class Chunk:
    """One statement of a text."""

    line: int  # line, column: where its first word is, counted from 1
    column: int
    start: int  # where its first word begins, in characters
    text: str  # the statement, from its first word to its last
    comments: tuple[str, ...]
    tokens: list[Token] = field(repr=False)
    whole: str = field(repr=False)
    dialect: str | None = None  # the dialect that the batch declares, or None

    def alone(self) -> Chunk:
        """The statement without its tokens and the rest of the batch, which need much memory."""
        return replace(self, tokens=[], whole="")

    def read_as(self, dialect: str) -> Chunk:
        """The statement alone, in another dialect."""
        try:
            dialect_tokens = tokens(self.text, dialect)
        except SqlglotError:
            raise SqlError(f"it cannot be read as {dialect}", code="syntax") from None
        return replace(self, start=0, tokens=dialect_tokens, whole=self.text, dialect=dialect)

    @property
    def words(self) -> tuple[str, ...]:
        """The words and signs of the statement: the same for texts that mean the same."""
        return tuple(f"{token.token_type.name}:{token.text}" for token in self.tokens)

    @property
    def importance(self) -> float:
        """What the comment before the statement says; 1 where there is none."""
        for comment in self.comments:
            remark = _REMARK.fullmatch(comment)
            if remark:
                return self._number(remark[2])
        return 1.0

    def _number(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise SqlError(
                "the importance before this statement must be a number above 0, "
                f"such as 2 or 0.5, not {text!r}",
                code="importance",
                line=self.line,
                column=self.column,
            )
        return value


def split(text: str) -> list[Chunk]:
    r"""Cut a text at its semicolons.

    >>> [one.importance for one in split("SELECT 1;  -- importance: 9\n SELECT 2")]
    [1.0, 1.0]
    >>> [(one.line, one.importance) for one in split("-- importance: 3\nSELECT 1; SELECT 2")]
    [(2, 3.0), (2, 1.0)]
    """
    if len(text) > MOST_CHARACTERS:
        raise SqlError(
            f"a batch of {len(text):,} characters is not supported; write at most "
            f"{MOST_CHARACTERS:,}, and split it into several batches",
            code="size",
        )
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    dialect = declared(text)
    try:
        every = tokens(text, dialect or DUCKDB)
    except SqlglotError:
        raise SqlError(
            "a quotation or comment that starts here never ends; close it",
            code="syntax",
            line=_open_line(text, dialect or DUCKDB),
        ) from None
    chunks: list[Chunk] = []
    waiting: list[Token] = []
    for token in every:
        if token.token_type is not TokenType.SEMICOLON:
            waiting.append(token)
        elif waiting:
            chunks.append(_chunk(waiting, text, dialect))
            waiting = []
    return [*chunks, _chunk(waiting, text, dialect)] if waiting else chunks


def _chunk(words: list[Token], text: str, dialect: str | None) -> Chunk:
    first, last = words[0], words[-1]
    start, stop = first.start, last.end + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    comments = tuple(first.comments)
    chunk = Chunk(first.line, column, start, text[start:stop], comments, words, text, dialect)
    if len(words) > MOST_TOKENS:
        raise SqlError(
            f"a statement of {len(words):,} words and signs is not supported; "
            f"write at most {MOST_TOKENS:,}, such as BETWEEN for a list of numbers",
            code="size",
            line=chunk.line,
            column=column,
        )
    return chunk


def _open_line(text: str, dialect: str) -> int:
    """Find the line where a quotation or comment starts that is never closed."""
    start, waiting = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        still_open = waiting and not _CLOSING.intersection(line)
        waiting += line + "\n"
        if still_open:  # trying again would make long quotations quadratic
            continue
        try:
            tokens(waiting, dialect)
        except SqlglotError:
            if len(waiting) > _LONGEST_TEXT:
                break
        else:
            start, waiting = number + 1, ""
    return start


_MISSING = re.compile(r"Required keyword: .* missing for <class .*>")
_TOKEN = re.compile(r"Expected (.*) but got <Token .*", re.DOTALL)


def parsed(chunk: Chunk) -> Any:
    """Parse one statement."""
    tokens, dialect = chunk.tokens, chunk.dialect or DUCKDB
    kinds = {token.token_type for token in tokens}
    if tokens[0].token_type is TokenType.FROM and TokenType.SELECT not in kinds:
        # DuckDB reads a bare FROM as SELECT *, and the tree has no line for what nobody wrote.
        raise refuse("clause", "FROM without SELECT", AGGREGATES)
    for first_token, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        top = first_token.token_type is TokenType.SELECT and two.text.upper() == "TOP"
        if top and three.token_type is TokenType.NUMBER and dialect == DUCKDB:
            advice = f"write LIMIT {three.text} at the end"
            raise refuse("clause", f"TOP {three.text}", advice, at=two.start)
    if tokens[0].token_type is TokenType.PIVOT:
        tokens = _pivot_ended(tokens)
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


def _pivot_ended(words: list[Token]) -> list[Token]:
    """``PIVOT … ORDER BY a`` as ``SELECT * FROM (PIVOT …) ORDER BY a``, which sqlglot reads."""
    depth, ends = 0, {TokenType.ORDER_BY, TokenType.LIMIT}
    for number, word in enumerate(words):
        depth += (word.token_type is TokenType.L_PAREN) - (word.token_type is TokenType.R_PAREN)
        if not depth and word.token_type in ends:
            *before, after = tokens("SELECT * FROM ( )", DUCKDB)
            return [*before, *words[:number], after, *words[number:]]
    return words


_TEMPLATE = re.compile(r"\{\{|\{%")
_MACRO = re.compile(r"\$__\w|\$\{")
_RESERVED = frozenset(
    {"union", "order", "group", "end", "case", "limit", "table", "column", "user"}
)
"""Words that tables have as names of columns, and SQL as its own."""


def _syntax(error: ParseError, chunk: Chunk) -> SqlError:
    detail = error.errors[0] if error.errors else {}
    if _TEMPLATE.search(chunk.text):
        advice = "paste the compiled SQL, which dbt compile writes to target/compiled"
        return refuse("syntax", "a dbt template ({{ … }})", advice)
    what = str(detail.get("description") or "not understood").rstrip(".")
    if _MACRO.search(chunk.text):
        advice = "paste the SQL that the tool sends to the database"
        return refuse("syntax", "a macro ($__… or ${…})", advice)
    what = what.replace("Invalid expression / Unexpected token", "something is not expected")
    what = _TOKEN.sub(r"expected \1", _MISSING.sub("something is missing", what))
    near = str(detail.get("highlight") or "")
    location = f" near {near!r}" if near else ""
    before = str(detail.get("start_context") or "").split()[-1:]
    words = [word for word in (*before, near) if word.lower() in _RESERVED]
    hint = f'; write a column called {words[0]} as "{words[0]}"' if words else ""
    hint = '; write names in double quotes: "name"' if near == "[" else hint
    line, column = detail.get("line") or chunk.line, detail.get("col")
    sentence = f"cannot parse the SQL: {what}{location}{hint}"
    return SqlError(sentence, code="syntax", line=int(line), column=column, found=near)
