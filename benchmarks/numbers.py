"""Averages of a skewed column by group: knots, bins, and OpenDP's clamped sums, at one budget.

``python -m benchmarks numbers`` draws stays in days for 12 wards of different size (lognormal, a
few of months), releases the average of each ward many times by each method, and prints the root
mean squared error of an average, which noise and bias make up together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import lrm
from lrm.domain import Attribute, Bins, Categories, Domain, Numbers

LOW, HIGH = 0.0, 200.0
EDGES = [0, 3, 7, 14, 30, 90, 200]
BATCH = "SELECT ward, AVG(stay) AS mean FROM visits GROUP BY ward"

Floats = NDArray[np.float64]


def table(rows: int, wards: int, seed: int = 0) -> tuple[pa.Table, Floats]:
    """Rows, and the true average of each ward after clipping."""
    random = np.random.default_rng(seed)
    size = 1 / np.arange(1, wards + 1)
    ward = random.choice(wards, rows, p=size / size.sum())
    stay = random.lognormal(1.0 + 0.05 * ward, 1.0)
    clipped = np.clip(stay, LOW, HIGH)
    names = pa.array([str(one) for one in range(wards)]).take(pa.array(ward))
    means = np.array([clipped[ward == one].mean() for one in range(wards)])
    return pa.table({"ward": names, "stay": stay}), means


def released(
    attribute: Attribute, made: pa.Table, wards: int, epsilon: float
) -> Callable[[], Floats]:
    """One release of the averages by lrm."""
    ward = Categories("ward", [str(one) for one in range(wards)])
    batch = lrm.sql(BATCH, Domain([ward, attribute], "visits"))
    plan = lrm.plan(batch, effort="quick")

    def run() -> Floats:
        release = lrm.release(plan, made, epsilon=epsilon, ledger=None)
        return np.array(release.to_pandas()["answer"])

    return run


def clamped(made: pa.Table, wards: int, epsilon: float) -> Callable[[], Floats]:
    """OpenDP's clamped sums and counts, half of ε for each, by ward (one record is in one ward)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    ends = dp.t.then_clamp((LOW, HIGH))
    total = space >> ends >> dp.t.then_sum() >> dp.m.then_laplace(scale=2 * HIGH / epsilon)
    number = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2 / epsilon)
    frame = made.to_pandas()
    parts = [frame.stay[frame.ward == str(one)].tolist() for one in range(wards)]

    def run() -> Floats:
        return np.array([total(part) / max(number(part), 1) for part in parts])

    return run


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks numbers", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--wards", type=int, default=12)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=100)
    chosen = parser.parse_args()
    made, means = table(chosen.rows, chosen.wards)
    middles = Bins("stay", EDGES)
    methods = {
        "knots": released(Numbers("stay", EDGES), made, chosen.wards, chosen.epsilon),
        "two knots": released(Numbers("stay", [LOW, HIGH]), made, chosen.wards, chosen.epsilon),
        "bins": released(middles, made, chosen.wards, chosen.epsilon),
        "OpenDP clamped": clamped(made, chosen.wards, chosen.epsilon),
    }
    print(f"{chosen.rows:,} rows, {chosen.wards} wards, ε = {chosen.epsilon:g}, {chosen.runs} runs")
    print(f"{'method':16}{'rmse':>10}{'bias':>10}{'cpu s':>8}")
    for name, run in methods.items():
        start = time.process_time()
        error = np.array([run() for _ in range(chosen.runs)]) - means
        rmse, bias = np.sqrt((error**2).mean()), np.sqrt((error.mean(axis=0) ** 2).mean())
        print(f"{name:16}{rmse:10.4f}{bias:10.4f}{time.process_time() - start:8.1f}", flush=True)


if __name__ == "__main__":
    main()
