"""The panel *long*: prefix sums, ranges and sparse rows over thousands of cells.

Three batches were used to choose constants (marked *); the others were not. Each plan is made in
a process of its own, so that its CPU time and its peak memory are its own.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from lrm.queries.workload import Workload, families

__all__ = ["TUNED", "build", "cases"]

SIZES = (4_096, 16_384, 65_536)
TUNED = ("prefix 4096", "prefix 65536", "all ranges 65536")
"""What constants were chosen on; nothing else was."""


def cases() -> list[str]:
    """The names of all batches."""
    kinds = ("prefix", "all ranges", "ranges of 32 cells", "ranges of 500 cells", "random ranges")
    return [*(f"{kind} {n}" for kind in kinds for n in SIZES), "sparse rows 200000"]


def build(name: str) -> Workload:
    """The batch of a name.

    >>> build("prefix 4096").shape
    (4096, 4096)
    """
    kind, size = name.rsplit(" ", 1)
    cells = int(size)
    if kind == "prefix":
        return families.prefix(cells)
    if kind == "all ranges":
        return families.all_ranges(cells)
    if kind.startswith("ranges of"):
        return families.width_ranges(cells, int(kind.split()[2]))
    if kind == "random ranges":
        return families.ranges(cells, random_ranges(cells // 2, cells, seed=1))
    return Workload(sparse_rows(1_000, cells, seed=1))


def random_ranges(queries: int, cells: int, seed: int) -> list[tuple[int, int]]:
    """Ranges of 1 to 500 cells anywhere, so many that they merge to most of the cells."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.uniform(0.0, np.log(500), queries)).astype(int)
    first = rng.integers(0, cells - lengths)
    return [(int(a), int(a + length - 1)) for a, length in zip(first, lengths, strict=True)]


def sparse_rows(queries: int, cells: int, seed: int) -> sp.csr_array:
    """Each query is the sum of a tenth of the cells of a random range of up to 20,000 cells."""
    rng = np.random.default_rng(seed)
    rows, columns = [], []
    for query in range(queries):
        length = int(rng.integers(100, 20_000))
        first = int(rng.integers(0, cells - length))
        chosen = first + np.flatnonzero(rng.random(length) < 0.1)
        rows.append(np.full(len(chosen), query))
        columns.append(chosen)
    places = np.concatenate(rows), np.concatenate(columns)
    return sp.csr_array((np.ones(len(places[0])), places), shape=(queries, cells))


CHILD = """
import json, resource, sys, time
import lrm
from benchmarks.evidence.long import build
from lrm.planning.plan.proposals import search_record
batch = build(sys.argv[1])
began = time.process_time()
plan = lrm.plan(batch, "best", noise="laplace", objective="total", effort=sys.argv[2])
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
own = ("sparse rows", "own rows", "periodic rows")
baselines = [c for c in search_record(plan).candidates if c.name not in own]
baseline = min(baselines, key=lambda c: c.error)
row = [plan.strategy_error, baseline.error, baseline.name, seconds, peak]
print(json.dumps([*row, search_record(plan).winner]))
"""


def main() -> None:
    """Plan each batch of the panel and print a line for it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks long", description=__doc__)
    parser.add_argument("--only", default="", help="batches whose name contains this text")
    parser.add_argument("--effort", default="normal", choices=["quick", "normal", "thorough"])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    head = ("batch", "error", "best baseline", "ratio", "CPU s", "MB")
    print("{:27}{:>14}{:>14}{:>8}{:>8}{:>7}".format(*head))
    with (chosen.output / "long.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["batch", "tuned", "effort", "error", "baseline_error", "baseline"])
        for name in (name for name in cases() if chosen.only in name):
            done = subprocess.run(
                [sys.executable, "-c", CHILD, name, chosen.effort],
                check=True,
                capture_output=True,
                text=True,
            )
            error, baseline, baseline_name, seconds, peak, winner = json.loads(done.stdout)
            writer.writerow([name, name in TUNED, chosen.effort, error, baseline, baseline_name])
            mark = " *" if name in TUNED else ""
            print(
                f"{name + mark:27}{error:14.7g}{baseline:14.7g}{error / baseline:8.3f}"
                f"{seconds:8.1f}{peak:7.0f}  {winner}; baseline: {baseline_name}",
                flush=True,
            )


if __name__ == "__main__":
    main()
