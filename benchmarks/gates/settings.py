"""Settings of the search, each at half and at double its value, on fast batches.

``python -m benchmarks settings`` plans the batches below, notes which of them read which setting of
``lrm.planning.solvers.settings``, and plans these again with other values: half and double of a
number, the first and the second half of a schedule. The fastest batches come first, and it ends
where the error changes by 0.1 % or the CPU time by 10 %. A setting that changes neither is
marked: it can go, unless it is there for larger batches.
"""

from __future__ import annotations

import argparse
import time
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.batches.products import affine_batch
from benchmarks.evidence import shaped
from benchmarks.gates.golden import CASES, GAUSSIAN, NORMAL, QUICK, Case
from lrm.planning.solvers import settings
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.workload import Workload, families

__all__ = ["main"]

GOLDEN = (
    *("prefix 64", "WRange 64×128", "WRelated 64×128", "unseen sparse counts", "unseen contrasts"),
    *("unseen low rank", "matrix", "gaussian WRange 64×128", "gaussian prefix 256"),
    *("long prefix 4096", "long random ranges 4096", "cps marginals", "cps prefixes"),
    *("20 attributes", "unseen tables", "unseen product a whole table", "unseen product either"),
    *("unseen product any factors", "flights up to 2-way", "2×2×2×2×2×2 1-way"),
    *("population pyramid", "income bands", "10×8×5×2×2 1-way", "WRelated 64×512 rank 8"),
    *(
        "91 queries by region",
        "gaussian product some binary",
        "persons, gaussian",
        "gaussian survey",
    ),
)

SHAPED = (
    *("people 6", "people 10", "ranges 8", "patients 22", "yes/no 5", "up to 2-way 2^3"),
    *("one-way 20x2x2x2x2", "12 one-way, 8x10", "up to 2-way 6x5x4x2"),
)


def _shaped(name: str) -> Workload:
    batch = shaped.BATCHES[name][0]()
    return batch if isinstance(batch, Workload) else Workload(batch)


def _affine() -> Workload:
    return Workload(ProductMap(affine_batch(5)))


BATCHES: Mapping[str, Case] = {
    **{name: CASES[name] for name in GOLDEN},
    **{
        f"shaped {name}": Case.of_total(partial(_shaped, name), options={**QUICK, "noise": "pure"})
        for name in SHAPED
    },
    "ranges of 32 of 2560 cells": Case.of_total(
        partial(families.width_ranges, 2560, 32), options=NORMAL
    ),
    "prefix sums of 8208 cells": Case.of_total(partial(families.prefix, 8208), options=NORMAL),
    "conditions on two attributes": Case.of_total(_affine, options=GAUSSIAN),
}
"""Cases of the golden set of at most two seconds each, and what they do not read."""

MOST_SECONDS = 8.0
"""CPU seconds of the batches that a setting is varied on; at least two of them."""

NOTABLE_ERROR, NOTABLE_TIME = 1e-3, 0.1
"""Relative changes that a setting is there for."""

Planned = tuple[float, float]


class _Recording(types.ModuleType):
    """The module of settings, which notes what is read."""

    def __getattribute__(self, name: str) -> Any:
        if name.isupper():
            _READ.add(name)
        return super().__getattribute__(name)


_READ: set[str] = set()


def _others(value: Any) -> list[Any]:
    """Half and double of a number, of a ratio, of its excess; halves of a schedule.

    A share of the whole is not doubled: half of the rest is added to it.
    """
    if isinstance(value, dict):
        if isinstance(next(iter(value.values())), tuple):
            both = (zip(*map(_others, entry), strict=True) for entry in value.values())
            pairs = zip(*both, strict=True)
        else:
            pairs = zip(*(_others(entry) for entry in value.values()), strict=True)
        return [dict(zip(value, some, strict=True)) for some in pairs]
    if isinstance(value, tuple) and isinstance(value[0], tuple):
        return []  # stages, which other schedules must agree with
    if isinstance(value, tuple | range):
        middle = (len(value) + 1) // 2
        return [value[:middle], value[middle:] or value]
    if isinstance(value, int):
        return [value // 2 if value > 1 else value, 2 * value]
    if 1.0 < value < 2.0:
        return [1.0 + (value - 1.0) / 2, 1.0 + (value - 1.0) * 2]
    return [value / 2, (1.0 + value) / 2 if 0.3 < value < 1.0 else 2 * value]


def _planned(name: str, workload: Workload) -> Planned:
    began = time.process_time()
    plan = BATCHES[name].plan_of(workload)
    return plan.weighted_strategy_error, time.process_time() - began


class _Sweep:
    """The batches, and what their plans are with the settings as they are."""

    def __init__(self) -> None:
        self._workloads = {name: case.build() for name, case in BATCHES.items()}
        self._known: dict[str, Planned] = {}
        self._readers: dict[str, set[str]] = {}
        for name, workload in self._workloads.items():
            _READ.clear()
            self._known[name] = _planned(name, workload)
            self._readers[name] = set(_READ)

    def _reading(self, setting: str) -> Iterator[str]:
        """Batches that read a setting, the fastest first."""
        seconds = 0.0
        by_time = sorted(BATCHES, key=lambda name: self._known[name][1])
        for number, name in enumerate(n for n in by_time if setting in self._readers[n]):
            seconds += self._known[name][1]
            if number > 1 and seconds > MOST_SECONDS:
                break
            yield name

    def vary(self, setting: str) -> str:
        """What another value changes, in words."""
        value = _value(setting)
        reading = list(self._reading(setting.partition(".")[0]))
        if not reading or not _others(value):
            return "not read" if not reading else "a schedule of stages"
        errors, times = [1.0], []
        for which, other in zip(("half", "double"), _others(value), strict=True):
            before = after = 0.0
            for name in reading:
                error, seconds = self._with(setting, other, name)
                ratio = error / self._known[name][0]
                if abs(ratio - 1.0) >= NOTABLE_ERROR:
                    return f"{which}: error × {ratio:.4f}, {name}"
                errors.append(ratio)
                before, after = before + self._known[name][1], after + seconds
            if abs(after / before - 1.0) >= NOTABLE_TIME:  # once more, in turn
                after = before = 0.0
                for name in reading:
                    before += _planned(name, self._workloads[name])[1]
                    after += self._with(setting, other, name)[1]
                if abs(after / before - 1.0) >= NOTABLE_TIME:
                    return f"{which}: time × {after / before:.2f} on {len(reading)} batches"
            times.append(after / before)
        largest = max(abs(ratio - 1.0) for ratio in errors)
        ratios = ", ".join(f"{ratio:.2f}" for ratio in times)
        return f"NOTHING: error by {largest:.5f}, time × {ratios} on {len(reading)} batches"

    def _with(self, setting: str, value: Any, name: str) -> Planned:
        module, _, part = setting.partition(".")
        before = getattr(settings, module)
        if part:
            value = {key: replace(before[key], **{part: entry}) for key, entry in value.items()}
        setattr(settings, module, value)
        try:
            return _planned(name, self._workloads[name])
        finally:
            setattr(settings, module, before)


def _value(setting: str) -> Any:
    """The value of a setting; of a field of the budgets, by effort."""
    module, _, part = setting.partition(".")
    value = getattr(settings, module)
    return {key: getattr(budget, part) for key, budget in value.items()} if part else value


def _names() -> Iterator[str]:
    """Yield the names of all settings, and of the fields of the budgets."""
    for name, value in vars(settings).items():
        if name.isupper() and value is settings.BUDGETS:
            # The record of a group's effort is not varied: its numbers belong together.
            parts = [field.name for field in fields(settings.Budget) if field.name != "group"]
            yield from (f"{name}.{part}" for part in parts)
        elif name.isupper():
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
    names = [name for name in _names() if only in name]
    settings.__class__ = _Recording
    with threadpool_limits(1):
        CASES["intro 3×4"].plan()  # modules are imported when first used
        sweep = _Sweep()
        for setting in names:
            print(f"{setting:28}{sweep.vary(setting)}", flush=True)


if __name__ == "__main__":
    main()
