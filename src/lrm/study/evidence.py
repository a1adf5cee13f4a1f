"""Stored rows as series and ratios: what claims are tested on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lrm.errors import UsageError
from lrm.study.grid import FIGURES, SCALES, Scale
from lrm.study.rows import DONE, Row

__all__ = ["HOLDS", "IN_PART", "NOT", "UNTESTED", "Finding", "Results", "exponent", "judge"]

HOLDS, IN_PART, NOT, UNTESTED = "holds", "holds in part", "does not hold", "not tested"

Series = dict[float, float]


@dataclass(frozen=True)
class Finding:
    """What the rows say about a sentence: the verdict, and the numbers it rests on."""

    verdict: str
    numbers: str


def judge(passed: Sequence[bool], numbers: str) -> Finding:
    """All pass: it holds. Some: in part. None: it does not. No rows: not tested."""
    if not passed:
        return Finding(UNTESTED, "the cells that it speaks of have no finished rows")
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


class Results:
    """Rows of one scale, looked up as the figures show them.

    Only finished rows count: a plan that was stopped at its limit says nothing about its
    mechanism, unless the mechanism promises the best within a time.
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

    def series(  # noqa: PLR0913 - what a curve is looked up by
        self,
        figure: int,
        label: str,
        *,
        workload: str | None = None,
        what: str = "error_expected",
        epsilon: float = 0.1,
        data: str = "search_log",
    ) -> Series:
        """One curve of a figure: x → value, by rising x."""
        found = {
            row.x: float(getattr(row, what))
            for row in self.rows
            if (row.figure, row.label, row.data, row.epsilon) == (figure, label, data, epsilon)
            and (workload is None or row.workload == workload)
        }
        return dict(sorted(found.items()))

    def ratios(self, figure: int, label: str, over: Sequence[str]) -> Series:
        """Error of ``label`` over the least error of ``over``, at every x that has them all."""
        mine = self.series(figure, label)
        others = [self.series(figure, other) for other in over]
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

    def best_stands(self, figures: Sequence[int]) -> str:
        """Where ``best`` is beside LRM and beside the best of all other pure mechanisms."""
        parts = []
        for against, name in ((("LRM",), "LRM's"), (PURE_RIVALS, "the best other's")):
            found = [
                ratio
                for figure in figures
                for workload in self.workloads(figure)
                for ratio in self._best_ratios(figure, workload, against)
            ]
            if found:
                parts.append(f"{spread(found)} times {name}")
        return f"Here the error of best is {' and '.join(parts)}." if parts else ""

    def _best_ratios(self, figure: int, workload: str, against: Sequence[str]) -> list[float]:
        mine = self.series(figure, "best", workload=workload)
        others = [self.series(figure, label, workload=workload) for label in against]
        return [
            value / min(other[x] for other in others if x in other)
            for x, value in mine.items()
            if any(x in other for other in others)
        ]


PURE_RIVALS = ("LM", "NOR", "WM", "HM", "AMM", "LRM")
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
