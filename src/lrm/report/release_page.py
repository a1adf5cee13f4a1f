"""The page of a release: answers with their errors, the promise, and its limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from lrm.facts.answers import answer_columns, answer_rows, answer_table
from lrm.facts.plans import title
from lrm.facts.releases import cost_lines
from lrm.privacy.amounts import format_amount
from lrm.releases import Release
from lrm.releases.postprocess import INTERVALS, Processed
from lrm.releases.promise import (
    NOT_PROMISED,
    promise_sentences,
    variant_name,
)
from lrm.report.batches import batch_section, query_label
from lrm.report.elements import (
    Markup,
    facts,
    figure,
    items,
    key_numbers,
    paragraph,
    promise,
    section,
    table,
    warning,
)
from lrm.report.error_section import error_section
from lrm.report.page import page
from lrm.report.plots import answers_drawing
from lrm.showing.spelling import beside, number, parameter_words
from lrm.workload import check_listable

__all__ = ["release_page"]

MOST_DRAWN = 40
"""Answers in the drawing: one line of text each."""


def release_page(
    release: Release,
    confidence: float = 0.95,
    limit: int = 500,
    *,
    processed: Processed | None = None,
) -> str:
    """The page of a release.

    >>> import lrm
    >>> plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data")
    >>> "differential privacy" in release_page(lrm.release(plan, [10, 20], epsilon=1))
    True
    """
    plan = release.plan
    check_listable(plan.workload)
    amount = parameter_words(release.privacy)
    sections = [
        _simulated(release),
        _key(release, amount),
        _answers(release, confidence, limit, processed),
        batch_section(plan.workload),
        section("What it cost", facts(cost_lines(release))),
        error_section(plan, release.accuracy),
        section("What is promised", _promise(release)),
        section("What is not promised", items(NOT_PROMISED)),
        section("Compute further answers", _further(release)),
    ]
    return page(
        "Release",
        title(plan.workload, "answer", "answers"),
        _lead(release),
        sections,
        _foot(release),
    )


def _lead(release: Release) -> str:
    if release.simulated:
        return "Counts with simulated noise."
    return "Counts of a private table, with noise that protects everybody in it."


def _simulated(release: Release) -> Markup:
    if not release.simulated:
        return Markup("")
    return warning("SIMULATED: the noise was made for a study, and nothing is promised.")


def _key(release: Release, amount: str) -> Markup:
    typical = math.sqrt(float(np.mean(release.standard_errors**2)))
    return key_numbers(
        [
            (
                "answers",
                f"{len(release.names):,}",
                f"over {release.plan.workload.shape[1]:,} cells",
            ),
            ("cost", amount, variant_name(release.privacy)),
            ("typical error", number(typical), "root mean square of an answer"),
            ("protects", release.unit.protected, release.unit.change),
        ]
    )


def _answers(
    release: Release, confidence: float, limit: int, processed: Processed | None
) -> Markup:
    percent = f"{100 * confidence:.4g} %"
    drawn = min(MOST_DRAWN, len(release.names))
    which = "All answers" if drawn == len(release.names) else f"The first {drawn} answers"
    parts = [
        paragraph(
            f"Each answer is the true one plus noise. Its {percent} interval holds the true answer "
            f"with probability {percent}. Answers are not rounded and may be negative where the "
            "truth is small: that keeps them right on average."
        ),
        figure(
            answers_drawing(release, confidence, drawn).inline("answers"),
            f"{which}, with {percent} intervals.",
        ),
        _answer_table(release, confidence, limit, processed),
    ]
    if release.unit.limit is not None:
        parts.insert(
            1, paragraph(f"The true answer is that of a part of the table: {release.unit.limit}.")
        )
    if processed is not None:
        notes = [Markup(f"<b>{name}</b>: {effect}") for name, effect in processed.notes]
        parts += [Markup("<h3>Post-processing</h3>"), paragraph(INTERVALS), items(notes)]
    return section("Answers", *parts)


def _answer_table(
    release: Release, confidence: float, limit: int, processed: Processed | None
) -> Markup:
    rows = []
    for i, (label, row) in enumerate(answer_rows(answer_table(release, confidence), limit)):
        done = [] if processed is None else [_spelt(processed, i, release.standard_errors[i])]
        rows.append((query_label(label), *done, *row))
    columns = list(answer_columns(confidence))
    if processed is not None:
        columns[1:2] = ["processed", "raw answer"]
    total = len(release.names)
    shown = "" if len(rows) == total else f", the first {len(rows):,} of {total:,}"
    return table(f"Answers with standard errors and intervals{shown}", columns, rows)


def _spelt(processed: Processed, i: int, error: float) -> str:
    value = float(processed.answers[i])
    return f"{value:,.0f}" if value == round(value) else beside(value, error)


def _promise(release: Release) -> Markup:
    if release.simulated:
        return warning("Nothing: the noise was simulated.")
    words = promise_sentences(release.privacy, release.unit)
    return Markup(
        promise(words)
        + paragraph(
            "This holds for everything on this page and in the release file together, whatever "
            "else the reader knows, and whatever is computed from it later."
        )
    )


def _further(release: Release) -> Markup:
    bits = release.plan.measured.bits
    return Markup(
        paragraph(
            f"The release file holds {release.plan.measurement_count:,} noisy measurements and the "
            "strategy. Any query that follows from them can be answered at no further cost, with "
            "its error: lrm query does it, and the exported JSON says how to do it without lrm."
        )
        + facts(
            [
                ("measured in steps of", f"2^-{bits}"),
                ("exact noise scale", f"{format_amount(Fraction(release.scale))} steps"),
                ("plan", release.plan.digest),
                ("software", release.software),
            ]
        )
    )


def _foot(release: Release) -> str:
    return f"made with {release.software} · plan {release.plan.digest[:16]}"
