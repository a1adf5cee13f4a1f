"""How cost grows: CPU seconds and memory over a decade of cells, attributes, statements and so on.

``python -m benchmarks growth`` measures each size in a process of its own and prints the table of
``docs/how-to/large-domains.md``. The exponent is the slope of a line through the logarithms of
seconds and sizes: 1 is cost in proportion to the work. Seconds below `NEGLIGIBLE` are not fitted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import lrm
from lrm import families
from lrm.clock import Timings
from lrm.domain import Categories, Domain
from lrm.queries.workload import Workload

__all__ = ["AXES", "exponent", "main"]

NEGLIGIBLE = 0.1
"""CPU seconds at the largest size below which an exponent would be one of noise."""

STEPS = ("batch", "plan", "release", "to_pandas", "report")
"""What is measured, in this order; an axis may leave out some of them."""


@dataclass(frozen=True)
class Axis:
    """Something that grows, the sizes over a decade, and what is run at each of them."""

    name: str
    sizes: tuple[int, ...]
    run: Callable[[int, Timings], None]


def _with_counts(build: Callable[[int], Workload]) -> Callable[[int, Timings], None]:
    """Plan a batch over numbered cells and release it from counts."""

    def run(size: int, timer: Timings) -> None:
        with timer.of("batch"):
            batch = build(size)
        with timer.of("plan"):
            plan = lrm.plan(batch)
        counts = np.random.default_rng(0).integers(0, 9, batch.shape[1])
        _release(plan, counts, timer)

    return run


def _release(plan: lrm.Plan, data: object, timer: Timings) -> None:
    with timer.of("release"):
        release = lrm.release(plan, data, epsilon=1, ledger=None)
    with timer.of("to_pandas"):
        release.to_pandas()
    with timer.of("report"), tempfile.TemporaryDirectory() as folder:
        release.report(Path(folder) / "release.html")


def _planned(build: Callable[[int], Workload]) -> Callable[[int, Timings], None]:
    """Plan a batch, and nothing else."""

    def run(size: int, timer: Timings) -> None:
        with timer.of("batch"):
            batch = build(size)
        with timer.of("plan"):
            lrm.plan(batch)

    return run


def random_ranges(queries: int, cells: int) -> Workload:
    """Ranges with two uniform ends."""
    return families.wrange(queries, cells, seed=1)


def domain() -> Domain:
    """Eight attributes of 3 to 10 values."""
    sizes = (3, 4, 5, 6, 7, 8, 9, 10)
    return Domain(
        [Categories(f"a{i}", [f"v{k}" for k in range(size)]) for i, size in enumerate(sizes)],
        table="t",
    )


def statements(count: int) -> Workload:
    """Tables of one or two attributes, every second one with a condition on a third."""
    names = [attribute.name for attribute in domain().attributes]
    groups = [*((name,) for name in names), *combinations(names, 2)]
    texts = []
    for number in range(count):
        by = groups[number % len(groups)]
        other = next(name for name in names[number % 7 :] + names if name not in by)
        where = f" WHERE {other} = 'v{number % 3}'" if number % 2 else ""
        listed = ", ".join(by)
        texts.append(f"SELECT {listed}, COUNT(*) AS n FROM t{where} GROUP BY {listed}")  # noqa: S608
    return lrm.sql(";\n".join(texts), domain())


def _rows(size: int, timer: Timings) -> None:
    """Release ten statements from a table of this number of rows."""
    import pandas as pd

    with timer.of("batch"):
        batch = statements(10)
    with timer.of("plan"):
        plan = lrm.plan(batch, effort="quick")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            attribute.name: np.array(attribute.labels)[rng.integers(0, attribute.size, size)]
            for attribute in domain().attributes
        }
    )
    _release(plan, table, timer)


AXES = (
    Axis("cells: histogram", (100_000, 300_000, 1_000_000), _with_counts(families.identity)),
    Axis(
        "cells: 1,000 ranges",
        (100_000, 300_000, 1_000_000),
        _with_counts(lambda cells: random_ranges(1_000, cells)),
    ),
    Axis("cells: prefix sums", (200, 600, 2_000), _with_counts(families.prefix)),
    Axis("cells: prefix sums, sparse rows", (4_096, 12_288, 40_960), _planned(families.prefix)),
    Axis(
        "attributes: tables of up to 2 of them",
        (10, 30, 100),
        _planned(lambda count: families.marginals([2] * count, range(3))),
    ),
    Axis("statements", (10, 30, 100), _planned(statements)),
    Axis("rows of a table", (100_000, 300_000, 1_000_000), _rows),
    Axis(
        "answers: ranges of 10,000 cells",
        (1_000, 3_000, 10_000),
        _with_counts(lambda count: random_ranges(count, 10_000)),
    ),
)
"""What grows, in the order of the table."""


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float | None:
    """The slope of log seconds by log size; None where the seconds are negligible.

    >>> exponent([1, 10, 100], [1.0, 10.0, 100.0])
    1.0
    """
    if max(seconds) < NEGLIGIBLE:
        return None
    logs = np.log(np.maximum(seconds, NEGLIGIBLE / 10))
    return round(float(np.polyfit(np.log(sizes), logs, 1)[0]), 2)


def measure(axis: Axis, size: int) -> tuple[dict[str, float], float]:
    """CPU seconds of each step, and MB at most, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.evidence.growth", "--child", axis.name, str(size)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    seconds, megabytes = json.loads(done.stdout)
    return seconds, megabytes


def _child(name: str, size: int) -> None:
    axis = next(axis for axis in AXES if axis.name == name)
    lrm.plan(np.eye(2), "noise-on-data")  # what importing takes does not grow
    timer = Timings()
    axis.run(size, timer)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([timer.seconds, peak]))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__)
    parser.add_argument("--only", default="", help="axes whose name contains this text")
    parser.add_argument("--child", nargs=2, metavar=("AXIS", "SIZE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        _child(chosen.child[0], int(chosen.child[1]))
        return
    print("| what grows | sizes | MB | " + " | ".join(STEPS) + " |")
    print("|---|---|--:|" + "--:|" * len(STEPS))
    for axis in (axis for axis in AXES if chosen.only in axis.name):
        measured = [measure(axis, size) for size in axis.sizes]
        texts = []
        for step in STEPS:
            seconds = [values[step] for values, _ in measured if step in values]
            slope = exponent(axis.sizes, seconds) if seconds else None
            last = f"{seconds[-1]:.2f} s" if seconds else ""
            texts.append(last if slope is None else f"{last}, n^{slope:.2f}")
        span = f"{axis.sizes[0]:,} to {axis.sizes[-1]:,}"
        row = " | ".join(texts)
        print(f"| {axis.name} | {span} | {measured[-1][1]:.0f} | {row} |", flush=True)


if __name__ == "__main__":
    main()
