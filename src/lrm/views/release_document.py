"""The document of a release, in the detail that a page, a notebook or a terminal has room for."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from lrm.files.spelling import in_percent, listed, many, sentence
from lrm.privacy.amounts import format_amount
from lrm.privacy.budget import NOT_PROMISED
from lrm.queries.workload import EXPLICIT_QUERIES
from lrm.queries.workload.finding import find_statement
from lrm.releases import Release
from lrm.releases.frames import dropping_columns, register_words, registers
from lrm.releases.postprocess import Processed
from lrm.views.answers import (
    MOST_COLUMNS,
    Setting,
    StatementTable,
    grouped_tables,
    single_numbers,
    single_title,
    statement_table,
    usable_words,
)
from lrm.views.batches import MOST_LISTED, batch_section
from lrm.views.blocks import Block, Document, Facts, Numbers, Prose, Table, said
from lrm.views.derived import derived_notes
from lrm.views.plans import cell_words, level_names, title
from lrm.views.releases import cost_lines, methods_sentences, release_lines, row_limits
from lrm.views.shapes import statement_blocks
from lrm.views.statement_errors import StatementError, StatementErrors, error_table

DERIVED = (
    "Rates, averages and quantiles are computed from noisy counts and sums. Their intervals follow "
    "from the joint law of that noise, cut to what is possible; where the noise may make up all of "
    "the denominator, one is all that is possible."
)

MOST_DERIVED = 10_000
"""Rates and averages of a statement whose released errors are looked at for its summary."""

OPEN, MOST_OPEN = 200, 1000
"""Answers of a statement that is not folded, and of all of them."""

LISTED = 2000
"""Answers that a page lists; a file next to it has all of them where there are more."""


@dataclass(frozen=True)
class Detail:
    """How much of a release a document has, and for whom."""

    # Everything, for the public; answers with drawings; or answers and facts for the author.
    kind: Literal["page", "answers", "terminal"] = "page"
    statements: int = sys.maxsize  # that are listed
    answers: int = sys.maxsize  # of all statements
    each: int = sys.maxsize  # of one statement
    lines: int = sys.maxsize  # of one table
    columns: int = MOST_COLUMNS  # groups that stand side by side
    drawn: bool = True  # whether statements have drawings, panels and heat maps
    facts: bool = True  # whether the facts of the release stand above its answers


EVERYTHING = Detail("answers")
PAGE = Detail(answers=LISTED)
NOTEBOOK = Detail("answers", statements=6, each=200)


TERMINAL = Detail("terminal", statements=40, columns=12, drawn=False)


def terminal(lines: int, *, facts: bool = True) -> Detail:
    """The detail of a terminal: tables of at most ``lines`` lines each, none of them for 0."""
    statements, each = TERMINAL.statements if lines else 0, TERMINAL.columns * lines
    return replace(TERMINAL, statements=statements, each=each, lines=lines, facts=facts)


def release_document(  # noqa: PLR0913 - what may be asked for
    release: Release,
    detail: Detail = PAGE,
    confidence: float = 0.95,
    *,
    processed: Processed | None = None,
    statement: str | None = None,
    file: str | None = None,
) -> Document:
    """A release in some detail: all of it, or one statement of it.

    ``file`` is one next to the page that has all answers, where the page does not list all.
    """
    batch = release.plan.workload
    tables = listed_tables(release, detail, confidence, processed, statement)
    parts = answer_parts(tables, detail)
    if detail.kind == "answers":
        stated = tuple(f"{words}." for words in release.stated.values())
        more = _rest(release, tables, file)
        return Document("", (Prose(stated),) if detail.facts else (), parts=(*parts, *more))
    if detail.kind == "terminal":
        count = len(batch.tables) if statement is None else 1
        sentences = []
        if len(tables) > 1:
            sentences.append(f"at {release.privacy.symbols}, {usable_words(tables)}")
        if len(tables) < count or _is_cut(tables, detail):
            total = many(len(batch.shown), "answer", "answers")
            sentences.append(
                f"not all of {total} are shown: lrm show names one table, or writes all files"
            )
        if statement is None:
            sentences += _left_out(release, tables)
        sentences += _notes(tables, every=statement is not None)
        sentences += [_HALF.format(percent=in_percent(confidence))]
        if processed is not None:
            sentences += [*(words for _, words in processed.notes), *processed.sentences]
        facts = (Facts(tuple(release_lines(release))),) if detail.facts else ()
        return Document("", facts, parts=(*parts, Document("", (Prose(tuple(sentences)),))))
    marked = () if not release.simulated else (Prose((_SIMULATED,), "warning"),)
    answers = (*parts, *_rest(release, tables, file), *_after(release, processed))
    left_out = (sentence(words) for words in _left_out(release, tables))
    meaning = Prose((*_meaning(release, confidence), *left_out))
    return Document(
        title(batch, "answer", "answers"),
        (*marked, _key(release)),
        _REHEARSAL if release.simulated else _RELEASE,
        (
            Document("Answers", (meaning,), parts=answers),
            Document("What is guaranteed", guarantee_blocks(release)),
            Document("What is not guaranteed", (Prose(NOT_PROMISED, "list"),)),
            *_appendix(release, confidence),
        ),
    )


_HALF = (
    "± is half of a {percent} interval, which covers the noise alone; counts and sums are neither "
    "rounded nor clipped"
)
_RELEASE = "Counts of a private table, with noise that protects everybody in it."
_REHEARSAL = "A rehearsal: numbers about nobody, as a release would show them."
_SIMULATED = "REHEARSAL (SIMULATED): rows or noise were made up, and nothing is guaranteed."


def listed_tables(
    release: Release,
    detail: Detail,
    confidence: float = 0.95,
    processed: Processed | None = None,
    name: str | None = None,
) -> list[StatementTable]:
    """The statements that a document lists, or the one called ``name``, cut to its detail."""
    batch = release.plan.workload
    statements = batch.tables if name is None else (find_statement(batch, name),)
    values = None if processed is None else release.shown_values(processed.answers)
    tables: list[StatementTable] = []
    room = detail.answers
    for statement in statements[: detail.statements]:
        if room <= 0:
            break
        most, columns = min(room, detail.each), detail.columns
        table = statement_table(
            release, statement, confidence, processed=values, most=most, columns=columns
        )
        tables.append(replace(table, setting=Setting(public=detail.kind == "page")))
        room -= table.count
    return tables


def answer_parts(tables: Sequence[StatementTable], detail: Detail) -> list[Document]:
    """The listed statements, as parts that fold."""
    opened = MOST_OPEN
    parts: list[Document] = []
    for part in grouped_tables(tables):
        blocks: Sequence[Block]
        if isinstance(part, list):
            name, folded, heading = part[0].statement.name, False, single_title(part)
            table = replace(single_numbers(part), key=heading)
            note = many(len(table.rows), "number", "numbers")
            blocks = [_first_lines(table, len(table.rows), detail)]
        else:
            name, heading, note = part.statement.name, part.statement.title, part.summary
            folded = part.count > min(OPEN, opened) and len(tables) > 1
            opened -= 0 if folded else part.count
            if detail.drawn:
                blocks = statement_blocks(part)
            else:
                blocks = [_first_lines(part.table(detail.columns), part.lines, detail)]
        parts.append(Document(heading, tuple(blocks), note, folded=folded, name=name))
    return parts


def _first_lines(table: Table, lines: int | None, detail: Detail) -> Table:
    """The first lines of a table with ``lines`` lines; None where they were not counted."""
    rows = table.rows[: detail.lines]
    if lines == len(rows):
        return table
    of = "" if lines is None else f" of {lines:,}"
    note = f"… the first {len(rows):,}{of} rows. {table.note}".rstrip()
    return replace(table, rows=rows, note=note)


def _is_cut(tables: Sequence[StatementTable], detail: Detail) -> bool:
    """Whether a document does not show all lines of some table."""
    lines = [
        sum(table.count for table in part) if isinstance(part, list) else part.lines
        for part in grouped_tables(tables)
    ]
    return any(count is None or count > detail.lines for count in lines)


def _notes(tables: Sequence[StatementTable], *, every: bool) -> list[str]:
    """What must be known of the answers of tables; of one that was asked for, everything."""
    frames = [table.frame for table in tables]
    if every:
        return [words for frame in frames for words in frame.caveat_sentences]
    caveats = (entry for frame in frames for entry in frame.caveats)
    return list(dict.fromkeys(e.sentence for e in caveats if e.kind == "approximate"))


def _left_out(release: Release, tables: Sequence[StatementTable]) -> Iterator[str]:
    """Which rows are in no answer of the statements that use a column, and which persons."""
    columns = (name for t in tables for name in dropping_columns(release, t.statement))
    if names := list(dict.fromkeys(columns)):
        one = "this column" if len(names) == 1 else "the column"
        yield (
            f"rows without a declared value of {listed(names, 'or')} are in no answer of a "
            f"statement that uses {one}"
        )
    of_persons = (name for t in tables for name in registers(release, t.statement))
    yield from map(register_words, dict.fromkeys(of_persons))


def _meaning(release: Release, confidence: float) -> list[str]:
    """What the answers of a page are."""
    percent = in_percent(confidence)
    meaning = (
        f"Each answer is the true one plus noise. Its {percent} interval, written as ± half of "
        f"it where that is possible, holds the true answer with probability {percent}. Answers "
        "are not rounded and may be negative where the truth is small: that keeps them right "
        "on average."
    )
    sentences = [meaning]
    if release.plan.clipping:
        clipped = "; ".join(release.plan.clipping)
        sentences.append(f"Numbers were clipped to a declared range: {clipped}.")
    part = "The true answer is that of a part of the table"
    return [*sentences, *(f"{part}: {limit}." for limit in row_limits(release))]


def _rest(
    release: Release, tables: Sequence[StatementTable], file: str | None
) -> tuple[Document, ...]:
    """Where the answers are that a page does not list."""
    hidden = len(release.plan.workload.tables) - len(tables)
    if not hidden and all(table.count == table.total for table in tables):
        return ()
    more = f"{many(hidden, 'more table', 'more tables')} and " if hidden else ""
    words = f"{more}further answers are not listed here"
    if file is None:
        return (Document("", (Prose((f"{words}: lrm show --csv writes all.",)),)),)
    return (Document("", (Prose((f"{words}. A file has all of them:",), file=file),)),)


def _after(release: Release, processed: Processed | None) -> list[Document]:
    """What must be known of answers that are computed from others, and of processed ones."""
    parts = []
    if release.plan.workload.derived:
        notes = Prose(tuple(derived_notes(release.plan.workload.derived)), "list")
        parts.append(Document("", (Prose((DERIVED,)), notes)))
    if processed is not None:
        blocks = (Prose(tuple(processed.sentences)), Facts(tuple(processed.notes)))
        parts.append(Document("Post-processing", blocks))
    return parts


def _appendix(release: Release, confidence: float) -> tuple[Document, ...]:
    """How the numbers were made, for readers of statistics."""
    return (
        batch_section(release.plan, _errors(release, confidence)),
        Document(
            "How the numbers were made",
            (Prose(tuple(methods_sentences(release))), Facts(tuple(cost_lines(release)))),
        ),
        Document("Compute further answers", _further(release)),
    )


def _errors(release: Release, confidence: float) -> Table | None:
    """The errors of the statements; None where there are too many answers."""
    if is_large(release):
        return None
    errors = StatementErrors(release.plan).at(release.accuracy, confidence)[:MOST_LISTED]
    released = [_released_error(release, error, confidence) for error in errors]
    title = "Tables, with the error of each"
    return error_table(released, confidence, title, public=True)


def _released_error(release: Release, error: StatementError, confidence: float) -> StatementError:
    """Of rates and averages, the errors that the released answers have, in the median."""
    if error.part.kind != "derived" or error.part.count > MOST_DERIVED:
        return error
    batch = release.plan.workload
    places = np.cumsum([0, *(answer.label.count for answer in batch.derived)])
    places += len(batch.shown) - places[-1]
    numbers = [
        release.shown_numbers(int(places[k]), int(places[k + 1]), confidence)
        for k in error.part.derived
    ]
    errors, low, high = (
        np.concatenate([part[name] for part in numbers])
        for name in ("standard_error", "low", "high")
    )
    known = errors[np.isfinite(errors)]
    halves = ((high - low) / 2)[np.isfinite(high - low)]
    return replace(
        error,
        typical=float(np.median(known)) if len(known) else math.nan,
        largest=float(known.max()) if len(known) else math.nan,
        half=float(np.median(halves)) if len(halves) else math.nan,
    )


def is_large(release: Release) -> bool:
    """Whether there are too many answers to hold all of them at a time."""
    return release.plan.workload.shape[0] > EXPLICIT_QUERIES


def _key(release: Release) -> Numbers:
    cells = f"over {cell_words(release.plan)}"
    return Numbers(
        (
            ("answers", f"{len(release.plan.workload.shown):,}", cells),
            ("cost", release.privacy.symbols, release.privacy.variant),
            ("protects", release.unit.protected, release.unit.change),
        )
    )


def guarantee_blocks(release: Release) -> tuple[Block, ...]:
    """What the guarantee means, in sentences."""
    if release.simulated:
        return (Prose(("Nothing: this is a rehearsal.",), "warning"),)
    lasting = (
        "This holds for everything on this page and in the release file together, whatever "
        "else the reader knows, and whatever is computed from it later."
    )
    sentences = tuple(release.privacy.sentences(release.unit))
    whole = release.whole.sentence
    return (Prose(sentences, "promise"), *said([sentence(whole)]), Prose((lasting,)))


def _further(release: Release) -> tuple[Block, ...]:
    how = (
        f"The release file holds {release.plan.measurement_count:,} noisy measurements and the "
        "strategy. Any query that follows from them can be answered at no further cost, with "
        "its error: lrm query does it, and the exported JSON says how to do it without lrm."
    )
    pairs = []
    for name, level in zip(level_names(release.plan), release.levels, strict=True):
        of = f" ({name})" if name else ""
        scale = f"{format_amount(Fraction(level.scale))} steps"
        pairs += [
            (f"measured in steps of{of}", f"2^-{level.plan.bits}"),
            (f"exact noise scale{of}", scale),
        ]
    pairs += [("plan", release.plan.digest), ("software", release.software)]
    return (Prose((how,)), Facts(tuple(pairs)))
