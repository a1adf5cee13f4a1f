"""Error and time of `best` beside the paper's algorithm, the baselines and p-Identity.

One process, one thread, one row a workload and method, each timed with nothing else running
in the process. Errors are ``‖B‖²·Δ²`` of final, quantised plans (twice that over ε² is the
expected squared error); ratios are to `best` at normal effort.
"""

from __future__ import annotations

import argparse
import csv
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import lrm
from benchmarks.batches.panel import PANEL, SMALL
from benchmarks.comparisons.p_identity import p_identity
from lrm.errors import LrmError
from lrm.planning.design.cells import reduce_rows
from lrm.planning.plan.proposals import search_record
from lrm.queries.workload import Workload

__all__ = ["Row", "measure", "print_table", "read_rows", "write_rows"]

METHODS = (
    "best",
    "best quick",
    "best thorough",
    "lowrank",
    "noise-on-data",
    "noise-on-results",
    "wavelet",
    "hierarchical",
    "matrix",
    "p-identity",
)
DEFAULT_METHODS = tuple(name for name in METHODS if name != "best thorough")

RESULTS = Path("benchmarks/results")

MOST_CELLS = {"p-identity": 1100, "lowrank": 1100, "matrix": 600}
"""Cells up to which slow methods are measured unless asked otherwise: beyond, minutes each."""


@dataclass(frozen=True)
class Row:
    """One workload under one method."""

    workload: str
    queries: int
    cells: int
    method: str
    error: float
    seconds: float
    least_error: float
    winner: str
    reason: str = ""
    lrm: str = version("lrm")
    machine: str = f"{platform.machine()}, Python {platform.python_version()}"


def _planned(workload: Workload, method: str) -> tuple[float, float, float, str]:
    name, _, effort = method.partition(" ")
    options = {"effort": effort} if effort else {}
    plan = lrm.plan(workload, name, **{"noise": "laplace", "objective": "total", **options})
    seconds = float(plan.details["seconds"])
    winner = search_record(plan).winner if name == "best" else ""
    return plan.strategy_error, seconds, plan.least_error, winner


def _baseline(workload: Workload) -> tuple[float, float, float, str]:
    cells = workload.shape[1]
    began = time.perf_counter()
    factor = reduce_rows(workload.queries)
    sizes = sorted({max(1, cells // 16), max(1, cells // 32), max(1, cells // 8)})
    tried = {p: p_identity(factor, p, restarts=5 if p == cells // 16 else 1, seed=0) for p in sizes}
    p, (error, _) = min(tried.items(), key=lambda item: item[1][0])
    return error, time.perf_counter() - began, float("nan"), f"p = {p}"


def measure(
    workloads: Iterable[str], methods: Iterable[str], *, limited: bool = True
) -> Iterator[Row]:
    """Measure one method after the other on one workload after the other."""
    chosen = tuple(methods)
    for name in workloads:
        workload = PANEL[name]()
        m, n = workload.shape
        for method in chosen:
            run: Callable[[], tuple[float, float, float, str]] = (
                (lambda w=workload: _baseline(w))  # type: ignore[misc]
                if method == "p-identity"
                else (lambda w=workload, k=method: _planned(w, k))  # type: ignore[misc]
            )
            most = MOST_CELLS.get(method, n) if limited else n
            nan = float("nan")
            if n > most:
                reason = f"measured up to {most:,} cells; --unlimited lifts that"
                yield Row(name, m, n, method, nan, nan, nan, "", reason)
                continue
            try:
                with threadpool_limits(1):
                    error, seconds, least, winner = run()
            except LrmError as failure:
                yield Row(name, m, n, method, nan, nan, nan, "", str(failure))
            else:
                yield Row(name, m, n, method, error, seconds, least, winner)


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write rows as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read_rows(path: Path) -> list[Row]:
    """Read what ``write_rows`` wrote."""
    with path.open(newline="") as file:
        return [
            Row(
                **{
                    key: float(value)
                    if key in {"error", "seconds", "least_error"}
                    else int(value)
                    if key in {"queries", "cells"}
                    else value
                    for key, value in line.items()
                }  # type: ignore[arg-type]
            )
            for line in csv.DictReader(file)
        ]


def print_table(rows: list[Row]) -> None:
    """Ratios of error and time to `best`, a line a workload, and their geometric means."""
    methods = [method for method in METHODS if any(row.method == method for row in rows)]
    others = [method for method in methods if method != "best"]
    print(f"{'workload':24}{'best err':>12}{'s':>7}  error ÷ best | time ÷ best of:")
    print(" " * 43 + "".join(f"{name[:12]:>18}" for name in others))
    gathered: dict[str, list[float]] = {name: [] for name in others}
    for name in dict.fromkeys(row.workload for row in rows):
        mine = {row.method: row for row in rows if row.workload == name}
        best = mine["best"]
        line = f"{name:24}{best.error:12.6g}{best.seconds:7.2f}"
        for other in others:
            row = mine.get(other)
            if row is None or not np.isfinite(row.error):
                line += f"{'–':>18}"
                continue
            gathered[other].append(row.error / best.error)
            line += f"{row.error / best.error:9.3f}|{row.seconds / best.seconds:8.2f}"
        print(line)
    means = "".join(
        f"{np.exp(np.mean(np.log(gathered[name]))) if gathered[name] else np.nan:9.3f}|{'':8}"
        for name in others
    )
    print(f"{'geometric mean':43}{means}")


def main() -> None:
    """Parse, measure, print, write, draw."""
    from benchmarks.comparisons.plot import draw

    parser = argparse.ArgumentParser(prog="python -m benchmarks strategies", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a few workloads that take seconds")
    parser.add_argument("--only", default="", help="workloads whose name contains this text")
    parser.add_argument("--methods", help="comma-separated; all but 'best thorough' by default")
    parser.add_argument("--unlimited", action="store_true", help="slow methods on all sizes")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for rows and plot")
    chosen = parser.parse_args()
    names = [name for name in (SMALL if chosen.small else PANEL) if chosen.only in name]
    methods = chosen.methods.split(",") if chosen.methods else DEFAULT_METHODS
    rows = []
    for row in measure(names, methods, limited=not chosen.unlimited):
        rows.append(row)
        outcome = row.reason or f"{row.error:12.6g} {row.seconds:8.2f} s  {row.winner}"
        print(f"  {row.workload:24} {row.method:18} {outcome}", flush=True)
        write_rows(rows, chosen.output / "strategies.csv")
    print_table(rows)
    draw(rows, chosen.output / "strategies.svg")
    print(f"rows and plot are in {chosen.output}")


if __name__ == "__main__":
    main()
