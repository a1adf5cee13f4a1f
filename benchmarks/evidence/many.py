"""Batches of many statements: errors beside an even split of the budget, and CPU seconds.

``python -m benchmarks many`` plans two kinds of random batches with the default call and prints the
median and the largest ratio of a statement's error to that under an even split, how many are above
it, measurements and CPU seconds. ``plain`` has ten attributes of ten values and an age; ``mixed``
has 8 to 10 attributes of 2 to 12 values, an age and a length of stay, and sums besides counts.
Both have tables of one and two attributes and counts under conditions.

``python -m benchmarks many mixed-60 plain-200`` plans these alone; any number may follow a kind.
``--noise gaussian`` and ``--objective worst`` are passed on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

import lrm

SIZES = (60, 120, 200)
LARGEST = 1000
SEEDS = {40: 1, 60: 2, 80: 3, 120: 4}
"""Seeds of ``mixed`` by the number of statements; 5 for any other."""

ABOVE = 1.001
"""Ratio to an even split that rounding to integers may leave."""


def plain(count: int) -> lrm.Workload:
    """Tables and counts over ten attributes of ten values and an age."""
    rng = np.random.default_rng(0)
    attributes = [lrm.Integers(f"x{i}", 0, 9) for i in range(10)]
    domain = lrm.Domain([*attributes, lrm.Integers("age", 0, 99)], table="t")
    statements = []
    for k in range(count):
        a, b = rng.choice(10, 2, replace=False)
        answer = f"COUNT(*) AS c{k} FROM t"
        if k % 4 == 0:
            statements.append(f"SELECT x{a}, {answer} GROUP BY x{a}")
        elif k % 4 == 1:
            statements.append(f"SELECT x{a}, x{b}, {answer} GROUP BY x{a}, x{b}")
        elif k % 4 == 2:
            where = f"age >= {rng.integers(10, 80)} AND x{b} = {rng.integers(0, 10)}"
            statements.append(f"SELECT x{a}, {answer} WHERE {where} GROUP BY x{a}")
        else:
            ages = f"age BETWEEN {rng.integers(0, 50)} AND {rng.integers(50, 100)}"
            statements.append(f"SELECT {answer} WHERE {ages} AND x{a} > {rng.integers(0, 9)}")
    return lrm.sql(";\n".join(statements), domain)


def mixed(count: int) -> lrm.Workload:
    """Tables, counts and sums over attributes of many sizes, an age and a length of stay."""
    seed = SEEDS.get(count, 5)
    rng = np.random.default_rng(seed)
    d = 8 + seed % 3
    sizes = rng.integers(2, 13, d)
    attributes = [lrm.Integers(f"x{i}", 0, int(size) - 1) for i, size in enumerate(sizes)]
    long = [lrm.Integers("age", 0, 99), lrm.Integers("stay", 0, 59)]
    domain = lrm.Domain([*attributes, *long], table="t")
    statements = []
    for k in range(count):
        a, b, c = rng.choice(d, 3, replace=False)
        value, age, stay = rng.integers(sizes[b]), rng.integers(5, 80), rng.integers(1, 50)
        kinds = (
            f"x{a}, COUNT(*) AS c{k} FROM t GROUP BY x{a}",
            f"x{a}, x{b}, COUNT(*) AS c{k} FROM t GROUP BY x{a}, x{b}",
            f"x{a}, COUNT(*) AS c{k} FROM t WHERE age >= {age} AND x{b} = {value} GROUP BY x{a}",
            f"COUNT(*) AS c{k} FROM t WHERE age BETWEEN {age} AND {age + 15} AND stay > {stay}",
            f"x{a}, COUNT(*) FILTER (WHERE stay > {stay}) AS c{k} FROM t GROUP BY x{a}",
            f"x{a}, SUM(stay) AS c{k} FROM t WHERE x{c} > 0 GROUP BY x{a}",
        )
        statements.append(f"SELECT {kinds[k % len(kinds)]}")
    return lrm.sql(";\n".join(statements), domain)


KINDS = {"plain": plain, "mixed": mixed}


def batch(name: str) -> lrm.Workload:
    """A batch by its kind and its number of statements, such as ``mixed-60``."""
    kind, _, count = name.partition("-")
    return KINDS[kind](int(count))


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, plan, print."""
    every = [f"{kind}-{size}" for size in SIZES for kind in KINDS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks many", description=__doc__)
    parser.add_argument("batches", nargs="*", default=[*every, f"mixed-{LARGEST}"])
    parser.add_argument("--noise", default="pure")
    parser.add_argument("--objective", default="balanced")
    chosen = parser.parse_args(arguments)
    columns = f"{'median':>8}{'largest':>9}{'above 1':>9}{'measurements':>14}{'CPU s':>8}"
    print(f"{'batch':12}{columns}")
    for name in chosen.batches:
        workload = batch(name)
        start = time.process_time()
        plan = lrm.plan(workload, noise=chosen.noise, objective=chosen.objective)
        seconds = time.process_time() - start
        ratios = np.array(plan.statement_ratios)
        print(
            f"{name:12}{np.median(ratios):8.3f}{ratios.max():9.3f}{(ratios > ABOVE).sum():9}"
            f"{plan.measured.measurement_count:14,}{seconds:8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
