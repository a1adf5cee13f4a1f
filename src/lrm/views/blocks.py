"""What a view consists of: a document of sections, each of a few kinds of blocks.

A record is turned into a document once; `lrm.views.text`, `lrm.views.elements` and `to_json` lay
the same blocks out for a terminal, a page or a program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Block", "Cell", "Document", "Facts", "Figure", "Heading", "Prose", "Table", "to_json"]


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
class Prose:
    """Sentences: a paragraph each, the items of a list, or warnings."""

    sentences: tuple[str, ...]
    kind: Literal["plain", "list", "warning"] = "plain"


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG, with the words for those who do not see it, and a caption."""

    svg: str
    words: str
    caption: str = ""


Block = Table | Facts | Prose | Figure


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
        A few words next to the heading.
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


def plain_table(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    words: Iterable[str] = (),
) -> Table:
    """A table of texts: the first column names the rows, columns in ``words`` hold text."""
    wordy = set(words)
    names = list(columns)
    headings = tuple(
        Heading(name, name in wordy or i == 0, label=i == 0) for i, name in enumerate(names)
    )
    return Table(title, headings, tuple(tuple(map(Cell, row)) for row in rows))


def to_json(document: Document) -> dict[str, Any]:
    """A document as values that JSON can hold."""
    return {
        "title": document.title,
        "note": document.note,
        "blocks": [_block_json(block) for block in document.blocks],
        "parts": [to_json(part) for part in document.parts],
    }


def _block_json(block: Block) -> dict[str, Any]:
    if isinstance(block, Table):
        return {
            "table": block.title,
            "columns": [element.name for element in block.headings],
            "rows": [
                [element.text if element.value is None else element.value for element in row]
                for row in block.rows
            ],
            "note": block.note,
        }
    if isinstance(block, Facts):
        return {"facts": [list(pair) for pair in block.pairs]}
    if isinstance(block, Prose):
        return {"prose": list(block.sentences), "kind": block.kind}
    return {"figure": block.words, "caption": block.caption}
