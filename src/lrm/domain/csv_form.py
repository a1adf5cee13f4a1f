"""The form of a table's CSV files: a public fact, declared and never guessed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass

from lrm.errors import DomainError

_ENCODINGS = (
    "utf-8",
    "ascii",
    *(f"iso8859-{part}" for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
    *(f"cp{page}" for page in (437, 850, 852, 858, 866, *range(1250, 1259))),
    "koi8-r",
    "koi8-u",
    "mac-roman",
)
"""Encodings in which each ASCII character is its own byte, and that byte nothing else.

Line ends and delimiters can then be found among bytes. In UTF-16 a letter may contain the byte
of a line feed, and in Shift-JIS the byte of a vertical bar.
"""


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How a line of a CSV file is cut into fields, and how its text and numbers are written.

    Parameters
    ----------
    delimiter
        The character between fields; None for a comma, or a tab in files called ``.tsv``.
    quote
        The character around fields that contain a delimiter, or None where there is none.
    encoding
        ``utf-8``, ``ascii``, or a single-byte encoding such as ``latin-1`` or ``cp1252``.
    decimal
        The decimal mark of numbers, ``.`` or ``,``.
    dates
        How dates are written, such as ``%d.%m.%Y``: day ``%d``, month ``%m`` and year ``%Y`` (four
        digits) or ``%y`` (two: 69 to 99 are 1969 to 1999), perhaps a time of ``%H``, ``%M`` and
        ``%S``, which only attributes of times read. None for ``2024-01-31``, or with a time.
    true, false
        How booleans are written, in either case; ``true``, ``t`` and ``false``, ``f`` where empty.

    Examples
    --------
    >>> CsvForm(delimiter=";", encoding="Latin-1", decimal=",")
    CsvForm(delimiter=';', quote='"', encoding='iso8859-1', decimal=',', dates=None, true=(), \
false=())
    >>> CsvForm(encoding="utf-16")
    Traceback (most recent call last):
    ...
    lrm.errors.DomainError: csv: encoding must be utf-8, ascii or a single-byte encoding such as \
latin-1 or cp1252, not 'utf-16'; convert the file to UTF-8
    """

    delimiter: str | None = None
    quote: str | None = '"'
    encoding: str = "utf-8"
    decimal: str = "."
    dates: str | None = None
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("delimiter", "quote"):
            value = getattr(self, key)
            if value is not None and not _is_mark(value):
                raise DomainError(
                    f"csv: {key} must be one ASCII character other than a letter, digit or line "
                    f"end, not {value!r}"
                )
        if self.decimal not in {".", ","}:
            raise DomainError(f"csv: decimal must be '.' or ',', not {self.decimal!r}")
        delimiters = {",", "\t"} if self.delimiter is None else {self.delimiter}
        if self.quote in {*delimiters, self.decimal}:
            raise DomainError(f"csv: quote must differ from delimiter and decimal: {self.quote!r}")
        if self.delimiter == self.decimal or (self.decimal == "," and self.delimiter is None):
            raise DomainError(
                "csv: delimiter and decimal must differ; with decimal ',' declare another delimiter"
            )
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.dates is not None:
            date_pattern(self.dates)
        object.__setattr__(self, "true", _texts("true", self.true))
        object.__setattr__(self, "false", _texts("false", self.false))
        both = set(self.true_texts).intersection(self.false_texts)
        if both:
            raise DomainError(f"csv: true and false are both written {min(both)!r}; declare both")

    @property
    def true_texts(self) -> tuple[str, ...]:
        """Texts that mean true, in lower case."""
        return self.true or ("true", "t")

    @property
    def false_texts(self) -> tuple[str, ...]:
        """Texts that mean false, in lower case."""
        return self.false or ("false", "f")

    @property
    def facts(self) -> dict[str, object]:
        """The form as fields of a domain file: ``none`` for no quote."""
        facts = {"delimiter": self.delimiter, "quote": self.quote or "none"}
        facts |= {"encoding": self.encoding, "decimal": self.decimal, "dates": self.dates}
        named = {key: value for key, value in facts.items() if value is not None}
        lists = {"true": self.true, "false": self.false}
        return named | {key: list(value) for key, value in lists.items() if value}

    def delimiter_of(self, file: str) -> str:
        """Return the delimiter of a file of this form: declared, or by the file's name."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if ".tsv" in file.rpartition("/")[2].lower() else ","


_DIRECTIVES = {"d": 2, "m": 2, "Y": 4, "y": 2, "H": 2, "M": 2, "S": 2}
"""Parts of dates by their letters, with their digits."""


def date_pattern(form: object) -> tuple[str, dict[str, int]]:
    r"""Return the regular expression of dates in a form, and the group of each part by its letter.

    One digit is enough for a day or month that no other part touches: ``3.5.2023``.

    >>> date_pattern("%d.%m.%Y")
    ('([0-9]{1,2})\\.([0-9]{1,2})\\.([0-9]{4})', {'d': 1, 'm': 2, 'Y': 3})
    """
    if not isinstance(form, str):
        raise _date_error(f"not {form!r}")
    pieces = re.findall(r"%.|[^%]|%$", form, re.DOTALL)
    groups: dict[str, int] = {}
    pattern = ""
    for place, piece in enumerate(pieces):
        if not piece.startswith("%"):
            if not (piece.isascii() and piece.isprintable()) or piece.isdigit():
                raise _date_error(f"and {form!r} contains {piece!r}")
            pattern += re.escape(piece)
            continue
        letter = piece[1:]
        if letter not in _DIRECTIVES or letter in groups:
            raise _date_error(f"and {form!r} has {piece!r}{' twice' if letter in groups else ''}")
        groups[letter] = len(groups) + 1
        beside = pieces[max(place - 1, 0) : place + 2]
        touching = sum(neighbour.startswith("%") for neighbour in beside) > 1
        digits = _DIRECTIVES[letter]
        loose = digits == 2 and letter != "y" and not touching
        pattern += f"([0-9]{{{'1,2' if loose else digits}}})"
    if not {"d", "m"} <= set(groups) or ("Y" in groups) == ("y" in groups):
        raise _date_error(f"not {form!r}")
    return pattern, groups


def _date_error(fault: str) -> DomainError:
    return DomainError(
        "csv: dates must be a form such as %d.%m.%Y, with %d, %m and one of %Y and %y, perhaps %H, "
        f"%M and %S, and signs or letters between them, {fault}; other dates need a view or a copy "
        "that writes them as 2024-01-31"
    )


def _texts(key: str, values: object) -> tuple[str, ...]:
    """Spellings of a boolean: without blanks around them, in lower case."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DomainError(f"csv: {key} must be a list of texts such as [ja, j], not {values!r}")
    texts = tuple(values)
    for text in texts:
        if not isinstance(text, str) or not text.strip() or not text.isprintable():
            raise DomainError(f"csv: {key} must be a list of texts such as [ja, j], not {text!r}")
    return tuple(dict.fromkeys(text.strip().lower() for text in texts))


def _is_mark(value: object) -> bool:
    return (
        isinstance(value, str)
        and len(value) == 1
        and value.isascii()
        and not value.isalnum()
        and value not in "\0\n\r"
    )


def _encoding(name: object) -> str:
    try:
        known = codecs.lookup(name).name  # type: ignore[arg-type]
    except (LookupError, TypeError, ValueError):
        known = ""
    if known not in _ENCODINGS:
        raise DomainError(
            "csv: encoding must be utf-8, ascii or a single-byte encoding such as latin-1 or "
            f"cp1252, not {name!r}; convert the file to UTF-8"
        )
    return known
