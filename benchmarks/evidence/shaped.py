"""Shaped noise beside the best Laplace strategy: ``python -m benchmarks shaped [--only TEXT]``.

Errors are half of the expected total squared error at ε = 1, without lattices. ``reference`` is
the least error that is known from other implementations: of the hull of the columns, or of that
with free points. Of exact draws and of simulated ones it prints the squared error as a share of
that stated, and how many answers are within their 95 % intervals.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import lrm
from lrm.planning.plan.core import Plan
from lrm.planning.solvers.settings import Effort
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.sampling import sample_hull
from lrm.privacy.bodies.split import SplitHull
from lrm.queries.workload import Workload, families

__all__ = ["BATCHES", "merged"]

Floats = NDArray[np.float64]


def merged(matrix: Floats) -> Floats:
    """The matrix without empty and repeated columns, which are one cell."""
    matrix = matrix[:, np.abs(matrix).sum(axis=0) > 0]
    _, first = np.unique(matrix.T, axis=0, return_index=True)
    return np.asarray(matrix[:, np.sort(first)])


def yes_no(k: int, most: int | None = None, patterns: int | None = None, seed: int = 1) -> Floats:
    """K overlapping counts: of all patterns, of those with few yes, or of some random ones."""
    columns = np.array(list(itertools.product([0.0, 1.0], repeat=k))).T
    if most is not None:
        columns = columns[:, columns.sum(axis=0) <= most]
    if patterns is not None:
        chosen = np.random.default_rng(seed).choice(columns.shape[1] - 1, patterns, replace=False)
        columns = columns[:, 1 + chosen]
    return merged(columns)


def tables(sizes: list[int], orders: list[int]) -> Floats:
    """All tables of so many attributes."""
    rows = []
    for kept in itertools.product([False, True], repeat=len(sizes)):
        if sum(kept) in orders:
            matrix = np.ones((1, 1))
            for own, n in zip(kept, sizes, strict=True):
                matrix = np.kron(matrix, np.eye(n) if own else np.ones((1, n)))
            rows.append(matrix)
    return np.vstack(rows)


def ways(orders: list[int], attributes: int) -> list[tuple[int, ...]]:
    """All sets of so many attributes."""
    return [kept for n in orders for kept in itertools.combinations(range(attributes), n)]


def table_products(sizes: list[int], kept: list[tuple[int, ...]]) -> Workload:
    """Tables of some sets of attributes, without a list of cells."""
    terms = [["identity" if i in own else "total" for i in range(len(sizes))] for own in kept]
    return families.products(sizes, terms)


def one_way(*sizes: int) -> Workload:
    """All one-way tables, without a list of cells."""
    return table_products(list(sizes), ways([1], len(sizes)))


def people(count: int) -> Floats:
    """Overlapping groups of people by age, region and sex, as in SELECT COUNT(*) … WHERE."""
    age, region, sex = np.meshgrid(np.arange(100), np.arange(4), np.arange(2), indexing="ij")
    six = [
        age < 30,
        (age >= 20) & (age < 45),
        age >= 40,
        (region == 0) | (region == 2),
        sex == 1,
        (sex == 1) & (age < 45) & (region == 0),
    ]
    ten = [
        age < 18,
        age >= 65,
        (age >= 18) & (age < 65),
        (age >= 15) & (age < 50) & (sex == 1),
        region == 0,
        (region == 0) | (region == 1),
        (age < 25) & (sex == 0),
        (age >= 50) & (region != 3),
        sex == 1,
        (age >= 25) & (age < 40) & (region == 2),
    ]
    return merged(np.array([one.ravel() for one in (six if count == 6 else ten)], dtype=float))


def low_rank(m: int, k: int, n: int, seed: int) -> Floats:
    """A product of two random matrices."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k)) @ rng.standard_normal((k, n))


def ranges(n: int) -> Floats:
    """All ranges of n cells."""
    pairs = itertools.combinations_with_replacement(range(n), 2)
    return np.array([[float(i <= c <= j) for c in range(n)] for i, j in pairs])


def ratios(groups: int) -> Floats:
    """All records and positive ones, in each group and in all."""
    parts = np.vstack([np.kron(np.eye(groups), [[1, 1]]), np.kron(np.eye(groups), [[0, 1]])])
    whole = [np.ones((1, 2 * groups)), np.tile([0.0, 1.0], (1, groups))]
    return np.vstack([parts, *whole])


def patients() -> Floats:
    """22 counts over 8 states, 5 ages and a test: GROUP BY, and two with a condition."""
    states, ages, positive = np.eye(8), np.eye(5), np.array([[0.0, 1.0]])
    east = np.zeros((1, 8))
    east[0, [0, 1, 7]] = 1
    every = np.ones((1, 8)), np.ones((1, 5))
    parts = [
        (states, every[1], np.eye(2)),
        (every[0], ages, positive),
        (east, every[1], positive),
    ]
    return np.vstack([np.kron(np.kron(a, b), c) for a, b, c in parts])


INTRO = np.array([[0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]], dtype=float)

BATCHES: dict[str, tuple[Callable[[], Floats | Workload], float]] = {
    "yes/no 3": (lambda: yes_no(3), 7.496),
    "yes/no 4": (lambda: yes_no(4), 13.94),
    "yes/no 5": (lambda: yes_no(5), 23.08),
    "yes/no 6": (lambda: yes_no(6), 35.31),
    "yes/no 8": (lambda: yes_no(8), 73.33),
    "yes/no 10": (lambda: yes_no(10), 130.0),
    "yes/no 12": (lambda: yes_no(12), 210.0),
    "yes/no 8, at most 2": (lambda: yes_no(8, most=2), 26.19),
    "yes/no 12, at most 2": (lambda: yes_no(12, most=2), 45.2),
    "yes/no 10, 60 patterns": (lambda: yes_no(10, patterns=60), 96.7),
    "yes/no 6, 20 patterns": (lambda: yes_no(6, patterns=20), 27.26),
    "people 6": (lambda: people(6), 25.28),
    "people 10": (lambda: people(10), 43.0),
    "patients 22": (patients, 49.7),
    "one-way 2^8": (lambda: one_way(*[2] * 8), 146.7),
    "one-way 2^12": (lambda: one_way(*[2] * 12), 420.0),
    "one-way 2^20": (lambda: one_way(*[2] * 20), 1686.7),
    "one-way 2^24": (lambda: one_way(*[2] * 24), 2808.0),
    "one-way 5^12": (lambda: one_way(*[5] * 12), 3174.9),
    "one-way 5^20": (lambda: one_way(*[5] * 20), 13931.5),
    "one-way 3^4": (lambda: one_way(3, 3, 3, 3), 60.67),
    "one-way 5x4x3x2": (lambda: one_way(5, 4, 3, 2), 77.68),
    "one-way 10x10": (lambda: one_way(10, 10), 62.07),
    "one-way 10^4": (lambda: one_way(*[10] * 4), 429.8),
    "one-way 10^6": (lambda: one_way(*[10] * 6), 1377.9),
    "one-way 10x8x5x2x2": (lambda: one_way(10, 8, 5, 2, 2), 286.05),
    "one-way 36x16x8": (lambda: one_way(36, 16, 8), 446.68),
    "one-way 20x10x5x2": (lambda: one_way(20, 10, 5, 2), 349.81),
    "one-way 20x2x2x2x2": (lambda: one_way(20, 2, 2, 2, 2), 190.21),
    "up to 2-way 2^3": (lambda: tables([2] * 3, [0, 1, 2]), 49.7),
    "up to 2-way 2^4": (lambda: tables([2] * 4, [0, 1, 2]), 139.0),
    "up to 2-way 2^5": (lambda: tables([2] * 5, [0, 1, 2]), 327.0),
    "up to 2-way 2^6": (lambda: table_products([2] * 6, ways([0, 1, 2], 6)), 714.0),
    "up to 2-way 3x2x2x2": (lambda: tables([3, 2, 2, 2], [0, 1, 2]), 197.0),
    "2-way 3x3x3": (lambda: tables([3] * 3, [2]), 64.7),
    "up to 2-way 3x2x2x2x2": (lambda: tables([3, 2, 2, 2, 2], [0, 1, 2]), math.nan),
    "up to 2-way 4x3x2x2": (lambda: tables([4, 3, 2, 2], [0, 1, 2]), math.nan),
    "up to 2-way 6x5x4x2": (lambda: table_products([6, 5, 4, 2], ways([0, 1, 2], 4)), 1240.0),
    "50 yes/no, 10 2-way": (
        lambda: table_products([2] * 50, [*ways([1], 50), *((i, i + 20) for i in range(10))]),
        math.nan,
    ),
    "12 one-way, 8x10": (
        lambda: table_products([8, 10, 5, 4, 3, 2, 2, 5, 4, 3, 2, 6], [*ways([1], 12), (0, 1)]),
        math.nan,
    ),
    "rank 4 x 200": (lambda: low_rank(30, 4, 200, 11), 1972.4),
    "rank 6 x 900": (lambda: low_rank(100, 6, 900, 12), 18790.9),
    "rank 8 x 512": (lambda: low_rank(64, 8, 512, 13), 21598.8),
    "rank 12 x 800": (lambda: low_rank(100, 12, 800, 14), 58590.0),
    "rank 16 x 1024": (lambda: low_rank(128, 16, 1024, 15), 133400.0),
    "WRelated 64x512, s 8": (lambda: families.wrelated(64, 512, s=8, seed=3100), 20300.0),
    "WRelated 128x1024, s 16": (lambda: families.wrelated(128, 1024, s=16, seed=3101), 143000.0),
    "intro": (lambda: INTRO, 18.51),
    "histogram and total 8": (lambda: np.vstack([np.eye(8), np.ones((1, 8))]), 15.82),
    "prefix 8": (lambda: np.tri(8), 27.67),
    "prefix 16": (lambda: np.tri(16), 102.0),
    "ranges 8": (lambda: ranges(8), 108.8),
    "ratios 5": (lambda: ratios(5), 30.0),
}
"""Batches with the least error known elsewhere."""


def random_groups(rng: np.random.Generator, count: int) -> Floats:
    """Overlapping groups by intervals of age, one or two of four regions, and sex."""
    age, region, sex = np.meshgrid(np.arange(100), np.arange(4), np.arange(2), indexing="ij")
    groups = []
    for _ in range(count):
        low, high = np.sort(rng.integers(0, 101, 2))
        chosen = (age >= low) & (age <= high)
        if rng.random() < 0.4:
            chosen &= np.isin(region, rng.choice(4, rng.integers(1, 3), replace=False))
        if rng.random() < 0.3:
            chosen &= sex == rng.integers(2)
        groups.append(chosen.ravel())
    return merged(np.array(groups, dtype=float))


def unseen(seed: int) -> dict[str, tuple[Callable[[], Floats | Workload], float]]:
    """Twenty random batches that no figure is known of."""
    rng = np.random.default_rng(seed)
    batches: dict[str, Floats | Workload] = {}
    for k in rng.choice(np.arange(5, 13), 4, replace=False).tolist():
        patterns = int(rng.integers(2 * k, min(8 * k, 2**k - 1)))
        batches[f"yes/no {k}, {patterns} patterns"] = yes_no(k, patterns=patterns, seed=seed)
    for _ in range(4):
        sizes = np.sort(rng.integers(2, 13, rng.integers(3, 9)))[::-1].tolist()
        batches["one-way " + "x".join(map(str, sizes))] = one_way(*sizes)
    for count in rng.integers(5, 15, 4).tolist():
        batches[f"{count} groups of people"] = random_groups(rng, count)
    for k in rng.choice(np.arange(4, 15), 4, replace=False).tolist():
        m, n = int(rng.integers(2 * k, 8 * k)), int(rng.integers(4 * k, 40 * k))
        batches[f"rank {k}, {m} x {n}"] = low_rank(m, k, n, seed + k)
    importance = np.exp(rng.normal(size=8))[:, None]
    batches["yes/no 8 with importances"] = yes_no(8, patterns=40, seed=seed) * importance
    batches["groups with importances"] = random_groups(rng, 8) * importance
    for _ in range(2):
        sizes = rng.integers(2, 7, 5).tolist()
        pairs = [own for own in ways([2], 5) if rng.random() < 0.5] or [(0, 1)]
        name = "x".join(map(str, sizes)) + f", {len(pairs)} 2-way"
        batches[name] = table_products(sizes, [*ways([1], 5), *pairs])
    return {name: ((lambda batch=batch: batch), math.nan) for name, batch in batches.items()}


SIMULATED, MOST_DRAWS, COVERAGE = 20_000, 4000, 0.95
"""Simulated draws, real ones at most, and the confidence of intervals."""


def planned(batch: Floats | Workload, effort: Effort) -> tuple[Plan, float, float]:
    """The Laplace plan's error, the plan with the best pure noise, and its CPU seconds."""
    laplace = lrm.plan(batch, noise="laplace", objective="total", effort=effort)
    began = time.process_time()
    pure = lrm.plan(batch, objective="total", effort=effort)
    seconds = time.process_time() - began
    return pure, laplace.strategy_error, seconds


def simulated(body: Body) -> Floats:
    """Draws in float64; those of a split hull by another sample than its errors are stated by."""
    rng = np.random.default_rng(7)
    if not isinstance(body, SplitHull):
        return body.simulate(SIMULATED, rng)[0]
    sample = sample_hull(body.points, body.leaves, rng)
    indices = rng.choice(len(sample.weights), SIMULATED, p=sample.weights)
    return sample.directions[indices] * rng.standard_gamma(body.size, SIMULATED)[:, None]


def drawn(body: Body, seconds: float) -> tuple[Floats, float]:
    """Exact draws for some seconds, and CPU seconds for one of them."""
    began, draws = time.process_time(), []
    while len(draws) < MOST_DRAWS and (not draws or time.process_time() - began < seconds):
        draws.append(body.draw(Fraction(1)))
    each = (time.process_time() - began) / len(draws)
    return np.array([[float(x) for x in draw] for draw in draws]), each


def measured(plan: Plan, noise: Floats) -> tuple[float, float]:
    """The total squared error of some draws beside that stated, and the coverage of intervals."""
    answers = plan.reconstruction_map.apply(noise.T * 2.0**-plan.measured.bits).T
    stated = plan.accuracy(plan.privacy(1)).nominal  # bodies draw noise on all integers
    ratio = float((answers**2).sum(axis=1).mean()) / stated.squared_error
    return ratio, float((np.abs(answers) <= stated.half_widths(COVERAGE)).mean())


def main() -> None:
    """Plan every batch at both efforts, draw its noise, and print a row for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shaped", description=__doc__)
    parser.add_argument("--only", default="", help="batches whose name contains this text")
    parser.add_argument("--effort", choices=["quick", "normal", "thorough"], action="append")
    parser.add_argument("--unseen", type=int, metavar="SEED", help="random batches instead")
    parser.add_argument("--draws", type=float, default=3.0, help="CPU seconds of draws per batch")
    chosen = parser.parse_args()
    print(
        f"{'batch':24}{'effort':>9}{'laplace':>11}{'pure':>11}{'reference':>11}"
        f"{'ratio':>7}{'CPU s':>7}{'draw s':>9}{'drawn':>7}{'simul.':>7}"
        f"{'covered':>9}{'simul.':>8}  noise"
    )
    batches = BATCHES if chosen.unseen is None else unseen(chosen.unseen)
    for name, (build, reference) in batches.items():
        if chosen.only not in name:
            continue
        for effort in chosen.effort or ["quick", "normal"]:
            plan, laplace, seconds = planned(build(), effort)
            error, body = plan.strategy_error, plan.measured.body
            row = f"{name:24}{effort:>9}{laplace:11.2f}{error:11.2f}{reference:11.2f}"
            row += f"{error / reference:7.3f}{seconds:7.1f}"
            if body is not None:
                draws, each = drawn(body, chosen.draws)
                (ratio, covered), (wanted, usual) = (
                    measured(plan, noise) for noise in (draws, simulated(body))
                )
                row += f"{each:9.4f}{ratio:7.3f}{wanted:7.3f}{covered:9.2%}{usual:8.2%}"
            print(f"{row}  {body.words if body else 'laplace'}", flush=True)


if __name__ == "__main__":
    main()
