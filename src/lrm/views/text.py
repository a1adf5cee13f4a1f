"""Documents in a terminal: plain text that fits its width."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lrm.files.spelling import visible
from lrm.views.blocks import Block, Document, Facts, Fold, Numbers, Prose, Rich, Table

LEAST_WORDS = 12
"""Characters to which a column of text may shrink."""


def to_text(document: Document, width: int) -> str:
    """The whole document; drawings are left out."""
    return "\n".join(_lines(document, width))


def _lines(document: Document, width: int) -> Iterator[str]:
    if document.title and document.folded is None:  # else the caption of its table says it
        note = f" · {document.note}" if document.note else ""
        yield from _wrapped(document.title + note, width)
    for block in document.blocks:
        text = block_text(block, width)
        if text:
            yield text
    for part in document.parts:
        yield ""
        yield from _lines(part, width)


def block_text(block: Block, width: int) -> str:
    """One block; empty where it is a drawing."""
    if isinstance(block, Rich):
        texts = ["".join(piece.text for piece in line) for line in block.lines]
        block = Prose(tuple(texts), "list" if block.kind in {"list", "numbered"} else "plain")
    if isinstance(block, Table | Fold):
        tables = block.tables if isinstance(block, Fold) else (block,)
        return "\n".join(table_text(table, width) for table in tables)
    if isinstance(block, Facts):
        return facts_text(block, width)
    if isinstance(block, Numbers):
        pairs = tuple((name, f"{value} ({note})") for name, value, note in block.entries)
        return facts_text(Facts(pairs), width)
    if isinstance(block, Prose):
        mark = {"list": "- ", "warning": "warning: "}.get(block.kind, "")
        sentences = [*block.sentences, *([block.file] if block.file else [])]
        return "\n".join(
            line for sentence in sentences for line in _wrapped(mark + sentence, width)
        )
    return ""


def _width(text: str) -> int:
    from rich.cells import cell_len  # noqa: PLC0415 - only where something is printed

    return cell_len(visible(text))


def _padded(text: str, width: int, *, left: bool) -> str:
    blank = " " * max(0, width - _width(text))
    return visible(text) + blank if left else blank + visible(text)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns; a word that is longer is cut."""
    from rich.cells import chop_cells  # noqa: PLC0415 - only where something is printed

    lines: list[str] = []
    for paragraph in visible(text, lines=True).split("\n"):
        line = ""
        for word in paragraph.split(" "):
            rest = word
            if line and _width(line) + 1 + _width(rest) <= width:
                line += f" {rest}"
                continue
            if line:
                lines.append(line)
            if _width(rest) > width:
                *full, rest = chop_cells(rest, width)
                lines += full
            line = rest
        lines.append(line)
    return lines


def facts_text(block: Facts, width: int) -> str:
    """Names and values in two columns; long values wrap inside theirs."""
    names = max((_width(name) for name, _ in block.pairs), default=0)
    lines = []
    for name, value in block.pairs:
        first, *rest = _wrapped(value, max(LEAST_WORDS, width - names - 2))
        lines.append(f"{_padded(name, names, left=True)}  {first}".rstrip())
        lines += [" " * (names + 2) + line for line in rest]
    return "\n".join(lines)


def _texts(block: Table) -> list[list[str]]:
    return [[f"{cell.text} {cell.note}".strip() for cell in row] for row in block.rows]


def table_text(block: Table, width: int) -> str:
    """A table that fits: columns of words wrap, numbers never do.

    Where the numbers alone are too wide, a table of groups is cut into several of fewer columns;
    without columns that name the rows, each row is printed as lines of its own.
    """
    caption = block.caption()
    lines = [*_wrapped(caption, width)] if caption else []
    rows = _texts(block)
    labels = [i for i, heading in enumerate(block.headings) if heading.label]
    numbers = [i for i, heading in enumerate(block.headings) if not heading.label]
    parts = _parts(block, rows, labels, numbers, width)
    if parts is None:
        lines += _records(block, rows, width)
    else:
        for part in parts:
            lines += (
                ["", *_grid(block, rows, part, width)]
                if part is not parts[0]
                else _grid(block, rows, part, width)
            )
    if block.note:
        lines += _wrapped(block.note, width)
    return "\n".join(lines)


def _parts(
    block: Table, rows: Sequence[Sequence[str]], labels: list[int], numbers: list[int], width: int
) -> list[list[int]] | None:
    """Which columns are printed side by side; None where not even one of them fits."""
    if _widths(block, rows, [*labels, *numbers], width) is not None:
        return [[*labels, *numbers]]
    if not labels or len(numbers) < 2 or any(block.headings[i].words for i in numbers):
        return None
    for count in range(math.ceil(len(numbers) / 2), 0, -1):
        cut = [numbers[i : i + count] for i in range(0, len(numbers), count)]
        if all(_widths(block, rows, [*labels, *part], width) is not None for part in cut):
            return [[*labels, *part] for part in cut]
    return None


def _widths(
    block: Table, rows: Sequence[Sequence[str]], places: Sequence[int], room: int
) -> list[int] | None:
    """A width for each column, in which every number is whole; None where there is no room."""
    natural, least = [], []
    for i in places:
        heading = block.headings[i]
        cell = max((_width(row[i]) for row in rows), default=0)
        natural.append(max(_width(heading.name), cell))
        words = max((_width(word) for word in heading.name.split()), default=0)
        least.append(min(natural[-1], LEAST_WORDS) if heading.words else max(cell, words))
    spare = room - sum(least) - 2 * (len(places) - 1)
    if spare < 0:
        return None
    for k in sorted(range(len(places)), key=lambda k: not block.headings[places[k]].words):
        more = min(spare, natural[k] - least[k])
        least[k] += more
        spare -= more
    return least


def _grid(
    block: Table, rows: Sequence[Sequence[str]], places: Sequence[int], room: int
) -> list[str]:
    widths = _widths(block, rows, places, room)
    assert widths is not None  # noqa: S101 - the columns were chosen to fit
    left = [block.headings[i].words for i in places]
    lines = _row([block.headings[i].name for i in places], widths, left, bottom=True)
    lines.append("  ".join("─" * width for width in widths))
    for row in rows:
        lines += _row([row[i] for i in places], widths, left)
    return lines


def _row(
    texts: Sequence[str], widths: Sequence[int], left: Sequence[bool], *, bottom: bool = False
) -> list[str]:
    """One row, of several lines where a text wraps."""
    cells = [_wrapped(text, width) for text, width in zip(texts, widths, strict=True)]
    height = max(map(len, cells))
    if bottom:
        cells = [[""] * (height - len(cell_lines)) + cell_lines for cell_lines in cells]
    lines = []
    for place in range(height):
        parts = [
            _padded(cell_lines[place] if place < len(cell_lines) else "", width, left=to_left)
            for cell_lines, width, to_left in zip(cells, widths, left, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def _records(block: Table, rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Each row as lines: names of columns and values."""
    lines: list[str] = []
    for row in rows:
        pairs = tuple(
            (heading.name, text) for heading, text in zip(block.headings, row, strict=True) if text
        )
        lines += ["", facts_text(Facts(pairs), width)]
    return [*lines, ""] if lines else []
