"""What commands read (files, families, or ``-`` for standard input), and where they write."""

import glob
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrm.errors import FileFormatError, UsageError
from lrm.files.reading import TEXT_LIMIT
from lrm.files.writing import check_target

if TYPE_CHECKING:
    from lrm.domain.people import Declared
    from lrm.queries.workload import Workload

STANDARD_INPUT = "standard input"


def check_read_once(*places: str | None) -> None:
    """Refuse more than one ``-``."""
    if places.count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once; give the other as a file")


def read_standard_input() -> str:
    """All of standard input, in UTF-8, up to the size of a text file."""
    data = sys.stdin.buffer.read(TEXT_LIMIT + 1)
    if len(data) > TEXT_LIMIT:
        raise FileFormatError(f"{STANDARD_INPUT} has more than {TEXT_LIMIT >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(f"{STANDARD_INPUT} is not text in UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_questions(source: str, domain: str | None, edition: str | None = None) -> "Workload":
    """Read a batch of queries, over the domain of an edition where one is given.

    With a matrix or a family, the domain says what the cells are, so that a table can be counted.
    """
    check_read_once(source, domain)
    declared = None if domain is None else read_declared(domain)
    if edition is not None:
        if declared is None:
            raise UsageError("--edition is about a domain; give it with --domain")
        declared = declared.at(edition)
    return read_queries(source, declared)


def read_queries(source: str, domain: "Declared | None") -> "Workload":
    """Read a batch of queries over a domain that is known already."""
    from lrm.queries.files import parse_questions, read_batch

    if source == "-":
        return parse_questions(read_standard_input(), domain, STANDARD_INPUT)
    return read_batch(source, domain)


def read_declared(source: str) -> "Declared":
    """Read a domain file, or standard input."""
    from lrm.domain.file import parse_declared, read_domain

    if source == "-":
        return parse_declared(read_standard_input(), STANDARD_INPUT)
    return read_domain(source)


def check_output(path: str | None, *, force: bool = True, kinds: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written, so that no work or privacy is lost on it.

    ``kinds`` are the endings that the name may have.
    """
    if path is None:
        return
    place = Path(path)
    if kinds and place.suffix.lower() not in kinds:
        raise UsageError(f"expected a file ending in {' or '.join(kinds)}, not {path!r}")
    check_target(path)
    if place.exists() and not force:
        raise UsageError(f"{path} exists already; choose another name, or add --force")


def check_apart(outputs: dict[str, str | None], inputs: dict[str, str | None]) -> None:
    """Refuse an output that would replace an input or another output."""
    seen = {os.path.realpath(path): what for what, path in inputs.items() if path is not None}
    for what, path in outputs.items():
        if path is None:
            continue
        other = seen.setdefault(os.path.realpath(path), what)
        if other != what:
            raise UsageError(f"{what} and {other} name the same file, {path}; give each its own")


def check_tables(outputs: dict[str, str | None], tables: Iterable[str]) -> None:
    """Refuse an output that would replace a file of a table, hold one, or be among them."""
    for table in tables:
        for place in map(Path, map(os.path.realpath, _files_of(table))):
            for what, path in outputs.items():
                if path is None:
                    continue
                written = Path(os.path.realpath(path))
                if written == place or place in written.parents or written in place.parents:
                    raise UsageError(
                        f"{what} and --table {table} name the same file, or one is in the other's "
                        f"folder: {path}; give each its own"
                    )


def _files_of(table: str) -> list[str]:
    """The files or folders of ``[NAME=]TABLE``; none of what is no file."""
    place = table.partition("::")[0]
    name, _, named = place.partition("=")
    places = [place, named] if name.isidentifier() and named else [place]
    return [found for each in places for found in glob.glob(each, recursive=True)]  # noqa: PTH207
