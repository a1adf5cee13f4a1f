"""How far other answers, such as processed ones, are from the released ones, by statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lrm.queries.maps.linear import Floats
from lrm.queries.workload.finding import shown_ranges

if TYPE_CHECKING:  # a release imports what is computed from it
    from lrm.releases.core import Release

NORMAL_95 = 1.959964
"""Half of a 95 % interval of normal noise, in standard errors."""

MANY_NEGATIVE = 0.05
"""Share of negative answers from which on a note names the bias of what has none."""


def negative_share(release: Release) -> float:
    """The share of negative released answers: where it is large, so is the bias."""
    return float(np.mean(release.answers < 0)) if len(release.answers) else 0.0


@dataclass(frozen=True)
class StatementChange:
    """How far the answers of one statement are from the released ones, derived ones included.

    Parameters
    ----------
    name
        The statement.
    distance
        Root mean square of (other − released answer) / standard error. A quantile has no standard
        error: half of its interval takes the place of 1.96 of them.
    outside
        Share of the other answers outside the 95 % intervals.
    """

    name: str
    distance: float
    outside: float


def statement_changes(release: Release, values: Floats) -> Iterator[StatementChange]:
    """The change of each statement where the shown answers are ``values``."""
    batch = release.plan.workload
    for statement in batch.tables:
        ratios: list[Floats] = [np.empty(0)]
        outside: list[Floats] = [np.empty(0)]
        for start, stop in shown_ranges(batch, statement):
            numbers, others = release.shown_numbers(start, stop), values[start:stop]
            errors = _errors(numbers)
            change = np.abs(others - numbers["answer"])
            known = np.isfinite(change) & np.isfinite(errors)
            ratios.append(
                np.divide(change, errors, out=np.zeros_like(change), where=known & (errors > 0))
            )
            slack = 1e-9 * (1.0 + np.abs(others))
            low, high = numbers["low"] - slack, numbers["high"] + slack
            outside.append(((others < low) | (others > high)).astype(np.float64))
        ratio = np.concatenate(ratios)
        if len(ratio):
            distance = float(np.sqrt(np.mean(ratio**2)))
            yield StatementChange(statement.name, distance, float(np.mean(np.concatenate(outside))))


def _errors(numbers: dict[str, Floats]) -> Floats:
    errors = numbers["standard_error"]
    halves = (numbers["high"] - numbers["low"]) / 2
    return np.where(np.isnan(errors), halves / NORMAL_95, errors)
