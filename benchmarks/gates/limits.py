"""Unusual batches, each planned within 1 GB and 10 CPU seconds or refused: ``benchmarks limits``.

A case is one function: it plans (or does whatever else has a limit) and returns a short text about
the result. An error of `lrm` is an outcome too, and its message is printed. Each case runs in a
process of its own, with one thread, so that its CPU time and its peak memory are its own; the
process is ended at ``ENDED_AT`` seconds or bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import scipy.sparse as sp

import lrm
from lrm.errors import LrmError
from lrm.planning.plan.proposals import search_record
from lrm.queries.maps.products.batch import ProductBatch, cross_tabs, product_batch
from lrm.queries.maps.products.map import ProductMap

__all__ = ["CASES", "main"]

Case = Callable[[str], str]

MOST_SECONDS, MOST_MEGABYTES = 10.0, 1000.0
"""CPU time and memory that a case may take."""

ENDED_AT = (60, 6 << 30)
"""CPU seconds and bytes of address space at which a case is ended."""

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Add a function to the cases under its name; it is called with an effort."""
    CASES[function.__name__.replace("_", " ")] = function
    return function


def _planned(queries: object, effort: str, **options: object) -> str:
    plan = lrm.plan(queries, effort=effort, **options)
    return f"error {plan.strategy_error:.6g}, {search_record(plan).winner}"


def _products(batch: ProductBatch, effort: str, **options: object) -> str:
    return _planned(lrm.Workload(ProductMap(batch)), effort, **options)


@case
def attributes_500(effort: str) -> str:
    """All tables of one and two of 500 attributes."""
    return _products(cross_tabs([2] * 500, [0, 1, 2]), effort)


@case
def attributes_500_in_few_tables(effort: str) -> str:
    """Tables of three of 500 attributes, 2,000 of them drawn at random."""
    rng = np.random.default_rng(0)
    chosen = {tuple(sorted(rng.choice(500, 3, replace=False).tolist())) for _ in range(2000)}
    words = [["identity" if i in own else "total" for i in range(500)] for own in sorted(chosen)]
    return _products(product_batch([4] * 500, words), effort)


@case
def attributes_500_gaussian(effort: str) -> str:
    """All tables of one and two of 500 attributes, Gaussian noise."""
    return _products(cross_tabs([2] * 500, [0, 1, 2]), effort, noise="gaussian")


@case
def real_weights_2000(effort: str) -> str:
    """One query with 2,000 unrelated real weights."""
    return _planned(np.random.default_rng(0).random((1, 2000)), effort)


@case
def real_weights_20000(effort: str) -> str:
    """One query with 20,000 unrelated real weights."""
    return _planned(np.random.default_rng(0).random((1, 20_000)), effort)


@case
def whole_weights_20000(effort: str) -> str:
    """One query with 20,000 whole weights below a million."""
    weights = np.random.default_rng(0).integers(1, 10**6, (1, 20_000))
    return _planned(weights.astype(float), effort)


@case
def real_weights_in_three_queries(effort: str) -> str:
    """Three queries whose columns are multiples of 50 others, 5,000 cells."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 4, (3, 50))[:, rng.integers(0, 50, 5000)]
    return _planned(columns * rng.random(5000), effort)


@case
def prefixes_20000_times_another(effort: str) -> str:
    """Prefixes over 20,000 values by an attribute of 5."""
    return _products(product_batch([20_000, 5], [["prefix", "identity"]]), effort)


@case
def prefixes_20000_times_another_gaussian(effort: str) -> str:
    """Prefixes over 20,000 values by an attribute of 5, Gaussian noise."""
    batch = product_batch([20_000, 5], [["prefix", "identity"]])
    return _products(batch, effort, noise="gaussian")


@case
def prefixes_3000_beside_small(effort: str) -> str:
    """Prefixes over 3,000 values, beside tables of attributes of 2 to 5 values."""
    words = [
        ["prefix", "identity", "total", "total"],
        ["prefix", "total", "identity", "total"],
        ["total", "identity", "identity", "identity"],
    ]
    return _products(product_batch([3000, 2, 3, 5], words), effort)


@case
def prefixes_3000_beside_small_gaussian(effort: str) -> str:
    """Prefixes over 3,000 values, beside small tables, Gaussian noise."""
    words = [["prefix", "identity", "total"], ["total", "identity", "identity"]]
    return _products(product_batch([3000, 2, 3], words), effort, noise="gaussian")


@case
def ranges_2000_times_another(effort: str) -> str:
    """All ranges over 2,000 values by an attribute of 3."""
    return _products(product_batch([2000, 3], [["all-ranges", "identity"]]), effort)


@case
def prefixes_of_two_long_attributes(effort: str) -> str:
    """Prefixes over 5,000 values and over 4,000 others, each beside a small attribute."""
    words = [["prefix", "total", "identity"], ["total", "prefix", "identity"]]
    return _products(product_batch([5000, 4000, 3], words), effort)


@case
def conditions_20000(effort: str) -> str:
    """20,000 different conditions on one attribute of 1,000 values, by another."""
    return _products(_conditions(20_000, 1000), effort)


@case
def conditions_3000_gaussian(effort: str) -> str:
    """3,000 different conditions on one attribute of 300 values, Gaussian noise."""
    return _products(_conditions(3000, 300), effort, noise="gaussian")


def _conditions(count: int, values: int) -> ProductBatch:
    rng = np.random.default_rng(0)
    chosen = rng.random((count, values)) < 0.3
    return product_batch([values, 2], [[row[None].astype(float), "identity"] for row in chosen])


@case
def values_100000_with_weights(effort: str) -> str:
    """Real weights of 100,000 values of one attribute, by another."""
    weights = np.random.default_rng(0).random((1, 100_000))
    return _products(product_batch([100_000, 4], [[weights, "identity"]]), effort)


@case
def random_ranges_65536(effort: str) -> str:
    """32,768 ranges over 65,536 cells."""
    return _planned(lrm.families.ranges(65_536, _ranges(32_768, 65_536)), effort)


@case
def wide_rows_50000(effort: str) -> str:
    """2,000 queries with 500 real weights each over 50,000 cells."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 50_000, (2000, 500))
    rows = np.repeat(np.arange(2000), 500)
    weights = sp.csr_array((rng.random(rows.size), (rows, cells.ravel())), shape=(2000, 50_000))
    return _planned(weights, effort)


def _ranges(queries: int, cells: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(1)
    first, length = rng.integers(0, cells - 500, queries), rng.integers(0, 500, queries)
    return list(zip(first.tolist(), (first + length).tolist(), strict=True))


def _from_sql(text: str, values: int, effort: str, *, beside: bool, **options: object) -> str:
    """From a statement to a plan, and to a release on 5,000 rows."""
    attributes: list[lrm.Integers | lrm.Categories] = [lrm.Integers("x", 0, values - 1)]
    if beside:
        attributes.append(lrm.Categories("g", ["a", "b", "c"]))
    plan = lrm.plan(lrm.sql(text, lrm.Domain(attributes, "t")), effort=effort, **options)
    amount = {"rho" if options.get("noise") == "gaussian" else "epsilon": 1}
    numbers = np.arange(5000)
    groups = np.array(["a", "b", "c"])[numbers % 3]
    rows = pd.DataFrame({"x": numbers * (values // 5000), "g": groups})
    released = lrm.release(plan, rows, ledger=None, **amount)
    return f"error {plan.strategy_error:.6g}, {len(released.answers)} answers"


MEDIAN = "SELECT MEDIAN(x) AS m FROM t"
MEDIANS = "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g"
RUNNING = "SELECT x, SUM(COUNT(*)) OVER (ORDER BY x) AS up_to FROM t GROUP BY x"


@case
def sql_median_of_30000(effort: str) -> str:
    """A median of 30,000 values."""
    return _from_sql(MEDIAN, 30_000, effort, beside=False)


@case
def sql_median_of_100000(effort: str) -> str:
    """A median of 100,000 values."""
    return _from_sql(MEDIAN, 100_000, effort, beside=False)


@case
def sql_median_of_100000_gaussian(effort: str) -> str:
    """A median of 100,000 values, Gaussian noise."""
    return _from_sql(MEDIAN, 100_000, effort, beside=False, noise="gaussian")


@case
def sql_median_of_100000_beside_3(effort: str) -> str:
    """A median of 100,000 values, beside an attribute that is not used."""
    return _from_sql(MEDIAN, 100_000, effort, beside=True)


@case
def sql_medians_of_30000_by_3(effort: str) -> str:
    """Medians of 30,000 values in three groups."""
    return _from_sql(MEDIANS, 30_000, effort, beside=True)


@case
def sql_medians_of_100000_by_3(effort: str) -> str:
    """Medians of 100,000 values in three groups."""
    return _from_sql(MEDIANS, 100_000, effort, beside=True)


@case
def sql_medians_of_100000_by_3_gaussian(effort: str) -> str:
    """Medians of 100,000 values in three groups, Gaussian noise."""
    return _from_sql(MEDIANS, 100_000, effort, beside=True, noise="gaussian")


@case
def sql_running_totals_of_100000(effort: str) -> str:
    """Running totals over 100,000 values."""
    return _from_sql(RUNNING, 100_000, effort, beside=False)


@case
def sql_running_totals_of_100000_beside_3(effort: str) -> str:
    """Running totals over 100,000 values beside medians in groups and a table."""
    table = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    return _from_sql(f"{RUNNING}; {MEDIANS}; {table}", 100_000, effort, beside=True)


@case
def sql_list_of_50000(effort: str) -> str:
    """A list of 50,000 constants over 1,000,000 values."""
    listed = ", ".join(map(str, range(0, 100_000, 2)))
    text = f"SELECT COUNT(*) AS n FROM t WHERE x IN ({listed})"  # noqa: S608 - numbers
    return _from_sql(text, 1_000_000, effort, beside=False)


@case
def sql_list_of_50000_by_3(effort: str) -> str:
    """A list of 50,000 constants over 1,000,000 values, in three groups."""
    listed = ", ".join(map(str, range(0, 100_000, 2)))
    text = f"SELECT g, COUNT(*) AS n FROM t WHERE x IN ({listed}) GROUP BY g"  # noqa: S608
    return _from_sql(text, 1_000_000, effort, beside=True)


@case
def sql_first_1000_of_100000(effort: str) -> str:
    """A table of the first 1,000 of 100,000 values."""
    text = "SELECT x, COUNT(*) AS n FROM t WHERE x < 1000 GROUP BY x"
    return _from_sql(text, 100_000, effort, beside=False)


def _measure(name: str, effort: str) -> dict[str, float | str]:
    """One case, in this process."""
    seconds, memory = ENDED_AT
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        outcome = CASES[name](effort)
    except LrmError as reason:
        outcome = f"{type(reason).__name__}: {reason}"
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": spent, "megabytes": used.ru_maxrss / 1024, "outcome": outcome}


def _run(name: str, effort: str) -> dict[str, float | str]:
    """One case, in a process of its own with one thread."""
    command = [sys.executable, "-m", "benchmarks.gates.limits", "--row", name, effort]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **threads}
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"])[-1]
        return {"seconds": np.inf, "megabytes": np.inf, "outcome": f"FAILED: {last[:200]}"}
    row: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print a line for each; 1 if any failed or took more than it may."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks limits", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--effort", default="quick,normal", help="comma-separated")
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.row:
        print(json.dumps(_measure(*chosen.row)))
        return 0
    print(f"{'case':38} {'effort':8} {'CPU s':>7} {'MB':>6}  outcome")
    over = 0
    for name in [name for name in CASES if chosen.only in name]:
        for effort in chosen.effort.split(","):
            row = _run(name, effort)
            seconds, megabytes = float(row["seconds"]), float(row["megabytes"])
            is_over = seconds > MOST_SECONDS or megabytes > MOST_MEGABYTES
            over += is_over
            print(
                f"{name:38} {effort:8} {seconds:7.2f} {megabytes:6.0f}{'!' if is_over else ' '} "
                f"{row['outcome']}",
                flush=True,
            )
    print(f"{over} above {MOST_SECONDS:.0f} CPU s or {MOST_MEGABYTES:.0f} MB")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
