"""The page of a release: answers with their errors, the promise, and its limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from lrm.privacy.amounts import format_amount
from lrm.privacy.budget import PureDP
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
from lrm.report.errors import error_section
from lrm.report.figures import draw_answers
from lrm.report.page import page
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
        section("What it cost", _cost(release)),
        error_section(plan, release.accuracy, amount),
        section("What is promised", _promise(release)),
        section("What is not promised", items(NOT_PROMISED)),
        section("Compute further answers", _further(release)),
    ]
    return page("Release", _title(release), _lead(release), sections, _foot(release))


def _title(release: Release) -> str:
    domain = release.plan.workload.domain
    count = len(release.names)
    about = f" about {domain.table}" if domain and domain.table else ""
    return f"{count:,} {'answer' if count == 1 else 'answers'}{about}"


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
            draw_answers(release, confidence, drawn),
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
    count = min(limit, len(release.names))
    intervals = release.intervals(confidence)
    labels = release.plan.workload.labels
    rows = []
    for i in range(count):
        error, (low, high) = float(release.standard_errors[i]), intervals[i]
        row = [
            query_label(labels[i]),
            beside(float(release.answers[i]), error),
            number(error, 3),
            f"{beside(low, error)} … {beside(high, error)}",
        ]
        if processed is not None:
            row.insert(1, _spelt(processed, i, error))
        rows.append(row)
    columns = ["query", "answer", "standard error", f"{100 * confidence:.4g} % interval"]
    if processed is not None:
        columns[1:2] = ["processed", "raw answer"]
    shown = (
        "" if count == len(release.names) else f", the first {count:,} of {len(release.names):,}"
    )
    return table(f"Answers with standard errors and intervals{shown}", columns, rows)


def _spelt(processed: Processed, i: int, error: float) -> str:
    value = float(processed.answers[i])
    return f"{value:,.0f}" if value == round(value) else beside(value, error)


def _cost(release: Release) -> Markup:
    plan = release.plan
    parameter = "ε" if isinstance(release.privacy, PureDP) else "ρ"
    loss = f"{parameter} = {float(release.loss):.10g}"
    unit = 2.0**-plan.measured.bits
    pairs = [
        ("promise", f"{variant_name(release.privacy)}, {parameter_words(release.privacy)}"),
        ("loss of the noise drawn", f"{loss}, by the sampler's own privacy map"),
        ("who is protected", release.unit.protected),
        ("against", f"being {release.unit.change}"),
        ("mechanism", f"{plan.mechanism}, {plan.measurement_count:,} noisy measurements"),
        ("noise", f"{release.distribution} of scale {number(release.scale * unit)} on each"),
        (
            "computer arithmetic",
            "integers and an exact sampler: floating-point numbers come after the noise",
        ),
    ]
    if release.ledger_head:
        pairs.append(("ledger", f"paid before data was read; head {release.ledger_head}"))
    return facts(pairs)


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
