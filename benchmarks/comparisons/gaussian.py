"""Gaussian noise: certificate, error, time and memory of plans, each in a fresh process.

Three tables: the panel with larger sizes, badly conditioned workloads and, with
--jax-privacy, prefix sums beside the dense optimiser of jax-privacy 2.0. That package is needed
for nothing else, so give it an environment of its own:

  python -m venv jax && jax/bin/pip install 'jax-privacy==2.0.*'
  python -m benchmarks gaussian --jax-privacy --jax-python jax/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lrm
from benchmarks.batches.panel import PANEL, SMALL
from lrm.planning.solvers.gaussian import optimise_gaussian
from lrm.queries.workload import Workload, families

__all__ = ["CASES", "HOSTILE", "main"]

Matrix = NDArray[np.float64]

CERTIFICATE = 1.001
"""What every plan is asked to reach."""

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}

BASELINE_CELLS = 512

LARGER: Mapping[str, Callable[[], Workload]] = {
    "WRange 1024×8192": lambda: families.wrange(1024, 8192, seed=1),
    "WDiscrete 1024×8192": lambda: families.wdiscrete(1024, 8192, seed=1),
    "WRelated 1024×8192": lambda: families.wrelated(1024, 8192, seed=1),
    "WRelated 1024×8192 rank 1024": lambda: families.wrelated(1024, 8192, s=1024, seed=1),
    "all ranges 1024": lambda: families.all_ranges(1024),
    "prefix 4096": lambda: families.prefix(4096),
    "all ranges 4096": lambda: families.all_ranges(4096),
}


def _twelve_orders(m: int, n: int) -> Matrix:
    """A matrix with singular values from 1 to 1e-12."""
    rng = np.random.default_rng(0)
    left = np.linalg.qr(rng.standard_normal((m, m)))[0]
    right = np.linalg.qr(rng.standard_normal((n, m)))[0]
    return np.asarray((left * 10.0 ** np.linspace(0, -12, m)) @ right.T)


def _with_copies(matrix: Matrix) -> Matrix:
    """The same with some cells twice, some negated, and some that no query looks at."""
    some = matrix[:, : matrix.shape[1] // 4]
    return np.hstack([matrix, some, -some, 0 * some])


def _rank_deficient() -> Matrix:
    rng = np.random.default_rng(0)
    counts = (rng.random((64, 128)) < 0.5).astype(float)
    return _with_copies(np.repeat(counts, 3, axis=1))[rng.integers(0, 64, 100)]


def _scaled(axis: int) -> Matrix:
    matrix = np.random.default_rng(0).standard_normal((64, 256))
    scale = 10.0 ** np.linspace(0, -12, matrix.shape[axis])
    return matrix * (scale[:, np.newaxis] if axis == 0 else scale)


HOSTILE: Mapping[str, Callable[[], Workload]] = {
    "σ over 12 orders 64×256": lambda: Workload(_twelve_orders(64, 256)),
    "the same, copies and zeros": lambda: Workload(_with_copies(_twelve_orders(64, 256))),
    "σ over 12 orders 256×256": lambda: Workload(_twelve_orders(256, 256)),
    "equal rows, copies, zeros": lambda: Workload(_rank_deficient()),
    "rows over 12 orders": lambda: Workload(_scaled(0)),
    "cells over 12 orders": lambda: Workload(_scaled(1)),
}

CASES: Mapping[str, Callable[[], Workload]] = {**PANEL, **LARGER, **HOSTILE}


def measure(name: str) -> dict[str, float]:
    """Plan one workload in this process; only planning is timed."""
    workload = CASES[name]()
    lrm.plan(np.eye(2), noise="gaussian")  # modules are imported when first used
    wall, cpu = time.perf_counter(), time.process_time()
    plan = lrm.plan(workload, noise="gaussian", objective="total")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "certificate": plan.at_most_above_best,
        "error": plan.strategy_error,
        "seconds": wall,
        "cpu": cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _fresh(command: list[str]) -> Any:
    """Run a command on one thread, and read the JSON of its last line."""
    done = subprocess.run(
        command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def _table(title: str, names: list[str]) -> bool:
    """Print a row for each workload; return whether all reached the certificate."""
    if not names:
        return True
    print(f"{title:30}{'certificate':>12}{'error':>14}{'seconds':>9}{'CPU s':>8}{'MB':>7}")
    worst = 0.0
    for name in names:
        row = _fresh([sys.executable, "-m", "benchmarks.comparisons.gaussian", "--one", name])
        worst = max(worst, row["certificate"] if np.isfinite(row["certificate"]) else np.inf)
        print(
            f"{name:30}{row['certificate']:12.6f}{row['error']:14.6g}"
            f"{row['seconds']:9.2f}{row['cpu']:8.2f}{row['megabytes']:7.0f}",
            flush=True,
        )
    print(f"{'largest':30}{worst:12.6f}\n")
    return worst <= CERTIFICATE


def _baseline_rows() -> None:
    """Time this project's plans of the baseline's workload, as JSON on the last line."""
    rows: dict[str, list[float]] = {}
    runs: dict[str, Callable[[], float]] = {
        "lrm.plan": lambda: lrm.plan(prefix, noise="gaussian").strategy_error,
        "lrm.plan, thorough": lambda: (
            lrm.plan(prefix, noise="gaussian", effort="thorough").strategy_error
        ),
        "dense solver alone": lambda: optimise_gaussian(np.tri(BASELINE_CELLS)).upper,
    }
    prefix = families.prefix(BASELINE_CELLS)
    lrm.plan(np.eye(2), noise="gaussian")  # modules are imported when first used
    for name, find in runs.items():
        wall, cpu = time.perf_counter(), time.process_time()
        error = find()
        rows[name] = [error, time.perf_counter() - wall, time.process_time() - cpu]
    print(json.dumps(rows))


def _beside_jax_privacy(python: str) -> bool:
    """Print both on prefix sums; return whether ours is faster at no larger error."""
    ours = _fresh([sys.executable, "-m", "benchmarks.comparisons.gaussian", "--one", "baseline"])
    script = str(Path(__file__).with_name("jax_privacy_dense.py"))
    theirs = _fresh([python, script, str(BASELINE_CELLS)])
    rows = {**ours, "jax-privacy dense.optimize": [theirs[k] for k in ("error", "seconds", "cpu")]}
    print(f"{f'prefix {BASELINE_CELLS}':30}{'error':>14}{'seconds':>9}{'CPU s':>8}")
    for name, (error, wall, cpu) in rows.items():
        print(f"{name:30}{error:14.2f}{wall:9.2f}{cpu:8.2f}")
    error, wall, cpu = rows["lrm.plan"]
    return bool(error <= theirs["error"] and wall < theirs["seconds"] and cpu < theirs["cpu"])


def main() -> None:
    """Parse, measure, print; the exit code is 1 if a promise does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks gaussian",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a few workloads that take seconds")
    parser.add_argument("--cases", default="", help="workloads whose name contains this text")
    parser.add_argument("--jax-privacy", action="store_true", help="jax-privacy beside it")
    parser.add_argument(
        "--jax-python",
        default=sys.executable,
        metavar="PATH",
        help="interpreter with jax-privacy (this one by default)",
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        if chosen.one == "baseline":
            _baseline_rows()
        else:
            print(json.dumps(measure(chosen.one)))
        return
    panel = list(SMALL) if chosen.quick else [*PANEL, *LARGER]
    good = _table("panel and larger", [name for name in panel if chosen.cases in name])
    good &= _table("badly conditioned", [name for name in HOSTILE if chosen.cases in name])
    if chosen.jax_privacy:
        good &= _beside_jax_privacy(chosen.jax_python)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
