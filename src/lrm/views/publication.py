"""A page that an author publishes: their own text, with tables of a release in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lrm.errors import UsageError
from lrm.files.spelling import sentence
from lrm.files.writing import write_text
from lrm.privacy.budget import NOT_PROMISED
from lrm.queries.workload import Workload
from lrm.queries.workload.finding import find_statement
from lrm.queries.workload.frames import AnswerFrame
from lrm.releases import Release
from lrm.releases.postprocess import Processed
from lrm.views.answers import Setting, StatementTable, frame_table, single_numbers
from lrm.views.blocks import Block, Document, Figure, Fold, Numbers, Prose, Rich, Table
from lrm.views.html import page
from lrm.views.outputs.csv_files import write as write_csv
from lrm.views.outputs.export import Export
from lrm.views.page_text import NamedTable, PageText, Text, inline
from lrm.views.release_document import guarantee_blocks
from lrm.views.releases import methods_sentences
from lrm.views.shapes import LONG, statement_blocks

MOST_NAMED = 4
"""Tables that are named where a caveat holds for some of them alone."""


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

    def table_of(named: NamedTable) -> StatementTable:
        frame = _frame(release, named, text, confidence, processed)
        frames[named.caption or frame.title] = frame
        return frame_table(frame, _setting(named, text))

    def number(named: NamedTable) -> str:
        return _number(table_of(named), named, text)

    parts = []
    for section in text.sections:
        blocks: list[Block] = []
        for part in section.content:
            if isinstance(part, Text):
                blocks.append(part.rich(number))
            else:
                _add_table(blocks, table_of(part))
        parts.append(Document(section.title, tuple(blocks)))
    first = parts.pop(0).blocks if parts and not parts[0].title else ()
    lead = " · ".join(text.fields[key] for key in ("publisher", "date") if key in text.fields)
    rehearsal = Prose((text.words("rehearsal"),), "warning")
    marked = (rehearsal,) if release.simulated else ()
    exactness = [Prose((text.words("intervals", percent=text.percent(confidence)),))]
    if file:
        exactness.append(Prose((text.words("data"),), file=file))
    about = _about(release, text, frames, exactness, processed)
    title = text.fields.get("title") or next(iter(frames), text.words("numbers"))
    return Document(title, (*marked, *first), lead, (*parts, *about))


def check_names(batch: Workload, text: PageText) -> None:
    """Raise an error where the text names what a release of the batch will not have."""
    for part in (part for section in text.sections for part in section.content):
        in_sentence = isinstance(part, Text)
        for named in part.numbers if isinstance(part, Text) else [part]:
            try:
                statement = find_statement(batch, named.statement)
            except UsageError as reason:
                raise _at_line(named, text, str(reason)) from None
            several = len(statement.answers) > 1 and named.statement not in statement.answers
            if in_sentence and (statement.columns or several):
                raise _no_number(named, text)


def _at_line(named: NamedTable, text: PageText, reason: str) -> UsageError:
    return UsageError(f"{text.source}, line {named.line}: {reason}", line=named.line)


def _no_number(named: NamedTable, text: PageText) -> UsageError:
    name = repr(named.statement)
    reason = f"{name} is a table; name it on a line of its own, or one number here"
    return _at_line(named, text, reason)


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
        raise _at_line(named, text, str(reason)) from None


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


def _number(table: StatementTable, named: NamedTable, text: PageText) -> str:
    """The one number of a statement, as it stands in a sentence: with what is known of it."""
    names = table.frame.answers
    if not table.is_single or (len(names) > 1 and named.statement not in names):
        raise _no_number(named, text)
    place = names.index(named.statement) if len(names) > 1 else 0
    _, value, interval = table.key_figures()[place]
    remarks = [interval] if interval else []
    if table.is_processed and (processed := table.processed_cell(0, place).text):
        remarks.append(f"{table.words['processed']} {processed}")
    return f"{value} ({'; '.join(remarks)})" if remarks else value


def _add_table(blocks: list[Block], table: StatementTable) -> None:
    """Add a table as readers see it; numbers without groups stand side by side."""
    if table.is_figure:
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
    exactness: Sequence[Block],
    processed: Processed | None,
) -> Iterator[Document]:
    """What readers of statistics ask: how exact the numbers are, and how they were made."""
    blocks = list(exactness)
    caveats = _caveats(frames)
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
    sentences = methods_sentences(release)
    if processed is not None:
        sentences += [*(words for _, words in processed.notes), *processed.sentences]
    made = Prose((methods,)) if methods else Prose(tuple(sentences))
    yield Document(text.words("methods"), (made,))


def _caveats(frames: dict[str, AnswerFrame]) -> list[str]:
    """What the intervals do not cover; of what does not hold for all tables, for which it does."""
    titles: dict[str, list[str]] = {}
    for title, frame in frames.items():
        for words in frame.caveat_sentences:
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
