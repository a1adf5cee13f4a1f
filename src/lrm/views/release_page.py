"""The page of a release: answers with their errors, the guarantee, and its limits."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from lrm.files.spelling import many
from lrm.files.writing import write_text
from lrm.privacy.amounts import format_amount
from lrm.privacy.budget import NOT_PROMISED
from lrm.queries.workload import EXPLICIT_QUERIES
from lrm.releases import Release
from lrm.releases.core import shown_values
from lrm.releases.postprocess import Processed
from lrm.views.answers import (
    StatementTable,
    grouped_tables,
    single_numbers,
    single_title,
    statement_table,
)
from lrm.views.batches import MOST_LISTED, batch_section
from lrm.views.blocks import Block, Document, Facts, Numbers, Prose, Table
from lrm.views.derived import derived_notes
from lrm.views.html import page
from lrm.views.outputs import csv_files, parquet_file
from lrm.views.outputs.export import Export
from lrm.views.plans import title
from lrm.views.releases import cost_lines
from lrm.views.shapes import statement_document
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


def release_page(
    release: Release,
    confidence: float = 0.95,
    limit: int = LISTED,
    *,
    processed: Processed | None = None,
    place: str | os.PathLike[str] | None = None,
) -> str:
    """The page of a release.

    ``place`` is where the page will be, next to a file of all answers where not all are listed.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> "differential privacy" in release_page(lrm.release(plan, [10, 20], epsilon=1))
    True
    """
    document = release_document(release, confidence, limit, processed=processed, place=place)
    foot = f"made with {release.software} · plan {release.plan.digest[:16]}"
    return page(document, "Rehearsal" if release.simulated else "Release", foot)


def release_document(
    release: Release,
    confidence: float = 0.95,
    limit: int = LISTED,
    *,
    processed: Processed | None = None,
    place: str | os.PathLike[str] | None = None,
) -> Document:
    """All that the page shows, which the workbench shows too."""
    plan = release.plan
    beside = None if place is None else answers_beside(release, place, limit)
    file = None if beside is None else Path(beside).name
    tables = _tables(release, confidence, limit, processed)
    marked = () if not release.simulated else (Prose((_SIMULATED,), "warning"),)
    return Document(
        title(plan.workload, "answer", "answers"),
        (*marked, _key(release)),
        _REHEARSAL if release.simulated else _RELEASE,
        (
            _answers(release, tables, confidence, processed, file),
            Document("What is guaranteed", guarantee_blocks(release)),
            Document("What is not guaranteed", (Prose(NOT_PROMISED, "list"),)),
            *appendix(release, confidence),
        ),
    )


def appendix(release: Release, confidence: float) -> tuple[Document, ...]:
    """How the numbers were made, for readers of statistics."""
    return (
        batch_section(release.plan, _errors(release, confidence)),
        Document("How the numbers were made", (Facts(tuple(cost_lines(release))),)),
        Document("Compute further answers", _further(release)),
    )


_RELEASE = "Counts of a private table, with noise that protects everybody in it."
_REHEARSAL = "A rehearsal: numbers about nobody, as a release would show them."
_SIMULATED = "REHEARSAL (SIMULATED): rows or noise were made up, and nothing is guaranteed."


def _errors(release: Release, confidence: float) -> Table | None:
    """The errors of the statements; None where there are too many answers."""
    if _is_large(release):
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


def answers_beside(
    release: Release, path: str | os.PathLike[str], limit: int = LISTED
) -> str | None:
    """The file that has all answers of a page at ``path``, where the page does not list all.

    It is CSV, or Parquet where that would be some GB.
    """
    if len(release.plan.workload.shown) <= limit:
        return None
    ending = ".parquet" if _is_large(release) else ".csv"
    return str(Path(path).with_suffix(f".rehearsal{ending}" if release.simulated else ending))


def _is_large(release: Release) -> bool:
    """Whether there are too many answers to hold all of them at a time."""
    return release.plan.workload.shape[0] > EXPLICIT_QUERIES


def write_release_page(
    release: Release,
    path: str | os.PathLike[str],
    confidence: float = 0.95,
    limit: int = LISTED,
    *,
    processed: Processed | None = None,
) -> None:
    """Write the page of a release, and the file of all answers where the page needs one."""
    beside = answers_beside(release, path, limit)
    if beside is not None:
        write = parquet_file.write if _is_large(release) else csv_files.write
        write(Export(release, None, confidence, processed), Path(beside))
    write_text(path, release_page(release, confidence, limit, processed=processed, place=path))


def _key(release: Release) -> Numbers:
    cells = f"over {release.plan.workload.shape[1]:,} cells"
    return Numbers(
        (
            ("answers", f"{len(release.plan.workload.shown):,}", cells),
            ("cost", release.privacy.symbols, release.privacy.variant),
            ("protects", release.unit.protected, release.unit.change),
        )
    )


def _answers(
    release: Release,
    tables: Sequence[StatementTable],
    confidence: float,
    processed: Processed | None,
    file: str | None,
) -> Document:
    percent = f"{100 * confidence:.4g} %"
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
    if release.unit.limit is not None:
        sentences.append(f"The true answer is that of a part of the table: {release.unit.limit}.")
    section = answers_section(release, tables, file)
    after = [*section.parts]
    if release.plan.workload.derived:
        notes = Prose(tuple(derived_notes(release.plan.workload.derived)), "list")
        after.append(Document("", (Prose((DERIVED,)), notes)))
    if processed is not None:
        blocks = (Prose(tuple(processed.sentences)), Facts(tuple(processed.notes)))
        after.append(Document("Post-processing", blocks))
    return Document("Answers", (Prose(tuple(sentences)),), parts=tuple(after))


def _tables(
    release: Release, confidence: float, limit: int, processed: Processed | None
) -> list[StatementTable]:
    """The statements that a page lists, with at most ``limit`` answers in all."""
    done = None if processed is None else shown_values(release, processed.answers)
    tables: list[StatementTable] = []
    room = limit
    for statement in release.plan.workload.tables:
        if room <= 0:
            break
        table = statement_table(release, statement, confidence, processed=done, most=room)
        tables.append(replace(table, public=True))
        room -= table.count
    return tables


def answers_section(
    release: Release, tables: Sequence[StatementTable], file: str | None = None
) -> Document:
    """The listed statements, as parts that fold; ``file`` next to the page has the rest."""
    batch, opened = release.plan.workload, MOST_OPEN
    parts: list[Document] = []
    for part in grouped_tables(tables):
        if isinstance(part, list):
            block = single_numbers(part)
            note = many(len(block.rows), "number", "numbers")
            name = part[0].statement.name
            block = replace(block, title="", key=single_title(part))
            parts.append(Document(single_title(part), (block,), note, folded=False, name=name))
            continue
        folded = part.count > min(OPEN, opened) and len(tables) > 1
        opened -= 0 if folded else part.count
        parts.append(statement_document(part, folded=folded))
    if len(tables) < len(batch.tables) or any(t.count < t.total for t in tables):
        parts.append(Document("", (_rest(len(batch.tables) - len(tables), file),)))
    return Document("Answers", parts=tuple(parts))


def _rest(tables: int, file: str | None) -> Prose:
    """Where the answers are that the page does not list."""
    more = f"{many(tables, 'more table', 'more tables')} and " if tables else ""
    if file is None:
        return Prose((f"{more}further answers are not listed here: lrm show --csv writes all.",))
    return Prose(
        (f"{more}further answers are not listed here. A file has all of them:",), file=file
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
    return (Prose(sentences, "promise"), Prose((lasting,)))


def _further(release: Release) -> tuple[Block, ...]:
    how = (
        f"The release file holds {release.plan.measurement_count:,} noisy measurements and the "
        "strategy. Any query that follows from them can be answered at no further cost, with "
        "its error: lrm query does it, and the exported JSON says how to do it without lrm."
    )
    pairs = (
        ("measured in steps of", f"2^-{release.plan.bits}"),
        ("exact noise scale", f"{format_amount(Fraction(release.scale))} steps"),
        ("plan", release.plan.digest),
        ("software", release.software),
    )
    return (Prose((how,)), Facts(pairs))
