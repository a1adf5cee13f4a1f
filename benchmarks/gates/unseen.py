"""Batches that nobody tuned for, to see whether `best` is ever above a baseline on one of them.

Kinds, sizes, ranks and scalings are drawn at random from a seed, so that another seed is
another trial. Every batch is planned by `best` and by every baseline; the exit code is 1 if
`best` came out above one of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import lrm
from benchmarks.batches.tables import draw_table
from lrm.domain import Domain
from lrm.domain.ordered import Integers
from lrm.errors import ConvergenceError, LrmError
from lrm.queries.builders import marginals
from lrm.queries.workload import Workload, families

__all__ = ["KINDS", "draw", "main"]

Matrix = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Matrix]

BASELINES = ("noise-on-data", "noise-on-results", "wavelet", "hierarchical", "lowrank", "matrix")
ROUNDING = 1e-7


def _gaussian(rng: np.random.Generator, m: int, n: int) -> Matrix:
    return rng.standard_normal((m, n))


def _sparse_counts(rng: np.random.Generator, m: int, n: int) -> Matrix:
    return (rng.random((m, n)) < rng.uniform(0.02, 0.5)).astype(float)


def _low_rank(rng: np.random.Generator, m: int, n: int) -> Matrix:
    r = int(rng.integers(1, max(2, min(m, n) // 4), endpoint=True))
    return rng.standard_normal((m, r)) @ rng.standard_normal((r, n))


def _low_rank_counts(rng: np.random.Generator, m: int, n: int) -> Matrix:
    r = int(rng.integers(2, max(3, min(m, n) // 3), endpoint=True))
    return (rng.random((m, r)) < 0.3).astype(float) @ (rng.random((r, n)) < 0.4).astype(float)


def _short_ranges(rng: np.random.Generator, m: int, n: int) -> Matrix:
    first = rng.integers(n, size=m)
    last = np.minimum(n - 1, first + rng.geometric(min(1.0, 4 / n), size=m))
    return families.ranges(n, zip(first, last, strict=True)).queries.dense()


def _rectangles(rng: np.random.Generator, m: int, n: int) -> Matrix:
    side = max(2, int(np.sqrt(n)))
    first = np.sort(rng.integers(side, size=(m, 2, 2)), axis=2)
    cell = np.arange(side)
    inside = (first[:, :, :1] <= cell) & (cell <= first[:, :, 1:])
    return np.einsum("mi,mj->mij", inside[:, 0], inside[:, 1]).reshape(m, -1).astype(float)


def _cross_tabs(rng: np.random.Generator, m: int, n: int) -> Matrix:
    sizes = [int(rng.integers(2, max(3, round((m + n) ** (1 / 3)) + 1))) for _ in range(3)]
    domain = Domain([Integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)])
    ways = [marginals(domain, way) for way in range(int(rng.integers(1, 3)), -1, -1)]
    return families.stack(ways).queries.dense()


def _shuffled_prefix(rng: np.random.Generator, m: int, n: int) -> Matrix:
    return np.tri(n)[np.sort(rng.choice(n, min(m, n), replace=False))][:, rng.permutation(n)]


def _smoothing(rng: np.random.Generator, m: int, n: int) -> Matrix:
    centre, cell = np.linspace(0, n - 1, m)[:, np.newaxis], np.arange(n)
    return np.round(np.exp(-0.5 * ((cell - centre) / rng.uniform(0.5, n / 4)) ** 2), 12)


def _blocks(rng: np.random.Generator, m: int, n: int) -> Matrix:
    W = np.zeros((m, n))
    rows, cells = np.sort(rng.integers(m, size=3)), np.sort(rng.integers(n, size=3))
    for k in range(2):
        part = np.ix_(range(rows[k], rows[k + 1]), range(cells[k], cells[k + 1]))
        W[part] = rng.integers(-3, 4, size=W[part].shape)
    W[-1] = 1
    return W


def _contrasts(rng: np.random.Generator, m: int, n: int) -> Matrix:
    """Differences of two cells, and the total."""
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    W = np.ones((m + 1, n))
    W[:-1] = 0
    W[np.arange(m), pairs[:, 0]] = 1
    W[np.arange(m), pairs[:, 1]] = -1
    return W


def _signs(rng: np.random.Generator, m: int, n: int) -> Matrix:
    return rng.choice([-1.0, 1.0], size=(m, n))


def _heavy_tails(rng: np.random.Generator, m: int, n: int) -> Matrix:
    return np.trunc(rng.standard_cauchy((m, n)))


KINDS: dict[str, Draw] = {
    name.strip("_").replace("_", " "): draw
    for name, draw in list(globals().items())
    if name.startswith("_") and callable(draw) and not name.startswith("__")
}
KINDS["tables"] = lambda rng, m, n: draw_table(rng, m + n).queries.dense()
SCALES: dict[str, Callable[[np.random.Generator, int], Matrix]] = {
    "as drawn": lambda _, m: np.ones(m),
    "rows 1e-6 to 1e6": lambda rng, m: 10 ** rng.uniform(-6, 6, m),
    "all 1e-6": lambda _, m: np.full(m, 1e-6),
    "rows 0.1 to 10": lambda rng, m: 10 ** rng.uniform(-1, 1, m),
}


def draw(seed: int, number: int, largest: int) -> tuple[str, Workload]:
    """Batch ``number`` of a seed: its description and its workload."""
    rng = np.random.default_rng([seed, number])
    kind = list(KINDS)[number % len(KINDS)]
    if kind == "tables":
        table = draw_table(rng, largest)
        return f"{kind} {table.shape[0]}×{table.shape[1]}", table
    scale = str(rng.choice(list(SCALES)))
    m, n = (int(2 ** rng.uniform(1, np.log2(largest))) for _ in range(2))
    W = KINDS[kind](rng, max(m, 2), max(n, 3))
    W[0, 0] = W[0, 0] or 1.0  # never a batch of nothing
    W = W * SCALES[scale](rng, len(W))[:, np.newaxis]
    return f"{kind} {W.shape[0]}×{W.shape[1]}, {scale}", Workload(W)


def _error(workload: Workload, method: str, **options: object) -> float:
    try:
        return lrm.plan(
            workload, method, **{"noise": "laplace", "objective": "total", **options}
        ).weighted_strategy_error
    except ConvergenceError:
        return np.inf  # a baseline that says it cannot


def main() -> int:
    """Draw, plan, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks unseen", description=__doc__)
    parser.add_argument("--count", type=int, default=2 * len(KINDS), help="batches to try")
    parser.add_argument("--start", type=int, default=0, help="number of the first batch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=96, help="most queries and most cells")
    chosen = parser.parse_args()
    above = 0
    for number in range(chosen.start, chosen.start + chosen.count):
        name, workload = draw(chosen.seed, number, chosen.largest)
        try:
            with threadpool_limits(1):
                best, quick = (_error(workload, "best", effort=e) for e in ("normal", "quick"))
                errors = {baseline: _error(workload, baseline) for baseline in BASELINES}
        except LrmError as failure:
            print(f"{number:4} {name:52} FAILED: {failure}", flush=True)
            above += 1
            continue
        baseline = min(errors, key=errors.__getitem__)
        ratio = best / errors[baseline]
        verdict = "ABOVE" if ratio > 1 + ROUNDING else ""
        above += bool(verdict)
        print(
            f"{number:4} {name:52} best ÷ {baseline:16} {ratio:8.4f}"
            f"  quick ÷ best {quick / best:7.4f} {verdict}",
            flush=True,
        )
    print(f"{above} of {chosen.count} batches where `best` is above a baseline or fails")
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
