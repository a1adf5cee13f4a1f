"""Yearly reports from end to end: CPU seconds and peak memory of each command.

``python -m benchmarks report`` plans, explains, tries, releases and reports four batches of 24 to
28 statements (``benchmarks/batches/reports``) over generated tables, with both kinds of noise. Each
step is a process of its own, as a user would start it.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

import lrm

__all__ = ["ROWS", "main", "write_table"]

FOLDER = Path(__file__).parents[1] / "batches" / "reports"
ROWS = {"hospital": 148_000, "staff": 40_000, "shop": 250_000, "survey": 12_000}
"""Batches, and the rows of their generated tables."""

AMOUNT = {"pure": ["--epsilon", "1"], "laplace": ["--epsilon", "1"], "gaussian": ["--rho", "0.1"]}
PANDAS = "import sys, lrm; print(len(lrm.load_release(sys.argv[1]).to_pandas()))"


def write_table(domain: lrm.Domain, rows: int, path: Path, seed: int = 0) -> None:
    """Write a table of declared values, the first of each attribute the most frequent ones."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    if domain.unit.column is not None:
        columns[domain.unit.column] = pa.array(rng.integers(0, rows * 2 // 3, rows))
    for attribute in domain.attributes:
        place = rng.beta(1.2, 2.5, rows)
        columns[attribute.name] = _column(attribute, place)
    pyarrow.csv.write_csv(pa.table(columns), path)


def _column(attribute: object, place: NDArray[np.float64]) -> pa.Array:
    """Values of one attribute, from numbers between 0 and 1."""
    if isinstance(attribute, lrm.Integers):
        low, high = attribute.low, attribute.high
        return pa.array(low + (place * (high - low + 1)).astype(np.int64))
    if isinstance(attribute, lrm.Bins):
        edges = np.asarray(attribute.edges, dtype=np.float64)
        return pa.array(
            np.round(np.interp(place * (len(edges) - 1.01), range(len(edges)), edges), 2)
        )
    if isinstance(attribute, lrm.Dates):
        days = (np.datetime64(attribute.end) - np.datetime64(attribute.start)).astype(int) + 1
        return pa.array(np.datetime64(attribute.start) + (place * days).astype(np.int64))
    if isinstance(attribute, lrm.Categories):
        values = pa.array(attribute.values)
        return values.take(pa.array((place * len(values)).astype(np.int64)))
    raise TypeError(f"no values are drawn for {attribute!r}")


@dataclass(frozen=True)
class Cost:
    """What a step has taken."""

    step: str
    seconds: float
    megabytes: float


def steps(batch: str, noise: str, effort: str, table: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the arguments of each step, in a folder that they may write to."""
    run = [sys.executable, "-m", "lrm"]
    amount = AMOUNT[noise]
    domain = str(FOLDER / f"{batch}.yaml")
    plan = ["plan", str(FOLDER / f"{batch}.sql"), "--domain", domain, "--noise", noise]
    yield "plan", [*run, *plan, "--effort", effort, "-o", "plan.lrm", "--force"]
    yield "explain", [*run, "explain", "plan.lrm", *amount]
    release = [*run, "release", "plan.lrm", "--table", str(table), *amount, "--no-ledger"]
    yield "dry run", [*release, "--dry-run"]
    yield "release", [*release, "-o", "answers.lrm", "--csv", "answers.csv", "--force"]
    yield "report", [*run, "report", "answers.lrm", "-o", "answers.html", "--force"]
    yield "to_pandas", [sys.executable, "-c", PANDAS, "answers.lrm"]


def measure(command: Sequence[str], folder: Path, log: Path) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a process with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each step compiles all modules anew
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.execve(command[0], list(command), environment)  # noqa: S606
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}\n{log.read_text(encoding='utf-8')}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def costs(batch: str, noise: str, effort: str, table: Path, folder: Path) -> Iterator[Cost]:
    """Yield what each step of one report takes."""
    for step, command in steps(batch, noise, effort, table):
        seconds, megabytes = measure(command, folder, folder / "log.txt")
        yield Cost(step, seconds, megabytes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks report", description=__doc__)
    parser.add_argument("batches", nargs="*", default=list(ROWS), help="of " + ", ".join(ROWS))
    parser.add_argument("--noise", default="pure,gaussian", help="comma-separated")
    parser.add_argument("--effort", default="normal")
    chosen = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(f"{'batch':10} {'noise':9} {'step':10} {'CPU s':>7} {'MB':>6}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for batch in chosen.batches:
            table = folder / f"{batch}.csv"
            write_table(lrm.read_domain(FOLDER / f"{batch}.yaml"), ROWS[batch], table)
            for noise in chosen.noise.split(","):
                for cost in costs(batch, noise, chosen.effort, table, folder):
                    print(
                        f"{batch:10} {noise:9} {cost.step:10} {cost.seconds:7.2f} "
                        f"{cost.megabytes:6.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
