"""Laplace or Gaussian noise: expected error of the best plan of each, at equal (ε, δ).

Laplace noise promises more (δ = 0), so it should be taken wherever its error is the
smaller one. Writes a table and the plot of the documentation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import lrm
from lrm.domain import Domain, Integers
from lrm.queries.builders import marginals
from lrm.queries.workload import Workload, families

__all__ = ["run"]

DELTA = "1e-6"
EPSILONS = ("0.1", "0.3", "1", "3")


def _batches() -> dict[str, Workload]:
    five = Domain([Integers(name, 0, 3) for name in "abcde"])
    return {
        "identity 256": families.identity(256),
        "WRange 64×128": families.wrange(64, 128, seed=0),
        "prefix 64": families.prefix(64),
        "prefix 256": families.prefix(256),
        "all ranges 256": families.all_ranges(256),
        "prefix 65,536": families.prefix(65_536),
        "2-way marginals of 4⁵": marginals(five, 2),
    }


def run(plot: Path) -> None:
    """Print Gaussian ÷ Laplace error for each batch and ε, and draw it."""
    rows: dict[str, list[float]] = {}
    print(
        f"{'Gaussian ÷ Laplace, δ = ' + DELTA:30}" + "".join(f"{'ε = ' + e:>10}" for e in EPSILONS)
    )
    for name, batch in _batches().items():
        laplace = lrm.plan(batch, noise="laplace", objective="total", effort="quick")
        gaussian = lrm.plan(batch, noise="gaussian", objective="total", effort="quick")
        rows[name] = [
            gaussian.expected_squared_error(e, delta=DELTA) / laplace.expected_squared_error(e)
            for e in EPSILONS
        ]
        print(f"{name:30}" + "".join(f"{ratio:10.3f}" for ratio in rows[name]), flush=True)
    _draw(rows, plot)
    print(f"drawn in {plot}")


def _draw(rows: dict[str, list[float]], plot: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.2))
    for (name, ratios), mark in zip(rows.items(), "osD^v<P", strict=True):
        axis.plot([float(e) for e in EPSILONS], ratios, marker=mark, ms=5, lw=1.2, label=name)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.axhline(1.0, color="0.35", lw=1)
    axis.set_xticks([float(e) for e in EPSILONS], EPSILONS)
    axis.minorticks_off()
    axis.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axis.set_xlabel("ε")
    axis.set_ylabel("error, Gaussian ÷ Laplace")
    axis.set_title(
        f"Above the line Laplace has less error, below it Gaussian (δ = {DELTA})", fontsize=10
    )
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    plot.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(plot)
    plt.close(figure)


if __name__ == "__main__":
    argparse.ArgumentParser("python -m benchmarks noises", description=__doc__).parse_args()
    run(Path("docs/img/laplace-or-gaussian.svg"))
