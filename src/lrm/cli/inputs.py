"""What commands read: queries and domains from a file, a family, or ``-`` for standard input."""

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.workload import Workload

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


def read_questions(source: str, domain: str | None) -> "Workload":
    """Read a batch of queries.

    Parameters
    ----------
    source
        What ``lrm.read_batch`` takes, or ``-``.
    domain
        The domain file, or ``-``. With a matrix or a family it says what the cells are, so that
        a table can be counted for the plan.
    """
    check_read_once(source, domain)
    return read_queries(source, None if domain is None else read_declared(domain))


def read_queries(source: str, domain: "Domain | None") -> "Workload":
    """Read a batch of queries over a domain that is known already."""
    from lrm.batches import parse_questions, read_batch

    if source == "-":
        return parse_questions(read_standard_input(), domain, STANDARD_INPUT)
    return read_batch(source, domain)


def read_declared(source: str) -> "Domain":
    """Read a domain file, or standard input."""
    from lrm.domain.file import parse_domain, read_domain

    if source == "-":
        return parse_domain(read_standard_input(), STANDARD_INPUT)
    return read_domain(source)
