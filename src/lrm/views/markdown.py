"""Documents as Markdown, with the tables that GitHub and most converters read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrm.files.spelling import visible
from lrm.views.blocks import (
    Block,
    Cell,
    Document,
    Facts,
    Fold,
    Inline,
    Numbers,
    Prose,
    Rich,
    Table,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")


def to_markdown(document: Document, level: int = 1) -> str:
    """The whole document; drawings are left out.

    >>> print(to_markdown(Document("Visits", (Prose(("All of them.",)),))), end="")
    # Visits
    <BLANKLINE>
    All of them.
    """
    return "\n\n".join(part for part in _parts(document, level) if part) + "\n"


def _parts(document: Document, level: int) -> Iterator[str]:
    if document.title:
        yield f"{'#' * min(level, 6)} {_text(document.title)}"
    if document.note:
        yield _text(document.note)
    for block in document.blocks:
        yield _block(block, document.title)
    for part in document.parts:
        yield from _parts(part, level + 1 if document.title else level)


def _block(block: Block, heading: str = "") -> str:
    if isinstance(block, Fold):
        return "\n\n".join(map(_table, block.tables))
    if isinstance(block, Rich):
        return _rich(block)
    return _table(block, heading) if isinstance(block, Table) else _plain(block)


def _rich(block: Rich) -> str:
    mark = {"list": "- ", "numbered": "1. ", "heading": "### "}.get(block.kind, "")
    return "\n".join(mark + "".join(map(_inline, line)) for line in block.lines)


def _plain(block: Block) -> str:
    if isinstance(block, Numbers):
        return "\n".join(f"- {_text(a)}: {_text(b)} ({_text(c)})" for a, b, c in block.entries)
    if isinstance(block, Facts):
        return "\n".join(f"- {_text(a)}: {_text(b)}" for a, b in block.pairs)
    if isinstance(block, Prose):
        sentences = [*map(_text, block.sentences), *([_text(block.file)] if block.file else [])]
        if block.kind == "list":
            return "\n".join(f"- {sentence}" for sentence in sentences)
        mark = "**Warning:** " if block.kind == "warning" else ""
        return "\n\n".join(mark + sentence for sentence in sentences)
    return ""


def _inline(piece: Inline) -> str:
    text = _text(piece.text)
    marks = {"strong": f"**{text}**", "emphasis": f"*{text}*", "code": f"`{piece.text}`"}
    link = f"[{text}]({piece.target})"
    return link if piece.kind == "link" else marks.get(piece.kind, text)


def _table(table: Table, heading: str = "") -> str:
    heads = " | ".join(_text(heading.name) for heading in table.headings)
    rules = " | ".join(
        "---" if heading.words or heading.label else "--:" for heading in table.headings
    )
    rows = "".join(f"\n| {' | '.join(map(_cell, row))} |" for row in table.rows)
    caption = table.caption(heading)
    title = f"**{_text(caption)}**\n\n" if caption else ""
    note = f"\n\n{_text(table.note)}" if table.note else ""
    return f"{title}| {heads} |\n| {rules} |{rows}{note}"


def _cell(cell: Cell) -> str:
    return " ".join(_text(part) for part in (cell.text, cell.note) if part)


def _text(value: str) -> str:
    """Text in which no character is a mark of Markdown or of HTML."""
    return _SPECIAL.sub(r"\\\1", visible(value)).replace("&", "&amp;")
