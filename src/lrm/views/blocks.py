"""What a view consists of: a document of sections, each of a few kinds of blocks.

A record is turned into a document once; `lrm.views.text` lays its blocks out for a terminal, and
`lrm.views.html` for a page. Programs get the facts of the record, whose numbers are not rounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a table.

    Parameters
    ----------
    text
        What is shown.
    note
        What is shown after it in small letters, such as an error.
    share
        How strong the ground is, from 0 to 1, where the table is a heat map.
    bar
        Four places from 0 to 1: zero, the value, and the ends of its interval.
    value
        The number, for programs.
    """

    text: str
    note: str = ""
    share: float | None = None
    bar: tuple[float, float, float, float] | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Heading:
    """A column of a table.

    Parameters
    ----------
    name
        What stands above it.
    words
        Whether it holds words.
    label
        Whether it names the row.
    field
        What a page that edits or sorts the table calls it.
    """

    name: str
    words: bool = False
    label: bool = False
    field: str = ""


@dataclass(frozen=True)
class Table:
    """Rows below headings.

    Parameters
    ----------
    title
        What it shows; it may be empty.
    headings
        Its columns.
    rows
        One cell per heading.
    note
        A line below it.
    ours
        The first text of a row that is separated.
    key
        Words by which a search finds all of its rows.
    live
        Whether the script of a page sorts and edits it, and so needs its numbers.
    """

    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    ours: str | None = None
    key: str = ""
    live: bool = False


@dataclass(frozen=True)
class Facts:
    """Names and values; an empty name continues the line above."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Numbers:
    """The few numbers that matter most: name, value, and a note to each."""

    entries: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Prose:
    """Sentences: a paragraph each, the items of a list, warnings, notes, or a guarantee.

    Parameters
    ----------
    sentences
        In order.
    kind
        How they are set.
    file
        A file next to the page that the last sentence ends with.
    """

    sentences: tuple[str, ...]
    kind: Literal["plain", "list", "warning", "note", "promise"] = "plain"
    file: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG, with the words for those who do not see it, and a caption."""

    svg: str
    words: str
    caption: str = ""


Block = Table | Facts | Numbers | Prose | Figure


@dataclass(frozen=True)
class Document:
    """Blocks below a title, and further documents below them.

    Parameters
    ----------
    title
        Its heading.
    blocks
        Its contents.
    note
        A few words next to the heading; of a page, the sentence below its title.
    parts
        Sections below it.
    folded
        Whether a page shows the heading alone at first; None where it cannot be folded.
    name
        By which a link or a command finds it.
    """

    title: str
    blocks: tuple[Block, ...] = ()
    note: str = ""
    parts: tuple[Document, ...] = field(default=())
    folded: bool | None = None
    name: str = ""


def plain_table(  # noqa: PLR0913 - what a table is made of
    title: str,
    columns: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    words: Iterable[str] = (),
    note: str = "",
    ours: str | None = None,
) -> Table:
    """A table of texts: the first column names the rows, columns in ``words`` hold text."""
    wordy = set(words)
    names = list(columns)
    headings = tuple(
        Heading(name, name in wordy or i == 0, label=i == 0) for i, name in enumerate(names)
    )
    return Table(title, headings, tuple(tuple(map(Cell, row)) for row in rows), note, ours)
