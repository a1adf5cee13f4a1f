"""What a plan says about the tolerances of its statements."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lrm.plans.tolerances import Met, Tolerance
from lrm.privacy.amounts import spell_amount
from lrm.spelling import number
from lrm.views.blocks import Block, Facts, Prose, plain_table
from lrm.views.statement_errors import part_title


def met_facts(met: Met) -> dict[str, Any]:
    """The least amount, and the interval of each tolerance at it, as JSON holds them."""
    return {
        **met.privacy.facts,
        "confidence": met.confidence,
        "tolerances": [
            {
                "statement": tolerance.statement.name,
                "answer": tolerance.name,
                "within": tolerance.within,
                "half_width": ratio * tolerance.within,
                "determines": tolerance in met.determining,
            }
            for tolerance, ratio in zip(met.tolerances, met.ratios, strict=True)
        ],
    }


def met_blocks(met: Met) -> list[Block]:
    """The same as a line, a table and a sentence."""
    ((name, amount),) = met.privacy.amounts.items()
    percent = f"{100 * met.confidence:.4g} %"
    # Tables of one name, such as those of several grouping sets, are one row.
    named: dict[tuple[str, str], tuple[float, Tolerance]] = {}
    for tolerance, ratio in zip(met.tolerances, met.ratios, strict=True):
        key = tolerance.statement.name, tolerance.name
        if key not in named or named[key][0] < ratio:
            named[key] = ratio, tolerance
    counts = Counter(statement for statement, _ in named)
    rows = []
    for ratio, tolerance in named.values():
        several = counts[tolerance.statement.name] > 1
        rows.append(
            (
                part_title(tolerance.statement.title, tolerance.name if several else ""),
                number(tolerance.within),
                f"±{number(ratio * tolerance.within)}",
                "determines it" if tolerance in met.determining else "",
            )
        )
    noted = [answer for _, tolerance in named.values() for answer in tolerance.derived]
    notes = {f"{answer.label.query}: {answer.note}": None for answer in noted if answer.note}
    line = f"{name} {spell_amount(amount, 'up')} meets all tolerances with {percent} intervals"
    return [
        Facts((("least amount", line),)),
        plain_table("", ("answers", "within", f"{percent} interval", ""), rows, words=("",)),
        Prose(("wider tolerances for what determines it lower the amount", *notes)),
    ]
