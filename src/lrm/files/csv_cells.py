"""The one writer of CSV: RFC 4180, with text that no spreadsheet takes for a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
"""What a spreadsheet may run as a formula, behind any number of apostrophes."""

_SPECIAL = re.compile(r'[",\r\n]')

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(\.\.[+-]?\d+)?", re.ASCII)
"""A number or a range of integers (``-9..-5``): no spreadsheet runs those."""


def csv_text(text: str) -> str:
    """Return ``text`` as a CSV cell that no spreadsheet takes for a formula.

    The convention is OWASP's ("CSV injection"): an apostrophe before ``=``, ``+``, ``-``, ``@``,
    a tab or a line break. A text that begins so behind apostrophes of its own gets one more, so
    that taking one away always gives the text back. Numbers stay as they are.

    >>> csv_text("=HYPERLINK(A1)"), csv_text("'=1"), csv_text("-9..-5"), csv_text("it's")
    ("'=HYPERLINK(A1)", "''=1", '-9..-5', "it's")
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def csv_document(rows: Iterable[Iterable[str | float]]) -> str:
    r"""Return rows as CSV: text passes `csv_text`, numbers are written as Python does.

    >>> csv_document([["name", "n"], ["a, b", 0.5], ["=1", 2]])
    'name,n\n"a, b",0.5\n\'=1,2\n'
    """
    return "".join(",".join(map(csv_cell, row)) + "\n" for row in rows)


def csv_cell(value: str | float) -> str:
    """Return one cell as it stands in a file."""
    if not isinstance(value, str):
        return repr(value)
    text = csv_text(value)
    # A carriage return alone ends a line to many readers; csv.writer leaves it bare.
    return '"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text
