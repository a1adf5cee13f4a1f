"""The text of an author, from which a published page is made.

It is Markdown with a few fields before it::

    ---
    title: Admissions in 2023
    publisher: General Hospital
    date: 2024-03-01
    contact: statistics@example.org
    ---
    In {{ admissions | decimals: 0 }} cases somebody was admitted.

    ## When

    {{ by_month | caption: Admissions by month | unit: persons }}

A line that names a statement is its table; in a sentence the name of one without groups is its
number. Headings, paragraphs, lists, **strong**, *emphasised*, ``code`` and
[links](https://example.org) are understood; everything else is shown as it is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lrm.errors import UsageError
from lrm.files.csv_cells import DECIMALS, THOUSANDS, NumberStyle
from lrm.files.reading import TEXT_LIMIT, read_bytes
from lrm.files.spelling import in_percent, listed
from lrm.views.blocks import Inline, Rich, RichKind
from lrm.views.words import WORDS, filled

FIELDS = ("title", "publisher", "date", "contact", "language", "decimal", "thousands")
"""The fields that a text may begin with, in addition to the fixed words."""

CHOICES = {"decimal": tuple(DECIMALS), "thousands": tuple(THOUSANDS)}
"""The values of fields that have only some."""

OPTIONS = ("caption", "unit", "decimals", "note")
"""What may be said of a statement after its name."""

_FIELD = re.compile(r"([A-Za-z][\w-]*)\s*:\s*(.*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_STATEMENT = re.compile(r"\{\{([^{}]*)\}\}")
_ITEM = re.compile(r"(?:(?P<bullet>[-*])|\d+[.)])\s+(?P<text>.*)")
_INLINE = re.compile(
    r"\*\*(?P<strong>[^*]+)\*\*|\*(?P<emphasis>[^*]+)\*|`(?P<code>[^`]+)`"
    r"|\[(?P<text>[^\]]+)\]\((?P<target>(?:https?://|mailto:)[^\s)]+)\)"
)


@dataclass(frozen=True)
class NamedTable:
    """A line of the text that names a statement."""

    statement: str
    line: int
    caption: str = ""
    unit: str = ""
    decimals: int | None = None
    note: str = ""  # in place of what says which groups are shown, and in which order


@dataclass(frozen=True)
class Text:
    """A paragraph of the author, the items of a list, or a small heading."""

    lines: tuple[str, ...]
    kind: RichKind
    source: str  # the file that it is from
    line: int  # where it begins

    def rich(self, number: Callable[[NamedTable], str]) -> Rich:
        """The text as a block, with the numbers of the statements that it names."""

        def spelt(match: re.Match[str]) -> str:
            return number(_named(match[1], self.line, self.source))

        return Rich(tuple(inline(_STATEMENT.sub(spelt, line)) for line in self.lines), self.kind)

    @property
    def numbers(self) -> list[NamedTable]:
        """The statements whose numbers it names."""
        found = (match[1] for line in self.lines for match in _STATEMENT.finditer(line))
        return [_named(name, self.line, self.source) for name in found]


@dataclass(frozen=True)
class Section:
    """A heading of the author, and what stands below it."""

    title: str
    content: tuple[Text | NamedTable, ...]


@dataclass(frozen=True)
class PageText:
    """The text of an author."""

    source: str
    fields: dict[str, str] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()

    @property
    def word_table(self) -> dict[str, str]:
        """The fixed words, with those that the author put in their place."""
        return {key: self.fields.get(key, word) for key, word in WORDS.items()}

    @property
    def style(self) -> NumberStyle:
        """How numbers are spelt."""
        decimal = DECIMALS[self.fields.get("decimal", "point")]
        usual = "point" if decimal == "," else "comma"
        return NumberStyle(decimal, THOUSANDS[self.fields.get("thousands", usual)])

    def percent(self, share: float) -> str:
        """A share in percent."""
        return self.style.shown(in_percent(share))

    def words(self, key: str, **values: str) -> str:
        """Fixed words, or those that the author put in their place."""
        return filled(self.word_table[key], **values)


def read_page_text(path: str | os.PathLike[str]) -> PageText:
    """Read the text of a page from a file."""
    data = read_bytes(path, "text of the page", TEXT_LIMIT)
    try:
        return parse_page_text(data.decode("utf-8-sig"), os.fspath(path))
    except UnicodeDecodeError:
        raise UsageError(f"{os.fspath(path)} is not text in UTF-8") from None


def parse_page_text(text: str, source: str) -> PageText:
    r"""Read the text of a page.

    >>> text = parse_page_text("---\ntitle: Visits\n---\nAll of *them*.\n\n{{ n }}", "page.md")
    >>> text.fields["title"], [type(part).__name__ for part in text.sections[0].content]
    ('Visits', ['Text', 'NamedTable'])
    """
    lines = text.splitlines()
    fields, start = _fields(lines, source)
    sections: list[Section] = []
    title = ""
    content: list[Text | NamedTable] = []
    for part in _parts(lines, start, source):
        if isinstance(part, str):
            sections.append(Section(title, tuple(content)))
            title, content = part, []
        else:
            content.append(part)
    sections.append(Section(title, tuple(content)))
    return PageText(source, fields, tuple(part for part in sections if part.title or part.content))


def _fields(lines: Sequence[str], source: str) -> tuple[dict[str, str], int]:
    """The fields before the text, and the line where the text begins."""
    if not lines or lines[0].strip() != "---":
        return {}, 0
    fields: dict[str, str] = {}
    known = (*FIELDS, *WORDS)
    for number, line in enumerate(lines[1:], start=2):
        if line.strip() == "---":
            return fields, number
        match = _FIELD.fullmatch(line.strip())
        if match is None and line.strip():
            raise UsageError(
                f"{source}, line {number}: expected a field such as title: Admissions in 2023",
                line=number,
            )
        if match is not None:
            if match[1] not in known:
                raise UsageError(
                    f"{source}, line {number}: there is no field {match[1]!r}; there are "
                    f"{', '.join(known)}",
                    line=number,
                    field=match[1],
                )
            fields[match[1]] = match[2].strip().strip("\"'")
            _check_field(match[1], fields, f"{source}, line {number}", number)
    raise UsageError(f"{source}: the fields that begin in line 1 have no end; write --- below them")


def _check_field(name: str, fields: dict[str, str], place: str, line: int) -> None:
    """Refuse a value that a field cannot have."""
    value, known = fields[name], CHOICES.get(name)
    if known is not None and value not in known:
        expected = listed(known, "or")
    elif name == "months" and len(value.split()) != 12:
        expected = "twelve names with spaces between them"
    elif {"decimal", "thousands"} <= fields.keys() and fields["decimal"] == fields["thousands"]:
        expected = f"another one than the decimal {fields['decimal']}"
    else:
        return
    raise UsageError(f"{place}: {name} must be {expected}, not {value!r}", line=line, field=name)


@dataclass
class _Waiting:
    """Lines of a paragraph or of a list that has not ended yet."""

    source: str
    lines: list[str] = field(default_factory=list)
    kind: RichKind = "plain"
    first: int = 0

    def add(self, text: str, number: int) -> Iterator[Text]:
        """Take one more line; an item of a list ends a paragraph, and a list of another kind."""
        item = _ITEM.fullmatch(text)
        if item is not None:
            kind: RichKind = "list" if item["bullet"] else "numbered"
            if kind != self.kind:
                yield from self.finished()
            self.kind = kind
        if not self.lines:
            self.first = number
        if item is not None:
            self.lines.append(item["text"])
        elif self.lines:
            self.lines[-1] += f" {text}"
        else:
            self.lines.append(text)

    def finished(self) -> Iterator[Text]:
        """What has been waiting."""
        if self.lines:
            yield _text(self.lines, self.kind, self.first, self.source)
        self.lines, self.kind = [], "plain"


def _parts(lines: Sequence[str], start: int, source: str) -> Iterator[str | Text | NamedTable]:
    """Headings of sections as text, paragraphs and lists, and named statements."""
    waiting = _Waiting(source)
    for number, line in enumerate(lines[start:], start=start + 1):
        text = line.strip()
        part = _special(text, number, source)
        if part is not None or not text:
            yield from waiting.finished()
        if part is not None:
            yield part
        elif text:
            yield from waiting.add(text, number)
    yield from waiting.finished()


def _special(text: str, line: int, source: str) -> str | Text | NamedTable | None:
    """A line that is a named statement or a heading; None for any other line."""
    statement = _STATEMENT.fullmatch(text)
    if statement is not None:
        return _named(statement[1], line, source)
    heading = _HEADING.fullmatch(text)
    if heading is None:
        return None
    return heading[2] if len(heading[1]) <= 2 else _text([heading[2]], "heading", line, source)


def _text(lines: Sequence[str], kind: RichKind, line: int, source: str) -> Text:
    """A text whose statements have been read once, so that errors come before anything is made."""
    for text in lines:
        for named in _STATEMENT.findall(text):
            _named(named, line, source)
    return Text(tuple(lines), kind, source, line)


def _named(text: str, line: int, source: str) -> NamedTable:
    name, *options = (part.strip() for part in text.split("|"))
    values: dict[str, str] = {}
    for option in options:
        match = _FIELD.fullmatch(option)
        if match is None or match[1] not in OPTIONS:
            raise UsageError(
                f"{source}, line {line}: expected options such as | caption: Admissions, of "
                f"{', '.join(OPTIONS)}, not {option!r}",
                line=line,
            )
        values[match[1]] = match[2].strip()
    digits = values.get("decimals")
    if digits is not None and not re.fullmatch("[0-9]", digits):
        raise UsageError(
            f"{source}, line {line}: decimals must be a digit from 0 to 9, not {digits!r}",
            line=line,
            field="decimals",
        )
    return NamedTable(
        name,
        line,
        values.get("caption", ""),
        values.get("unit", ""),
        None if digits is None else int(digits),
        values.get("note", ""),
    )


def inline(text: str) -> tuple[Inline, ...]:
    """A line of Markdown as pieces: links have addresses of the web or of mail alone.

    >>> [piece.kind for piece in inline("see **this** [page](https://example.org)")]
    ['plain', 'strong', 'plain', 'link']
    >>> inline("[x](javascript:alert)")[0].kind
    'plain'
    """
    pieces, place = [], 0
    for match in _INLINE.finditer(text):
        if match.start() > place:
            pieces.append(Inline(text[place : match.start()]))
        if match["target"]:
            pieces.append(Inline(match["text"], "link", match["target"]))
        else:
            kind = match.lastgroup
            assert kind in {"strong", "emphasis", "code"}  # noqa: S101 - the groups of the pattern
            pieces.append(Inline(match[kind], kind))  # type: ignore[arg-type]
        place = match.end()
    if place < len(text):
        pieces.append(Inline(text[place:]))
    return tuple(pieces)
