"""Consistent answers and synthetic rows: errors against the true tables.

``python -m benchmarks rows TABLE.csv`` reads a table of whole numbers from 0 on, asks for the table
of every column and of every pair of columns, and prints root mean squared errors of released
answers, of consistent answers and of synthetic rows, for several amounts and releases, and the peak
of memory. Without TABLE.csv it generates a table of columns of 2 to 16 values (``--columns 40
--rows 200000``: 780 pairs). ``--tables "age sex, age race"`` asks for the table of every column and
for these; ``--noise gaussian`` reads amounts as rho.

``--beside mbi`` fits a graphical model of mbi to the same releases, and ``--beside aim`` lets AIM
choose its measurements at the same rho, both in an environment of their own under
``benchmarks/results/tools`` (``benchmarks/comparisons/tools/drivers/graphical_models.py``).
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

import lrm
from benchmarks.comparisons.tools.environments import Environment, UnavailableError

Floats = NDArray[np.float64]
SIZES = (14, 9, 16, 7, 6, 5, 2, 10, 15, 2)
ROWS = 48_842
RESULTS = Path("benchmarks/results/tools")
STEPS, MEGABYTES = 1000, 80
"""Steps of each fit by mbi, and the size of the model of AIM: their defaults."""


def generated(count: int = len(SIZES), rows: int = ROWS, seed: int = 0) -> pa.Table:
    """Columns that depend on three hidden numbers, skewed as those of a census are."""
    random = np.random.default_rng(seed)
    hidden = random.random((rows, 3))
    columns = {}
    for k in range(count):
        size = SIZES[k % len(SIZES)]
        place = 0.6 * hidden[:, k % 3] + 0.4 * random.random(rows) ** 2
        columns[f"c{k + 1}"] = np.minimum((size * place**1.5).astype(np.int64), size - 1)
    return pa.table(columns)


def truth_of(table: pa.Table, sizes: dict[str, int], groups: list[tuple[str, ...]]) -> Floats:
    """The true tables, one after the other."""
    values = {name: table[name].to_numpy() for name in sizes}
    parts = []
    for group in groups:
        shape = [sizes[name] for name in group]
        cells = np.ravel_multi_index([values[name] for name in group], shape)
        parts.append(np.bincount(cells, minlength=int(np.prod(shape))))
    return np.concatenate(parts).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Batch:
    """Tables of some columns, with the plan for them and the true answers."""

    table: pa.Table
    sizes: dict[str, int]
    groups: list[tuple[str, ...]]
    plan: lrm.Plan
    truth: Floats

    @classmethod
    def of(cls, table: pa.Table, tables: str | None, noise: Literal["pure", "gaussian"]) -> Batch:
        """The table of every column, and of every pair or of the named groups of columns."""
        sizes = {name: int(table[name].to_numpy().max()) + 1 for name in table.column_names}
        never = {"null": "never", "nan": "never", "outside": "never"}
        declared = [lrm.Integers(name, 0, size - 1, **never) for name, size in sizes.items()]
        domain = lrm.Domain(declared, table="t")
        more: list[tuple[str, ...]] = list(itertools.combinations(sizes, 2))
        if tables is not None:
            order = list(sizes).index  # answers are in the order of the columns
            more = [tuple(sorted(group.split(), key=order)) for group in tables.split(",")]
        groups = [*((name,) for name in sizes), *more]
        counted = [
            f"SELECT {columns}, COUNT(*) AS n FROM t GROUP BY {columns}"  # noqa: S608 - our own names
            for columns in map(", ".join, groups)
        ]
        plan = lrm.plan(lrm.sql(";\n".join(counted), domain), noise=noise, objective="total")
        return cls(table, sizes, groups, plan, truth_of(table, sizes, groups))

    def amount(self, value: str) -> tuple[str | None, str | None]:
        """Epsilon and rho: the amount is rho with Gaussian noise, else epsilon."""
        return (None, value) if self.plan.noise == "gaussian" else (value, None)

    def squared_error(self, answers: Floats) -> float:
        """The mean squared error of some answers."""
        return float(np.mean((np.asarray(answers) - self.truth) ** 2))


def measured(batch: Batch, value: str, releases: int) -> tuple[str, list[lrm.Release]]:
    """A line about one amount, errors and CPU seconds; and the releases that it is about."""
    epsilon, rho = batch.amount(value)
    squares, seconds, negative = np.zeros(3), np.zeros(2), 0.0
    made = []
    for number in range(releases):
        release = lrm.release(batch.plan, batch.table, epsilon=epsilon, rho=rho, ledger=None)
        began = time.process_time()
        fixed = release.consistent().answers
        between = time.process_time()
        rows = release.synthesize(seed=number)
        seconds += [between - began, time.process_time() - between]
        negative += float(np.mean(release.answers < 0)) / releases
        squares += [batch.squared_error(a) for a in (release.answers, fixed, rows.counts)]
        made.append(release)
    errors, ratios = np.sqrt(squares / releases), squares / squares[0]
    cpu = seconds / releases
    errors_of_plan = batch.plan.standard_errors(epsilon=epsilon, rho=rho)
    expected = float(np.sqrt(np.mean(errors_of_plan**2)))
    line = (
        f"| {value} | {negative:.0%} | {expected:.4g} | {errors[0]:.4g} "
        f"| {errors[1]:.4g} ({ratios[1]:.2f}) "
        f"| {errors[2]:.4g} ({ratios[2]:.2f}) | {cpu[0]:.1f} | {cpu[1]:.1f} |"
    )
    return line, made


def beside(tool: str, batch: Batch, value: str, releases: list[lrm.Release]) -> str:
    """A line about another tool: errors of its model and of its rows, and CPU seconds."""
    folder = RESULTS.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    environment = Environment("mbi", ("mbi==2.0.0",), "graphical_models.py", folder / "mbi")
    job: dict[str, Any] = {"sizes": batch.sizes, "tables": batch.groups, "steps": STEPS}
    if tool == "aim":
        columns = {name: batch.table[name].to_pylist() for name in batch.sizes}
        seeds = list(range(len(releases)))
        job |= {"columns": columns, "rho": float(value), "seeds": seeds, "megabytes": MEGABYTES}
    else:
        lengths = [int(np.prod([batch.sizes[name] for name in group])) for group in batch.groups]
        starts = np.cumsum([0, *lengths[:-1]])
        job["releases"] = [
            {
                "answers": release.answers.tolist(),
                "errors": release.standard_errors[starts].tolist(),
            }
            for release in releases
        ]
    try:
        environment.make()
        runs = json.loads(environment.run(job, folder / f"rows-{tool}-{value}.json"))["runs"]
    except UnavailableError as problem:
        return f"{tool} {problem}"
    model, rows = (
        float(np.sqrt(np.mean([batch.squared_error(run[kind]) for run in runs])))
        for kind in ("model", "rows")
    )
    cpu = float(np.mean([run["seconds"] for run in runs]))
    return f"{tool} at {value}: model {model:.4g}, rows {rows:.4g}, {cpu:.1f} CPU s"


def main() -> None:
    """Read or generate the table, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rows", description=__doc__)
    parser.add_argument("table", nargs="?", help="CSV file of whole numbers from 0 on")
    parser.add_argument("--amounts", default="0.1,1,3", help="amounts of epsilon or rho, by commas")
    parser.add_argument("--releases", type=int, default=10, help="releases per amount")
    parser.add_argument("--tables", help="groups of columns, by commas; every pair by default")
    parser.add_argument("--noise", choices=["pure", "gaussian"], default="pure")
    parser.add_argument("--beside", default="", help="other tools, by commas: mbi, aim")
    parser.add_argument("--runs", type=int, default=1, help="releases of other tools per amount")
    parser.add_argument("--columns", type=int, default=len(SIZES), help="of a generated table")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a generated table")
    chosen = parser.parse_args()
    others = [tool for tool in chosen.beside.split(",") if tool]
    if set(others) - {"mbi", "aim"} or ("aim" in others and chosen.noise != "gaussian"):
        parser.error("--beside takes mbi and aim, and aim spends rho: --noise gaussian")
    if chosen.table is None:
        table = generated(chosen.columns, chosen.rows)
    else:
        table = pyarrow.csv.read_csv(chosen.table)
    batch = Batch.of(table, chosen.tables, chosen.noise)
    name = "rho" if chosen.noise == "gaussian" else "epsilon"
    print(
        f"| {name} | negative | expected | released | consistent | rows | CPU s, consistent "
        "| CPU s, rows |\n|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    lines = []
    for value in chosen.amounts.split(","):
        line, releases = measured(batch, value, chosen.releases)
        print(line, flush=True)
        lines += [(tool, value, releases[: chosen.runs]) for tool in others]
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most")
    for tool, value, releases in lines:
        print(beside(tool, batch, value, releases), flush=True)


if __name__ == "__main__":
    main()
