"""Run benchmarks: ``python -m benchmarks WHAT``, see ``--help`` for the choices."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from benchmarks import scaling, strategies
from benchmarks.panel import PANEL, SMALL
from benchmarks.plot import draw

RESULTS = Path("benchmarks/results")
OTHERS = {
    "engines": "benchmarks.engines",
    "gaussian": "benchmarks.gaussian",
    "golden": "benchmarks.golden",
    "growth": "benchmarks.growth",
    "unseen": "benchmarks.unseen",
    "sql": "benchmarks.sql",
    "counting": "benchmarks.counting",
    "products": "benchmarks.products",
    "tables": "benchmarks.tables",
    "long": "benchmarks.long",
    "limits": "benchmarks.limits",
    "many": "benchmarks.many",
    "mutants": "benchmarks.mutants",
    "noises": "benchmarks.noises",
    "people": "benchmarks.people",
    "profile": "benchmarks.profile_lowrank",
    "tools": "benchmarks.tools.__main__",
    "readme": "benchmarks.readme",
    "rows": "benchmarks.rows",
    "numbers": "benchmarks.numbers",
    "report": "benchmarks.report",
    "settings": "benchmarks.settings",
    "shape": "benchmarks.shape",
    "shaped": "benchmarks.shaped",
    "statements": "benchmarks.statements",
    "workbench": "benchmarks.workbench",
}
"""Benchmarks with options of their own."""


def main() -> None:
    """Parse, measure, print, write, draw."""
    if sys.argv[1:2] and sys.argv[1] in OTHERS:
        what = sys.argv.pop(1)  # before parsing: these have --only and --output of their own
        runpy.run_module(OTHERS[what], run_name="__main__")
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        default="strategies",
        choices=["strategies", "scaling", *OTHERS],
    )
    parser.add_argument("--small", action="store_true", help="a few workloads that take seconds")
    parser.add_argument("--only", help="workloads whose name contains this text")
    parser.add_argument("--methods", help="comma-separated; all but 'best thorough' by default")
    parser.add_argument("--unlimited", action="store_true", help="slow methods on all sizes")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for rows and plot")
    chosen = parser.parse_args()
    if chosen.what == "scaling":
        scaling.run(chosen.output / "scaling.csv", only=chosen.only or "")
    else:
        _strategies(chosen)


def _strategies(chosen: argparse.Namespace) -> None:
    names = SMALL if chosen.small else tuple(PANEL)
    names = tuple(name for name in names if not chosen.only or chosen.only in name)
    methods = chosen.methods.split(",") if chosen.methods else strategies.DEFAULT_METHODS
    rows = []
    for row in strategies.measure(names, methods, limited=not chosen.unlimited):
        rows.append(row)
        outcome = row.reason or f"{row.error:12.6g} {row.seconds:8.2f} s  {row.winner}"
        print(f"  {row.workload:24} {row.method:18} {outcome}", flush=True)
        strategies.write_rows(rows, chosen.output / "strategies.csv")
    strategies.print_table(rows)
    draw(rows, chosen.output / "strategies.svg")
    print(f"rows and plot are in {chosen.output}")


if __name__ == "__main__":
    main()
