"""The rows that limits per person leave out, and the noise of a count under each limit."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from lrm.files.spelling import number
from lrm.releases.limits import RowLimits
from lrm.views.blocks import Document, Prose, plain_table


def limits_facts(limits: RowLimits) -> dict[str, Any]:
    """The limits as values that JSON can hold."""
    return {
        "table": limits.table.name,
        "cap": limits.cap,
        "confidence": limits.confidence,
        "privacy": limits.release.privacy.facts,
        "limits": [
            {**asdict(limit), "error_of_a_count": limit.most * math.sqrt(2.0)} for limit in limits
        ],
    }


def limits_document(limits: RowLimits) -> Document:
    """The limits as a table."""
    rows = []
    for limit in limits:
        half = (limit.high - limit.low) / 2
        share = 50 * (limit.share_high - limit.share_low)
        rows.append(
            (
                f"{limit.most:,}",
                f"{number(limit.left_out)} ± {number(half)}",
                f"{100 * limit.share:.1f} % ± {share:.1f} %",
                number(limit.most * math.sqrt(2.0)),
            )
        )
    columns = ("at most", "rows left out", "share of rows", "error of a count at ε = 1")
    table = plain_table(f"Rows of {limits.table.name} per person", columns, rows, words=())
    guarantee = limits.release.stated["guarantee"]
    sentences = (
        f"{guarantee}; rows beyond {limits.cap:,} of a person are not counted",
        "a number per person, such as a clipped sum, loses no rows: prefer one where it will do",
    )
    return Document("", (table, Prose(sentences)))
