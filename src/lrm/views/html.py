"""Documents as HTML: parts of a page, whole pages, and cells of a notebook.

A page needs no network and no font, and reads well without its one script, which searches.
Whatever comes in as text is escaped here, and only here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib.metadata import version
from string import Template
from urllib.parse import quote

from lrm.files.spelling import visible
from lrm.views.blocks import (
    Block,
    Cell,
    Document,
    Facts,
    Figure,
    Fold,
    Inline,
    Numbers,
    Prose,
    Rich,
    Table,
)
from lrm.views.style import CSS, HEATS, SNIPPET_CSS

SHORT = 16
"""Characters of a name that is not broken into lines on a narrow page."""

TALL = 40
"""Rows of a table that scrolls inside the page, below its headings."""

FEW = 12
"""Rows that nobody needs to search; half as many tables need no list of contents."""

_PAGE = Template("""<!DOCTYPE html>
<html lang="$language">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="$generator">
<link rel="icon" href="data:,">
<title>$title</title>
<style>$css</style>
</head>
<body>
<header>
<p class="kind">$kind</p>
<h1>$title</h1>
$lead
</header>
<main>
$body
</main>
<footer>$foot</footer>
$script</body>
</html>
""")

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Forbids whatever the page does not have, should a label ever slip through."""

SEARCH = """(root) => {
  const place = root.querySelector(".search");
  if (!place) return;
  const box = place.querySelector("input"), told = place.querySelector("output");
  const parts = [...root.querySelectorAll("details[id]")];
  const rows = parts.flatMap((part) => [...part.querySelectorAll("tbody tr")].map((row) => {
    const above = [part.querySelector("h3").textContent, row.closest("table").dataset.key];
    return { row, part, text: [...above, row.cells[0].textContent].join(" ").toLowerCase() };
  }));
  const first = parts.map((part) => part.open);
  place.hidden = false;
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean), found = new Set();
    let count = 0;
    for (const { row, part, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) { found.add(part); count += 1; }
    }
    parts.forEach((part, i) => {
      part.hidden = !found.has(part);
      part.open = words.length ? found.has(part) : first[i];
    });
    for (const table of root.querySelectorAll("details[id] .scroll"))
      table.hidden = !table.querySelector("tbody tr:not([hidden])");
    told.textContent = words.length ? `${count} of ${rows.length} rows` : "";
  });
}"""
"""A function of the element that holds a search box: filters the rows of parts that fold."""

_SEARCH_BOX = (
    '<p class="search" hidden><label>Search answers <input type="search" '
    'autocomplete="off"></label> <output></output></p>'
)
"""Shown by the script, and nothing without it."""


def page(
    document: Document, kind: str, foot: str = "", language: str = "en", *, maker: bool = True
) -> str:
    """A document as a whole page: its note is the lead, its parts are the sections.

    ``kind`` says what it is about, and ``foot`` where it comes from; the version of lrm that made
    the page comes last with ``maker``, where it is another one than made what is shown.
    """
    made = f"lrm {version('lrm')}"
    maker = maker and made not in foot
    body = render_parts(document)
    script = f"({SEARCH})(document);" if _SEARCH_BOX in body else ""
    seal = b64encode(sha256(script.encode()).digest()).decode()
    return _PAGE.substitute(
        policy=POLICY + (f"; script-src 'sha256-{seal}'" if script else ""),
        generator=_text(made),
        kind=_text(kind),
        language=_attribute(language),
        title=_text(document.title),
        lead=_paragraph(document.note, "lead") if document.note else "",
        css=CSS,
        body=body,
        script=f"<script>{script}</script>\n" if script else "",
        foot=_paragraph(" · ".join(filter(None, (foot, f"page made by {made}" if maker else "")))),
    )


def snippet(document: Document) -> str:
    """A document as a part of a notebook, which it leaves alone."""
    return f'<div class="lrm"><style>{SNIPPET_CSS}</style>\n{_body(document)}\n</div>'


def render_parts(document: Document) -> str:
    """The blocks of a document, and each of its parts as a section."""
    blocks = [*map(render, document.blocks), *map(_section, document.parts)]
    return "\n".join(blocks)


def _section(document: Document) -> str:
    name = escape("".join(x if x.isalnum() else "-" for x in document.title.lower()))
    return (
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{_text(document.title)}</h2>\n'
        f"{_body(document)}\n</section>"
    )


def _body(document: Document) -> str:
    """Blocks, then parts; a search box and links stand before those that have a name."""
    parts = [render(block) for block in document.blocks]
    named = [part for part in document.parts if part.name]
    tables = [block for part in named for block in part.blocks if isinstance(block, Table)]
    if sum(len(table.rows) for table in tables) > FEW:
        parts.append(_SEARCH_BOX)
    if len(named) > FEW // 2:
        parts.append(_contents(named))
    parts += [_part(part) if part.folded is None else _fold(part) for part in document.parts]
    return "\n".join(parts)


def _part(document: Document) -> str:
    heading = f"<h3>{_text(document.title)}</h3>\n" if document.title else ""
    return heading + "\n".join(map(render, document.blocks))


def _fold(document: Document) -> str:
    """A part that the reader can fold, with its heading and a note.

    A table below it does not repeat the heading.
    """
    mark = f' id="{_link_name(document.name)}"' if document.name else ""
    body = "\n".join(
        _table(block, document.title) if isinstance(block, Table) else render(block)
        for block in document.blocks
    )
    return (
        f"<details{mark}{'' if document.folded else ' open'}><summary>"
        f"<h3>{_text(document.title)}</h3> {_small(document.note)}</summary>\n{body}\n</details>"
    )


def _contents(parts: Iterable[Document]) -> str:
    links = "".join(
        f'<li><a href="#{_link_name(part.name)}">{_text(part.title)}</a> {_small(part.note)}</li>'
        for part in parts
    )
    return f'<nav class="contents" aria-label="Tables"><ol>{links}</ol></nav>'


def _link_name(name: str) -> str:
    """What a link within the page calls a statement."""
    return "table-" + "".join(x if x.isalnum() and x.isascii() else f"-{ord(x):x}-" for x in name)


def render(block: Block) -> str:
    """One block of a document."""
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Numbers):
        return _numbers(block)
    if isinstance(block, Facts):
        lines = "".join(f"<dt>{_text(a)}</dt><dd>{_text(b)}</dd>" for a, b in block.pairs)
        return f'<dl class="facts">{lines}</dl>'
    if isinstance(block, Figure):
        caption = block.caption or block.words
        return (
            '<figure><div class="scroll" tabindex="0" role="region" '
            f'aria-label="{_attribute(block.words)}">{block.svg}</div>'
            f"<figcaption>{_text(caption)}</figcaption></figure>"
        )
    if isinstance(block, Fold):
        tables = "\n".join(map(_table, block.tables))
        return f"<details><summary>{_text(block.summary)}</summary>\n{tables}\n</details>"
    return _rich(block) if isinstance(block, Rich) else _prose(block)


_INLINE_TAGS = {"strong": "strong", "emphasis": "em", "code": "code"}


def _rich(block: Rich) -> str:
    lines = ["".join(map(_inline, line)) for line in block.lines]
    if block.kind in {"list", "numbered"}:
        tag = "ul" if block.kind == "list" else "ol"
        return f"<{tag}>" + "".join(f"<li>{line}</li>" for line in lines) + f"</{tag}>"
    tag = "h3" if block.kind == "heading" else "p"
    return "".join(f"<{tag}>{line}</{tag}>" for line in lines)


def _inline(piece: Inline) -> str:
    if piece.kind == "link":
        return f'<a href="{_attribute(piece.target)}">{_text(piece.text)}</a>'
    if piece.kind == "plain":
        return _text(piece.text)
    tag = _INLINE_TAGS[piece.kind]
    return f"<{tag}>{_text(piece.text)}</{tag}>"


def _prose(block: Prose) -> str:
    if block.kind == "list":
        return "<ul>" + "".join(f"<li>{_text(x)}</li>" for x in block.sentences) + "</ul>"
    kind = block.kind if block.kind in {"warning", "note"} else ""
    lines = [_paragraph(sentence, kind) for sentence in block.sentences]
    if block.file:
        link = f'<a href="{escape(quote(block.file))}" download>{_text(block.file)}</a>'
        lines[-1] = lines[-1].removesuffix("</p>") + f" {link}</p>"
    body = "".join(lines)
    return f'<div class="promise">{body}</div>' if block.kind == "promise" else body


def _text(value: str) -> str:
    """Escape, and make control characters visible."""
    return escape(visible(value, lines=True))


def _attribute(value: str) -> str:
    return escape(visible(value))


def _paragraph(content: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    mark += ' role="note"' if kind == "warning" else ""
    return f"<p{mark}>{_text(content)}</p>"


def _small(sentence: str) -> str:
    return f'<span class="note">{_text(sentence)}</span>' if sentence else ""


def _numbers(block: Numbers) -> str:
    words = ' class="words"'  # of a value that is a sentence rather than a number
    cards = "".join(
        f"<div><dt>{_text(name)}</dt><dd{words if len(value) > SHORT else ''}>{_text(value)}"
        f"{_small(note)}</dd></div>"
        for name, value, note in block.entries
    )
    return f'<dl class="key">{cards}</dl>'


def _table(block: Table, above: str = "") -> str:
    """A table that scrolls inside the page where it is too wide or too high.

    It does not repeat the heading ``above``.
    """
    bars = {place for row in block.rows for place, cell in enumerate(row) if cell.bar is not None}
    head = []
    for place, heading in enumerate(block.headings):
        kind = "" if heading.words or heading.label else ' class="number"'
        kind += f' data-field="{_attribute(heading.field)}"' if heading.field else ""
        if place in bars:
            head.append('<th scope="col" aria-label="bar"></th>')
        head.append(f'<th scope="col"{kind}>{_text(heading.name)}</th>')
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
        kind += f' data-key="{_attribute(f"{block.key} {names}")}"'
    note = _paragraph(block.note, "note") if block.note else ""
    words = block.caption(above)
    scroll = "scroll tall" if len(block.rows) > TALL else "scroll"
    label = _attribute(words or block.key or "table")
    caption = f"<caption><span>{_text(words)}</span></caption>\n" if words else ""
    return (
        f'<div class="{scroll}" tabindex="0" role="region" aria-label="{label}">'
        f"<table{kind}>{caption}<thead><tr>{''.join(head)}</tr>"
        f"</thead>\n<tbody>\n{body}\n</tbody></table></div>{note}"
    )


def _cells(
    block: Table, row: Sequence[Cell], before: Sequence[str], bars: Collection[int]
) -> Iterator[str]:
    """The cells of a row; a label that stands in the row before already is set back."""
    labels = sum(heading.label for heading in block.headings)
    for place, (heading, cell) in enumerate(zip(block.headings, row, strict=True)):
        shown = _text(cell.text) + _small(cell.note)
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
            shown = f'<span class="heat h{round(HEATS * cell.share)}">{shown}</span>'
        yield f"<td{kind}>{shown}</td>"


def _bar(places: tuple[float, float, float, float]) -> str:
    """A bar from zero to the answer, and its interval; the numbers next to it say the same."""
    low, high = (f"{100 * place:.4g}" for place in places[2:])
    start, width = min(places[:2]), abs(places[1] - places[0])
    whisker = f'<path d="M{low} 2V8M{low} 5H{high}M{high} 2V8"/>' if low != high else ""
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect x="{100 * start:.4g}" y="1" width="{100 * width:.4g}" height="8"/>{whisker}</svg>'
    )
