"""The answers of a release: a part per statement, tables as bars with intervals and heat maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from urllib.parse import quote

import numpy as np

from lrm.spelling import beside, many, number
from lrm.views.answers import answer_columns, answer_rows
from lrm.views.batches import group_label, query_label
from lrm.views.displays import Shown
from lrm.views.elements import Markup, details, paragraph, search_box, small, table, text
from lrm.views.tables import Statement, Table, statements
from lrm.workload import AnswerTable, Label

__all__ = ["answer_parts"]

MOST_COLUMNS = 20
"""Columns of a heat map; longer tables are lists."""

MOST_LAYERS = 60
"""Two-way tables that a table of more attributes is shown as."""

OPEN, MOST_OPEN = 60, 240
"""Answers of a statement that is not folded, and of all of them."""

FEW = 12
"""Answers that nobody needs to search."""


def answer_parts(  # noqa: PLR0913 - each is a choice of the page
    answers: AnswerTable,
    confidence: float,
    limit: int,
    file: str | None,
    shown: Sequence[Shown] = (),
    *,
    beyond: int = 0,
) -> Markup:
    """All statements with at most ``limit`` answers; ``file`` beside the page has the rest.

    What statements display (``shown``) comes first, and all answers after it. ``beyond`` is the
    number of answers that are not among ``answers``.
    """
    drawn = _Answers(answers, confidence)
    parts = [search_box("Search answers")] if min(len(answers), limit) > FEW else []
    parts += [drawn.displayed(one, limit) for one in shown]
    room, opened = limit, MOST_OPEN
    every = statements(answers.labels)
    for place, statement in enumerate(every):
        if room <= 0:
            tables = sum(len(left.tables) for left in every[place:])
            verb = "is" if tables == 1 else "are"
            more = f"{many(tables, 'more table', 'more tables')} {verb} {_kept(file)}."
            parts.append(paragraph(Markup(more)))
            break
        count = len(statement.positions)
        folded = min(count, room) > min(OPEN, opened)
        opened -= 0 if folded else count
        parts.append(drawn.statement(statement, room, folded=folded, file=file))
        room -= count
    if beyond:
        more = f"{many(beyond, 'more answer is', 'more answers are')} {_kept(file)}."
        parts.append(paragraph(Markup(more)))
    return Markup("\n".join(parts))


def _kept(file: str | None) -> Markup:
    if file is None:
        return Markup("not listed here: lrm show --csv writes all answers")
    link = f'<a href="{escape(quote(file))}" download>{text(file)}</a>'
    return Markup(f"in {link}, which has all answers")


@dataclass(frozen=True, eq=False)
class _Answers:
    """Draws parts of one batch of answers."""

    answers: AnswerTable
    confidence: float

    def statement(
        self, statement: Statement, room: int, *, folded: bool, file: str | None
    ) -> Markup:
        """A part that can be folded, with its tables as far as there is room."""
        errors = self.answers.numbers["standard_error"][statement.positions]
        known = errors[np.isfinite(errors)]  # a quantile has none
        count = len(statement.positions)
        note = many(count, "answer", "answers")
        if len(known):
            note += f", typical error {number(float(np.sqrt(np.mean(known**2))))}"
        body = []
        for one in statement.tables:
            if room <= 0:
                break
            body.append(self.table(one, room))
            room -= len(one.positions)
        if room < 0 or len(body) < len(statement.tables):
            body.append(paragraph(Markup(f"Further answers are {_kept(file)}.")))
        return details(statement.title, note, Markup("\n".join(body)), folded=folded)

    def displayed(self, shown: Shown, room: int) -> Markup:
        """The answers that a statement displays, in its order."""
        body = []
        for query, positions in shown.positions.items():
            if positions:
                axes = tuple((name, ()) for name, _ in self.answers.labels[positions[0]].group)
                body.append(self.bars(Table(query, axes, positions), room))
        title = f"{', '.join(shown.display.queries)}: {shown.display}"
        return details(title, shown.note, Markup("\n".join(body)), folded=False)

    def table(self, one: Table, room: int) -> Markup:
        """A heat map of two attributes, several of more, and a list of bars of others."""
        axes = one.axes
        columns = [self.answers.numbers[name] for name in ("answer", "low", "high")]
        bounded = all(np.isfinite(column[one.positions]).all() for column in columns)
        if len(one.positions) > room or len(axes) < 2 or not bounded:
            return self.bars(one, room)
        layers = math.prod(len(labels) for _, labels in axes[:-2])
        if layers > MOST_LAYERS or min(len(labels) for _, labels in axes[-2:]) > MOST_COLUMNS:
            return self.bars(one, room)
        size = len(one.positions) // layers
        largest = max(float(self.answers.numbers["answer"][one.positions].max()), 0.0) or 1.0
        parts = []
        for layer, row in enumerate(product(*(labels for _, labels in axes[:-2]))):
            group = tuple(zip((name for name, _ in axes[:-2]), row, strict=True))
            positions = one.positions[layer * size : (layer + 1) * size]
            title = one.title if not group else ", ".join(f"{name} = {x}" for name, x in group)
            parts.append(self.heat(Table(title, axes[-2:], positions), largest))
        return Markup("\n".join(parts))

    def bars(self, one: Table, room: int) -> Markup:
        """One row per answer: a bar with its interval, and the numbers."""
        positions = one.positions[:room]
        numbers = self.answers.numbers
        known = np.concatenate([numbers[name][positions] for name in ("low", "high", "answer")])
        known = known[np.isfinite(known)]
        low = min(0.0, float(known.min(initial=0.0)))
        high = max(0.0, float(known.max(initial=0.0)))
        width = high - low or 1.0
        rows = []
        for i, (label, row) in zip(positions, answer_rows(self.answers, positions), strict=True):
            ends = [0.0, *(float(numbers[name][i]) for name in ("answer", "low", "high"))]
            places = [100 * (min(max(value, low), high) - low) / width for value in ends]
            done = [self.processed(i)] if "processed" in numbers else []
            rows.append((_row_label(one, label), _bar(places), *done, *row))
        first, *titles = answer_columns(self.confidence)
        error = width / 100
        scale = f"{beside(low, error)} … {beside(high, error)}"
        if "processed" in numbers:
            titles[:1] = ["processed", "raw answer"]
        names = ", ".join(name for name, _ in one.axes) or first
        shown = f", the first {len(rows):,} of {len(one.positions):,}"
        caption = one.title + (shown if len(rows) < len(one.positions) else "")
        return table(caption, (names, scale, *titles), rows, words=(scale,))

    def heat(self, one: Table, largest: float) -> Markup:
        """Two attributes: numbers on a ground that is stronger where they are larger."""
        (row_name, row_labels), (column_name, column_labels) = one.axes
        positions = np.reshape(one.positions, (len(row_labels), len(column_labels)))
        if len(column_labels) > min(len(row_labels), MOST_COLUMNS):
            positions = positions.T
            row_name, column_name = column_name, row_name
            row_labels, column_labels = column_labels, row_labels
        numbers = self.answers.numbers
        halves = (numbers["high"][one.positions] - numbers["low"][one.positions]) / 2
        alike = float(np.ptp(halves)) <= 1e-3 * float(halves.max())
        rows = [
            (label, *(self.cell(int(i), largest, alike=alike) for i in line))
            for label, line in zip(row_labels, positions, strict=True)
        ]
        percent = f"{100 * self.confidence:.4g} % interval"
        words = f"{percent} ± {number(float(halves.max()))} each" if alike else f"± {percent}"
        columns = (f"{row_name} \\ {column_name}", *column_labels)
        key = " ".join((one.title, *column_labels))
        return table(f"{one.title}; {words}", columns, rows, key=key)

    def cell(self, i: int, largest: float, *, alike: bool) -> Markup:
        """One number of a heat map; with its interval, where that is not the same for all."""
        numbers = self.answers.numbers
        answer, error = float(numbers["answer"][i]), float(numbers["standard_error"][i])
        shown, note = beside(answer, error), Markup("")
        if "processed" in numbers:
            shown, note = self.processed(i), small(f"raw {shown}")
        if not alike:
            half = float(numbers["high"][i] - numbers["low"][i]) / 2
            note = Markup(note + small(f"± {number(half)}"))
        share = max(0.0, min(1.0, answer / largest))
        return Markup(f'<span class="heat" style="--v:{share:.3f}">{shown}{note}</span>')

    def processed(self, i: int) -> str:
        """A processed answer: whole numbers as such, others to the digits of their error."""
        value = float(self.answers.numbers["processed"][i])
        error = float(self.answers.numbers["standard_error"][i])
        return f"{value:,.0f}" if value == round(value) else beside(value, error)


def _row_label(one: Table, label: Label) -> Markup:
    if not one.axes:
        return query_label(label)
    return group_label(label, names=len(one.axes) > 1)


def _bar(places: list[float]) -> Markup:
    """A bar from zero to the answer, and its interval; the numbers beside it say the same."""
    zero, answer, low, high = places
    start, end = sorted((zero, answer))
    style = f"--a:{start:.2f}%;--b:{end - start:.2f}%;--c:{low:.2f}%;--d:{high - low:.2f}%"
    return Markup(f'<span class="bar" style="{style}" aria-hidden="true"></span>')
