"""The answers of a release by statement: rows that a statement displays, and their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lrm.files.spelling import many
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import EXPLICIT_QUERIES, Statement
from lrm.queries.workload.display import Display
from lrm.queries.workload.frames import AnswerFrame, Caveat, Codes, column_names
from lrm.queries.workload.layout import layout_of, linear_answers

if TYPE_CHECKING:  # a release makes its frames through this module
    from lrm.releases.core import Release

NUMBERS = ("answer", "standard_error", "low", "high")


@dataclass(frozen=True, eq=False)
class DisplayedRows:
    """The rows that a statement displays, before their numbers are computed."""

    frame: AnswerFrame
    ranks: dict[int, Floats]  # by the place of the answer: the rank of each row

    def taken(self, rows: Codes) -> DisplayedRows:
        """Some of the rows."""
        ranks = {place: rank[rows] for place, rank in self.ranks.items()}
        return DisplayedRows(self.frame.taken(rows), ranks)


def displayed_rows(
    release: Release, statement: Statement, most: int | None = None
) -> DisplayedRows:
    """The rows of a statement, as HAVING, ORDER BY and LIMIT display them.

    Of a statement of millions of answers only the first ``most`` are laid out, where that is given.
    """
    batch = release.plan.workload
    frame = layout_of(batch, statement, most)
    caveats = frame_caveats(release, statement)
    frame = replace(frame, caveats=caveats, stated=release.stated, simulated=release.simulated)
    if statement.display is None or batch.shape[0] > EXPLICIT_QUERIES:
        return DisplayedRows(frame, {})
    display = batch.display[statement.display]
    keys = frame.groups()
    answers = _at(release.shown_answers, frame.positions)[..., 0]
    values = {
        name: dict(zip(keys, answers[:, place].tolist(), strict=True))
        for place, name in enumerate(frame.names)
    }
    place_of = {group: place for place, group in enumerate(keys)}
    rows = [place_of[group] for group in display.shown(keys, values)]
    ranks = {
        frame.names.index(name): np.array([ranks.get(keys[row], math.nan) for row in rows])
        for name, ranks in display.rank_values(keys, values).items()
        if name in frame.names
    }
    caveats += tuple(_display_caveats(display, len(rows), len(keys)))
    return DisplayedRows(replace(frame.taken(rows), caveats=caveats), ranks)


def _display_caveats(display: Display, rows: int, groups: int) -> Iterator[Caveat]:
    """What is left out, and which numbers follow from noisy ones."""
    noisy = " by the noisy answers" if display.having or display.order else ""
    if rows < groups:
        shown = f"{rows:,} of {many(groups, 'group', 'groups')} are shown"
        yield Caveat("display", f"{shown}, chosen{noisy}; the release has all" if noisy else shown)
    # Sorted by its groups alone, the table is whole and depends on no answer.
    elif any(key.labels is None for key in display.order):
        yield Caveat("display", "sorted by the noisy answers")
    numbered = [rank.name for rank in display.ranks if rank.name in display.queries]
    if numbered:
        names = ", ".join(numbered)
        yield Caveat("display", f"{names}: by the noisy answers, without an interval")


def frame_caveats(release: Release, statement: Statement) -> tuple[Caveat, ...]:
    """What the intervals of a statement do not cover."""
    batch, domain = release.plan.workload, release.plan.workload.domain
    caveats = [Caveat("limit", limit) for limit in [release.unit.limit] if limit]
    caveats += [Caveat("clipped", sentence) for sentence in release.plan.clipping]
    if domain is not None:
        dropping = [
            entry.name for entry in domain.attributes if "drop" in {entry.null, entry.outside}
        ]
        if dropping:
            listed = ", ".join(dropping)
            caveats.append(
                Caveat("dropped", f"rows without a declared value of {listed} are in no answer")
            )
    notes: dict[tuple[str, str], None] = {}
    for derived in batch.derived[slice(*statement.derived)]:
        if derived.note:
            notes[derived.label.query, derived.note] = None
    for name, note in notes:
        (short,) = column_names([name])
        caveats.append(Caveat("approximate", f"{short}: {note}", name))
    return tuple(caveats)


def with_numbers(
    release: Release, rows: DisplayedRows, confidence: float, processed: Floats | None
) -> AnswerFrame:
    """The frame with numbers about each answer; ``processed`` are values of all shown answers."""
    frame = rows.frame
    positions = frame.positions

    def numbers_of(start: int, stop: int) -> Floats:
        numbers = release.shown_numbers(start, stop, confidence)
        halves = release.shown_half_widths(start, stop, confidence)
        return np.column_stack([*(numbers[name] for name in NUMBERS), halves])

    names = (*NUMBERS, "half_width")
    table = _at(numbers_of, positions, len(names))
    columns = {name: table[..., place] for place, name in enumerate(names)}
    if processed is not None:
        columns["processed"] = np.append(processed, math.nan)[positions]
    for place, rank in rows.ranks.items():
        for kind in columns.keys() & {"answer", "processed"}:
            columns[kind][:, place] = rank
    counts = tuple(_count_places(release, frame))
    return replace(frame, numbers=columns, confidence=confidence, counts=counts)


def _count_places(release: Release, frame: AnswerFrame) -> Iterator[int]:
    """The answers of a frame that are counts in all groups."""
    kinds: dict[str, bool] = {}
    for name, _, is_count in linear_answers(release.plan.workload, frame.statement):
        kinds[name] = kinds.get(name, True) and is_count
    for place, name in enumerate(frame.answers):
        if kinds.get(name, not frame.statement.answers):
            yield place


def _at(rows: Callable[[int, int], Floats], positions: Codes, width: int = 1) -> Floats:
    """Rows of numbers at some positions among the shown answers; NaN where a position is −1."""
    known = np.unique(positions[positions >= 0])
    cuts = np.flatnonzero(np.diff(known) != 1) + 1
    parts = [
        rows(int(run[0]), int(run[-1]) + 1).reshape(-1, width)
        for run in np.split(known, cuts)
        if len(run)
    ]
    table = np.concatenate([*parts, np.full((1, width), math.nan)])
    values: Floats = table[np.where(positions >= 0, np.searchsorted(known, positions), len(known))]
    return values
