"""How the cost of planning grows: time, its stages and peak memory over cells and queries.

Each row of the table is made in a process of its own, so that its peak memory is its own. All times
are CPU seconds.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

from lrm.planning.plan.proposals import STAGES

__all__ = ["run"]

CASES = [
    *[
        f"{family}:{m}x{n}"
        for family in ("wrange", "wdiscrete", "wrelated")
        for m, n in ((64, 256), (64, 1024), (256, 1024), (256, 4096), (1024, 8192), (64, 65536))
    ],
    *[f"{family}:{n}" for family in ("prefix", "all-ranges") for n in (256, 1024, 4096, 65536)],
    "identity:4000",
    "wrange:256x2048",
    "random ranges 50000",
    "sparse rows 200000",
    "pyramids by region",
    "one-way 36×16×8",
]

CHILD = """
import json, resource, sys, time
from lrm.queries.workload.file import read_workload
import lrm
from benchmarks.evidence.long import build
from benchmarks.batches.tables import TABLES
name = sys.argv[1]
batch = TABLES[name]() if name in TABLES else build(name) if " " in name else read_workload(name)
began = time.process_time()
plan = lrm.plan(batch, "best", noise="laplace", objective="total", effort=sys.argv[2])
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
stages = [plan.details["timings"][stage] for stage in sys.argv[3].split()]
print(json.dumps([plan.strategy_error, plan.at_most_above_best, peak, seconds, *stages]))
"""


def run(path: Path, efforts: tuple[str, ...] = ("quick", "normal"), only: str = "") -> None:
    """Print the table as it grows, and write it to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"{'workload':20}{'effort':>8}{'error':>13}{'above best ≤':>14}{'MB':>6}{'seconds':>9}"
    print(head + "".join(f"{stage:>12}" for stage in STAGES))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        head = ["workload", "effort", "error", "at_most_above_best", "peak_mb", "seconds"]
        writer.writerow([*head, *STAGES])
        for case in (case for case in CASES if only in case):
            for effort in efforts:
                done = subprocess.run(
                    [sys.executable, "-c", CHILD, case, effort, " ".join(STAGES)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                error, above, peak, *seconds = json.loads(done.stdout)
                writer.writerow([case, effort, error, above, round(peak), *seconds])
                file.flush()
                spent = "".join(f"{stage:12.1f}" for stage in seconds[1:])
                line = f"{case:20}{effort:>8}{error:13.6g}{above:14.2f}{peak:6.0f}"
                print(f"{line}{seconds[0]:9.1f}{spent}", flush=True)


def main() -> None:
    """Read which workloads, and where to write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scaling", description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name contains this text")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    chosen = parser.parse_args()
    run(chosen.output / "scaling.csv", only=chosen.only)


if __name__ == "__main__":
    main()
