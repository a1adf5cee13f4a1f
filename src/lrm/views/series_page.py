"""The page of a series: each statement over its editions, and how answers changed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lrm.files.spelling import beside, in_percent, listed, many, number, sentence
from lrm.files.writing import write_text
from lrm.privacy.budget import NOT_PROMISED
from lrm.queries.workload import Statement
from lrm.queries.workload.frames import AnswerFrame
from lrm.queries.workload.statements import spoken_name
from lrm.releases.series import Series
from lrm.releases.whole import added_up
from lrm.views.answers import PUBLIC, StatementTable, frame_table
from lrm.views.blocks import (
    Block,
    Cell,
    Document,
    Facts,
    Fold,
    Heading,
    Numbers,
    Prose,
    Table,
)
from lrm.views.html import page
from lrm.views.shapes import curves_along, line_figure
from lrm.views.words import WORDS

LONG = 20
"""Rows of a table that a page folds."""

MOST_ROWS = 2_000
"""Rows of a statement over all editions that a page lists."""

NOISE = (
    "Each answer is the true one plus noise; ± is half of its {} interval, which covers the noise "
    "alone. Every edition has noise of its own, so that a change has the noise of both: its "
    "interval is wider than that of an answer."
)

MARKS = (
    "▲ and ▼: the interval of the change does not contain 0. Where nothing has changed, noise "
    "alone leads to such a mark with a probability of at most {}."
)


def series_page(series: Series, confidence: float = 0.95) -> str:
    """The page of a series."""
    latest = series.each[-1]
    kind = "Rehearsal" if series.simulated else "Series"
    return page(series_document(series, confidence), kind, f"made with {latest.software}")


def write_series_page(
    series: Series, path: str | os.PathLike[str], confidence: float = 0.95
) -> None:
    """Write the page of a series, whole or not at all."""
    write_text(path, series_page(series, confidence))


def series_document(series: Series, confidence: float = 0.95) -> Document:
    """All that the page shows, which text and Markdown show without the drawings."""
    name = series.each[-1].plan.workload.domain
    title = f"{(name.table if name else '') or 'Answers'}, {_span(series)}"
    warning = Prose(("REHEARSAL (SIMULATED): rows or noise were made up.",), "warning")
    return Document(
        title,
        (*((warning,) if series.simulated else ()), _key(series)),
        "The answers of one report over its editions, with noise that protects everybody in them.",
        (
            answers_document(series, confidence),
            Document("What is guaranteed", tuple(_guarantee(series))),
            Document(
                "What is not guaranteed", (Prose((*_over_editions(series), *NOT_PROMISED), "list"),)
            ),
            Document("How the editions were made", (Facts(tuple(_editions(series))),)),
        ),
    )


def answers_document(series: Series, confidence: float = 0.95) -> Document:
    """The statements, each with its lines, its latest answers and their changes."""
    percent = in_percent(confidence)
    meaning = NOISE.format(percent), MARKS.format(f"{100 * (1 - confidence):.3g} %")
    statements = [_statement(series, entry, confidence) for entry in series.statements]
    return Document("Answers", (Prose(meaning),), parts=tuple(statements))


def _span(series: Series) -> str:
    return " to ".join(dict.fromkeys((series.names[0], series.names[-1])))


def _key(series: Series) -> Numbers:
    latest = series.each[-1]
    period = series.editions[0].period
    costs = ", ".join(dict.fromkeys(entry.privacy.symbols for entry in series.each))
    return Numbers(
        (
            ("editions", f"{len(series.names):,}", f"{_span(series)}, one per {period}"),
            ("cost of each", costs, latest.privacy.variant),
            ("protects", latest.unit.protected, latest.unit.change),
        )
    )


def _guarantee(series: Series) -> Iterator[Block]:
    if series.simulated:
        yield Prose(("Nothing: this is a rehearsal.",), "warning")
        return
    latest = series.each[-1]
    each = dict.fromkeys(entry.privacy for entry in series.each)
    for privacy in each:
        names = [
            entry
            for entry, of in zip(series.names, series.each, strict=True)
            if of.privacy == privacy
        ]
        sentences = list(privacy.sentences(latest.unit))
        if len(each) > 1:
            sentences.insert(0, f"In {listed(names)}:")
        yield Prose(tuple(sentences), "promise")
    period = series.editions[0].period
    discovered: dict[str, list[str]] = {}
    for name, release in zip(series.names, series.each, strict=True):
        if release.whole.sentence:
            discovered.setdefault(release.whole.sentence, []).append(name)
    together = (
        f"This holds for all editions together, as far as rows of one {period} go: an edition "
        f"counts the rows of its own {period} alone."
    )
    yield Prose(
        (together, *(sentence(f"{listed(of)}: {words}") for words, of in discovered.items()))
    )


def _over_editions(series: Series) -> tuple[str, ...]:
    """What somebody who is in every edition loses; nothing where units are single rows."""
    unit, period = series.each[-1].unit, series.editions[0].period
    if unit.column is None and unit.max_rows == 1:
        return ()
    editions = many(len(series.names), "edition", "editions")
    uses = any(release.whole.discoveries or release.whole.others for release in series.each)
    discovered = ", the discovery of values included" if uses else ""
    words = (
        f"A person with rows in several editions is protected in each {period} by itself. About "
        "that person as a whole the amounts add up: to at most "
        f"{added_up(series.each)} for somebody who is in all {editions} of this page{discovered}."
    )
    return (words,)


def _editions(series: Series) -> Iterator[tuple[str, str]]:
    for name, release in zip(series.names, series.each, strict=True):
        head = f", ledger head {release.ledger_head}" if release.ledger_head else ""
        plan = release.plan.digest[:16]
        yield name, f"{release.privacy.symbols}, plan {plan}, {release.software}{head}"


def _statement(series: Series, statement: Statement, confidence: float) -> Document:
    """One statement: its lines, how its latest answers changed, and all numbers."""
    frame = series.frame(statement, confidence)
    dated = series.dated(statement)
    view = frame if dated is None else _without_edition(frame)
    drawn = StatementTable(view, view.count, None, PUBLIC, columns=(view.columns, view.codes))
    curves = curves_along(drawn, dated or 0)
    blocks: list[Block] = [] if curves is None else [line_figure(drawn, curves)]
    table = _latest(series, frame)
    if len(table.rows) > LONG:
        blocks.append(Fold(f"{series.names[-1]} and its changes", (table,)))
    else:
        blocks.append(table)
    listed = len(frame) <= MOST_ROWS and len(series.names) > 1
    if listed:
        whole = frame_table(frame, PUBLIC).table(heat=True)
        blocks.append(Fold("All editions", (whole,)))
    # The table of all editions has those of its display.
    kept = (entry for entry in frame.caveats if entry.kind != "display" or not listed)
    caveats = tuple(sentence(entry.sentence) for entry in kept)
    if caveats:
        blocks.append(Prose(caveats, "note"))
    return Document(statement.title, tuple(blocks), folded=False, name=statement.name)


def _without_edition(frame: AnswerFrame) -> AnswerFrame:
    """The rows without the column of editions, which their dates imply."""
    return replace(frame, columns=frame.columns[1:], codes=frame.codes[:, 1:])


def _latest(series: Series, frame: AnswerFrame) -> Table:
    """The answers of the latest edition, and their changes."""
    edition = series.editions[-1]
    rows = np.flatnonzero(frame.codes[:, 0] == len(series.names) - 1).tolist()
    since = {"change": series.names[max(len(series.names) - 2, 0)]}
    if edition.year_before is not None:
        since["year_change"] = edition.year_before.name
    kinds = [
        kind
        for kind in since
        if kind in frame.numbers and np.isfinite(frame.numbers[kind][rows]).any()
    ]
    shown = StatementTable(frame, frame.count, None, PUBLIC)
    columns, texts = frame.columns[1:], [shown.texts(column) for column in frame.columns[1:]]
    answers = [spoken_name(name) for name in frame.answers]
    if columns:
        headings = [Heading(column.name, words=True, label=True) for column in columns]
        cells = []
        for row in rows:
            codes = frame.codes[row, 1:].tolist()
            labels = [text[code] for text, code in zip(texts, codes, strict=True)]
            cells.append((labels, row, range(len(answers))))
    else:  # a line per answer
        headings = [Heading("answer", words=True, label=True)]
        cells = [([name], rows[0], range(k, k + 1)) for k, name in enumerate(answers)]
    for name in answers if columns else [edition.name]:
        several = f"{name}: " if columns and len(answers) > 1 else ""
        headings.append(Heading(name))
        headings += [Heading(f"{several}change since {since[kind]}") for kind in kinds]
    table = []
    for labels, row, places in cells:
        line = [Cell(label) for label in labels]
        for place in places:
            line.append(shown.cell(row, place, note=True))
            line += [_change(frame, row, place, kind) for kind in kinds]
        table.append(tuple(line))
    title = f"{edition.name} and its changes" if kinds else edition.name
    return Table(title, tuple(headings), tuple(table))


def _change(frame: AnswerFrame, row: int, place: int, kind: str) -> Cell:
    """A change with its interval, marked where this does not contain 0."""
    value, low, high = (
        float(frame.numbers[name][row, place]) for name in (kind, f"{kind}_low", f"{kind}_high")
    )
    if math.isnan(value):
        return Cell("")
    half = (high - low) / 2
    if math.isnan(half):  # computed from the noisy answers
        return Cell(number(value))
    if math.isinf(half):
        text, note = beside(value, 0.1 * abs(value)), WORDS["unbounded"]
    else:
        text, note = beside(value, half / 2), f"± {beside(half, half / 2)}"
        if abs(value - low - half) > 0.02 * half:
            note = f"{beside(low, half / 2)} … {beside(high, half / 2)}"
    sign = "+" if value > 0 and text.strip("0.,") else ""
    mark = "▲ " if low > 0 else "▼ " if high < 0 else ""
    return Cell(f"{mark}{sign}{text}", note)
