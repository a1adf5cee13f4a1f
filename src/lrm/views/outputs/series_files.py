"""Files of a series: its page, or the tables of its statements over all editions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from lrm.errors import UsageError
from lrm.files.writing import write_text, writing
from lrm.queries.workload.frames import AnswerFrame
from lrm.releases.core import Release
from lrm.releases.series import Series
from lrm.views.markdown import to_markdown
from lrm.views.outputs import is_folder
from lrm.views.outputs.csv_files import frame_csv, safe_names
from lrm.views.outputs.json_file import frame_facts
from lrm.views.outputs.workbook import MOST_NAME, write_sheets
from lrm.views.series_page import series_document, write_series_page

ENDINGS = (".html", ".md", ".json", ".xlsx")
"""Of files that hold a whole series."""

TABLES = (".csv", ".parquet", ".json", ".xlsx")
"""Of files that hold the table of one statement."""


def write_series_files(
    series: Series,
    path: str | os.PathLike[str],
    confidence: float = 0.95,
    statement: str | None = None,
) -> None:
    """Write a series to a file, or to a folder of one CSV file per statement."""
    place = Path(path)
    frames = _Frames(series, confidence, statement)
    if is_folder(path):
        place.mkdir(parents=True, exist_ok=True)
        for name, frame in frames.named(100):
            write_text(place / f"{name}.csv", frame_csv(frame))
        return
    ending = check_series_ending(path, statement)
    if ending == ".html":
        write_series_page(series, path, confidence)
    elif ending == ".md":
        write_text(place, to_markdown(series_document(series, confidence)))
    elif ending == ".json":
        write_text(place, json.dumps(series_facts(frames), indent=1, ensure_ascii=False) + "\n")
    elif ending == ".xlsx":
        write_sheets(frames.named(MOST_NAME), place, simulated=series.simulated)
    else:
        _write_table(frames, place, ending)


def check_series_ending(path: str | os.PathLike[str], statement: str | None = None) -> str:
    """The ending of a file that can hold a series, or one of its statements."""
    ending = PurePath(os.fspath(path)).suffix.lower()
    known = ENDINGS if statement is None else TABLES
    if ending not in known:
        more = "" if statement else "; one statement of it also to .csv and .parquet"
        raise UsageError(
            f"a series is written to a file ending in {', '.join(known)}, or to a folder of CSV "
            f"files{more}; not to {os.fspath(path)!r}"
        )
    return ending


class _Frames:
    """The tables that are written."""

    def __init__(self, series: Series, confidence: float, statement: str | None) -> None:
        self.series, self.confidence = series, confidence
        self.names = list(series) if statement is None else [statement]

    def __iter__(self) -> Iterator[AnswerFrame]:
        return (self.series.frame(name, self.confidence) for name in self.names)

    def named(self, most: int) -> Iterator[tuple[str, AnswerFrame]]:
        """Each table with a name that files and sheets may have."""
        return zip(safe_names(self.names, most), self, strict=True)


def series_facts(frames: _Frames) -> dict[str, Any]:
    """The editions and tables of a series, as JSON can hold them."""
    series = frames.series
    return {
        "format": "lrm-series",
        "version": 1,
        "simulated": series.simulated,
        "confidence": frames.confidence,
        "unit": series.each[-1].unit.facts,
        "editions": [
            {
                "edition": name,
                "privacy": release.privacy.facts,
                "loss": str(release.loss),
                **_together(release),
                "plan_digest": release.plan.digest,
                "ledger_head": release.ledger_head,
            }
            for name, release in zip(series.names, series.each, strict=True)
        ],
        "statements": [frame_facts(frame) for frame in frames],
    }


def _together(release: Release) -> dict[str, Any]:
    """The guarantee of a release and of the discoveries before it, where there were any."""
    guarantee = release.whole.guarantee
    return {} if guarantee is None else {"together": guarantee.facts}


def _write_table(frames: _Frames, place: Path, ending: str) -> None:
    (frame,) = frames
    if ending == ".csv":
        write_text(place, frame_csv(frame))
        return
    import pyarrow.parquet as pq  # noqa: PLC0415 - 0.1 s, for those who ask

    with writing(place) as file:
        pq.write_table(frame.to_arrow(), file)
