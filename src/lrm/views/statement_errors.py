"""The errors of each statement of a plan, at any guarantee, and what they make of its answers.

Answers of different kinds are never averaged: the counts of a statement are one row, each of its
sums is one, and so is each rate, average or quantile, whose errors depend on the table: it states
the errors of its numerator, or of the running totals of a quantile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrm.files.spelling import in_percent, many, number
from lrm.planning.accuracy import Accuracy
from lrm.planning.derived import expected_error
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.plan import Plan
from lrm.privacy.budget import Privacy, PureDP, zcdp_of
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Computed, Derived, Statement, Workload
from lrm.queries.workload.finding import count_ranges, linear_answers
from lrm.queries.workload.statements import spoken_name
from lrm.views.blocks import Cell, Figure, Heading, Table
from lrm.views.charts import step_chart
from lrm.views.verdicts import USABLE, WITHIN, percent, verdict

BLOCK = 1 << 20
"""Answers whose errors are computed at a time."""

EXACT_ROWS = 80
"""Intervals that are computed for each guarantee anew."""

COUNTS = "counts"
"""What the counts of a statement are called that has other answers too."""

Kind = Literal["count", "sum", "derived"]

Norms = tuple[Floats, Floats, list[int], Floats]
"""By part: the typical and the largest norm, a query of about the typical, its norm."""


class Rows(NamedTuple):
    """Linear queries ``start:stop``, and the multiple of them that answers are."""

    start: int
    stop: int
    scale: float


@dataclass(frozen=True)
class Part:
    """The answers of one kind of a statement."""

    statement: Statement
    # Counts are linear queries to which a record adds at most 1; other linear queries and their
    # multiples are sums; the rest is derived.
    kind: Kind
    name: str  # the answer, where the statement has answers of several kinds
    count: int
    rows: tuple[Rows, ...]  # the linear queries that they are, or that their numerators are
    derived: tuple[int, ...] = ()  # the derived answers that they are

    @property
    def title(self) -> str:
        """The title of the statement, with the name of the answer where it has several kinds."""
        return part_title(self.statement.title, self.name)


def part_title(title: str, name: str) -> str:
    """The title of a statement, with the name of an answer where one is given."""
    return f"{title}: {spoken_name(name)}" if name else title


def named_parts(title: str, counts: int, answer_counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Titles and numbers of answers of the parts that a statement will have.

    ``counts`` is the number of its counts, and ``answer_counts`` that of each other answer.
    """
    parts = {**({COUNTS: counts} if counts else {}), **answer_counts}
    several = len(parts) > 1
    return [(part_title(title, name if several else ""), count) for name, count in parts.items()]


def statement_parts(batch: Workload) -> list[Part]:
    """The statements of a batch, each as one part of its counts and one for each other answer."""
    part_list = []
    for statement in batch.tables:
        counts, parts = _linear(batch, statement)
        size = sum(rows.stop - rows.start for rows in counts)
        numbers: dict[str, list[int]] = {}
        for number_of, derived in enumerate(
            batch.derived[slice(*statement.derived)], statement.derived[0]
        ):
            scale, name = scale_of(derived), derived.label.query
            numbers.setdefault(name, []).append(number_of)
            kind: Kind = "derived" if scale is None else "sum"
            known = parts.get(name, (kind, 0, []))
            ranges = [*known[2], *_ranges(derived, scale)]
            kind = kind if kind == known[0] else "derived"
            parts[name] = kind, known[1] + derived.label.count, ranges
        several = bool(counts) + len(parts) > 1
        if counts:
            part_list.append(
                Part(statement, "count", COUNTS if several else "", size, tuple(counts))
            )
        for name, (kind, count, ranges) in parts.items():
            part_rows = _distinct(ranges) if kind == "derived" else ranges
            derived_numbers = tuple(numbers.get(name, ())) if kind == "derived" else ()
            part_list.append(
                Part(
                    statement,
                    kind,
                    name if several else "",
                    count,
                    tuple(part_rows),
                    derived_numbers,
                )
            )
    return part_list


def _linear(
    batch: Workload, statement: Statement
) -> tuple[list[Rows], dict[str, tuple[Kind, int, list[Rows]]]]:
    """The linear queries that are answers of a statement: counts, and sums by name."""
    counts: list[Rows] = []
    sums: dict[str, tuple[Kind, int, list[Rows]]] = {}
    for name, (start, stop), is_count in linear_answers(batch, statement):
        rows = Rows(start, stop, 1.0)
        if is_count:
            counts.append(rows)
        else:
            _, count, known = sums.get(name, ("sum", 0, []))
            sums[name] = "sum", count + stop - start, [*known, rows]
    return counts, sums


def comparable_rows(batch: Workload) -> tuple[tuple[str, str], NDArray[np.int64]]:
    """The linear queries whose errors have a common mean, and what one and several are called.

    They are the counts; without any, those of the first answer: units are never mixed.
    """
    ranges, names = count_ranges(batch), ("count", "counts")
    if not ranges:
        names = ("sum", "sums")
        ranges = [rows[:2] for part in statement_parts(batch)[:1] for rows in part.rows]
    elif not any(table.answers for table in batch.tables):  # of a matrix, with any weights
        names = ("query", "queries")
    return names, np.concatenate([np.arange(0), *(np.arange(*rows) for rows in ranges)])


def scale_of(derived_answer: Derived) -> float | None:
    """The multiple of one query that an answer is, perhaps with a constant added; None for others.

    >>> from lrm.queries.workload import Block, Formula, LabelBlock
    >>> twice = Computed(LabelBlock("n"), Formula((0, -2.0, "*", 5.0, "+")), (Block(0, (), 3.0),))
    >>> scale_of(twice)
    6.0
    """
    if not isinstance(derived_answer, Computed) or derived_answer.formula.core.steps != (0,):
        return None
    scale = float(derived_answer.inputs[0].scale)
    for step, constant in derived_answer.formula.tail:
        if step not in {"+", "-", "*", "/"}:
            return None
        scale = scale * constant if step == "*" else scale / constant if step == "/" else scale
    return abs(scale)


def _ranges(derived_answer: Derived, scale: float | None) -> list[Rows]:
    """The first linear queries that a derived answer is computed from, as ranges.

    A rate or average has inputs in several units: these are the numerator's alone.
    """
    if scale is None:
        first = derived_answer.inputs[0] if isinstance(derived_answer, Computed) else None
        scale = 1.0 if first is None else abs(float(first.scale))
    places = np.unique(derived_answer.input_rows()[0])
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    return [Rows(int(run[0]), int(run[-1]) + 1, scale) for run in np.split(places, cuts)]


def _distinct(rows: Sequence[Rows]) -> list[Rows]:
    """Each query once, however many answers are computed from it."""
    merged: list[Rows] = []
    for row_range in sorted(rows):
        if merged and row_range.start <= merged[-1].stop:
            merged[-1] = merged[-1]._replace(stop=max(row_range.stop, merged[-1].stop))
        else:
            merged.append(row_range)
    return merged


@dataclass(frozen=True)
class StatementError:
    """The errors of the answers of one kind of a statement at a guarantee.

    Those of rates and averages depend on the rows of a group. They are the largest that answers can
    have with the rows that the statement states (``-- expected: 500``), and NaN without.
    """

    part: Part
    typical: float  # root mean square of their standard errors
    largest: float
    half: float  # half of the interval of an answer with the typical error
    # The error of the whole statement beside that under an even split of the budget; None where
    # that is not stated.
    ratio: float | None = None

    @property
    def relative(self) -> float | None:
        """Half an interval relative to the expected size of a count; None where none is stated."""
        expected = self.part.statement.expected
        return None if expected is None or self.part.kind != "count" else self.half / expected

    @property
    def verdict(self) -> str:
        """Usable, rough or noise; empty where no size is expected."""
        return "" if self.relative is None else verdict(self.relative)


class StatementErrors:
    """The errors of all statements of a plan.

    Standard errors at two guarantees differ by one factor, which is that of the noise. So the
    norms of the rows are computed once. ``ratios`` are the errors of the statements relative to an
    even split (`Plan.statement_ratios`).
    """

    def __init__(self, plan: Plan, ratios: Floats | None = None) -> None:
        self.plan = plan
        self.parts = statement_parts(plan.workload)
        self._ratios: dict[float, Floats] = {}
        self._derived: dict[tuple[tuple[int, ...], float, float], tuple[float, float]] = {}
        self._even: dict[int, float] = {}
        if ratios is not None:
            pairs = zip(plan.workload.statements, ratios.tolist(), strict=True)
            self._even = {id(statement): ratio for statement, ratio in pairs}

    @cached_property
    def _plain_norms(self) -> Norms:
        return self._norms_of(self.plan.reconstruction_map)

    def _norms(self, accuracy: Accuracy) -> Norms:
        """Computed once where the noise has one variance, whatever that is."""
        if accuracy.law.ratios is None:
            return self._plain_norms
        return self._norms_of(accuracy.reconstruction)

    def _norms_of(self, reconstruction: Reconstruction) -> Norms:
        typical, largest, places, near_norms = [], [], [], []
        for part in self.parts:
            square, count, most, near = 0.0, 0, 0.0, (part.rows[0].start, 0.0)
            for start, norms, scale in _blocks(part, reconstruction):
                square += float(((norms * scale) ** 2).sum())
                count += len(norms)
                most = max(most, float(norms.max()) * scale)
                middle = math.sqrt(square / count) / scale
                place = int(np.argmin(np.abs(norms - middle)))
                if abs(norms[place] * scale - middle * scale) <= abs(near[1] - middle * scale):
                    near = start + place, float(norms[place])
            typical.append(math.sqrt(square / count))
            largest.append(most)
            places.append(near[0])
            near_norms.append(near[1])
        return np.array(typical), np.array(largest), places, np.array(near_norms)

    def largest(self, accuracy: Accuracy) -> Floats:
        """The largest standard error of each part; NaN where it is not known."""
        largest = self._norms(accuracy)[1] * accuracy.deviation
        for place, part in enumerate(self.parts):
            if part.kind == "derived":
                largest[place] = self._derived_errors(part, accuracy, 0.95)[0]
        return largest

    def _derived_errors(
        self, part: Part, accuracy: Accuracy, confidence: float, expect: float | None = None
    ) -> tuple[float, float]:
        """Standard error and half-width of rates and averages with the rows that are expected.

        They follow from those at another amount where the noise is as good as continuous.
        """
        rows, batch = part.statement.expected if expect is None else expect, self.plan.workload
        if rows is None:
            return math.nan, math.nan
        key = part.derived, confidence, rows
        if key not in self._derived or not accuracy.law.smooth:
            errors = [
                expected_error(batch.derived[k], batch.queries, accuracy, confidence, rows)
                for k in part.derived
                if isinstance(batch.derived[k], Computed)
            ]
            error = max((e.standard_error or math.nan for e in errors), default=math.nan)
            half = max((e.half_width for e in errors), default=math.nan)
            known = math.isfinite(error) and math.isfinite(half) and len(errors) > 0
            pair = (error, half) if known else (math.nan, math.nan)
            scale = accuracy.deviation or 1.0
            self._derived[key] = pair[0] / scale, pair[1] / scale
        error, half = self._derived[key]
        return error * accuracy.deviation, half * accuracy.deviation

    def at(
        self, accuracy: Accuracy, confidence: float = 0.95, expect: float | None = None
    ) -> list[StatementError]:
        """The errors at the guarantee of ``accuracy``.

        Those of rates and averages are for ``expect`` rows in a group, or for what their statement
        states.
        """
        if not self.parts:
            return []
        typical, largest, places, near_norms = self._norms(accuracy)
        wider = np.divide(typical, near_norms, out=np.zeros(len(near_norms)), where=near_norms > 0)
        wider[np.isclose(wider, 1.0, rtol=1e-9)] = 1.0
        halves = self.half_widths(accuracy, confidence, places) * wider
        typical, largest = typical * accuracy.deviation, largest * accuracy.deviation
        for place, part in enumerate(self.parts):
            if part.kind == "derived":
                error, half = self._derived_errors(part, accuracy, confidence, expect)
                typical[place] = largest[place] = error
                halves[place] = half
        columns = (typical, largest, halves)
        rows = zip(self.parts, *(column.tolist() for column in columns), strict=True)
        return [
            StatementError(part, typical, most, half, self._even.get(id(part.statement)))
            for part, typical, most, half in rows
        ]

    def half_widths(self, accuracy: Accuracy, confidence: float, rows: list[int]) -> Floats:
        """Half of each interval; many of them by the shape of the noise, computed once."""
        if len(rows) <= EXACT_ROWS or not accuracy.law.smooth:
            return accuracy.half_widths(confidence, rows)
        if confidence not in self._ratios:
            exact = accuracy.half_widths(confidence, rows)
            self._ratios = {confidence: exact / accuracy.deviation}
        return self._ratios[confidence] * accuracy.deviation


def _blocks(part: Part, reconstruction: Reconstruction) -> Iterator[tuple[int, Floats, float]]:
    """Norms of rows of the reconstruction, in blocks that can be held."""
    for first, last, scale in part.rows:
        for start in range(first, last, BLOCK):
            norms = np.sqrt(reconstruction.squared_norms(start, min(start + BLOCK, last)))
            yield start, norms, scale


def statement_facts(errors: Sequence[StatementError]) -> list[dict[str, Any]]:
    """The same as values that JSON can hold."""
    return [
        {
            "name": error.part.statement.name,
            "title": error.part.title,
            "kind": error.part.kind,
            "answers": error.part.count,
            "expected": error.part.statement.expected,
            "standard_error": _known(error.typical),
            "largest_standard_error": _known(error.largest),
            "half_width": _known(error.half),
            "relative_half_width": error.relative,
            "verdict": error.verdict or None,
            "of_even_split": error.ratio,
        }
        for error in errors
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def stated(value: float, sign: str = "") -> str:
    """An error as text; a dash where it depends on the table, and nothing is expected of that."""
    return "—" if math.isnan(value) else f"{sign}{number(value)}"


def error_table(
    errors: Sequence[StatementError], confidence: float, title: str = "", *, public: bool = False
) -> Table:
    """One row per statement and kind, with a verdict where a comment states the usual size.

    One that is public has no verdicts: they are for the author.
    """
    judged = not public and any(error.relative is not None for error in errors)
    headings = [
        Heading("statement", words=True, label=True),
        Heading("answers"),
        Heading("standard error"),
        Heading(f"{in_percent(confidence)} interval"),
    ]
    balanced = any(error.ratio is not None for error in errors)
    headings += [Heading("of even split")] if balanced else []
    headings += [Heading("of expected"), Heading("verdict", words=True)] if judged else []
    rows = []
    most = max((error.half for error in errors if error.part.kind == "count"), default=0.0) or 1.0
    for error in errors:
        bar = None
        if error.part.kind == "count" and len(errors) > 1:
            bar = (0.0, error.half / most, 0.0, 0.0)
        row = [
            Cell(error.part.title),
            Cell(f"{error.part.count:,}"),
            Cell(stated(error.typical)),
            Cell(stated(error.half, "±"), bar=bar),
        ]
        if balanced:
            shown = "" if error.ratio is None else f"{error.ratio:.2f}"
            row.append(Cell(shown))
        if judged:
            share = error.relative
            row += [Cell("" if share is None else percent(share)), Cell(error.verdict)]
        rows.append(tuple(row))
    notes = []
    if balanced:
        notes.append("Of even split: the error as a share of that with the budget split evenly.")
    derived = [error for error in errors if error.part.kind == "derived"]
    if not public and any(math.isnan(error.half) for error in derived):
        notes.append(
            "— depends on the rows of a group: `-- expected: 500` before a statement states them, "
            "and `lrm rehearse` shows errors on synthetic rows."
        )
    if not public and not all(math.isnan(error.half) for error in derived):
        notes.append("Rates and averages: the largest errors with the expected rows of a group.")
    return Table(title, tuple(headings), tuple(rows), " ".join(notes))


def kind_lines(errors: Sequence[StatementError]) -> list[tuple[str, str]]:
    """The error of a typical count; sums and rates have units of their own, and no common error."""
    typical = typical_count(errors)
    if typical is None:
        return []
    listed = all(
        not error.part.statement.answers for error in errors
    )  # of a matrix, with any weights
    name = "error of a query" if listed else "error of a count"
    return [(name, f"{number(typical)} (root mean square)")]


def typical_count(errors: Iterable[StatementError]) -> float | None:
    """The root mean square of the standard errors of all counts; None where there is none."""
    counts = [(error.typical, error.part.count) for error in errors if error.part.kind == "count"]
    total = sum(count for _, count in counts)
    return math.sqrt(sum(e * e * count for e, count in counts) / total) if total else None


def usable_amounts(errors: Sequence[StatementError], privacy: Privacy) -> tuple[str, list[float]]:
    """From which ε (ρ for Gaussian noise) on each table with an expected size is usable, ascending.

    Errors are in proportion to 1/ε, or to 1/√ρ.
    """
    if isinstance(privacy, PureDP):
        sign, amount, power = "ε", float(privacy.epsilon), 1
    else:
        sign, amount, power = "ρ", float(zcdp_of(privacy).rho), 2
    shares = [error.relative for error in errors if error.relative is not None]
    return sign, sorted(amount * (share / USABLE) ** power for share in shares)


def usable_sentence(errors: Sequence[StatementError], privacy: Privacy) -> str:
    """How many tables are usable at a guarantee; empty where no size is expected."""
    judged = [error for error in errors if error.relative is not None]
    if not judged:
        return ""
    usable = sum(error.verdict == "usable" for error in judged)
    counts = sum(error.part.kind == "count" for error in errors)
    some = "" if len(judged) == counts else " with an expected size"
    sign, amounts = usable_amounts(errors, privacy)
    rest = "" if usable == len(judged) else f"; all would be at {sign} = {amounts[-1]:.2g}"
    return (
        f"at {privacy.symbols}, {usable} of {many(len(judged), 'table', 'tables')}{some} "
        f"{'is' if len(judged) == 1 else 'are'} {WITHIN}{rest}"
    )


def usable_figure(errors: Sequence[StatementError], privacy: Privacy) -> Figure | None:
    """How many tables are usable at each amount; None where fewer than two sizes are expected."""
    sign, amounts = usable_amounts(errors, privacy)
    if len(amounts) < 2 or amounts[0] <= 0:
        return None
    words = f"The number of usable tables as {sign} grows, from 0 to all {len(amounts)}"
    caption = f"Tables {WITHIN} of their expected size, by {sign} (logarithmic)."
    return Figure(step_chart(amounts, sign, words), words, caption)
