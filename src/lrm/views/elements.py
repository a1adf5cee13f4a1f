"""The few elements of a page. Whatever comes in as text is escaped here, and only here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence
from html import escape

from lrm.spelling import visible

__all__ = [
    "Markup",
    "details",
    "facts",
    "figure",
    "image",
    "items",
    "key_numbers",
    "paragraph",
    "promise",
    "search_box",
    "section",
    "small",
    "table",
    "text",
    "warning",
]


SHORT = 16
"""Characters of a name that is not broken into lines on a narrow page."""


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
    return Markup("<ul>" + "".join(f"<li>{text(one)}</li>" for one in sentences) + "</ul>")


def promise(sentences: Iterable[str]) -> Markup:
    """Sentences that are set apart."""
    return Markup(f'<div class="promise">{"".join(paragraph(one) for one in sentences)}</div>')


def warning(sentence: str) -> Markup:
    """A sentence that must not be missed."""
    return Markup(f'<p class="warning" role="note">{text(sentence)}</p>')


def key_numbers(numbers: Iterable[tuple[str, str, str]]) -> Markup:
    """The few numbers that matter most: name, value, a note below it."""
    cards = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(value)}"
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
    """A table that scrolls inside the page where it is too wide.

    Parameters
    ----------
    caption
        What it shows.
    columns
        Headers; the first column names the rows.
    rows
        One text a column.
    words
        Columns of text; the others, but for the first, hold numbers.
    ours
        First text of the row that is set apart.
    key
        Words by which a search finds all of its rows.
    """
    kinds = ["" if i == 0 or name in words else ' class="number"' for i, name in enumerate(columns)]
    head = "".join(
        f'<th scope="col"{kind}>{text(name)}</th>'
        for name, kind in zip(columns, kinds, strict=True)
    )
    lines, longest = [], 0
    for row in rows:
        first, *rest = row
        longest = max(longest, len(first))
        cells = "".join(
            f"<td{kind}>{text(value)}</td>" for value, kind in zip(rest, kinds[1:], strict=True)
        )
        mark = ' class="ours"' if ours is not None and first == ours else ""
        lines.append(f'<tr{mark}><th scope="row">{text(first)}</th>{cells}</tr>')
    body = "\n".join(lines)
    kind = ' class="long"' if longest > SHORT else ""
    if key:
        kind += f' data-key="{attribute(key)}"'
    return Markup(
        f'<div class="scroll" tabindex="0" role="region" aria-label="{attribute(caption)}">'
        f"<table{kind}><caption>{text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def details(title: str, note: str, body: Markup, *, folded: bool) -> Markup:
    """A part that the reader can fold, with its heading and a note beside it."""
    return Markup(
        f"<details{'' if folded else ' open'}><summary><h3>{text(title)}</h3> {small(note)}"
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
