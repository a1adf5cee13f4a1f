"""How long a plan will take: a model of its work, scaled by what was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from lrm.study.grid import PlanSpec, Setting
from lrm.study.rows import DONE, Row

__all__ = ["estimate_seconds", "relative_cost"]

_ROUNDS = {"lowrank": 1.0, "matrix": 0.1, "best": 0.1}
"""Solvers beside each other; the others cost nothing to speak of."""

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


def estimate_seconds(spec: PlanSpec, rows: Iterable[Row]) -> float:
    """Seconds of CPU that a plan may take, from finished ones of the same mechanism.

    The median ratio of seconds to work over the plans of nearest size; a known one else.
    """
    work = relative_cost(spec)
    seen = {}
    for row in rows:
        if row.mechanism == spec.mechanism and row.status == DONE and row.cpu_seconds > 0:
            setting = Setting(row.workload, row.queries, row.cells, None if row.s < 0 else row.s)
            seen[row.cell] = (
                _cost(setting, row.mechanism, json.loads(row.options)),
                row.cpu_seconds,
            )
    if not seen:
        return work * _SECONDS.get(spec.mechanism, math.nan)
    nearest = sorted(seen.values(), key=lambda pair: abs(math.log(pair[0] / work)))[:7]
    return work * median(seconds / cost for cost, seconds in nearest)
