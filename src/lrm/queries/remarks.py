"""What the comments before a statement say of it: title, size of its answers, tolerances.

.. code-block:: sql

    -- Admissions by month
    -- expected: 500
    -- within: 5 %
    SELECT MONTH(admitted) AS month, COUNT(*) AS n FROM visits GROUP BY month;
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from lrm.errors import WorkloadError

MOST_TITLE = 200
"""Characters of a title."""

LEAST_TOLERANCE, MOST_TOLERANCE = 1e-12, 1e18
"""What answers may be asked to be within."""

_DIRECTIVE = re.compile(
    r"(importance|dialect|expected(?: size)?|within(?:\s+(?P<name>[^\s:]+))?)\s*:\s*(?P<value>.*)",
    re.IGNORECASE,
)
_TOLERANCE = re.compile(
    r"(?P<number>[\d.,eE+-]+)\s*(?:(?P<share>%)\s*(?:of\s+(?P<size>[\d.,eE+-]+))?)?"
)
_NO_COLON = re.compile(rf"(importance|expected|within)\s+{_TOLERANCE.pattern}", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
"""Numbers with a comma before each three digits: any other comma may be a decimal one."""
_CODE = re.compile(r"(select|with|from|where|group|order)\b.*", re.IGNORECASE | re.DOTALL)
_RULE = re.compile(r"[-=*#~_\s]*")


@dataclass(frozen=True)
class Remarks:
    """What the comments before a statement state."""

    title: str = ""  # empty where no comment gives one
    expected: float | None = None  # the size of a usual answer
    # Tolerances as they are written, by the name of an answer; ``""`` for all others.
    within: tuple[tuple[str, str], ...] = ()
    doubts: tuple[str, ...] = ()  # warnings about comments that state nothing


def remarks_before(text: str, start: int) -> Remarks:
    r"""Read the comment lines directly above position ``start``, where a statement begins.

    A blank line ends them: what stands above it is about the file. Lines that look like SQL, which
    somebody has taken out, are no title.

    >>> remarks_before("-- a file\n\n-- Visits\n-- expected: 500\nSELECT 1", 38)
    Remarks(title='Visits', expected=500.0, within=(), doubts=())
    """
    lines = _comment_lines(text[:start])
    directives = [_DIRECTIVE.fullmatch(line) for line in lines]
    values = [(remark[1].lower(), remark) for remark in directives if remark]
    sizes = [remark["value"] for word, remark in values if word.startswith("expected")]
    within = [
        (remark["name"] or "", remark["value"]) for word, remark in values if word[:6] == "within"
    ]
    doubts = [
        f"the comment {line!r} is a title; write a colon, as in `-- {line.replace(' ', ': ', 1)}`"
        for line in lines
        if _NO_COLON.fullmatch(line)
    ]
    expected = _size(sizes[-1]) if sizes else None
    if sizes and expected is None:
        doubts.append(
            f"the expected size before a statement must be a number above 0, not {sizes[-1]!r}; "
            "it is left out"
        )
    words = [
        line
        for line, directive in zip(lines, directives, strict=True)
        if not (directive or _CODE.fullmatch(line) or _RULE.fullmatch(line))
    ]
    title = " ".join(" ".join(words).split()).strip(" -=*#").removesuffix(".")
    if len(title) > MOST_TITLE:
        title = title[: MOST_TITLE - 1].rsplit(" ", 1)[0] + "…"
    return Remarks(title, expected, tuple(within), tuple(doubts))


def tolerance(text: str, expected: float | None) -> float:
    """Read how near answers must be: a number, or a share of a number or of the expected size.

    Rates and averages have no expected size: it is None for them.

    >>> tolerance("50", None), tolerance("5 % of 20,000", None), tolerance("5%", 400.0)
    (50.0, 1000.0, 20.0)
    """
    parts = _TOLERANCE.fullmatch(text.strip())
    if parts is not None and parts["share"] and not parts["size"] and expected is None:
        raise WorkloadError(
            f"{text.strip()!r} of what? write a size, as in '5 % of 20000'; for counts and sums it "
            "may be stated by `-- expected: 20000`"
        )
    try:
        value = 0.0 if parts is None else max(0.0, _number(parts["number"]))
        if parts is not None and parts["share"]:
            value *= (_number(parts["size"]) if parts["size"] else expected or 0.0) / 100
    except ValueError:
        value = 0.0
    if not LEAST_TOLERANCE <= value <= MOST_TOLERANCE:
        raise WorkloadError(
            f"a tolerance must be a number above 0, such as 50 or '5 % of 20000', not {text!r}"
        )
    return value


def _number(text: str) -> float:
    return float(text.replace(",", "") if _GROUPED.fullmatch(text) else text)


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
        size = _number(text.strip())
    except ValueError:
        size = math.nan
    return size if 0 < size < math.inf else None
