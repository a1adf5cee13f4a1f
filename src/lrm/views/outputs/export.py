"""What a file of answers holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lrm.queries.workload.frames import AnswerFrame
from lrm.releases import Release
from lrm.releases.postprocess import Processed


@dataclass(frozen=True, eq=False)
class Export:
    """What is written: all answers of a release, or the table of one statement."""

    release: Release
    statement: str | None = None  # its name, title or number; None for all statements
    confidence: float = 0.95
    processed: Processed | None = None  # answers that stand beside the released ones

    def frames(self) -> Iterator[AnswerFrame]:
        """The tables of the statements, one at a time."""
        if self.statement is None:
            yield from self.release.frames(self.confidence, processed=self.processed)
            return
        yield self.release.frame(self.statement, self.confidence, processed=self.processed)
