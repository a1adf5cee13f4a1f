"""How much the error of a statement counts for, as a comment before the statement says.

.. code-block:: sql

    -- importance: 4
    SELECT COUNT(*) AS n FROM visits;
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lrm.errors import SqlError, WorkloadError

if TYPE_CHECKING:
    from sqlglot import Token

    from lrm.workload import Workload

__all__ = ["Chunk", "chunks", "weigh_statements"]

_REMARK = re.compile(r"\s*(importance)\s*:\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Chunk:
    """One statement of a text: its place in it, its comments, and its tokens without them."""

    line: int
    start: int
    stop: int
    comments: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def importance(self) -> float:
        """What the comment before the statement says; 1 where there is none."""
        for comment in self.comments:
            remark = _REMARK.fullmatch(comment)
            if remark:
                return _number(remark[2], self.line)
        return 1.0


def _number(text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise SqlError(
            f"line {line}: the importance before this statement must be a number above 0, "
            f"such as 2 or 0.5, not {text!r}"
        )
    return value


def chunks(text: str) -> list[Chunk]:
    r"""Cut a text at its semicolons.

    >>> [one.importance for one in chunks("SELECT 1;  -- importance: 9\n SELECT 2")]
    [1.0, 1.0]
    >>> [one.importance for one in chunks("-- importance: 3\nSELECT 1; SELECT 2")]
    [3.0, 1.0]
    """
    import sqlglot  # noqa: PLC0415 - it takes a tenth of a second
    from sqlglot import TokenType  # noqa: PLC0415

    from lrm.batches.compiler.spellings import Spoken  # noqa: PLC0415

    found: list[Chunk] = []
    waiting: list[Token] = []
    for token in sqlglot.tokenize(text, read=Spoken):
        if token.token_type is not TokenType.SEMICOLON:
            waiting.append(token)
        elif waiting:
            found.append(_chunk(waiting))
            waiting = []
    return [*found, _chunk(waiting)] if waiting else found


def _chunk(tokens: list[Token]) -> Chunk:
    first, last = tokens[0], tokens[-1]
    words = tuple(f"{token.token_type.name}:{token.text}" for token in tokens)
    return Chunk(first.line, first.start, last.end + 1, tuple(first.comments), words)


def weigh_statements(batch: Workload, text: str) -> Workload:
    """Give each answer the importance of its statement."""
    from lrm.workload.label_parts import Grouped  # noqa: PLC0415 - only where it is needed
    from lrm.workload.products import MOST_IMPORTANCES  # noqa: PLC0415 - same

    if "importance" not in text.lower():
        return batch
    cut = chunks(text)
    values = [chunk.importance for chunk in cut]
    if all(value == 1 for value in values):
        return batch
    if batch.shape[0] > MOST_IMPORTANCES:
        raise WorkloadError(
            f"at most {MOST_IMPORTANCES:,} queries may have an importance, "
            f"but the batch has {batch.shape[0]:,}"
        )
    lines = [chunk.line for chunk in cut]
    for one, other in pairwise(cut):
        if one.line == other.line and one.importance != other.importance:
            raise SqlError(
                f"line {one.line}: two statements share this line, and the comment before it says "
                "the importance of one; begin each statement on a line of its own"
            )

    def of(line: int | None) -> float:
        return values[max(0, bisect_right(lines, line or 0) - 1)]

    parts = []
    for part in batch.labels.parts:
        hidden = isinstance(part, Grouped) and part.hidden  # as important as what needs it
        parts.append(np.full(len(part), 0.0 if hidden else of(getattr(part, "line", 0))))
    importance = np.concatenate(parts)
    for answer in batch.derived:
        for rows in answer.input_rows():
            importance[rows] = np.maximum(importance[rows], of(answer.label.line))
    importance[importance == 0.0] = 1.0  # sums of NULL beside running totals: nobody needs them
    return replace(batch, importance=importance)
