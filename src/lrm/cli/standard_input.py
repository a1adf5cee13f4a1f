"""``-`` in place of a file: standard input, read as text, once."""

import sys

import click

__all__ = ["STANDARD_INPUT", "check_read_once", "read_standard_input"]

STANDARD_INPUT = "standard input"


def check_read_once(*places: str | None) -> None:
    """Refuse more than one ``-``."""
    if places.count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once; give the other as a file")


def read_standard_input() -> str:
    """All of standard input, in UTF-8, up to the size of a text file."""
    from lrm.errors import FileFormatError
    from lrm.files.reading import TEXT_LIMIT

    data = sys.stdin.buffer.read(TEXT_LIMIT + 1)
    if len(data) > TEXT_LIMIT:
        raise FileFormatError(f"{STANDARD_INPUT} has more than {TEXT_LIMIT >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(f"{STANDARD_INPUT} is not text in UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
