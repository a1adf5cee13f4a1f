"""Answers as a page: all that a release states, or the table of a statement."""

from __future__ import annotations

from pathlib import Path

from lrm.files.spelling import sentence
from lrm.files.writing import write_text
from lrm.views.answers import PUBLIC, frame_table
from lrm.views.blocks import Document, Prose
from lrm.views.html import page
from lrm.views.outputs.export import Export
from lrm.views.release_page import write_release_page
from lrm.views.shapes import statement_blocks


def write(export: Export, path: Path) -> None:
    """Write one HTML page, and a file of all answers where the page does not list all."""
    if export.statement is None:
        write_release_page(export.release, path, export.confidence, processed=export.processed)
        return
    for frame in export.frames():
        table = frame_table(frame, PUBLIC)
        caveats = Prose(tuple(sentence(words) for words in frame.caveat_sentences), "note")
        section = Document("Answers", (*statement_blocks(table), caveats))
        document = Document(frame.title, note=frame.stated["guarantee"], parts=(section,))
        write_text(path, page(document, "Rehearsal" if frame.simulated else "Release"))
