"""The one writer of CSV: RFC 4180, with text that no spreadsheet takes for a formula."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lrm.errors import UsageError

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


def csv_cell(value: str | float, separator: str = ",") -> str:
    """Return one cell as it stands in a file whose cells are separated by ``separator``."""
    if not isinstance(value, str):
        return repr(value)
    text = csv_text(value)
    # A carriage return alone ends a line to many readers; csv.writer leaves it bare.
    special = _SPECIAL.search(text) or separator in text
    return '"' + text.replace('"', '""') + '"' if special else text


NARROW = "\u202f"
"""The space between thousands where readers see it: it is narrow, and no line breaks there."""

DECIMALS = {"point": ".", "comma": ","}
"""What may stand before decimals, by name."""

THOUSANDS = {"none": "", "comma": ",", "point": ".", "space": " ", "apostrophe": "'"}
"""What may separate thousands, by name."""


@dataclass(frozen=True)
class NumberStyle:
    """How numbers are spelt in a CSV file, or on a page.

    A file with a decimal comma has semicolons between its cells, as spreadsheets expect.

    >>> NumberStyle(",", ".").number("-1234567.25"), NumberStyle(thousands=",").number("12345")
    ('-1.234.567,25', '"12,345"')
    >>> NumberStyle(",").number("1e-05"), NumberStyle().number("0.5")
    ('1e-05', '0.5')
    """

    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in {".", ","}:
            raise UsageError(f"decimal must be '.' or ',', not {self.decimal!r}")
        if self.thousands not in THOUSANDS.values() or self.thousands == self.decimal:
            listed = ", ".join(map(repr, THOUSANDS.values()))
            raise UsageError(
                f"thousands must be one of {listed}, other than the decimal {self.decimal!r}; "
                f"not {self.thousands!r}"
            )

    @property
    def separator(self) -> str:
        """What stands between cells."""
        return ";" if self.decimal == "," else ","

    def shown(self, text: str) -> str:
        """A number as readers see it, from one with commas between thousands and a point.

        >>> NumberStyle(",", ".").shown("1,234.5"), NumberStyle(".", "").shown("-1,234.5")
        ('1.234,5', '-1234.5')
        """
        thousands = NARROW if self.thousands == " " else self.thousands
        return text.translate({ord(","): thousands, ord("."): self.decimal})

    @property
    def is_plain(self) -> bool:
        """Whether numbers are spelt as Python spells them."""
        return self == NumberStyle()

    def number(self, text: str) -> str:
        """A number as a cell, from Python's spelling of it."""
        digits, point, fraction = text.partition(".")
        if self.thousands and digits.removeprefix("-").isdecimal():
            digits = f"{int(digits):,}".replace(",", self.thousands)
            digits = f"-{digits}" if text.startswith("-0") else digits
        cell = digits + (self.decimal if point else "") + fraction
        return f'"{cell}"' if self.separator in cell else cell


READABLE = NumberStyle(thousands=",")
"""How numbers are spelt where nobody says otherwise: 1,234.5."""
