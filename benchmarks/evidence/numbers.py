"""Sums and averages of a skewed column by group: knots, bins, and OpenDP's clamped sums.

``python -m benchmarks numbers`` draws stays in days for 12 wards of different size (lognormal, a
few of months), releases sum and average of each ward many times by each method, all with the same
budget, and prints their root mean squared errors, which noise and bias make up together.
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
BATCH = "SELECT ward, SUM(stay) AS total, AVG(stay) AS mean FROM visits GROUP BY ward"

Floats = NDArray[np.float64]


def table(rows: int, wards: int, seed: int = 0) -> tuple[pa.Table, Floats]:
    """Rows, and the true sum and average of each ward after clipping."""
    random = np.random.default_rng(seed)
    size = 1 / np.arange(1, wards + 1)
    ward = random.choice(wards, rows, p=size / size.sum())
    stay = random.lognormal(1.0 + 0.05 * ward, 1.0)
    clipped = np.clip(stay, LOW, HIGH)
    names = pa.array([str(one) for one in range(wards)]).take(pa.array(ward))
    own = [clipped[ward == one] for one in range(wards)]
    true = np.array([[part.sum() for part in own], [part.mean() for part in own]])
    return pa.table({"ward": names, "stay": stay}), true


def released(
    attribute: Attribute, made: pa.Table, wards: int, epsilon: float
) -> Callable[[], Floats]:
    """One release of the sums and averages by lrm."""
    ward = Categories("ward", [str(one) for one in range(wards)])
    batch = lrm.sql(BATCH, Domain([ward, attribute], "visits"))
    plan = lrm.plan(batch, effort="quick")

    def run() -> Floats:
        release = lrm.release(plan, made, epsilon=epsilon, ledger=None)
        frame = release.to_pandas()
        return np.array([frame.answer[frame["query"] == name] for name in ("total", "mean")])

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
        sums = np.array([total(part) for part in parts])
        return np.array([sums, sums / [max(number(part), 1) for part in parts]])

    return run


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks numbers", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--wards", type=int, default=12)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=100)
    chosen = parser.parse_args()
    made, true = table(chosen.rows, chosen.wards)
    middles = Bins("stay", EDGES)
    methods = {
        "knots": released(Numbers("stay", EDGES), made, chosen.wards, chosen.epsilon),
        "two knots": released(Numbers("stay", [LOW, HIGH]), made, chosen.wards, chosen.epsilon),
        "bins": released(middles, made, chosen.wards, chosen.epsilon),
        "OpenDP clamped": clamped(made, chosen.wards, chosen.epsilon),
    }
    print(f"{chosen.rows:,} rows, {chosen.wards} wards, ε = {chosen.epsilon:g}, {chosen.runs} runs")
    columns = "".join(f"{title:>14}" for title in ("sum rmse", "sum bias", "avg rmse", "avg bias"))
    print(f"{'method':16}{columns}{'cpu s':>8}")
    for name, run in methods.items():
        start = time.process_time()
        error = np.array([run() for _ in range(chosen.runs)]) - true
        rmse = np.sqrt((error**2).mean(axis=(0, 2)))
        bias = np.sqrt((error.mean(axis=0) ** 2).mean(axis=1))
        pairs = zip(rmse, bias, strict=True)
        cells = "".join(f"{value:14.4f}" for pair in pairs for value in pair)
        print(f"{name:16}{cells}{time.process_time() - start:8.1f}", flush=True)


if __name__ == "__main__":
    main()
