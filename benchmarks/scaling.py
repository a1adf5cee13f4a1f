"""How the cost of planning grows: time and peak memory over cells and queries.

Each cell of the table runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

__all__ = ["run"]

CASES = [
    *[
        f"{family}:{m}x{n}"
        for family in ("wrange", "wdiscrete", "wrelated")
        for m, n in ((64, 256), (64, 1024), (256, 1024), (256, 4096), (1024, 8192), (64, 65536))
    ],
    *[f"{family}:{n}" for family in ("prefix", "all-ranges") for n in (256, 1024, 4096, 65536)],
]

CHILD = """
import json, resource, sys, time
from lrm.workload.file import read_workload
import lrm
began = time.perf_counter()
plan = lrm.plan(read_workload(sys.argv[1]), "best", effort=sys.argv[2])
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([plan.strategy_error, plan.at_most_above_best, seconds, peak]))
"""


def run(path: Path, efforts: tuple[str, ...] = ("quick", "normal"), only: str = "") -> None:
    """Print the table as it grows, and write it to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"{'workload':22}{'effort':>8}{'error':>14}{'above best ≤':>14}{'seconds':>10}{'MB':>8}")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["workload", "effort", "error", "at_most_above_best", "seconds", "peak_mb"])
        for case in (case for case in CASES if only in case):
            for effort in efforts:
                done = subprocess.run(
                    [sys.executable, "-c", CHILD, case, effort],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                error, above, seconds, peak = json.loads(done.stdout)
                writer.writerow([case, effort, error, above, round(seconds, 2), round(peak)])
                file.flush()
                print(
                    f"{case:22}{effort:>8}{error:14.6g}{above:14.2f}{seconds:10.1f}{peak:8.0f}",
                    flush=True,
                )
