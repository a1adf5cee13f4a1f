"""What a file of answers holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lrm.files.csv_cells import NumberStyle
from lrm.queries.workload.frames import AnswerFrame
from lrm.releases import Release
from lrm.releases.postprocess import Processed


@dataclass(frozen=True, eq=False)
class Export:
    """What is written: all answers of a release, or the table of one statement."""

    release: Release
    statement: str | None = None  # its name, title or number; None for all statements
    confidence: float = 0.95
    processed: Processed | None = None  # answers that are displayed next to the released ones
    style: NumberStyle = field(default_factory=NumberStyle)  # of the numbers of CSV files

    def rows(self) -> Iterator[AnswerFrame]:
        """All answers in the long form, in blocks; or the table of the statement."""
        if self.statement is None:
            return self.release.tables(self.confidence, processed=self.processed)
        return self.frames()

    def names(self) -> list[str]:
        """The names of the tables."""
        return list(self.release) if self.statement is None else [self.statement]

    def frames(self) -> Iterator[AnswerFrame]:
        """The tables of the statements, one at a time."""
        if self.statement is None:
            yield from self.release.frames(self.confidence, processed=self.processed)
            return
        yield self.release.frame(self.statement, self.confidence, processed=self.processed)
