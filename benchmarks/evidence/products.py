"""Errors, CPU seconds and memory on batches over products: ``python -m benchmarks products``.

Each row runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

import lrm
from benchmarks.batches.products import (
    ADULT,
    CPS,
    FIGURES,
    LOANS,
    REAL,
    SMALL,
    affine_batch,
    prefix_tables,
)
from benchmarks.evidence import census, flights
from benchmarks.gates import unseen_products
from lrm.planning.plan.proposals import search_record
from lrm.queries.maps.products.batch import ProductBatch, cross_tabs, sum_batch
from lrm.queries.maps.products.map import ProductMap

__all__ = ["main"]

SCALE = {(20, 10): 861.0, (50, 10): 14036.0, (100, 10): 113192.0}
SCALE |= {(20, 2): 90.6, (50, 2): 1222.0, (100, 2): 9323.0}
GAUSSIAN = {
    "adult 1-way": (ADULT, 0, [1], 3.04682),
    "adult 2-way": (ADULT, 0, [2], 6.35872),
    "adult 3-way": (ADULT, 0, [3], 10.51527),
    "adult up to 3-way": (ADULT, 0, range(4), 10.66501),
    "100 attributes up to 3-way": ((10,) * 100, 0, range(4), 303.2161),
}
PREFIXES = {
    "adult": (ADULT, 5, (5.081, 17.274, 45.223, 45.174)),
    "cps": (CPS, 2, (3.081, 5.823, 7.302, 7.570)),
    "loans": (LOANS, 4, (4.681, 14.502, 34.168, 34.144)),
}
"""Tables with prefix sums over the first attributes, and the root mean squared errors that were
published with ResidualPlanner+ for 1-, 2-, 3- and up to 3-way tables."""
GAUSSIAN |= {
    f"{name} prefixes {orders}": (sizes, prefixes, members, figure)
    for name, (sizes, prefixes, figures) in PREFIXES.items()
    for (orders, members), figure in zip(
        {"1-way": [1], "2-way": [2], "3-way": [3], "up to 3-way": range(4)}.items(),
        figures,
        strict=True,
    )
}

GAUSSIAN_KINDS = {"gaussian", "affine"}
AFFINE = {5: 5.3266, 10: 9.809, 40: 35.52}
"""Conditions ``x + y <= c`` and ``|x - y| <= c`` for all c, over all pairs of so many attributes of
ten values. The figures are those of parts around equal weights of all values, each with the optimum
of its own Gram, as QuerySmasher (arXiv:2604.00868) has them; they were computed here."""
CPS_INCOME = "cps, income and another"
CPS_FIGURE = 4.266
"""Conditions on income and one of the short attributes of CPS together, and one-way tables; the
figure is that of one Gram per attribute."""


def _cps_income() -> ProductBatch:
    income, attributes = np.arange(CPS[0]), range(len(CPS))
    terms = []
    for k, c in itertools.product(attributes[2:], range(0, 100, 5)):
        summands = []
        for value in range(CPS[k]):
            matching = income * CPS[k] + 100 * value <= c * CPS[k] + 50
            factors: list[object] = ["total"] * len(CPS)
            factors[0], factors[k] = matching[None].astype(float), np.eye(CPS[k])[[value]]
            summands += [(1.0, factors)] if matching.any() else []
        terms.append(summands)
    for i in attributes:
        words: list[object] = ["total"] * len(CPS)
        words[i] = "prefix" if i < 2 else "identity"
        terms.append([(1.0, words)])
    return sum_batch(CPS, terms)


def _names(kind: str) -> list[str]:
    if kind == "scale":
        return [f"{d} attributes of {n} values" for d, n in SCALE]
    if kind == "affine":
        return [*(f"{d} attributes of 10 values" for d in AFFINE), CPS_INCOME]
    if kind == "flights":
        return list(flights.FIGURES)
    return list({"real": REAL, "small": SMALL, "gaussian": GAUSSIAN}[kind])


def _batch(kind: str, name: str) -> tuple[ProductBatch, float]:
    """A batch and its figure: a root mean square, or a total for small tables."""
    if kind == "real":
        return REAL[name](), FIGURES[name]
    if kind == "small":
        return SMALL[name][0](), SMALL[name][1]
    if kind == "scale":
        (d, n), figure = list(SCALE.items())[_names("scale").index(name)]
        return cross_tabs([n] * d, range(4)), figure
    if name == CPS_INCOME:
        return _cps_income(), CPS_FIGURE
    if kind == "affine":
        d, figure = list(AFFINE.items())[_names("affine").index(name)]
        return affine_batch(d), figure
    sizes, prefixes, orders, figure = GAUSSIAN[name]
    return prefix_tables(sizes, orders, prefixes), figure


def _measure(kind: str, name: str, effort: str, seed: int) -> dict[str, float]:
    """One row, in this process: a plan as anybody would make it, rounding and bound included."""
    if kind == "flights":
        return flights.measure(name, effort, seed)
    batch, figure = _batch(kind, name)
    workload = lrm.Workload(ProductMap(batch))
    noise = "gaussian" if kind in GAUSSIAN_KINDS else "laplace"
    begin = time.process_time()
    plan = lrm.plan(workload, noise=noise, objective="total", effort=effort, seed=seed)
    seconds = time.process_time() - begin
    error = plan.strategy_error
    value = error if kind == "small" else math.sqrt(error / batch.queries)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    found = search_record(plan).error
    return {
        "value": value,
        "ratio": value / figure,
        "seconds": seconds,
        "megabytes": memory,
        "rounding": error / found,
        "above": plan.at_most_above_best,
    }


def _run(kind: str, name: str, effort: str, seed: int) -> dict[str, float]:
    """One row, in a process of its own with one thread."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.evidence.products",
        "--row",
        kind,
        name,
        effort,
        str(seed),
    ]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **threads}
    )
    row: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return row


def _further(row: dict[str, float]) -> str:
    """What is measured beside the plan, where anything is."""
    file = f"  file {row['file'] / 1e3:.0f} kB" if "file" in row else ""
    return file + (f", released in {row['release']:.1f} s" if "release" in row else "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks products", description=__doc__)
    parser.add_argument(
        "kinds",
        nargs="*",
        default=["real", "small", "gaussian", "affine", "scale", "flights"],
        help="of batches; 'unseen' alone draws batches and compares with every baseline, 'census' "
        "alone goes from a table of persons to a file of answers",
    )
    parser.add_argument("--effort", default="quick,normal", help="comma-separated")
    parser.add_argument("--only", default="", help="batches whose name contains this text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=18, help="batches of 'unseen' to draw")
    parser.add_argument("--rows", type=int, default=10_000_000, help="persons of 'census'")
    parser.add_argument("--small", action="store_true", help="'unseen' on tables of few cells")
    parser.add_argument("--row", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.row:
        kind, name, effort, seed = chosen.row
        print(json.dumps(_measure(kind, name, effort, int(seed))))
        return
    if chosen.kinds == ["unseen"]:
        efforts = chosen.effort.split(",")
        above = unseen_products.run(chosen.seed, chosen.count, efforts, small=chosen.small)
        sys.exit(int(above > 0))
    if chosen.kinds == ["census"]:
        census.main(chosen.rows)
        return
    print(
        f"{'batch':30} {'effort':8} {'value':>14} {'ratio':>8} {'CPU s':>7} {'MB':>6}  "
        f"{'rounding':8}  {'bound':>8}"
    )
    for kind in chosen.kinds:
        for name in [name for name in _names(kind) if chosen.only in name]:
            for effort in ["normal"] if kind in GAUSSIAN_KINDS else chosen.effort.split(","):
                row = _run(kind, name, effort, chosen.seed)
                print(
                    f"{name:30} {effort:8} {row['value']:14.7g} {row['ratio']:8.4f} "
                    f"{row['seconds']:7.2f} {row['megabytes']:6.0f}  "
                    f"{row['rounding']:.6f}  {row['above']:8.4g}{_further(row)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
