"""The answers of a release beside their labels, as numbers and as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from lrm.releases import Release
from lrm.releases.postprocess import Processed
from lrm.releases.shown import shown_values
from lrm.spelling import beside, number
from lrm.workload import AnswerTable, Label

__all__ = ["answer_columns", "answer_rows", "answer_table"]


def answer_table(
    release: Release, confidence: float, processed: Processed | None = None
) -> AnswerTable:
    """Answers, standard errors, intervals; processed answers too where there are some."""
    table = release.table(confidence)
    if processed is None:
        return table
    values = shown_values(release, processed.answers)
    return replace(table, numbers={**table.numbers, "processed": values})


def answer_columns(confidence: float) -> tuple[str, ...]:
    """Titles of what `answer_rows` returns."""
    return ("query", "answer", "standard error", f"{100 * confidence:.4g} % interval")


def answer_rows(
    table: AnswerTable, positions: Iterable[int]
) -> list[tuple[Label, tuple[str, ...]]]:
    """Some answers: label, then answer, standard error and interval to their digits."""
    rows: list[tuple[Label, tuple[str, ...]]] = []
    for i in positions:
        answer, error, low, high = (
            float(table.numbers[name][i]) for name in ("answer", "standard_error", "low", "high")
        )
        interval = f"{_end(low, error)} … {_end(high, error)}"
        if math.isinf(low) and math.isinf(high):
            interval = "unbounded"
        rows.append((table.labels[i], (beside(answer, error), number(error), interval)))
    return rows


def _end(value: float, error: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return beside(value, error)
