"""Answers as Markdown: the content of the page of a release, or the table of a statement."""

from __future__ import annotations

from pathlib import Path

from lrm.files.writing import write_text
from lrm.views.answers import PUBLIC, frame_table
from lrm.views.blocks import Document, Prose
from lrm.views.markdown import to_markdown
from lrm.views.outputs.export import Export
from lrm.views.release_document import release_document


def write(export: Export, path: Path) -> None:
    """Write a Markdown file, whole or not at all."""
    if export.statement is None:
        document = release_document(
            export.release, confidence=export.confidence, processed=export.processed
        )
        write_text(path, to_markdown(document))
        return
    for frame in export.frames():
        table = frame_table(frame, PUBLIC).table()
        caveats = Prose(tuple(frame.caveat_sentences), "list")
        blocks = (table, Prose((f"{frame.stated['guarantee']}.",)), caveats)
        write_text(path, to_markdown(Document(frame.title, blocks)))
