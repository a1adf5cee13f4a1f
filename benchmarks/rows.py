"""Consistent answers and synthetic rows: errors against the true tables.

``python -m benchmarks rows TABLE.csv`` reads a table of whole numbers from 0 on, asks for the table
of every column and of every pair of columns, and prints root mean squared errors of released
answers, of consistent answers and of synthetic rows, for several amounts and releases. Without
TABLE.csv it generates a table of ten columns of 2 to 16 values.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

import lrm

Floats = NDArray[np.float64]
SIZES = (14, 9, 16, 7, 6, 5, 2, 10, 15, 2)
ROWS = 48_842


def generated(seed: int = 0) -> pa.Table:
    """Columns that depend on three hidden numbers, skewed as those of a census are."""
    random = np.random.default_rng(seed)
    hidden = random.random((ROWS, 3))
    columns = {}
    for k, size in enumerate(SIZES):
        place = 0.6 * hidden[:, k % 3] + 0.4 * random.random(ROWS) ** 2
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


def measured(table: pa.Table, amounts: list[str], releases: int) -> Iterator[str]:
    """One line per amount: errors, and CPU seconds."""
    sizes = {name: int(table[name].to_numpy().max()) + 1 for name in table.column_names}
    domain = lrm.Domain([lrm.Integers(n, 0, size - 1) for n, size in sizes.items()], table="t")
    groups = [(name,) for name in sizes] + list(itertools.combinations(sizes, 2))
    counted = [
        f"SELECT {columns}, COUNT(*) AS n FROM t GROUP BY {columns}"  # noqa: S608 - our own names
        for columns in map(", ".join, groups)
    ]
    plan = lrm.plan(lrm.sql(";\n".join(counted), domain), objective="total")
    truth = truth_of(table, sizes, groups)
    yield "| epsilon | negative | released | consistent | rows | CPU s, consistent | CPU s, rows |"
    yield "|--:|--:|--:|--:|--:|--:|--:|"
    for amount in amounts:
        squares, seconds, negative = np.zeros(3), np.zeros(2), 0.0
        for number in range(releases):
            release = lrm.release(plan, table, epsilon=amount, ledger=None)
            began = time.process_time()
            fixed = release.consistent().answers
            between = time.process_time()
            rows = release.synthesize(seed=number)
            seconds += [between - began, time.process_time() - between]
            negative += float(np.mean(release.answers < 0)) / releases
            answers = (release.answers, fixed, rows.counts)
            squares += [float(np.mean((a - truth) ** 2)) for a in answers]
        errors, ratios = np.sqrt(squares / releases), squares / squares[0]
        cpu = seconds / releases
        yield (
            f"| {amount} | {negative:.0%} | {errors[0]:.4g} | {errors[1]:.4g} ({ratios[1]:.2f}) "
            f"| {errors[2]:.4g} ({ratios[2]:.2f}) | {cpu[0]:.1f} | {cpu[1]:.1f} |"
        )


def main() -> None:
    """Read or generate the table, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rows", description=__doc__)
    parser.add_argument("table", nargs="?", help="CSV file of whole numbers from 0 on")
    parser.add_argument("--amounts", default="0.1,1,3", help="amounts epsilon, by commas")
    parser.add_argument("--releases", type=int, default=10, help="releases per amount")
    chosen = parser.parse_args()
    table = generated() if chosen.table is None else pyarrow.csv.read_csv(chosen.table)
    for line in measured(table, chosen.amounts.split(","), chosen.releases):
        print(line, flush=True)


if __name__ == "__main__":
    main()
