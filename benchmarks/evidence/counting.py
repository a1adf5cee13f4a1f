"""Time counting on generated files.

Parquet is compared with the best query written by hand, CSV with the same count through DuckDB's
own reader, marginals of a product (`counting_products`) with the best queries written by
hand. Run with ``python -m benchmarks counting``; prints one line per case. Runs are interleaved and
medians are given, as other work on the machine disturbs all cases alike. Peak memory is that of a
fresh process that only counts.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.evidence import counting_products
from benchmarks.evidence.csv_readers import by_duckdb, by_lrm, generate_csv
from lrm.domain import Bins, Categories, Domain, Integers, PrivacyUnit
from lrm.tables import open_table

STATES = [f"state {number:02d}" for number in range(16)]
SEED = 20120827

CASES = {
    "12x16x8 cells": Bins("income", [125.0 * number for number in range(9)]),
    "12x16x1024 cells": Bins("income", np.linspace(0, 1000, 1025)),
    "12x16x1024 uneven": Bins("income", [0.0, *np.geomspace(1e-3, 1000, 1024)]),
}
PERSONS = "12x16x8, 3 rows per person"


def domain_of(case: str) -> Domain:
    """The domain of a case."""
    attributes = [Integers("month", 1, 12), Categories("state", STATES)]
    if case == PERSONS:
        return Domain([*attributes, CASES["12x16x8 cells"]], unit=PrivacyUnit("who", 3))
    return Domain([*attributes, CASES[case]])


def generate(path: Path, rows: int) -> None:
    """Write the table: every value is a hash of the row's number, so it is always the same."""
    numbers = ", ".join(f"hash(i, {SEED + salt}) AS h{salt}" for salt in range(4))
    listed = ", ".join(f"'{state}'" for state in STATES)
    with duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False}) as db:
        db.execute(
            "COPY (SELECT (h0 % 12 + 1)::INTEGER AS month, "  # noqa: S608 - constants of this file
            f"([{listed}])[(h1 % 16 + 1)::BIGINT] AS state, "
            "(h2 >> 11)::DOUBLE / 9007199254740992 * 1000 AS income, "
            f"(h3 % {max(1, rows // 4)})::BIGINT AS who "
            f"FROM (SELECT {numbers} FROM range({rows}) AS t(i))) "
            f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 122880)"
        )


def by_hand(path: Path) -> dict[str, str]:
    """Queries that a person would write for the narrow case; the fastest is what we compare to.

    The one without a filter trusts the data, or has its reader drop what is not declared.
    """
    bins = " ".join(f"WHEN income < {125 * (cell + 1)} THEN {cell}" for cell in range(8))
    states = ", ".join(f"'{state}'" for state in STATES)
    span = "month BETWEEN 1 AND 12 AND income >= 0 AND income < 1000"
    enum = f"enum_code(TRY_CAST(state AS ENUM({states})))"
    select = "SELECT month, {} AS state, CASE {} END AS bin, count(*) FROM '{}'"
    plain, coded = (select.format(state, bins, path) for state in ("state", enum))
    return {
        "by hand, filtered": f"{plain} WHERE {span} AND state IN ({states}) GROUP BY ALL",
        "by hand, by ENUM": f"{coded} WHERE {span} GROUP BY ALL",
        "by hand, unfiltered": f"{plain} GROUP BY ALL",
    }


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def own_peak() -> float:
    """Peak memory of this process in MB.

    Linux hands the peak of ``getrusage`` on to child processes; the one in /proc is our own.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def peak_memory(path: Path, case: str) -> float:
    """Peak memory in MB of a process that counts and does nothing else."""
    command = [sys.executable, "-m", "benchmarks.evidence.counting", "--count", str(path), case]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _answered(query: str) -> object:
    """Run a query as a person would who asks it once: in a session of its own, as counting is."""
    with duckdb.connect() as db:
        return db.execute(query).fetchall()


def parquet_works(path: Path) -> dict[str, Callable[[], object]]:
    """What is timed on Parquet."""
    table = open_table(path)
    works: dict[str, Callable[[], object]] = {}
    for case, query in by_hand(path).items():
        works[case] = lambda query=query: _answered(query)
    for case in (*CASES, PERSONS):
        works[case] = lambda case=case: table.counts(domain_of(case))
    return works


def csv_works(path: Path) -> dict[str, Callable[[], object]]:
    """What is timed on a CSV file: each count by DuckDB's reader, and by that of lrm."""
    works: dict[str, Callable[[], object]] = {}
    for case in ("12x16x8 cells", "12x16x1024 cells", PERSONS):
        for reader, table in (("DuckDB", by_duckdb(path)), ("lrm", by_lrm(path))):
            works[f"{case} {path.stem} {reader}"] = lambda case=case, table=table: table.counts(
                domain_of(case)
            )
    return works


def medians_of(
    works: dict[str, Callable[[], object]], repeat: int
) -> dict[str, tuple[float, float]]:
    """Wall and processor seconds of each work, the works taking turns."""
    times: dict[str, list[tuple[float, float]]] = {case: [] for case in works}
    for _ in range(repeat):
        for case, work in works.items():
            times[case].append(timed(work))
    return {
        case: (
            statistics.median(wall for wall, _ in pairs),
            statistics.median(cpu for _, cpu in pairs),
        )
        for case, pairs in times.items()
    }


def measure(path: Path, repeat: int) -> list[dict[str, object]]:
    """Time the cases on Parquet in turn, ``repeat`` times, and return one record each."""
    medians = medians_of(parquet_works(path), repeat)
    wall, cpu = (min(medians[case][part] for case in by_hand(path)) for part in (0, 1))
    records = [_record(case, times, (wall, cpu)) for case, times in medians.items()]
    for record in records:
        if record["case"] not in by_hand(path):
            record["peak_mb"] = round(peak_memory(path, str(record["case"])))
    return records


def measure_csv(path: Path, repeat: int) -> list[dict[str, object]]:
    """Time the cases on CSV in turn; the ratios are to DuckDB's reader, case by case."""
    medians = medians_of(csv_works(path), repeat)
    records = []
    for case, times in medians.items():
        name = case.removesuffix(f" {path.stem} lrm")
        if name == case:
            records.append(_record(case, times, times))
            continue
        records.append(_record(case, times, medians[f"{name} {path.stem} DuckDB"]))
        records[-1]["peak_mb"] = round(peak_memory(path, name))
    return records


def measure_products(path: Path, repeat: int) -> list[dict[str, object]]:
    """Time marginals on Parquet; the ratios are to the fastest queries written by hand."""
    medians = medians_of(counting_products.works(path), repeat)
    hand = [times for case, times in medians.items() if case not in counting_products.CASES]
    wall, cpu = (min(times[part] for times in hand) for part in (0, 1))
    records = [_record(case, times, (wall, cpu)) for case, times in medians.items()]
    for record in records:
        if record["case"] in counting_products.CASES:
            record["peak_mb"] = round(peak_memory(path, str(record["case"])))
    return records


def _record(case: str, times: tuple[float, float], base: tuple[float, float]) -> dict[str, object]:
    return {
        "case": case,
        "wall_seconds": round(times[0], 3),
        "cpu_seconds": round(times[1], 3),
        "wall_ratio": round(times[0] / base[0], 2),
        "cpu_ratio": round(times[1] / base[1], 2),
        "peak_mb": "-",
        "seed": SEED,
        "duckdb": duckdb.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def write(records: list[dict[str, object]], path: Path) -> None:
    """Write the records as CSV or, by the file's name, as JSON."""
    if path.suffix == ".csv":
        with path.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    else:
        path.write_text(json.dumps(records, indent=2) + "\n")


def cells_part(folder: Path, rows: int, repeat: int) -> list[dict[str, object]]:
    """Generate a table of few attributes, as Parquet and as CSV, and time the counts of cells."""
    path = folder / "rows.parquet"
    generate(path, rows)
    sys.stdout.write(f"{rows:,} rows of Parquet, {path.stat().st_size / 1e6:,.0f} MB\n")
    records = measure(path, repeat)
    for name in ("plain", "quoted"):
        written = folder / f"{name}.csv"
        generate_csv(path, written, quoted=name == "quoted")
        size = written.stat().st_size / 1e6
        sys.stdout.write(f"the same as {name} CSV, {size:,.0f} MB\n")
        records += measure_csv(written, repeat)
        written.unlink()
    return records


def main() -> None:
    """Parse, generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path, help="file for the records, .json or .csv")
    parser.add_argument("--only", choices=["cells", "products"], help="one of the two parts")
    parser.add_argument("--count", nargs=2, metavar=("FILE", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        path, case = options.count
        if case in counting_products.CASES:
            counting_products.count(Path(path), case)
        else:
            open_table(path).counts(domain_of(case))
        sys.stdout.write(f"{own_peak()}\n")
        return
    records = []
    with tempfile.TemporaryDirectory(prefix="lrm-counting-") as folder:
        if options.only in {None, "cells"}:
            records += cells_part(Path(folder), options.rows, options.repeat)
        if options.only in {None, "products"}:
            path = Path(folder) / "persons.parquet"
            counting_products.generate(path, options.rows)
            size = path.stat().st_size / 1e6
            sys.stdout.write(f"{options.rows:,} persons of a census as Parquet, {size:,.0f} MB\n")
            records += measure_products(path, options.repeat)
    line = "{case:40} {wall_seconds:>8} s wall {cpu_seconds:>8} s CPU   "
    line += "ratios {wall_ratio:>5} {cpu_ratio:>5}   peak {peak_mb} MB\n"
    for record in records:
        sys.stdout.write(line.format(**record))
    if options.out:
        told = {"rows": options.rows, "repeat": options.repeat}
        write([{**record, **told} for record in records], options.out)


if __name__ == "__main__":
    main()
