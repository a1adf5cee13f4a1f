"""The few elements of a page. Whatever comes in as text is escaped here, and only here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape

from lrm.spelling import visible
from lrm.views.blocks import Block, Cell, Document, Facts, Figure, Table, plain_table
from lrm.views.style import HEATS

__all__ = [
    "Markup",
    "contents",
    "details",
    "facts",
    "figure",
    "image",
    "items",
    "key_numbers",
    "paragraph",
    "promise",
    "render_block",
    "render_part",
    "render_table",
    "search_box",
    "section",
    "small",
    "table",
    "text",
    "warning",
]


SHORT = 16
"""Characters of a name that is not broken into lines on a narrow page."""


LONG = ' class="words"'
"""Marks a value that is a sentence rather than a number."""


class Markup(str):
    """Text that is HTML already; every other text is escaped.

    >>> text("a < b"), text(Markup("<b>a</b>"))
    ('a &lt; b', '<b>a</b>')
    """

    __slots__ = ()


def text(value: str) -> Markup:
    """Escape, and make control characters visible, unless it is markup."""
    return value if isinstance(value, Markup) else Markup(escape(visible(value, lines=True)))


def attribute(value: str) -> str:
    """Escape the value of an attribute, and make control characters visible."""
    return escape(visible(value))


def paragraph(content: str, kind: str = "") -> Markup:
    """A paragraph, of class ``kind`` where one is given."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return Markup(f"{opening}{text(content)}</p>")


def section(title: str, *parts: Markup) -> Markup:
    """A section with its heading."""
    name = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
    body = "\n".join(part for part in parts if part)
    return Markup(
        f'<section aria-labelledby="{escape(name)}">\n<h2 id="{escape(name)}">{text(title)}</h2>\n'
        f"{body}\n</section>"
    )


def items(sentences: Iterable[str]) -> Markup:
    """A list of sentences."""
    return Markup(
        "<ul>" + "".join(f"<li>{text(sentence)}</li>" for sentence in sentences) + "</ul>"
    )


def promise(sentences: Iterable[str]) -> Markup:
    """Sentences that are separated."""
    return Markup(
        f'<div class="promise">{"".join(paragraph(sentence) for sentence in sentences)}</div>'
    )


def warning(sentence: str) -> Markup:
    """A sentence that must not be missed."""
    return Markup(f'<p class="warning" role="note">{text(sentence)}</p>')


def key_numbers(numbers: Iterable[tuple[str, str, str]]) -> Markup:
    """The few numbers that matter most: name, value, a note below it."""
    cards = "".join(
        f"<div><dt>{text(name)}</dt><dd{LONG if len(value) > SHORT else ''}>{text(value)}"
        + (small(note) if note else "")
        + "</dd></div>"
        for name, value, note in numbers
    )
    return Markup(f'<dl class="key">{cards}</dl>')


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Names and values, one pair a line."""
    lines = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in pairs)
    return Markup(f'<dl class="facts">{lines}</dl>')


def table(  # noqa: PLR0913 - what a table is made of
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: Collection[str] = (),
    ours: str | None = None,
    key: str = "",
) -> Markup:
    """A table of texts whose first column names the rows; columns in ``words`` hold text."""
    made = plain_table(caption, columns, rows, words=words)
    return render_table(replace(made, ours=ours, key=key))


def render_table(block: Table) -> Markup:
    """A table that scrolls inside the page where it is too wide or too high."""
    bars = {
        place for row in block.rows for place, heading in enumerate(row) if heading.bar is not None
    }
    head = []
    for place, heading in enumerate(block.headings):
        kind = "" if heading.words or heading.label else ' class="number"'
        kind += f' data-field="{attribute(heading.field)}"' if heading.field else ""
        if place in bars:
            head.append('<th scope="col" aria-label="bar"></th>')
        head.append(f'<th scope="col"{kind}>{text(heading.name)}</th>')
    lines, before = [], [""] * len(block.headings)
    for number, row in enumerate(block.rows):
        cells = "".join(_cells(block, row, before, bars))
        before = [cell.text for cell in row]
        mark = ' class="ours"' if block.ours is not None and row[0].text == block.ours else ""
        mark += f' data-row="{number}"' if block.live else ""
        lines.append(f"<tr{mark}>{cells}</tr>")
    body = "\n".join(lines)
    labels = [place for place, heading in enumerate(block.headings) if heading.label]
    longest = max((len(row[place].text) for row in block.rows for place in labels), default=0)
    kind = ' class="long"' if longest > SHORT else ""
    if block.key:
        names = " ".join(heading.name for heading in block.headings)
        kind += f' data-key="{attribute(f"{block.key} {names}")}"'
    note = paragraph(block.note, "note") if block.note else ""
    return Markup(
        f'<div class="scroll" tabindex="0" role="region" aria-label="{attribute(block.title)}">'
        f"<table{kind}><caption>{text(block.title)}</caption>\n<thead><tr>{''.join(head)}</tr>"
        f"</thead>\n<tbody>\n{body}\n</tbody></table></div>{note}"
    )


def _cells(
    block: Table, row: Sequence[Cell], before: Sequence[str], bars: Collection[int]
) -> Iterator[str]:
    """The cells of a row; a label that stands in the row before already is set back."""
    labels = sum(heading.label for heading in block.headings)
    for place, (heading, cell) in enumerate(zip(block.headings, row, strict=True)):
        shown = text(cell.text) + (small(cell.note) if cell.note else "")
        if heading.label:
            repeated = list(before[: place + 1]) == [c.text for c in row[: place + 1]]
            kind = ' class="again"' if repeated and place < labels - 1 else ""
            yield f'<th scope="row"{kind}>{shown}</th>'
            continue
        if place in bars:
            yield f"<td>{'' if cell.bar is None else _bar(cell.bar)}</td>"
        kind = "" if heading.words else ' class="number"'
        if block.live and cell.value is not None:
            kind += f' data-value="{cell.value!r}"'
        if cell.share is not None:
            shown = Markup(f'<span class="heat h{round(HEATS * cell.share)}">{shown}</span>')
        yield f"<td{kind}>{shown}</td>"


def _bar(places: tuple[float, float, float, float]) -> Markup:
    """A bar from zero to the answer, and its interval; the numbers next to it say the same."""
    low, high = (f"{100 * place:.4g}" for place in places[2:])
    start, width = min(places[:2]), abs(places[1] - places[0])
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect x="{100 * start:.4g}" y="1" width="{100 * width:.4g}" height="8"/>'
        f'<path d="M{low} 2V8M{low} 5H{high}M{high} 2V8"/></svg>'
    )


def render_block(block: Block) -> Markup:
    """One block of a document."""
    if isinstance(block, Table):
        return render_table(block)
    if isinstance(block, Facts):
        return facts(block.pairs)
    if isinstance(block, Figure):
        return figure(block.svg, block.caption or block.words)
    if block.kind == "list":
        return items(block.sentences)
    render = warning if block.kind == "warning" else paragraph
    return Markup("".join(map(render, block.sentences)))


def render_part(document: Document) -> Markup:
    """A document as a part of a page that can be folded."""
    body = Markup("\n".join(map(render_block, document.blocks)))
    name = link_name(document.name)
    return details(document.title, document.note, body, folded=bool(document.folded), name=name)


def link_name(name: str) -> str:
    """What a link within the page calls a statement."""
    return "table-" + "".join(x if x.isalnum() and x.isascii() else f"-{ord(x):x}-" for x in name)


def contents(parts: Iterable[Document]) -> Markup:
    """Links to parts of the page."""
    links = "".join(
        f'<li><a href="#{link_name(document.name)}">{text(document.title)}</a> '
        f"{small(document.note)}</li>"
        for document in parts
    )
    return Markup(f'<nav class="contents" aria-label="Tables"><ol>{links}</ol></nav>')


def details(title: str, note: str, body: Markup, *, folded: bool, name: str = "") -> Markup:
    """A part that the reader can fold, with its heading and a note."""
    mark = f' id="{attribute(name)}"' if name else ""
    return Markup(
        f"<details{mark}{'' if folded else ' open'}><summary><h3>{text(title)}</h3> {small(note)}"
        f"</summary>\n{body}\n</details>"
    )


def search_box(label: str) -> Markup:
    """A box that the page's script shows, and that filters the rows of folding parts."""
    return Markup(
        f'<p class="search" hidden><label>{text(label)} <input type="search" '
        'autocomplete="off"></label> <output></output></p>'
    )


def small(sentence: str) -> Markup:
    """A note below what it belongs to."""
    return Markup(f'<span class="note">{text(sentence)}</span>')


def image(svg: bytes, words: str) -> Markup:
    """A drawing with colours of its own, as an image on a light ground."""
    data = b64encode(svg).decode()
    return Markup(f'<img alt="{attribute(words)}" src="data:image/svg+xml;base64,{data}">')


def figure(svg: str, caption: str) -> Markup:
    """A drawing, as markup, with its caption."""
    return Markup(
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{attribute(caption)}">'
        f"{svg}</div><figcaption>{text(caption)}</figcaption></figure>"
    )
