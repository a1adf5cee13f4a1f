"""What the comments before a statement say to readers: its title, and the size of its answers.

.. code-block:: sql

    -- Admissions by month
    -- expected: 500
    SELECT MONTH(admitted) AS month, COUNT(*) AS n FROM visits GROUP BY month;
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass

from lrm.errors import SqlWarning

__all__ = ["Remarks", "remarks_before"]

MOST_TITLE = 200
"""Characters of a title."""

_DIRECTIVE = re.compile(r"(importance|dialect|expected(?: size)?)\s*:\s*(.*)", re.IGNORECASE)
_CODE = re.compile(r"(select|with|from|where|group|order)\b.*", re.IGNORECASE | re.DOTALL)
_RULE = re.compile(r"[-=*#~_\s]*")


@dataclass(frozen=True)
class Remarks:
    """The title of a statement, empty where no comment gives one, and its expected size."""

    title: str = ""
    expected: float | None = None


def remarks_before(text: str, start: int) -> Remarks:
    r"""Read the comment lines directly above position ``start``, where a statement begins.

    A blank line ends them: what stands above it is about the file. Lines that look like SQL, which
    somebody has taken out, are no title.

    >>> remarks_before("-- a file\n\n-- Visits\n-- expected: 500\nSELECT 1", 38)
    Remarks(title='Visits', expected=500.0)
    """
    lines = _comment_lines(text[:start])
    directives = [_DIRECTIVE.fullmatch(line) for line in lines]
    sizes = [
        remark[2] for remark in directives if remark and remark[1].lower().startswith("expected")
    ]
    words = [
        line
        for line, directive in zip(lines, directives, strict=True)
        if not (directive or _CODE.fullmatch(line) or _RULE.fullmatch(line))
    ]
    title = " ".join(" ".join(words).split()).strip(" -=*#").removesuffix(".")
    if len(title) > MOST_TITLE:
        title = title[: MOST_TITLE - 1].rsplit(" ", 1)[0] + "…"
    return Remarks(title, _size(sizes[-1]) if sizes else None)


def _comment_lines(above: str) -> list[str]:
    """The comment that ends where a statement begins, line by line."""
    lines = above.split("\n")
    if lines.pop().strip():
        return []  # something else stands on the line of the statement
    comment_lines: list[str] = []
    inside = False
    for line in reversed(lines):
        plain = line.strip()
        if inside or plain.endswith("*/"):
            inside = "/*" not in plain
            if not inside and plain.partition("/*")[0]:
                break  # the comment ends a line of an earlier statement
            comment_lines.append(plain.removesuffix("*/").removeprefix("/*").strip(" *"))
        elif plain.startswith("--"):
            comment_lines.append(plain.lstrip("-").strip())
        else:
            break
    return comment_lines[::-1]


def _size(text: str) -> float | None:
    try:
        size = float(text.strip().replace(",", ""))
    except ValueError:
        size = math.nan
    if 0 < size < math.inf:
        return size
    warnings.warn(
        f"the expected size before a statement must be a number above 0, not {text!r}; "
        "it is left out",
        SqlWarning,
        stacklevel=2,
    )
    return None
