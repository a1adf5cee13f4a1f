"""Lays the answers of a batch out: a statement as a table, or all answers one below the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lrm.queries.workload.core import Workload
from lrm.queries.workload.finding import (
    Span,
    StatementIndex,
    derived_place,
    linear_spans,
    shown_place,
    spans_of,
)
from lrm.queries.workload.frames import AnswerFrame
from lrm.queries.workload.label_columns import LabelCoder, query_column
from lrm.queries.workload.labels import Labels
from lrm.queries.workload.statements import Column, Statement, group_columns


def layout_of(batch: Workload, statement: Statement, most: int | None = None) -> AnswerFrame:
    """Lay out a statement, or the first ``most`` of its answers where it has more."""
    if not statement.answers:
        return _list_layout(batch, statement, most)
    start, stop = statement.rows
    if most is not None:
        stop = min(stop, start + most)
    spans = linear_spans(batch, start, stop)
    places = [shown_place(batch, start)]
    for span in spans[:-1]:
        places.append(places[-1] + len(span))
    before = derived_place(batch, statement)
    for derived_answer in batch.derived[slice(*statement.derived)]:
        spans.append(Span(derived_answer.label, 0, derived_answer.label.count))
        places.append(before)
        before += derived_answer.label.count
    return _joined(batch, statement, spans, places[-len(spans) :] if spans else [])


def _list_layout(batch: Workload, statement: Statement, most: int | None) -> AnswerFrame:
    start, stop = statement.rows
    stop = stop if most is None else min(stop, start + most)
    names = tuple(label.name for label in batch.labels[start:stop])
    rows = np.arange(len(names), dtype=np.int64)[:, None]
    place = shown_place(batch, start)
    columns = (Column("query", labels=names),)
    return AnswerFrame(batch, columns, ("answer",), rows, rows + place, statement)


def _joined(
    batch: Workload, statement: Statement, spans: Sequence[Span], places: Sequence[int]
) -> AnswerFrame:
    coder = LabelCoder.of([span.block for span in spans], statement.columns)
    coded = {column.name: k for k, column in enumerate(coder.columns)}
    chosen = [coded.get(column.name) for column in statement.columns]
    columns = tuple(
        column if k is None else coder.columns[k]
        for k, column in zip(chosen, statement.columns, strict=True)
    )
    names = {name: place for place, name in enumerate(statement.answers)}
    answers, positions = [], []
    for span, place in zip(spans, places, strict=True):
        answers.append(np.full(len(span), names.setdefault(span.block.query, len(names))))
        positions.append(np.arange(place, place + len(span)))
    codes = coder.codes(spans)
    every = np.full((len(codes), len(columns)), -1, dtype=np.int64)
    for place, k in enumerate(chosen):
        if k is not None:
            every[:, place] = codes[:, k]
    # A total comes after the groups that it adds up.
    last = np.where(every < 0, [len(column.labels) for column in columns], every)
    order = np.lexsort([np.zeros(len(last)), *last.T[::-1]])  # a fifth of the time of np.unique
    first = np.any(np.diff(last[order], axis=0, prepend=-1) != 0, axis=1)
    first[:1] = True  # of a table without columns of groups
    rows, inverse = last[order[first]], np.empty_like(order)
    inverse[order] = np.cumsum(first) - 1
    table_positions = np.full((len(rows), len(names)), -1, dtype=np.int64)
    table_positions[inverse, np.concatenate(answers)] = np.concatenate(positions)
    rows[rows == [len(column.labels) for column in columns]] = -1
    return AnswerFrame(batch, columns, tuple(names), rows, table_positions, statement)


LONG = ("",)
"""The answers of the long form: one without a name, in as many rows as there are answers."""


def long_frame(
    batch: Workload, answers: tuple[Labels, Sequence[tuple[int, int]]] | None = None
) -> AnswerFrame:
    """Lay out the shown answers of a batch, one below the other, or some of them.

    ``answers`` are their labels and the ranges of their positions, as `find_answers` returns them.
    """
    labels, ranges = answers or (batch.shown, [(0, len(batch.shown))])
    names = set(labels.query_names())
    tables = (entry for entry in batch.tables if names.intersection(entry.answers))
    coder = LabelCoder.of(labels.blocks, group_columns(tables))
    spans = next(spans_of(labels, [(0, len(labels))]))
    return _long(batch, coder, StatementIndex.of(batch), spans, ranges)


def long_frames(batch: Workload, ranges: Iterable[tuple[int, int]]) -> Iterator[AnswerFrame]:
    """Lay out all shown answers in blocks, which have the same columns of groups."""
    blocks = list(ranges)
    coder = LabelCoder.of(batch.shown.blocks, group_columns(batch.tables))
    index = StatementIndex.of(batch)
    for block, spans in zip(blocks, spans_of(batch.shown, blocks), strict=True):
        yield _long(batch, coder, index, spans, [block])


def _long(
    batch: Workload,
    coder: LabelCoder,
    index: StatementIndex,
    spans: Sequence[Span],
    ranges: Sequence[tuple[int, int]],
) -> AnswerFrame:
    statements = [index.codes(start, stop) for start, stop in ranges]
    queries, codes = query_column(spans)
    columns = (Column("statement", labels=index.names), *coder.columns, queries)
    table = np.column_stack([np.concatenate(statements), coder.codes(spans), codes])
    positions = np.concatenate([np.arange(start, stop) for start, stop in ranges])[:, None]
    return AnswerFrame(batch, columns, LONG, table, positions, spans=tuple(spans))
