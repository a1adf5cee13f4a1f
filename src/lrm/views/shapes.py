"""The shapes in which a page shows a statement: lines over time, pyramids, panels, a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lrm.files.spelling import in_percent
from lrm.queries.workload.statements import Column, spoken_name
from lrm.views.answers import MOST_COLUMNS, StatementTable
from lrm.views.blocks import Block, Figure, Table
from lrm.views.charts import Series, line_chart, pyramid
from lrm.views.labels import is_time
from lrm.views.words import UNDECLARED, filled

MOST_PANELS = 12
"""Panels of small multiples."""

LONG = 40
"""Rows of a table that are a long list: a page draws or folds it."""


def statement_blocks(table: StatementTable) -> list[Block]:
    """The statement as a page shows it: a drawing where its shape has one, and its table."""
    drawing = _drawing(table)
    tables: list[Block] = [*_panels(table)] if drawing is None else [table.table(heat=True)]
    return tables if drawing is None else [drawing, *tables]


def _drawing(table: StatementTable) -> Figure | None:
    drawn = _pyramid(table)
    if drawn is None and (curves := usual_curves(table)) is not None:
        drawn = line_figure(table, curves)
    return drawn


def usual_curves(table: StatementTable) -> Curves | None:
    """The lines of a statement along its time, or along a long column of ordered numbers."""
    columns, _ = table.view
    for is_along in (is_time, is_long):
        along = [k for k, column in enumerate(columns) if is_along(column)]
        if len(along) == 1 and len(table.frame) > 2 and not table.frame.note:
            return curves_along(table, along[0])
    return None


def is_long(column: Column) -> bool:
    """Whether a column is of more numbers in order than there is room for bars."""
    return column.kind in {"integer", "number"} and len(column.labels) > LONG


def _series(table: StatementTable, name: str, rows: Sequence[int | None], place: int) -> Series:
    values, low, high = (
        np.array([math.nan if row is None else table.numbers[key][row, place] for row in rows])
        for key in ("answer", "low", "high")
    )
    return Series(name, values, low, high, table.measure(place))


@dataclass(frozen=True, eq=False)
class Curves:
    """The lines of a statement along a column."""

    axis: str  # what the column is
    labels: list[str]
    series: list[Series]
    total: int  # number of lines, of which the largest are here

    @property
    def measures(self) -> list[str]:
        """What the lines are of; those of one measure have one scale."""
        return list(dict.fromkeys(curve.measure for curve in self.series))


def curves_along(table: StatementTable, along: int) -> Curves | None:
    """Lines along a column: one per answer and combination of the other columns.

    Where there are more than `MOST_PANELS`, the largest. Cells of undeclared values, such as
    NULL, have no place along the column; the table has them.
    """
    columns, _ = table.view
    rest = [k for k in range(len(columns)) if k != along]
    texts = [table.texts(column) for column in columns]
    ordered = {k for k, name in enumerate(columns[along].labels) if name not in UNDECLARED}
    positions = {
        group: {code: row for code, row in rows.items() if code in ordered}
        for group, rows in table.rows_by(along).items()
    }
    used = {code for rows in positions.values() for code in rows}
    if len(used) < 2:
        return None
    places = [code for code in range(min(used), max(used) + 1) if code in ordered]
    labels = [texts[along][code] for code in places]
    series = []
    for place, answer in enumerate(table.frame.answers):
        for group, rows in positions.items():
            names = [texts[k][code] for k, code in zip(rest, group, strict=True)]
            if len(table.frame.answers) > 1:
                names.insert(0, spoken_name(answer))
            series.append(_series(table, ", ".join(names), [rows.get(c) for c in places], place))
    drawn = [curve for curve in series if np.isfinite(curve.values).any()]
    if not drawn:
        return None
    total = len(drawn)
    if total > MOST_PANELS:
        drawn = sorted(drawn, key=lambda curve: -float(np.nanmean(curve.values)))[:MOST_PANELS]
    return Curves(spoken_name(columns[along].name), labels, drawn, total)


def line_figure(table: StatementTable, curves: Curves) -> Figure:
    """Lines with bands, one panel each."""
    labels, style = curves.labels, table.setting.style
    words = filled(table.words["lines"], title=table.title, first=labels[0], last=labels[-1])
    caption = filled(table.words["band"], percent=style.shown(in_percent(table.frame.confidence)))
    if len(curves.series) < curves.total:
        most = {"most": f"{len(curves.series)}", "count": f"{curves.total}"}
        caption += " " + filled(table.words["largest"], **most)
    return Figure(line_chart(labels, curves.series, words, curves.axis, style), words, caption)


def _pyramid(table: StatementTable) -> Figure | None:
    """Bars back to back, for a column of two labels and one of ordered numbers."""
    columns, codes = table.view
    if len(columns) != 2 or len(table.frame.answers) != 1 or any(map(is_time, columns)):
        return None
    pair = [k for k in (0, 1) if len(columns[k].labels) == 2]
    if len(pair) != 1 or (codes < 0).any() or table.frame.note:
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
    words = filled(table.words["sides"], title=table.title, first=left.name, last=right.name)
    ages = [texts[1 - side][code] for code in used]
    names = spoken_name(columns[1 - side].name), table.measure(0)
    drawn = pyramid(ages, left, right, words, names, style=table.setting.style)
    return Figure(drawn, words)


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
        part = replace(table, frame=table.frame.taken(rows), columns=view)
        made = part.table(heat=True)
        yield replace(made, panel=f"{columns[0].name} {texts[code]}")
