"""Settings of the search, each at half and at double its value, on a few fast batches.

``python -m benchmarks settings`` plans the batches below, notes which of them read which setting of
``lrm.solvers.settings``, and plans these again with other values. It prints by which factor the
error and the CPU time change in the batch where they change most. A setting that changes no error
by 0.1 % and no time by 10 % is marked: it can go, unless it is there for larger batches. Schedules
(tuples) and ranges are left as they are.
"""

from __future__ import annotations

import argparse
import time
import types
from collections.abc import Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.golden import CASES
from lrm.solvers import settings
from lrm.workload import Workload

__all__ = ["main"]

BATCHES = (
    *("prefix 64", "WRange 64×128", "unseen sparse counts", "unseen blocks", "gaussian prefix 256"),
    *("long ranges of 32 cells 4096", "cps prefixes", "2×2×2×2×2×2 1-way"),
    *("unseen product a whole table", "gaussian product groupings"),
)
"""Cases of the golden set of half a second each."""

MOST_BATCHES = 4
"""Batches that a setting is varied on: the fastest that read it."""

NOTABLE_ERROR, NOTABLE_TIME = 1e-3, 0.1
"""Relative changes that a setting is there for."""


class _Recording(types.ModuleType):
    """The module of settings, which notes what is read."""

    def __getattribute__(self, name: str) -> Any:
        if name.isupper():
            _READ.add(name)
        return super().__getattribute__(name)


_READ: set[str] = set()


def _others(value: Any) -> list[Any]:
    """Half and double of a number or of all numbers of a dictionary; of a ratio, of its excess."""
    if isinstance(value, dict):
        pairs = [_others(entry) for entry in value.values()]
        if not all(pairs):
            return []
        return [dict(zip(value, some, strict=True)) for some in zip(*pairs, strict=True)]
    if isinstance(value, int):
        return [max(1, value // 2), 2 * value]
    if not isinstance(value, float):
        return []
    if 1.0 < value < 2.0:
        return [1.0 + (value - 1.0) / 2, 1.0 + (value - 1.0) * 2]
    return [value / 2, min(2 * value, 1.0) if 0.3 < value <= 1.0 else 2 * value]


def _planned(name: str, workload: Workload) -> tuple[float, float]:
    began = time.process_time()
    plan = CASES[name].plan_of(workload)
    return plan.weighted_strategy_error, time.process_time() - began


def _names(only: str) -> Iterator[str]:
    for name, value in vars(settings).items():
        if name.isupper() and only in name and _others(value):
            yield name


def main() -> None:
    """Vary each setting, and print what it changes."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks settings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="settings whose name contains this text")
    only = parser.parse_args().only
    names = list(_names(only))
    settings.__class__ = _Recording
    workloads = {name: CASES[name].build() for name in BATCHES}
    known, readers = {}, {}
    with threadpool_limits(1):
        CASES["intro 3×4"].plan()  # modules are imported when first used
        for name, workload in workloads.items():
            _READ.clear()
            known[name] = _planned(name, workload)
            readers[name] = set(_READ)
        by_time = sorted(BATCHES, key=lambda name: known[name][1])
        print(f"{'setting':28}{'value':>12}{'error':>10}{'time':>7}  batches that read it")
        for setting in names:
            reading = [name for name in by_time if setting in readers[name]][:MOST_BATCHES]
            value = getattr(settings, setting)
            for other in _others(value) if reading else []:
                setattr(settings, setting, other)
                rows = {name: _planned(name, workloads[name]) for name in reading}
                setattr(settings, setting, value)
                _print(setting, other, rows, known)
            if not reading:
                print(f"{setting:28}{'':>12}{'':>10}{'':>7}  none", flush=True)


def _print(
    setting: str,
    value: Any,
    rows: dict[str, tuple[float, float]],
    known: dict[str, tuple[float, float]],
) -> None:
    errors = [error / known[name][0] for name, (error, _) in rows.items()]
    error = max(errors, key=lambda ratio: abs(ratio - 1.0))
    seconds = sum(s for _, s in rows.values()) / sum(known[name][1] for name in rows)
    small = abs(error - 1.0) < NOTABLE_ERROR and abs(seconds - 1.0) < NOTABLE_TIME
    shown = "" if isinstance(value, dict) else f"{value:g}"
    mark = "  nothing" if small else ""
    print(f"{setting:28}{shown:>12}{error:10.5f}{seconds:7.2f}  {len(rows)}{mark}", flush=True)


if __name__ == "__main__":
    main()
