"""Answers as JSON: everything that a release states, or the table of a statement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lrm.files.writing import write_text
from lrm.queries.workload.frames import AnswerFrame
from lrm.views.outputs.export import Export
from lrm.views.releases import release_facts


def write(export: Export, path: Path) -> None:
    """Write all facts of a release, or those of one statement, whole or not at all."""
    if export.statement is None:
        facts = release_facts(export.release, export.confidence, processed=export.processed)
    else:
        (facts,) = map(frame_facts, export.frames())
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def frame_facts(frame: AnswerFrame) -> dict[str, Any]:
    """The table of a statement as values that JSON can hold: columns, rows and caveats.

    An infinite end of an interval is a text.
    """
    return {
        "statement": frame.name,
        "title": frame.title,
        "simulated": frame.simulated,
        "confidence": frame.confidence,
        "columns": frame.header,
        "rows": [
            [str(value) if value in _INFINITE else value for value in row]
            for row in frame.plain_rows()
        ],
        "note": frame.note,
        "caveats": [entry.facts for entry in frame.caveats],
    }


_INFINITE = (float("inf"), float("-inf"))
