"""The census by state as one thing: plan, count, release, and a file of 215,852 answers.

The table is generated (`counting_products`). Each step runs in a process of its own, so that its
peak memory is its own. The marginals that the plan measures are counted by `lrm` and by queries as
a person would write them for DuckDB, in turns; medians are printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import duckdb
import numpy as np

import lrm
from benchmarks.batches.products import REAL
from benchmarks.evidence.counting import own_peak
from benchmarks.evidence.counting_products import CASES, domain_of, generate
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.products.tabulation import Tabulation
from lrm.tables import open_table

__all__ = ["main"]

REPEAT = 3


def _plan(folder: Path) -> str:
    batch = REAL["census by state"]()
    plan = lrm.plan(
        lrm.Workload(ProductMap(batch), domain=domain_of(CASES[0])),
        noise="laplace",
        objective="total",
    )
    plan.save(folder / "census.plan")
    rmse = (plan.strategy_error / batch.queries) ** 0.5
    size = (folder / "census.plan").stat().st_size / 1e3
    sizes = ", ".join(f"{table.size:,}" for table in plan.measured.tabulations)
    return (
        f"rmse {rmse:.4f}, file {size:.0f} kB, {plan.measurement_count:,} measurements of {sizes}"
    )


def _count(folder: Path) -> str:
    plan = lrm.load_plan(folder / "census.plan")
    open_table(folder / "census.parquet").counts(domain_of(CASES[0]), plan.measured.tabulations)
    return "counts of what the plan measures, with the plan read from its file"


def _release(folder: Path) -> str:
    plan = lrm.load_plan(folder / "census.plan")
    release = lrm.release(plan, folder / "census.parquet", epsilon=1, ledger=None)
    release.save(folder / "census.release")
    return f"file {(folder / 'census.release').stat().st_size / 1e3:.0f} kB"


def _answers(folder: Path) -> str:
    release = lrm.load_release(folder / "census.release")
    release.write(folder / "answers.parquet")
    return f"file {(folder / 'answers.parquet').stat().st_size / 1e3:.0f} kB"


STEPS: dict[str, Callable[[Path], str]] = {
    "plan": _plan,
    "count": _count,
    "release": _release,
    "answers": _answers,
}


def _merged(column: str, labels: Sequence[int]) -> str:
    """The merged value of a column of whole numbers, as CASE over ranges or over values."""
    marks = np.asarray(labels)
    ends = np.flatnonzero(np.diff(marks)) + 1
    if len(ends) + 1 == int(marks.max()) + 1 and (np.diff(marks) >= 0).all():
        ranges = " ".join(f"WHEN {column} < {end} THEN {marks[end - 1]}" for end in ends)
        return f"(CASE {ranges} ELSE {marks[-1]} END)::UTINYINT" if len(ends) else "0"
    common = int(np.bincount(marks).argmax())
    values = " ".join(
        f"WHEN {value} THEN {mark}" for value, mark in enumerate(marks) if mark != common
    )
    return f"(CASE {column} {values} ELSE {common} END)::UTINYINT"


def by_hand(path: Path, tables: Sequence[Tabulation]) -> dict[str, list[str]]:
    """Queries for the same marginals, by a person who trusts that every value is declared."""
    domain = domain_of(CASES[0])
    names, columns, sets = {}, [], []
    for table in tables:
        own = []
        for i in table.by:
            attribute, labels = domain.attributes[i], table.labels[i].tolist()
            key = (i, tuple(labels))
            if key not in names:
                names[key] = f"c{len(names)}"
                plain = labels == list(range(len(labels)))
                text = attribute.name
                if attribute.name == "state":
                    listed = ", ".join(f"'state {number:02d}'" for number in range(51))
                    text = f"state::ENUM({listed})"
                elif not plain:
                    text = _merged(attribute.name, labels)
                columns.append(f"{text} AS {names[key]}")
            own.append(names[key])
        sets.append(", ".join(own))
    merged = f"SELECT {', '.join(columns)} FROM '{path}'"  # noqa: S608 - constants of this file
    every = ", ".join(names.values())
    together = ", ".join(f"({one})" for one in sets)
    joint = f"SELECT {every}, count(*) AS n FROM ({merged}) GROUP BY ALL"  # noqa: S608
    return {
        "by hand, grouping sets": [
            f"SELECT {every}, count(*) FROM ({merged}) GROUP BY GROUPING SETS ({together})"  # noqa: S608
        ],
        "by hand, one query each": [
            f"SELECT {one}, count(*) FROM ({merged}) GROUP BY ALL"  # noqa: S608
            for one in sets
        ],
        "by hand, cells first": [
            f"CREATE TEMP TABLE cells AS {joint}",
            *(f"SELECT {one}, sum(n) FROM cells GROUP BY ALL" for one in sets),  # noqa: S608
        ],
    }


def _asked(queries: Sequence[str]) -> None:
    with duckdb.connect() as db:
        for query in queries:
            db.execute(query).fetchnumpy()


def _compare_counting(folder: Path) -> None:
    """Print medians of counting by `lrm` and by hand, in turns."""
    plan = lrm.load_plan(folder / "census.plan")
    path, tables = folder / "census.parquet", plan.measured.tabulations
    works: dict[str, Callable[[], object]] = {
        name: partial(_asked, queries) for name, queries in by_hand(path, tables).items()
    }
    works["lrm"] = partial(open_table(path).counts, domain_of(CASES[0]), tables)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(REPEAT):
        for name, work in works.items():
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    medians = {
        name: [statistics.median(t) for t in zip(*own, strict=True)] for name, own in taken.items()
    }
    for name, (wall, cpu) in medians.items():
        print(f"  {name:24} {wall:6.2f} s  {cpu:6.2f} CPU s")
    ratios = [
        medians["lrm"][k] / min(own[k] for name, own in medians.items() if name != "lrm")
        for k in (0, 1)
    ]
    print(f"  lrm ÷ fastest by hand: {ratios[0]:.2f} (wall), {ratios[1]:.2f} (CPU)")


def main(rows: int) -> None:
    """Generate, run each step in a process of its own, compare the counting."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder / "census.parquet", rows)
        size = (folder / "census.parquet").stat().st_size / 1e6
        print(f"{rows:,} persons, {size:.0f} MB of Parquet", flush=True)
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.evidence.census", step, name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{step:8} {found['wall']:7.2f} s  {found['cpu']:7.2f} CPU s  "
                f"{found['peak']:5.0f} MB  {found['says']}",
                flush=True,
            )
        print(f"counting, medians of {REPEAT}:")
        _compare_counting(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One step of the benchmark, in this process.")
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    begin, spent = time.perf_counter(), time.process_time()
    says = STEPS[chosen.step](chosen.folder)
    took = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - spent}
    print(json.dumps({**took, "peak": own_peak(), "says": says}))
