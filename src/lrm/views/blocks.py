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
    """A value of a table."""

    text: str
    note: str = ""  # what is shown after it in small letters, such as an error
    # How strong the ground is, from 0 to 1, where the table is a heat map.
    share: float | None = None
    # Four places from 0 to 1: zero, the value, and the ends of its interval.
    bar: tuple[float, float, float, float] | None = None
    value: float | None = None  # the number, for programs


@dataclass(frozen=True, slots=True)
class Heading:
    """A column of a table."""

    name: str  # what stands above it
    words: bool = False
    label: bool = False  # whether it names the row
    field: str = ""  # what a page that edits or sorts the table calls it


@dataclass(frozen=True)
class Table:
    """Rows below headings."""

    title: str  # what it shows; it may be empty
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]  # one cell per heading
    note: str = ""
    ours: str | None = None  # the first text of a row that is separated
    key: str = ""  # words by which a search finds all of its rows
    live: bool = False  # whether the script of a page sorts and edits it, and so needs its numbers
    panel: str = ""  # the part that it shows, where a statement has several tables
    error: str = ""  # how far off every number may be, where they are alike
    across: str = ""  # the column whose labels stand side by side

    def caption(self, heading: str = "") -> str:
        """The line above the table; its title is left out below a heading that says the same.

        >>> table = Table("visits by month", (), (), error="± 5 each", across="month")
        >>> table.caption(), table.caption("visits by month")
        ('visits by month, ± 5 each · month →', '± 5 each · month →')
        """
        title = "" if self.title == heading and not self.panel else self.title
        named = ", ".join(filter(None, (title, self.error)))
        arrow = f"{self.across} →" if self.across else ""
        return " · ".join(filter(None, (self.panel, named, arrow)))


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
    """Sentences: a paragraph each, the items of a list, warnings, notes, or a guarantee."""

    sentences: tuple[str, ...]
    kind: Literal["plain", "list", "warning", "note", "promise"] = "plain"  # how they are set
    file: str = ""  # a file next to the page that the last sentence ends with


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG, with the words for those who do not see it, and a caption."""

    svg: str
    words: str
    caption: str = ""


InlineKind = Literal["plain", "strong", "emphasis", "code", "link"]


@dataclass(frozen=True, slots=True)
class Inline:
    """A piece of a line of text."""

    text: str
    kind: InlineKind = "plain"
    target: str = ""  # the address of a link


RichKind = Literal["plain", "list", "numbered", "heading"]


@dataclass(frozen=True)
class Rich:
    """A paragraph of an author, the items of a list, or a small heading; of pieces each."""

    lines: tuple[tuple[Inline, ...], ...]
    kind: RichKind = "plain"


@dataclass(frozen=True)
class Fold:
    """Tables that a page shows when a reader asks for them."""

    summary: str
    tables: tuple[Table, ...]


Block = Table | Facts | Numbers | Prose | Figure | Rich | Fold


@dataclass(frozen=True)
class Document:
    """Blocks below a title, and further documents below them."""

    title: str
    blocks: tuple[Block, ...] = ()
    note: str = ""  # a few words next to the heading; of a page, the sentence below its title
    parts: tuple[Document, ...] = field(default=())
    # Whether a page shows the heading alone at first; None where it cannot be folded.
    folded: bool | None = None
    name: str = ""  # by which a link or a command finds it


def apart(*groups: Iterable[Block]) -> Document:
    """Groups of blocks with an empty line between them; those without blocks are left out."""
    first, *rest = [tuple(group) for group in groups if group] or [()]
    return Document("", first, parts=tuple(Document("", blocks) for blocks in rest))


def said(sentences: Iterable[str], kind: Literal["plain", "warning"] = "plain") -> list[Block]:
    """The sentences that are not empty; no block where there are none."""
    texts = tuple(filter(None, sentences))
    return [Prose(texts, kind)] if texts else []


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
