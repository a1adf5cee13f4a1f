"""The shapes in which a page shows a statement: lines over time, pyramids, panels, a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lrm.files.spelling import in_percent
from lrm.queries.workload.statements import spoken_name
from lrm.views.answers import MOST_COLUMNS, StatementTable
from lrm.views.blocks import Block, Figure, Table
from lrm.views.charts import Series, line_chart, pyramid
from lrm.views.labels import is_time
from lrm.views.words import filled

MOST_PANELS = 12
"""Panels of small multiples."""


def statement_blocks(table: StatementTable) -> list[Block]:
    """The statement as a page shows it: a drawing where its shape has one, and its table."""
    columns, _ = table.view
    time = [k for k, column in enumerate(columns) if is_time(column)]
    drawing: Figure | None = None
    if len(time) == 1 and not table.frame.note and len(table.frame) > 2:
        drawing = _lines(table, time[0])
    elif len(columns) == 2 and len(table.frame.answers) == 1 and not table.frame.note:
        drawing = _pyramid(table)
    tables: list[Block] = [*_panels(table)] if drawing is None else [table.table(heat=True)]
    return tables if drawing is None else [drawing, *tables]


def _series(table: StatementTable, name: str, rows: Sequence[int | None], place: int) -> Series:
    values, low, high = (
        np.array([math.nan if row is None else table.numbers[key][row, place] for row in rows])
        for key in ("answer", "low", "high")
    )
    return Series(name, values, low, high, table.measure(place))


def _lines(table: StatementTable, time: int) -> Figure | None:
    """Lines over time with bands: one panel per combination of the other columns."""
    columns, _ = table.view
    rest = [k for k in range(len(columns)) if k != time]
    texts = [table.texts(column) for column in columns]
    timed = {
        group: {code: row for code, row in rows.items() if code >= 0}
        for group, rows in table.rows_by(time).items()
    }
    positions = {group: rows for group, rows in timed.items() if rows}
    answers = table.frame.answers
    if not positions or len(positions) * len(answers) > MOST_PANELS:
        return None
    used = sorted({code for rows in positions.values() for code in rows})
    labels = [texts[time][code] for code in used]
    series = []
    for place, answer in enumerate(answers):
        for group, rows in positions.items():
            names = [texts[k][code] for k, code in zip(rest, group, strict=True)]
            if len(answers) > 1:
                names.insert(0, spoken_name(answer))
            series.append(
                _series(table, ", ".join(names), [rows.get(code) for code in used], place)
            )
    title = table.statement.title
    words = filled(table.words["lines"], title=title, first=labels[0], last=labels[-1])
    percent = f"{in_percent(table.frame.confidence)} intervals"
    drawn = line_chart(labels, series, words, spoken_name(columns[time].name))
    return Figure(drawn, words, f"The band shows {percent}.")


def _pyramid(table: StatementTable) -> Figure | None:
    """Bars back to back, for a column of two labels and one of ordered numbers."""
    columns, codes = table.view
    pair = [k for k in (0, 1) if len(columns[k].labels) == 2]
    if len(pair) != 1 or (codes < 0).any():
        return None
    side = pair[0]
    labels = columns[1 - side].labels
    if len(labels) < 4 or not all(label.lstrip("[-")[:1].isdigit() for label in labels):
        return None
    texts = [table.texts(column) for column in columns]
    sides = table.rows_by(1 - side)
    if len(sides) < 2:
        return None
    used = sorted({code for rows in sides.values() for code in rows})
    left, right = (
        _series(table, texts[side][code], [rows.get(k) for k in used], 0)
        for (code,), rows in sorted(sides.items())
    )
    title = table.statement.title
    words = filled(table.words["sides"], title=title, first=left.name, last=right.name)
    ages = [texts[1 - side][code] for code in used]
    names = spoken_name(columns[1 - side].name), table.measure(0)
    return Figure(pyramid(ages, left, right, words, names), words)


def _panels(table: StatementTable) -> Iterator[Table]:
    """One table; or one per label of the first column, where there are three columns."""
    columns, codes = table.view
    across = table.across(MOST_COLUMNS)
    labels = sorted(set(codes[:, 0].tolist()), key=lambda c: (c < 0, c)) if columns else []
    if across is None or len(columns) < 3 or across == 0 or len(labels) > MOST_PANELS:
        yield table.table(heat=True)
        return
    texts = table.texts(columns[0])
    for code in labels:
        rows = np.flatnonzero(codes[:, 0] == code)
        view = columns[1:], codes[rows, 1:]
        part = replace(table, frame=table.frame.taken(rows))
        part.__dict__["view"] = view
        made = part.table(heat=True)
        yield replace(made, panel=f"{columns[0].name} {texts[code]}")
