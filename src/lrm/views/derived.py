"""Derived answers in words: how they follow, and their errors before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from lrm.files.spelling import in_percent, number
from lrm.planning.accuracy import Accuracy
from lrm.planning.derived import expected_error
from lrm.planning.plan import Plan
from lrm.queries.workload import Computed, Derived, Workload
from lrm.views.blocks import Block, Prose, plain_table


def derived_facts(workload: Workload) -> list[dict[str, Any]]:
    """How each derived answer follows from linear ones, for programs."""
    return [
        {
            "query": derived_answer.label.query,
            "groups": list(derived_answer.label.attributes),
            "formula": _formula(derived_answer, workload),
            "inputs": _inputs(derived_answer, workload),
            "note": derived_answer.note or None,
        }
        for derived_answer in workload.derived
    ]


def derived_notes(derived: Iterable[Derived]) -> list[str]:
    """What must be known in addition to the noise, once for each answer that it holds for."""
    notes = {f"{answer.label.query}: {answer.note}": None for answer in derived if answer.note}
    return list(notes)


def _inputs(derived_answer: Derived, workload: Workload) -> list[str]:
    """The names of the linear queries, in the first group."""
    blocks = (
        derived_answer.inputs if isinstance(derived_answer, Computed) else (derived_answer.totals,)
    )
    return [workload.labels[block.start].name for block in blocks]


def _formula(derived_answer: Derived, workload: Workload) -> str:
    if isinstance(derived_answer, Computed):
        names = [
            name if block.scale == 1.0 else f"{block.scale:.12g} * {name}"
            for block, name in zip(
                derived_answer.inputs, _inputs(derived_answer, workload), strict=True
            )
        ]
        return derived_answer.formula.text(names)
    return f"quantile {derived_answer.level:g} of {derived_answer.attribute}, from running totals"


def expected_facts(
    plan: Plan, expected: Accuracy, confidence: float, expect: float | None
) -> list[dict[str, Any]]:
    """The errors of derived answers, as values that JSON can hold.

    They are for ``expect`` rows, or for those of the statement (``-- expected: 500``). Where no
    number of rows is expected, those of rates and quantiles are to be divided by it.
    """
    facts = []
    batch = plan.workload
    for derived_answer, stated in zip(batch.derived, batch.expected_rows, strict=True):
        rows = stated if expect is None else expect
        error = expected_error(derived_answer, batch.queries, expected, confidence, rows)
        facts.append(
            {
                "query": derived_answer.label.query,
                "groups": list(derived_answer.label.attributes),
                "standard_error": error.standard_error,
                "half_width": error.half_width,
                "of": "answer" if isinstance(derived_answer, Computed) else "rank",
                "divided_by_rows": error.per_row_count,
                "rows": rows,
                "note": derived_answer.note or None,
            }
        )
    return facts


def expected_rows(
    plan: Plan, expected: Accuracy, confidence: float, expect: float | None
) -> list[tuple[str, str, str]]:
    """The largest error of each name, as text; n is the number of rows of a denominator."""
    largest: dict[str, dict[str, Any]] = {}
    for fact in expected_facts(plan, expected, confidence, expect):
        groups = ", ".join(fact["groups"])
        name = f"{fact['query']} by {groups}" if groups else fact["query"]
        if name not in largest or fact["half_width"] > largest[name]["half_width"]:
            largest[name] = fact
    rows = []
    for name, fact in largest.items():
        divided = "/n" if fact["divided_by_rows"] else ""
        error = "—" if fact["standard_error"] is None else number(fact["standard_error"]) + divided
        of = " of the rows" if fact["of"] == "rank" else ""
        half = f"±{number(fact['half_width'])}{divided}{of}"
        if math.isinf(fact["half_width"]):
            half = "depends on the answer"
        rows.append((name, error, half))
    return rows


def expected_blocks(
    plan: Plan, expected: Accuracy, confidence: float, expect: float | None = None
) -> list[Block]:
    """The errors of derived answers, where there are some."""
    rows = expected_rows(plan, expected, confidence, expect)
    if not rows:
        return []
    columns = ("derived answer", "standard error", f"{in_percent(confidence)} interval")
    rows_text = (
        "n is that number; `lrm explain --expect` takes one"
        if expect is None
        else f"{number(expect)} rows"
    )
    note = f"largest errors for the rows in a denominator ({rows_text})"
    return [
        plain_table("", columns, rows, words=columns[:1]),
        Prose((note, *derived_notes(plan.workload.derived))),
    ]
