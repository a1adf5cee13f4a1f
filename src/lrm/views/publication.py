"""A page that an author publishes: their own text, with tables of a release in it.

The text is Markdown with a few fields before it::

    ---
    title: Admissions in 2023
    publisher: General Hospital
    date: 2024-03-01
    contact: statistics@example.org
    ---
    What the numbers are about.

    ## When

    {{ by_month | caption: Admissions by month | unit: persons }}

Headings, paragraphs, lists, **strong**, *emphasised*, ``code`` and [links](https://example.org) are
understood; whatever else stands there is shown as it is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lrm.errors import UsageError
from lrm.files.csv_cells import DECIMALS, THOUSANDS, NumberStyle
from lrm.files.reading import TEXT_LIMIT, read_bytes
from lrm.files.spelling import in_percent, listed, sentence
from lrm.files.writing import write_text
from lrm.privacy.budget import NOT_PROMISED
from lrm.queries.workload.frames import AnswerFrame
from lrm.releases import Release
from lrm.releases.postprocess import Processed
from lrm.views.answers import Setting, StatementTable, frame_table, single_numbers
from lrm.views.blocks import Block, Document, Figure, Fold, Inline, Numbers, Prose, Rich, Table
from lrm.views.html import page
from lrm.views.outputs.csv_files import write as write_csv
from lrm.views.outputs.export import Export
from lrm.views.release_document import guarantee_blocks
from lrm.views.releases import methods_sentences
from lrm.views.shapes import LONG, statement_blocks
from lrm.views.words import WORDS, filled

FIELDS = ("title", "publisher", "date", "contact", "language", "decimal", "thousands")
"""The fields that a text may begin with, beside the fixed words."""

CHOICES = {"decimal": tuple(DECIMALS), "thousands": tuple(THOUSANDS)}
"""The values of fields that have only some."""

OPTIONS = ("caption", "unit", "decimals", "note")
"""What may be said of a statement after its name."""

MOST_NAMED = 4
"""Tables that are named beside what holds for some of them alone."""

_FIELD = re.compile(r"([A-Za-z][\w-]*)\s*:\s*(.*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_STATEMENT = re.compile(r"\{\{(.*)\}\}")
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
class Section:
    """A heading of the author, and what stands below it."""

    title: str
    content: tuple[Rich | NamedTable, ...]


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
    ('Visits', ['Rich', 'NamedTable'])
    """
    lines = text.splitlines()
    fields, start = _fields(lines, source)
    sections: list[Section] = []
    title = ""
    content: list[Rich | NamedTable] = []
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

    paragraph: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)

    def add(self, text: str) -> Iterator[Rich]:
        """Take one more line; an item of a list ends a paragraph."""
        if text.startswith(("- ", "* ")):
            if self.paragraph:
                yield from self.finished()
            self.items.append(text[2:])
        elif self.items:
            self.items[-1] += f" {text}"
        else:
            self.paragraph.append(text)

    def finished(self) -> Iterator[Rich]:
        """What has been waiting."""
        if self.paragraph:
            yield Rich((inline(" ".join(self.paragraph)),))
        if self.items:
            yield Rich(tuple(map(inline, self.items)), "list")
        self.paragraph, self.items = [], []


def _parts(lines: Sequence[str], start: int, source: str) -> Iterator[str | Rich | NamedTable]:
    """Headings of sections as text, paragraphs and lists, and named statements."""
    waiting = _Waiting()
    for number, line in enumerate(lines[start:], start=start + 1):
        text = line.strip()
        part = _special(text, number, source)
        if part is not None or not text:
            yield from waiting.finished()
        if part is not None:
            yield part
        elif text:
            yield from waiting.add(text)
    yield from waiting.finished()


def _special(text: str, line: int, source: str) -> str | Rich | NamedTable | None:
    """A line that is a named statement or a heading; None for any other line."""
    statement = _STATEMENT.fullmatch(text)
    if statement is not None:
        return _named(statement[1], line, source)
    heading = _HEADING.fullmatch(text)
    if heading is None:
        return None
    return heading[2] if len(heading[1]) <= 2 else Rich((inline(heading[2]),), "heading")


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


def publication(
    release: Release,
    text: PageText,
    confidence: float = 0.95,
    *,
    processed: Processed | None = None,
    file: str = "",
) -> Document:
    """The page as a document: the author's text, and an appendix; ``file`` has all numbers."""
    frames: dict[str, AnswerFrame] = {}
    parts = []
    for section in text.sections:
        blocks: list[Block] = []
        for part in section.content:
            if isinstance(part, Rich):
                blocks.append(part)
                continue
            frame = _frame(release, part, text, confidence, processed)
            frames[part.caption or frame.title] = frame
            _add_table(blocks, frame_table(frame, _setting(part, text)))
        parts.append(Document(section.title, tuple(blocks)))
    first = parts.pop(0).blocks if parts and not parts[0].title else ()
    lead = " · ".join(text.fields[key] for key in ("publisher", "date") if key in text.fields)
    rehearsal = Prose((text.words("rehearsal"),), "warning")
    marked = (rehearsal,) if release.simulated else ()
    about = _about(release, text, frames, text.percent(confidence), file)
    title = text.fields.get("title") or next(iter(frames), text.words("numbers"))
    return Document(title, (*marked, *first), lead, (*parts, *about))


def _frame(
    release: Release,
    named: NamedTable,
    text: PageText,
    confidence: float,
    processed: Processed | None,
) -> AnswerFrame:
    try:
        return release.frame(named.statement, confidence, processed=processed)
    except UsageError as reason:
        place = f"{text.source}, line {named.line}"
        raise UsageError(f"{place}: {reason}", line=named.line) from None


def _setting(named: NamedTable, text: PageText) -> Setting:
    return Setting(
        public=True,
        words=text.word_table,
        heading=named.caption,
        note=named.note,
        unit=named.unit,
        decimals=named.decimals,
        style=text.style,
    )


def _add_table(blocks: list[Block], table: StatementTable) -> None:
    """Add a table as readers see it; numbers without groups stand side by side."""
    if not table.frame.columns and not table.is_processed:
        last = blocks[-1] if blocks else None
        if isinstance(last, Numbers):
            blocks[-1] = Numbers((*last.entries, *table.key_figures()))
        else:
            blocks.append(Numbers(tuple(table.key_figures())))
    elif not table.frame.columns:
        blocks.append(replace(single_numbers([table]), title=table.title))
    else:
        blocks += _with_picture(table)


def _with_picture(table: StatementTable) -> Iterator[Block]:
    """The picture and the table, which is folded below it, and where it is long."""
    blocks = statement_blocks(table)
    pictures = [block for block in blocks if isinstance(block, Figure)]
    tables = [block for block in blocks if isinstance(block, Table)]
    for picture in pictures:
        yield replace(picture, caption=f"{table.title}. {picture.caption}")
    if pictures or sum(len(block.rows) for block in tables) > LONG:
        yield Fold(f"{table.title}: {table.words['numbers'].lower()}", tuple(tables))
    else:
        yield from tables


def _about(
    release: Release,
    text: PageText,
    frames: dict[str, AnswerFrame],
    percent: str,
    file: str,
) -> Iterator[Document]:
    """What readers of statistics ask: how exact the numbers are, and how they were made."""
    blocks: list[Block] = [Prose((text.words("intervals", percent=percent),))]
    caveats = _caveats(frames)
    if file:
        blocks.append(Prose((text.words("data"),), file=file))
    if "contact" in text.fields:
        blocks.append(Rich((inline(f"{text.words('write-to')}: {text.fields['contact']}"),)))
    yield Document(text.words("about"), tuple(blocks))
    promise = text.words("guarantee-text")
    guarantee = (Prose((promise,), "promise"),) if promise else guarantee_blocks(release)
    if release.simulated:
        guarantee = guarantee_blocks(release)
    yield Document(text.words("guarantee"), guarantee)
    limits = text.words("caveats-text")
    limited = Prose((limits,)) if limits else Prose((*caveats, *NOT_PROMISED), "list")
    yield Document(text.words("caveats"), (limited,))
    methods = text.words("methods-text")
    made = Prose((methods,)) if methods else Prose(tuple(methods_sentences(release)))
    yield Document(text.words("methods"), (made,))


def _caveats(frames: dict[str, AnswerFrame]) -> list[str]:
    """What the intervals do not cover; of what does not hold for all tables, for which it does."""
    titles: dict[str, list[str]] = {}
    for title, frame in frames.items():
        for words in dict.fromkeys(e.sentence for e in frame.caveats if e.kind != "display"):
            titles.setdefault(words, []).append(title)
    caveats = []
    for words, named in titles.items():
        more = len(named) - MOST_NAMED
        few = [*named[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
        about = "" if len(named) == len(frames) else f"{'; '.join(few)}: "
        caveats.append(sentence(f"{about}{words}"))
    return caveats


def write_publication(
    release: Release,
    path: str | os.PathLike[str],
    text: PageText,
    confidence: float = 0.95,
    *,
    processed: Processed | None = None,
) -> str:
    """Write the page, and a CSV file of all numbers next to it; return the name of that file."""
    beside = numbers_beside(release, path)
    document = publication(release, text, confidence, processed=processed, file=Path(beside).name)
    plan = release.plan.digest[:16]
    foot = text.words("made-with", software=release.software, plan=plan)
    language = text.fields.get("language", "en")
    write_csv(Export(release, None, confidence, processed), Path(beside))
    kind = "Rehearsal" if release.simulated else text.words("kind")
    write_text(path, page(document, kind, foot, language, maker=False))
    return beside


def numbers_beside(release: Release, path: str | os.PathLike[str]) -> str:
    """The file next to a published page that has all numbers."""
    return str(Path(path).with_suffix(".rehearsal.csv" if release.simulated else ".csv"))
