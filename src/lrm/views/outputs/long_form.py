"""All answers of a release, one row each, in blocks: memory does not follow their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lrm.queries.maps.linear import Floats
from lrm.queries.workload import LabelColumns, Span, spans_of
from lrm.queries.workload.label_columns import Codes
from lrm.queries.workload.layout import StatementIndex
from lrm.queries.workload.statements import group_columns
from lrm.releases import Release
from lrm.releases.core import shown_values
from lrm.views.outputs.export import Export


@dataclass(frozen=True, eq=False)
class AnswerBlock:
    """Some consecutive answers."""

    spans: Sequence[Span]  # their labels
    statements: Codes  # the place of the statement that each is of; −1 for none
    numbers: dict[str, Floats]  # ``answer``, ``standard_error``, ``low``, ``high``, ``processed``


def long_blocks(export: Export) -> Iterator[AnswerBlock]:
    """Yield all shown answers, in order."""
    release, batch = export.release, export.release.plan.workload
    processed = None
    if export.processed is not None:
        processed = shown_values(release, export.processed.answers)
    ranges = list(release.shown_blocks())
    index = StatementIndex.of(batch)
    for (start, stop), spans in zip(ranges, spans_of(batch.shown, ranges), strict=True):
        numbers = release.shown_numbers(start, stop, export.confidence)
        if processed is not None:
            numbers["processed"] = processed[start:stop]
        yield AnswerBlock(spans, index.codes(start, stop), numbers)


def long_columns(release: Release, spell: Callable[[str], str] = str) -> LabelColumns:
    """The columns of groups of all answers; ``spell`` is done to each text."""
    batch = release.plan.workload
    return LabelColumns(batch.shown.blocks, group_columns(batch.tables), spell)


def statement_names(release: Release) -> list[str]:
    """The names of all statements."""
    return [statement.name for statement in release.plan.workload.tables]
