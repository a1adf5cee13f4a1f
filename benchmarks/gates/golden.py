"""The golden set: plans that a change of the planning code must keep, or make better.

``python -m benchmarks golden`` plans each case again and compares with what is stored: no error
above 1.005 times the stored one, a geometric mean of at most 1.001, and at most 1.2 times the CPU
time. Mechanisms without a search must measure the same integers. The exit code is 1 otherwise.

Cases whose name begins with ``default`` are planned by the default call, ``lrm.plan(batch)``; of
several statements the figure is their mean squared ratio to an even split, and the largest ratio
is compared too. Cases called ``kind`` have kinds of measurement that no other case has.

``--store FOLDER`` writes the plans that are small enough as files, with what follows from them
(``tests/planning/golden`` holds those of the tests); ``--record`` stores errors and CPU times
anew. Both belong in a commit of their own that says why.

CPU times are stored beside that of a fixed computation, so that machines can be compared.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import lrm
from benchmarks.batches import products as product_batches
from benchmarks.batches.panel import PANEL
from benchmarks.batches.tables import TABLES
from benchmarks.comparisons import gaussian
from benchmarks.evidence import long
from benchmarks.evidence.flights import flights_domain, flights_sql
from benchmarks.gates import unseen, unseen_products
from benchmarks.gates.everyday import default_batches, kind_batches, rows_by_month
from lrm.queries.maps.products.batch import ProductBatch, cross_tabs
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.workload import Workload

__all__ = ["CASES", "Case", "facts_of", "main"]

RESULTS = Path(__file__).with_name("golden.json")
"""Errors and CPU times of the stored search."""

WORST_ROW, WORST_MEAN, WORST_TIME = 1.005, 1.001, 1.2
"""What a change may cost: in the error of one case, in the mean error, and in CPU time."""

LARGEST_FILE = 40_000
"""Bytes of a plan file up to which it is stored for the tests."""

SAMPLED_ROWS = 24
"""Queries whose norms and answers are stored."""

NO_SEARCH = ("noise-on-data", "noise-on-results", "wavelet", "hierarchical")


@dataclass(frozen=True)
class Case:
    """A batch and how it is planned."""

    build: Callable[[], Workload]
    mechanism: str = "best"
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_total(
        cls,
        build: Callable[[], Workload],
        mechanism: str = "best",
        options: Mapping[str, Any] | None = None,
    ) -> Case:
        """A batch planned for its total error, with Laplace noise unless ``options`` say other."""
        return cls(build, mechanism, {"noise": "laplace", "objective": "total", **(options or {})})

    def plan(self) -> lrm.Plan:
        """Build the batch and plan it."""
        return self.plan_of(self.build())

    def plan_of(self, workload: Workload) -> lrm.Plan:
        """Plan a batch as this case does."""
        return lrm.plan(workload, self.mechanism, **self.options)


def _products(build: Callable[[], ProductBatch]) -> Workload:
    return Workload(ProductMap(build()))


def _flights() -> Workload:
    return lrm.sql(flights_sql(2), flights_domain())


def _unseen(number: int) -> Workload:
    return unseen.draw(41, number, 48)[1]


def _unseen_products(number: int, *, small: bool) -> Workload:
    return unseen_products.workload_of(unseen_products.draw(41, number, small=small)[1])


def _persons(column: str | None, max_rows: int, neighbours: str) -> Workload:
    """A batch over a table of visits with a declared privacy unit and derived answers."""
    domain = lrm.Domain(
        [
            lrm.Categories("ward", ["a", "b", "c"]),
            lrm.Integers("age", 0, 11),
            lrm.Integers("days", 0, 7),
        ],
        "visits",
        unit=lrm.PrivacyUnit(column, max_rows, neighbours),  # type: ignore[arg-type]
    )
    return lrm.sql(
        "SELECT ward, COUNT(*) AS n, AVG(days) AS mean FROM visits GROUP BY ward;"
        "SELECT age, COUNT(*) AS n FROM visits WHERE days >= 3 GROUP BY age",
        domain,
    )


SEARCHED: Mapping[str, tuple[str, ...]] = {
    "panel": (
        *("intro 3×4", "prefix 64", "prefix 256", "all ranges 64", "all ranges 128"),
        *("shuffled ranges 256", "width-32 ranges 256", "identity 256", "total + identity 256"),
        *("WRange 64×128", "WDiscrete 64×128", "WRelated 64×128", "WRange 128×256"),
        *("WRelated 64×512 rank 8", "WRelated 128×1024 rank 16"),
    ),
    "tables": (
        *("population pyramid", "totals that count", "cumulative cases", "hospital stays"),
        *("income bands", "migration", "survey", "one-way 36×16×8", "vaccinations"),
        *("commuters", "waiting times", "panel of firms"),
    ),
    "real": ("census", "census by state", "cps marginals", "cps prefixes"),
    "small": ("10×8×5×2×2 1-way", "2×2×2×2×2×2 1-way", "91 queries by region"),
    "long": ("prefix 4096", "all ranges 4096", "ranges of 32 cells 4096", "random ranges 4096"),
    "gaussian": ("prefix 256", "WRange 64×128", "WRelated 64×512 rank 8", "all ranges 64"),
}
"""Batches of other benchmarks that belong to the set."""

QUICK, NORMAL, GAUSSIAN = {"effort": "quick"}, {"effort": "normal"}, {"noise": "gaussian"}


def _matrix(sizes: list[int]) -> Workload:
    """One-way tables, as a matrix that says nothing about attributes."""
    return Workload(_products(partial(cross_tabs, sizes, [1])).queries.dense())


def _panels() -> Iterator[tuple[str, Case]]:
    """Batches of the other benchmarks."""
    for name in SEARCHED["panel"]:
        yield name, Case.of_total(PANEL[name], options=NORMAL)
    for name in SEARCHED["tables"]:
        yield name, Case.of_total(TABLES[name], options=NORMAL)
    for name in SEARCHED["real"]:
        yield name, Case.of_total(partial(_products, product_batches.REAL[name]), options=QUICK)
    for name in SEARCHED["small"]:
        yield (
            name,
            Case.of_total(partial(_products, product_batches.SMALL[name][0]), options=NORMAL),
        )
    for name in SEARCHED["long"]:
        yield f"long {name}", Case.of_total(partial(long.build, name), options=QUICK)
    for name in SEARCHED["gaussian"]:
        yield f"gaussian {name}", Case.of_total(PANEL[name], options=GAUSSIAN)
    for number, kind in enumerate(unseen.KINDS):
        yield f"unseen {kind}", Case.of_total(partial(_unseen, number), options=NORMAL)
    for number, kind in enumerate(unseen_products.KINDS):
        small = partial(_unseen_products, number, small=True)
        yield f"unseen product {kind}", Case.of_total(small, options=NORMAL)
        if number in (1, 3, 6):
            large = partial(_unseen_products, number, small=False)
            yield f"gaussian product {kind}", Case.of_total(large, options=GAUSSIAN)


def _others() -> Iterator[tuple[str, Case]]:
    """Single cases: efforts, units, mechanisms."""
    real, prefixes = product_batches.REAL, product_batches.prefix_tables
    adult, cps = product_batches.ADULT, product_batches.CPS
    yield "census, normal effort", Case.of_total(partial(_products, real["census"]), options=NORMAL)
    yield "loans", Case.of_total(partial(_products, real["loans small prefixes"]), options=QUICK)
    yield "flights up to 2-way", Case.of_total(_flights, options=NORMAL)
    many = partial(_products, partial(cross_tabs, [2] * 12, range(4)))
    yield "2^12 up to 3-way", Case.of_total(many, options=NORMAL)
    yield "one-way matrix", Case.of_total(partial(_matrix, [10, 8, 5, 2, 2]), options=NORMAL)
    wide = partial(_products, partial(cross_tabs, [2] * 80, range(3)))
    yield "80 attributes up to 2-way", Case.of_total(wide, options=QUICK)
    long_ones = partial(_products, partial(cross_tabs, [10] * 20, range(3)))
    yield "20 attributes", Case.of_total(long_ones, options=QUICK)
    hostile = gaussian.HOSTILE["equal rows, copies, zeros"]
    yield "gaussian equal rows", Case.of_total(hostile, options=GAUSSIAN)
    yield "gaussian survey", Case.of_total(TABLES["survey"], options=GAUSSIAN)
    tables = partial(_products, partial(prefixes, adult, [2], 0))
    yield "gaussian adult 2-way", Case.of_total(tables, options=GAUSSIAN)
    ranges = partial(_products, partial(prefixes, cps, [2], 2))
    yield "gaussian cps prefixes", Case.of_total(ranges, options=GAUSSIAN)
    yield "persons", Case.of_total(partial(_persons, "patient", 3, "add-remove"), options=NORMAL)
    yield "substitution", Case.of_total(partial(_persons, None, 1, "substitute"), options=NORMAL)
    persons = partial(_persons, "patient", 3, "substitute")
    yield "persons, gaussian", Case.of_total(persons, options=GAUSSIAN)
    wrange, migration = PANEL["WRange 64×128"], TABLES["migration"]
    yield "lowrank", Case.of_total(wrange, "lowrank", {"rank_ratio": 1.2})
    yield "lowrank exact", Case.of_total(partial(_unseen, 3), "lowrank")
    yield "matrix", Case.of_total(partial(_unseen, 4), "matrix")
    yield "marginals", Case.of_total(TABLES["survey"], "marginals")
    for mechanism in NO_SEARCH:
        yield mechanism, Case.of_total(wrange, mechanism)
        yield f"{mechanism}, table", Case.of_total(migration, mechanism)
    by_4 = {"fanout": 4, "root": False}
    yield "hierarchical by 4", Case.of_total(PANEL["prefix 256"], "hierarchical", by_4)
    yield "wavelet, gaussian", Case.of_total(PANEL["prefix 256"], "wavelet", GAUSSIAN)
    yield "noise-on-data, product", Case.of_total(_flights, "noise-on-data")
    listed = Case.of_total(partial(rows_by_month, 2, 1), "noise-on-results", GAUSSIAN)
    yield "noise-on-results, rows by month", listed


def _everyday() -> Iterator[tuple[str, Case]]:
    """The default call, and one small case per kind of measurement."""
    for name, build in default_batches():
        yield name, Case(build)
    for name, build, options in kind_batches():
        yield name, Case(build, options=options)


CASES: Mapping[str, Case] = dict([*_panels(), *_others(), *_everyday()])
"""Name → case. Batches are built when it is their turn."""


def fixed_measurements(count: int) -> NDArray[np.float64]:
    """Measurements that are the same on every machine."""
    return (np.arange(count) * 7919 % 2003 - 1001).astype(np.float64)


def facts_of(plan: lrm.Plan) -> dict[str, Any]:
    """What follows from the integers of a plan, and must follow from them in every version."""
    reconstruction, measured = plan.reconstruction_map, plan.measured
    levels, queries = [level.measured for level in plan.levels], plan.workload.shape[0]
    rows = np.unique(np.linspace(0, queries - 1, SAMPLED_ROWS).astype(np.int64))
    answers = reconstruction.apply(fixed_measurements(plan.measurement_count))
    norms = reconstruction.row_squared_norms
    mixed = np.cos(np.arange(queries))  # every row counts in one number
    return {
        "sensitivity": ", ".join(str(level.sensitivity) for level in levels),
        "sensitivity_of_noise": ", ".join(level.norm.sensitivity(level).hex() for level in levels),
        "max_records": str(measured.max_records),
        "measurements": plan.measurement_count,
        "merged_cells": measured.merged_cell_count,
        "unit": plan.unit.words,
        "squared_norm": reconstruction.squared_norm,
        "rows": rows.tolist(),
        "row_squared_norms": norms[rows].tolist(),
        "all_row_squared_norms": float(norms @ mixed),
        "answers": answers[rows].tolist(),
        "all_answers": float(answers @ mixed),
    }


def _reference_seconds() -> float:
    """CPU seconds of a fixed computation, the least of three: products and small calls."""
    taken = []
    A = np.random.default_rng(0).standard_normal((400, 400))
    for _ in range(3):
        began = time.process_time()
        for _ in range(20):
            A @ A
        for _ in range(50_000):
            np.add(1.0, 1.0)
        np.linalg.eigh(A + A.T)
        taken.append(time.process_time() - began)
    return min(taken)


def _measure(case: Case) -> tuple[lrm.Plan, dict[str, Any]]:
    workload = case.build()
    began = time.process_time()
    plan = case.plan_of(workload)
    row = {"error": plan.weighted_strategy_error, "seconds": time.process_time() - began}
    if plan.statement_ratios is not None:
        ratios = plan.statement_ratios
        row |= {"error": float(np.mean(ratios**2)), "largest": float(ratios.max())}
    if case.mechanism in NO_SEARCH:
        return plan, {**row, "measured": plan.measured.digest}
    return plan, row


def _store(plan: lrm.Plan, path: Path) -> dict[str, Any] | None:
    """Write a plan with what follows from it, unless the file is large."""
    plan.save(str(path))
    if path.stat().st_size > LARGEST_FILE:
        path.unlink()
        return None
    return facts_of(plan)


def file_name(name: str) -> str:
    """The file of a case: letters, digits and hyphens.

    >>> file_name("WRange 64×128")
    'wrange-64x128.lrm'
    """
    plain = name.lower().replace("×", "x").replace("^", "-").replace("+", "and")
    return "-".join(plain.replace(",", " ").split()) + ".lrm"


def _compare(name: str, row: dict[str, Any], stored: dict[str, Any]) -> tuple[float, float, str]:
    """Error and time beside the stored ones, and what is wrong with them."""
    error = row["error"] / stored["error"]
    wrong = ""
    if error > WORST_ROW:
        wrong = "ERROR"
    if row.get("largest", 0.0) > WORST_ROW * stored.get("largest", math.inf):
        wrong = "LARGEST RATIO"
    if row.get("measured") != stored.get("measured"):
        wrong = "OTHER MEASUREMENTS"
    seconds = row["seconds"] / stored["seconds"]
    print(
        f"{name:40}{row['error']:14.7g}{error:10.5f}{row['seconds']:8.2f}{seconds:7.2f}  {wrong}",
        flush=True,
    )
    return error, seconds, wrong


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--record", action="store_true", help="store errors and CPU times anew")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="write plan files anew")
    chosen = parser.parse_args()
    if not any(chosen.only in name for name in CASES):
        parser.error(f"no case has {chosen.only!r} in its name")
    return chosen


def main() -> int:
    """Plan every case again; compare, or store."""
    chosen = _parse()
    names = [name for name in CASES if chosen.only in name]
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"cases": {}}
    expected: dict[str, Any] = {}
    with threadpool_limits(1):
        CASES["intro 3×4"].plan()  # modules are imported when first used
        reference = _reference_seconds()
        rows = {}
        errors, wrong = [], 0
        before = stored.get("reference_seconds", reference)
        print(f"{'case':40}{'error':>14}{'÷ stored':>10}{'CPU s':>8}{'÷':>7}")
        for name in names:
            plan, row = _measure(CASES[name])
            rows[name] = row
            if chosen.store and (facts := _store(plan, chosen.store / file_name(name))):
                expected[file_name(name)] = facts
            known = stored["cases"].get(name, row)
            error, _, says = _compare(name, row, known)
            errors.append(error)
            wrong += bool(says)
    if chosen.store:
        path = chosen.store / "expected.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        text = json.dumps({**known, **expected}, indent=0, ensure_ascii=False)
        path.write_text(text + "\n")
    if chosen.record:
        # Seconds of the machine that the other cases were measured on.
        scaled = {
            name: {**row, "seconds": row["seconds"] * before / reference}
            for name, row in rows.items()
        }
        kept = {"reference_seconds": before, "cases": {**stored["cases"], **scaled}}
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        return 0
    mean = math.exp(float(np.mean(np.log(errors))))
    spent = sum(row["seconds"] for row in rows.values()) / reference
    allowed = sum(stored["cases"].get(name, rows[name])["seconds"] for name in names) / before
    print(f"{'geometric mean':54}{mean:10.5f}")
    print(f"{'CPU time, beside that of a fixed computation':62}{spent / allowed:14.2f}")
    return int(bool(wrong) or mean > WORST_MEAN or spent > WORST_TIME * allowed)


if __name__ == "__main__":
    sys.exit(main())
