"""A series: the releases of one report over its editions, and how answers change between them.

Each release has noise of its own, independent of that of the others, so that the interval of a
difference follows from both laws. Nothing but the releases is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.errors import UsageError
from lrm.files.spelling import many
from lrm.planning.derived.differences import difference_half_widths
from lrm.privacy.amounts import spell
from lrm.privacy.periods import Edition
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Column, Statement, Workload
from lrm.queries.workload.finding import find_statement
from lrm.queries.workload.frames import AnswerFrame
from lrm.queries.workload.layout import layout_of
from lrm.queries.workload.statements import Kind
from lrm.releases.core import Release
from lrm.releases.file import load_release
from lrm.releases.frames import frame_caveats, with_computed

EDITION_KINDS: dict[str, Kind] = {"day": "date", "month": "month", "year": "year"}
"""What the labels of the column of editions are; names of weeks and quarters are text."""

_DATED = ("date", "timestamp", "month", "year")

Place = tuple[Any, ...]
"""A row of a statement, wherever it is in the calendar: the same one in every edition."""


@dataclass(frozen=True, eq=False)
class Series:
    """The releases of one report, one per edition.

    Parameters
    ----------
    releases
        The releases, or their files, in any order. All are of one report: the same statements about
        the same unit, each of one edition.

    Examples
    --------
    >>> import lrm
    >>> domain = lrm.Domain(
    ...     [lrm.Categories("sex", ["f", "m"])], "visits", editions=lrm.Editions("month", "day")
    ... )
    >>> batch = lrm.sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", domain)
    >>> plan = lrm.plan(batch)
    >>> months = [lrm.release(plan, [9, 4], 1, edition=name) for name in ("2025-01", "2025-02")]
    >>> series = lrm.Series(months)
    >>> series.frame("n").to_arrow().column_names
    ['edition', 'sex', 'n', 'n_standard_error', 'n_low', 'n_high', 'n_change', 'n_change_low', \
'n_change_high']
    """

    releases: Sequence[Release | str | os.PathLike[str]]

    def __post_init__(self) -> None:
        if isinstance(self.releases, Release | str | os.PathLike) or not len(self.releases):
            raise UsageError("a series needs a list of releases, or of their files")
        named = [_read(entry, number) for number, entry in enumerate(self.releases, start=1)]
        editions = [(name, release, _edition_of(name, release)) for name, release in named]
        editions.sort(key=lambda entry: entry[2].first)
        for (name, release, edition), following in pairwise(editions):
            _check_alike(name, release, following[0], following[1])
            if following[2] == edition:
                raise UsageError(
                    f"{name} and {following[0]} are both of {edition.name}; a series has one "
                    "release of each edition"
                )
        object.__setattr__(self, "releases", tuple(release for _, release, _ in editions))

    @property
    def each(self) -> tuple[Release, ...]:
        """The releases in the order of their editions."""
        return tuple(entry for entry in self.releases if isinstance(entry, Release))

    @cached_property
    def editions(self) -> tuple[Edition, ...]:
        """The editions, in order."""
        return tuple(_edition_of("the release", release) for release in self.each)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the editions, in order."""
        return tuple(edition.name for edition in self.editions)

    @property
    def simulated(self) -> bool:
        """True where nothing is guaranteed."""
        return self.each[0].simulated

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements, as the latest edition has them."""
        return self.each[-1].plan.workload.tables

    def __len__(self) -> int:
        """Number of statements."""
        return len(self.statements)

    def __iter__(self) -> Iterator[str]:
        """The names of the statements."""
        return iter(self.each[-1].plan.workload)

    def __contains__(self, name: object) -> bool:
        """Whether a statement or an answer has this name."""
        return name in self.each[-1].plan.workload

    def __bool__(self) -> bool:
        """A series is true, whatever its number of statements."""
        return True

    def __repr__(self) -> str:
        editions = many(len(self.names), "edition", "editions")
        span = self.names[0] if len(self.names) == 1 else f"{self.names[0]} to {self.names[-1]}"
        tables = many(len(self.statements), "statement", "statements")
        return f"<Series: {tables}, {editions}, {span}>"

    def frames(self, confidence: float = 0.95) -> Iterator[AnswerFrame]:
        """Yield the table of each statement, as `frame` returns it."""
        for statement in self.statements:
            yield self.frame(statement, confidence)

    def frame(
        self, statement: str | Statement | None = None, confidence: float = 0.95
    ) -> AnswerFrame:
        """The table of one statement over all editions: its groups, answers and their changes.

        A row per edition and group. ``n_change`` is the answer less that of the edition before,
        with the ends of its interval, ``n_year_change`` that less the one of the year before; both
        are missing where the series does not have that edition. All groups are there, whatever
        HAVING or LIMIT display; columns that are computed from the noisy answers have no
        interval and no change. Rows that date themselves, such as those by day, are compared with
        the same place in the other edition: the 5th day of a month with the 5th day.

        Parameters
        ----------
        statement
            The name of the statement, as `Release.frame` finds it.
        confidence
            Of the intervals.
        """
        latest = find_statement(self.each[-1].plan.workload, statement)
        parts = [
            _part(release, _statement(release, latest.name), confidence, edition)
            for release, edition in zip(self.each, self.editions, strict=True)
        ]
        pairs = {
            "change": self._pairs(lambda edition: edition.next, later=True),
            "year_change": self._pairs(lambda edition: edition.year_before, later=False),
        }
        if self.editions[0].period == "year":
            del pairs["year_change"]
        numbers = {
            name: np.concatenate([part.frame.numbers[name] for part in parts])
            for name in parts[0].frame.numbers
        }
        for name, earlier in pairs.items():
            if any(place is not None for place in earlier):
                columns = [
                    _changes(part, None if place is None else parts[place], confidence)
                    for part, place in zip(parts, earlier, strict=True)
                ]
                for ending, place in (("", 0), ("_low", 1), ("_high", 2)):
                    numbers[f"{name}{ending}"] = np.concatenate([entry[place] for entry in columns])
        return self._joined([part.frame for part in parts], numbers)

    def _pairs(self, neighbour: Any, *, later: bool) -> list[int | None]:
        """For each edition the place of the one that it is compared with."""
        if later:
            place = {neighbour(edition): k for k, edition in enumerate(self.editions)}
            return [place.get(edition) for edition in self.editions]
        place = {edition: k for k, edition in enumerate(self.editions)}
        return [place.get(neighbour(edition)) for edition in self.editions]

    def _joined(self, frames: Sequence[AnswerFrame], numbers: dict[str, Floats]) -> AnswerFrame:
        """The rows of all editions below each other, with a column for the edition."""
        names = {column.name for column in frames[0].columns}
        name = "edition"
        while name in names:
            name += "_"
        kind = EDITION_KINDS.get(self.editions[0].period, "text")
        columns = [Column(name, kind, self.names)]
        sizes = [len(frame) for frame in frames]
        codes = [np.repeat(np.arange(len(frames)), sizes)]
        for place in range(len(frames[0].columns)):
            column, code = _merged([frame.columns[place] for frame in frames])
            columns.append(column)
            codes.append(
                np.concatenate(
                    [
                        np.append(code[k], -1)[frame.codes[:, place]]
                        for k, frame in enumerate(frames)
                    ]
                )
            )
        releases = self.each
        caveats = dict.fromkeys(caveat for frame in frames for caveat in frame.caveats)
        amounts = dict.fromkeys(release.privacy.symbols for release in releases)
        guarantee = dict.fromkeys(release.stated["guarantee"] for release in releases)
        return replace(
            frames[-1],
            columns=tuple(columns),
            codes=np.column_stack(codes),
            positions=np.concatenate([frame.positions for frame in frames]),
            numbers=numbers,
            amount="; ".join(amounts),
            caveats=tuple(caveats),
            stated={**releases[-1].stated, "guarantee": f"in each edition: {'; '.join(guarantee)}"},
        )

    def dated(self, statement: Statement) -> int | None:
        """The place of the column of a statement whose labels are dates of each edition, if any."""
        frames = [
            layout_of(release.plan.workload, _statement(release, statement.name))
            for release in self.each
        ]
        for place in range(len(frames[0].columns)):
            pairs = zip(frames, self.editions, strict=True)
            if all(_is_dated(frame.columns[place], edition) for frame, edition in pairs):
                return place
        return None

    def write(
        self,
        path: str | os.PathLike[str],
        confidence: float = 0.95,
        *,
        statement: str | None = None,
    ) -> None:
        """Write the series to a file, or to a folder of one CSV file per statement.

        ``.html`` and ``.md`` are for readers, ``.xlsx`` has one sheet per statement, ``.json`` all
        tables. ``.csv`` and ``.parquet`` hold the table of the one ``statement``.
        """
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        notebook.write_series(self, path, confidence, statement)

    def report(self, path: str | os.PathLike[str], confidence: float = 0.95) -> None:
        """Write one HTML page of the series, which needs neither network nor JavaScript."""
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        notebook.write(self, path, confidence=confidence)

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)


def _read(entry: Any, number: int) -> tuple[str, Release]:
    """A release with the name that messages give it."""
    if isinstance(entry, Release):
        return f"release {number}", entry
    if isinstance(entry, str | os.PathLike):
        return os.fspath(entry), load_release(entry)
    raise UsageError(f"a series is made of releases or their files, not {type(entry).__name__}")


def _edition_of(name: str, release: Release) -> Edition:
    domain = release.plan.workload.domain
    editions = None if domain is None else domain.editions
    if editions is None or len(editions.names) != 1:
        about = "several editions" if editions is not None and editions.names else "no edition"
        raise UsageError(
            f"{name} is of {about}; a series is made of releases of one edition each, as "
            "lrm publish makes them: leave it out"
        )
    return editions.each[0]


def is_of_several(release: Release) -> bool:
    """Whether a release reads several editions, so that it is in no series."""
    domain = release.plan.workload.domain
    return domain is not None and domain.editions is not None and len(domain.editions.names) > 1


def _check_alike(name: str, release: Release, other_name: str, other: Release) -> None:
    """Refuse two releases that are not of one report."""
    for what, left, right in (
        ("protects", release.unit.words, other.unit.words),
        ("is about", _table(release), _table(other)),
        ("has the statements", _statements(release), _statements(other)),
    ):
        if left != right:
            raise UsageError(
                f"{name} and {other_name} are not of one report: the first {what} {left}, the "
                f"second {right}"
            )
    if release.simulated != other.simulated:
        raise UsageError(
            f"one of {name} and {other_name} is a rehearsal; a series is made of releases alone, "
            "or of rehearsals"
        )
    if _same_cells(release, other) and not _same_queries(release, other):
        raise UsageError(
            f"{name} and {other_name} are not of one report: their statements have the same names, "
            "but count other rows"
        )


def _statement(release: Release, name: str) -> Statement:
    return find_statement(release.plan.workload, name)


def _table(release: Release) -> str:
    domain = release.plan.workload.domain
    return spell(None if domain is None else domain.table)


def _statements(release: Release) -> str:
    """The names, columns and answers of the statements."""
    tables = release.plan.workload.tables
    return "; ".join(
        f"{table.name} ({', '.join([*(c.name for c in table.columns), *table.answers])})"
        for table in tables
    )


def _same_cells(release: Release, other: Release) -> bool:
    domains = [entry.plan.workload.domain for entry in (release, other)]
    if domains[0] is None or domains[1] is None or domains[0].shape != domains[1].shape:
        return False
    pairs = zip(domains[0].attributes, domains[1].attributes, strict=True)
    return all(a.name == b.name and type(a) is type(b) for a, b in pairs)


def _same_queries(release: Release, other: Release) -> bool:
    digests = {entry.plan.workload.over_all_rows().queries.digest for entry in (release, other)}
    return len(digests) == 1


@dataclass(frozen=True, eq=False)
class _Part:
    """The table of a statement in one edition."""

    release: Release
    frame: AnswerFrame
    places: list[Place]


def _part(release: Release, statement: Statement, confidence: float, edition: Edition) -> _Part:
    frame, caveats = with_computed(release, statement, confidence)
    frame = replace(frame, caveats=(*frame_caveats(release, statement), *caveats))
    labels = []
    for column in frame.columns:
        dated = _is_dated(column, edition)
        labels.append(
            [*(_place_in(label, edition) if dated else label for label in column.labels), None]
        )
    places = [
        tuple(column[code] for column, code in zip(labels, row, strict=True))
        for row in frame.codes.tolist()
    ]
    return _Part(release, frame, places)


def _is_dated(column: Column, edition: Edition) -> bool:
    """Whether the labels of a column are dates of the edition."""
    if column.kind not in _DATED:
        return False
    days = [day for day in map(_first_day, column.labels) if day is not None]
    # A year or a month holds the edition whose first day it begins before.
    spans = [day <= edition.last and _last_day(day, column) >= edition.first for day in days]
    return bool(days) and all(spans)


def _first_day(label: str) -> date | None:
    """The first day of a date, a time, a month or a year."""
    text = label[:10]
    try:
        return date.fromisoformat({4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text))
    except ValueError:  # a cell of undeclared values
        return None


def _last_day(day: date, column: Column) -> date:
    if column.kind in {"month", "year"}:
        return Edition.of(column.kind, day).last
    return day


def _place_in(label: str, edition: Edition) -> Place:
    """Where a date is in its edition: the months (or days) after its first, and the rest."""
    day = _first_day(label)
    if day is None:
        return (label,)
    if edition.period in {"day", "week"}:
        return (max(0, (day - edition.first) // timedelta(days=1)), label[10:])
    months = 12 * (day.year - edition.first.year) + day.month - edition.first.month
    return (max(0, months), label[7:])


def _merged(columns: Sequence[Column]) -> tuple[Column, list[NDArray[np.int64]]]:
    """One column with the labels of all, and the code of each label of each.

    >>> column, codes = _merged([Column("x", labels=("a", "c")), Column("x", labels=("a", "b"))])
    >>> column.labels, [code.tolist() for code in codes]
    (('a', 'b', 'c'), [[0, 2], [0, 1]])
    """
    order: list[str] = list(columns[-1].labels)
    for column in reversed(columns[:-1]):
        last = -1
        for label in column.labels:
            if label in order:
                last = order.index(label)
            else:
                last += 1
                order.insert(last if column.kind in _DATED else len(order), label)
    place = {label: code for code, label in enumerate(order)}
    kinds = {column.kind for column in columns}
    kind = kinds.pop() if len(kinds) == 1 else "text"
    codes = [np.array([place[label] for label in column.labels], np.int64) for column in columns]
    return Column(columns[-1].name, kind, tuple(order)), codes


def _changes(
    part: _Part, earlier: _Part | None, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """How the answers changed, and the ends of the intervals of the changes."""
    shape = part.frame.positions.shape
    changes = tuple(np.full(shape, np.nan) for _ in range(3))
    if earlier is None:
        return changes[0], changes[1], changes[2]
    row_of = {place: row for row, place in enumerate(earlier.places)}
    rows = [(row, row_of[place]) for row, place in enumerate(part.places) if place in row_of]
    pairs = np.array(rows, dtype=np.int64).reshape(-1, 2)
    for place in range(shape[1]):
        both = np.column_stack(
            [part.frame.positions[pairs[:, 0], place], earlier.frame.positions[pairs[:, 1], place]]
        )
        known = (both >= 0).all(axis=1)
        values = _differences((part.release, earlier.release), both[known], confidence)
        for table, column in zip(changes, values, strict=True):
            table[pairs[known, 0], place] = column
    return changes[0], changes[1], changes[2]


def _differences(
    releases: tuple[Release, Release], positions: NDArray[np.int64], confidence: float
) -> tuple[Floats, Floats, Floats]:
    """Differences of shown answers, and the ends of their intervals.

    Those of counts and sums follow from the joint law of both noises. An average or a rate of each
    release is within an interval of its own, both together with ``confidence``.
    """
    if not len(positions):
        return np.zeros(0), np.zeros(0), np.zeros(0)
    indices = [
        _linear_rows(release.plan.workload)[positions[:, k]] for k, release in enumerate(releases)
    ]
    linear = (indices[0] >= 0) & (indices[1] >= 0)
    change, low, high = np.empty((3, len(positions)))
    if linear.any():
        rows = indices[0][linear], indices[1][linear]
        noisy = releases[0].noisy(releases[0].rows), releases[1].noisy(releases[1].rows)
        answers = [_at(of.rows, index) for of, index in zip(releases, rows, strict=True)]
        widths = difference_half_widths(noisy, rows, confidence)
        change[linear] = answers[0] - answers[1]
        low[linear], high[linear] = change[linear] - widths, change[linear] + widths
    if not linear.all():
        each = (1.0 + confidence) / 2.0
        left, right = (
            _at(partial(_ends, release, confidence=each), positions[~linear, k])
            for k, release in enumerate(releases)
        )
        change[~linear] = left[:, 0] - right[:, 0]
        low[~linear], high[~linear] = left[:, 1] - right[:, 2], left[:, 2] - right[:, 1]
    return change, low, high


def _ends(release: Release, start: int, stop: int, confidence: float) -> Floats:
    """Answers and the ends of their intervals."""
    numbers = release.shown_numbers(start, stop, confidence)
    return np.column_stack([numbers[name] for name in ("answer", "low", "high")])


def _at(rows: Callable[[int, int], Floats], positions: NDArray[np.int64]) -> Floats:
    """The values at some positions."""
    start = int(positions.min())
    return rows(start, int(positions.max()) + 1)[positions - start]


def _linear_rows(workload: Workload) -> NDArray[np.int64]:
    """For each shown answer the linear query that it is, −1 for a derived one."""
    if not workload.derived:
        return np.arange(workload.shape[0])
    parts = [np.arange(start, stop) for start, stop in workload.labels.shown_ranges()]
    parts += [np.full(answer.label.count, -1) for answer in workload.derived]
    return np.concatenate([np.zeros(0, np.int64), *parts])
