r"""One splitter: the text of a batch → its statements, with their places, tokens and comments.

A comment before a statement may say how much its error counts for:

.. code-block:: sql

    -- importance: 4
    SELECT COUNT(*) AS n FROM visits;
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import TokenType
from sqlglot.errors import SqlglotError

from lrm.batches.sql.dialect import DUCKDB, declared, tokens
from lrm.errors import SqlError

if TYPE_CHECKING:
    from sqlglot import Token

__all__ = ["Chunk", "split"]

MOST_CHARACTERS = 4_000_000
"""Characters of one batch, which are read in some seconds."""

MOST_TOKENS = 110_000
"""Words, constants and signs of one statement: some seconds of work."""

_CLOSING = frozenset("'\"`*$")  # a line without these ends no quotation or comment
_LONGEST_TEXT = 10_000  # characters searched for the end of a quotation, to name its line
_REMARK = re.compile(r"\s*(importance)\s*:\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, eq=False)
class Chunk:
    """One statement of a text.

    Parameters
    ----------
    line, column
        Where its first word is, counted from 1.
    start, stop
        Where its first word begins and its last one ends, in characters.
    text
        The statement, from its first word to its last.
    comments
        The comments before it.
    whole
        The whole batch.
    dialect
        The dialect that the batch declares, or None.
    """

    line: int
    column: int
    start: int
    stop: int
    text: str
    comments: tuple[str, ...]
    tokens: list[Token] = field(repr=False)
    whole: str = field(repr=False)
    dialect: str | None = None

    def alone(self) -> Chunk:
        """The statement without its tokens and the rest of the batch, which need much memory."""
        return replace(self, tokens=[], whole="")

    def read_as(self, dialect: str) -> Chunk:
        """The statement alone, in another dialect."""
        try:
            found = tokens(self.text, dialect)
        except SqlglotError:
            raise SqlError(f"it cannot be read as {dialect}", code="syntax") from None
        stop = len(self.text)
        return replace(self, start=0, stop=stop, tokens=found, whole=self.text, dialect=dialect)

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
    found: list[Chunk] = []
    waiting: list[Token] = []
    for token in every:
        if token.token_type is not TokenType.SEMICOLON:
            waiting.append(token)
        elif waiting:
            found.append(_chunk(waiting, text, dialect))
            waiting = []
    return [*found, _chunk(waiting, text, dialect)] if waiting else found


def _chunk(words: list[Token], text: str, dialect: str | None) -> Chunk:
    first, last = words[0], words[-1]
    start, stop = first.start, last.end + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    comments = tuple(first.comments)
    own = text[start:stop]
    chunk = Chunk(first.line, column, start, stop, own, comments, words, text, dialect)
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
