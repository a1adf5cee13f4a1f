"""How long a plan will take: a model of its work, scaled by what was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from study.grid import PlanSpec, Setting
from study.rows import DONE, Row

__all__ = ["Costs", "relative_cost"]

_ROUNDS = {"lowrank": 1.0, "matrix": 0.1, "best": 0.1}
"""Solvers whose costs matter; the cost of the others is negligible."""

_SECONDS = {"lowrank": 2e-6, "matrix": 4e-6, "best": 4e-5}
"""Seconds per unit of work on a core of 2021, for estimates before anything has finished."""


def relative_cost(spec: PlanSpec) -> float:
    """Work of a plan in arbitrary units: r²·n for LRM, n³ for AMM, next to nothing for most."""
    return _cost(spec.setting, spec.mechanism, dict(spec.options))


def _cost(setting: Setting, mechanism: str, options: Mapping[str, Any]) -> float:
    n, k, ratio = setting.cells, setting.largest_rank, float(options.get("rank_ratio", 1.2))
    if setting.family == "WRange":
        n = min(n, 2 * setting.queries)  # ranges have at most two ends each: few distinct cells
    if mechanism not in _ROUNDS:
        return 1e-6 * setting.cells * setting.queries
    # A small part for what every round costs beside its products.
    work = n**3 if mechanism == "matrix" else (ratio * k) ** 2 * n + 50 * ratio * k * n
    return _ROUNDS[mechanism] * (work + 1e5)


class Costs:
    """What finished plans took, and from that what others may take."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._seen: dict[str, dict[str, tuple[float, float]]] = {}
        self.add(rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Learn from further rows."""
        for row in rows:
            seen = self._seen.setdefault(row.mechanism, {})
            if row.case not in seen and row.status == DONE and row.cpu_seconds > 0:
                s = None if row.s < 0 else row.s
                setting = Setting(row.workload, row.queries, row.cells, s)
                cost = _cost(setting, row.mechanism, json.loads(row.options))
                seen[row.case] = cost, row.cpu_seconds

    def seconds(self, spec: PlanSpec) -> float:
        """Seconds of CPU that a plan may take, from finished ones of the same mechanism.

        The median ratio of seconds to work over the plans of nearest size; otherwise a known one.
        """
        work, seen = relative_cost(spec), self._seen.get(spec.mechanism)
        if not seen:
            return work * _SECONDS.get(spec.mechanism, math.nan)
        nearest = sorted(seen.values(), key=lambda pair: abs(math.log(pair[0] / work)))[:7]
        return work * median(seconds / cost for cost, seconds in nearest)
