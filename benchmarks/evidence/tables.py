"""`best` on batches over tables of a few attributes, beside every baseline and longer searches.

Times are CPU seconds. The constants of the search were chosen with most of these batches in view;
the last six were written afterwards, and `python -m benchmarks unseen` draws others.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import lrm
from benchmarks.batches.tables import TABLES
from lrm.errors import LrmError
from lrm.queries.workload import Workload

__all__ = ["main"]

EFFORTS = ("quick", "normal", "thorough")
BASELINES = (
    "lowrank",
    "marginals",
    "noise-on-data",
    "noise-on-results",
    "wavelet",
    "hierarchical",
    "matrix",
)
ROUNDING = 1e-6
"""What rounding a strategy to integers may cost: less is no difference between strategies."""

MOST_ENTRIES = {"lowrank": 1e5, "matrix": 1e5}
"""Queries × cells up to which slow baselines are measured."""


def measure(workload: Workload, method: str) -> tuple[float, float]:
    """The error of a plan, or NaN where a mechanism refuses, and its CPU seconds."""
    options = {"effort": method} if method in EFFORTS else {}
    queries, cells = workload.shape
    began = time.process_time()
    if queries * cells > MOST_ENTRIES.get(method, np.inf):
        return np.nan, 0.0
    try:
        with threadpool_limits(1):
            method = "best" if options else method
            plan = lrm.plan(
                workload, method, **{"noise": "laplace", "objective": "total", **options}
            )
    except LrmError:
        return np.nan, time.process_time() - began
    return plan.weighted_strategy_error, time.process_time() - began


def main() -> int:
    """Plan, compare, print, write; 1 if `best` is above a baseline on any batch."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tables", description=__doc__)
    parser.add_argument("--only", default="", help="batches whose name contains this text")
    parser.add_argument(
        "--methods", default=",".join((*EFFORTS, *BASELINES)), help="comma-separated"
    )
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/tables.csv"))
    chosen = parser.parse_args()
    methods = chosen.methods.split(",")
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    above, ratios = 0, []
    with chosen.output.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["batch", "queries", "cells", "method", "error", "cpu_seconds"])
        for name, batch in TABLES.items():
            if chosen.only not in name:
                continue
            workload = batch()
            found = {method: measure(workload, method) for method in methods}
            for method, (error, seconds) in found.items():
                writer.writerow([name, *workload.shape, method, error, round(seconds, 2)])
            file.flush()
            best = found.get("normal", (np.nan, 0.0))[0]
            others = {m: error / best for m, (error, _) in found.items() if m not in EFFORTS}
            worst = min((ratio for ratio in others.values() if ratio == ratio), default=np.inf)  # noqa: PLR0124
            above += worst < 1 - ROUNDING
            efforts = "".join(
                f"{found[e][0]:11.6g} {found[e][1]:6.2f} s" for e in EFFORTS if e in found
            )
            shown = {m: ratio for m, ratio in others.items() if not np.isnan(ratio)}
            baselines = " ".join(f"{m} {ratio:.3f}" for m, ratio in shown.items())
            print(f"{name:26}{efforts}  ÷ normal: {baselines}", flush=True)
            ratios.append([found[e][0] / best for e in EFFORTS if e in found])
    means = np.exp(np.mean(np.log(ratios), axis=0)) if ratios else []
    print("errors ÷ normal, geometric means:", *(f"{m:.4f}" for m in means))
    print(f"{above} batches where `best` is above a baseline")
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
