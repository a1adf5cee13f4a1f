"""The form of a table's CSV files: a public fact, declared and never guessed."""

from __future__ import annotations

import codecs
from dataclasses import asdict, dataclass

from lrm.errors import DomainError

__all__ = ["CsvForm"]

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

    Examples
    --------
    >>> CsvForm(delimiter=";", encoding="Latin-1", decimal=",")
    CsvForm(delimiter=';', quote='"', encoding='iso8859-1', decimal=',')
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

    @property
    def facts(self) -> dict[str, str]:
        """What a domain file says, as its fields: ``none`` for no quote."""
        facts = {**asdict(self), "quote": self.quote or "none"}
        return {key: value for key, value in facts.items() if value is not None}

    def delimiter_of(self, file: str) -> str:
        """Return the delimiter of a file of this form: declared, or by the file's name."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if ".tsv" in file.rpartition("/")[2].lower() else ","


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
