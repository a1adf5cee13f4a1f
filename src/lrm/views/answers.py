"""The answers of a release as tables: one per statement, in the shape that its columns ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.files.csv_cells import READABLE, NumberStyle
from lrm.files.spelling import beside, in_percent, listed, many, rounded
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import EXPLICIT_QUERIES, Column, Statement
from lrm.queries.workload.frames import AnswerFrame, Codes
from lrm.queries.workload.statements import spoken_name
from lrm.releases import Release
from lrm.releases.frames import displayed_rows, statement_numbers
from lrm.views.blocks import Cell, Heading, Table
from lrm.views.labels import calendar_places, is_time, label_texts
from lrm.views.verdicts import WITHIN, percent, verdict
from lrm.views.words import UNDECLARED, WORDS, filled

MOST_COLUMNS = 20
"""Labels of a column of groups that may stand side by side."""


def statement_table(  # noqa: PLR0913 - what may be asked for
    release: Release,
    statement: Statement,
    confidence: float = 0.95,
    *,
    processed: Floats | None = None,
    most: int | None = None,
    columns: int = MOST_COLUMNS,
) -> StatementTable:
    """The table of one statement, as it displays it: HAVING, ORDER BY and LIMIT are applied.

    Of a table with more than ``most`` answers only the first lines are there, each of them whole
    with up to ``columns`` groups side by side; numbers of others are not computed.
    """
    batch = release.plan.workload
    if most is not None and statement.count > max(most, EXPLICIT_QUERIES):
        total = statement.count
        total += sum(answer.label.count for answer in batch.derived[slice(*statement.derived)])
        rows = displayed_rows(release, statement, most)  # its lines are not counted, it is a list
        return StatementTable(statement_numbers(release, rows, confidence, processed), total, None)
    rows = displayed_rows(release, statement)
    if statement.display is None:
        rows = rows.taken(_calendar_rows(rows.frame))
    total = rows.frame.count
    listed, lines = _whole_lines(rows.frame, total if most is None else most, columns)
    frame = statement_numbers(release, rows.taken(listed), confidence, processed)
    return StatementTable(frame, total, lines)


def _calendar_rows(frame: AnswerFrame) -> Codes:
    """The rows in an order in which names of months and weekdays follow the calendar."""
    keys = []
    for place, column in enumerate(frame.columns):
        places = calendar_places(column.labels) or list(range(len(column.labels)))
        codes = frame.codes[:, place]
        keys.append(np.where(codes < 0, len(places) + 12, np.array([*places, 0])[codes]))
    if not keys or all(calendar_places(column.labels) is None for column in frame.columns):
        return np.arange(len(frame))
    return np.lexsort(keys[::-1])


def _whole_lines(frame: AnswerFrame, most: int, columns: int) -> tuple[Codes, int]:
    """The rows of the first lines of a table, with about ``most`` answers; how many lines it has.

    A line of a cross-tab is made of the rows of all groups that stand side by side.
    """
    view, codes = reader_view(frame)
    across = side_by_side(frame, view, codes, columns)
    line = np.arange(len(frame)) if across is None else _line_of_each(codes, across)
    lines = int(line.max(initial=-1)) + 1
    sizes = np.bincount(line, (frame.positions[:, : len(frame.answers)] >= 0).sum(axis=1), lines)
    kept = max(1, int((np.cumsum(sizes) <= most).sum()))
    return np.flatnonzero(line < kept), lines


def _line_of_each(codes: Codes, across: int) -> Codes:
    """The number of the line of a cross-tab in which each row stands.

    Lines are in the order of their labels with totals last, as the rows are; if ORDER BY has put
    the rows in another order, in the order of their appearance.
    """
    last = np.where(codes < 0, np.iinfo(np.int64).max, codes)
    sorted_rows = np.array_equal(np.lexsort(last.T[::-1]), np.arange(len(last)))
    others = np.delete(last, across, axis=1)
    _, first, line = np.unique(others, axis=0, return_index=True, return_inverse=True)
    line = line.reshape(-1)
    return line if sorted_rows else np.argsort(np.argsort(first))[line]


def reader_view(frame: AnswerFrame) -> tuple[tuple[Column, ...], Codes]:
    """The columns of groups as readers see them: a year and a month are one column."""
    columns, codes = _calendar_columns(frame)
    kinds = [column.kind for column in columns]
    if kinds.count("year") != 1 or kinds.count("month_of_year") != 1 or (codes < 0).any():
        return columns, codes
    year, month = kinds.index("year"), kinds.index("month_of_year")
    if "(null)" in (*columns[year].labels, *columns[month].labels):
        return columns, codes
    texts = [
        f"{int(columns[year].labels[a]):04d}-{int(columns[month].labels[b]):02d}"
        for a, b in codes[:, [year, month]].tolist()
    ]
    labels = tuple(sorted(set(texts)))
    place = {label: code for code, label in enumerate(labels)}
    merged = Column(columns[month].name, "month", labels)
    remaining = [k for k in range(len(columns)) if k not in {year, month}]
    at = sum(k < min(year, month) for k in remaining)
    new = [columns[k] for k in remaining]
    new.insert(at, merged)
    parts = [codes[:, k] for k in remaining]
    parts.insert(at, np.array([place[text] for text in texts], dtype=np.int64))
    return tuple(new), np.column_stack(parts)


def _calendar_columns(frame: AnswerFrame) -> tuple[tuple[Column, ...], Codes]:
    """The columns and codes, with names of months and weekdays in the order of the calendar."""
    columns, codes = list(frame.columns), frame.codes.copy()
    for place, column in enumerate(columns):
        places = calendar_places(column.labels)
        if places is not None:
            order = np.argsort(places, kind="stable")
            columns[place] = replace(column, labels=tuple(column.labels[k] for k in order))
            new = np.append(np.argsort(order), -1)
            codes[:, place] = new[codes[:, place]]
    return tuple(columns), codes


def side_by_side(
    frame: AnswerFrame, columns: Sequence[Column], codes: Codes, most: int
) -> int | None:
    """The column whose labels stand side by side; None for a list.

    Of two columns it is the one with fewer labels, of several the last; never a time, if
    there is another one.
    """
    if len(frame.answers) != 1 or len(columns) < 2 or frame.note:
        return None
    sizes = [len(column.labels) if len(columns) == 2 else 0 for column in columns]
    order = sorted(range(len(columns)), key=lambda k: (is_time(columns[k]), sizes[k], -k))
    for k in order:
        if len(columns[k].labels) + bool((codes[:, k] < 0).any()) <= most:
            return k
    return None


ALIKE = 1.04
"""Half-widths that differ by less are stated once, by the largest."""


FAR_LARGER = 5.0
"""From this ratio to the usual error of its table on, an answer has digits of its own."""


@dataclass(frozen=True)
class Setting:
    """How a table is set: its words, and how its numbers are spelt.

    >>> Setting(decimals=1).number(33.14, 2.0), Setting(decimals=1).error(0.0023, 0.001)
    ('33.1', '0.002')
    """

    # Whether it is for everybody: cells of undeclared values then have words of their own.
    public: bool = False
    words: Mapping[str, str] = field(default_factory=lambda: WORDS)  # fixed ones
    heading: str = ""  # what stands above it in place of the title of its statement
    note: str = ""  # what stands below it in place of `AnswerFrame.note`
    unit: str = ""  # of the answers, such as ``persons``
    decimals: int | None = None  # of the answers; by default those that their errors leave
    style: NumberStyle = READABLE

    def number(self, value: float, error: float) -> str:
        """An answer with an error of this size."""
        decimals = self.decimals
        return self.style.shown(
            beside(value, error) if decimals is None else rounded(value, decimals)
        )

    def error(self, value: float, error: float) -> str:
        """How far off an answer may be, or the end of its interval."""
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        if self.decimals is None:
            return self.style.shown(beside(value, error))
        leading = -math.floor(math.log10(error)) if error > 0 else 0
        return self.style.shown(rounded(value, min(12, max(self.decimals, leading))))


PUBLIC = Setting(public=True)
"""How everybody sees a table."""


def frame_table(frame: AnswerFrame, setting: Setting | None = None) -> StatementTable:
    """The whole table of a statement whose numbers are known."""
    if frame.statement is not None and frame.statement.display is None:
        frame = frame.taken(_calendar_rows(frame))
    return StatementTable(frame, frame.count, len(frame), setting or Setting())


@dataclass(frozen=True, eq=False)
class StatementTable:
    """The answers of one statement, as readers see them."""

    frame: AnswerFrame
    total: int  # number of answers that the table has, where not all are here
    # Number of its lines, where not all are here; None where they were not counted.
    lines: int | None

    setting: Setting = field(default_factory=Setting)
    # Its columns of groups and the label of each, where they are not those of `reader_view`.
    columns: tuple[tuple[Column, ...], Codes] | None = None

    @property
    def title(self) -> str:
        """What stands above the table."""
        return self.setting.heading or self.statement.title

    @property
    def words(self) -> Mapping[str, str]:
        """The fixed words."""
        return self.setting.words

    def texts(self, column: Column) -> list[str]:
        """What readers see for each label of a column, and for a total last."""
        texts = label_texts(column, self.words)
        if self.setting.public:
            names = {label: self.words[key] for label, key in UNDECLARED.items()}
            texts = [names.get(text, text) for text in texts]
        return [*texts, self.words["total"]]

    def measure(self, place: int) -> str:
        """What an answer is called, with its unit."""
        name, unit = spoken_name(self.frame.answers[place]), self.setting.unit
        if unit and len(self.frame.answers) == 1:
            return unit
        return f"{name} ({unit})" if unit else name

    @property
    def statement(self) -> Statement:
        """Which one it is."""
        if self.frame.statement is None:
            raise TypeError("the long form is not the table of a statement")
        return self.frame.statement

    @property
    def numbers(self) -> Mapping[str, Floats]:
        """Numbers about the answers, by name: one row per group, one column per answer."""
        return self.frame.numbers

    @property
    def note(self) -> str:
        """What was left out by HAVING, ORDER BY and LIMIT."""
        return self.setting.note or self.frame.note

    @property
    def count(self) -> int:
        """Number of answers in the table."""
        return self.frame.count

    @cached_property
    def half_widths(self) -> Floats:
        """Half of each interval, of counts before it is cut at 0; infinite where unbounded."""
        return self.numbers["half_width"]

    def _is_centred(self, row: int | NDArray[np.bool_], place: int) -> NDArray[np.bool_]:
        """Whether answers are in the middle of their intervals, but for what was cut off."""
        low, high, answer, half = (
            self.numbers[name][row, place] for name in ("low", "high", "answer", "half_width")
        )
        with np.errstate(invalid="ignore"):
            gap = np.minimum(np.abs(high - answer - half), np.abs(answer - low - half))
            return np.asarray((gap <= 0.02 * half) | ((low == high) & (answer < low)))

    def alike(self, place: int) -> str:
        """The largest half-width of an answer's intervals, where all are alike; else empty."""
        bounded = np.isfinite(self.half_widths[:, place] + self.numbers["answer"][:, place])
        known = self.half_widths[bounded, place]
        if not len(known) or len(known) < np.isfinite(self.numbers["answer"][:, place]).sum():
            return ""
        if not self._is_centred(bounded, place).all():
            return ""
        same = float(known.max()) <= ALIKE * float(known.min())
        return (
            f"± {self.setting.error(float(known.max()), self._usual_errors[place])}" if same else ""
        )

    @property
    def relative(self) -> float:
        """Half an interval relative to the answer, in the median; infinite where there is none.

        Counts are judged by the size that the statement states for them, if it states one, as they
        are before a release.
        """
        expected, counts = self.statement.expected, list(self.frame.counts)
        if expected is not None and counts:
            widths = self.half_widths[:, counts]
            squares = np.square(widths[np.isfinite(widths)])
            return math.sqrt(float(squares.mean())) / expected if len(squares) else math.inf
        shown = slice(None, len(self.frame.answers))
        answers, halves = np.abs(self.numbers["answer"][:, shown]), self.half_widths[:, shown]
        known = np.isfinite(answers) & (halves > 0)
        if not known.any():
            return math.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(answers > 0, halves / answers, math.inf)[known]
        return float(np.median(share))

    @property
    def verdict(self) -> str:
        """Whether the table is usable, rough or noise."""
        return verdict(self.relative)

    @property
    def error(self) -> str:
        """How far off each answer may be, where all have the same error."""
        same = {self.alike(place) for place in range(len(self.frame.answers))}
        if len(same) == 1 and (each := same.pop()):
            return f"{each} {self.words['each']}" if self.count > 1 else each
        return ""

    @property
    def summary(self) -> str:
        """How many answers there are, and what they are good for."""
        words = many(self.count, "answer", "answers")
        if self.count < self.total:
            words = f"{self.count:,} of {many(self.total, 'answer', 'answers')}"
        if not self.setting.public and math.isfinite(self.relative) and self.relative > 0:
            words += f", {self.verdict} ({percent(self.relative)})"
        return words

    @cached_property
    def view(self) -> tuple[tuple[Column, ...], Codes]:
        """The columns of groups as readers see them: a year and a month are one column."""
        return self.columns or reader_view(self.frame)

    def cell(self, row: int, place: int, *, note: bool, share: float | None = None) -> Cell:
        """One answer to the digits that its error leaves, with its interval where wanted."""
        answer = float(self.numbers["answer"][row, place])
        if math.isnan(answer):
            return Cell("")
        text = self.setting.number(answer, self._own_error(row, place))
        return Cell(text, self._note(row, place, note).strip(), share)

    def processed_cell(self, row: int, place: int) -> Cell:
        """The processed value of one answer, which is displayed next to it."""
        value = float(self.numbers["processed"][row, place])
        if math.isnan(value):
            return Cell("")
        if math.isfinite(value) and value == round(value):
            return Cell(self.setting.style.shown(f"{value:,.0f}"))
        return Cell(self.setting.number(value, self._own_error(row, place)))

    @property
    def is_processed(self) -> bool:
        """Whether processed answers are displayed next to the released ones."""
        return "processed" in self.numbers

    def _note(self, row: int, place: int, shown: bool) -> str:
        low, high = (float(self.numbers[name][row, place]) for name in ("low", "high"))
        half, spelt = float(self.half_widths[row, place]), self.setting.error
        if not shown or math.isnan(half):  # a rank has no interval
            return ""
        if math.isinf(low) and math.isinf(high):
            return f" {self.words['unbounded']}"
        if math.isinf(half):
            spread = self._own_error(row, place)
            return f" {spelt(low, spread)} … {spelt(high, spread)}"
        if not self._is_centred(row, place):
            return f" {spelt(low, half)} … {spelt(high, half)}"
        return f" ± {spelt(half, self._own_error(row, place))}"

    @cached_property
    def _usual_errors(self) -> list[float]:
        """The usual standard error of each answer, by which its digits are chosen."""
        usual = []
        for place in range(len(self.frame.answers)):
            errors = _median(self.numbers["standard_error"][:, place])
            usual.append(errors or _median(self.half_widths[:, place]) / 2)
        return usual

    def _own_error(self, row: int, place: int) -> float:
        """By which the digits of one answer are chosen: its own error where that is far larger."""
        usual, half = self._usual_errors[place], float(self.half_widths[row, place])
        if math.isinf(half):  # nothing is known but the answer itself
            return max(usual, 0.1 * abs(float(self.numbers["answer"][row, place])))
        return half / 2 if half > FAR_LARGER * 2 * usual else usual

    @property
    def is_figure(self) -> bool:
        """Whether it is a row of numbers, without groups and with nothing to say below them."""
        return self.is_single and not self.is_processed

    @property
    def is_single(self) -> bool:
        """Whether it has one row, without groups and with nothing to say below it."""
        return not self.note and not self.frame.columns and len(self.frame) == 1

    def key_figures(self) -> list[tuple[str, str, str]]:
        """The answers of a statement without groups: a name, the number, and its interval."""
        figures = []
        for place, name in enumerate(self.frame.answers):
            cell = self.cell(0, place, note=True)
            several = len(self.frame.answers) > 1
            title = f"{self.title}: {spoken_name(name)}" if several else self.title
            figures.append((title, f"{cell.text} {self.setting.unit}".strip(), cell.note))
        return figures

    def rows_by(self, across: int) -> dict[tuple[int, ...], dict[int, int]]:
        """For the labels of all other columns: the row of each label of one column."""
        rows: dict[tuple[int, ...], dict[int, int]] = {}
        codes = self.view[1]
        for row in np.argsort(_line_of_each(codes, across), kind="stable").tolist():
            labels = codes[row].tolist()
            code = labels.pop(across)
            rows.setdefault(tuple(labels), {})[code] = row
        return rows

    def across(self, most: int) -> int | None:
        """The column whose labels stand side by side; None for a list."""
        if self.lines is None:
            return None
        return side_by_side(self.frame, *self.view, most)

    def table(self, most: int = MOST_COLUMNS, *, heat: bool = False) -> Table:
        """The statement as one table: the labels of a column side by side, or a list of groups."""
        across = self.across(most)
        if across is None:
            return self._list()
        columns, codes = self.view
        same = bool(self.alike(0))
        texts = [self.texts(column) for column in columns]
        used = sorted(set(codes[:, across].tolist()), key=lambda code: (code < 0, code))
        rest = [k for k in range(len(columns)) if k != across]
        answers = self.numbers["answer"][:, 0]
        largest = float(np.nanmax(answers, initial=0.0)) or 1.0
        headings = [Heading(columns[k].name, words=True, label=True) for k in rest]
        headings += [Heading(texts[across][code]) for code in used]
        lines = []
        for codes_of, cells in self.rows_by(across).items():
            line = [Cell(texts[k][code]) for k, code in zip(rest, codes_of, strict=True)]
            for code in used:
                at = cells.get(code)
                if at is None:
                    line.append(Cell(""))
                    continue
                share = max(0.0, min(1.0, float(answers[at]) / largest)) if heat else None
                cell = self.cell(at, 0, note=not same, share=share)
                if self.is_processed:
                    value = self.processed_cell(at, 0).text or "—"  # an average of no rows
                    cell = replace(
                        cell, note=f"{cell.note} {self.words['processed']} {value}".strip()
                    )
                line.append(cell)
            lines.append(tuple(line))
        return replace(self._named(headings, lines), across=columns[across].name)

    def _named(self, headings: Sequence[Heading], lines: Sequence[tuple[Cell, ...]]) -> Table:
        title = self.title
        cells = tuple(headings), tuple(lines)
        return Table(title, *cells, self.note, key=title, error=self.error)

    def _list(self) -> Table:
        columns, codes = self.view
        answers = self.frame.answers
        texts = [self.texts(column) for column in columns]
        same = [bool(self.alike(place)) for place in range(len(answers))]
        each = len({self.alike(place) for place in range(len(answers))}) == 1
        headings = [Heading(column.name, words=True, label=True) for column in columns]
        bars = len(answers) == 1 and bool(columns)
        for place in range(len(answers)):
            error = f" ({self.alike(place)})" if same[place] and not each else ""
            headings.append(Heading(self.measure(place) + error))
            if self.is_processed:
                headings.append(Heading(f"{self.measure(place)}, {self.words['processed']}"))
        scale = self._scale() if bars else None
        lines = []
        for row, codes_of in enumerate(codes.tolist()):
            line = [Cell(texts[k][code]) for k, code in enumerate(codes_of)]
            for place in range(len(answers)):
                cell = self.cell(row, place, note=not same[place])
                line.append(cell if scale is None else replace(cell, bar=self._bar(row, scale)))
                if self.is_processed:
                    line.append(self.processed_cell(row, place))
            lines.append(tuple(line))
        return self._named(headings, lines)

    def _scale(self) -> tuple[float, float] | None:
        every = np.concatenate([self.numbers[name][:, 0] for name in ("low", "high", "answer")])
        known = every[np.isfinite(every)]
        low, high = min(0.0, float(known.min(initial=0))), max(0.0, float(known.max(initial=0)))
        return (low, high) if high > low else None

    def _bar(self, row: int, scale: tuple[float, float]) -> tuple[float, float, float, float]:
        low, high = scale
        ends = [0.0, *(float(self.numbers[name][row, 0]) for name in ("answer", "low", "high"))]
        zero, answer, left, right = (
            0.0 if math.isnan(x) else (min(max(x, low), high) - low) / (high - low) for x in ends
        )
        return zero, answer, left, right


def _median(values: Floats) -> float:
    """The median of positive numbers; 0 where there is none."""
    known = values[np.isfinite(values) & (values > 0)]
    return float(np.median(known)) if len(known) else 0.0


def single_title(tables: Sequence[StatementTable]) -> str:
    """What statements without groups are called together: their titles, or the first of them."""
    titles = list(dict.fromkeys(table_view.title for table_view in tables))
    return listed(titles, most=MOST_TITLES)


MOST_TITLES = 3
"""Titles of single numbers that a heading lists."""


def usable_words(tables: Sequence[StatementTable]) -> str:
    """How many tables are usable."""
    count = sum(table_view.verdict == "usable" for table_view in tables)
    verb = "is" if count == 1 else "are"
    return f"{count} of {len(tables)} tables {verb} {WITHIN} in the median"


def grouped_tables(
    tables: Iterable[StatementTable],
) -> Iterator[StatementTable | list[StatementTable]]:
    """The same tables, with single numbers that follow each other as lists."""
    waiting: list[StatementTable] = []
    for table_view in tables:
        if table_view.statement.columns or not table_view.statement.answers:
            if waiting:
                yield waiting
            waiting = []
            yield table_view
        else:
            waiting.append(table_view)
    if waiting:
        yield waiting


def single_numbers(tables: Sequence[StatementTable]) -> Table:
    """Statements without groups as one table: a number, and how far it may be off."""
    rows: list[tuple[Cell, ...]] = []
    processed = any(table_view.is_processed for table_view in tables)
    for table_view in tables:
        for place, name in enumerate(table_view.frame.answers):
            title = table_view.title
            several = len(table_view.frame.answers) > 1
            label = f"{title}: {spoken_name(name)}" if several and title != name else title
            for row in range(len(table_view.frame)):
                cell = table_view.cell(row, place, note=True)
                line = [Cell(label), replace(cell, note=""), Cell(cell.note)]
                if processed:
                    line.append(table_view.processed_cell(row, place))
                rows.append(tuple(line))
    words = tables[0].words
    percent = tables[0].setting.style.shown(in_percent(tables[0].frame.confidence))
    headings = [Heading(words["answer"], words=True, label=True), Heading(words["value"])]
    headings += [Heading(filled(words["interval"], percent=percent))]
    headings += [Heading(words["processed"])] if processed else []
    notes = " ".join(table_view.note for table_view in tables if table_view.note)
    return Table(single_title(tables), tuple(headings), tuple(rows), notes)


def display_facts(release: Release) -> list[dict[str, Any]]:
    """Each display with the positions of the answers that it shows, as JSON can hold them."""
    batch = release.plan.workload
    if not batch.display or batch.shape[0] > EXPLICIT_QUERIES:
        return []
    display_list = []
    for statement in batch.tables:
        if statement.display is None:
            continue
        layout = statement_table(release, statement).frame
        positions = {
            name: [p for p in layout.positions[:, place].tolist() if p >= 0]
            for place, name in enumerate(layout.answers)
        }
        display_list.append({**batch.display[statement.display].facts, "shown": positions})
    return display_list
