"""Stored rows as series and ratios: what claims are tested on."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lrm.errors import UsageError
from study.grid import FIGURES, SCALES, Scale, cases_of
from study.rows import DONE, Row

__all__ = [
    "HOLDS",
    "IN_PART",
    "NOT",
    "SO_FAR",
    "UNTESTED",
    "Finding",
    "Results",
    "exponent",
    "judge",
    "spelled",
    "spread",
]

HOLDS, IN_PART, NOT, UNTESTED = "holds", "holds in part", "does not hold", "not tested"
SO_FAR = "holds so far"
"""Every check passes, but some points that the sentence speaks of have no finished rows."""

Series = dict[float, float]
Point = tuple[int, str, str, float]
"""A figure, a series, a workload and a place on the axis."""


def anywhere(x: float) -> bool:
    """Every point of a series."""
    del x
    return True


@dataclass(frozen=True)
class Finding:
    """What the rows say about a sentence: the verdict, and the numbers it rests on."""

    verdict: str
    numbers: str


def judge(passed: Sequence[bool], numbers: str) -> Finding:
    """All pass: it holds. Some: in part. None: it does not. No rows: not tested."""
    if not passed:
        return Finding(UNTESTED, "the cases that it speaks of have no finished rows")
    verdict = HOLDS if all(passed) else IN_PART if any(passed) else NOT
    return Finding(verdict, f"{sum(passed)} of {len(passed)} checks pass: {numbers}")


def exponent(series: Mapping[float, float]) -> float:
    """The p of the power law ``value ∝ x^p`` that fits best on logarithmic axes.

    >>> round(exponent({1.0: 3.0, 2.0: 12.0, 4.0: 48.0}), 6)
    2.0
    """
    if len(series) < 2:
        return math.nan
    x, y = np.log(list(series)), np.log(list(series.values()))
    return float(np.polyfit(x, y, 1)[0])


@dataclass
class LookedUp:
    """The points that were looked up, and the rows of those that are finished."""

    asked: set[Point] = field(default_factory=set)
    found: dict[Point, Row] = field(default_factory=dict)

    def weigh(self, finding: Finding) -> Finding:
        """Say on how much of what was looked up a finding rests."""
        if finding.verdict == UNTESTED:
            return finding
        notes, missing = "", len(self.asked - set(self.found))
        if missing:
            notes += f"; {missing} of {len(self.asked)} points have no finished rows"
        loose = sum(is_loose(row) for row in self.found.values())
        if loose:
            notes += f"; {loose} of the points did not converge"
        verdict = SO_FAR if missing and finding.verdict == HOLDS else finding.verdict
        return Finding(verdict, finding.numbers + notes)


class Results:
    """Rows of one scale, looked up as the figures show them.

    Only finished rows count: a plan that was stopped at its limit says nothing about its
    mechanism, unless the mechanism promises the best within a time. What is looked up is
    remembered, so that a verdict can say on how many of its points it rests.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.all_rows = list(rows)
        names = {row.scale for row in self.all_rows}
        if len(names) != 1:
            raise UsageError(
                "expected stored rows of one scale, but there are "
                + (f"those of {', '.join(sorted(names))}" if names else "none; run the study first")
            )
        self.scale: Scale = SCALES[names.pop()]
        self.rows = [row for row in self.all_rows if row.status == DONE]
        self._grid: dict[tuple[int, str], list[tuple[str, float]]] = {}
        for case in cases_of(self.scale):
            place = case.plan.setting.family, float(case.x)
            self._grid.setdefault((case.figure, case.label), []).append(place)
        self.looked = LookedUp()

    def unwatched(self) -> Results:
        """The same rows, and nothing looked up yet."""
        fresh = copy.copy(self)
        fresh.looked = LookedUp()
        return fresh

    def series(  # noqa: PLR0913 - what a curve is looked up by
        self,
        figure: int,
        label: str,
        *,
        workload: str | None = None,
        what: str = "error_expected",
        epsilon: float = 0.1,
        data: str = "search_log",
        where: Callable[[float], bool] = anywhere,
    ) -> Series:
        """One curve of a figure: x → value, by rising x."""
        self.looked.asked |= {
            (figure, label, family, x)
            for family, x in self._grid.get((figure, label), ())
            if workload in (None, family) and where(x)
        }
        found = {
            row.x: row
            for row in self.rows
            if (row.figure, row.label, row.data, row.epsilon) == (figure, label, data, epsilon)
            and workload in (None, row.workload)
            and where(row.x)
        }
        self.looked.found |= {(figure, label, row.workload, x): row for x, row in found.items()}
        return {x: float(getattr(row, what)) for x, row in sorted(found.items())}

    def by_workload(
        self, figure: int, label: str, what: str = "error_expected", *, epsilon: float = 0.1
    ) -> dict[str, Series]:
        """The curves of one mechanism on each workload of a figure that has two points."""
        curves = {
            workload: self.series(figure, label, workload=workload, what=what, epsilon=epsilon)
            for workload in self.workloads(figure)
        }
        return {workload: series for workload, series in curves.items() if len(series) > 1}

    def ratios(
        self,
        figure: int,
        label: str,
        over: Sequence[str],
        where: Callable[[float], bool] = anywhere,
    ) -> Series:
        """Error of ``label`` over the least error of ``over``, at every x that has them all."""
        mine = self.series(figure, label, where=where)
        others = [self.series(figure, other, where=where) for other in over]
        return {
            x: value / min(other[x] for other in others)
            for x, value in mine.items()
            if all(x in other for other in others)
        }

    def cells_like(self, paper: int) -> float:
        """The n of this scale that stands for the paper's."""
        return paper * self.scale.default_cells / 1024

    def workloads(self, figure: int) -> tuple[str, ...]:
        """The workloads that a figure is about."""
        return FIGURES[figure].workloads

    def best_stands(self, figures: Sequence[int], what: str = "error_expected") -> str:
        """Where ``best`` is beside LRM and beside the best of all other pure mechanisms.

        Mechanisms are compared on the same workload, whichever figure has their rows.
        """
        known: dict[tuple[object, ...], dict[str, list[float]]] = {}
        for row in self.rows:
            if row.epsilon == 0.1 and row.label in (*PURE_BASELINES, "best"):
                place = known.setdefault(_setting_of(row), {})
                place.setdefault(row.label, []).append(float(getattr(row, what)))
        asked = {_setting_of(row) for row in self.rows if row.figure in figures}
        parts = []
        for against, name in ((("LRM",), "LRM's"), (PURE_BASELINES, "the best other's")):
            found = [
                min(values["best"]) / min(baselines)
                for place, values in known.items()
                if place in asked and "best" in values
                for baselines in [[v for label in against for v in values.get(label, ())]]
                if baselines
            ]
            if found:
                parts.append(f"{spread(found)} times {name}")
            if what != "error_expected":
                break  # the time of a mechanism without a search says nothing
        quantity = "error" if what == "error_expected" else "time"
        return f"Here the {quantity} of best is {' and '.join(parts)}." if parts else ""


def _setting_of(row: Row) -> tuple[object, ...]:
    return row.workload, row.queries, row.cells, row.s


def is_loose(row: Row) -> bool:
    """Whether a solver that should have come to an end by itself did not.

    Searches that promise the best within a time may be ended by it, and nothing converges with
    fewer measurements than the rank.
    """
    return not row.converged and row.mechanism != "best" and row.measurements >= row.rank


PURE_BASELINES = ("LM", "NOR", "WM", "HM", "AMM", "LRM")
"""Mechanisms with the same promise as ``best``; the relaxed program and Gaussian are not."""


def spread(values: Iterable[float]) -> str:
    """Spell the range of some numbers.

    >>> spread([0.5, 0.25]), spread([2.0])
    ('0.25 to 0.5', '2')
    """
    low, high = min(values := list(values)), max(values)
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


def spelled(series: Mapping[float, float]) -> str:
    """Spell a short series: value at x."""
    return ", ".join(f"{value:.3g} at {x:g}" for x, value in series.items())
