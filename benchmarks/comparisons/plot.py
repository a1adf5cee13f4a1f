"""The plot of a strategy benchmark: error and time of each method beside `best`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.comparisons.strategies import METHODS, Row

__all__ = ["draw"]

MARKS = dict(zip(METHODS, "o.*sDv^<P X", strict=False))


def draw(rows: list[Row], path: Path) -> None:
    """Two panels over the workloads, log axes: error ratio and time ratio to `best`."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row.workload for row in rows))
    best = {row.workload: row for row in rows if row.method == "best"}
    figure, axes = plt.subplots(1, 2, figsize=(11, 0.28 * len(names) + 1.6), sharey=True)
    methods = [m for m in METHODS if m != "best" and any(row.method == m for row in rows)]
    for number, method in enumerate(methods):
        for axis, key in zip(axes, ("error", "seconds"), strict=True):
            points = [
                (getattr(row, key) / getattr(best[row.workload], key), names.index(row.workload))
                for row in rows
                if row.method == method and np.isfinite(row.error)
            ]
            if points:
                x, y = zip(*points, strict=True)
                axis.plot(x, y, MARKS[method], color=f"C{number}", label=method, ms=5)
    for axis, title in zip(axes, ("error ÷ best", "time ÷ best"), strict=True):
        axis.set_xscale("log")
        axis.axvline(1.0, color="0.4", lw=0.8)
        axis.set_title(title, fontsize=10)
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(names)), names, fontsize=8)
    axes[0].invert_yaxis()
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="lower center", ncols=5, fontsize=8, frameon=False
    )
    figure.tight_layout(rect=(0, 0.6 / figure.get_figheight(), 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
