"""The answers of a release by statement: rows that a statement displays, and their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lrm.domain.people import Level
from lrm.files.spelling import listed, many
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import EXPLICIT_QUERIES, Column, Statement
from lrm.queries.workload.display import NULL, Display, Value
from lrm.queries.workload.finding import linear_answers
from lrm.queries.workload.frames import AnswerFrame, Caveat, Codes, column_names
from lrm.queries.workload.label_blocks import Group
from lrm.queries.workload.layout import layout_of

if TYPE_CHECKING:  # a release makes its frames through this module
    from lrm.releases.core import Release

NUMBERS = ("answer", "standard_error", "low", "high")


@dataclass(frozen=True, eq=False)
class Computed:
    """The columns that a statement computes from its answers, such as ranks and ``LAG``."""

    display: Display
    every: AnswerFrame  # all groups, before HAVING and LIMIT
    rows: Codes  # those that are displayed

    def columns(self, answers: Floats) -> dict[str, list[Value]]:
        """The values of each column in the displayed rows; ``answers`` are those of all groups."""
        keys = self.every.groups()
        values = self.display.rank_values(keys, _by_name(self.every, keys, answers))
        return {
            name: [column.get(keys[row], math.nan) for row in self.rows.tolist()]
            for name, column in values.items()
        }

    def numbers(self, answers: Floats) -> dict[int, Floats]:
        """Those of the columns that are numbers, by the place of the answer."""
        names = self.every.names
        return {
            names.index(name): np.array(column)
            for name, column in self.columns(answers).items()
            if name in names and name not in self.display.texts
        }


@dataclass(frozen=True, eq=False)
class DisplayedRows:
    """The rows that a statement displays, before their numbers are computed."""

    frame: AnswerFrame
    computed: Computed | None = None

    def taken(self, rows: Codes) -> DisplayedRows:
        """Some of the rows."""
        computed = self.computed
        if computed is not None:
            computed = replace(computed, rows=computed.rows[rows])
        return DisplayedRows(self.frame.taken(rows), computed)


def displayed_rows(
    release: Release, statement: Statement, most: int | None = None
) -> DisplayedRows:
    """The rows of a statement, as HAVING, ORDER BY and LIMIT display them.

    Of a statement of millions of answers only the first ``most`` are laid out, where that is given.
    """
    batch = release.plan.workload
    frame = layout_of(batch, statement, most)
    caveats = frame_caveats(release, statement)
    frame = replace(frame, caveats=caveats)
    if statement.display is None or batch.shape[0] > EXPLICIT_QUERIES:
        return DisplayedRows(frame)
    display = batch.display[statement.display]
    keys = frame.groups()
    answers = _at(release.shown_answers, frame.positions)[..., 0]
    place_of = {group: place for place, group in enumerate(keys)}
    shown = display.shown(keys, _by_name(frame, keys, answers))
    computed = Computed(display, frame, np.array([place_of[g] for g in shown], dtype=np.int64))
    caveats += tuple(_display_caveats(display, len(shown), len(keys)))
    taken = replace(frame.taken(computed.rows), caveats=caveats)
    texts = {}
    if display.texts:
        columns = computed.columns(answers)
        texts = {name: column for name, column in columns.items() if name in display.texts}
    return DisplayedRows(_with_texts(taken, display, texts), computed)


def _by_name(
    frame: AnswerFrame, keys: Sequence[Group], answers: Floats
) -> dict[str, dict[Group, float]]:
    """The answers of each query, by group."""
    return {
        name: dict(zip(keys, answers[:, place].tolist(), strict=True))
        for place, name in enumerate(frame.names)
    }


def _with_texts(
    frame: AnswerFrame, display: Display, texts: Mapping[str, Sequence[Value]]
) -> AnswerFrame:
    """A frame with the texts that CASE displays as columns, and without those that are left out."""
    kept = [k for k, column in enumerate(frame.columns) if column.name not in display.left_out]
    columns, codes = [frame.columns[k] for k in kept], [frame.codes[:, k] for k in kept]
    for name in (name for name in texts if name not in display.hidden):
        values = [value if isinstance(value, str) else NULL for value in texts[name]]
        labels = tuple(sorted(set(values)))
        place = {label: code for code, label in enumerate(labels)}
        columns.append(Column(column_names([name])[0], labels=labels))
        codes.append(np.array([place[value] for value in values], dtype=np.int64))
    if not codes:
        return replace(frame, columns=(), codes=frame.codes[:, :0])
    return replace(frame, columns=tuple(columns), codes=np.stack(codes, axis=1))


def _display_caveats(display: Display, rows: int, groups: int) -> Iterator[Caveat]:
    """What is left out, and which numbers follow from noisy ones."""
    noisy = " by the noisy answers" if display.having or display.order else ""
    if rows < groups:
        verb = "is" if groups == 1 else "are"
        shown = f"{rows:,} of {many(groups, 'group', 'groups')} {verb} shown"
        yield Caveat("display", f"{shown}, chosen{noisy}; the release has all" if noisy else shown)
    # Sorted by its groups alone, the table is whole and depends on no answer.
    elif any(key.labels is None for key in display.order):
        yield Caveat("display", "sorted by the noisy answers")
    yield from computed_caveats(display)


def computed_caveats(display: Display) -> Iterator[Caveat]:
    """The columns that follow from noisy answers."""
    numbered = [column.name for column in display.columns if column.name not in display.hidden]
    if numbered:
        names = ", ".join(column_names(numbered))
        yield Caveat("display", f"{names}: by the noisy answers, without an interval")


def dropping_columns(release: Release, statement: Statement) -> list[str]:
    """The columns without a declared value of which a row is in no answer of a statement."""
    names = (
        name
        for level in release.plan.levels_of(statement)
        for own in level.workload.tables
        if own.name == statement.name
        for name in level.workload.dropping(own)
    )
    return list(dict.fromkeys(names))


def registers(release: Release, statement: Statement) -> list[str]:
    """The tables that decide who is a person, where statements ask for rows of other tables too."""
    names = []
    for part in release.plan.levels_of(statement):
        level = None if part.workload.domain is None else part.workload.domain.level
        if isinstance(level, Level) and level.base is None and level.persons_table.is_single:
            names += [level.persons_table.name] if len(level.tables) > 1 else []
    return list(dict.fromkeys(names))


def register_words(name: str) -> str:
    """Whom statements about persons leave out, where a table decides who is one."""
    return f"persons are those with a row in {name!r}; others are not counted"


def frame_caveats(release: Release, statement: Statement) -> tuple[Caveat, ...]:
    """What the intervals of a statement do not cover."""
    batch, levels = release.plan.workload, release.plan.levels_of(statement)
    dropping = dropping_columns(release, statement)
    units = [level.unit if len(release.levels) > 1 else release.unit for level in levels]
    caveats = [Caveat("limit", unit.limit) for unit in units if unit.limit]
    caveats += [Caveat("clipped", sentence) for level in levels for sentence in level.clipping]
    if dropping:
        names = listed(dropping, "or")
        words = f"rows without a declared value of {names} are in no answer"
        caveats.append(Caveat("dropped", words))
    caveats += [Caveat("dropped", register_words(name)) for name in registers(release, statement)]
    notes: dict[tuple[str, str], None] = {}
    for derived in batch.derived[slice(*statement.derived)]:
        if derived.note:
            notes[derived.label.query, derived.note] = None
    for name, note in notes:
        (short,) = column_names([name])
        caveats.append(Caveat("approximate", f"{short}: {note}", name))
    return tuple(caveats)


def statement_numbers(
    release: Release, rows: DisplayedRows, confidence: float, processed: Floats | None
) -> AnswerFrame:
    """The table of a statement; ``processed`` are values of all shown answers."""
    frame = with_numbers(release, rows.frame, confidence, processed, halves=True)
    if rows.computed is not None:
        _add_computed(release, frame, rows.computed, processed)
    return replace(frame, counts=tuple(_count_places(release, rows.frame)))


def with_computed(
    release: Release, statement: Statement, confidence: float
) -> tuple[AnswerFrame, tuple[Caveat, ...]]:
    """All groups of a statement with the columns that it computes, and the caveats of these."""
    layout = layout_of(release.plan.workload, statement)
    shown = len(layout.answers)  # further ones are only sorted by
    cut = replace(layout, names=layout.names[:shown], positions=layout.positions[:, :shown])
    frame = with_numbers(release, cut, confidence, halves=True)
    batch = release.plan.workload
    if statement.display is None or batch.shape[0] > EXPLICIT_QUERIES:
        return frame, ()
    display = batch.display[statement.display]
    _add_computed(release, frame, Computed(display, layout, np.arange(len(layout))))
    return frame, tuple(computed_caveats(display))


def _add_computed(
    release: Release, frame: AnswerFrame, computed: Computed, processed: Floats | None = None
) -> None:
    """Write the computed columns of a frame into it."""
    positions = computed.every.positions
    answers = {"answer": _at(release.shown_answers, positions)[..., 0]}
    if processed is not None:
        answers["processed"] = np.append(processed, math.nan)[positions]
    for kind, values in answers.items():
        table = frame.numbers[kind]
        for place, numbers in computed.numbers(values).items():
            if place < table.shape[1]:
                table[:, place] = numbers


def with_numbers(
    release: Release,
    frame: AnswerFrame,
    confidence: float,
    processed: Floats | None = None,
    *,
    halves: bool = False,
) -> AnswerFrame:
    """A frame with numbers about each answer, and with ``halves`` half of each interval."""

    def numbers_of(start: int, stop: int) -> Floats:
        numbers = release.shown_numbers(start, stop, confidence)
        columns = [numbers[name] for name in NUMBERS]
        if halves:
            columns.append(release.shown_half_widths(start, stop, confidence))
        return np.column_stack(columns)

    names = (*NUMBERS, *(["half_width"] if halves else []))
    table = _at(numbers_of, frame.positions, len(names))
    columns = {name: table[..., place] for place, name in enumerate(names)}
    if processed is not None:
        columns["processed"] = np.append(processed, math.nan)[frame.positions]
    return replace(
        frame,
        numbers=columns,
        confidence=confidence,
        amount=release.privacy.symbols,
        stated=release.stated,
        simulated=release.simulated,
    )


def _count_places(release: Release, frame: AnswerFrame) -> Iterator[int]:
    """The answers of a frame that are counts in all groups."""
    kinds: dict[str, bool] = {}
    assert frame.statement is not None  # noqa: S101 - the long form has no counts
    for name, _, is_count in linear_answers(release.plan.workload, frame.statement):
        kinds[name] = kinds.get(name, True) and is_count
    for place, name in enumerate(frame.answers):
        if kinds.get(name, not frame.statement.answers):
            yield place


def _at(rows: Callable[[int, int], Floats], positions: Codes, width: int = 1) -> Floats:
    """Rows of numbers at some positions among the shown answers; NaN where a position is −1."""
    flat = positions.ravel()
    in_order = not len(flat) or (flat[0] >= 0 and bool((np.diff(flat) > 0).all()))
    known = flat if in_order else np.unique(flat[flat >= 0])
    cuts = np.flatnonzero(np.diff(known) != 1) + 1
    parts = [
        rows(int(run[0]), int(run[-1]) + 1).reshape(-1, width)
        for run in np.split(known, cuts)
        if len(run)
    ]
    table = np.concatenate([*parts, np.full((1, width), math.nan)])
    if in_order:
        return table[:-1].reshape(*positions.shape, width)
    values: Floats = table[np.where(positions >= 0, np.searchsorted(known, positions), len(known))]
    return values
