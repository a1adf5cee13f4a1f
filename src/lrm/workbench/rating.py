"""What a plan says about the errors of a batch, at any promise, without planning again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np

from lrm.accuracy import Accuracy
from lrm.errors import BudgetError, UsageError
from lrm.maps.linear import Floats
from lrm.plans import Plan
from lrm.plans.comparison import Comparison, Outcome, SideBySide
from lrm.privacy.amounts import spell_amount
from lrm.privacy.budget import Privacy, unit_privacy
from lrm.spelling import number
from lrm.views.baselines import BASELINE_COLUMNS, baseline_rows, errors_by_mechanism
from lrm.views.comparisons import (
    SIDE_BY_SIDE_COLUMNS,
    advice,
    side_by_side_facts,
    side_by_side_rows,
)
from lrm.views.plans import bound_words, total_for_typical
from lrm.workbench.selects import Rows, Select, parts_by_select, scale_of, selects
from lrm.workload import EXPLICIT_QUERIES, Labels

__all__ = ["Rated", "beside", "inverse"]

BLOCK = 1 << 20
"""Answers that are rated in one go."""

TOP = 30
"""Answers that are listed one by one, the largest errors first."""

EXACT_ROWS = 80
"""Intervals that are computed for each promise anew."""

SMOOTH = 1000.0
"""Steps of a noise's deviation from which on its law only changes in scale."""


class Rated:
    """A plan, and what is needed to rate it at once.

    The standard errors at two promises differ by one factor, which is that of the noise. So the
    norms of the rows are computed once.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.selects = selects(plan.workload.shown)
        self._parts = parts_by_select(plan.workload)
        self._ratios: dict[float, Floats] = {}
        self._lock = threading.Lock()

    @cached_property
    def _norms(self) -> tuple[Floats, list[int], Floats]:
        """By statement: the mean squared norm of answers, the query of the largest, its scale."""
        unit = self.plan.accuracy(unit_privacy(self.plan.noise))
        means, worst, scales = [], [], []
        for parts, _ in self._parts:
            total, count, top, place, largest = 0.0, 0, -1.0, 0, 1.0
            for rows, scale in parts:
                for start, stop in _blocks(rows):
                    errors = unit.errors_of(start, stop) / unit.deviation * scale
                    total += float((errors**2).sum())
                    count += stop - start
                    best = int(np.argmax(errors.round(9)))
                    if float(errors[best]) > top:
                        top, place, largest = float(errors[best]), start + best, scale
            means.append(total / max(1, count))
            worst.append(place)
            scales.append(largest)
        return np.array(means), worst, np.array(scales)

    @cached_property
    def _top(self) -> list[tuple[int, float, str]]:
        """The answers of largest error: the query of each, the multiple of it, the name.

        Queries that serve rates and averages alone are not answers, and stand for them.
        """
        batch = self.plan.workload
        if batch.shape[0] > EXPLICIT_QUERIES:
            return []
        errors = self.plan.accuracy(unit_privacy(self.plan.noise)).standard_errors
        parts = [(batch.labels, np.arange(batch.shape[0]), 1.0)]
        listed = np.ones(batch.shape[0], dtype=bool)
        for one in batch.derived:
            scale = scale_of(one)
            if scale is not None:
                (rows,) = one.input_rows()
                parts.append((Labels([one.label]), rows, scale))
                listed[rows] = False
        for start, stop in batch.labels.shown_ranges():
            listed[start:stop] = True
        starts = np.cumsum([0, *(len(rows) for _, rows, _ in parts)])
        scaled = np.concatenate([errors[rows] * scale for _, rows, scale in parts])
        scaled[: batch.shape[0]][~listed] = -1.0
        found = []
        for i in np.argsort(-scaled.round(9), kind="stable")[: min(TOP, int(np.sum(scaled >= 0)))]:
            part = int(np.searchsorted(starts, i, side="right")) - 1
            labels, rows, scale = parts[part]
            place = int(i - starts[part])
            found.append((int(rows[place]), scale, labels[place].name))
        return found

    def at(self, privacy: Privacy, confidence: float) -> dict[str, Any]:
        """The errors at a promise: in total, by statement, and of the worst answers."""
        expected = self.plan.accuracy(privacy)
        means, worst, scales = self._norms
        top = self._top
        with self._lock:
            half = self._half_widths(expected, confidence, [*worst, *(place for place, *_ in top)])
        typical = np.sqrt(means) * expected.deviation
        return {
            "promise": privacy.symbols,
            "noise": self.plan.noise,
            "confidence": confidence,
            "queries": self.plan.workload.shape[0],
            "typical": expected.root_mean_squared_error,
            "best_possible": float(np.sqrt(expected.lower_bound / self.plan.workload.shape[0])),
            "bound": bound_words(self.plan),
            "warnings": list(self.plan.warnings),
            "statements": [
                {
                    **_row(
                        one,
                        float(typical[i]),
                        self._error(expected, worst[i]) * float(scales[i]),
                        float(half[i] * scales[i]),
                    ),
                    "derived": self._parts[i][1],
                }
                for i, one in enumerate(self.selects)
            ],
            "answers": [
                {
                    "name": name,
                    **_numbers(
                        self._error(expected, place) * scale, float(half[len(worst) + i]) * scale
                    ),
                }
                for i, (place, scale, name) in enumerate(top)
            ],
        }

    def _error(self, expected: Accuracy, place: int) -> float:
        if self.plan.workload.shape[0] <= EXPLICIT_QUERIES:
            return float(expected.standard_errors[place])
        return float(expected.errors_of(place, place + 1)[0])

    def _half_widths(self, expected: Accuracy, confidence: float, rows: list[int]) -> Floats:
        """Half of each interval; many of them by the shape of the noise, computed once."""
        if len(rows) <= EXACT_ROWS or expected.law.deviation < SMOOTH:
            return expected.half_widths(confidence, rows)
        if confidence not in self._ratios:
            exact = expected.half_widths(confidence, rows)
            self._ratios = {confidence: exact / expected.deviation}
        return self._ratios[confidence] * expected.deviation

    @cached_property
    def _rivals(self) -> dict[str, Floats]:
        return errors_by_mechanism(self.plan, self.plan.accuracy(unit_privacy(self.plan.noise)))

    def rivals(self, privacy: Privacy) -> dict[str, Any]:
        """Simpler mechanisms on the same batch at the same promise."""
        unit = self.plan.accuracy(unit_privacy(self.plan.noise))
        scale = self.plan.accuracy(privacy).ideal_deviation(1.0) / unit.ideal_deviation(1.0)
        with self._lock:
            scaled = {name: errors * scale for name, errors in self._rivals.items()}
        typical = [float(np.sqrt(np.mean(errors**2))) for errors in scaled.values()]
        return {
            "columns": list(BASELINE_COLUMNS),
            "rows": baseline_rows(scaled),
            "typical": typical,
        }


def _blocks(ranges: Rows) -> Iterator[tuple[int, int]]:
    """Ranges of at most so many answers that they can be rated in one go."""
    for first, last in ranges:
        for start in range(first, last, BLOCK):
            yield start, min(start + BLOCK, last)


def _row(one: Select, typical: float, largest: float, half: float) -> dict[str, Any]:
    return {
        "title": one.title,
        "count": one.count,
        "typical": typical,
        "typical_text": number(typical),
        **_numbers(largest, half),
    }


def _numbers(error: float, half: float) -> dict[str, Any]:
    return {
        "error": error,
        "error_text": number(error),
        "half": half,
        "half_text": f"±{number(half)}",
    }


def beside(laplace: Plan, gaussian: Plan, pure: Privacy, approximate: Privacy) -> dict[str, Any]:
    """Laplace noise beside Gaussian noise, and which to take."""
    both = SideBySide(*(Comparison((Outcome("best", one),)) for one in (laplace, gaussian)))
    facts = side_by_side_facts(both, pure, approximate)
    typical = [
        number(plan.accuracy(privacy).root_mean_squared_error)
        for plan, privacy in ((laplace, pure), (gaussian, approximate))
    ]
    return {
        "columns": list(SIDE_BY_SIDE_COLUMNS),
        "rows": side_by_side_rows(facts),
        "typical": typical,
        "advice": advice(facts),
    }


def inverse(rated: Rated, wanted: float, statement: int | None) -> dict[str, str]:
    """The least amount with which a typical answer, or the worst of a statement, has an error."""
    plan = rated.plan
    total = total_for_typical(plan, wanted)
    if statement is not None:
        if not 0 <= statement < len(rated.selects):
            raise UsageError("the plan has no such statement; wait until the batch is planned")
        unit = plan.accuracy(unit_privacy(plan.noise))
        largest = rated.at(unit.privacy, 0.95)["statements"][statement]["error"]
        if not largest:
            raise BudgetError("the answers of this statement have no error at any amount")
        total *= unit.squared_error / plan.workload.shape[0] / largest**2
    found = plan.privacy_for(total)
    ((name, amount),) = asdict(found).items()
    return {"name": name, "amount": spell_amount(amount), "exact": str(amount)}
